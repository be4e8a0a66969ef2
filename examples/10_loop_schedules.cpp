// Lesson 10: schedules of loops. The TreeLSTM of lesson 3, from one node after the other to fast code, step by step:
// what each step does to the loops, and what it gains. The last row is what the compiler does by itself.
//
//   10_loop_schedules           the table
//   10_loop_schedules 1 ... 8   the loops of one step, as they are run
//
// Loops and tensors go by the names that `model.print("ilir")` shows, which are those of row 2: run
// `10_loop_schedules 2` to read along. A step makes new names of them: split(i, 16) makes i.o, of tiles, i.i, inside of
// one, and i.r for the rest, if there is one; what is copied gets a number.
#include <algorithm>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cortex/loops.hpp>  // for cortex::Loops; cortex.hpp does not need it
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "support/measure.hpp"
#include "support/models.hpp"  // tree_lstm
#include "support/ptb.hpp"
#include "support/recursion.hpp"

using cortex::Loops, cortex::Schedule;

// A schedule of loops is plain data, a list of steps. C++ is there to write the same steps for many loops: here, each
// as tiles of one vector, whose iterations are its lanes.
Loops in_vectors(const std::vector<std::string>& loops, int lanes) {
  Loops steps;
  for (const std::string& loop : loops) steps = steps.split(loop, lanes).vectorize(loop + ".i");
  return steps;
}

// Weights in panels: of W[output][k], the axes in memory are then output / lanes, k, output % lanes, so that a vector
// of outputs at one k is consecutive, and the next k's vector follows it. W is copied once, when it is bound.
Loops in_panels(int lanes) {
  Loops steps;
  for (const char* W : {"W_i", "W_o", "W_u", "U_i", "U_o", "U_u", "U_f"})
    steps = steps.layout_split(W, 0, lanes).layout_reorder(W, {0, 2, 1});
  return steps;
}

// One loop for what many did. Each is over the same outputs, and needs of the others what it makes itself.
const Loops merged = Loops::parse(R"(
  merge(i, i.3); merge(i, i.5)                       # leaves: the three gates i, o, u over outputs,
  merge(r, r.2); merge(r, r.3)                       # and over k: one pass over the word's vector
  merge(i, i.2); merge(i, i.4); merge(i, i.6)        # their activations,
  merge(i, i.7); merge(i, i.8)                       # and the states c and h

  merge(i.10, i.12); merge(i.10, i.14)               # inner nodes: the same, of the sum of the children's h
  merge(r.4, r.5); merge(r.4, r.6)
  merge(i.10, i.11); merge(i.10, i.13); merge(i.10, i.15)
  merge(i.17, i.18); merge(i.17, i.19)               # what is kept of the children's c, and the states c and h
)");

// Level by level: each product runs over all nodes of a level before the next begins, so that its weights stay in the
// cache; and the one with each child's h runs over the level's edges, e_idx, whoever's child it is.
const Loops by_level = Loops::parse("distribute_rows(); fuse_edges()");

// Register tiles: several nodes side by side, which share each vector of weights that is loaded. What a tile cannot
// hold is done node by node.
Loops in_tiles(int nodes) {
  Loops steps;
  for (const std::string loop : {"n_idx", "n_idx.2.2", "e_idx"}) steps = steps.split(loop, nodes).jam(loop + ".i");
  return steps;
}

struct Step {
  const char* name;
  Schedule schedule;
};

std::vector<Step> steps_for(const cortex::Target& target) {
  const int lanes = target.vector_bytes / int(sizeof(float)), nodes = target.vector_registers / 8;
  std::vector<std::string> every{"i"};  // all loops over outputs: i, i.2, ... i.19
  for (int n = 2; n <= 19; ++n) every.push_back("i." + std::to_string(n));
  const Loops vectors = in_vectors(every, lanes), panels = in_panels(lanes),
              left_vectors = in_vectors({"i", "i.9", "i.10", "i.16", "i.17"}, lanes);  // those that merging leaves
  const Schedule standard = Schedule::standard();
  return {
      // The recursion, children first, each operator a loop over its outputs: an empty list of steps.
      {"node by node", Schedule{}.loops(Loops{})},
      // The nodes of a level in a loop, leaves in one of their own. Alone that gains next to nothing: each node still
      // does its sums one addition after the other. But now there are loops to work with.
      {"by level, leaves apart", standard.loops(Loops{})},
      // Sixteen sums at a time (or as many as a vector has lanes). The lanes are rows of W[output][k], so at one k they
      // read down a column: sixteen cache lines for sixteen numbers, gathered.
      {"+ outputs in vectors", standard.loops(vectors)},
      // The other order in memory, and a vector of weights is one load.
      {"+ weights in panels", standard.loops(vectors.then(panels))},
      // Additions of one sum wait for each other; those of three gates do not.
      {"+ gates merged", standard.loops(merged.then(left_vectors).then(panels))},
      // The weights of the whole cell may be larger than a core's cache, those of one product less so: a gain that
      // differs from machine to machine. The next step needs it: only nodes and edges that stand in a loop of their own
      // can be tiled.
      {"+ a product at a time", standard.loops(merged.then(by_level).then(left_vectors).then(panels))},
      // Each weight that is loaded is used for several nodes.
      {"+ tiles of nodes", standard.loops(merged.then(by_level).then(left_vectors).then(panels).then(in_tiles(nodes)))},
      // No steps by hand. Beyond those above: temporaries that stay in registers, tiles of even sizes with code for
      // each,
      // several vectors where there are few nodes.
      {"the compiler's own", standard},
  };
}

// Without LLVM loops are interpreted, which takes its time.
cortex::Target target() {
  try {
    return cortex::host_target();
  } catch (const cortex::Error&) {
    return cortex::Target::interpreter();
  }
}

int main(int argc, char** argv) try {
  using namespace examples;
  cortex::CompileOptions options;
  options.target = target();
  const bool interpreted = options.target->backend == cortex::Backend::interpreter;
  const int hidden = interpreted ? 16 : 256, rounds = interpreted ? 1 : 5;
  const auto program = tree_lstm(hidden, hidden);
  const std::vector<Step> steps = steps_for(*options.target);
  if (argc > 1) {
    const auto model = cortex::compile(program, steps.at(std::size_t(std::atoi(argv[1])) - 1).schedule, options);
    return std::puts(model.print("scheduled").c_str()) < 0;
  }

  Treebank bank;
  read_ptb(examples_directory() / "data" / "sentences.txt", bank);
  const std::vector<const Phrase*> trees(bank.trees.begin(), bank.trees.begin() + 10);
  const TreeLstmWeights weights = TreeLstmWeights::random(bank.vocabulary.size(), hidden, hidden);
  TreeLstm<float> recursion(weights);
  std::vector<std::vector<float>> expected;
  for (const Phrase* tree : trees) expected.emplace_back(recursion(tree), recursion(tree) + hidden);

  std::vector<decltype(cortex::compile(program))> models;
  std::vector<double> compile_ms;
  for (const Step& step : steps) {
    compile_ms.push_back(microseconds([&] { models.push_back(cortex::compile(program, step.schedule, options)); }) /
                         1e3);
    bind_all(models.back(), weights);
  }

  // In turn, so that a machine that is busy now and then is so for all. Fast steps are called more often.
  std::vector<Samples> times(steps.size());
  double difference = 0;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (double spent = 0; spent < (interpreted ? 1 : 2e4);) {
        const double us = microseconds([&] { (void)models[s](trees); });
        times[s].add(us), spent += us;
      }
  for (const auto& model : models) {
    const auto h = model(trees);
    for (std::size_t t = 0; t < trees.size(); ++t) {
      const double here = largest_difference(h[t].data(), expected[t].data(), expected[t].size());
      difference = difference >= here || std::isnan(difference) ? difference : here;  // a NaN stays
    }
  }

  std::printf("TreeLSTM, hidden %d, %zu trees a call, one thread; median times%s\n\n", hidden, trees.size(),
              interpreted ? ", interpreted: they say nothing of the steps" : "");
  std::printf("    %-26s %9s %12s %12s %12s\n", "", "us a call", "to the last", "to the first", "compiled in");
  for (std::size_t s = 0; s < steps.size(); ++s)
    std::printf("  %zu %-26s %9.0f %11.2fx %11.2fx %9.0f ms\n", s + 1, steps[s].name, times[s].median(),
                times[s ? s - 1 : 0].median() / times[s].median(), times[0].median() / times[s].median(),
                compile_ms[s]);
  std::printf("\nlargest difference from plain recursion: %.1e\n", difference);
  bool right = difference < 2e-6;

  // Plain data: a schedule can be written to a file, read back, compared.
  const std::string text = to_string(steps[6].schedule);
  right &= cortex::parse_schedule(text) == steps[6].schedule;
  std::printf("row 7 as text has %d steps of loops after these lines:\n%.*s\n",
              int(std::count(text.begin() + std::ptrdiff_t(text.find("loops()")), text.end(), '\n')) - 1,
              int(text.find("merge")), text.c_str());

  // No step changes what is computed; one that would is refused when the model is compiled, with the reason.
  const auto refused =
      cortex::try_compile(program, Schedule::standard().loops(Loops{}.split("r", 4).vectorize("r.i")), options);
  if (refused) return 1;
  std::printf("refused: %s\n", refused.error().message.c_str());
  return right ? 0 : 1;
} catch (const std::exception& error) {  // among them cortex::Error
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
