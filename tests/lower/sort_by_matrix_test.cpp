// Batches that are sorted by the matrices that nodes choose: what of a body then has a loop for each matrix, and which
// models are worth it.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using cortex::test::count;

namespace {

struct Item {
  int tag = 0, kind = 0;
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto tag = cortex::field<&Item::tag>;
constexpr auto kind = cortex::field<&Item::kind>;

/// h = tanh(U_t s + b), s being the sum of the children's states; `choose` gives t at a node.
template <class Choose>
auto tagged(std::int64_t hidden, const Dim& tags, Choose choose, Structure structure = cortex::tree) {
  Dim H("hidden", hidden);
  Model<Item> m("tagged", structure);
  auto U = m.input<float>("U", tags, H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(choose(n), i, j) * s(n, j); }) + b(i));
  });
  return m.recursion_op(h, body);
}

std::string lowered(const ra::Graph& graph, const Schedule& schedule) {
  return ir::print(lower::lower(graph, schedule).body);
}

const Schedule sorted = Schedule{}.dynamic_batch().specialize_leaves().sort_by_matrix();
const auto own_tag = [](auto n) { return tag(n); };

}  // namespace

TEST_CASE("each matrix has a loop over the nodes that chose it", "[lower][sort]") {
  const auto program = tagged(4, Dim("tags", 2), own_tag);
  check_golden("lower/sorted_by_matrix.ilir", ir::print(lower::lower(program.graph(), sorted)));
}

TEST_CASE("products that all nodes have in common stay whole", "[lower][sort]") {
  Dim H("hidden", 4), T("tags", 3);
  Model<Item> m("tagged", cortex::tree);
  auto U = m.input<float>("U", T, H, H), V = m.input<float>("V", T, H, H);
  auto W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto first =
      m.compute("first", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(tag(n), i, j) * s(n, j); }); });
  auto second = m.compute(
      "second", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return V(tag(n), i, j) * first(n, j); }); });
  auto common =
      m.compute("common", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * second(n, j); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) { return tanh(common(n, i) + s(n, i)); });
  const auto program = m.recursion_op(h, body);
  const std::string text = lowered(program.graph(), sorted);
  CHECK(count(text, "part_sizes") == 3);  // of both products and the sum before them
  for (const char* matrix : {"U[0,", "U[1,", "U[2,", "V[0,", "V[1,", "V[2,"}) CHECK(count(text, matrix) == 1);
  CHECK(count(text, "W[") == 1);
}

TEST_CASE("cases of a switch are sorted by matrix, those that choose one", "[lower][sort]") {
  const auto text = [](bool at_all_nodes) {
    Dim H("hidden", 4), T("tags", 3);
    Model<Item> m("tagged", cortex::tree);
    auto U = m.input<float>("U", T, H, H);
    auto h = m.placeholder<float>("h", H);
    auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
    const auto product = [&](const char* name) {
      return m.compute(name, H,
                       [&](auto n, auto i) { return sum(H, [&](auto j) { return U(tag(n), i, j) * s(n, j); }); });
    };
    auto a = product("a");
    auto b = m.compute("b", H, [&](auto n, auto i) { return 2 * s(n, i); });
    auto cell = m.switch_(
        "cell", [](auto n) { return kind(n); }, when(0, a), when(1, b));
    auto body = at_all_nodes ? m.compute("body", H, [&](auto n, auto i) { return cell(n, i) + a(n, i); })
                             : m.compute("body", H, [&](auto n, auto i) { return cell(n, i) + s(n, i); });
    return lowered(m.recursion_op(h, body).graph(), Schedule::standard().sort_by_matrix());
  };
  for (int part = 1; part < 6; ++part)
    CHECK(count(text(true), "part_sizes((b_idx + 1) * 6 + " + std::to_string(part) + ")") == 1);
  // Elsewhere none chooses one, and all are of the first part.
  for (int part = 1; part < 6; ++part)
    CHECK(count(text(false), "part_sizes((b_idx + 1) * 6 + " + std::to_string(part) + ")") == (part < 4));
}

TEST_CASE("where no node chooses a matrix, a batch has one loop over its nodes", "[lower][sort]") {
  const std::string text = lowered(test::tree_lstm(4).graph(), sorted);
  CHECK(count(text, "for b_idx") == 1);
  CHECK(count(text.substr(text.find("for b_idx")), "for n_idx") == 1);
}

TEST_CASE("batches are sorted by default where matrices are large, and few", "[lower][sort]") {
  const auto parts = [](const auto& program, const Schedule& schedule = Schedule::standard()) {
    return lower::lower(program.graph(), schedule).parts;
  };
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag)) == 2);
  CHECK(parts(tagged(96, Dim("tags", 8), own_tag)) == 8);
  CHECK(parts(tagged(96, Dim("tags", 9), own_tag)) == 1);
  CHECK(parts(tagged(96, Dim("tags"), own_tag)) == 1);
  CHECK(parts(tagged(95, Dim("tags", 2), own_tag)) == 1);
  CHECK(parts(tagged(95, Dim("tags", 2), own_tag), Schedule::standard().sort_by_matrix()) == 2);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag), Schedule::standard().sort_by_no_matrix()) == 1);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag, cortex::dag)) == 2);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag, cortex::sequence)) == 1);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag), Schedule{}.sort_by_matrix()) == 1);  // no batches
}

TEST_CASE("products with what nodes bring along are sorted too, and not made ahead of the recursion", "[lower][sort]") {
  Dim V("vocabulary"), H("hidden", 4), T("tags", 2);
  Model<Item> m("tagged", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", T, H, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return U(tag(n), i, j) * Emb(kind(n), j); }) +
           sum(kids(n), [&](auto k) { return h(k, i); });
  });
  const auto program = m.recursion_op(h, body);
  const std::string text = lowered(program.graph(), sorted);
  CHECK(count(text, "for b_idx") == 1);
  CHECK(text.find("U[1,") > text.find("for b_idx"));
  CHECK(count(text, "U[1,") == 1);
  CHECK(count(text, "U[tag(") == 1);  // at leaves, which have tables
}

TEST_CASE("nodes are sorted by what they say of themselves", "[lower][sort]") {
  const auto parts = [](const auto& choose) {
    return lower::lower(tagged(4, Dim("tags", 4), choose).graph(), sorted).parts;
  };
  CHECK(parts([](auto n) { return (tag(n) + kind(n)) % 4; }) == 4);
  CHECK(parts([](auto n) { return num_children(kids(n)) - 1; }) == 4);
  CHECK(parts([](auto) { return 3; }) == 1);
}
