// The barriers of a program held against what several workers do on many forests.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cortex/ir/races.hpp"
#include "cortex/lower/unroll.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/structure/linearizer.hpp"
#include "support/lowering.hpp"
#include "support/random_models.hpp"

namespace cortex::test {

/// A model's calls on random forests, numbered as a schedule asks. The model names accessors as those of `VertexSet`
/// are numbered: children first 0 and second 1, container kids 0, fields word 0 and feature 1.
class Calls {
 public:
  Calls(const ra::Graph& graph, const Schedule& schedule, std::uint64_t seed, int count);

  const Forest& forest(int call) const { return forests_[std::size_t(call)]; }
  /// The number of each of the forest's vertices.
  std::vector<std::int32_t> numbers(int call) const;

  std::vector<ir::StructureEnv> envs;
  ir::Storage weights;

 private:
  structure::Partition partition_;
  std::vector<Forest> forests_;
  std::vector<std::unique_ptr<structure::Workspace>> workspaces_;  // hold the arrays that `envs` point into
};

/// The first race of `program` in any of the calls, shared by 2 and 3 workers; "" if there is none.
std::string first_race(const ir::Program& program, const Calls& calls);

/// Which state differs in any bit between some two orders in which 3 workers take their turns; "" if none does.
std::string order_matters(const ir::Program& program, const ir::StructureEnv& env, const ir::Storage& weights);

int count_barriers(const ir::Program& program);

/// `program` without its `which`-th barrier.
ir::Program without_barrier(ir::Program program, int which);

/// What came of holding many programs against many calls.
struct BarrierTally {
  int programs = 0, refused = 0, barriers = 0;
  std::vector<std::string> unneeded;  // barriers without which no call has a race
};

/// Whether a pass comes when workers already share the program.
inline bool is_shared_after(const std::string& pass) {
  for (const char* late :
       {"share_work", "insert_barriers", "pack_weights", "tile_nests", "merge_rows", "share_loads", "alternate_sweeps",
        "prefetch_weights", "prefetch_rows", "divide_nests", "read_in_place", "hoist_shares", "resolve_structure",
        "approximate_activations", "vectorize", "flatten_storage"})
    if (pass == late) return true;
  return false;
}

/// The program with its barriers, also where there are none, from what `passes_of` gives.
inline const ir::Program& with_barriers(const std::vector<Snapshot>& passes) {
  const Snapshot* found = &passes.front();
  for (const Snapshot& s : passes)
    if (s.pass == "share_work" || s.pass == "insert_barriers" || !is_shared_after(s.pass)) found = &s;
  return found->program;
}

}  // namespace cortex::test
