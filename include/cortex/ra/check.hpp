// Whether an operator graph is well formed: each operator by itself, what its recursions join and in which order they
// read one another, and what they read of the nodes; for graphs made by hand as for those that lambdas become.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/names.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ra/check_op.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/recursions.hpp"

namespace cortex::ra {

/// Checks that each placeholder that `recursion` reads is one of its own or of a recursion before it; throws
/// `Error{invalid_model}`.
inline void check_order(const Graph& graph, int recursion) {
  const Vector<bool> reads = operators_of(graph, recursion);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (!reads[i] || graph.ops[i].kind != OpKind::placeholder) continue;
    const int state = state_of(graph, int(i));
    if (state >= 0 && graph.states[std::size_t(state)].recursion <= recursion) continue;
    const auto own = [&](const State& s) { return s.recursion == recursion; };
    const State& first = *std::find_if(graph.states.begin(), graph.states.end(), own);
    const std::string read = in_quotes(graph.ops[i].name()),
                      reader = in_quotes(graph.ops[std::size_t(first.placeholder)].name());
    throw Error(Code::invalid_model,
                detail::joined({"model '", graph.name, "': what computes ", reader, " reads placeholder ", read,
                                ", which no recursion so far computes; join ", read,
                                " to its body before, or both at once where each needs the other, as in "
                                "recursion(h, h_body, c, c_body)"}));
  }
}

/// Checks that each state joins a placeholder to an operator of its dimensions and type that is computed, once, and
/// that recursions read only what is computed before them; throws `Error{invalid_model}`.
inline void check_states(const Graph& graph) {
  const auto fail = [&](std::initializer_list<std::string_view> what) {
    throw Error(Code::invalid_model, detail::joined({"model '", graph.name, "': ", detail::joined(what)}));
  };
  const int count = int(graph.ops.size());
  Vector<int> defined(graph.ops.size());
  if (graph.states.empty())
    fail({"it has no state: recursion_op joins a placeholder to the operator that computes it"});
  for (const State& state : graph.states) {
    if (state.placeholder < 0 || state.placeholder >= count || state.body < 0 || state.body >= count)
      fail({"a state names no operator"});
    const Op& placeholder = graph.ops[std::size_t(state.placeholder)];
    const Op& body = graph.ops[std::size_t(state.body)];
    const std::string names = in_quotes(body.name()) + " cannot be the body of " + in_quotes(placeholder.name());
    if (placeholder.kind != OpKind::placeholder) fail({in_quotes(placeholder.name()), " is not a placeholder"});
    if (defined[std::size_t(state.placeholder)]++)
      fail({"placeholder ", in_quotes(placeholder.name()), " is defined twice"});
    if (body.kind != OpKind::compute && body.kind != OpKind::if_then_else) fail({names, ": it is not computed"});
    if (body.dims != placeholder.dims)
      fail({names, ": its dimensions are ", detail::unlike(body.dims, placeholder.dims)});
    if (body.buffer->dtype != placeholder.buffer->dtype)
      fail({names, ": one is ", to_string(body.buffer->dtype), ", the other ", to_string(placeholder.buffer->dtype)});
  }
  for (int r = 0; r < num_recursions(graph); ++r) {
    check_order(graph, r);
    direction_of(graph, r);
  }
}

/// Checks that `keys` are those of all accessors that the recursions read, or more of those of the model: calls read no
/// others of the nodes. Throws `Error{invalid_model}`.
inline void check_accessors(const Graph& graph, const Vector<const void*>& keys) {
  for (const void* key : keys) {
    const auto is_it = [&](const Accessor& accessor) { return accessor.key == key; };
    if (!any_of(graph.children_named, is_it) && !any_of(graph.containers, is_it) && !any_of(graph.fields, is_it))
      throw Error(
          Code::invalid_model,
          detail::joined({"the type of a result of model ", in_quotes(graph.name), " names an accessor that the ",
                          "model does not read: a C++ variable that began with an operator of another model ",
                          "holds one of its own; use a variable of its own"}));
  }
  const auto require = [&](const Op& op, const Accessor& accessor) {
    if (contains(keys, accessor.key)) return;
    throw Error(Code::invalid_model,
                detail::joined({"operator ", in_quotes(op.name()), " of model ", in_quotes(graph.name), " reads ",
                                in_quotes(accessor.name), " of the nodes, and the results listed do not say so: they ",
                                "read a placeholder or an operator of a recursion where they could read what it gave; ",
                                "read that, or list it among the results"}));
  };
  for (int r = 0; r < num_recursions(graph); ++r) {
    const Vector<bool> needed = operators_of(graph, r);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      const Op& op = graph.ops[i];
      if (!needed[i]) continue;
      if (op.kind == OpKind::field) require(op, graph.fields[std::size_t(op.buffer->slot)]);
      for (const ir::Expr& e : {op.body, op.condition})
        if (e)
          ir::visit_with(e, [&](const ir::UfCall& call) {
            const auto number = std::size_t(call.uf.accessor);
            switch (call.uf.kind) {
              case ir::UfKind::child: return require(op, graph.children_named[number]);
              case ir::UfKind::kth_child:
              case ir::UfKind::num_children: return require(op, graph.containers[number]);
              case ir::UfKind::field: return require(op, graph.fields[number]);
              default: return;
            }
          });
    }
  }
}

/// Checks that every placeholder is defined; throws `Error{invalid_model}`.
inline void check_complete(const Graph& graph) {
  const auto fail = [&](std::initializer_list<std::string_view> what) {
    throw Error(Code::invalid_model, detail::joined({"model '", graph.name, "': ", detail::joined(what)}));
  };
  for (std::size_t i = 0; i < graph.ops.size(); ++i)
    if (graph.ops[i].kind == OpKind::placeholder && state_of(graph, int(i)) < 0)
      fail({"placeholder ", in_quotes(graph.ops[i].name()), " is never defined; join it to its body in recursion_op"});
}

/// Checks that operators which read one another are not nested more deeply than passes descend: an operator that is
/// computed where it is read stands there as an expression. Throws `Error{invalid_model}`.
inline void check_depth(const Graph& graph) {
  Vector<int> depth;  // per operator: of all that its value is made of
  for (const Op& op : graph.ops) {
    int read = 0;
    const auto look = [&](int source) { read = std::max(read, depth[std::size_t(source)]); };
    const ir::Expr& own = op.kind == OpKind::if_then_else ? op.condition : op.body;
    if (own)
      ir::visit_with(own, [&](const ir::Load& load) {
        if (const int source = graph.find(load.buffer); source >= 0) look(source);
      });
    if (op.kind == OpKind::if_then_else) look(op.then_op), look(op.else_op);
    const int here = own ? own->depth : 0;
    depth.push_back(std::max(here, read + std::max(here - 2, 2)));  // a read and its index are two operations
    if (depth.back() > ir::max_depth)
      throw Error(Code::invalid_model,
                  detail::joined({"operator ", in_quotes(op.name()), " of model ", in_quotes(graph.name), ": with the ",
                                  "operators that it reads, more than ", std::to_string(ir::max_depth),
                                  " operations stand inside one another; what is added up many times is a sum, and "
                                  "what follows from the step before a recursion"}));
  }
}

/// Checks a whole graph: each operator, and the states. Throws `Error{invalid_model}`.
inline void check(const Graph& graph) {
  if (graph.name.empty()) throw Error(Code::invalid_model, "a model needs a name");
  if (graph.max_children < 0)
    throw Error(Code::invalid_model, "model " + in_quotes(graph.name) + ": a negative number of children");
  for (std::size_t i = 0; i < graph.ops.size(); ++i) check_op(graph, int(i));
  check_states(graph);
  check_complete(graph);
  check_depth(graph);
}

}  // namespace cortex::ra
