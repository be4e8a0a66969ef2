// Threads of a pool that number the nodes of a GPU's call beside the caller.
#include <pthread.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "cortex/base/clock.hpp"
#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// What is seen of the numbering, by the accessor of children.
struct Watch {
  pthread_t caller = pthread_self();
  std::int64_t pause_ns = 20000;   // at each node
  std::atomic<bool> waits{false};  // the caller, at its first node, for another thread
  std::atomic<int> nodes_of_others{0};
};
std::atomic<Watch*> watch{nullptr};

const auto& watched_kids(const Item& item) {
  if (Watch* const w = watch) {
    const bool is_caller = pthread_equal(pthread_self(), w->caller);
    if (!is_caller) ++w->nodes_of_others;
    const std::int64_t start = now_ns(), patience = 5'000'000'000;
    while (now_ns() - start < w->pause_ns) continue;
    while (is_caller && w->waits && !w->nodes_of_others && now_ns() - start < patience) continue;
    if (is_caller) w->waits = false;
  }
  return item.kids;
}

auto watched_program() {
  constexpr auto seen = children<[](const Item& item) -> const decltype(Item::kids)& { return watched_kids(item); }>;
  return models::tree_rnn<Item>(word, seen, {.input = 5, .hidden = 16}).program;
}

/// A TreeRNN in four groups of one block.
struct Watched {
  decltype(watched_program()) program = watched_program();
  NamedNumbers weights = random_weights(program.graph(), 3);
  Items items = forest(Shape::ragged, 12, 12, 5);
  std::vector<float> right = interpreted(program, weights, items);
  FakeCuda fake;
  decltype(cuda::compile(program, Gpu{})) model;

  Watched() : model((fake.gpu.multiprocessors = 4, cuda::compile(program, on_gpu(Group::block, 1), fake.gpu))) {
    bind_all<float>(model, weights);
  }
  auto on() { return model.to(cuda::Device(fake.device())); }
};

}  // namespace

TEST_CASE("more threads number groups where that takes a tenth off, waking them included", "[cuda]") {
  CHECK(runtime::numbering_team(1, 8, 8, 1e-3) == 1);  // one group is one thread's
  CHECK(runtime::numbering_team(16, 1, 1, 1e-3) == 1);
  CHECK(runtime::numbering_team(16, 8, 8, 1e-3) == 8);
  CHECK(runtime::numbering_team(4, 8, 8, 1e-3) == 4);
  CHECK(runtime::numbering_team(4, 3, 3, 1e-3) == 2);  // of three threads one has two groups, too
  CHECK(runtime::numbering_team(16, 8, 8, 2e-6) == 1);
  CHECK(runtime::numbering_team(16, 8, 1, 40e-6) == 1);  // asleep
  CHECK(runtime::numbering_team(16, 8, 8, 40e-6) == 8);
  CHECK(runtime::numbering_team(16, 8, 2, 40e-6) == 2);
  CHECK(runtime::numbering_team(16, 8, 1, 200e-6) == 8);
  CHECK(runtime::numbering_team(16, 8, 8, 0) == 1);  // not known yet
}

TEST_CASE("threads of a pool number the groups of a GPU's call", "[cuda]") {
  Watched w;
  w.model.use(std::make_shared<Workers>(1));
  const auto on = w.on();
  Watch seen;
  watch = &seen;
  const auto alone = on(w.items.roots).roots();
  CHECK(seen.nodes_of_others == 0);  // what it takes is not known yet
  seen.waits = true;
  const auto shared = on(w.items.roots).roots();
  watch = nullptr;
  CHECK(seen.nodes_of_others > 0);
  CHECK(difference(alone, w.right) <= 1);
  CHECK(shared == alone);
}

TEST_CASE("what threads of a pool find wrong is named as by the caller alone", "[cuda]") {
  Watched w;
  const auto on = w.on();
  const auto message = [&] { return error_of_call([&] { on(w.items.roots); }); };
  Item& wrong = w.items.all[w.items.all.size() / 2];
  wrong.word = vocabulary + 7;
  const std::string alone = message();
  CHECK_THAT(alone, Contains(std::to_string(vocabulary + 7)));
  w.model.use(std::make_shared<Workers>(1));
  Watch seen;
  watch = &seen;
  CHECK(message() == alone);
  CHECK(message() == alone);
  wrong.word = 0;
  on(w.items.roots);
  wrong.word = vocabulary + 7;
  seen.waits = true;
  CHECK(message() == alone);
  watch = nullptr;
  CHECK(seen.nodes_of_others > 0);
}

TEST_CASE("a pool may be taken from a model between calls", "[cuda]") {
  Watched w;
  auto pool = std::make_shared<Workers>(1);
  const std::weak_ptr<Workers> there = pool;
  w.model.use(std::move(pool));
  const auto on = w.on();
  const auto before = on(w.items.roots).roots();
  w.model.use(nullptr);
  CHECK(there.expired());
  CHECK(on(w.items.roots).roots() == before);
}
