// Weights in registers, and nodes with their unrolled children in one block, in the emulation of a GPU.
#include "cortex/explain.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/models/tree_rnn.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cuda/check.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using Where = GpuSchedule::Weights;

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

/// Holds `schedules` against the interpreter, and to the same bits as weights streamed.
template <class Program>
void check_equal(const Program& program, Shape shape, const std::vector<Schedule>& schedules) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  const std::vector<float> right = interpreted(program, weights, items);
  std::vector<float> first;
  unsigned seed = 0;
  for (const Schedule& schedule : schedules) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, ++seed};
    CAPTURE(program.name(), to_string(schedule));
    const std::vector<float> got = emulated(fake, program, schedule, weights, items);
    CHECK(fake.problem == "");
    CHECK(difference(got, right) <= 1);
    if (first.empty()) first = got;
    CHECK(got == first);
  }
}

std::vector<Schedule> every_group() {
  return {on_gpu(Group::block, 1, Where::streamed), on_gpu(Group::block, 1, Where::registers),
          on_gpu(Group::cluster, 2, Where::registers, false, 64), on_gpu(Group::grid, 3, Where::registers)};
}

std::string explained(const Schedule& schedule, int hidden = 256) {
  return explain(cuda::compile(models::tree_rnn<Item>(word, kids, sizes(64, hidden)).program, schedule, Gpu::of(90)));
}

}  // namespace

TEST_CASE("weights in registers give the bits of weights in memory, whole or in part", "[cuda]") {
  check_equal(models::tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged, every_group());
  check_equal(models::tree_lstm<Item>(word, kids, sizes(5, 32)).program, Shape::ragged,
              {on_gpu(Group::block, 1, Where::resident), on_gpu(Group::block, 1, Where::registers)});
}

TEST_CASE("threads that share a sum keep their parts of its weights in registers", "[cuda]") {
  check_equal(
      models::tree_gru<Item>(word, kids, sizes(5, 24)).program, Shape::ragged,
      {on_gpu(Group::block, 1, Where::streamed, false, 64, 4), on_gpu(Group::block, 1, Where::registers, false, 128, 4),
       on_gpu(Group::cluster, 2, Where::registers, false, 64, 4)});
}

TEST_CASE("a block without a column fills its registers from inside of the matrix", "[cuda]") {
  check_equal(models::tree_gru<Item>(word, kids, sizes(5, 9)).program, Shape::ragged,
              {on_gpu(Group::cluster, 2, Where::streamed, false, 64, 2),
               on_gpu(Group::cluster, 2, Where::registers, false, 64, 2)});
}

TEST_CASE("of matrices that are read at several places each has registers of its own", "[cuda]") {
  check_equal(models::mv_rnn<Item>(word, left, right, sizes(0, 17)).program, Shape::binary,
              {on_gpu(Group::cluster, 2, Where::streamed), on_gpu(Group::cluster, 2, Where::registers)});
}

TEST_CASE("a table with rows for columns stays in memory, for nobody knows how many rows it has", "[cuda]") {
  Dim V{"vocabulary"}, H{"hidden", 24};
  Model<Item> m("columns", cortex::tree);
  auto T = m.input<float>("T", V, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(T(word(n), i) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }) +
                sum(H, [&](auto j) { return T(min(i, 11), j) * s(n, j); }));
  });
  check_equal(m.recursion_op(h, body), Shape::ragged, every_group());
}

TEST_CASE("weights in registers may be stored in two bytes", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(5, 24)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 3, 12, 5);
  std::vector<float> both[2];
  for (const bool registers : {false, true}) {
    FakeCuda fake;
    const Where where = registers ? Where::registers : Where::streamed;
    both[registers] =
        emulated(fake, program, on_gpu(Group::cluster, 2, where).store_weights(DType::bf16), weights, items);
    CHECK(fake.problem == "");
  }
  CHECK(both[0] == both[1]);
}

TEST_CASE("a slice of weights that registers hold whole is not copied to shared memory", "[cuda]") {
  const auto program = models::tree_rnn<Item>(word, kids, sizes(64, 64)).program;
  const auto chip_bytes = [&](Where where) {
    const Schedule schedule = without_recent_rows(on_gpu(Group::cluster, 2, where));
    return cuda::compile(program, schedule, Gpu::of(90)).code().text.chip_bytes;
  };
  const std::int64_t structure = chip_bytes(Where::streamed);  // the linearizer's arrays
  CHECK(chip_bytes(Where::resident) == 64 * 32 * 4 + structure);
  CHECK(chip_bytes(Where::registers) == structure);
}

TEST_CASE("explain says what registers hold, and where the rest of the weights is", "[cuda]") {
  const char* const whole = "stay in its registers for a call: 64 of U\n";
  CHECK_THAT(explained(on_gpu(Group::cluster, 2, Where::registers), 64),
             Contains(whole) && Contains("as they are read: W\n") && !Contains("shared memory for the time"));
  CHECK_THAT(explained(on_gpu(Group::cluster, 8, Where::registers)),
             Contains("for a call: 72 of U; they hold no more, and the others are read as below\n") &&
                 Contains("32 KB of weights stay in each block's shared memory for the time of a call: U\n"));
  CHECK_THAT(explained(on_gpu(Group::block, 1, Where::registers, false, 256)),
             Contains("for a call: 72 of U; they") && Contains("as they are read: W, U\n"));
}

// ---- unrolled: a node and the children that are unrolled with it are one block's ----

namespace {

/// A chain of `levels` inner nodes, each with two leaves beside it, and smaller trees.
Items tall_trees(int levels) {
  Items items;
  const auto node = [&](std::vector<const Item*> below) {
    items.all.emplace_back();
    items.all.back().word = int(items.all.size()) % vocabulary;
    items.all.back().kids.assign(below.begin(), below.end());
    return &items.all.back();
  };
  const Item* top = node({});
  for (int level = 0; level < levels; ++level) {
    const Item* side = level % 3 ? node({node({}), node({})}) : node({});
    top = level ? node({top, side}) : node({top, node({})});
    if (level % 2) items.roots.push_back(top);
  }
  items.roots.push_back(top);
  return items;
}

/// How often the blocks of a grid meet in a call.
template <class Program>
std::uint64_t meetings(const Program& program, const Schedule& schedule, const Items& items) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  FakeCuda fake;
  fake.gpu.multiprocessors = 3;
  fake.order = {Interleaving::random, 5};
  const std::vector<float> got = emulated(fake, program, schedule, weights, items);
  CHECK(fake.problem == "");
  CHECK(difference(got, interpreted(program, weights, items)) <= 1);
  return fake.meetings;
}

}  // namespace

TEST_CASE("unrolled by two, the blocks of a grid meet once in two levels", "[cuda]") {
  const auto rnn = models::tree_rnn<Item>(word, kids, sizes(5, 24)).program;
  const auto lstm = models::tree_lstm<Item>(word, kids, sizes(5, 24)).program;
  const Schedule grid = on_gpu(Group::grid, 3);
  for (const int levels : {6, 7}) {
    const Items items = tall_trees(levels);
    CAPTURE(levels);
    CHECK(meetings(rnn, grid, items) == unsigned(1 + levels));  // before the first level, and behind each
    CHECK(meetings(rnn, grid.unroll(rnn, 2), items) == unsigned(1 + (levels + 1) / 2));
    CHECK(meetings(lstm, grid.unroll(lstm, 2), items) == unsigned(1 + (levels + 1) / 2));
    CHECK(meetings(rnn, grid.unroll(rnn, 4), items) == unsigned(1 + (levels + 3) / 4));
  }
}

TEST_CASE("a node and its unrolled children are one block's, between whose threads barriers stand", "[cuda]") {
  const auto program = models::tree_rnn<Item>(word, kids, sizes(5, 24)).program;
  const auto model = cuda::compile(program, on_gpu(Group::grid, 3).unroll(program, 2), Gpu::of(90));
  const std::string text = model.print("tiled"), group = text.substr(text.find("for g_idx"));
  CHECK_THAT(group, Contains("top = groups(g_idx,worker * group_sizes(g_idx) / num_workers + t_idx)"));
  const std::string below = group.substr(group.find("for k_inner"), group.find("[top,") - group.find("for k_inner"));
  CHECK_THAT(below, Contains("    barrier of threads\n") && !Contains("    barrier\n"));
  CHECK_THAT(explain(model), Contains("barriers a level of subtrees, in loop 1            1"));
}

TEST_CASE("taking away the barrier between a node and its unrolled children makes a race", "[cuda]") {
  const auto program = models::tree_rnn<Item>(word, kids, sizes(5, 24)).program;
  const Schedule schedule = on_gpu(Group::grid, 3, Where::streamed, false, 64).unroll(program, 2);
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = tall_trees(6);
  const std::string source = cuda::compile(program, schedule, Gpu::of(90)).source();
  const int barriers = occurrences(source, kernel, "sync_block();");
  CHECK(barriers == 7);
  for (int n = 3; n < barriers; ++n) {  // the first three stand before the levels, where blocks meet anyway
    CAPTURE(n);
    FakeCuda fake;
    fake.gpu.multiprocessors = 3;
    fake.order = {Interleaving::random, 17};
    fake.change = [&](const std::string& s) { return without(s, kernel, "sync_block();", "", n); };
    emulated(fake, program, schedule, weights, items);
    CHECK(fake.problem != "");
  }
}
