// The memory of calls: it grows, its zero rows are zero, results keep it, and warm calls allocate nothing.
#include <catch2/catch.hpp>
#include <cstdint>
#include <latch>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "cortex/base/config.hpp"
#include "runtime/count_allocations.hpp"
#include "runtime/hand_made.hpp"
#include "support/in_child.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// The model "sum" with a temporary for each way in which a tensor can have rows, which the kernel fills to the last
/// element, row num_nodes of the temporary over nodes excepted: it must be zero.
constexpr int temp_node = 6, temp_batch = 7, temp_fixed = 8;
bool zero_row_was_zero = true;

runtime::Executable greedy_executable() {
  runtime::Executable e = sum_executable();
  const Dim K{"k", 24};
  e.program.buffers.push_back(buffer("t_node", DType::f32, {dims::node, K}, ir::Role::temp));
  e.program.buffers.push_back(buffer("t_batch", DType::f64, {dims::batch, K}, ir::Role::temp));
  e.program.buffers.push_back(buffer("t_fixed", DType::f32, {K, K}, ir::Role::temp));
  e.kernel = [](const codegen::KernelArgs* args) {
    const auto* const sizes = static_cast<const std::int32_t*>(args->buffers[counts]);
    float* const node = static_cast<float*>(args->buffers[temp_node]);
    for (int i = 0; i < 24; ++i) zero_row_was_zero &= node[sizes[0] * 24 + i] == 0;
    for (int i = 0; i < 16; ++i)
      zero_row_was_zero &= static_cast<float*>(args->buffers[state_h])[sizes[0] * 16 + i] == 0;
    std::fill_n(node, sizes[0] * 24, 1e9f);
    std::fill_n(static_cast<double*>(args->buffers[temp_batch]), (sizes[0] - sizes[1]) * 24, 1e9);
    std::fill_n(static_cast<float*>(args->buffers[temp_fixed]), 24 * 24, 1e9f);
    sum_kernel(args);
  };
  return e;
}

/// The model "sum" with a temporary over edges, of which no machine holds 32 rows.
constexpr auto both = cortex::children<&Word::left, &Word::right>;
using Both = std::remove_const_t<decltype(both)>;
using VastFunctor = Functor<Word, structure::Accessors<Left, Right, Id, Both>, float>;

runtime::Executable vast_executable() {
  runtime::Executable e = sum_executable();
  e.graph.containers = {{"both", dsl::accessor_key<Both>()}};
  e.program.buffers.push_back(
      buffer("t_edge", DType::f32, {dims::edge, Dim{"k", std::int64_t(1) << 56}}, ir::Role::temp, 0));
  return e;
}

float sum_of_ids(int leaves) { return float(leaves) * float(leaves + 1) / 2; }

}  // namespace

TEST_CASE("a call whose rows workers could not share in 32 bits is refused", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.schedule = e.schedule.workers(1024);
  const std::int64_t most = runtime::most_visits(1024);
  CHECK(1024 * most <= INT32_MAX);
  CHECK(runtime::most_visits(1) == INT32_MAX - 64);
  const auto m = functor(std::move(e)).bind("Emb", embedding(1 << 10));
  const Word leaf{3, nullptr, nullptr};
  const std::vector<const Word*> roots(std::size_t(most + 1), &leaf);
  CHECK_THROWS_WITH(m(roots),
                    Catch::Matchers::Contains("the roots reach more than " + std::to_string(most) + " nodes"));
}

TEST_CASE("a workspace serves calls that grow and shrink, and row num_nodes is zero in each", "[runtime]") {
  const auto m = functor(greedy_executable()).bind("Emb", embedding(1 << 10));
  std::deque<Word> nodes;
  zero_row_was_zero = true;
  int wrong = 0;
  for (const int depth : {0, 3, 1, 10, 2, 9, 0, 7}) {
    int id = 0;
    const Word* const root = tree_of_depth(nodes, depth, id);
    wrong += m(root)[0][0] != sum_of_ids(1 << depth);
  }
  CHECK(wrong == 0);
  CHECK(zero_row_was_zero);
}

TEST_CASE("a warm call allocates nothing", "[runtime]") {
  runtime::Executable e = greedy_executable();
  const ir::Expr node = ir::Var::make("n");
  e.guarded.push_back(
      {node, {}, {}, ir::call(ir::UfKind::is_leaf, "is_leaf", {node}), {"Emb", Dim("vocabulary"), 0, 0}, "leaf"});
  e.guarded[0].index = ir::Select::make(e.guarded[0].index, ir::imm(1), ir::imm(0));
  const auto m = functor(e).bind("Emb", embedding(64));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const large = tree_of_depth(nodes, 6, id);
  const Word* const small = large->left->left;
  const std::vector<const Word*> roots{large, small, large};
  std::vector<float> out(24);
  const float* memory = nullptr;
  bool moved = false;
  for (int i = 0; i < 3; ++i) memory = m(roots)[0].data();
  const std::int64_t before = allocations_of_this_thread();
  for (int i = 0; i < 100; ++i) {
    moved |= m(roots).root(0, "h").data() - memory != 0;
    m(small);
    m({large, small});
    m(roots, out);
  }
  const std::int64_t after = allocations_of_this_thread();
  CHECK(after == before);
  CHECK_FALSE(moved);
}

TEST_CASE("a warm call shared by workers allocates nothing", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.schedule = Schedule{}.workers(2);
  CompileOptions options;
  options.workers = std::make_shared<Workers>(1);
  const auto m = functor(e, options).bind("Emb", embedding(64));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const root = tree_of_depth(nodes, 5, id);
  m(root);
  const std::int64_t before = allocations_of_this_thread();
  for (int i = 0; i < 100; ++i) m(root);
  const std::int64_t after = allocations_of_this_thread();
  CHECK(after == before);
}

TEST_CASE("results keep their values while others are made", "[runtime]") {
  const auto m = functor(sum_executable()).bind("Emb", embedding(64));
  std::deque<Word> nodes;
  int id = 0;
  const Word* const root = tree_of_depth(nodes, 5, id);
  std::vector<SumFunctor::Output> results;
  for (int i = 0; i < 50; ++i) results.push_back(m(nodes[std::size_t(i)]));
  int wrong = 0;
  for (int i = 0; i < 50; ++i) wrong += results[std::size_t(i)][0][0] != m(nodes[std::size_t(i)])[0][0];
  CHECK(wrong == 0);
  results.clear();
  CHECK(m(root)[0][0] == sum_of_ids(32));
}

TEST_CASE("a functor that was moved from works on", "[runtime]") {
  SumFunctor first = functor(sum_executable());
  const SumFunctor second = std::move(first);
  first.bind("Emb", embedding(4));
  const Word leaf{2};
  CHECK(first(leaf)[0][0] == 3);
  CHECK(second(leaf)[0][0] == 3);
}

TEST_CASE("a result can be moved, and outlives the functor and the nodes", "[runtime]") {
  SumFunctor::Output kept;
  {
    auto m = std::make_unique<SumFunctor>(functor(sum_executable()).bind("Emb", embedding(4)));
    const SumFunctor copy = *m;
    const Word leaf{2};
    auto first = (*m)(leaf);
    auto second = copy(leaf);
    m.reset();
    kept = std::move(first);
    second = copy(leaf);
  }
  CHECK(kept[0][0] == 3);
  CHECK(kept.num_nodes() == 1);
  SumFunctor::Output other = std::move(kept);
  CHECK(other[0][7] == 3 + 7);
  CHECK(kept.empty());
}

TEST_CASE("replaced weights are freed when the calls that use them are over", "[runtime]") {
  runtime::Executable e = sum_executable();
  auto model = runtime::CompiledModel::make(std::make_shared<const runtime::Executable>(e),
                                            runtime::accessor_order<WordSet>(e.graph), nullptr, false);
  const std::vector<float> values = embedding(4);
  const auto bind = [&] { model->bind("Emb", DType::f32, values.data(), values.size(), {}); };
  const auto call = [&] {
    const Word leaf{1};
    const Word* const roots[] = {&leaf};
    const auto number = [&](runtime::Workspace& w, auto...) {
      structure::Linearizer<Word, WordSet>::run(w.nodes, cortex::tree, w.checks(), roots);
    };
    return model->call({number, number, number});
  };
  std::weak_ptr<const runtime::Block> first;
  bind();
  std::optional<runtime::Lease> in_use(call());
  call();  // a second workspace, which then rests
  first = (*in_use)->weights().blocks[weight_emb];
  bind();
  CHECK_FALSE(first.expired());
  in_use.reset();
  CHECK(first.expired());
}

TEST_CASE("a call for which there is no memory says so, and leaves the memory of later ones as it was", "[runtime]") {
  VastFunctor m(std::make_shared<const runtime::Executable>(vast_executable()));
  m.bind("Emb", embedding(4));
  const Word leaf{2}, other{0}, top{-1, &leaf, &other};
  CHECK(m(leaf)[0][0] == 3);  // without edges
  for (int i = 0; i < 2; ++i) {
    const auto answer = m.try_call(top);
    REQUIRE_FALSE(answer);
    CHECK(answer.error().code == Code::out_of_memory);
    CHECK_THAT(answer.error().message, Catch::Matchers::Contains("no memory for 9.071e+12 MB more") &&
                                           Catch::Matchers::Contains("fewer roots"));
    CHECK(m(leaf)[0][0] == 3);
  }
}

TEST_CASE("a call for which there is no memory keeps none", "[runtime]") {
  VastFunctor m(std::make_shared<const runtime::Executable>(vast_executable()));
  m.bind("Emb", embedding(1 << 10));
  const Word leaf{2};
  const auto held = [&] { return m(leaf).memory().held; };
  const std::size_t before = held();
  std::deque<Word> nodes;
  int id = 0;
  const Word* const large = tree_of_depth(nodes, 9, id);
  CHECK_FALSE(m.try_call(large));  // its nodes are numbered by then
  CHECK(held() == before);
}

TEST_CASE("as much memory is kept as calls were in flight at the same time, whichever threads they were of",
          "[runtime]") {
  const auto m = functor(sum_executable()).bind("Emb", embedding(4));
  const Word leaf{2};
  std::mutex one_at_a_time;
  std::set<const float*> places;
  std::latch all_have_called(40);
  std::vector<std::thread> threads;
  for (int t = 0; t < 40; ++t)
    threads.emplace_back([&] {
      {
        const std::lock_guard lock(one_at_a_time);
        places.insert(m(leaf)[0].data());
      }
      all_have_called.arrive_and_wait();  // a thread that is gone may have left its place to the next
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(places.size() == 1);
  const auto first = m(leaf), second = m(leaf);
  CHECK(first[0].data() != second[0].data());
}

TEST_CASE("what goes with a pool may call the model that lets go of it", "[runtime]") {
  auto m = functor(sum_executable()).bind("Emb", embedding(4));
  const Word leaf{2};
  const int ended = in_child([&] {
    int calls = 0;
    const auto call = [&] { calls += m(leaf)[0][0] == 3; };
    std::shared_ptr<Workers> pool(new Workers(1), [&](Workers* workers) { call(), delete workers; });
    m.use(std::move(pool));
    call();  // the one workspace there is has the pool, and has no place while it lets go of it
    calls = 0;
    m.use(nullptr);
    return calls;
  });
  CHECK(ended == 1);
}

TEST_CASE("a block that no memory holds is refused", "[runtime]") {
  CHECK_THAT(error_of(Code::out_of_memory, [] { runtime::Block(SIZE_MAX); }), Catch::Matchers::Contains("no memory"));
#if !CORTEX_ADDRESS_SANITIZER  // which ends the process that asks for so much
  CHECK_THAT(error_of(Code::out_of_memory, [] { runtime::Block(std::size_t(1) << 60); }),
             Catch::Matchers::Contains("no memory for 1.1e+12 MB more"));
#endif
}
