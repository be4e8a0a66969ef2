// Matrices that a sum at the same node reads are computed inside of it.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto next_of = [](auto before, auto added) { return before + added; };

/// Linear attention over a tree: S = next(a S(left) + b S(right), y(left) b), and y is read of S: `read(S, a, D)` gives
/// its element e at a node.
template <class Read, class Next = decltype(next_of)>
ra::Graph attention(int keys, int values, Read read, Next next = next_of) {
  Dim V{"vocabulary"}, D{"keys", keys}, E = keys == values ? D : Dim{"values", values};
  Model<Word> m("attention", cortex::tree);
  auto K = m.input<float>("K", V, D), U = m.input<float>("U", V, E);
  auto a = m.input<float>("a", D), b = m.input<float>("b", E);
  auto S = m.placeholder<float>("S", D, E);
  auto y = m.placeholder<float>("y", E);
  auto leaf_S = m.compute("leaf_S", D, E,
                          [&](auto n, auto d, auto e) { return next(K(word(n), d) * U(word(n), e), b(e) * a(d)); });
  auto inner_S = m.compute("inner_S", D, E, [&](auto n, auto d, auto e) {
    return next(a(d) * S(left(n), d, e) + b(e) * S(right(n), d, e), y(left(n), e) * a(d));
  });
  auto leaf_y = m.compute("leaf_y", E, [&](auto n, auto e) { return read(leaf_S, a, D)(n, e); });
  auto inner_y = m.compute("inner_y", E, [&](auto n, auto e) { return read(inner_S, a, D)(n, e); });
  const auto leaf = [](auto n) { return is_leaf(n); };
  return m
      .recursion_op(S, m.if_then_else("S_body", leaf, leaf_S, inner_S), y,
                    m.if_then_else("y_body", leaf, leaf_y, inner_y))
      .graph();
}

constexpr auto once = [](auto S, auto a, Dim D) {
  return [=](auto n, auto e) { return sum(D, [&](auto d) { return a(d) * S(n, d, e); }); };
};
/// The greatest of each column beside the sum: the first of the two computes the matrix.
constexpr auto twice = [](auto S, auto a, Dim D) {
  return [=](auto n, auto e) {
    return sum(D, [&](auto d) { return a(d) * S(n, d, e); }) + maximum(D, [&](auto d) { return S(n, d, e); });
  };
};
/// With what stands in the next column, around the end.
constexpr auto with_neighbours = [](auto S, auto a, Dim D) {
  return [=](auto n, auto e) { return sum(D, [&](auto d) { return a(d) * S(n, d, e) * S(n, d, (e + 1) % 8); }); };
};
constexpr auto by_rows = [](auto S, auto a, Dim D) {
  return [=](auto n, auto e) { return sum(D, [&](auto d) { return a(d) * S(n, e, d); }); };
};
constexpr auto every_other_row = [](auto S, auto a, Dim D) {
  return [=](auto n, auto e) { return sum(D, [&](auto d) { return a(d) * S(n, d / 2, e); }); };
};
/// Each element of the diagonal, for all terms of its sum.
constexpr auto diagonal = [](auto S, auto a, Dim D) {
  return [=](auto n, auto e) { return sum(D, [&](auto d) { return a(d) * S(n, e, e); }); };
};
constexpr auto of_function = [](auto before, auto added) { return tanh(before + added); };

/// Heads with a matrix each, of which a sum reads the values of all keys.
ra::Graph heads(int heads, int keys, int values) {
  Dim V{"vocabulary"}, N{"heads", heads}, D{"keys", keys}, E{"values", values};
  Model<Word> m("heads", cortex::tree);
  auto K = m.input<float>("K", V, N, D);
  auto U = m.input<float>("U", V, E), a = m.input<float>("a", N, D);
  auto S = m.placeholder<float>("S", N, D, E);
  auto y = m.placeholder<float>("y", N, E);
  auto leaf_S =
      m.compute("leaf_S", N, D, E, [&](auto n, auto h, auto d, auto e) { return K(word(n), h, d) * U(word(n), e); });
  auto inner_S = m.compute("inner_S", N, D, E, [&](auto n, auto h, auto d, auto e) {
    return a(h, d) * S(left(n), h, d, e) + y(right(n), h, e);
  });
  const auto read_of = [&](const char* name, auto& matrix) {
    return m.compute(name, N, E, [&](auto n, auto h, auto e) {
      return sum(D, [&](auto d) { return a(h, d) * matrix(n, h, d, e); });
    });
  };
  auto leaf_y = read_of("leaf_y", leaf_S);
  auto inner_y = read_of("inner_y", inner_S);
  const auto leaf = [](auto n) { return is_leaf(n); };
  return m
      .recursion_op(S, m.if_then_else("S_body", leaf, leaf_S, inner_S), y,
                    m.if_then_else("y_body", leaf, leaf_y, inner_y))
      .graph();
}

/// A weight for each element, and a table of matrices at leaves.
ra::Graph weighed_elements(int extent) {
  Dim V{"vocabulary"}, D{"keys", extent};
  Model<Word> m("weighed", cortex::tree);
  auto T = m.input<float>("T", V, D, D);
  auto A = m.input<float>("A", D, D);
  auto q = m.input<float>("q", D);
  auto S = m.placeholder<float>("S", D, D);
  auto y = m.placeholder<float>("y", D);
  auto leaf_S = m.compute("leaf_S", D, D, [&](auto n, auto d, auto e) { return T(word(n), d, e); });
  auto inner_S = m.compute("inner_S", D, D, [&](auto n, auto d, auto e) {
    return A(d, e) * (S(left(n), d, e) + S(right(n), d, e)) + y(left(n), e) * q(d);
  });
  auto leaf_y =
      m.compute("leaf_y", D, [&](auto n, auto e) { return sum(D, [&](auto d) { return q(d) * leaf_S(n, d, e); }); });
  auto inner_y =
      m.compute("inner_y", D, [&](auto n, auto e) { return sum(D, [&](auto d) { return q(d) * inner_S(n, d, e); }); });
  const auto leaf = [](auto n) { return is_leaf(n); };
  return m
      .recursion_op(S, m.if_then_else("S_body", leaf, leaf_S, inner_S), y,
                    m.if_then_else("y_body", leaf, leaf_y, inner_y))
      .graph();
}

bool stays(const ra::Graph& graph, const Schedule& schedule = Schedule::standard()) {
  for (const Snapshot& s : passes_of(graph, schedule, machine(16)))
    if (s.pass == "fuse_into_sums") return false;
  return true;
}

}  // namespace

TEST_CASE("a matrix that a sum reads once is computed in the sum", "[pass][golden]") {
  check_golden("pass/fuse_into_sums/attention.ilir",
               text_after("fuse_into_sums", attention(4, 8, once), Schedule::standard()));
}

TEST_CASE("matrices stay whose reads are others, and those of a schedule that fuses nothing", "[pass]") {
  CHECK_FALSE(stays(attention(8, 8, once)));
  CHECK(stays(attention(8, 8, once), Schedule::standard().fuse_nothing()));
  CHECK(stays(attention(8, 8, with_neighbours)));
  CHECK(stays(attention(16, 16, by_rows)));
  CHECK(stays(attention(8, 8, every_other_row)));
  CHECK(stays(attention(8, 8, diagonal)));
  CHECK_FALSE(stays(heads(2, 8, 8)));
}

TEST_CASE("a matrix stays whose rows more workers can share than columns", "[pass]") {
  CHECK(stays(attention(16, 4, once), Schedule::standard().workers(2)));
  CHECK_FALSE(stays(attention(16, 8, once), Schedule::standard().workers(2)));
  CHECK_FALSE(stays(attention(4, 4, once), Schedule::standard().workers(2)));
}

TEST_CASE("weights of elements alone are stored and lie as without sums", "[pass]") {
  const std::string text = text_after("fuse_into_sums", weighed_elements(8), Schedule::standard());
  INFO(text);
  CHECK(count(text, "A[r") == 1);
  CHECK(count(text, "T[id(node),r") == 0);
  for (const Snapshot& s : passes_of(weighed_elements(8), Schedule::standard().store_weights(DType::bf16), machine(16)))
    CHECK(s.pass != "store_weights");
}

TEST_CASE("functions stay in loops of their own", "[pass]") { CHECK(stays(attention(8, 8, once, of_function))); }

TEST_CASE("matrices computed in sums are right after every pass", "[pass][equality]") {
  std::mt19937 random(4);
  const NodeTable table = random_table(30, 2, 9, random, true);
  const Linear linear(table, 2);
  int target = 0;
  const auto check = [&](const ra::Graph& graph) {
    check_every_schedule(graph, table, linear.arrays, linear.number, 9, target++);
  };
  check(attention(4, 8, once));
  check(attention(7, 35, once));
  check(attention(16, 16, once));
  check(attention(8, 8, twice));
  check(attention(8, 8, with_neighbours));
  check(attention(16, 16, by_rows));
  check(attention(8, 8, every_other_row));
  check(attention(8, 8, diagonal));
  check(attention(8, 19, once, of_function));
  check(heads(2, 5, 24));
  check(weighed_elements(8));
}
