// How a functor numbers nodes: by a linearizer that its type names, or by one that is known at run time alone.
#pragma once

#include <cstddef>
#include <span>

#include "cortex/structure/linearizer.hpp"

namespace cortex::runtime {

/// In place of a model's set of accessors: whatever they are.
struct AnyAccessors {};

/// The linearizer of `Set`; it has no state.
template <class Node, class Set>
struct Numberer {
  using Linearizer = structure::Linearizer<Node, Set>;
  using Checks = std::span<const structure::FieldCheck>;

  /// `scratch` is room for addresses of roots, for numberers that need it.
  template <class Roots, class... ArenaIfAny>
  void run(structure::Workspace& workspace, structure::Block<const void*>&, const Structure& structure, Checks checks,
           Roots& roots, const ArenaIfAny&... arena) const {
    Linearizer::run(workspace, structure, checks, roots, arena...);
  }
  template <class... ArenaIfAny>
  void run_listed(structure::Workspace& workspace, const Structure& structure, Checks checks,
                  std::span<const void* const> roots, const ArenaIfAny&... arena) const {
    Linearizer::run_listed(workspace, structure, checks, roots, arena...);
  }
};

/// A linearizer behind a pointer: one call through it for each call of the model.
template <class Node>
class Numberer<Node, AnyAccessors> {
 public:
  using Checks = std::span<const structure::FieldCheck>;

  template <class Set>
  explicit Numberer(const Numberer<Node, Set>&)
      : run_listed_([](structure::Workspace& workspace, const Structure& structure, Checks checks,
                       std::span<const void* const> roots, const Arena<Node>& arena) {
          structure::Linearizer<Node, Set>::run_listed(workspace, structure, checks, roots, arena);
        }),
        needs_arena_(structure::uses_arena<Set, Node>) {}

  template <class Roots, class... ArenaIfAny>
  void run(structure::Workspace& workspace, structure::Block<const void*>& scratch, const Structure& structure,
           Checks checks, Roots& roots, const ArenaIfAny&... arena) const {
    const std::size_t count = structure::Linearizer<Node, structure::Accessors<>>::list(scratch, roots, arena...);
    run_listed(workspace, structure, checks, {scratch.data(), count}, arena...);
  }
  void run_listed(structure::Workspace& workspace, const Structure& structure, Checks checks,
                  std::span<const void* const> roots, const Arena<Node>& arena) const {
    run_listed_(workspace, structure, checks, roots, arena);
  }
  void run_listed(structure::Workspace& workspace, const Structure& structure, Checks checks,
                  std::span<const void* const> roots) const {
    if (needs_arena_)
      throw Error(Code::invalid_argument,
                  "children are indices here: call with the arena that they index, "
                  "model(cortex::arena(nodes), roots)");
    run_listed_(workspace, structure, checks, roots, {});
  }

 private:
  void (*run_listed_)(structure::Workspace&, const Structure&, Checks, std::span<const void* const>,
                      const Arena<Node>&);
  bool needs_arena_;
};

}  // namespace cortex::runtime
