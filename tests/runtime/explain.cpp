// What models say of themselves: operations, barriers, memory, and the text that tells them.
#include "cortex/explain.hpp"

#include <catch2/catch.hpp>

#include "cortex/ir/count_work.hpp"
#include "cortex/models/gru.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "support/compile.hpp"
#include "support/golden.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

struct Phrase {
  int word = 0;
  std::vector<const Phrase*> kids;
};
struct Pair {
  int word = 0;
  const Pair* left = nullptr;
  const Pair* right = nullptr;
};
struct Step {
  int id = 0;
  const Step* previous = nullptr;
};

constexpr auto word = cortex::field<&Phrase::word>;
constexpr auto kids = cortex::children<&Phrase::kids>;

/// Compiled for a machine that is the same everywhere.
template <class Program>
auto compile_fixed(const Program& program, const Schedule& schedule = Schedule::standard(), int registers = 16) {
  CompileOptions options;
  Target target = Target::interpreter();
  target.vector_registers = registers;
  options.target = target;
  return compile(program, schedule, options);
}

template <class F>
ir::Operations each(const std::string& unit, const F& model) {
  for (const ir::Operations& total : ir::total_of(ir::count_work(model.executable().scheduled.body)))
    if (to_string(total.unit) == unit) return total;
  return {};
}

template <class F>
int barriers(const std::string& unit, const F& model) {
  int count = 0;
  for (const auto& [of, number] : ir::barriers_of(ir::count_work(model.executable().scheduled.body)))
    if (to_string(of) == unit) count += number;
  return count;
}

}  // namespace

TEST_CASE("a TreeLSTM's operations are those of its equations", "[explain]") {
  const double D = 20, H = 12;
  const auto m = compile_fixed(models::tree_lstm<Phrase>(word, kids, {.input = 20, .hidden = 12}).program);
  // Any node has three products W x, of gates; a leaf then b, i u and o tanh(c). An inner node has W_f x and three U s,
  // each gate two additions, and i u + fc; an edge adds to s, and has U_f h_k, (W_f x + U_f h_k) + b_f, and f_k c_k
  // added up.
  CHECK(each("node", m).flops == 3 * 2 * D * H);
  CHECK(each("leaf", m).flops == 5 * H);
  CHECK(each("leaf", m).functions == 4 * H);
  CHECK(each("inner node", m).flops == 2 * D * H + 3 * 2 * H * H + 3 * 2 * H + 3 * H);
  CHECK(each("inner node", m).functions == 4 * H);
  CHECK(each("edge", m).flops == H + 2 * H * H + 2 * H + 2 * H);
  CHECK(each("edge", m).functions == H);
}

TEST_CASE("an MV-RNN's operations are those of its equations", "[explain]") {
  const double H = 8;
  const auto m = compile_fixed(models::mv_rnn<Pair>(cortex::field<&Pair::word>, cortex::child<&Pair::left>,
                                                    cortex::child<&Pair::right>, {.hidden = 8})
                                   .program);
  // M = W_M [M_left; M_right] + B; M_left v_right and M_right v_left; v = tanh(W_v of both + b). The second product of
  // each pair goes on where the first one ends.
  CHECK(each("inner node", m).flops == 2 * 2 * H * H * H + H * H + 2 * 2 * H * H + 2 * 2 * H * H + H);
  CHECK(each("inner node", m).functions == H);
  CHECK(each("leaf", m).flops == 0);
}

TEST_CASE("schedules that ask at each node count its leaves and inner nodes by themselves", "[explain]") {
  const auto m = compile_fixed(models::mv_rnn<Pair>(cortex::field<&Pair::word>, cortex::child<&Pair::left>,
                                                    cortex::child<&Pair::right>, {.hidden = 8})
                                   .program,
                               Schedule{});
  CHECK(each("inner node", m).functions == 8);
}

TEST_CASE("two workers meet twice a level in a TreeGRU and once in a TreeLSTM", "[explain]") {
  const Schedule two = Schedule::standard().workers(2);
  const models::Sizes sizes{.input = 64, .hidden = 64};
  const auto gru = compile_fixed(models::tree_gru<Phrase>(word, kids, sizes).program, two);
  const auto lstm = compile_fixed(models::tree_lstm<Phrase>(word, kids, sizes).program, two);
  CHECK(barriers("level", gru) == 2);
  CHECK(barriers("level", lstm) == 1);
  CHECK(barriers("call", lstm) == 1);
  CHECK(barriers("level", compile_fixed(models::tree_gru<Phrase>(word, kids, sizes).program)) == 0);
}

TEST_CASE("an explanation is the golden one, but for the times", "[explain][golden]") {
  const auto m =
      compile_fixed(models::gru<Step, float, 2>(cortex::field<&Step::id>, cortex::optional_child<&Step::previous>,
                                                {.input = 16, .hidden = 16})
                        .program,
                    Schedule::standard().workers(2));
  const std::string text = explain(m);
  const std::size_t times = text.find("\ncompile time\n");
  REQUIRE(times != std::string::npos);
  check_golden("explain/gru_of_two_layers.txt", text.substr(0, times));
}

TEST_CASE("an explanation tells every decision of the schedule", "[explain]") {
  const auto program = models::tree_gru<Phrase>(word, kids, {.input = 16, .hidden = 16}).program;
  const std::string text = explain(compile_fixed(program, Schedule{}.exact_activations().specialize_leaves()));
  CHECK_THAT(text, Contains("node by node") && Contains("are the C library's") && Contains("no barriers"));
  CHECK_THAT(explain(compile_fixed(program, Schedule::standard().workers(2).refactor("candidate"))),
             Contains("cut at the product of candidate") && Contains("up to 2 threads"));
  CHECK_THAT(explain(compile_fixed(program, Schedule::standard().unroll("h", 2))), Contains("h: subtrees of 2 levels"));
  const auto phrases = models::mv_rnn<Pair>(cortex::field<&Pair::word>, cortex::child<&Pair::left>,
                                            cortex::child<&Pair::right>, {.hidden = 8});
  CHECK_THAT(explain(compile_fixed(phrases.program)), Contains("v at leaves is read from Emb_v, by word, where it is"));
}

TEST_CASE("a model's memory is that of its states, of the temporaries that live at once, and of its weights",
          "[explain][memory]") {
  const auto ready = models::lstm<Step, float, 2>(cortex::field<&Step::id>, cortex::optional_child<&Step::previous>,
                                                  {.input = 32, .hidden = 32});
  auto m = compile_fixed(ready.program, Schedule::standard(), 32);  // four gates in one pass
  constexpr std::size_t row = 32 * 4;
  CHECK(m.memory().states == RowBytes{.node = 4 * row});       // h and c of both layers
  CHECK(m.memory().temporaries == RowBytes{.node = 4 * row});  // the products of four gates, of one layer at a time
  CHECK(m.memory().own_temporaries == RowBytes{});
  CHECK(m.memory().weights == 0);
  const runtime::Executable& e = m.executable();
  int moved = 0;
  for (const ir::Buffer& buffer : e.scheduled.buffers) moved += bool(buffer->stored_in);
  CHECK(moved == 4);
  m.bind("Emb", uniform(10 * 32, 1, 1));
  CHECK(m.memory().weights == 10 * row);
}

TEST_CASE("what a call says that it needs is what its workspace holds rows for", "[explain][memory]") {
  const auto ready = models::tree_lstm<Phrase>(word, kids, {.input = 32, .hidden = 32});
  auto m = compile_here(ready.program, Schedule::standard().workers(2).tile_gates(3));  // on any CPU
  m.use(std::make_shared<Workers>(1));
  unsigned seed = 1;
  for (const runtime::WeightSpec& weight : m.executable().weights) {
    std::size_t size = 1;
    for (const Dim& dim : weight.dims) size *= dim.kind() == DimKind::open ? 4 : std::size_t(dim.extent());
    m.bind(weight.name, uniform(size, 0.1f, seed++));
  }
  // A root with 50 children: 51 nodes, 50 edges, and a largest batch of 50 leaves.
  std::vector<Phrase> leaves(50);
  Phrase root;
  for (const Phrase& leaf : leaves) root.kids.push_back(&leaf);
  const auto result = m(root);
  const ModelMemory model = m.memory();
  const CallMemory call = result.memory();
  CHECK(call.states == 52 * model.states.node);
  CHECK(call.temporaries == 52 * model.temporaries.node + 50 * model.temporaries.batch_edge +
                                50 * model.temporaries.batch + 2 * 50 * model.own_temporaries.batch);
  CHECK(model.states.node == 2 * 128);
  CHECK(model.temporaries == RowBytes{.node = 4 * 128, .batch_edge = 128});
  CHECK(model.own_temporaries == RowBytes{.batch = 128});
  // Blocks have rows for half as much again, and 64 bytes behind; there are nine: six over nodes, one over the edges of
  // a batch, and one for each worker over its nodes.
  CHECK(call.held - call.arrays == (52 + 26) * 6 * 128 + 75 * 128 + 2 * 75 * 128 + 9 * 64);
  CHECK(call.peak() == call.states + call.temporaries + call.arrays);
  CHECK(call.held > call.peak());
  CHECK(m(leaves[0]).memory().states == 2 * model.states.node);
}

TEST_CASE("outputs of no call and of no nodes need no memory", "[explain][memory]") {
  const auto ready =
      models::gru<Step>(cortex::field<&Step::id>, cortex::optional_child<&Step::previous>, {.input = 16, .hidden = 16});
  decltype(compile_here(ready.program)(std::declval<const Step&>())) none;
  CHECK(none.memory().peak() == 0);
}
