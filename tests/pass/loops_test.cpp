// The language of loop schedules: steps as text and as calls, what is no step, in which order steps may come, and what
// whoever runs them says.
#include "cortex/pass/loops.hpp"

#include <catch2/catch.hpp>

#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

/// What is thrown as `Error{invalid_schedule}`; "" if nothing is.
template <class F>
std::string refused(F f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_schedule);
    return error.message;
  }
  return {};
}
std::string parsed(const std::string& text) {
  return refused([&] { Loops::parse(text); });
}

/// A model's program after a schedule's steps, by the name that `compile` runs them by.
std::string run(const Loops& loops, int workers = 1) {
  const Schedule schedule = Schedule::standard().exact_activations().workers(workers).loops(loops);
  return refused([&] { passes_of(tree_rnn(8).graph(), schedule, machine(16)); });
}

}  // namespace

TEST_CASE("each call of the builder is the step that its text says", "[schedule][loops][text]") {
  const std::pair<Loops, const char*> cases[] = {
      {Loops{}.split("i", 16), "split(i, 16)"},
      {Loops{}.split_cases("i", 4), "split_cases(i, 4)"},
      {Loops{}.split_guarded("i", 4), "split_guarded(i, 4)"},
      {Loops{}.tile("i", "j", 4, 2), "tile(i, j, 4, 2)"},
      {Loops{}.fuse("i", "j"), "fuse(i, j)"},
      {Loops{}.reorder({"k", "i", "j"}), "reorder(k, i, j)"},
      {Loops{}.unroll("i"), "unroll(i)"},
      {Loops{}.jam("i"), "jam(i)"},
      {Loops{}.vectorize("i"), "vectorize(i)"},
      {Loops{}.parallel("i"), "parallel(i)"},
      {Loops{}.bind("i", "thread"), "bind(i, thread)"},
      {Loops{}.merge("i", "j"), "merge(i, j)"},
      {Loops{}.distribute("i"), "distribute(i)"},
      {Loops{}.rfactor("k", 4), "rfactor(k, 4)"},
      {Loops{}.compute_inline("t"), "compute_inline(t)"},
      {Loops{}.compute_at("t", "i"), "compute_at(t, i)"},
      {Loops{}.cache_read("t", "i"), "cache_read(t, i)"},
      {Loops{}.cache_write("t", "i"), "cache_write(t, i)"},
      {Loops{}.layout_split("W", 0, 4), "layout_split(W, 0, 4)"},
      {Loops{}.layout_reorder("W", {0, 2, 1}), "layout_reorder(W, 0, 2, 1)"},
      {Loops{}.layout_fuse("W", 0), "layout_fuse(W, 0)"},
      {Loops{}.layout_pad("W", 1, 16), "layout_pad(W, 1, 16)"},
  };
  for (const auto& [built, text] : cases) {
    CHECK(built == Loops::parse(text));
    CHECK(to_string(built) == std::string(text) + "\n");
  }
  // Those that have no call of their own are steps on the whole program, and there are no others.
  std::size_t whole = 0;
  for (const pass::LoopPrimitive& primitive : pass::detail::loop_primitives) {
    if (!primitive.arguments.empty()) continue;
    const std::string name(primitive.name);
    CHECK(Loops{}.whole(name) == Loops::parse(name + "()"));
    ++whole;
  }
  CHECK(std::size(cases) + whole == pass::detail::loop_primitives.size());
}

TEST_CASE("steps stand in lines or between semicolons, with comments, and names that are no words in quotes",
          "[schedule][loops][text]") {
  const Loops loops = Loops{}.split("i", 16).vectorize("i.i");
  CHECK(Loops::parse("split(i, 16)\nvectorize(i.i)") == loops);
  CHECK(Loops::parse(" split ( i ,16 );; # tiles; unroll(i)\n\tvectorize(i.i);\r\n") == loops);
  CHECK(Loops::parse("split(\"i\", 16); vectorize(\"i.i\")") == loops);
  CHECK(Loops::parse("") == Loops{});
  CHECK(Loops::parse("# nothing") == Loops{});
  for (const char* name : {"my loop", "12", "-3", "a\"b", "back\\slash", "two\nlines", "", "(i)", "i;j", "#", "i.o"}) {
    const Loops odd = Loops{}.split(name, 4).unroll(name);
    INFO(to_string(odd));
    CHECK(Loops::parse(to_string(odd)) == odd);
  }
}

TEST_CASE("text that is no step is refused with its line", "[schedule][loops][text][refusal]") {
  CHECK(parsed("split i, 16") == "loop schedule, line 1: '(' is missing after 'split'");
  CHECK(parsed("unroll(i)\n\nsplit(i, 16") == "loop schedule, line 3: ')' is missing");
  CHECK(parsed("# a comment\nsplit(i 16)") == "loop schedule, line 2: ')' is missing");
  CHECK(parsed("split(, 16)") == "loop schedule, line 1: a name or a number is missing");
  CHECK(parsed("unroll(i)\n)") == "loop schedule, line 2: a name or a number is missing");
  CHECK(parsed("split(16, i)") == "loop schedule, line 1: 'i' stands after a number; names come first");
  CHECK(parsed("split(i, 99999999999999999999)") ==
        "loop schedule, line 1: the number 99999999999999999999 is too large");
  CHECK(parsed("unroll(i)\nunroll(\"i)") == "loop schedule, line 2: '\"' is missing after a name");
}

TEST_CASE("a step that is refused is on the line on which it begins", "[schedule][loops][text][refusal]") {
  CHECK_THAT(parsed("unroll(i)\nsplt(i,\n16)\n"), StartsWith("loop schedule, line 2: there is no primitive 'splt'"));
  CHECK(parsed("\nsplit(i)\n") == "loop schedule, line 2: split(i): it takes split(loop, number)");
  CHECK(parsed("split(i,\n16\n\n") == "loop schedule, line 1: ')' is missing");
  CHECK(parsed("insert_barriers()\n# a comment\nparallel(i)") ==
        "loop schedule, line 3: parallel(i): it has to come before insert_barriers()");
}

TEST_CASE("a primitive that there is not is refused with those that there are", "[schedule][loops][refusal]") {
  const std::string message = parsed("unroll(i); splt(i, 16)");
  CHECK_THAT(message, Contains("there is no primitive 'splt'; there are split, split_cases, "));
  for (const pass::LoopPrimitive& primitive : pass::detail::loop_primitives)
    CHECK_THAT(message, Contains(" " + std::string(primitive.name)));
  CHECK_THAT(refused([] { Loops{}.whole("everything"); }), Contains("there is no primitive 'everything'"));
}

TEST_CASE("other arguments than a primitive takes are refused with those that it takes", "[schedule][loops][refusal]") {
  const std::pair<const char*, const char*> cases[] = {
      {"split(i)", "loop schedule, line 1: split(i): it takes split(loop, number)"},
      {"split(i, j, 4)", "it takes split(loop, number)"},
      {"split(i, 4, 4)", "it takes split(loop, number)"},
      {"split(i, 16x)", "it takes split(loop, number)"},
      {"tile(i, j, 4)", "it takes tile(loop, loop, number, number)"},
      {"fuse(i)", "it takes fuse(loop, loop)"},
      {"reorder()", "it takes reorder(loop, ...)"},
      {"reorder(i, 4)", "it takes reorder(loop, ...)"},
      {"unroll(4)", "it takes unroll(loop)"},
      {"compute_inline(t, i)", "it takes compute_inline(tensor)"},
      {"cache_read(t)", "it takes cache_read(tensor, loop)"},
      {"layout_reorder(W)", "it takes layout_reorder(tensor, number, ...)"},
      {"share_work(2)", "it takes share_work()"},
      {"bind(i)", "it takes bind(loop, group or worker or block or thread)"},
      {"bind(i, warp)", "bind(i, warp): it takes bind(loop, group or worker or block or thread)"},
      {"bind(thread, i)", "it takes bind(loop, group or worker or block or thread)"},
  };
  for (const auto& [steps, reason] : cases) CHECK_THAT(parsed(steps), Contains(reason));
  CHECK_THAT(refused([] { Loops{}.whole("split"); }), Contains("split(): it takes split(loop, number)"));
  CHECK_THAT(refused([] { Loops({{"unroll", {"i", "j"}, {}}}); }), Contains("it takes unroll(loop)"));
}

TEST_CASE("what moves or shares work comes before the barriers", "[schedule][loops][refusal]") {
  for (const char* late :
       {"parallel(i)", "bind(i, block)", "bind(i, thread)", "compute_inline(t)", "compute_at(t, i)", "cache_read(t, i)",
        "cache_write(t, i)", "fuse_nests()", "inline_temporaries()", "distribute_rows()", "fuse_edges()",
        "forward_stores()", "index_densely()", "share_work()", "insert_barriers()"}) {
    const std::string steps = std::string("insert_barriers(); unroll(i); ") + late;
    CHECK(parsed(steps) == std::string("loop schedule, line 1: ") + late + ": it has to come before insert_barriers()");
    CHECK(parsed(std::string(late) + "; unroll(i)") == "");
  }
  // However the steps come together.
  CHECK_THAT(refused([] { Loops{}.whole("insert_barriers").then(Loops{}.parallel("i")); }),
             Contains("parallel(i): it has to come before insert_barriers()"));
}

TEST_CASE("work that is shared has its barriers before it is tiled", "[schedule][loops][refusal]") {
  CHECK(parsed("share_work(); tile_nests(); insert_barriers()") ==
        "loop schedule, line 1: insert_barriers(): it has to come before tile_nests(), since work is shared");
  CHECK_THAT(parsed("parallel(i); tile_nests(); unroll(j); insert_barriers()"), Contains("before tile_nests()"));
  CHECK_THAT(parsed("bind(i, worker); tile_nests(); insert_barriers()"), Contains("before tile_nests()"));
  CHECK(parsed("share_work(); insert_barriers(); tile_nests()") == "");
  CHECK(parsed("tile_nests(); share_work(); insert_barriers()") == "");
}

TEST_CASE("steps behind steps are one schedule, and the first ones stay as they are", "[schedule][loops]") {
  const Loops first = Loops{}.split("i", 4), second = Loops{}.unroll("i.i").vectorize("j");
  CHECK(first.then(second) == Loops::parse("split(i, 4); unroll(i.i); vectorize(j)"));
  CHECK(first == Loops::parse("split(i, 4)"));
  CHECK(first.then(Loops{}) == first);
  CHECK(Loops{}.then(first) == first);
}

TEST_CASE("several workers need barriers", "[schedule][loops][refusal]") {
  const Loops shared = Loops{}.whole("distribute_rows").whole("share_work");
  CHECK(run(shared, 2) == "loop schedule: 2 workers need the step insert_barriers(), after parallel or share_work()");
  CHECK(run(Loops{}, 3) == "loop schedule: 3 workers need the step insert_barriers(), after parallel or share_work()");
  CHECK(run(shared) == "");
  CHECK(run(shared.whole("insert_barriers"), 2) == "");
}

TEST_CASE("a refused step names itself, with those before it done", "[schedule][loops][refusal]") {
  CHECK(run(Loops::parse("split(i, 4); unroll(i); vectorize(i.i)")) ==
        "loop schedule: unroll(i): there is no loop 'i'; the loops are n_idx, i.o, i.i, b_idx, n_idx.2, i.2, i.3, i.4");
  CHECK_THAT(run(Loops{}.unroll("no such loop")), Contains("unroll(\"no such loop\"): there is no loop"));
}

TEST_CASE("one loop schedule serves several models", "[schedule][loops]") {
  const Loops loops = Loops::parse("split(i, 4); vectorize(i.i)");
  for (const ra::Graph& graph : {tree_rnn(8).graph(), tree_gru(8).graph(), tree_rnn(16).graph()}) {
    const Schedule schedule = Schedule::standard().loops(loops);
    ir::Stmt body = loops.named(lower::lower(graph, schedule).body);
    for (std::size_t step = 0; step < loops.size(); ++step) body = loops.apply(step, body, machine(16));
    CHECK_THAT(ir::print(body), Contains("vectorized for i.i = 0:4:"));
  }
}
