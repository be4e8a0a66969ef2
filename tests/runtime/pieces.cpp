// Large calls are computed in pieces: the same bits, with less memory for what is kept of a level, and not where nodes
// wait for others of later pieces.
#include <catch2/catch.hpp>
#include <climits>
#include <cstring>
#include <deque>

#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
#include "cortex/schedule/piece_nodes.hpp"
#include "runtime/count_allocations.hpp"
#include "support/chosen_schedules.hpp"
#include "support/compile.hpp"
#include "support/differential.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;

/// A cell over words at leaves, and for each root its own word and state, or the sum over all `nodes` below it.
template <bool nodes = false>
auto cell(Structure structure, int hidden) {
  Dim V{"vocabulary"}, H{"hidden", hidden};
  Model<Vertex> m("cell", structure);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H), W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto g =
      m.compute("g", H, [&](auto n, auto i) { return sigmoid(sum(H, [&](auto j) { return W(i, j) * s(n, j); })); });
  auto inner = m.compute("inner", H, [&](auto n, auto i) {
    return tanh(g(n, i) * sum(H, [&](auto j) { return U(i, j) * s(n, j); }) + s(n, i));
  });
  auto leaf = m.compute(
      "leaf", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); })); });
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  auto state = m.recursion(h, body);
  if constexpr (nodes) {
    auto read = m.readout<float>("read", H, [&](auto r, auto i) {
      return Emb(word(r), i) + sum(cortex::nodes(r), [&](auto n) { return state(n, i); });
    });
    return m.program(state, read);
  } else {
    auto read = m.readout<float>("read", H, [&](auto r, auto i) { return Emb(word(r), i) + state(r, i); });
    return m.program(state, read);
  }
}

/// A cell over words at all nodes, and an output at each node that reads the node's children, with a product of each.
auto at_each_node(Structure structure, int hidden) {
  Dim V{"vocabulary"}, H{"hidden", hidden};
  Model<Vertex> m("at_each_node", structure);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H), W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) +
                sum(H, [&](auto j) { return U(i, j) * s(n, j); }));
  });
  auto state = m.recursion(h, body);
  auto read = m.output<float>("read", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return W(i, j) * state(n, j); }) - sum(kids(n), [&](auto k) {
             return tanh(sum(H, [&](auto j) { return U(i, j) * state(k, j); })) * Emb(word(n), i);
           });
  });
  return m.program(state, read);
}

const Schedule specialized = Schedule{}.dynamic_batch().specialize_where_it_pays();

constexpr auto bound = [](auto model) {
  model.bind("Emb", uniform(std::size_t(num_words) * 24, 1, 1)).bind("U", uniform(576, 0.2f, 2));
  model.bind("W", uniform(576, 0.2f, 3));
  return model;
};

template <class Program>
int pieces_of(const Program& program, const Schedule& schedule) {
  return runtime::compile_graph(program.graph(), schedule, wide_machine())->piece_nodes;
}

/// Two recursions in sequence, each with a temporary that its readout reads at the roots.
auto two_recursions() {
  Dim V{"vocabulary"}, H{"hidden", 24};
  Model<Vertex> m("two_recursions", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), U = m.input<float>("U", H, H), W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H), k = m.placeholder<float>("k", H);
  const auto summed = [&](const char* name, auto& state) {
    return m.compute(name, H, [&](auto n, auto i) { return sum(kids(n), [&](auto c) { return state(c, i); }); });
  };
  auto s = summed("s", h), t = summed("t", k);
  auto g = m.compute("g", H, [&](auto n, auto i) { return sigmoid(Emb(word(n), i)); });
  auto up = m.recursion(h, m.compute("b", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(i, j) * g(n, j) * s(n, j); }) + g(n, i));
  }));
  auto read = m.readout<float>("read", H, [&](auto r, auto i) { return g(r, i) + up(r, i); });
  auto g2 = m.compute("g2", H, [&](auto n, auto i) { return sigmoid(3 * up(n, i)); });
  auto second = m.recursion(k, m.compute("b2", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return W(i, j) * g2(n, j) * t(n, j); }) - g2(n, i));
  }));
  auto last = m.readout<float>("last", H, [&](auto r, auto i) { return g2(r, i) + second(r, i); });
  return m.program(up, read, second, last);
}

/// Chains of `length` nodes.
struct Chains {
  std::deque<Vertex> all;
  std::vector<const Vertex*> roots;
  Chains(int count, int length) {
    for (int c = 0; c < count; ++c) {
      for (int i = 0; i < length; ++i) {
        Vertex& next = all.emplace_back();
        next.word = (c + i) % num_words;
        if (i > 0) next.kids.push_back(&all[all.size() - 2]);
      }
      roots.push_back(&all.back());
    }
  }
};

/// Holds calls in pieces against whole ones.
struct Divided {
  std::shared_ptr<Workers> pool = std::make_shared<Workers>(3);
  int calls = 0;  // in several pieces

  static bool same(std::span<const float> a, std::span<const float> b) {
    return a.size() == 24 && std::memcmp(a.data(), b.data(), 24 * sizeof(float)) == 0;
  }

  /// `outputs`: "read" is at each node, not at roots alone.
  template <class Program>
  void check(const Program& program, ra::StructureKind kind, const Schedule& of_whole,
             const std::vector<Schedule>& schedules, bool outputs = false) {
    auto whole = bound(compile_here(program, of_whole.whole_calls()));
    whole.use(pool);
    for (const Schedule& schedule : schedules)
      for (const int nodes : built_with_llvm() ? std::vector{5} : std::vector{1, 7, 30}) {
        auto model = bound(compile_here(program, schedule.pieces(nodes)));
        model.use(pool);
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
          Random random(seed);
          const Forest forest = random_forest(random, kind, 60);
          std::vector<const Vertex*> roots(forest.roots.begin(), forest.roots.end());
          roots.insert(roots.end(), forest.roots.begin(), forest.roots.end());
          const ForestView view(forest);
          calls += forest.roots.size() > 1 && nodes * 2 < int(view.nodes.size());
          const auto expected = whole(roots), got = model(roots);
          for (const auto* node : view.nodes) {
            REQUIRE(same(got.node(node), expected.node(node)));
            if (outputs)
              REQUIRE(same(got.template node<float>(node, "read"), expected.template node<float>(node, "read")));
          }
          for (std::size_t r = 0; r < roots.size(); ++r) {
            REQUIRE(same(got[r], expected[r]));
            REQUIRE(same(got.template root<float>(r, "read"), expected.template root<float>(r, "read")));
          }
        }
      }
  }
};

}  // namespace

TEST_CASE("calls in pieces give the same bits, by any workers, with and without tables and equal subtrees",
          "[runtime]") {
  Divided divided;
  for (const Structure structure : {cortex::tree, cortex::dag, cortex::sequence}) {
    const auto kind = ra::StructureKind(int(structure.kind));
    const std::vector<Schedule> schedules{
        specialized,
        specialized.workers(2),
        specialized.workers(4).groups(2),
        specialized.fill_levels(3),
        specialized.tabulate(1),
        specialized.tabulate(1).workers(3),
    };
    divided.check(cell(structure, 24), kind, specialized, schedules);
    divided.check(cell<true>(structure, 24), kind, specialized, schedules);
    if (structure.kind == structure::Kind::sequence) continue;
    divided.check(
        cell(structure, 24), kind, specialized,
        {specialized.share_subtrees(), specialized.share_subtrees().workers(4).groups(4).tabulate(1).fill_levels(2)});
  }
  CHECK(divided.calls > 40);
}

TEST_CASE("what is computed for all nodes at once is computed for those of each piece", "[runtime][slow]") {
  Divided divided;
  for (const Structure structure : {cortex::tree, cortex::dag, cortex::sequence}) {
    const auto kind = ra::StructureKind(int(structure.kind));
    const auto program = at_each_node(structure, 24);
    const auto loops_of = [&](const Schedule& schedule) { return compile_here(program, schedule).print("tiled"); };
    const Schedule batched = Schedule{}.dynamic_batch();
    CHECK_THAT(loops_of(batched), Catch::Contains("all_nodes(") && !Catch::Contains("range_nodes("));
    CHECK_THAT(loops_of(batched.pieces(5)), !Catch::Contains("all_nodes(") && Catch::Contains("range_nodes("));
    const auto like_whole = [&](const Schedule& schedule) { divided.check(program, kind, schedule, {schedule}, true); };
    like_whole(Schedule{}.dynamic_batch());
    like_whole(Schedule::standard().workers(3));
    like_whole(specialized.workers(4).groups(2));
    like_whole(specialized.specialize_leaves().tabulate(1));
    if (structure.kind == structure::Kind::sequence) continue;
    like_whole(Schedule::standard().share_subtrees());
    like_whole(specialized.share_subtrees().workers(2).tabulate(1));
  }
  CHECK(divided.calls > 40);
}

TEST_CASE("a root of a piece before has what was computed with it, also where its memory could be used again",
          "[runtime]") {
  const auto program = two_recursions();
  Chains chains(6, 3);
  std::vector<const Vertex*> roots = chains.roots;
  for (int more = 0; more < 3; ++more) roots.push_back(chains.roots[std::size_t(more)]);
  for (std::size_t i = 0; i < 3; ++i) chains.all[3 * 5 + i].word = chains.all[i].word;  // equal to the first
  for (const Schedule& schedule : {Schedule::standard(), Schedule::standard().share_subtrees(),
                                   Schedule{}.dynamic_batch().specialize_where_it_pays()}) {
    auto whole = bound(compile_here(program, schedule.whole_calls())),
         divided = bound(compile_here(program, schedule.pieces(1)));
    const auto expected = whole(roots), got = divided(roots);
    for (const char* name : {"read", "last"})
      for (std::size_t r = 0; r < roots.size(); ++r)
        CHECK(std::memcmp(got.root<float>(r, name).data(), expected.root<float>(r, name).data(), 24 * sizeof(float)) ==
              0);
  }
}

TEST_CASE("a call in pieces needs memory for the levels of one alone, and allocates nothing when it is warm",
          "[runtime]") {
  const Chains chains(40, 5);
  const auto program = cell(cortex::tree, 24);
  auto whole = bound(compile_here(program, specialized)),
       divided = bound(compile_here(program, specialized.pieces(20)));
  const auto memory_of = [&](auto& model) { return model(chains.roots).memory(); };
  const CallMemory of_whole = memory_of(whole), of_pieces = memory_of(divided);
  CHECK(of_pieces.states == of_whole.states);
  CHECK(of_pieces.temporaries * 10 == of_whole.temporaries);
  std::vector<float> out(chains.roots.size() * 24);
  divided(chains.roots, out);
  const std::int64_t before = allocations_of_this_thread();
  divided(chains.roots, out);
  if (built_with_llvm()) CHECK(allocations_of_this_thread() == before);  // the interpreter allocates in any case
  const auto one = divided({chains.roots[0]});
  CHECK(std::memcmp(one[0].data(), out.data(), 24 * sizeof(float)) == 0);
}

TEST_CASE("a node that is at fault is named in whichever piece it is, and the next call is computed", "[runtime]") {
  Chains chains(40, 5);
  auto model = bound(compile_here(cell(cortex::tree, 24), Schedule::standard().pieces(20)));
  const auto before = model(chains.roots);
  const std::vector<float> last(before[39].begin(), before[39].end());
  Vertex& leaf = chains.all[39 * 5];
  const int word_of_leaf = std::exchange(leaf.word, num_words);
  try {
    (void)model(chains.roots);
    FAIL("a word without a row was read");
  } catch (const Error& error) {
    CHECK(error.code == Code::out_of_range);
    CHECK_THAT(error.message, Catch::Contains("reached from root 39"));
  }
  leaf.word = word_of_leaf;
  const auto after = model(chains.roots);
  CHECK(std::memcmp(after[39].data(), last.data(), 24 * sizeof(float)) == 0);
}

TEST_CASE("pieces are refused where a call cannot be divided, and left out by default", "[runtime]") {
  const auto up = cell(cortex::tree, 256);
  CHECK(refusal(up, specialized.pieces(100)).empty());
  CHECK(refusal(up, Schedule{}.pieces(0)).empty());
  CHECK_THAT(refusal(up, Schedule{}.pieces(2)),
             Catch::Contains("pieces: calls of model 'cell' cannot be divided") && Catch::Contains("dynamic_batch"));
  CHECK_THAT(refusal(up, specialized.pieces(2).unroll("h", 2)), Catch::Contains("it is unrolled"));
  CHECK_THAT(refusal(up, specialized.pieces(-1)), Catch::Contains("pieces of -1 nodes were asked for"));
  CHECK(refusal(up, Schedule{}.dynamic_batch().pieces(2)).empty());
  CHECK_THAT(refusal(up, Schedule{}.dynamic_batch().loops(Loops{}).pieces(2)),
             Catch::Contains("its loop schedule is of loops over all nodes of a call at once"));
  CHECK(refusal(up, specialized.loops(Loops{}).pieces(2)).empty());
  CHECK(refusal(up, Schedule::standard().unroll("h", 2)).empty());
  CHECK(pieces_of(up, Schedule::standard().unroll("h", 2)) == 0);

  Dim H{"hidden", 256};
  Model<Vertex> m("down", cortex::tree);
  auto U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  constexpr auto above = cortex::parents<kids>;
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(above(n), [&](auto p) { return sum(H, [&](auto j) { return U(i, j) * h(p, j); }); });
  });
  const auto down = m.recursion_op(h, body);
  CHECK_THAT(refusal(down, Schedule{}.dynamic_batch().pieces(4)), Catch::Contains("it reads the parents of nodes"));
  CHECK(pieces_of(down, Schedule::standard()) == 0);
}

TEST_CASE("the compiler divides large calls on trees by what caches hold, and says so", "[runtime]") {
  const auto program = cell(cortex::tree, 256);
  const int nodes = pieces_of(program, Schedule::standard());
  CHECK((nodes >= 64 && nodes <= 2048));
  CHECK(pieces_of(cell(cortex::tree, 32), Schedule::standard()) > nodes);  // whose nodes take less of a cache
  CHECK(pieces_of(program, Schedule::standard().pieces(5)) == 5);
  CHECK(pieces_of(program, Schedule::standard().whole_calls()) == 0);
  CHECK(pieces_of(program, Schedule{}.dynamic_batch()) == 0);
  CHECK(pieces_of(cell(cortex::dag, 256), Schedule::standard()) == 0);
  CHECK(pieces_of(cell(cortex::sequence, 256), Schedule::standard()) == 0);
  CHECK(pieces_of(program, Schedule::standard().pieces(INT_MAX)) == INT_MAX);
  const auto text = [&](const Schedule& schedule) {
    CompileOptions options;
    options.target = wide_machine();
    return explain(compile(program, schedule, options));
  };
  CHECK_THAT(text(Schedule::standard()),
             Catch::Contains("of " + std::to_string(2 * nodes) + " nodes and more are computed in pieces of " +
                             std::to_string(nodes) + " and more") &&
                 Catch::Contains("one after the other, by the cost model"));
  CHECK_THAT(text(Schedule::standard().whole_calls()), !Catch::Contains("pieces"));
  CHECK_THAT(text(Schedule::standard().pieces(INT_MAX)), Catch::Contains("of 4294967294 nodes and more"));

  // Trees like lists would have batches of a node or two.
  const auto width_of = [&](const Schedule& schedule) {
    return runtime::compile_graph(program.graph(), schedule, wide_machine())->piece_width;
  };
  CHECK(width_of(Schedule::standard()) == schedule::least_width(ra::StructureKind::tree));
  CHECK(width_of(Schedule::standard().pieces(5)) == 0);
}

TEST_CASE("of sequences over large matrices a few run side by side at most", "[runtime]") {
  Dim H{"hidden", 64}, W{"words", num_words};
  const auto matrices = [&](Structure structure, int weights) {
    Model<Vertex> m("matrices", structure);
    auto K = m.input<float>("K", W, H), Q = m.input<float>("Q", W, H), U = m.input<float>("U", H, H);
    auto S_of = m.placeholder<float>("S", H, H);
    auto h_of = m.placeholder<float>("h", H);
    auto S = m.compute("next_S", H, H, [&](auto n, auto d, auto e) {
      return 0.9f * sum(kids(n), [&](auto c) { return S_of(c, d, e); }) + K(word(n), d) * Q(word(n), e);
    });
    auto h = m.compute("next_h", H, [&](auto n, auto e) {
      return sum(H, [&](auto d) { return Q(word(n), d) * S(n, d, e); }) +
             float(weights) *
                 sum(kids(n), [&](auto c) { return sum(H, [&](auto j) { return U(e, j) * h_of(c, j); }); });
    });
    auto [all, result] = m.recursion(S_of, S, h_of, h);
    return m.program(result);
  };
  for (const int weights : {0, 1}) {  // as pieces of one sequence, or of a few
    const int nodes = pieces_of(matrices(cortex::sequence, weights), Schedule::standard());
    CHECK((nodes >= 32 && nodes <= 128));
  }
  CHECK(pieces_of(matrices(cortex::sequence, 0), Schedule::standard().whole_calls()) == 0);
  CHECK(pieces_of(matrices(cortex::dag, 0), Schedule::standard()) == 0);
  const auto one = runtime::compile_graph(matrices(cortex::sequence, 0).graph(), Schedule::standard(), wide_machine());
  CHECK(one->piece_width == 1);
}
