// How many workers a call takes: as many as it is worth.
#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "cortex/explain.hpp"
#include "runtime/fall_asleep.hpp"
#include "runtime/hand_made.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using runtime::TeamCost;

namespace {

std::atomic<int> most_workers;  // that have met in a kernel

/// `sum_kernel` that meets the others before each node.
void meeting_kernel(const codegen::KernelArgs* args) {
  int seen = most_workers.load();
  while (seen < args->num_workers && !most_workers.compare_exchange_weak(seen, args->num_workers)) {
  }
  const SumArgs all(args);
  for (std::int32_t n = all.sizes[0] - 1; n >= 0; --n) {
    args->barrier(args->barrier_context);
    for (std::int32_t i = all.begin; i < all.end; ++i) {
      const float sum = n >= all.sizes[1] ? 0 : all.h[all.l[n] * 16 + 7 - i] + all.h[all.r[n] * 16 + 7 - i];
      all.h[n * 16 + i] = n >= all.sizes[1] ? all.emb[all.id[n] * 8 + i] : sum;
    }
  }
}

std::atomic<bool> slow_next;  // whether the next kernel is to take eight milliseconds

/// `kernel`, which may be slow: a call that has taken so long is followed by one that comes within a millisecond, in
/// place of the 20 us that a machine whose CPUs others use may take between any two.
template <void (*kernel)(const codegen::KernelArgs*)>
void sometimes_slow(const codegen::KernelArgs* args) {
  if (slow_next.exchange(false)) std::this_thread::sleep_for(std::chrono::milliseconds(8));
  kernel(args);
}

/// The model "sum" for four workers, whose calls of fewer than eight nodes a group are worth one, and others all.
SumFunctor meeting(int groups, const std::shared_ptr<Workers>& pool) {
  runtime::Executable e = sum_executable();
  e.kernel = meeting_kernel;
  e.schedule = Schedule{}.workers(4).groups(groups).workers_where_they_pay();
  e.team_costs = {{1, 0, 1, 0}, {2, 7, 0.1, 0}, {4, 7, 0.01, 0}};
  return functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", std::vector<float>(64 * 8, 1.0f));
}

/// A tree of so many levels.
struct Tree {
  explicit Tree(int depth) {
    int id = 0;
    root = tree_of_depth(nodes, depth, id);
  }
  std::deque<Word> nodes;
  const Word* root;
};

/// A recursion with a product of `hidden` x `hidden` at each node.
auto recursion_of(int hidden) {
  Dim V{"vocabulary"}, H{"hidden", hidden};
  Model<Word> m("plain", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(Emb(word(n), i) + sum(H, [&](auto j) {
                  return U(i, j) *
                         (h(cortex::optional_child<&Word::left>(n), j) + h(cortex::optional_child<&Word::right>(n), j));
                }));
  });
  return m.recursion_op(h, body);
}

auto compiled(int hidden, const Schedule& schedule, int threads) {
  CompileOptions options = CompileOptions{}.on(Target::interpreter());
  if (threads) options = options.with_workers(std::make_shared<Workers>(threads));
  return compile(recursion_of(hidden), schedule, options);
}

}  // namespace

TEST_CASE("a team grows where that takes a tenth off, and never beyond those that are free", "[runtime][teams]") {
  const Vector<TeamCost> costs{{1, 0, 10, 0}, {2, 8, 5, 1}, {4, 8, 4.9, 0.9}, {8, 9, 1, 4}};
  CHECK(runtime::best_team({}, 5, 1, 1) == 5);
  CHECK(runtime::best_team(costs, 8, 1, 1) == 1);
  CHECK(runtime::best_team(costs, 8, 100, 200) == 2);  // by four a little sooner, by eight later
  CHECK(runtime::best_team(costs, 8, 100, 1) == 8);
  CHECK(runtime::best_team(costs, 7, 100, 1) == 2);
  CHECK(runtime::best_team(costs, 1, 100, 1) == 1);
}

TEST_CASE("a team of threads that sleep is worth it where waking them, too, takes less than it gains",
          "[runtime][teams]") {
  const Vector<TeamCost> costs{{1, 0, 10e-6, 0}, {2, 1e-6, 5e-6, 0}, {4, 2e-6, 2.5e-6, 0}};
  const auto best = [&](double nodes, int awake) { return runtime::best_team(costs, 4, nodes, 1, awake); };
  CHECK(best(4, 4) == 4);
  CHECK(best(4, 3) == 2);
  CHECK(best(4, 2) == 2);
  CHECK(best(4, 1) == 1);  // 40 us, or 20 and as many until they are awake
  CHECK(best(20, 1) == 4);
  CHECK(best(20, 2) == 2);  // 101 us, or 92
  CHECK(best(40, 2) == 4);
  CHECK(runtime::best_team({}, 4, 4, 1, 1) == 4);
}

TEST_CASE("calls that may have fewer workers have a share of the cores each while others are under way",
          "[runtime][teams]") {
  const int cores = runtime::usable_cores();
  const auto pool = std::make_shared<Workers>(3, Placement::anywhere, 4);
  {
    const Workers::Caller one(pool.get());
    CHECK(pool->limit(4) == 4);
    const Workers::Caller two(pool.get()), none(nullptr);
    CHECK(pool->limit(4) == std::clamp(cores / 2, 1, 4));
    const Workers::Caller three(pool.get());
    CHECK(pool->limit(4) == std::clamp(cores / 3, 1, 4));
    CHECK(pool->limit(1) == 1);
  }
  CHECK(pool->limit(4) == 4);
  CHECK(pool->limit(9) == 4);
  const int cpus = runtime::usable_cpus();
  CHECK(Workers(3).limit(cpus + 3) == cpus);  // threads without a CPU would only be waited for
  CHECK_THROWS_WITH(Workers(1, Placement::anywhere, -1), Catch::Contains("number of CPUs is -1"));

  // A call during another one, which is held up where it reads a node's word.
  struct Held {
    int id;
    const Held *left, *right;
    std::atomic<int>* state;  // 1: it is being read; 2: it may be
  };
  constexpr auto read = field<[](const Held& node) {
    if (node.state) *node.state = 1;
    while (node.state && *node.state != 2) std::this_thread::yield();
    return node.id;
  }>;
  using Of = std::remove_const_t<decltype(read)>;
  using HeldSet = structure::Accessors<structure::Child<&Held::left>, structure::Child<&Held::right>, Of>;
  const Functor<Held, HeldSet> held(
      std::make_shared<const runtime::Executable>(
          sum_executable<structure::Child<&Held::left>, structure::Child<&Held::right>, Of>()),
      CompileOptions{}.with_workers(pool));
  Functor<Held, HeldSet>(held).bind("Emb", std::vector<float>(64 * 8, 1.0f));
  const SumFunctor other = meeting(1, pool);
  const Tree tree(4);
  const auto workers_of_other = [&] {
    calm(*pool);
    most_workers = 0;
    other(tree.root);
    return most_workers.load();
  };
  CHECK(workers_of_other() == 4);
  std::atomic<int> state{0};
  const Held node{0, nullptr, nullptr, &state};
  std::thread first([&] { held(node); });
  while (state != 1) std::this_thread::yield();
  const int meanwhile = workers_of_other();
  state = 2;
  first.join();
  CHECK(meanwhile == runtime::best_team(other.executable().team_costs, std::clamp(cores / 2, 1, 4), 31, 5));
  CHECK(workers_of_other() == 4);
}

TEST_CASE("a call wakes threads if that pays, and if those after it find them awake", "[runtime][teams]") {
  const Tree small(2), large(5);
  runtime::Executable e = sum_executable();
  e.kernel = sometimes_slow<meeting_kernel>;
  e.schedule = Schedule{}.workers(2).workers_where_they_pay();
  e.team_costs = {{1, 0, 5e-6, 0}, {2, 1e-6, 2.5e-6, 0}};  // of 7 nodes 35 us, of 63 more than 300
  const auto pool = std::make_shared<Workers>(1);
  const auto one = functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", std::vector<float>(64 * 8, 1.0f));
  const auto other = functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", std::vector<float>(64 * 8, 1.0f));
  const auto workers_of = [&](const SumFunctor& m, const Tree& tree) {
    calm(*pool);
    most_workers = 0;
    m(tree.root);
    return most_workers.load();
  };
  int first_calls = 0, second_calls = 0, of_another_model = 0;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(fall_asleep(*pool));
    slow_next = true;
    int first = workers_of(one, small), second = workers_of(one, small);
    first_calls += first, second_calls += second == 2;
    REQUIRE(fall_asleep(*pool));
    slow_next = true;
    first = workers_of(one, small), second = workers_of(other, small);
    first_calls += first, of_another_model += second == 2;
    REQUIRE(fall_asleep(*pool));
    CHECK(workers_of(one, large) == 2);
  }
  CHECK(first_calls == 40);
  CHECK(second_calls >= 5);  // where others use the CPUs, a pause may come between two calls, too
  CHECK(of_another_model >= 5);
}

TEST_CASE("a call is divided among threads that sleep if that pays", "[runtime][teams]") {
  const Tree small(2), large(5), other_small(2), other_large(5);
  runtime::Executable e = sum_executable();
  e.kernel = sometimes_slow<sum_kernel>;
  e.schedule = Schedule{}.workers(2).workers_where_they_pay();
  e.group_rules = {{2, 1, 1}, {2, 2, 2}};
  e.team_costs = {{1, 0, 2e-6, 0}};
  e.node_seconds = 2e-6;  // of 14 nodes 28 us, of 126 more than 200, half of which two groups save
  const auto pool = std::make_shared<Workers>(1);
  const auto m = functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", std::vector<float>(64 * 8, 1.0f));
  const auto groups_of = [&](const Tree& a, const Tree& b) {
    calm(*pool);
    const auto result = m({a.root, b.root});
    const float of_a = float(a.nodes.size() + 1) / 2, of_b = float(b.nodes.size() + 1) / 2;
    if (result[0][0] != of_a || result[1][7] != of_b) throw std::runtime_error("wrong sums");
    return result.num_groups();
  };
  CHECK(groups_of(small, other_small) == 2);  // nothing is known of calls
  int first_calls = 0, second_calls = 0;
  for (int i = 0; i < 20; ++i) {
    REQUIRE(fall_asleep(*pool));
    slow_next = true;
    const int first = groups_of(small, other_small), second = groups_of(small, other_small);
    first_calls += first, second_calls += second == 2;
  }
  CHECK(first_calls == 20);
  CHECK(second_calls >= 5);
  for (int i = 0; i < 10; ++i) {
    REQUIRE(fall_asleep(*pool));
    CHECK(groups_of(large, other_large) == 2);  // though its last call was small
    groups_of(small, other_small);
  }
  e.schedule = Schedule{}.workers(2).groups(2).workers_where_they_pay();  // what a schedule says holds
  const auto always = functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", std::vector<float>(64 * 8, 1.0f));
  for (int i = 0; i < 5; ++i) {
    REQUIRE(fall_asleep(*pool));
    calm(*pool);
    CHECK(always({small.root, other_small.root}).num_groups() == 2);
  }
}

TEST_CASE("small calls have one worker and large ones all, with the same bits", "[runtime][teams]") {
  const Tree small(2), large(5);
  const auto pool = std::make_shared<Workers>(3, Placement::anywhere, 4);
  const SumFunctor m = meeting(1, pool);
  for (int call = 0; call < 20; ++call) {
    calm(*pool);
    most_workers = 0;
    CHECK(m(small.root)[0][3] == 4);
    CHECK(most_workers == 1);
    CHECK(m(large.root)[0][3] == 32);
    CHECK(most_workers == 4);
  }
}

TEST_CASE("each group of a call has its own team", "[runtime][teams]") {
  const Tree small(2), large(4), other(4);
  const auto pool = std::make_shared<Workers>(3, Placement::anywhere, 4);
  const SumFunctor m = meeting(2, pool);
  for (int call = 0; call < 200; ++call) {
    calm(*pool);
    most_workers = 0;
    const auto one_each = m({small.root, large.root->left->left});
    REQUIRE(one_each.num_groups() == 2);
    CHECK(most_workers == 1);
    calm(*pool);
    CHECK((one_each[0][0] == 4 && one_each[1][7] == 4));
    const auto two_each = m({large.root, other.root});
    CHECK(most_workers == 2);
    CHECK((two_each[0][0] == 16 && two_each[1][7] == 16));
    const auto mixed = m({large.root, small.root});
    CHECK((mixed[0][0] == 16 && mixed[1][7] == 4));
  }
}

TEST_CASE("some who have met go on to meet among themselves", "[runtime][teams]") {
  Workers pool(2);
  std::atomic<int> written{0};
  std::array<int, 3> seen{};
  pool.run(3, [&](int worker, int count, runtime::Barrier& barrier) {
    barrier.wait();
    if (count < 3 || worker == 2) return;  // the third has no part in it
    runtime::Barrier own = barrier.among(0, 2);
    if (worker == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      written = 1;
    }
    own.wait();
    seen[std::size_t(worker)] = written;
  });
  CHECK(seen == std::array<int, 3>{1, 1, 0});
}

TEST_CASE("without a schedule a model has the threads of its pool, where they pay", "[runtime][teams]") {
  const auto narrow = compiled(8, Schedule::standard(), 3), wide = compiled(512, Schedule::standard(), 3);
  for (const auto* model : {&narrow, &wide}) CHECK(model->executable().schedule.max_workers == 4);
  const auto team = [](const auto& model, double nodes, double levels) {
    return runtime::best_team(model.executable().team_costs, 4, nodes, levels);
  };
  CHECK(team(narrow, 63, 6) == 1);
  CHECK(team(wide, 63, 6) == 4);
  CHECK_THAT(explain(narrow), Contains("; of one root of 39 nodes 1"));
  CHECK_THAT(explain(narrow),
             Contains("predicted time of a call on a tree of 20 words, workers: 1\n") && !Contains("  barriers     "));
  CHECK_THAT(explain(wide),
             Contains("predicted time of a call on a tree of 20 words, workers: 4\n") && Contains("  barriers     "));
  CHECK_THAT(explain(wide),
             Contains("up to 4 threads share a call") && Contains("; of one root of 39 nodes 4, by the"));
  CHECK(compiled(512, Schedule::standard().workers(3).workers_where_they_pay(), 7).executable().team_costs.size() == 3);
}

TEST_CASE("where calls may take fewer, teams are of few sizes", "[runtime][teams]") {
  const Schedule asked = Schedule::standard().workers(6), free = asked.workers_where_they_pay();
  CHECK(asked.team_sizes() == Vector<int>{1, 2, 3, 4, 5, 6});
  CHECK(free.team_sizes() == Vector<int>{1, 2, 4, 6});
  CHECK(free.workers(4).workers_where_they_pay().team_sizes() == Vector<int>{1, 2, 4});
  CHECK(free.workers(1).workers_where_they_pay().team_sizes() == Vector<int>{1});
}

TEST_CASE("no code is made for slices that no team has", "[runtime][teams]") {
  const auto any = compiled(256, Schedule::standard().workers(4), 3), four = compiled(256, Schedule::standard(), 3);
  const auto vectors = [](const auto& model) {
    const std::string text = model.print("tiled");
    int count = 0;
    for (std::size_t at = 0; (at = text.find("vectorized for", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  CHECK(vectors(four) > 0);
  CHECK(3 * vectors(four) < 2 * vectors(any));
}

TEST_CASE("of three threads that are free where four share a call two take part", "[runtime][teams]") {
  runtime::Executable e = sum_executable();
  e.kernel = meeting_kernel;
  e.schedule = Schedule{}.workers(4).workers_where_they_pay();
  e.team_costs = {{1, 0, 1, 0}, {2, 0, 0.1, 0}, {4, 0, 0.01, 0}};
  const auto pool = std::make_shared<Workers>(3, Placement::anywhere, 4);
  const auto m = functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", std::vector<float>(64 * 8, 1.0f));
  const Tree tree(5);
  most_workers = 0;
  CHECK(m(tree.root)[0][3] == 32);
  CHECK(most_workers == 4);
  std::atomic<bool> held{false}, done{false};
  std::thread other([&] {
    pool->run(2, [&](int, int, runtime::Barrier&) {
      held = true;
      while (!done) std::this_thread::yield();
    });
  });
  while (!held) std::this_thread::yield();
  calm(*pool);
  most_workers = 0;
  CHECK(m(tree.root)[0][3] == 32);
  CHECK(most_workers == 2);
  done = true;
  other.join();
}

TEST_CASE("a number of workers that is asked for is kept, and without a pool there is one", "[runtime][teams]") {
  CHECK(compiled(8, Schedule::standard().workers(2), 3).executable().team_costs.empty());
  CHECK(compiled(8, Schedule{}, 3).executable().schedule.max_workers == 1);
  const auto alone = compiled(512, Schedule::standard(), 0);
  CHECK(alone.executable().schedule.max_workers == 1);
  CHECK(alone.executable().team_costs.empty());
  CHECK_THAT(explain(alone), Contains("one thread runs a call"));
}
