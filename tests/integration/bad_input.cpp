// What a tired user passes: each wrong input gets an error that names it, and the functor works on.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/compile.hpp"
#include "support/models.hpp"

using namespace cortex;
using test::Word;

namespace {

constexpr int hidden = 8, words = 5;

/// The running example with its table bound, and a good tree that must go on working.
struct Fixture {
  decltype(test::compile_here(test::tree_rnn(hidden))) model = test::compile_here(test::tree_rnn(hidden));
  std::vector<float> table = test::uniform(words * hidden, 1, 1);
  Word a{0, nullptr, nullptr}, b{4, nullptr, nullptr}, good{-1, &a, &b};

  Fixture() { model.bind("Emb", table); }

  float expected(int i) const { return std::tanh(table[std::size_t(i)] + table[std::size_t(4 * hidden + i)]); }
  void works_on() const {
    const auto result = model(good);
    for (int i = 0; i < hidden; ++i) CHECK(result[0][std::size_t(i)] == Approx(expected(i)));
  }

  template <class Roots>
  void refuses(const Roots& roots, Code code, const std::string& part) const {
    const auto result = model.try_call(roots);
    REQUIRE_FALSE(result.has_value());
    CHECK(to_string(result.error().code) == to_string(code));
    CHECK_THAT(result.error().message, Catch::Contains(part));
    works_on();
  }
};

}  // namespace

TEST_CASE("a cycle is refused", "[bad input][smoke]") {
  Fixture f;
  Word root{-1, &f.a, nullptr}, below{-1, &f.b, &root};
  root.right = &below;
  f.refuses(root, Code::invalid_structure, "cycle");
}

TEST_CASE("a node that is its own child is refused", "[bad input]") {
  Fixture f;
  Word root{-1, &f.a, nullptr};
  root.right = &root;
  f.refuses(root, Code::invalid_structure, "its own");
}

TEST_CASE("a child of two parents is refused in a tree", "[bad input][smoke]") {
  Fixture f;
  Word left{-1, &f.a, &f.b}, other{1, nullptr, nullptr}, right{-1, &f.b, &other}, root{-1, &left, &right};
  f.refuses(root, Code::invalid_structure, "shared");
}

TEST_CASE("a node with a left child and no right one is refused", "[bad input]") {
  Fixture f;
  Word root{-1, &f.a, nullptr};
  f.refuses(root, Code::invalid_structure, "right");
}

TEST_CASE("more children than declared are refused", "[bad input]") {
  struct Item {
    std::vector<const Item*> kids;
  };
  constexpr auto kids = cortex::children<&Item::kids>;
  Dim H("hidden", 4);
  Model<Item> m("count", cortex::tree.with_max_children(2));
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return 1 + sum(kids(n), [&](auto k) { return h(k, i); }); });
  const auto model = test::compile_here(m.recursion_op(h, body));
  Item a, b, c, root{{&a, &b, &c}}, two{{&a, &b}};
  const auto result = model.try_call(root);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Code::invalid_structure);
  CHECK_THAT(result.error().message, Catch::Contains("3") && Catch::Contains("2"));
  CHECK(model(two)[0][0] == 3);
}

TEST_CASE("a child whose position is past the end of the field that it indexes is refused", "[bad input]") {
  struct Item {
    std::array<int, 2> labels;
    std::vector<const Item*> kids;
  };
  constexpr auto kids = cortex::children<&Item::kids>;
  constexpr auto labels = cortex::field<&Item::labels>;
  Dim L("labels", 3), H("hidden", 4);
  const auto compiled = [&](Structure structure) {
    Model<Item> m("labelled", structure);
    auto T = m.input<float>("T", L, H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return 1 + sum(kids(n), [&](auto k, auto position) { return T(labels(n)[position], i) * h(k, i); });
    });
    auto model = test::compile_here(m.recursion_op(h, body));
    model.bind("T", std::vector<float>(3 * 4, 2.0f));
    return model;
  };
  const Item a{{0, 1}, {}}, b{{0, 1}, {}}, c{{0, 1}, {}}, two{{2, 1}, {&a, &b}}, three{{2, 1}, {&a, &b, &c}};
  const auto model = compiled(cortex::dag);
  const auto result = model.try_call(three);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Code::out_of_range);
  CHECK_THAT(result.error().message, Catch::Contains("'labels'") && Catch::Contains("index 2"));
  CHECK(model(two)[0][0] == 5);
  CHECK(model.executable().guarded.size() == 2);  // the position, and the label

  const auto bounded = compiled(cortex::dag.with_max_children(2));
  CHECK(bounded(two)[0][0] == 5);
  CHECK(bounded.executable().guarded.size() == 1);  // the label
}

TEST_CASE("a word before the start of the table is refused", "[bad input][smoke]") {
  Fixture f;
  Word bad{-3, nullptr, nullptr}, root{-1, &f.a, &bad};
  f.refuses(root, Code::out_of_range, "-3");
}

TEST_CASE("a word past the end of the table is refused with the table's name", "[bad input]") {
  Fixture f;
  Word bad{words, nullptr, nullptr}, root{-1, &f.a, &bad};
  f.refuses(root, Code::out_of_range, "Emb");
}

TEST_CASE("no roots give no results", "[bad input]") {
  const Fixture f;
  const auto result = f.model(std::vector<const Word*>{});
  CHECK(result.size() == 0);
  CHECK(result.num_nodes() == 0);
}

TEST_CASE("a null root is refused with its position", "[bad input]") {
  Fixture f;
  f.refuses(std::vector<const Word*>{&f.good, nullptr}, Code::invalid_structure, "root 1");
}

TEST_CASE("the same root twice and a root inside another's tree work", "[bad input]") {
  const Fixture f;
  const auto result = f.model(std::vector<const Word*>{&f.good, &f.a, &f.good});
  REQUIRE(result.size() == 3);
  CHECK(result.num_nodes() == 3);
  for (int i = 0; i < hidden; ++i) {
    CHECK(result[0][std::size_t(i)] == result[2][std::size_t(i)]);
    CHECK(result[1][std::size_t(i)] == f.table[std::size_t(i)]);
  }
}

TEST_CASE("a chain of a million nodes works", "[bad input]") {
  struct Link {
    const Link* next;
  };
  Dim H("hidden", 2);
  Model<Link> m("length", cortex::sequence);
  auto h = m.placeholder<double>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return h(cortex::optional_child<&Link::next>(n), i) + 1; });
  const auto model = test::compile_here(m.recursion_op(h, body));
  const std::size_t length = test::built_with_llvm() ? 1'000'000 : 50'000;
  std::vector<Link> chain(length);
  for (std::size_t i = 0; i < length; ++i) chain[i].next = i + 1 < length ? &chain[i + 1] : nullptr;
  const auto result = model(chain[0]);
  CHECK(result[0][0] == double(length));
}

TEST_CASE("weights of an unknown name are refused, and the known ones listed", "[bad input]") {
  Fixture f;
  const auto result = f.model.try_bind("Embedding", f.table);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Code::invalid_weights);
  CHECK_THAT(result.error().message, Catch::Contains("Embedding") && Catch::Contains("Emb"));
  f.works_on();
}

TEST_CASE("weights of a wrong shape are refused", "[bad input]") {
  Fixture f;
  const auto result = f.model.try_bind("Emb", std::vector<float>(hidden + 1));
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Code::invalid_weights);
  CHECK_THAT(result.error().message, Catch::Contains("Emb") && Catch::Contains("9"));
  f.works_on();
}

TEST_CASE("weights of a wrong type are refused", "[bad input]") {
  Fixture f;
  const auto result = f.model.try_bind("Emb", std::vector<double>(words * hidden));
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Code::invalid_weights);
  CHECK_THAT(result.error().message, Catch::Contains("f64") && Catch::Contains("f32"));
  f.works_on();
}

TEST_CASE("a call with weights that were never bound names them", "[bad input]") {
  const auto model = test::compile_here(test::tree_rnn(hidden));
  Word leaf{0, nullptr, nullptr};
  const auto result = model.try_call(leaf);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Code::invalid_weights);
  CHECK_THAT(result.error().message, Catch::Contains("Emb"));
}

TEST_CASE("an output span that is too small is refused before any work", "[bad input]") {
  Fixture f;
  std::vector<float> out(hidden - 1, 7);
  const auto result = f.model.try_call(f.good, out);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == Code::invalid_argument);
  CHECK(out == std::vector<float>(hidden - 1, 7));
  f.works_on();
}

TEST_CASE("NaN and infinity in weights propagate", "[bad input]") {
  Fixture f;
  f.table[0] = std::numeric_limits<float>::quiet_NaN();
  f.table[1] = std::numeric_limits<float>::infinity();
  f.table[2] = -std::numeric_limits<float>::infinity();
  f.table[4 * hidden + 3] = std::numeric_limits<float>::quiet_NaN();
  f.model.bind("Emb", f.table);
  const auto result = f.model(f.good);
  CHECK(std::isnan(result[0][0]));
  CHECK(result[0][1] == Approx(1));  // exactly 1 in machine code; the interpreter evaluates the approximation in double
  CHECK(result[0][2] == Approx(-1));
  CHECK(std::isnan(result[0][3]));
  CHECK(std::isfinite(result[0][4]));
}

TEST_CASE("binding anew while calls are in flight gives each call one set of weights or the other", "[bad input]") {
  Fixture f;
  std::atomic<bool> done = false;
  std::atomic<int> mixed = 0, calls = 0;
  const std::vector<float> ones(words * hidden, 0.25f), twos(words * hidden, 0.5f);
  f.model.bind("Emb", ones);
  const float first = f.model(f.good)[0][0];
  f.model.bind("Emb", twos);
  const float second = f.model(f.good)[0][0];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!done) {
        const auto result = f.model(f.good);
        for (const float v : result[0]) mixed += v != result[0][0] || (v != first && v != second);
        ++calls;
      }
    });
  for (int i = 0; i < 300; ++i) f.model.bind("Emb", i % 2 ? ones : twos);
  while (calls < 100) std::this_thread::yield();
  done = true;
  for (std::thread& t : threads) t.join();
  CHECK(mixed == 0);
}

namespace {

/// A pointer whose arrow may throw, as a handle into a store that has gone might.
struct Thrower;
struct Handle {
  const Thrower* target = nullptr;
  bool broken = false;
  const Thrower* operator->() const {
    if (broken) throw std::runtime_error("the store has gone");
    return target;
  }
  const Thrower& operator*() const { return *operator->(); }
  explicit operator bool() const { return target != nullptr; }
};
struct Thrower {
  Handle next;
};

}  // namespace

TEST_CASE("a target that no machine is like is refused", "[bad input]") {
  const auto refused = [](const auto& change) {
    Target target = Target::interpreter();
    change(target);
    const auto result = try_compile(test::tree_rnn(hidden), CompileOptions{}.on(target));
    REQUIRE_FALSE(result.has_value());
    CHECK(to_string(result.error().code) == "invalid_argument");
    return result.error().message;
  };
  for (const int bytes : {std::numeric_limits<int>::min(), -64, 0, 3, 8, 24, 512, 1 << 30})
    CHECK_THAT(refused([&](Target& target) { target.vector_bytes = bytes; }),
               Catch::Contains("Target::vector_bytes is " + std::to_string(bytes) +
                               ": it takes a power of two from 16 to 256; host_target() describes"));
  for (const int registers : {-5, 0, std::numeric_limits<int>::max()})
    CHECK_THAT(refused([&](Target& target) { target.vector_registers = registers; }),
               Catch::Contains("Target::vector_registers is " + std::to_string(registers)));
  CHECK_THAT(refused([&](Target& target) { target.backend = Backend(77); }), Catch::Contains("backend is 77"));
  CHECK_THAT(refused([&](Target& target) { target = Target::x86_64(4), target.matrix_unit = true; }),
             Catch::Contains("matrix_unit is set, but features lack +amx-tile"));
}

TEST_CASE("states of as many elements as there may be are compiled for, or refused, at once", "[bad input]") {
  const auto compiled = [](const auto&... dims) {
    Model<Word> m("large", cortex::tree);
    auto h = m.placeholder<float>("h", dims...);
    auto body = m.compute("body", dims...,
                          [&](auto n, auto... i) { return h(test::left(n), i...) + h(test::right(n), i...) + 1; });
    return test::compile_here(m.recursion_op(h, body));
  };
  const auto model = compiled(Dim("large", std::numeric_limits<std::int32_t>::max()));
  CHECK(model.executable().states[0].dims[0].extent() == std::numeric_limits<std::int32_t>::max());
  try {
    compiled(Dim("large", 1 << 29), Dim("small", 3));
    CHECK_FALSE(test::built_with_llvm());  // vectors of the interpreter's target may leave no gaps
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_model);
    CHECK_THAT(error.message,  // rows of one element each: it is stored by columns
               Catch::Contains("state 'h' of model 'large' has 1610612736 rows that are stored with gaps"));
  }
}

TEST_CASE("an exception of the user's node type reaches the caller, and the functor works on", "[bad input]") {
  Dim H("hidden", 2);
  Model<Thrower> m("length", cortex::sequence);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) { return h(cortex::optional_child<&Thrower::next>(n), i) + 1; });
  const auto model = test::compile_here(m.recursion_op(h, body));
  Thrower last, middle{{&last}}, root{{&middle}};
  middle.next.broken = true;
  CHECK_THROWS_WITH(model(root), "the store has gone");
  middle.next.broken = false;
  CHECK(model(root)[0][0] == 3);
}
