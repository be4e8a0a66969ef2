// The operator graph as text, in the style of the paper's Listing 1: one operator a line.
//
//   tree_rnn: tree, at most 2 children
//   Emb  = input([vocabulary, hidden=256]) f32
//   rnn  = placeholder([hidden=256]) f32
//   leaf = compute([hidden=256], lambda n,i: Emb[word(n),i])
//   body = if_then_else(lambda n: is_leaf(n), leaf, rec)
//   recursion_op(rnn, body)
#pragma once

#include <algorithm>
#include <string>

#include "cortex/base/vector.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/recursions.hpp"

namespace cortex::ra {

namespace detail {

inline std::string text_of(const Vector<Dim>& dims) {
  std::string text = "[";
  for (std::size_t d = 0; d < dims.size(); ++d) {
    text += (d ? ", " : "") + dims[d].name();
    if (dims[d].kind() != DimKind::open) text += "=" + std::to_string(dims[d].extent());
  }
  return text + "]";
}

inline std::string text_of(const Graph& graph, const Op& op) {
  ir::Printer printer;  // one an operator: each has variables of its own, and all may be called n and i
  const std::string dims = text_of(op.dims), type(to_string(op.buffer->dtype));
  const auto name_of = [&](int i) {
    return i >= 0 && std::size_t(i) < graph.ops.size() ? graph.ops[std::size_t(i)].name() : "?";
  };
  const auto lambda = [&](const ir::Expr& result) {
    std::string text = "lambda " + printer.text(op.node);
    for (const ir::Expr& var : op.index_vars) text += "," + printer.text(var);
    return text + ": " + printer.text(result);
  };
  switch (op.kind) {
    case OpKind::input: return "input(" + dims + ") " + type;
    case OpKind::placeholder: return "placeholder(" + dims + ") " + type;
    case OpKind::field: {
      const int slot = op.buffer->slot;
      const bool listed = slot >= 0 && std::size_t(slot) < graph.fields.size();
      return "field(" + (listed ? graph.fields[std::size_t(slot)].name : "?") + ", " + dims + ") " + type;
    }
    case OpKind::compute:
      return (op.at_roots ? "readout(" : "compute(") + dims + ", " + lambda(op.body) + ")" +
             (op.buffer->dtype == DType::f32 ? "" : " " + type);
    case OpKind::if_then_else:
      return "if_then_else(" + lambda(op.condition) + ", " + name_of(op.then_op) + ", " + name_of(op.else_op) + ")";
  }
  return "?";
}

/// Which recursion of several, and which way it goes.
inline std::string note_of(const Graph& graph, int recursion) {
  constexpr const char* ways[] = {"children first", "parents first", "any order", "roots"};
  return "  # " + std::to_string(recursion) + ": " + ways[std::size_t(direction_of(graph, recursion))];
}

}  // namespace detail

/// The whole graph. Computes are in f32 where no type is given.
inline std::string print(const Graph& graph) {
  constexpr const char* kinds[] = {"sequence", "tree", "DAG"};
  std::string text = graph.name + ": " + kinds[std::size_t(graph.structure)];
  const bool counted = graph.max_children > 0 && graph.structure != StructureKind::sequence;
  if (counted)
    text += ", at most " + std::to_string(graph.max_children) + (graph.max_children == 1 ? " child" : " children");
  text += "\n";
  std::size_t width = 0;
  for (const Op& op : graph.ops) width = std::max(width, op.name().size());
  for (const Op& op : graph.ops)
    text += op.name() + std::string(width - op.name().size(), ' ') + " = " + detail::text_of(graph, op) + "\n";
  const bool several = num_recursions(graph) > 1;
  for (int r = 0; r < num_recursions(graph); ++r)
    for (const State& state : graph.states)
      if (state.recursion == r)
        text += "recursion_op(" + graph.ops[std::size_t(state.placeholder)].name() + ", " +
                graph.ops[std::size_t(state.body)].name() + ")" + (several ? detail::note_of(graph, r) : "") + "\n";
  return text;
}

}  // namespace cortex::ra
