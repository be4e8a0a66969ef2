// The results of a call as the tuner looks at them: on the host, whatever has computed them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/workspace.hpp"

namespace cortex::tuning {

/// A look at a call, which has to outlive it.
struct CallResults {
  /// Some of its roots, whose nodes have numbers of their own.
  struct Group {
    const structure::Arrays& arrays;
    std::function<const std::byte*(const runtime::StateView&, std::int32_t)> row;  // of a state at a node
  };

  const runtime::Plan& plan;
  const runtime::WeightSet& weights;
  Vector<Group> groups;
  Vector<runtime::RootPlace> roots;  // [root of the call] where it is

  CallResults(const runtime::Plan& own_plan, const runtime::WeightSet& own_weights)
      : plan(own_plan), weights(own_weights) {}
  /// What a CPU has computed lies in its workspace.
  CallResults(const runtime::Workspace& call) : CallResults(call.plan(), call.weights()) {
    for (int g = 0; g < call.num_groups(); ++g) {
      const runtime::Workspace& group = call.group(g);
      groups.push_back({group.arrays(), [&group](const runtime::StateView& state, std::int32_t node) {
                          return group.row(state, node);
                        }});
    }
    for (std::size_t i = 0; i < call.num_roots(); ++i) roots.push_back(call.root_place(i));
  }
};

}  // namespace cortex::tuning
