// Recent rows on chip, in the emulation of a GPU: where nodes read them too late, too early, or in vain.
#include "cortex/explain.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cuda/check.hpp"
#include "support/golden.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

Schedule with_rows(Group group, int blocks, int rows) {
  GpuSchedule how = on_gpu(group, blocks).gpu;
  how.recent_rows = rows;
  return Schedule::standard().tabulate_nothing().on_gpu(how);
}

/// What a node has of its word alone: W x.
template <class Model, class Word>
auto product_of_word(Model& m, Word x, const models::CellShape& s) {
  auto W = m.template input<float>("W", s.hidden, s.input);
  return [=](auto n, auto i) { return sum(s.input, [&](auto j) { return W(i, j) * x(n, j); }); };
}

/// Few rows and many, in clusters and in blocks, in every order.
template <class Program>
void check_rows(const Program& program, Shape shape) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 25, 5);
  const std::vector<float> right = interpreted(program, weights, items);
  for (const Group group : {Group::block, Group::cluster})
    for (const int rows : {0, 1, 2, 8, 64})
      for (const auto order : {Interleaving::first_first, Interleaving::last_first, Interleaving::random}) {
        FakeCuda fake;
        fake.gpu.multiprocessors = 4;
        fake.order = {order, unsigned(rows)};
        CAPTURE(int(group), rows, int(order));
        const std::vector<float> got =
            emulated(fake, program, with_rows(group, group == Group::block ? 1 : 2, rows), weights, items);
        CHECK(fake.problem == "");
        CHECK(difference(got, right) <= 1);
      }
}

}  // namespace

TEST_CASE("a second recursion does not look for the first one's nodes among the recent rows", "[cuda]") {
  const auto cell = [](auto& m, auto x, const models::CellShape& s) {
    const Dim H = s.hidden;
    auto U = m.template input<float>("U", H, H), V = m.template input<float>("V", H, H);
    const auto own = product_of_word(m, x, s);
    auto below = m.template placeholder<float>("below", H);
    auto h = m.recursion(below, m.compute("h", H, [&](auto n, auto i) {
      return tanh(own(n, i) +
                  sum(H, [&](auto j) { return U(i, j) * sum(kids(n), [&](auto k) { return below(k, j); }); }));
    }));
    auto under = m.template placeholder<float>("under", H);
    return m.recursion(under, m.compute("g", H, [&](auto n, auto i) {
      return tanh(h(n, i) + sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return V(i, j) * h(k, j); }); }) +
                  sum(kids(n), [&](auto k) { return under(k, i); }));
    }));
  };
  check_rows(own_model(cortex::tree, cell)(12, 24), Shape::ragged);
}

TEST_CASE("a row that a level still reads when the next one begins is not written again", "[cuda]") {
  const auto cell = [](auto& m, auto x, const models::CellShape& s) {
    const Dim H = s.hidden;
    auto U = m.template input<float>("U", H, H), V = m.template input<float>("V", H, H);
    const auto own = product_of_word(m, x, s);
    auto h_below = m.template placeholder<float>("h", H), g_below = m.template placeholder<float>("g", H);
    auto h = m.compute("h_next", H, [&](auto n, auto i) {
      return tanh(own(n, i) +
                  sum(H, [&](auto j) { return U(i, j) * sum(kids(n), [&](auto k) { return h_below(k, j); }); }));
    });
    auto g = m.compute("g_next", H, [&](auto n, auto i) {  // of h at the node itself, behind the level's barrier
      return tanh(sum(H, [&](auto j) { return V(i, j) * h(n, j); }) +
                  sum(kids(n), [&](auto k) { return g_below(k, i); }));
    });
    auto [first, second] = m.recursion(h_below, h, g_below, g);
    return second;
  };
  check_rows(own_model(cortex::tree, cell)(12, 24), Shape::ragged);
}

TEST_CASE("rows that one sum reads are each read at its own places", "[cuda]") {
  Model<Item> m("product", cortex::tree);
  const Dim V("vocabulary", vocabulary), H("hidden", 16);
  auto Emb = m.input<float>("Emb", V, H, H);
  auto below = m.placeholder<float>("below", H, H);
  auto at_leaf = m.compute("at_leaf", H, H, [&](auto n, auto i, auto j) { return Emb(word(n), i, j); });
  auto inner = m.compute("inner", H, H, [&](auto n, auto i, auto j) {  // along a row, and along a column
    return tanh(sum(H, [&](auto k) { return below(left(n), i, k) * below(right(n), k, j); }));
  });
  const auto leaf = [](auto n) { return is_leaf(n); };
  check_rows(m.program(m.recursion(below, m.if_then_else("body", leaf, at_leaf, inner))), Shape::binary);
}

TEST_CASE("tensor cores read each pair of a row at its own place", "[cuda]") {
  const auto cell = [](auto& m, auto x, const models::CellShape& s) {
    const Dim H = s.hidden;
    auto U = m.template input<float>("U", H, H), V = m.template input<float>("V", H, H);
    const auto own = product_of_word(m, x, s);
    auto below = m.template placeholder<float>("below", H);
    auto t = m.compute("t", H, [&](auto n, auto i) {  // of which there are two in turn, as levels do not meet twice
      return tanh(own(n, i) + sum(kids(n), [&](auto k) { return below(k, i); }));
    });
    const auto product = [&](auto& M, auto n, auto i) { return sum(H, [&](auto j) { return M(i, j) * t(n, j); }); };
    auto u = m.compute("u", H, [&](auto n, auto i) { return tanh(product(U, n, i)); });
    return m.recursion(below, m.compute("next", H, [&](auto n, auto i) { return tanh(product(V, n, i) + u(n, i)); }));
  };
  const auto program = own_model(cortex::tree, cell)(12, 32);
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 4, 15, 5);
  for (const auto cores : {GpuSchedule::TensorCores::bf16, GpuSchedule::TensorCores::tf32}) {
    std::vector<float> far;
    for (const int rows : {0, 8, -1}) {
      GpuSchedule how = with_rows(Group::cluster, 2, rows).gpu;
      how.tensor_cores = cores;
      FakeCuda fake;
      fake.gpu.multiprocessors = 4;
      const std::vector<float> got =
          emulated(fake, program, Schedule::standard().tabulate_nothing().on_gpu(how), weights, items);
      if (rows == 0) far = got;
      CAPTURE(int(cores), rows);
      CHECK(fake.problem == "");
      CHECK(got == far);
    }
  }
}

TEST_CASE("explain tells the recent rows", "[cuda]") {
  const auto program =
      models::tree_lstm<Item>(word, kids, {.vocabulary = vocabulary, .input = 5, .hidden = 256}).program;
  GpuSchedule how;
  how.group = Group::cluster, how.blocks = 8, how.recent_rows = 32;
  CHECK_THAT(explain(cuda::compile(program, Schedule::standard().tabulate_nothing().on_gpu(how), Gpu::of(90))),
             Catch::Contains(
                 "32 of h, s stay in each block's shared memory, 66 KB, where the others of its cluster write what "
                 "is theirs; older ones are read from the L2 cache"));
}

TEST_CASE("CUDA text of a TreeRNN in a cluster is the golden one", "[cuda_text]") {
  const auto program = models::tree_rnn<Item>(word, kids, {.vocabulary = vocabulary, .input = 5, .hidden = 16}).program;
  GpuSchedule how = with_rows(Group::cluster, 2, 8).gpu;
  how.rows = 1;
  const auto model = cuda::compile(program, Schedule::standard().tabulate_nothing().on_gpu(how), Gpu::of(90));
  check_golden("cuda_text/recent_rows_of_tree_rnn.cu", model.code().text.settings + model.code().text.kernel);
}
