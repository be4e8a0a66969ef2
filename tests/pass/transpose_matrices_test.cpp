// Matrices that nodes have lie the way that loops over results walk along, and users see them as the model has them.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <span>
#include <tuple>
#include <vector>

#include "support/compile.hpp"
#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

constexpr int R = 17, C = 19;  // rows and columns of a node's matrix

enum class Sum { over_columns, over_rows };

/// A vector and a matrix at each node: t = M_left v_right, v = tanh(W t), M = tanh(U M_left) + M_right. Sums over rows
/// in place of columns: t = M_left^T v_right, v = W t.
auto matrices(Sum sum_over = Sum::over_columns) {
  Dim V{"vocabulary"}, rows{"rows", R}, columns{"columns", C};
  const bool over_columns = sum_over == Sum::over_columns;
  const Dim given = over_columns ? columns : rows, made = over_columns ? rows : columns;
  Model<Word> m("matrices", cortex::tree);
  auto Emb_v = m.input<float>("Emb_v", V, given);
  auto Emb_M = m.input<float>("Emb_M", V, rows, columns);
  auto W = m.input<float>("W", given, made), U = m.input<float>("U", rows, rows);
  auto v = m.placeholder<float>("v", given);
  auto M = m.placeholder<float>("M", rows, columns);
  auto leaf_v = m.compute("leaf_v", given, [&](auto n, auto i) { return Emb_v(word(n), i); });
  auto leaf_M = m.compute("leaf_M", rows, columns, [&](auto n, auto r, auto c) { return Emb_M(word(n), r, c); });
  auto t = m.compute("t", made, [&](auto n, auto i) {
    return sum(given, [&](auto j) { return (over_columns ? M(left(n), i, j) : M(left(n), j, i)) * v(right(n), j); });
  });
  auto inner_v = m.compute("inner_v", given,
                           [&](auto n, auto i) { return tanh(sum(made, [&](auto j) { return W(i, j) * t(n, j); })); });
  auto inner_M = m.compute("inner_M", rows, columns, [&](auto n, auto r, auto c) {
    return tanh(sum(rows, [&](auto k) { return U(r, k) * M(left(n), k, c); })) + M(right(n), r, c);
  });
  const auto leaf = [](auto n) { return is_leaf(n); };
  auto v_body = m.if_then_else("v_body", leaf, leaf_v, inner_v);
  auto M_body = m.if_then_else("M_body", leaf, leaf_M, inner_M);
  return m.recursion_op(v, v_body, M, M_body);
}

std::string text_of(Sum sum_over) {
  return text_after("transpose_matrices", matrices(sum_over).graph(), Schedule::standard().exact_activations());
}

struct State {
  std::vector<double> v, M;
};

State by_hand(const Word& node, const std::vector<float>& Emb_v, const std::vector<float>& Emb_M,
              const std::vector<float>& W, const std::vector<float>& U) {
  if (!node.left) {
    const auto rows_of = [&](const std::vector<float>& table, int size) {
      return std::vector<double>(table.begin() + node.id * size, table.begin() + (node.id + 1) * size);
    };
    return {rows_of(Emb_v, C), rows_of(Emb_M, R * C)};
  }
  const State a = by_hand(*node.left, Emb_v, Emb_M, W, U), b = by_hand(*node.right, Emb_v, Emb_M, W, U);
  State s{std::vector<double>(C), std::vector<double>(R * C)};
  std::vector<double> t(R);
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) t[std::size_t(r)] += a.M[std::size_t(r * C + c)] * b.v[std::size_t(c)];
  for (int c = 0; c < C; ++c) {
    double sum = 0;
    for (int r = 0; r < R; ++r) sum += double(W[std::size_t(c * R + r)]) * t[std::size_t(r)];
    s.v[std::size_t(c)] = std::tanh(sum);
    for (int r = 0; r < R; ++r) {
      double product = 0;
      for (int k = 0; k < R; ++k) product += double(U[std::size_t(r * R + k)]) * a.M[std::size_t(k * C + c)];
      s.M[std::size_t(r * C + c)] = std::tanh(product) + b.M[std::size_t(r * C + c)];
    }
  }
  return s;
}

}  // namespace

TEST_CASE("a matrix that is summed over columns lies by columns", "[pass][golden]") {
  check_golden("pass/transpose_matrices/over_columns.ilir", text_of(Sum::over_columns));
}

TEST_CASE("a matrix that is summed over rows lies as the model says", "[pass]") {
  const auto program = matrices(Sum::over_rows);
  const ir::Program lowered = lower::lower(program.graph(), Schedule::standard());
  ir::Program same = lowered;
  pass::transpose_matrices(same, 1);
  CHECK(same.body.same_as(lowered.body));
}

TEST_CASE("a matrix of fewer rows than one or two vectors have lanes lies as the model says, however it is summed",
          "[pass]") {
  const auto program = matrices(Sum::over_columns);
  const ir::Program lowered = lower::lower(program.graph(), Schedule::standard());
  for (const auto& [lanes, stays] : {std::pair(8, false), {9, true}, {R, false}, {R + 1, true}}) {
    ir::Program turned = lowered;
    pass::transpose_matrices(turned, lanes);
    CHECK(turned.body.same_as(lowered.body) == stays);
  }
}

TEST_CASE("a matrix that is stored otherwise than element by element stays", "[pass]") {
  // An operator over one dimension alone writes the diagonal: its loop is not over the elements of a matrix.
  const auto program = matrices();
  ir::Program lowered = lower::lower(program.graph(), Schedule::standard());
  const auto find = [&](const char* name) {
    for (const ir::Buffer& buffer : lowered.buffers)
      if (buffer->name == name) return buffer;
    throw Error(Code::internal, name);
  };
  const ir::Buffer M = find("M");
  const ir::Expr d = ir::Var::make("d");
  const ir::Stmt diagonal = ir::For::make(d, Dim("rows", R), ir::imm(R), ir::ForKind::serial,
                                          ir::Store::make(M, {ir::imm(0), d, d}, ir::FloatImm::make(1, DType::f32)));
  lowered.body = ir::Block::make({lowered.body, diagonal});
  const ir::Stmt before = lowered.body;
  pass::transpose_matrices(lowered, 1);
  CHECK(lowered.body.same_as(before));
}

TEST_CASE("the first state stays where users have views of it", "[pass]") {
  for (const auto& [columns, stays] : {std::pair(16, true), {8, false}, {17, false}}) {  // of 64 bytes
    Dim V{"vocabulary"}, H{"rows", 16}, C{"columns", columns};
    Model<Word> m("matrix_first", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H, C);
    auto M = m.placeholder<float>("M", H, C);
    auto leaf = m.compute("leaf", H, C, [&](auto n, auto i, auto j) { return Emb(word(n), i, j); });
    auto ones = m.compute("ones", H, [&](auto n, auto i) { return sum(C, [&](auto j) { return M(left(n), i, j); }); });
    auto inner = m.compute("inner", H, C, [&](auto n, auto i, auto j) { return ones(n, i) * M(right(n), i, j); });
    const auto program = m.recursion_op(M, m.if_then_else(
                                               "body", [](auto n) { return is_leaf(n); }, leaf, inner));
    ir::Program lowered = lower::lower(program.graph(), Schedule::standard());
    const ir::Stmt before = lowered.body;
    pass::transpose_matrices(lowered, 1);
    CHECK(lowered.body.same_as(before) == stays);
  }
}

namespace {

/// Vectors in few dimensions: h = tanh(W h_left + h_right).
auto short_rows(int rows, int columns) {
  Dim V{"vocabulary"}, H{"hidden", rows}, C{"space", columns};
  Model<Word> m("vectors", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H, C);
  auto W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H, C);
  auto inner = m.compute("inner", H, C, [&](auto n, auto i, auto c) {
    return tanh(sum(H, [&](auto j) { return W(i, j) * h(left(n), j, c); }) + h(right(n), i, c));
  });
  auto leaf = m.compute("leaf", H, C, [&](auto n, auto i, auto c) { return Emb(word(n), i, c); });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, inner));
}

}  // namespace

TEST_CASE("rows that are shorter than a vector become columns", "[pass]") {
  for (const auto& [rows, columns, lanes, turns] : {std::tuple(20, 3, 4, true),
                                                    {20, 3, 2, false},
                                                    {20, 7, 8, true},
                                                    {20, 8, 8, false},
                                                    {3, 2, 4, true},
                                                    {2, 3, 4, false}}) {
    CAPTURE(rows, columns, lanes);
    ir::Program program = lower::lower(short_rows(rows, columns).graph(), Schedule::standard());
    pass::transpose_matrices(program, lanes);
    const std::string turned = "h[d_node,space=" + std::to_string(columns) + ",hidden=" + std::to_string(rows) + "]";
    CHECK((count(ir::print(program), turned) > 0) == turns);
  }
}

TEST_CASE("results have rows that are shorter than a vector as the model has them", "[pass]") {
  constexpr int H = 21, C = 3;
  const auto Emb = uniform(4 * H * C, 1, 1), W = uniform(H * H, 0.3f, 2);
  const Word a{0}, b{1}, c{2}, d{3}, ab{-1, &a, &b}, cd{-1, &c, &d}, root{-1, &ab, &cd};
  const auto run = [&](const Schedule& schedule, const Target& target) {
    auto model = compile(short_rows(H, C), schedule, CompileOptions{}.on(target));
    model.bind("Emb", Emb).bind("W", W);
    const auto result = model(root);
    std::vector<float> all;
    for (const Word* node : {&a, &ab, &cd, &root}) {
      std::vector<float> one(H * C);
      result.copy_node(node, "h", std::span(one));
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  };
  const std::vector<float> expected = run(Schedule{}, Target::interpreter());
  CHECK(std::equal(Emb.begin(), Emb.begin() + H * C, expected.begin()));
  for (const Schedule& schedule : {Schedule::standard(), Schedule::standard().workers(2)}) {
    const std::vector<float> values = run(schedule, best_target());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-5));
  }
}

TEST_CASE("rows that are shorter than a vector stay where lanes are of what is summed up", "[pass]") {
  // Scores of two keys: sums over the width of each query, which lies side by side.
  Dim V{"vocabulary"}, Q{"queries", 16}, K{"keys", 2}, D{"width", 16};
  Model<Word> m("scores", cortex::tree);
  auto Emb = m.input<float>("Emb", V, Q, D), Key = m.input<float>("Key", V, K, D);
  auto h = m.placeholder<float>("h", Q, D);
  auto score = m.compute("score", Q, K, [&](auto n, auto q, auto k) {
    return sum(D, [&](auto d) { return h(left(n), q, d) * Key(word(n), k, d); });
  });
  auto inner = m.compute("inner", Q, D, [&](auto n, auto q, auto d) {
    return sum(K, [&](auto k) { return score(n, q, k) * Key(word(n), k, d); }) + h(right(n), q, d);
  });
  auto leaf = m.compute("leaf", Q, D, [&](auto n, auto q, auto d) { return Emb(word(n), q, d); });
  const auto program = m.recursion_op(h, m.if_then_else(
                                             "body", [](auto n) { return is_leaf(n); }, leaf, inner));
  ir::Program lowered = lower::lower(program.graph(), Schedule::standard());
  const ir::Stmt before = lowered.body;
  pass::transpose_matrices(lowered, 8);
  CHECK(lowered.body.same_as(before));
}

TEST_CASE("results have transposed matrices as the model has them", "[pass]") {
  const auto Emb_v = uniform(4 * C, 1, 1), Emb_M = uniform(4 * R * C, 1, 2), W = uniform(C * R, 0.3f, 3),
             U = uniform(R * R, 0.5f, 4);
  const Word a{0}, b{1}, c{2}, d{3}, e{2}, ab{-1, &a, &b}, cd{-1, &c, &d}, abcd{-1, &ab, &cd}, root{-1, &abcd, &e};
  for (const int workers : {1, 3}) {
    CompileOptions options;
    options.target = best_target();
    auto model = compile(matrices(), Schedule::standard().workers(workers), options);
    model.bind("Emb_v", Emb_v).bind("Emb_M", Emb_M).bind("W", W).bind("U", U);
    CHECK_THAT(model.print("tiled"), Contains("M[d_node,columns=19,rows=17] f32 state transposed"));
    const auto result = model(root);
    CHECK_THROWS_WITH(result.root<float>(0, "M"), Contains("use copy_root or copy_node"));
    for (const Word* node : {&a, &ab, &cd, &abcd, &root}) {
      const State expected = by_hand(*node, Emb_v, Emb_M, W, U);
      const auto v = result.node(node);
      std::vector<float> M(R * C);
      result.copy_node(node, "M", std::span(M));
      REQUIRE(v.size() == std::size_t(C));
      for (int i = 0; i < C; ++i) CHECK(v[std::size_t(i)] == Approx(expected.v[std::size_t(i)]).margin(1e-5));
      for (int i = 0; i < R * C; ++i) CHECK(M[std::size_t(i)] == Approx(expected.M[std::size_t(i)]).margin(1e-5));
    }
  }
}

TEST_CASE("what is made of weights lies along the outputs that read it, in however many dimensions", "[pass]") {
  Dim V{"vocabulary"}, A{"heads", 3}, D{"head", 8}, B{"groups", 4}, E{"width", 6};
  Model<Word> m("weights", cortex::tree);
  auto Emb = m.input<float>("Emb", V, A, D);
  auto W = m.input<float>("W", A, D, B, E), X = m.input<float>("X", A, D, B, E);
  auto U = m.input<float>("U", B, E, A, D);
  auto h = m.placeholder<float>("h", A, D);
  auto mixed = m.compute("mixed", B, E, [&](auto n, auto b, auto e) {
    return sum(A, [&](auto a) {
      return sum(D, [&](auto d) { return (U(b, e, a, d) + X(a, d, b, e)) * (h(left(n), a, d) + h(right(n), a, d)); });
    });
  });
  auto inner = m.compute("inner", A, D, [&](auto n, auto a, auto d) {
    return tanh(sum(
        B, [&](auto b) { return sum(E, [&](auto e) { return (W(a, d, b, e) + X(a, d, b, e)) * mixed(n, b, e); }); }));
  });
  auto leaf = m.compute("leaf", A, D, [&](auto n, auto a, auto d) { return Emb(word(n), a, d); });
  const auto program = m.recursion_op(h, m.if_then_else(
                                             "body", [](auto n) { return is_leaf(n); }, leaf, inner));
  const std::string text =
      text_after("transpose_matrices", program.graph(), Schedule::standard().exact_activations(), machine(16));
  CHECK_THAT(text, Contains("h_sum_of_weights2[heads=3,groups=4,width=6,head=8] f32 temp transposed"));
  CHECK_THAT(text, Contains("mixed_of_weights[groups=4,heads=3,head=8,width=6] f32 temp transposed"));
  const Word a{0}, b{1}, c{2}, ab{-1, &a, &b}, root{-1, &ab, &c};
  const auto run = [&](const Schedule& schedule, const Target& target) {
    auto model = compile(program, schedule, CompileOptions{}.on(target));
    model.bind_together([&] {
      model.bind("Emb", uniform(3 * 24, 1, 1));
      unsigned seed = 1;
      for (const char* name : {"W", "X", "U"}) model.bind(name, uniform(24 * 24, 0.3f, ++seed));
    });
    std::vector<float> values(24);
    model(root).copy_root(0, "h", values);
    return values;
  };
  const std::vector<float> expected = run(Schedule{}, Target::interpreter());
  for (const Schedule& schedule : {Schedule::standard(), Schedule::standard().workers(2), Schedule{}}) {
    const std::vector<float> values = run(schedule, best_target());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(values[i] == Approx(expected[i]).margin(1e-5));
  }
}
