// What the paper measures beside the latency of its five models, on the CPU; each experiment by its name:
//
//   hidden       E3   latency over hidden size
//   batch             latency over batches of 1 to 1000 trees
//   tree_size         latency over trees of 2 to 500 words
//   sequences    E4   LSTM and GRU of length 100 beside oneDNN's and libtorch's own
//   activity     E2   where the time of a call goes, and how many calls of kernels or operators it makes
//   ablation     E5   without batching, specialization, fusion, packed weights
//   unroll       E6   recursions unrolled once, TreeLSTM and TreeRNN
//   levels            small levels filled with nodes from below, up to so many, and levels of one height
//   stored            weights in bf16, f16 and i8
//   sweeps            weights that exceed the second-level cache, swept over there and back
//   groups            threads in groups of their own, and all in one
//   refactor     E7   recursions cut at the matrix product behind the reset gate, TreeGRU and SimpleTreeGRU
//   gated             cells that are in no zoo, a fixed one and random ones of --seed, beside their floors
//   treebank          what tables and shared subtrees save on the treebank's own trees
//   memory       E9   what a call takes of memory
//   compile           how long compiling takes
//   pauses            calls that come after pauses, in which the threads that help have gone to sleep
//   overhead          what a call takes beside numbering and arithmetic: one leaf, whose state is its word's vector
//
// (E1 is `latency`; E8 is `linearize`, and a column of every row; E10 follows from the rows of TreeFC: bench/plot.)
//
//   experiments [--only ablation,...] [--quick] [--threads 2] [--seed 1] [--json FILE] [--check] [--smoke]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cortex/loops.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/contest.hpp"
#include "support/cortex_system.hpp"
#include "support/experiment_options.hpp"
#include "support/paused_calls.hpp"
#include "support/random_cells.hpp"
#include "support/report.hpp"
#include "support/results_file.hpp"
#if CORTEX_BENCH_TORCH
#include "support/torch_cost.hpp"
#endif

namespace {

using namespace bench;

using Options = ExperimentOptions;

class Experiments {
 public:
  explicit Experiments(const Options& options)
      : options_(options), machine_(probed(options)), present_(chosen_systems(options.systems)) {
    print_machine(machine_);
  }

  /// Whether others took CPUs away: during that, or when the machine was probed.
  bool busy(const OtherWork& others) const { return others.share() > 0.03 || machine_.scaling() < 0.75; }

  // ---- latency over one size ----

  std::vector<Json> hidden() {
    std::vector<Json> rows;
    for (const Model model : options_.models(the_papers))
      for (const int hidden :
           options_.sizes(model == Model::mvrnn ? std::vector{16, 32, 64, 128} : std::vector{64, 128, 256, 512, 1024}))
        contest(rows, model, hidden, options_.inputs(model, 10), by_level);
    return rows;
  }

  std::vector<Json> batch() {
    std::vector<Json> rows;
    for (const std::size_t batch : options_.sizes<std::size_t>({1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}))
      contest(rows, Model::treelstm, 256,
              options_.inputs(Model::treelstm, batch, Trees::random, std::clamp<std::size_t>(1000 / batch, 1, 10)),
              by_level);
    return rows;
  }

  std::vector<Json> tree_size() {
    std::vector<Json> rows;
    for (const int words : options_.sizes<int>({2, 5, 10, 20, 50, 100, 200, 500}))
      contest(rows, Model::treelstm, 256, trees_of(words, 1), by_level);
    return rows;
  }

  std::vector<Json> sequences() {
    std::vector<Json> rows;
    for (const Model model : options_.models({Model::lstm, Model::gru}))
      for (const int hidden : options_.sizes<int>({256, 512}))
        for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
          for (const int threads : options_.all_threads())
            contest(rows, model, hidden, options_.inputs(model, batch),
                    {"cortex", "cortex_nodedup", "torch_rnn", "openblas_level", "onednn_level", "onednn_rnn"}, threads);
    return rows;
  }

  // ---- schedules ----

  /// The standard schedule with all work done in each call: what is about loops has it to do.
  static cortex::Schedule all_work(int threads) {
    return cortex::Schedule::standard().share_no_subtrees().tabulate_nothing().workers(threads);
  }

  std::vector<Json> ablation() {
    using cortex::Schedule;
    // The compiler's own steps (pass/pipeline.hpp) but for packing, and those after it that need it.
    const std::string shared = options_.threads > 1 ? "share_work(); insert_barriers(); " : "";
    const std::string steps =
        "inline_temporaries(); remove_dead(); distribute_rows(); fuse_edges(); fuse_nests(); index_densely(); "
        "forward_stores(); remove_dead(); " +
        shared + "tile_nests(); share_loads()";
    const std::vector<std::pair<std::string, Schedule>> variants{
        {"everything", Schedule::standard().workers(options_.threads)},
        {"no tables", Schedule::standard().tabulate_nothing().workers(options_.threads)},
        {"no tables, no sharing", all_work(options_.threads)},
        {"no packed weights", all_work(options_.threads).loops(cortex::Loops::parse(steps))},
        {"no fusion", all_work(options_.threads).fuse_nothing()},
        {"no specialization", Schedule{}.dynamic_batch().workers(options_.threads)},
        {"no batching", Schedule{}.specialize_where_it_pays().specialize_leaves().workers(options_.threads)},
    };
    std::vector<Json> rows;
    for (const Model model : options_.models(the_papers))
      for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
        schedules(rows, model, model == Model::mvrnn ? 64 : 256, batch, options_.threads, variants);
    return rows;
  }

  std::vector<Json> unroll() {
    std::vector<Json> rows;
    for (const Model model : options_.models({Model::treelstm, Model::treernn}))
      for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
        for (const int threads : options_.all_threads()) {
          const auto standard = all_work(threads);
          schedules(rows, model, 256, batch, threads,
                    {{"as it is", standard},
                     {"unrolled by 2", standard.unroll("h", 2)},
                     {"unrolled by 3", standard.unroll("h", 3)}});
        }
    return rows;
  }

  std::vector<Json> levels() {
    std::vector<Json> rows;
    for (const Model model : options_.models({Model::treefc, Model::treegru, Model::treelstm}))
      for (const int hidden : options_.sizes<int>({256, 512}))
        for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
          for (const int threads : options_.all_threads()) {
            const auto standard = all_work(threads);
            std::vector<std::pair<std::string, cortex::Schedule>> variants{{"of one height", standard.fill_levels(1)},
                                                                           {"as the compiler fills them", standard}};
            for (const int nodes : options_.sizes<int>({2, 3, 4, 6, 8, 12, 16}))
              variants.emplace_back("up to " + std::to_string(nodes), standard.fill_levels(nodes));
            schedules(rows, model, hidden, batch, threads, variants);
          }
    return rows;
  }

  std::vector<Json> pieces() {
    std::vector<Json> rows;
    const auto standard = all_work(options_.threads);
    for (const Model model : options_.models({Model::treegru, Model::treelstm, Model::dagrnn, Model::mvrnn}))
      for (const int hidden : options_.sizes(model == Model::mvrnn ? std::vector{64} : std::vector{64, 256})) {
        std::vector<std::pair<std::string, cortex::Schedule>> variants{{"whole", standard.whole_calls()},
                                                                       {"as the compiler divides", standard}};
        for (const int nodes : options_.sizes<int>({64, 256, 1024}))
          variants.emplace_back("pieces of " + std::to_string(nodes), standard.pieces(nodes));
        schedules(rows, model, hidden, options_.smoke ? 20 : 400, options_.threads, variants, Results::right, 1);
      }
    return rows;
  }

  std::vector<Json> stored() {
    std::vector<Json> rows;
    for (const Model model : options_.models({Model::treelstm, Model::treegru, Model::treefc, Model::dagrnn}))
      for (const int hidden : options_.sizes<int>({256, 512}))
        for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
          for (const int threads : options_.all_threads()) {
            const auto standard = all_work(threads), bf16 = standard.store_weights(cortex::DType::bf16);
            std::vector<std::pair<std::string, cortex::Schedule>> variants{
                {"f32", standard}, {"bf16", bf16}, {"bf16 with vectors", bf16.multiply_in_vectors()}};
            if (model == Model::treelstm) {
              variants.emplace_back("f16", standard.store_weights(cortex::DType::f16));
              variants.emplace_back("i8", standard.store_weights(cortex::DType::i8));
            }
            schedules(rows, model, hidden, batch, threads, variants, Results::rounded);
          }
    return rows;
  }

  std::vector<Json> sweeps() {
    std::vector<Json> rows;
    for (const Model model : options_.models({Model::lstm, Model::treegru, Model::treelstm}))
      for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
        for (const int threads : options_.all_threads()) {
          const auto standard = all_work(threads);
          schedules(rows, model, 512, batch, threads,
                    {{"forward", standard.sweep_forward()}, {"there and back", standard.alternate_sweeps()}});
        }
    return rows;
  }

  std::vector<Json> groups() {
    std::vector<Json> rows;
    const int threads = options_.threads;
    if (threads == 1) return rows;
    for (const Model model : options_.models(
             {Model::lstm, Model::treefc, Model::dagrnn, Model::treegru, Model::treelstm, Model::mvrnn, Model::gated}))
      for (const int hidden :
           options_.sizes(model == Model::mvrnn ? std::vector{64, 128} : std::vector{64, 256, 512})) {
        const auto standard = all_work(threads);
        schedules(rows, model, hidden, 10, threads,
                  {{"as the compiler groups them", standard},
                   {"one group", standard.groups(1)},
                   {"a group each", standard.groups(threads)}});
      }
    return rows;
  }

  std::vector<Json> refactor() {
    std::vector<Json> rows;
    for (const Model model : options_.models({Model::treegru, Model::simpletreegru}))
      for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
        for (const int threads : options_.all_threads()) {
          const auto standard = all_work(threads);
          schedules(rows, model, 256, batch, threads,
                    {{"as it is", standard}, {"refactored", standard.refactor("candidate")}});
        }
    return rows;
  }

  // ---- a model that nobody has tuned anything for ----

  std::vector<Json> gated() {
    std::vector<Json> rows;
    std::mt19937 random(options_.seed);
    std::vector<Cell> cells(options_.smoke ? 2 : 5);
    for (Cell& cell : cells) cell = random_cell(random);
    std::fprintf(talk(), "  random cells of --seed %u\n", options_.seed);
    for (const int hidden : options_.sizes<int>({256, 512}))
      for (const std::size_t batch : options_.sizes<std::size_t>({1, 10})) {
        if (!options_.smoke) machine_.add(probed(options_));  // a floor of a busy moment is none
        const Batches batches = options_.inputs(Model::gated, batch);
        contest(rows, Model::gated, hidden, batches, {"cortex", "cortex_nodedup", "recursion"});
        for (std::size_t c = 0; c < cells.size(); ++c)
          cell_contest(rows, "cell_" + std::to_string(c + 1), cells[c], options_.hidden(hidden), batches);
      }
    return rows;
  }

  // ---- words and phrases that come twice ----

  std::vector<Json> treebank() {
    std::vector<Json> rows;
    if (!examples::find_sst()) {
      std::fprintf(talk(),
                   "  left out: the Stanford Sentiment Treebank was not found; CORTEX_SST names its directory\n");
      return rows;
    }
    for (const Model model : options_.models({Model::treegru, Model::treelstm}))
      for (const int hidden : options_.sizes<int>({256, 512}))
        for (const std::size_t batch : options_.sizes<std::size_t>({1, 10}))
          for (const int threads : options_.all_threads())
            contest(rows, model, hidden, options_.inputs(model, batch, Trees::sst), {"cortex", "cortex_nodedup"},
                    threads);
    return rows;
  }

  // ---- what is not a latency ----

  /// Calls of a TreeFC on a single leaf: 16 numbers are copied, and all else is what any call costs.
  std::vector<Json> overhead() {
    std::vector<Json> rows;
    const Weights weights = random_weights(Model::treefc, 16);
    Batches leaf;
    leaf.begin_batch();
    leaf.roots.back().push_back(leaf.add(7));
    std::vector<float> out(weights.hidden);
    for (const int threads : options_.all_threads()) {
      const auto model = compiled(weights, recipe_of("cortex_nodedup", threads));
      double least = INFINITY;
      for (int round = 0; round < 50; ++round) {
        constexpr int calls = 1000;
        const double start = now_us();
        for (int call = 0; call < calls; ++call) model->run(leaf.roots[0], out.data());
        least = std::min(least, (now_us() - start) / calls);
      }
      rows.push_back(say({}, {{"threads", double(threads)}, {"call_ns", 1e3 * least}}));
    }
    return rows;
  }

  /// Calls of the TreeLSTM one after the other, and with pauses between them, as of a server.
  std::vector<Json> pauses() {
    std::vector<Json> rows;
    for (const int hidden : options_.sizes<int>({64, 256})) {
      const Weights weights = random_weights(Model::treelstm, options_.hidden(hidden));
      for (const std::size_t batch : options_.sizes<std::size_t>({1, 10})) {
        const Batches batches = options_.inputs(Model::treelstm, batch);
        std::vector<float> out(batch * weights.hidden);
        for (const int threads : options_.all_threads()) {
          const auto model = compiled(weights, recipe_of("cortex_nodedup", threads));
          for (const int pause_us : {0, 100, 1000, 10000}) {
            const std::size_t calls =
                options_.smoke ? 10 : (options_.quick ? 1'000'000u : 4'000'000u) / (pause_us + 1000u);
            const PausedCalls took = time_paused_calls(*model, batches, out, pause_us, calls);
            rows.push_back(say({}, {{"hidden", double(hidden)},
                                    {"batch", double(batch)},
                                    {"threads", double(threads)},
                                    {"pause_us", double(pause_us)},
                                    {"median_us", took.median_us},
                                    {"p99_us", took.p99_us}}));
          }
        }
      }
    }
    return rows;
  }

  /// Of the TreeLSTM on one thread, because what runs at the same time cannot be added up.
  std::vector<Json> activity() {
    std::vector<Json> rows;
    const Weights weights = random_weights(Model::treelstm, options_.hidden(256));
    for (const std::size_t batch : options_.sizes<std::size_t>({1, 10})) {
      const Batches batches = options_.inputs(Model::treelstm, batch);
      std::vector<float> out(batch * weights.hidden);
      const int rounds = options_.smoke ? 1 : options_.quick ? 20 : 200;
      const auto add = [&](const char* name, double whole, double calls, const Numbers& parts) {
        Numbers numbers{{"batch", double(batch)}, {"whole_us", whole}, {"calls", calls}};
        numbers.insert(numbers.end(), parts.begin(), parts.end());
        rows.push_back(say({{"system", name}}, numbers));
      };
      /// The mean time of calls of `run`, which are `rounds` times all batches.
      const auto whole_us = [&](auto run) {
        for (const Roots& roots : batches.roots) run(roots);
        const double start = now_us();
        for (int round = 0; round < rounds; ++round)
          for (const Roots& roots : batches.roots) run(roots);
        return (now_us() - start) / double(rounds) / double(batches.roots.size());
      };
      {
        const auto model = compiled(weights, recipe_of("cortex", 1));
        double linearize = 0, execute = 0;
        long calls = 0;
        const double whole = whole_us([&](const Roots& roots) {
          const CortexSystem::Times times = model->times(roots);
          linearize += times.linearize_us, execute += times.execute_us, ++calls;
        });
        // In one kernel gathers are loads, and what follows a product is a part of it.
        add("cortex", whole, 1, {{"linearize_us", linearize / double(calls)}, {"kernel_us", execute / double(calls)}});
      }
      const auto by_level_of = [&](const char* name, WatchedSystem& system) {
        Activities sums;
        system.before_runs();
        for (const Roots& roots : batches.roots) system.run(roots, out.data());  // makes what is made once
        system.watch(&sums);
        const double whole = whole_us([&](const Roots& roots) { system.run(roots, out.data()); });
        const double calls = double(sums.number.calls);
        add(name, whole, double(sums.gather.calls + sums.product.calls + sums.pointwise.calls) / calls,
            {{"linearize_us", sums.number.us / calls},
             {"gather_us", sums.gather.us / calls},
             {"products_us", sums.product.us / calls},
             {"pointwise_us", sums.pointwise.us / calls}});
      };
      for (const SystemKind& kind : present_) {
        const auto system = kind.make({Model::treelstm, 1, weights});
        if (auto* const watched = dynamic_cast<WatchedSystem*>(system.get())) by_level_of(kind.name.c_str(), *watched);
      }
#if CORTEX_BENCH_TORCH
      for (const SystemKind& kind : present_) {
        if (kind.name.rfind("torch", 0) != 0) continue;
        const auto system = kind.make({Model::treelstm, 1, weights});
        if (!system) continue;
        system->before_runs();
        double operators = 0;
        for (const Roots& roots : batches.roots)
          operators += double(torch_cost(*system, roots, out.data()).operators) / double(batches.roots.size());
        const double whole = whole_us([&](const Roots& roots) { system->run(roots, out.data()); });
        add(kind.name.c_str(), whole, operators, {});
      }
#endif
    }
    return rows;
  }

  std::vector<Json> memory() {
    std::vector<Json> rows;
    for (const Model model : options_.models(the_papers)) {
      const int hidden = options_.hidden(model == Model::mvrnn ? 64 : 256);
      const Weights weights = random_weights(model, hidden);
      const Batches batches = options_.inputs(model, 10);
      const Roots& roots = batches.roots[0];
      std::vector<float> out(roots.size() * weights.hidden);
      const auto add = [&](const char* name, std::size_t peak, const Numbers& parts) {
        Numbers numbers{{"hidden", double(hidden)}, {"peak_bytes", double(peak)}};
        numbers.insert(numbers.end(), parts.begin(), parts.end());
        rows.push_back(say({{"model", name_of(model)}, {"system", name}}, numbers));
      };
      const auto of_cortex = [&](const char* name, const cortex::Schedule& schedule) {
        const cortex::CallMemory m = compiled(weights, {schedule, {}})->memory_of_call(roots);
        add(name, m.peak(),
            {{"states", double(m.states)}, {"temporaries", double(m.temporaries)}, {"arrays", double(m.arrays)}});
      };
      of_cortex("cortex", cortex::Schedule::standard());
      of_cortex("cortex, loops as lowered", cortex::Schedule::standard().loops(cortex::Loops{}));
      for (const SystemKind& kind : present_) {
        const auto system = kind.make({model, 1, weights});
        if (auto* const watched = dynamic_cast<WatchedSystem*>(system.get())) {
          watched->run(roots, out.data());
          add(kind.name.c_str(), watched->bytes(), {});
        }
#if CORTEX_BENCH_TORCH
        if (system && kind.name.rfind("torch", 0) == 0)
          add(kind.name.c_str(), torch_cost(*system, roots, out.data()).peak_bytes, {});
#endif
      }
    }
    return rows;
  }

  /// For as many threads as machines have, whether this one does or not: the code is for its CPU, and is not run.
  std::vector<Json> compile() {
    std::vector<Json> rows;
    const auto add = [&](Model model, const char* name, int threads, const cortex::Schedule& schedule) {
      const int hidden = options_.hidden(model == Model::mvrnn ? 64 : 256);
      cortex::runtime::CompileTimes least = compile_times(model, hidden, schedule);
      for (int more = options_.quick || options_.smoke ? 0 : 2; more > 0; --more) {
        const auto times = compile_times(model, hidden, schedule);
        if (times.total() < least.total()) least = times;
      }
      rows.push_back(say({{"model", name_of(model)}, {"schedule", name}}, {{"hidden", double(hidden)},
                                                                           {"threads", double(threads)},
                                                                           {"lower_ms", least.lower},
                                                                           {"codegen_ms", least.codegen},
                                                                           {"llvm_ms", least.llvm},
                                                                           {"total_ms", least.total()}}));
    };
    std::vector<Model> zoo;
    for (const char* const name : model_names) zoo.push_back(model_named(name));
    for (const Model model : options_.models(zoo)) {
      for (const int threads : options_.compiled_threads()) add(model, "default", threads, default_schedule(threads));
      add(model, "workers(4)", 4, cortex::Schedule::standard().workers(4));
    }
    return rows;
  }

 private:
  static Machine probed(const Options& options) { return probe_machine(options.all_threads(), options.smoke ? 1 : 10); }

  using Names = std::vector<std::pair<const char*, const char*>>;
  using Numbers = std::vector<std::pair<const char*, double>>;

  /// One line of a table, said and written.
  static Json say(const Names& names, const Numbers& numbers) {
    Json::Fields fields;
    for (const auto& [name, text] : names) std::fprintf(talk(), "  %-24s", text), fields.emplace_back(name, text);
    for (const auto& [name, number] : numbers)
      std::fprintf(talk(), "  %s %.4g", name, number), fields.emplace_back(name, number);
    std::fprintf(talk(), "\n");
    return Json::object(fields);
  }

  static inline const std::vector<Model> the_papers{Model::treefc, Model::dagrnn, Model::treegru, Model::treelstm,
                                                    Model::mvrnn};
  static inline const std::vector<std::string> by_level{"cortex", "cortex_nodedup", "torch_level", "openblas_level",
                                                        "onednn_level"};

  /// Adds a row for each of `systems` that is there and wanted, on so many threads; 0: on all that are given.
  void contest(std::vector<Json>& rows, Model model, int hidden, const Batches& batches,
               const std::vector<std::string>& systems, int threads = 0) {
    const Weights weights = random_weights(model, options_.hidden(hidden), batches.words);
    Contest contest(weights, batches, threads ? threads : options_.threads);
    for (const SystemKind& kind : present_)
      if (std::find(systems.begin(), systems.end(), kind.name) != systems.end()) contest.add(kind);
    finish(rows, contest);
  }

  /// Adds what Cortex does with a random cell.
  void cell_contest(std::vector<Json>& rows, const std::string& name, const Cell& cell, int hidden,
                    const Batches& batches) {
    const Weights weights = random_weights(cell, hidden);
    Contest contest(name, weights, batches, options_.threads,
                    {CellRecursion(cell, weights).states(batches), work_of(cell, weights.hidden, batches)});
    for (const char* const system : {"cortex", "cortex_nodedup"})
      contest.add(system, compiled(cell, weights, recipe_of(system, options_.threads)));
    std::fprintf(talk(), "\n%s: %s", name.c_str(), description(cell).c_str());
    finish(rows, contest, Results::right, {{"cell", description(cell)}});
  }

  /// What the results of schedules are to be: near the reference, or, of weights that are rounded, whatever they are;
  /// the rows tell by how much they differ.
  enum class Results { right, rounded };

  /// Adds a row for each schedule.
  void schedules(std::vector<Json>& rows, Model model, int hidden, std::size_t batch, int threads,
                 const std::vector<std::pair<std::string, cortex::Schedule>>& variants,
                 Results results = Results::right, std::size_t count = 10) {
    const Weights weights = random_weights(model, options_.hidden(hidden));
    const Batches batches = options_.inputs(model, batch, Trees::random, count);
    Contest contest(weights, batches, threads);
    for (const auto& [name, schedule] : variants) {
      Recipe recipe = recipe_of("cortex_nodedup", threads);
      recipe.schedule = schedule;
      contest.add(name, compiled(weights, recipe));
    }
    finish(rows, contest, results);
  }

  /// Times what takes part, and adds a row for each, with `more` behind.
  void finish(std::vector<Json>& rows, Contest& contest, Results results = Results::right,
              const Json::Fields& more = {}) {
    if (contest.contestants().empty()) return;
    contest.run(options_.effort());
    std::vector<Row> measured = contest.rows();
    for (Row& row : measured) row.right |= results == Results::rounded;
    print_rows(measured, contest.contestants(), machine_);
    for (const Row& row : measured) {
      rows.push_back(json_of(row, machine_, more));
      if (!row.right) throw std::runtime_error(row.system + " differs from recursion in double");
    }
  }

  Options options_;
  Machine machine_;
  std::vector<SystemKind> present_;
};

struct Experiment {
  const char* name;
  const char* title;
  std::vector<Json> (Experiments::*run)();
  const char* data = "random";
};
const std::vector<Experiment> all{
    {"sequences", "E4: sequences of length 100", &Experiments::sequences},
    {"activity", "E2: the TreeLSTM of 256, by activity, 1 thread", &Experiments::activity},
    {"ablation", "E5: ablation", &Experiments::ablation},
    {"unroll", "E6: unrolling", &Experiments::unroll},
    {"levels", "Filled levels", &Experiments::levels},
    {"pieces", "Calls in pieces, batches of 400", &Experiments::pieces},
    {"stored", "Weights in less memory", &Experiments::stored},
    {"sweeps", "Sweeps there and back", &Experiments::sweeps},
    {"groups", "Groups of threads, batches of 10", &Experiments::groups},
    {"refactor", "E7: refactoring", &Experiments::refactor},
    {"gated", "gated cells of nobody's, beside their floors", &Experiments::gated},
    {"treebank", "Tables and shared subtrees on the treebank's trees", &Experiments::treebank, "sst"},
    {"memory", "E9: memory of a call on batches of 10", &Experiments::memory},
    {"compile", "compile time", &Experiments::compile},
    {"pauses", "calls after pauses", &Experiments::pauses},
    {"overhead", "a call on one leaf", &Experiments::overhead},
    {"hidden", "E3: latency over hidden size, batches of 10", &Experiments::hidden},
    {"batch", "latency over batch size", &Experiments::batch},
    {"tree_size", "latency over the size of trees", &Experiments::tree_size},
};

int run(const Options& options) {
  if (options.json == "-") talk() = stderr;
  ResultsFile results(options.json);
  if (options.check) return 0;
  Experiments experiments(options);
  for (const Experiment& experiment : all) {
    if (!options.only.empty() &&
        std::find(options.only.begin(), options.only.end(), experiment.name) == options.only.end())
      continue;
    std::fprintf(talk(), "\n== %s\n", experiment.title);
    const double start = now_us();
    const OtherWork others;
    const std::vector<Json> rows = (experiments.*experiment.run)();
    const Json about = origin({{"data", experiment.data},
                               {"seed", std::size_t(options.seed)},
                               {"quick", int(options.quick || options.smoke)},
                               {"busy", int(experiments.busy(others))}});
    if (!rows.empty()) results.add(experiment.name, rows, about);
    std::fprintf(talk(), "(%.0f s)\n", (now_us() - start) / 1e6);
  }
  results.print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"What the paper measures beside the latency of its five models."};
  std::vector<std::string> names;
  for (const Experiment& experiment : all) names.push_back(experiment.name);
  app.add_option("--only", options.only, "Experiments: " + CLI::detail::join(names, ", "))
      ->delimiter(',')
      ->check(CLI::IsMember(names));
  app.add_option("--systems", options.systems, "Systems; without it all that are there")->delimiter(',');
  options.add_to(app);
  app.add_option("--seed", options.seed, "Of the random cells of gated")->capture_default_str();
  app.add_flag("--smoke", options.smoke, "Measure nothing: a few cases of each experiment, one round of small states");
  app.add_flag("--check", options.check, "Measure nothing: fail if these options, or the file of --json, will not do");
  return run_program(app, "experiments", argc, argv, [&] { return run(options); });
}
