// A model whose kernel stays on the device: calls of several sizes by one launch in the emulation of a GPU, whose races
// with each other and with the host are found.
#include <deque>

#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using Where = GpuSchedule::Weights;

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

/// Calls of several sizes: larger than all before, and smaller.
std::deque<Items> several(Shape shape) {
  std::deque<Items> calls;
  for (unsigned turn = 0; turn < 4; ++turn)
    calls.push_back(forest(shape, turn == 2 ? 1 : 2 + int(turn), 6 + 2 * int(turn), 5 + turn));
  return calls;
}

/// Served by one launch, they are what the interpreter says, and each has the bits of a launch of its own.
template <class Program>
void check_served(const Program& program, Shape shape, const Schedule& schedule, Interleaving order) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  FakeCuda fake;
  fake.gpu.multiprocessors = 6;
  fake.order = order;
  runtime::CudaCompileOptions options;
  options.verify = true;
  auto model = cuda::compile(program, schedule, fake.gpu, options);
  bind_all<float>(model, weights);
  const auto on = model.to(cuda::Device(fake.device()));
  const auto resident = on.resident({.groups = 2});
  CAPTURE(program.name(), to_string(schedule), order.seed);
  const std::deque<Items> calls = several(shape);
  Items together;
  std::vector<std::vector<float>> got;
  std::vector<float> all;
  for (const Items& items : calls) {
    cuda::Result result = resident(items.roots);
    got.push_back(all_roots(result));
    CHECK(result.counters().launches == (got.size() == 1));
    together.roots.insert(together.roots.end(), items.roots.begin(), items.roots.end());
    all.insert(all.end(), got.back().begin(), got.back().end());
  }
  CHECK(difference(all, interpreted(program, weights, together)) <= 1);
  CHECK(resident.launches() == 1);
  resident.stop();
  CHECK(fake.stalls() == 0);
  for (std::size_t turn = 0; turn < got.size(); ++turn) {
    cuda::Result launched = on(calls[turn].roots);
    CHECK(got[turn] == all_roots(launched));
  }
  CHECK(fake.problem == "");
}

/// What is computed at each node when all states are there.
auto with_output() {
  Dim V{"vocabulary"}, H{"hidden", 24};
  Model<Item> m("with_output", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H);
  auto h_of = m.placeholder<float>("h", H);
  auto h = m.recursion(h_of, m.compute("sum", H, [&](auto n, auto i) {
    return tanh(Emb(word(n), i) + sum(kids(n), [&](auto k) { return h_of(k, i); }));
  }));
  auto logits =
      m.output<float>("logits", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * h(n, j); }); });
  return m.program(logits);
}

}  // namespace

TEST_CASE("one launch serves calls with the bits of launches of their own, blocks by themselves", "[cuda]") {
  const auto gru = models::tree_gru<Item>(word, kids, sizes(5, 24)).program;
  check_served(gru, Shape::ragged, on_gpu(Group::block, 1), {});
  check_served(gru, Shape::ragged, on_gpu(Group::block, 1, Where::registers, false, 64), {Interleaving::last_first});
}

TEST_CASE("one launch serves calls with the bits of launches of their own, clusters", "[cuda]") {
  const auto lstm = models::tree_lstm<Item>(word, kids, sizes(5, 32)).program;
  const Schedule schedule = on_gpu(Group::cluster, 2, Where::registers, false, 64, 4);
  check_served(lstm, Shape::ragged, schedule, {Interleaving::random, 1});
}

TEST_CASE("one launch serves calls with the bits of launches of their own, blocks of the grid", "[cuda]") {
  const auto gru = models::tree_gru<Item>(word, kids, sizes(5, 24)).program;
  for (const bool locks : {false, true})
    check_served(gru, Shape::ragged, on_gpu(Group::grid, 3, Where::automatic, locks), {Interleaving::random, 4});
}

TEST_CASE("rows that words decide are moved from tables by the kernel that stays", "[cuda]") {
  const auto gru = models::tree_gru<Item>(word, kids, sizes(5, 24)).program;
  check_served(gru, Shape::ragged, on_gpu(Group::cluster, 2).tabulate(1), {Interleaving::random, 6});
}

TEST_CASE("states that do not lie side by side are brought from a resident model by a copy", "[cuda]") {
  check_served(models::mv_rnn<Item>(word, left, right, sizes(0, 17)).program, Shape::binary,
               on_gpu(Group::cluster, 2, Where::registers), {Interleaving::random, 7});
}

TEST_CASE("a resident kernel brings weights to shared memory and registers before it takes the first call", "[cuda]") {
  const auto program = models::tree_lstm<Item>(word, kids, sizes(5, 32)).program;
  for (const Where where : {Where::resident, Where::registers}) {
    const Schedule schedule = without_recent_rows(on_gpu(Group::cluster, 2, where, false, 64));
    const std::string text = cuda::compile(program, schedule, Gpu::of(90)).code().text.resident;
    const std::string calls = text.substr(text.find("while (take_call("));
    CHECK(occurrences(text, "KERNEL", "store_chip(") + occurrences(text, "KERNEL", "float a") > 0);
    CHECK_THAT(calls, !Contains("store_chip("));
    CHECK_THAT(calls, Contains("load(b") && Contains(where == Where::resident ? "load_chip(" : "= a0["));
  }
}

// ---- what stands between the host, the blocks and their calls ----

namespace {

constexpr const char* resident_kernel = "KERNEL(cortex_resident, THREADS)";

using Change = std::function<std::string(std::string)>;

/// What the emulation says of calls of a model that stays, whose source `change` has changed.
template <class Program>
std::string problem_of(const Program& program, Shape shape, const Schedule& schedule, const Change& change) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const std::deque<Items> calls = several(shape);
  auto model = cuda::compile(program, schedule, Gpu::of(90));
  bind_all<float>(model, weights);
  for (const unsigned seed : {17u, 18u}) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, seed};
    fake.change = [&](const std::string& source) {
      return source.find(resident_kernel) == std::string::npos ? source : change(source);
    };
    try {
      const auto resident = model.to(cuda::Device(fake.device())).resident({.groups = 2, .patience_ms = 500});
      for (const Items& items : calls) resident(items.roots).roots();
    } catch (const Error& error) {
      return fake.problem.empty() ? error.message : fake.problem;
    }
    if (!fake.problem.empty()) return fake.problem;
  }
  return {};
}
std::string problem_of(const Schedule& schedule, const Change& change) {
  return problem_of(tree_rnn_program(), Shape::ragged, schedule, change);
}

}  // namespace

TEST_CASE("a kernel that stays needs each fence between the host and its blocks", "[cuda]") {
  const Schedule schedule = on_gpu(Group::cluster, 2);
  CHECK(problem_of(schedule, [](const std::string& source) { return source; }) == "");
  const auto relaxed = [&](const char* from, const char* what, const char* by, int which = 0) {
    CAPTURE(from, what);
    CHECK_THAT(problem_of(schedule, [&](const std::string& s) { return without(s, from, what, by, which); }),
               Contains("race") || Contains("nothing has written"));
  };
  // The first of them, of who gives a call up, looks for no more than the word itself.
  relaxed("bool receive", "load_acquire_system(", "load_relaxed_system(", 1);
  relaxed("bool receive", "load_acquire(launch.desk + finished)", "load_relaxed(launch.desk + finished)");
  relaxed("bool receive", "store_release_system(launch.answers + done", "store_relaxed_system(launch.answers + done");
  relaxed("bool receive", "store_release(launch.desk + order", "store_relaxed(launch.desk + order");
  relaxed("bool follow", "load_acquire(", "load_relaxed(");
  relaxed("void end_call", "add_acquire_release(", "add_relaxed(");
}

TEST_CASE("a kernel that stays needs each meeting between its calls", "[cuda]") {
  const auto gone = [](const char* from, const char* what) {
    return [=](const std::string& s) { return without(s, from, what, "", 0); };
  };
  const Schedule block = on_gpu(Group::block, 1, Where::automatic, false, 64), cluster = on_gpu(Group::cluster, 2);
  CHECK(problem_of(block, gone("void end_call", "sync_block();")) != "");
  // Where a letter has more pieces than the block threads: the first ones have met then.
  const Schedule small = on_gpu(Group::block, 1, Where::automatic, false, 32);
  CHECK(problem_of(small, gone("if (worker == 0) open_letter", "sync_block();")) != "");
  CHECK(problem_of(cluster, [](const std::string& s) {
          return without(s, "if (worker == 0) open_letter", "sync_cluster();", "sync_block();", 0);
        }) != "");
}

TEST_CASE("results go to the host behind a meeting, where the program does not end with one", "[cuda]") {
  const Schedule block = on_gpu(Group::block, 1, Where::automatic, false, 64, 4);
  const auto behind = [&](const auto& program) {
    const std::string text = cuda::compile(program, block, Gpu::of(90)).code().text.resident;
    return text.substr(text.find("if (rows_after(head"));
  };
  const auto logits = with_output();
  CHECK(occurrences(behind(tree_rnn_program()), "if", "sync_block();") == 0);
  CHECK(occurrences(behind(logits), "if", "sync_block();") == 1);
  const auto gone = [](const std::string& s) { return without(s, "if (rows_after(head", "sync_block();", "", 0); };
  CHECK(problem_of(logits, Shape::ragged, block, gone) != "");
}

TEST_CASE("what calls bring is read as constant by no kernel that stays", "[cuda]") {
  const auto as_constant = [](const std::string& s) {
    return without(s, "while (take_call", ")load(table", ")load_constant(table", 0);
  };
  CHECK_THAT(problem_of(on_gpu(Group::block, 1), as_constant), Contains("reads as constant what"));
}
