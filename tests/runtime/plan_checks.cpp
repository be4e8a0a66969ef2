// Indices made of the nodes' data: which are checked and when, and which cannot be out of bounds.
#include <catch2/catch.hpp>

#include "cortex/cortex.hpp"
#include "cortex/explain.hpp"

using namespace cortex;

namespace {

struct Bush {
  int id = 0;
  std::vector<const Bush*> kids;
  int kind = 0;
  int topic = 0;
};
constexpr auto word = cortex::field<&Bush::id>;
constexpr auto kids = cortex::children<&Bush::kids>;
constexpr auto kind = cortex::field<&Bush::kind>;
constexpr auto topic = cortex::field<&Bush::topic>;

/// h(n) = T(index(n), i) + the sum over the children, with a table T of `rows`; `checked`: also Emb(word(n), i), whose
/// check makes words valid rows of Emb.
template <bool checked, class Index>
auto model(int rows, const Index& index, Structure structure = cortex::tree) {
  Dim V{"vocabulary"}, R{"rows", rows}, H{"hidden", 4};
  Model<Bush> m("bush", structure);
  auto Emb = m.input<float>("Emb", V, H);
  auto T = m.input<float>("T", R, H);
  auto h = m.placeholder<float>("h", H);
  auto of_table = m.compute("of_table", H, [&](auto n, auto i) { return T(index(n), i); });
  const auto rest = [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); };
  auto body = m.compute("body", H, [&](auto n, auto i) {
    if constexpr (checked)
      return of_table(n, i) + Emb(word(n), i) + rest(n, i);
    else
      return of_table(n, i) + Emb(0, i) + rest(n, i);
  });
  return m.recursion_op(h, body);
}

template <class Program>
auto compiled(const Program& program) {
  return runtime::compile_graph(program.graph(), Schedule{}, Target::interpreter());
}

}  // namespace

TEST_CASE("a remainder by the number of rows is in bounds where words are checked", "[runtime]") {
  const auto index = [](auto n) { return word(n) % 3; };
  const auto known = compiled(model<true>(3, index));
  CHECK(known->guarded.empty());
  CHECK(known->checks.while_reading == 1);
  CHECK(known->checks.by_rules + known->checks.by_intervals == 1);
  // A word may be negative, and a remainder of it too.
  CHECK(compiled(model<false>(3, index))->guarded.size() == 2);
  CHECK(compiled(model<true>(3, [](auto n) { return word(n) / 3; }))->guarded.size() == 1);
}

TEST_CASE("an index that is held inside needs no check", "[runtime]") {
  const auto held = compiled(model<false>(5, [](auto n) { return min(max(word(n), 0), 4); }));
  CHECK(held->guarded.size() == 1);  // Emb(0): whether Emb has a row, only the weights bound say
  CHECK(held->checks.by_intervals == 1);
  CHECK(held->checks.before_kernel == 1);
  CHECK(compiled(model<false>(5, [](auto n) { return min(word(n) - 1, 4); }))->guarded.size() == 2);
}

TEST_CASE("a number of children that is declared is in bounds of a table with a row more", "[runtime]") {
  const auto index = [](auto n) { return num_children(kids(n)); };
  CHECK(compiled(model<true>(4, index, cortex::tree.with_max_children(3)))->checks.by_rules == 1);
  CHECK(compiled(model<true>(2, index, cortex::sequence))->checks.by_rules == 1);
  CHECK(compiled(model<true>(4, index))->guarded.size() == 1);
}

TEST_CASE("what cases and readouts alone read is checked while it is read", "[runtime]") {
  Dim V{"vocabulary"}, R{"rows", 3}, H{"hidden", 4};
  Model<Bush> m("bush", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto T = m.input<float>("T", R, H);
  auto h = m.placeholder<float>("h", H);
  auto said = m.compute("said", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto joined = m.compute("joined", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.switch_(
      "body", [](auto n) { return kind(n); }, when(0, said), when(2, joined), when(1, said));
  auto state = m.recursion(h, body);
  auto out = m.readout<float>("out", H, [&](auto r, auto i) { return state(r, i) * T(topic(r), i); });
  const auto program = m.program(out, state);
  CHECK(compiled(program)->guarded.empty());
  CHECK(compiled(program)->checks.while_reading == 2);

  CompileOptions options;
  options.target = Target::interpreter();
  for (const Schedule& schedule : {Schedule(), Schedule::standard()}) {
    auto model = compile(program, schedule, options);
    model.bind("Emb", std::vector<float>(5 * 4, 1.f)), model.bind("T", std::vector<float>(3 * 4, 2.f));
    const Bush a{4, {}, 0, -1}, b{3, {}, 1, 99}, root{-1, {&a, &b}, 2, 1};
    CHECK(model(root)[0][3] == 4);
    const auto refused = [&](const Bush& at) {
      try {
        model(at);
      } catch (const Error& error) {
        return error.code == Code::out_of_range;
      }
      return false;
    };
    CHECK(refused({5, {}, 0}));
    CHECK(refused({5, {}, 1}));
    CHECK(refused({-1, {&a}, 2, 3}));
    CHECK(refused({0, {}, 3}));  // no case
  }
}

TEST_CASE("a field that is an index in one case and a number in another is checked in the one", "[runtime]") {
  Dim V{"vocabulary"}, H{"hidden", 4};
  Model<Bush> m("bush", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto row = m.compute("row", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto number = m.compute("number", H, [&](auto n, auto i) {
    return cast<float>(word(n)) + sum(kids(n), [&](auto k) { return h(k, i); });
  });
  auto body = m.if_then_else(
      "body", [](auto n) { return kind(n) == 1; }, row, number);
  CompileOptions options;
  options.target = Target::interpreter();
  auto model = compile(m.recursion_op(h, body), {}, options);
  model.bind("Emb", std::vector<float>(5 * 4, 1.f));
  const Bush a{4, {}, 1}, top{-70, {&a}, 0}, outside{5, {}, 1};
  CHECK(model(top)[0][0] == -69);
  CHECK(model.try_call(outside).error().code == Code::out_of_range);
}

TEST_CASE("what all sides of a branch read is read and checked at every node", "[runtime]") {
  Dim V{"vocabulary"}, H{"hidden", 4};
  const auto with = [&](const auto& branch) {
    Model<Bush> m("bush", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H);
    auto h = m.placeholder<float>("h", H);
    const auto reads = [&](const char* name) {
      return m.compute(name, H, [&](auto n, auto i) { return Emb(word(n), i) + Emb(word(n) * 2 + 1, i); });
    };
    auto zero = m.compute("zero", H, [&](auto, auto) { return cast<float>(0); });
    return compiled(m.recursion_op(h, branch(m, reads("a"), reads("b"), reads("c"), zero)));
  };
  const auto leaf = [](auto n) { return is_leaf(n); };
  const auto many = [](auto n) { return num_children(kids(n)) > 2; };
  const auto first = [](auto n) { return kind(n) == 1; };

  const auto ends = with([&](auto& m, auto a, auto b, auto, auto) { return m.if_then_else("body", leaf, a, b); });
  const auto nested = with([&](auto& m, auto a, auto b, auto c, auto) {
    return m.if_then_else("body", leaf, m.if_then_else("ends", first, a, b), m.if_then_else("inside", many, b, c));
  });
  const auto cases = with([&](auto& m, auto a, auto b, auto c, auto) {
    return m.switch_(
        "body", [](auto n) { return kind(n); }, when(7, a), when(2, b), when(5, c), when(3, a));
  });
  for (const auto& all : {ends, nested, cases}) {
    CHECK(all->fields[0].where == structure::Where::all);
    CHECK(all->fields[0].guard.empty());
    CHECK(all->checks.while_reading == 1);
    REQUIRE(all->guarded.size() == 1);
    CHECK(!all->guarded[0].guard);
  }
  const auto one_not = with([&](auto& m, auto, auto b, auto c, auto zero) {
    return m.if_then_else("body", leaf, m.if_then_else("ends", first, zero, b), m.if_then_else("inside", many, b, c));
  });
  CHECK(!one_not->fields[0].guard.empty());
  CHECK(one_not->guarded.size() == 2);
  const auto inside = with([&](auto& m, auto a, auto b, auto, auto zero) {
    return m.if_then_else("body", leaf, zero, m.if_then_else("inside", many, a, b));
  });
  CHECK(inside->fields[0].where == structure::Where::internal);
  CHECK(inside->fields[0].guard.empty());
  CHECK(inside->guarded.size() == 1);
}

TEST_CASE("what is dropped changes no result, and what is kept is refused as before", "[runtime]") {
  CompileOptions options;
  options.target = Target::interpreter();
  const std::vector<float> emb(5 * 4, 1.f);
  const std::vector<float> table{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2};
  const Bush a{4, {}}, b{0, {}}, root{3, {&a, &b}}, far{5, {}}, negative{-1, {}};

  auto dropped = compile(model<true>(3, [](auto n) { return word(n) % 3; }), Schedule{}, options);
  dropped.bind("Emb", emb), dropped.bind("T", table);
  const auto& counts = dropped.executable().checks;
  CHECK_THAT(explain(dropped),
             Catch::Contains("left out, since they cannot fail: " + std::to_string(counts.by_rules) +
                             " by what the linearizer guarantees, " + std::to_string(counts.by_intervals) +
                             " by intervals, " + std::to_string(counts.by_z3) + " by Z3"));
  CHECK(dropped(root)[0][0] == 1 + 0 + 0 + 3);  // the rows 4 % 3, 0 % 3 and 3 % 3 of T, and Emb three times
  for (const Bush* bad : {&far, &negative}) CHECK(dropped.try_call(*bad).error().code == Code::out_of_range);

  auto kept = compile(model<true>(3, [](auto n) { return word(n) - 1; }), Schedule{}, options);
  kept.bind("Emb", emb), kept.bind("T", table);
  const Bush one{1, {}};
  CHECK(kept(one)[0][0] == 0 + 1);
  CHECK_THAT(kept.try_call(b).error().message, Catch::Contains("reads 'T' at index -1"));
  CHECK_THAT(kept.try_call(a).error().message, Catch::Contains("reads 'T' at index 3"));
}

TEST_CASE("a check runs once through an axis, however often its sum is used", "[runtime]") {
  Dim R{"rows", 50}, H{"hidden", 4}, A{"a", 40};
  Model<Bush> m("often", cortex::tree);
  auto T = m.input<float>("T", R, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    const auto s = sum(A, [&](auto a) { return T(word(n) + a, i); });
    return s * s + s / (s * s * s + 1) - s * (s + s * s) + sum(kids(n), [&](auto k) { return h(k, i); });
  });
  const auto plan = compiled(m.recursion_op(h, body));
  REQUIRE(plan->guarded.size() == 1);
  CHECK(plan->guarded[0].ranges.size() == 1);
}
