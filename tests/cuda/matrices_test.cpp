// States that are matrices, in the emulation: threads share rows and columns of a node's matrix, and edges of rows,
// columns, nodes and slices are what they are for the interpreter, with the same bits for any shape.
#include "cortex/models/cell.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cuda/check.hpp"
#include "support/golden.hpp"
#include "support/gpu_passes.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

using Catch::Matchers::Contains;
using Where = GpuSchedule::Weights;

/// M[i,j] = tanh(sum over k of W[j,0,k] M_left[i,k] + sum over k of W[j,1,k] M_right[i,k] + B[i,j]), of `rows` by
/// `columns` elements; and a vector in which all of the children's matrices are seen.
auto matrices(int rows, int columns) {
  Dim V{"vocabulary", vocabulary}, R{"rows", rows}, C{"columns", columns}, S{"side", 2};
  Model<Item> m("matrices", cortex::tree);
  auto Emb = m.input<float>("Emb", V, R, C), W = m.input<float>("W", C, S, C);
  auto B = m.input<float>("B", R, C);
  auto v = m.placeholder<float>("v", C);
  auto M = m.placeholder<float>("M", R, C);
  auto leaf_v = m.compute("leaf_v", C, [&](auto n, auto j) { return Emb(word(n), 0, j); });
  auto leaf_M = m.compute("leaf_M", R, C, [&](auto n, auto i, auto j) { return Emb(word(n), i, j); });
  auto inner_v = m.compute("inner_v", C, [&](auto n, auto j) {
    return tanh(sum(R, [&](auto i) { return B(i, j) * M(left(n), i, j); }) -
                sum(R, [&](auto i) { return B(i, j) * M(right(n), i, j); }) + v(left(n), j) - v(right(n), j));
  });
  auto inner_M = m.compute("inner_M", R, C, [&](auto n, auto i, auto j) {
    return tanh(sum(C, [&](auto k) { return W(j, 0, k) * M(left(n), i, k); }) +
                sum(C, [&](auto k) { return W(j, 1, k) * M(right(n), i, k); }) + B(i, j));
  });
  const auto leaf = [](auto n) { return is_leaf(n); };
  const auto [all_v, all_M] = m.recursion(v, m.if_then_else("v_body", leaf, leaf_v, inner_v), M,
                                          m.if_then_else("M_body", leaf, leaf_M, inner_M));
  return m.program(all_v, all_M);
}

/// The same with three dimensions, and one product.
auto cubes(int depth, int rows, int columns) {
  Dim V{"vocabulary", vocabulary}, D{"depth", depth}, R{"rows", rows}, C{"columns", columns};
  Model<Item> m("cubes", cortex::tree);
  auto Emb = m.input<float>("Emb", V, D, R, C);
  auto W = m.input<float>("W", C, C);
  auto A = m.input<float>("A", D, R);
  auto v = m.placeholder<float>("v", C);
  auto M = m.placeholder<float>("M", D, R, C);
  auto leaf_v = m.compute("leaf_v", C, [&](auto n, auto j) { return Emb(word(n), 0, 0, j); });
  auto leaf_M = m.compute("leaf_M", D, R, C, [&](auto n, auto d, auto i, auto j) { return Emb(word(n), d, i, j); });
  auto inner_v = m.compute("inner_v", C, [&](auto n, auto j) {
    return sum(D, [&](auto d) { return sum(R, [&](auto i) { return A(d, i) * M(left(n), d, i, j); }); }) -
           v(right(n), j);
  });
  auto inner_M = m.compute("inner_M", D, R, C, [&](auto n, auto d, auto i, auto j) {
    return tanh(sum(C, [&](auto k) { return W(j, k) * M(left(n), d, i, k); })) - M(right(n), d, i, j);
  });
  const auto leaf = [](auto n) { return is_leaf(n); };
  const auto [all_v, all_M] = m.recursion(v, m.if_then_else("v_body", leaf, leaf_v, inner_v), M,
                                          m.if_then_else("M_body", leaf, leaf_M, inner_M));
  return m.program(all_v, all_M);
}

/// h = tanh(U_t (h_left + h_right)), t being the node's word modulo 3.
auto tagged(int hidden) {
  Dim V{"vocabulary", vocabulary}, H{"hidden", hidden}, T{"tags", 3};
  Model<Item> m("tagged", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", T, H, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(word(n) % 3, i, j) * (h(left(n), j) + h(right(n), j)); }));
  });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, inner));
}

/// h = tanh(the sum over the children k of U_t h_k), t being the child's word modulo 3.
auto tagged_children(int hidden) {
  Dim V{"vocabulary", vocabulary}, H{"hidden", hidden}, T{"tags", 3};
  Model<Item> m("tagged_children", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", T, H, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    return tanh(sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return U(word(k) % 3, i, j) * h(k, j); }); }));
  });
  return m.recursion_op(h, m.if_then_else(
                               "body", [](auto n) { return is_leaf(n); }, leaf, inner));
}

auto mv_rnn(int hidden) {
  return models::mv_rnn<Item>(word, left, right, {.vocabulary = vocabulary, .hidden = hidden}).program;
}

Schedule shaped(Group group, int blocks, int threads, int rows, Where weights = Where::automatic, int parts = 1) {
  GpuSchedule how = on_gpu(group, blocks, weights, false, threads, parts).gpu;
  how.rows = rows;
  return Schedule::standard().on_gpu(how);
}

template <class Program>
void check_model(const Program& program, const std::vector<Schedule>& ways, int trees = 4, int nodes = 12) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::binary, trees, nodes, 5);
  const std::vector<float> right = interpreted(program, weights, items);
  std::vector<float> first;
  for (std::size_t w = 0; w < ways.size(); ++w) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, 5};
    CAPTURE(program.name(), w, trees, nodes);
    const std::vector<float> got = emulated(fake, program, ways[w], weights, items);
    CHECK(fake.problem == "");
    CHECK(difference(got, right) <= 1);
    if (first.empty()) first = got;
    CHECK(got == first);
  }
}

}  // namespace

TEST_CASE("threads share matrices of odd sizes, with the same bits in every shape", "[cuda]") {
  check_model(matrices(5, 7), {shaped(Group::block, 1, 32, 1), shaped(Group::block, 1, 32, 2),
                               shaped(Group::block, 1, 64, 8, Where::streamed), shaped(Group::grid, 3, 32, 4)});
  check_model(matrices(3, 20), {shaped(Group::block, 1, 32, 4), shaped(Group::cluster, 2, 32, 2, Where::resident),
                                shaped(Group::grid, 3, 64, 2, Where::streamed)});
}

TEST_CASE("threads share matrices whose rows tiles divide, with the same bits in every shape", "[cuda]") {
  check_model(matrices(8, 16),
              {shaped(Group::block, 1, 32, 2), shaped(Group::block, 1, 32, 4), shaped(Group::block, 1, 128, 1),
               shaped(Group::cluster, 2, 32, 2), shaped(Group::grid, 2, 32, 2, Where::streamed),
               shaped(Group::block, 1, 32, 2, Where::registers)});
  check_model(matrices(32, 32), {shaped(Group::block, 1, 32, 4), shaped(Group::cluster, 4, 32, 4)}, 2, 5);
}

TEST_CASE("a tree of one node, and a level of many, have the rows of their matrices stored", "[cuda]") {
  const std::vector<Schedule> ways{shaped(Group::block, 1, 32, 4), shaped(Group::cluster, 2, 32, 2)};
  for (const auto& [trees, nodes] : {std::pair{1, 1}, std::pair{1, 3}, std::pair{9, 3}}) {
    check_model(matrices(5, 8), ways, trees, nodes);
    check_model(matrices(8, 16), ways, trees, nodes);
  }
}

TEST_CASE("threads share states of three dimensions, one of which may be of one element", "[cuda]") {
  const std::vector<Schedule> ways{shaped(Group::block, 1, 32, 2), shaped(Group::cluster, 2, 32, 4),
                                   shaped(Group::grid, 2, 64, 1, Where::streamed)};
  check_model(cubes(2, 3, 9), ways);
  check_model(cubes(2, 4, 8), ways);
  check_model(cubes(1, 5, 4), ways);
  check_model(cubes(3, 1, 12), ways);
}

TEST_CASE("threads share sums of matrices, with the same bits in every shape", "[cuda]") {
  const auto ways = [](int parts) {
    const auto way = [&](Group group, int blocks, int threads, int rows, Where weights = Where::automatic) {
      return shaped(group, blocks, threads, rows, weights, parts);
    };
    return std::vector<Schedule>{way(Group::block, 1, 32, 1), way(Group::block, 1, 64, 8),
                                 way(Group::block, 1, 128, 4, Where::streamed), way(Group::cluster, 2, 32, 8),
                                 way(Group::grid, 3, 64, 2, Where::streamed)};
  };
  check_model(matrices(5, 7), ways(2));
  check_model(matrices(8, 16), ways(8));
  check_model(cubes(2, 4, 8), ways(4), 2, 9);
  check_model(mv_rnn(12), ways(2), 1, 9);
  check_model(mv_rnn(32), ways(8), 2, 3);
  check_model(mv_rnn(16), ways(32), 1, 1);
  check_model(mv_rnn(32), {shaped(Group::block, 1, 128, 2, Where::registers, 4), ways(4)[1]}, 2, 3);
}

TEST_CASE("share_threads makes of matrices what its golden files show", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::block, 1);
  check_golden("schedule/share_threads/matrices.ilir", text_after("share_threads", matrices(8, 16).graph(), wish));
  check_golden("schedule/share_threads/odd_matrices.ilir", text_after("share_threads", matrices(5, 7).graph(), wish));
  check_golden("schedule/share_threads/parts_of_matrices.ilir",
               text_after("share_threads", matrices(8, 16).graph(), how(Group::cluster, 2, 32, 4)));
}

TEST_CASE("one node's matrix gives work to all threads of a block", "[cuda]") {
  // Two tiles of each of 16 times 16 threads: two rows of four columns. Of two products it reads four columns' weights,
  // for four terms at a time; beside these reads there is the copy.
  const std::string text = ir::print(after("share_loads", matrices(64, 64).graph(), how(Group::block, 1, 256)));
  CHECK(occurrences(text, "", "= W_packed_slice[") == 2 * 4 * 4);
}

TEST_CASE("matrices are too large for all blocks to write to each other's shared memory", "[cuda]") {
  const auto kept = [](Group group, int blocks) {
    GpuSchedule wish = how(group, blocks, 32);
    wish.recent_rows = 64;
    return ir::print(after("keep_recent", mv_rnn(16).graph(), wish));
  };
  CHECK_THAT(kept(Group::cluster, 2), Contains("v_recent") && !Contains("M_transposed_recent"));
  CHECK_THAT(kept(Group::block, 1), Contains("M_transposed_recent"));
}

TEST_CASE("nodes that choose a matrix are sorted by it where the schedule says so, with the same bits", "[cuda]") {
  const auto sorts = [](const Schedule& schedule) {
    return !cuda::compile(tagged(64), schedule, FakeCuda().gpu).executable().partition.empty();
  };
  CHECK_FALSE(sorts(Schedule::standard()));
  CHECK(sorts(Schedule::standard().sort_by_matrix()));
  check_model(tagged(12), {shaped(Group::block, 1, 32, 2), shaped(Group::block, 1, 32, 2).sort_by_matrix(),
                           shaped(Group::cluster, 2, 32, 2).sort_by_matrix(),
                           shaped(Group::grid, 3, 64, 2, Where::streamed).sort_by_matrix(),
                           shaped(Group::block, 1, 32, 2, Where::registers).sort_by_matrix()});
}

TEST_CASE("products with the matrices of children are made at these on a GPU, too", "[cuda]") {
  check_model(tagged_children(20), {shaped(Group::block, 1, 32, 2).sort_by_matrix(),
                                    shaped(Group::block, 1, 32, 2, Where::streamed).sort_by_matrix(),
                                    shaped(Group::grid, 3, 32, 2).sort_by_matrix(),
                                    shaped(Group::cluster, 2, 32, 2).sort_by_matrix().tabulate_nothing()});
}
