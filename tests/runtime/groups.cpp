// Calls whose roots are divided among groups of workers: the same results, errors and promises as in one group.
#include "cortex/runtime/groups.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include "cortex/explain.hpp"
#include "runtime/count_allocations.hpp"
#include "runtime/hand_made.hpp"
#include "support/compile.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

/// The model "sum" for so many workers and groups, on a pool of `threads` more threads.
SumFunctor divided(int workers, int groups, int threads, runtime::Executable e = sum_executable(),
                   int vocabulary = 64) {
  e.schedule = Schedule{}.workers(workers).groups(groups);
  return functor(e, CompileOptions{}.with_workers(std::make_shared<Workers>(threads)))
      .bind("Emb", embedding(vocabulary));
}

/// Trees apart from each other, whose first elements are the sums of 1 .. 2^depth, of the next 2^depth, ...
struct Trees {
  explicit Trees(int count, int depth = 2) {
    int id = 0;
    for (int t = 0; t < count; ++t) roots.push_back(tree_of_depth(nodes, depth, id));
  }
  std::deque<Word> nodes;
  std::vector<const Word*> roots;
};

/// What a call says of bad input, which is the same in one group as in several.
std::string refusal(const std::vector<const Word*>& roots) {
  const auto message = [&](int groups) {
    const SumFunctor m = divided(3, groups, 2);
    std::string what;
    for (int call = 0; call < 3; ++call) {  // a call that has failed leaves nothing behind
      try {
        m(roots);
      } catch (const Error& error) {
        what = error.message;
      }
      const Trees good(4);
      CHECK(m(good.roots)[3][0] == 13 + 14 + 15 + 16);
    }
    return what;
  };
  const std::string several = message(3);
  CHECK(several == message(1));
  return several;
}

/// Calls of random models from seed `first` on have the bits of calls by one thread, until `wanted` were divided.
void check_divided_calls(std::uint64_t first, int wanted, int workers, int groups, const Target& target,
                         Grammar grammar = Grammar::one_recursion) {
  const auto pool = std::make_shared<Workers>(workers - 1);
  int divided = 0;
  for (std::uint64_t seed = first; divided < wanted && seed < first + 40; ++seed) {
    const RandomModel model(seed, grammar);
    RandomFunctor functor = compile_model(model, Schedule::standard().workers(workers).groups(groups), target);
    for (int f = 0; f < 4; ++f) {
      Random random(seed * 100 + std::uint64_t(f));
      const Forest forest = random_forests(random, model.graph, {12, 12, 12, 12});
      INFO("seed " << seed << ", " << workers << " workers, " << groups << " groups\n" << describe(forest));
      const auto alone = functor.use(nullptr)(forest.roots), shared = functor.use(pool)(forest.roots);
      CHECK(same_bits(model, alone, shared, forest));
      divided += shared.num_groups() > 1;
    }
  }
  CHECK(divided >= wanted);
}

}  // namespace

TEST_CASE("each root has one place, and groups have as many roots as each other, or one more", "[runtime][groups]") {
  for (std::size_t roots = 1; roots < 40; ++roots)
    for (std::size_t groups = 1; groups <= roots; ++groups) {
      std::size_t all = 0;
      for (std::size_t g = 0; g < groups; ++g) {
        const std::size_t own = runtime::num_roots_of(g, groups, roots);
        REQUIRE((own == roots / groups || own == roots / groups + 1));
        all += own;
        for (std::size_t r = 0; r < own; ++r) {
          const std::size_t root = runtime::root_at({g, r}, groups);
          REQUIRE(root < roots);
          REQUIRE(runtime::place_of_root(root, groups) == runtime::RootPlace{g, r});
        }
      }
      REQUIRE(all == roots);
    }
}

TEST_CASE("groups of roots sorted by size have about as much to do", "[runtime][groups]") {
  for (const std::size_t groups : {2, 4, 8})
    for (std::size_t roots = 2 * groups; roots < 100; roots += 2 * groups)
      for (std::size_t g = 0; g < groups; ++g) {
        std::size_t sum = 0;
        for (std::size_t r = 0; r < runtime::num_roots_of(g, groups, roots); ++r)
          sum += runtime::root_at({g, r}, groups);
        CHECK(sum * groups == roots * (roots - 1) / 2);
      }
}

TEST_CASE("groups are of one size, and no more than roots, workers or what was asked for", "[runtime][groups]") {
  CHECK(runtime::most_groups(4, 4, 10) == 4);
  CHECK(runtime::most_groups(4, 4, 3) == 2);
  CHECK(runtime::most_groups(3, 8, 10) == 2);
  CHECK(runtime::most_groups(8, 3, 10) == 3);
  CHECK(runtime::most_groups(2, 3, 10) == 1);
  CHECK(runtime::most_groups(4, 4, 0) == 1);
  // Of many workers a few are left out.
  CHECK(runtime::most_groups(4, 13, 20) == 4);
  CHECK(runtime::most_groups(4, 11, 20) == 2);
  CHECK(runtime::most_groups(6, 7, 20) == 1);
  const Vector<runtime::GroupRule> rules{{2, 1, 1}, {2, 6, 2}, {4, 1, 1}, {4, 3, 2}, {4, 20, 4}};
  CHECK(runtime::groups_of(rules, 0, 2, 5) == 1);
  CHECK(runtime::groups_of(rules, 0, 2, 6) == 2);
  CHECK(runtime::groups_of(rules, 0, 4, 2) == 1);
  CHECK(runtime::groups_of(rules, 0, 4, 19) == 2);
  CHECK(runtime::groups_of(rules, 0, 6, 20) == 3);
  CHECK(runtime::groups_of(rules, 1, 4, 20) == 1);
  CHECK(runtime::groups_of({}, 0, 4, 20) == 1);
}

TEST_CASE("a divided call has every root's and every node's result", "[runtime][groups]") {
  const Trees trees(7);
  std::vector<float> dense(7 * 8);
  for (const auto& [workers, groups, made] :
       {std::array{1, 4, 1}, {2, 2, 2}, {3, 3, 3}, {4, 2, 2}, {4, 4, 4}, {4, 3, 2}, {6, 3, 3}, {8, 8, 7}, {9, 4, 4}}) {
    INFO(workers << " workers, " << groups << " groups");
    const SumFunctor m = divided(workers, groups, workers - 1);
    for (int call = 0; call < 3; ++call) {
      const auto r = m(trees.roots);
      REQUIRE(r.num_groups() == made);
      REQUIRE(r.size() == 7);
      REQUIRE(r.num_nodes() == 7 * 7);
      REQUIRE(r.num_computed() == 7 * 7);
      for (std::size_t i = 0; i < 7; ++i) {
        REQUIRE(r[i][0] == float(16 * i + 10));
        REQUIRE(r[i][7] == float(16 * i + 10 + 28));
        REQUIRE(r.node(trees.roots[i]).data() == r[i].data());
        REQUIRE(r.node(trees.roots[i]->left, "h")[0] == float(8 * i + 3));
        r.copy_node(trees.roots[i]->right, "h", dense);
        REQUIRE(dense[0] == float(8 * i + 7));
      }
      const Word stranger;
      CHECK_THAT(error_of(Code::invalid_argument, [&] { r.node(&stranger); }), Contains("not in the call"));
      CHECK_THAT(error_of(Code::invalid_argument, [&] { r[7]; }), Contains("had 7 roots"));
      REQUIRE(m(trees.roots, dense) == 7);
      REQUIRE(dense[6 * 8] == 16 * 6 + 10);
    }
  }
}

TEST_CASE("a call has no more groups than roots, and one root has one", "[runtime][groups]") {
  const SumFunctor m = divided(4, 4, 3);
  const Trees trees(3);
  CHECK(m(trees.roots).num_groups() == 2);
  CHECK(m(trees.roots[0]).num_groups() == 1);
  CHECK(m(std::vector<const Word*>{}).size() == 0);
  CHECK(m({trees.roots[1], trees.roots[2]})[1][0] == 9 + 10 + 11 + 12);
}

TEST_CASE("bad input in one group's tree is named as in a call of one group", "[runtime][groups]") {
  Trees trees(7);
  auto& fifth = const_cast<Word&>(*trees.roots[5]);
  const Word kept = fifth;
  fifth.left = nullptr;
  CHECK_THAT(refusal(trees.roots), Contains("(reached from root 5) has no 'left'"));
  fifth.left = &fifth;
  CHECK_THAT(refusal(trees.roots), Contains("a cycle") && Contains("root 5"));
  fifth = kept;
  const_cast<Word*>(fifth.left->left)->id = 64;
  CHECK_THAT(refusal(trees.roots), Contains("root 5") && Contains("'Emb', which has 64 rows"));
  const_cast<Word*>(fifth.left->left)->id = 1;
  trees.roots[6] = nullptr;
  CHECK_THAT(refusal(trees.roots), Contains("root 6 is null"));
}

TEST_CASE("a node of two groups' trees is refused where a tree's node has one parent", "[runtime][groups]") {
  Trees trees(6);
  const_cast<Word*>(trees.roots[5])->right = trees.roots[0]->right;
  CHECK_THAT(refusal(trees.roots), Contains("a shared child") && Contains("copy the node"));
}

TEST_CASE("a root inside another group's tree, or given twice, has its result", "[runtime][groups]") {
  const Trees trees(5);
  std::vector<const Word*> roots = trees.roots;
  roots.push_back(trees.roots[0]->right);
  roots.push_back(trees.roots[1]);
  const SumFunctor m = divided(2, 2, 1);
  for (int call = 0; call < 40; ++call) {
    const auto r = m(roots);
    REQUIRE(r.num_nodes() == 5 * 7);
    REQUIRE(r[5][0] == 7);
    REQUIRE(r[6].data() == r[1].data());
    REQUIRE(r.node(roots[5]).data() == r[5].data());
  }
  CHECK(m(trees.roots).num_groups() + m(trees.roots).num_groups() >= 2);  // whatever it has learnt of other calls
}

TEST_CASE("groups of a DAG may share some nodes, and count them once", "[runtime][groups]") {
  runtime::Executable e = sum_executable();
  e.graph.structure = ra::StructureKind::dag;
  const SumFunctor m = divided(2, 2, 1, e);
  Trees trees(4);
  auto* const last = const_cast<Word*>(trees.roots[3]->left);
  last->left = trees.roots[1]->left->left;
  const auto few = m(trees.roots);
  CHECK(few.num_groups() == 2);
  CHECK(few.num_nodes() == 4 * 7 - 1);
  CHECK(few.num_computed() == 4 * 7);
  CHECK(few[3][0] == 13 + 14 + 15 + 16 - 8);
  CHECK(few.node(last->left)[0] == 5);
  last->left = trees.roots[1];
  const auto many = m(trees.roots);
  CHECK(many.num_groups() == 1);
  CHECK(many.num_nodes() == 4 * 7 - 1);
  CHECK(many[3][0] == 26 + 14 + 15 + 16);
}

TEST_CASE("links that are indices are divided as pointers are", "[runtime][groups]") {
  struct Item {
    int id, left = -1, right = -1;
  };
  using Left = structure::Child<&Item::left>;
  using Right = structure::Child<&Item::right>;
  using Id = structure::Field<&Item::id>;
  runtime::Executable e = sum_executable<Left, Right, Id>();
  e.schedule = Schedule{}.workers(2).groups(2);
  Functor<Item, structure::Accessors<Left, Right, Id>> m(std::make_shared<const runtime::Executable>(e),
                                                         CompileOptions{}.with_workers(std::make_shared<Workers>(1)));
  m.bind("Emb", embedding(8));
  std::vector<Item> items{{0}, {1}, {-1, 0, 1}, {2}, {3}, {-1, 3, 4}};
  const auto r = m(arena(items), {2, 5});
  CHECK(r.num_groups() == 2);
  CHECK(r[1][0] == 7);
  CHECK(r.node(&items[0])[0] == 1);
  CHECK_THAT(error_of(Code::out_of_range, [&] { m(arena(items), {2, 6}); }), Contains("root 1 is index 6"));
  items[5].left = 17;
  CHECK_THAT(error_of(Code::out_of_range, [&] { m(arena(items), {2, 5}); }), Contains("reached from root 1"));
}

TEST_CASE("what the user's own nodes throw in a group reaches the caller", "[runtime][groups]") {
  struct Moody {
    int id = 0;
    const Moody *left = nullptr, *right = nullptr;
    int word() const {
      if (id == 3) throw std::runtime_error("not in the mood");
      return id;
    }
  };
  using Left = structure::Child<&Moody::left>;
  using Right = structure::Child<&Moody::right>;
  using Id = structure::Field<&Moody::word>;
  runtime::Executable e = sum_executable<Left, Right, Id>();
  e.schedule = Schedule{}.workers(2).groups(2);
  Functor<Moody, structure::Accessors<Left, Right, Id>> m(std::make_shared<const runtime::Executable>(e),
                                                          CompileOptions{}.with_workers(std::make_shared<Workers>(1)));
  m.bind("Emb", embedding(8));
  const Moody a{1}, b{2}, c{3};
  for (int call = 0; call < 3; ++call) {
    CHECK_THROWS_WITH(m({&a, &b, &a, &c}), "not in the mood");
    CHECK(m({&a, &b})[1][0] == 3);
  }
}

TEST_CASE("what a group's kernel throws reaches the caller, and no worker waits for the group", "[runtime][groups]") {
  runtime::Executable e = sum_executable();
  e.kernel = nullptr;
  e.code = std::make_shared<const int>(0);
  e.interpret = [](const void*, const codegen::KernelArgs& args) {
    const auto* const id = static_cast<const std::int32_t*>(args.buffers[field_id]);
    const auto* const sizes = static_cast<const std::int32_t*>(args.buffers[counts]);
    if (args.worker == 1 && id[sizes[0] - 1] == 12) throw std::runtime_error("the second group's second worker");
    args.barrier(args.barrier_context);
    sum_kernel(&args);
  };
  const SumFunctor m = divided(4, 2, 3, e);
  const Trees trees(4);
  for (int call = 0; call < 20; ++call) CHECK_THROWS_WITH(m(trees.roots), "the second group's second worker");
  CHECK(m({trees.roots[0], trees.roots[1]})[1][0] == 5 + 6 + 7 + 8);
}

TEST_CASE("a warm call in groups allocates nothing", "[runtime][groups]") {
  const SumFunctor m = divided(4, 2, 3, sum_executable(), 9 * 16);
  const Trees trees(9, 4);
  std::vector<float> out(9 * 8);
  for (int call = 0; call < 3; ++call) m(trees.roots, out);
  const std::int64_t before = allocations_of_all_threads();
  int groups = 0;
  for (int call = 0; call < 50; ++call) {
    groups += m(trees.roots).num_groups();
    m(trees.roots, out);
  }
  CHECK(allocations_of_all_threads() == before);
  CHECK(groups == 100);
}

TEST_CASE("a result says what all of its groups needed of memory", "[runtime][groups]") {
  const Trees trees(8);
  const CallMemory one = divided(2, 1, 1)(trees.roots).memory(), two = divided(2, 2, 1)(trees.roots).memory();
  CHECK(two.states == one.states + 16 * sizeof(float));  // a row of zeros more
  CHECK(two.held > two.states + two.arrays);
}

TEST_CASE("threads that share a pool get the same results, however many groups there are threads for",
          "[runtime][groups]") {
  const auto pool = std::make_shared<Workers>(3);
  runtime::Executable e = sum_executable();
  e.schedule = Schedule{}.workers(4).groups(4);
  SumFunctor m = functor(e, CompileOptions{}.with_workers(pool)).bind("Emb", embedding(64));
  const Trees trees(9);
  std::atomic<int> wrong{0}, running{4}, divided{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> out(9 * 8);
      for (int call = 0; call < 300; ++call) {
        const std::vector<const Word*> roots(trees.roots.begin() + (call + t) % 9, trees.roots.end());
        const auto r = m(roots);
        divided += r.num_groups() > 1;
        const float scale = r[0][0] / float(16 * ((call + t) % 9) + 10);
        for (std::size_t i = 0; i < roots.size(); ++i)
          wrong += r[i][0] != scale * float(16 * (i + std::size_t((call + t) % 9)) + 10);
        wrong += m(trees.roots, out) != 9;
      }
      --running;
    });
  for (float scale = 1; running > 0; scale = scale < 8 ? scale * 2 : 1) m.bind("Emb", embedding(64, scale));
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(divided > 0);
}

TEST_CASE("random models give the same bits in any number of groups", "[runtime][groups]") {
  check_divided_calls(1, 16, 2, 2, Target::interpreter());
  check_divided_calls(20, 12, 4, 2, Target::interpreter());
  check_divided_calls(40, 12, 3, 3, Target::interpreter(), Grammar::whole);
  check_divided_calls(60, 6, 9, 4, Target::interpreter());  // one worker is in no group
}

TEST_CASE("groups have no rows of words of their own, whether a model says how many words there are or not",
          "[groups]") {
  const auto held = [](const Dim& V, int groups) {
    Dim H("hidden", 16);
    Model<test::Word> m("words", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H);
    auto h = m.placeholder<float>("h", H);
    auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(test::word(n), i); });
    auto inner = m.compute("inner", H, [&](auto n, auto i) {
      return tanh(sum(H, [&](auto j) { return W(i, j) * (h(test::left(n), j) + h(test::right(n), j)); }));
    });
    auto body = m.if_then_else(
        "body", [](auto n) { return is_leaf(n); }, leaf, inner);
    auto model = compile(m.recursion_op(h, body), Schedule::standard().workers(2).groups(groups).tabulate_nothing(),
                         CompileOptions{}.on(Target::interpreter()));
    model.bind("Emb", std::vector<float>(1000 * 16, 1)).bind("W", std::vector<float>(16 * 16, 1));
    return model.memory().weights;
  };
  for (const Dim& V : {Dim("vocabulary"), Dim("vocabulary", 1000)}) {
    const std::size_t one = held(V, 1), two = held(V, 2);
    CHECK(one >= 1000 * 16 * sizeof(float));
    CHECK(two > one);
    CHECK(two <= one + 2 * 16 * 16 * sizeof(float));
    CHECK(held(V, 16) == two);  // of two workers there are no more groups
  }
}

TEST_CASE("groups with weights of their own give the same bits, of weights bound anew too", "[runtime][groups]") {
  const auto pool = std::make_shared<Workers>(2);
  int divided = 0;
  for (std::uint64_t seed = 80; seed < 95; ++seed) {
    const RandomModel model(seed);
    const auto code =
        runtime::compile_graph(model.graph, Schedule::standard().workers(3).groups(3), Target::interpreter());
    const auto with_weights = [&](int groups) {
      auto result = std::make_shared<runtime::Executable>(*code);
      result->groups_with_weights = groups;
      return bound(model, result);
    };
    const int groups = seed % 2 ? 3 : 2;  // of two, the third group shares the first one's
    RandomFunctor shared = with_weights(1), own = with_weights(groups);
    own.use(pool);
    std::size_t bytes = 0;
    for (std::size_t b = 0; b < code->program.buffers.size(); ++b) {
      const ir::Buffer& buffer = code->program.buffers[b];
      if (code->read_whole[b]) bytes += std::size_t(runtime::layout_of(*buffer).fixed_size) * size_of(buffer->dtype);
    }
    CHECK(bytes > 0);
    const std::size_t all = shared.memory().weights + std::size_t(groups - 1) * bytes;
    CHECK(own.memory().weights == all);
    CHECK(code->size_with_weights == 1);
    for (const float scale : {1.f, 0.5f}) {
      for (auto* functor : {&shared, &own})
        model.each_weight([&](const std::string& name, auto values) {
          for (auto& v : values) v *= scale;
          functor->bind(name, values);
        });
      Random random(seed);
      const Forest forest = random_forests(random, model.graph, {12, 12, 12});
      INFO("seed " << seed << "\n" << describe(forest));
      CHECK(same_bits(model, shared, own, forest));
      divided += own(forest.roots).num_groups() == 3;  // roots that share nodes are not
    }
    CHECK(own.memory().weights == all);
  }
  CHECK(divided > 6);
}

TEST_CASE("the compiler divides calls of narrow models, and explain tells when", "[runtime][groups]") {
  const auto narrow = [](const Schedule& schedule) {
    Dim V{"vocabulary"}, H{"hidden", 32};
    Model<Word> m("narrow", cortex::sequence);
    auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return tanh(Emb(word(n), i) +
                  sum(H, [&](auto j) { return U(i, j) * h(cortex::optional_child<&Word::left>(n), j); }));
    });
    return compile(m.recursion_op(h, body), schedule,
                   CompileOptions{}.on(Target::interpreter()).with_workers(std::make_shared<Workers>(1)));
  };
  auto model = narrow(Schedule::standard().workers(2));
  model.bind("Emb", std::vector<float>(64 * 32, 0.5f)).bind("U", std::vector<float>(32 * 32, 0.1f));
  const Vector<runtime::GroupRule>& rules = model.executable().group_rules;
  REQUIRE(!rules.empty());
  CHECK(rules[0] == runtime::GroupRule{2, 1, 1});
  std::deque<Word> words;
  std::vector<const Word*> roots;
  for (int s = 0; s < 10; ++s) {
    for (int i = 0; i < 5; ++i) words.push_back({i + s, i ? &words.back() : nullptr});
    roots.push_back(&words.back());
  }
  CHECK(model(roots).num_groups() == 2);
  CHECK(model(roots[0]).num_groups() == 1);
  CHECK_THAT(explain(model), Contains("groups     1, from ") && Contains(" roots on 2, by the cost model;"));
  CHECK_THAT(explain(narrow(Schedule::standard().workers(2).groups(2))),
             Contains("groups     1, from 2 roots on 2; each with a share"));
  CHECK_THAT(explain(narrow(Schedule::standard().workers(2).groups(1))), Contains("groups     one: every thread"));
  CHECK_THAT(explain(narrow(Schedule::standard().workers(1))), !Contains("\n  groups "));
  CHECK(narrow(Schedule::standard().workers(2).groups(1)).executable().group_rules.empty());
}

TEST_CASE("numbers of groups that have no meaning are refused", "[runtime][groups][refusal]") {
  const auto refused = [](int groups) {
    return error_of(Code::invalid_schedule, [&] {
      Dim H{"hidden", 8};
      Model<Word> m("none", cortex::tree);
      auto h = m.placeholder<float>("h", H);
      auto body =
          m.compute("body", H, [&](auto n, auto i) { return h(cortex::optional_child<&Word::left>(n), i) + 1; });
      compile(m.recursion_op(h, body), Schedule{}.groups(groups), CompileOptions{}.on(Target::interpreter()));
    });
  };
  CHECK(refused(-1) == "groups: -1 were asked for; give a number from 1 to 1024, or 0 to leave it to the compiler");
  CHECK_THAT(refused(1025), Contains("groups: 1025 were asked for"));
}

TEST_CASE("a divided call tells how long both of its halves took", "[runtime][groups]") {
  runtime::Executable e = sum_executable();
  e.schedule = Schedule{}.workers(2).groups(2);
  const SumFunctor m =
      functor(e, CompileOptions{}.with_workers(std::make_shared<Workers>(1)).with_timings()).bind("Emb", embedding(64));
  const auto r = m(Trees(8).roots);
  CHECK(r.num_groups() == 2);
  CHECK(r.linearize_ns() > 0);
  CHECK(r.execute_ns() > 0);
}

TEST_CASE("machine code gives the same bits in any number of groups", "[runtime][groups]") {
  need_llvm();
  check_divided_calls(60, 6, 4, 2, best_target());
}
