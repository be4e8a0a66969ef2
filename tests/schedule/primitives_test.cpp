// Each primitive of loop schedules by itself: what it makes of a model, that the model computes the same, and what it
// refuses.
#include <catch2/catch.hpp>

#include "cortex/loops.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"
#include "support/races.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

struct Case {
  const char* steps;
  std::vector<const char*> parts;  // of the program's text after them
};

/// The program after the steps, which computes what the recursion as written does.
std::string text_of(const ra::Graph& graph, const Case& each) {
  INFO(each.steps);
  const Schedule schedule = Schedule::standard().exact_activations().loops(Loops::parse(each.steps));
  const std::vector<Snapshot> passes = passes_of(graph, schedule, machine(16));
  std::mt19937 random(1);
  for (const int count : {1, 12, 41}) {
    const NodeTable table = random_table(count, 2, 7, random, true);
    const Linear linear(table, 2);
    const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 7, 1));
    CHECK(reference.difference(passes.back().program) == "");
  }
  const Loops loops = Loops::parse(each.steps);
  ir::Stmt body = loops.named(lower::lower(graph, schedule).body);
  for (std::size_t step = 0; step < loops.size(); ++step) body = loops.apply(step, body, machine(16));
  return ir::print(body);
}

std::string refusal(const ra::Graph& graph, const char* steps) {
  try {
    passes_of(graph, Schedule::standard().loops(Loops::parse(steps)), machine(16));
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return "";
}

}  // namespace

TEST_CASE("every primitive does what it says and keeps what a TreeGRU computes", "[schedule][loops][equality]") {
  const ra::Graph graph = tree_gru(8).graph();
  const Case cases[] = {
      {"split(i.3, 4)", {"for i.3.o = 0:2:", "for i.3.i = 0:4:", "Ur[i.3.o * 4 + i.3.i,"}},
      {"split(i.3, 3)", {"for i.3.r = 0:2:", "Ur[6 + i.3.r,"}},
      {"split(n_idx.2, 4)", {"for n_idx.2.o = 0:batch_sizes(b_idx) / 4:", "for n_idx.2.r = 0:batch_sizes(b_idx) % 4:"}},
      {"split_cases(n_idx.2, 3)", {"batch_sizes(b_idx) % 3 == 1:", "for n_idx.2.r1 = 0:1:", "for n_idx.2.r2 = 0:2:"}},
      {"split_guarded(n_idx.2, 4)", {"if n_idx.2.o * 4 + n_idx.2.i < batch_sizes(b_idx):"}},
      {"distribute(n_idx.2); tile(n_idx.2.9, i.9.9, 2, 4)",
       {"for n_idx.2.9.o = 0:", "for n_idx.2.9.i = 0:2:", "for n_idx.2.9.r = 0:"}},
      {"fuse(n_idx, i)", {"for n_idx.i = 0:leaf_batch_size * 8:", "n_idx.i / 8", "n_idx.i % 8"}},
      {"split(i.3, 4); reorder(i.3.i, i.3.o)", {"for i.3.i = 0:4:  # hidden\n      for i.3.o = 0:2:"}},
      {"split(i.4, 2); unroll(i.4.i)", {"r_sum[node.2,i.4.o * 2 + 1]"}},
      {"split(i.3, 2); jam(i.3.i)", {"r_sum_acc.2 = fma(Ur[i.3.o * 2 + 1,r.2],s[node.2,r.2],r_sum_acc.2)"}},
      {"split(i.3, 4); vectorize(i.3.i)", {"vectorized for i.3.i = 0:4:"}},
      {"merge(i.3, i.5); merge(r.2, r.3)", {"r_sum_acc)\n        z_sum_acc = fma(Uz[i.3,r.2]"}},
      {"distribute(i.3)", {"r_sum_acc[i.3] = 0.0"}},
      {"rfactor(r.2, 4)", {"r_sum_acc.p[r.2.i] = fma(", "for r.2.c = 0:4:"}},
      {"compute_inline(candidate_pre)", {"fma(Uh[i.7,r.5],r[node.2,r.5] * s[node.2,r.5],"}},
      {"compute_at(candidate_pre, n_idx.2)", {"local candidate_pre[hidden=8]", "candidate_pre[r.4] = "}},
      {"merge(i.3, i.4); compute_at(r_sum, i.3)", {"local r_sum[]", "r_sum = r_sum_acc"}},
      {"cache_read(s, i.3)", {"local s_cache", "s_cache["}},
      {"cache_write(r, i.4)", {"local r_cache"}},
      {"layout_split(Uh, 0, 4); layout_reorder(Uh, 0, 2, 1)", {"Uh[i.7,r.5]"}},
      {"layout_pad(Uh, 1, 16)", {"Uh[i.7,r.5]"}},
      {"layout_pad(s, 1, 16); layout_fuse(s, 0)", {"s[node.2,i.2]"}},
      {"inline_temporaries(); distribute_rows(); fuse_nests(); index_densely(); forward_stores(); remove_dead(); "
       "pack_weights(); tile_nests(); share_loads()",
       {"vectorized for lane = 0:4:"}},
  };
  for (const Case& each : cases) {
    std::string text;
    try {
      text = text_of(graph, each);
    } catch (const Error& error) {
      FAIL_CHECK(each.steps << ": " << error.message);
    }
    for (const char* part : each.parts) {
      INFO(each.steps << "\n" << text);
      CHECK(text.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("a state read at several children is cached with an entry for each", "[schedule][loops][equality]") {
  const ra::Graph graph = tree_rnn(8).graph();
  const Case both{
      "compute_inline(lh); compute_inline(rh); cache_read(rnn, n_idx.2)",
      {"local rnn_cache[entry=2,hidden=8]", "rnn_cache[0,", "rnn_cache[1,", "rnn[left(node.2),", "rnn[right(node.2),"}};
  const std::string text = text_of(graph, both);
  for (const char* part : both.parts) CHECK_THAT(text, Contains(part));
}

TEST_CASE("where a tensor lies is a matter of its layout, and not of what reads it", "[schedule][loops]") {
  const ra::Graph graph = tree_gru(8).graph();
  const Loops loops = Loops{}.layout_split("Uh", 0, 4).layout_reorder("Uh", {0, 2, 1});
  ir::Stmt body = loops.named(lower::lower(graph, Schedule::standard()).body);
  for (std::size_t step = 0; step < loops.size(); ++step) body = loops.apply(step, body, machine(16));
  const ir::Buffer Uh = schedule::buffer_named(body, "Uh");
  // Element [i,k] at i / 4 * 32 + k * 4 + i % 4.
  std::vector<std::int64_t> strides;
  for (const ir::Axis& axis : Uh->layout.axes) strides.push_back(axis.stride);
  CHECK(strides == std::vector<std::int64_t>{1, 4, 32});
  CHECK(Uh->layout.axes[0].modulus == 4);
  CHECK(Uh->layout.axes[1].source == 1);
  CHECK(bool(Uh->packed_from));
}

TEST_CASE("what would change results is refused, with the step and the reason", "[schedule][loops][refusal]") {
  const ra::Graph graph = tree_gru(8).graph();
  const std::pair<const char*, const char*> cases[] = {
      {"vectorize(x)", "vectorize(x): there is no loop 'x'; the loops are n_idx, i, b_idx"},
      {"split(r.2, 4); vectorize(r.2.i)", "iterations of 'r.2.i' depend on each other through 'r_sum_acc'"},
      {"jam(b_idx)", "the extent of loop 'b_idx' is no constant"},
      {"unroll(n_idx)", "the extent of loop 'n_idx' is not constant; split it"},
      {"split(i, 0)", "the factor is 0"},
      {"merge(i.2, i.3)", "an iteration of 'i.3' needs others of 'i.2', through 's'"},
      {"merge(i.3, i.2)", "loop 'i.3' stands after loop 'i.2'"},
      {"fuse(b_idx, n_idx.2)", "is not constant"},
      {"reorder(i.2, i.3)", "the loops do not stand one directly in the other"},
      {"rfactor(i.3, 4)", "loop 'i.3' is no reduction into local accumulators"},
      {"compute_inline(s)", "'s' is not computed by one expression"},
      {"compute_inline(h)", "'h' is no temporary of the whole program"},
      {"cache_write(h, b_idx)", "cache_write(h, b_idx)"},
      {"distribute_rows(); share_work(); parallel(i.2)", "each worker has 's' for itself, and computes all of it"},
      {"parallel(i.3); share_work(); insert_barriers()", "loop 'i.3' shares only a part of what 'n_idx.2' does"},
      {"distribute_rows(); split_guarded(i.4, 3); compute_at(r_sum, i.4.i)", "'r_sum' is read under a condition"},
      {"split(i.3, 4); cache_read(Ur, i.3.o); vectorize(i.3.o)",
       "'Ur_cache' in loop 'i.3.o', which is vectorized, is indexed by its iteration"},
      {"layout_split(h, 0, 4)", "'h' is neither a weight nor a temporary"},
      {"layout_reorder(Emb, 1, 0)", "the axis of 'vocabulary' has no constant extent and has to stay outermost"},
      {"layout_reorder(Uh, 1)", "'Uh' has 2 axes, and 1 are named"},
  };
  for (const auto& [steps, reason] : cases) {
    INFO(steps);
    CHECK_THAT(refusal(graph, steps), Contains(reason));
  }
}

TEST_CASE("barriers stand in parts of loops as in the whole", "[schedule][loops][equality]") {
  const ra::Graph graph = tree_gru(8).graph();
  std::mt19937 random(1);
  const NodeTable table = random_table(21, 2, 7, random, true);
  const Linear linear(table, 2);
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 7, 1));
  const Schedule one_by_one, batched = Schedule::standard();
  const std::pair<Schedule, const char*> cases[] = {
      {one_by_one, "distribute_rows(); share_work(); split(n_idx, 2); insert_barriers()"},
      {one_by_one, "distribute_rows(); share_work(); split(n_idx, 2); unroll(n_idx.i); insert_barriers()"},
      {batched, "distribute_rows(); share_work(); split(b_idx, 2); unroll(b_idx.i); insert_barriers()"},
      {batched, "split(n_idx.2, 2); parallel(i.3); insert_barriers()"},
      {batched, "split(n_idx.2, 2); unroll(n_idx.2.i); parallel(i.3); insert_barriers()"},
      {batched, "share_work(); reorder(i, n_idx); share_work(); insert_barriers()"},
  };
  for (const auto& [recursion, steps] : cases) {
    INFO(steps);
    const Schedule schedule = recursion.exact_activations().workers(3).loops(Loops::parse(steps));
    const ir::Program program = passes_of(graph, schedule, machine(16)).back().program;
    for (const bool last_first : {false, true}) CHECK(reference.difference(program, {3, last_first}) == "");
  }
}

TEST_CASE("what is done with a local buffer is one worker's as a whole", "[schedule][loops][equality]") {
  const ra::Graph graph = tree_gru(8).graph();
  std::mt19937 random(1);
  const NodeTable table = random_table(21, 2, 7, random, true);
  const Linear linear(table, 2);
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 7, 1));
  for (const char* steps : {
           "distribute_rows(); split_guarded(i.2, 3); share_work(); insert_barriers()",  // a fold, each worker's own
           "distribute_rows(); split_guarded(i.2, 3); insert_barriers()",
           "distribute_rows(); distribute(i.3); share_work(); insert_barriers()",
       }) {
    INFO(steps);
    const Schedule schedule = Schedule::standard().exact_activations().workers(3).loops(Loops::parse(steps));
    const ir::Program program = passes_of(graph, schedule, machine(16)).back().program;
    for (const bool last_first : {false, true}) CHECK(reference.difference(program, {3, last_first}) == "");
  }
}

TEST_CASE("where workers share the subtrees of an unrolled recursion, temporaries keep a row for each node",
          "[schedule][loops][races]") {
  const ra::Graph graph = tree_gru(6).graph();
  const auto after = [&](const char* steps, int workers) {
    const Schedule schedule = Schedule::standard().exact_activations().unroll("tree_gru", 2).workers(workers);
    return passes_of(graph, schedule.loops(Loops::parse(steps)), machine(16)).back().program;
  };
  const auto rows_of_s = [](const ir::Program& program) {
    for (const ir::Buffer& buffer : program.buffers)
      if (buffer->name == "s") return buffer->dims[0].name();
    return std::string();
  };
  const ir::Program shared = after("distribute_rows(); share_work(); index_densely(); insert_barriers()", 3);
  CHECK(rows_of_s(shared) == dims::node.name());
  CHECK(first_race(shared, Calls(graph, Schedule::standard().unroll("tree_gru", 2), 1, 8)) == "");
  CHECK(rows_of_s(after("distribute_rows(); index_densely()", 1)) == dims::batch.name());  // one worker's is one row
}

TEST_CASE("what workers share in the subtrees of an unrolled recursion is parted by barriers, or refused",
          "[schedule][loops][races][refusal]") {
  Dim V{"vocabulary"}, H{"hidden", 8};
  Model<Word> m("differences", tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {  // one nest, so that nothing else needs a barrier
    return tanh(Emb(word(n), i) + h(left(n), i) - h(right(n), i));
  });
  const ra::Graph graph = m.recursion_op(h, body).graph();
  const Schedule unrolled = Schedule{}.dynamic_batch().exact_activations().unroll("h", 2);
  int shared = 0, refused = 0;
  for (const std::string loop : {"i", "i.2", "i.3"})
    for (const bool also_subtrees : {false, true}) {
      const std::string steps =
          "parallel(" + loop + "); " + (also_subtrees ? "share_work(); insert_barriers()" : "insert_barriers()");
      INFO(steps);
      try {
        const Schedule schedule = unrolled.workers(2).loops(Loops::parse(steps));
        const ir::Program program = passes_of(graph, schedule, machine(16)).back().program;
        CHECK(first_race(program, Calls(graph, unrolled, 1, 8)) == "");
        int parallel_around = 0;
        ir::mutate_with(program.body, [&](auto& self, const ir::For& inner) -> ir::Stmt {
          const bool counts = inner.loop == ir::ForKind::parallel;
          CHECK(parallel_around + counts < 2);
          parallel_around += counts;
          const ir::Stmt result = self.children(inner);
          parallel_around -= counts;
          return result;
        });
        ++shared;
      } catch (const Error& error) {
        if (error.message.find("there is no loop") != error.message.npos) continue;
        CHECK(also_subtrees);
        CHECK_THAT(error.message, Contains("which is parallel, stands in loop") && Contains("over subtrees"));
        ++refused;
      }
    }
  CHECK(shared == 4);  // the leaves' loop also beside those of subtrees
  CHECK(refused == 2);
}
