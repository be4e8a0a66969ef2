// The list of passes from lowered ILIR to code for the device: the only place where their order is written.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ir/verify.hpp"
#include "cortex/pass/approximate_activations.hpp"
#include "cortex/pass/chain_sums.hpp"
#include "cortex/pass/cut_ranges.hpp"
#include "cortex/pass/distribute_rows.hpp"
#include "cortex/pass/divide_nests.hpp"
#include "cortex/pass/flatten_storage.hpp"
#include "cortex/pass/forward_stores.hpp"
#include "cortex/pass/fuse_edges.hpp"
#include "cortex/pass/fuse_into_sums.hpp"
#include "cortex/pass/fuse_nests.hpp"
#include "cortex/pass/hoist_shares.hpp"
#include "cortex/pass/index_densely.hpp"
#include "cortex/pass/inline_temporaries.hpp"
#include "cortex/pass/insert_barriers.hpp"
#include "cortex/pass/nest_sums.hpp"
#include "cortex/pass/read_in_place.hpp"
#include "cortex/pass/recycle_states.hpp"
#include "cortex/pass/remove_dead.hpp"
#include "cortex/pass/resolve_structure.hpp"
#include "cortex/pass/share_loads.hpp"
#include "cortex/pass/share_storage.hpp"
#include "cortex/pass/tabulate.hpp"
#include "cortex/pass/transpose_matrices.hpp"
#include "cortex/pass/vectorize.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/schedule/alternate_sweeps.hpp"
#include "cortex/schedule/machine_model.hpp"
#include "cortex/schedule/memory_hints.hpp"
#include "cortex/schedule/merge_rows.hpp"
#include "cortex/schedule/pack_weights.hpp"
#include "cortex/schedule/share_work.hpp"
#include "cortex/schedule/slice_contractions.hpp"
#include "cortex/schedule/store_weights.hpp"
#include "cortex/schedule/tile_nests.hpp"
#include "cortex/schedule/tile_products.hpp"

namespace cortex::pass {

/// How far a run has come. The last programs of the first two stages are kept to be looked at, and the cost model
/// counts what those of the first one do: later ones do not show how often a call makes what stands in them.
enum class Stage : std::uint8_t {
  scheduled,  // loops that workers share, each nest once
  tiled,      // each worker's own iterations of these, and nests written out for each number of rows
  device,     // what a machine runs
};

/// Is told of each pass that changed something.
class PassObserver {
 public:
  virtual void after(const char* pass, Stage stage, const ir::Program& program) = 0;

 protected:
  ~PassObserver() = default;
};

/// What a pipeline run does beside compiling.
struct PipelineOptions {
  bool verify = false;               // check the program after each pass
  PassObserver* observer = nullptr;  // of the run, or none
  schedule::CacheSizes caches;       // of a core
};

/// Runs passes one after another on a program.
class Pipeline {
 public:
  Pipeline(ir::Program program, const PipelineOptions& options)
      : program_(std::move(program)), options_(options), dump_(std::getenv("CORTEX_DUMP")) {
    report("lower");
  }

  template <class Pass>
  void run(const char* name, Pass pass) {
    const ir::Stmt body = pass(program_.body);
    if (body.same_as(program_.body)) return;
    program_.body = body;
    collect_buffers();
    report(name);
  }

  /// The steps of a loop schedule; those behind register tiles belong to their stage.
  void by_hand(const LoopSchedule& loops, const Schedule& schedule, const Target& target) {
    const int workers = schedule.max_workers;
    if (workers > 1 && !loops.has_barriers())
      throw Error(Code::invalid_schedule, "loop schedule: " + std::to_string(workers) +
                                              (target.backend == Backend::cuda ? " blocks of a group" : " workers") +
                                              " need the step insert_barriers(), after parallel or share_work()");
    enter(ir::Level::scheduled);
    program_.body = loops.named(program_.body);
    collect_buffers();
    run("store_weights", [&](const ir::Stmt& body) { return schedule::store_weights(body, schedule); });
    for (std::size_t step = 0; step < loops.size(); ++step) {
      if (loops.makes_tiles(step)) enter(Stage::tiled);
      run(loops.text(step).c_str(), [&](const ir::Stmt& body) { return loops.apply(step, body, target); });
    }
  }

  /// Runs a pass that changes more of the program than its loops.
  template <class Pass>
  void run_on_program(const char* name, Pass pass) {
    const ir::Stmt before = program_.body;
    pass(program_);
    if (program_.body.same_as(before)) return;
    collect_buffers();
    report(name);
  }

  bool may_be_divided() const { return program_.may_be_divided; }
  Vector<RowsInPlace> rows_in_place() const { return find_rows_in_place(program_); }

  void enter(ir::Level level) { program_.level = level; }
  void enter(Stage stage) { stage_ = stage; }

  void flatten() {
    program_ = flatten_storage(program_);
    report("flatten_storage");
  }

  ir::Program take() { return std::move(program_); }

 private:
  /// States stay at the front; the others follow in order of first use.
  void collect_buffers() {
    Vector<ir::Buffer> result;
    PointerSet seen;
    const auto add = [&](const ir::Buffer& buffer) {
      if (buffer->scope != ir::Scope::local && seen.insert(buffer.id())) result.push_back(buffer);
    };
    for (const ir::Buffer& buffer : program_.buffers)
      if (buffer->role == ir::Role::state) add(buffer);
    ir::visit_with(
        program_.body, [&](const ir::Load& load) { add(load.buffer); },
        [&](const ir::Store& store) { add(store.buffer); });
    program_.buffers = std::move(result);
  }

  void report(const char* name) {
    if (options_.verify) ir::verify(program_, program_.level);
    if (options_.observer) options_.observer->after(name, stage_, program_);
    if (!dump_) return;
    const std::string text = ir::print(program_);
    std::fprintf(stderr, "--- after %s\n%s", name, text.c_str());
  }

  ir::Program program_;
  Stage stage_ = Stage::scheduled;
  const PipelineOptions& options_;
  const char* dump_;
};

/// Whether nests are looked for that tables can stand for: the interpreter would take too long to make the tables
/// unless they are asked for.
inline bool tabulates(const Schedule& schedule, const Target& target) {
  return schedule.tabulating == Tabulating::on || target.backend != Backend::interpreter;
}
inline TablesOf tables_of(const Schedule& schedule) {
  return schedule.tabulating == Tabulating::off ? TablesOf::weights : TablesOf::words_and_weights;
}

/// What every target's schedule begins with. `gates`: how many products a nest may accumulate side by side.
/// `columns`: how many results sums should have that compute what they read (`fuse_into_sums`); 0: none does.
inline void make_nests(Pipeline& p, const Schedule& schedule, int gates, int columns = 0) {
  // Few, large nests
  if (schedule.fuses) p.run("inline_temporaries", inline_temporaries);
  p.run("remove_dead", remove_dead);
  if (schedule.fuses && columns) p.run("fuse_into_sums", [&](const ir::Stmt& s) { return fuse_into_sums(s, columns); });
  p.run("distribute_rows", distribute_rows);
  if (schedule.fuses) p.run("fuse_edges", fuse_edges);
  if (schedule.fuses) p.run("fuse_nests", [&](const ir::Stmt& s) { return fuse_nests(s, gates, true); });

  // No temporary larger than need be
  p.run("index_densely", index_densely);
  if (schedule.fuses) p.run("forward_stores", forward_stores);
  p.run("remove_dead", remove_dead);
  p.run("chain_sums", chain_sums);
}

/// The compiler's own schedule of a program's loops, but for register tiles: what rows can be read where they are
/// bound.
inline Vector<RowsInPlace> schedule_nests(Pipeline& p, const Schedule& schedule, const Target& target) {
  const bool shared = schedule.max_workers > 1;
  p.run_on_program("transpose_matrices",
                   [&](ir::Program& program) { transpose_matrices(program, schedule::lanes_of(target, DType::f32)); });
  if (schedule.refactored.empty()) p.run("slice_contractions", schedule::slice_contractions);
  const bool in_tiles = schedule::uses_matrix_unit(target, schedule);  // which are of plain products
  if (schedule.fuses && schedule.refactored.empty() && !in_tiles) p.run("nest_sums", nest_sums);
  make_nests(p, schedule, schedule::most_gates(target, schedule.tiling),
             schedule::lanes_of(target, DType::f32) * schedule.max_workers);
  p.run("cut_ranges", [&](const ir::Stmt& s) { return cut_ranges(s, schedule::lanes_of(target, DType::f32)); });
  p.run("distribute_rows", distribute_rows);

  // What is a function of weights, or of a word, is read and not computed
  if (tabulates(schedule, target))
    p.run_on_program("tabulate", [&](ir::Program& program) { tabulate(program, tables_of(schedule)); });

  // States that nobody asks for share rows
  p.run_on_program("recycle_states", recycle_states);

  // What leaves copy from a weight as it is, is read from there
  const bool as_bound = schedule.stored.empty();  // `store_weights` leaves alone what is looked up
  Vector<RowsInPlace> in_place = as_bound ? p.rows_in_place() : Vector<RowsInPlace>();

  // Work for each worker
  p.enter(ir::Level::scheduled);
  if (shared) p.run("share_work", [](const ir::Stmt& s) { return schedule::share_work(s); });
  if (shared) p.run("insert_barriers", insert_barriers);
  p.run("share_storage", [&](const ir::Stmt& s) { return share_storage(s, shared); });

  // Weights as tiles read them
  p.run("store_weights", [&](const ir::Stmt& s) { return schedule::store_weights(s, schedule); });
  p.run("tile_weights", [&](const ir::Stmt& s) { return schedule::tile_weights(s, target, schedule); });
  p.run("pack_weights", [&](const ir::Stmt& s) { return schedule::pack_weights(s, target); });
  return in_place;
}

/// Register tiles over packed weights, of the nodes of one piece where calls may have several.
inline void tile_loops(Pipeline& p, const Schedule& schedule, const Target& target,
                       const schedule::CacheSizes& caches) {
  p.enter(Stage::tiled);
  p.run("tile_nests", [&](const ir::Stmt& s) {
    return schedule::tile_nests(s, target, schedule.tiling, caches, schedule.team_sizes());
  });
  p.run("merge_rows", schedule::merge_rows);
  p.run("share_loads", share_loads);
  p.run("alternate_sweeps", [&](const ir::Stmt& s) { return schedule::alternate_sweeps(s, schedule, caches.second); });
  p.run("prefetch_weights",
        [&](const ir::Stmt& s) { return schedule::prefetch_weights(s, target.vector_bytes, caches.first); });
  if (schedule.max_workers > 1) p.run("prefetch_rows", schedule::prefetch_rows);
  if (p.may_be_divided()) p.run("divide_nests", divide_nests);
}

/// A schedule of the loops by hand. Loops that workers share are cut between whole vectors.
inline void schedule_by_hand(Pipeline& p, const Schedule& schedule, const Target& target) {
  p.by_hand(*schedule.by_hand, schedule, target);
  p.enter(Stage::tiled);
  p.run("share_iterations",
        [&](const ir::Stmt& s) { return schedule::share_iterations(s, schedule::lanes_of(target, DType::f32)); });
}

/// Loops as the schedule says: by hand, or the compiler's own.
inline void schedule_loops(Pipeline& p, const Schedule& schedule, const Target& target,
                           const schedule::CacheSizes& caches) {
  if (schedule.by_hand) return schedule_by_hand(p, schedule, target);
  const Vector<RowsInPlace> in_place = schedule_nests(p, schedule, target);
  tile_loops(p, schedule, target, caches);
  if (!in_place.empty())
    p.run_on_program("read_in_place", [&](ir::Program& program) { read_in_place(program, in_place); });
}

/// The program as the cost model sees it: the last one of the stage `scheduled`.
inline ir::Program before_tiles(const ir::Program& lowered, const Schedule& schedule, const Target& target) {
  struct Last final : PassObserver {
    ir::Program scheduled;
    void after(const char*, Stage stage, const ir::Program& program) override {
      if (stage == Stage::scheduled) scheduled = program;
    }
  } last;
  const PipelineOptions options{false, &last, {}};
  Pipeline p(lowered, options);
  if (schedule.by_hand)
    schedule_by_hand(p, schedule, target);  // to the end: later steps may be refused as well
  else
    schedule_nests(p, schedule, target);
  return last.scheduled;
}

/// From the lowered ILIR (level `loops`) to level `device`. With `CORTEX_DUMP` set, prints after each pass that changed
/// something.
inline ir::Program run_pipeline(const ir::Program& lowered, const Schedule& schedule, const Target& target,
                                const PipelineOptions& options = {}) {
  Pipeline p(lowered, options);
  schedule_loops(p, schedule, target, options.caches);

  // Down to the machine
  p.enter(Stage::device);
  if (schedule.max_workers > 1) p.run("hoist_shares", hoist_shares);
  p.run("resolve_structure",
        [&](const ir::Stmt& s) { return resolve_structure(s, lowered.field_components, lowered.chains); });
  if (!schedule.exact) p.run("approximate_activations", approximate_activations);
  p.run("vectorize", vectorize);
  p.flatten();
  return p.take();
}

}  // namespace cortex::pass
