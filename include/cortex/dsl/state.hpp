// The model that lambdas add to: the graph so far and the numbers of accessors. Nothing here is a template.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/dsl/value.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ra/well_formed.hpp"

namespace cortex::dsl {

/// Shared by a `Model` and every handle that came from it, so handles stay valid when the `Model` is gone.
struct ModelState {
  ra::Graph graph;
  bool complete = false;  // its program is made

  /// The number of the accessor of that C++ type in its group; a new one at its first use.
  int number_of(Vector<ra::Accessor>& group, const ra::Accessor& accessor) {
    for (std::size_t i = 0; i < group.size(); ++i)
      if (group[i].key == accessor.key) return int(i);
    group.push_back(accessor);
    return int(group.size()) - 1;
  }

  const ra::Op& op(const ir::Buffer& buffer) const {
    const int number = graph.find(buffer);
    if (number < 0)
      throw Error(Code::invalid_model, "'" + buffer->name + "' is not part of model '" + graph.name + "'");
    return graph.ops[std::size_t(number)];
  }
};

using SharedState = std::shared_ptr<ModelState>;

/// Undoes what a call has added to a model if the call does not come to its end.
class Transaction {
 public:
  explicit Transaction(ModelState& state)
      : graph_(state.graph),
        ops_(graph_.ops.size()),
        children_(graph_.children_named.size()),
        containers_(graph_.containers.size()),
        fields_(graph_.fields.size()),
        states_(graph_.states.size()) {
    if (state.complete)
      throw Error(Code::invalid_model,
                  "model '" + graph_.name + "' is complete: recursion_op or program is the last call on it");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (committed_) return;
    const auto cut = [](auto& list, std::size_t size) {
      while (list.size() > size) list.pop_back();
    };
    cut(graph_.ops, ops_);
    cut(graph_.children_named, children_);
    cut(graph_.containers, containers_);
    cut(graph_.fields, fields_);
    cut(graph_.states, states_);
  }
  void commit() { committed_ = true; }

 private:
  ra::Graph& graph_;
  std::size_t ops_, children_, containers_, fields_, states_;
  bool committed_ = false;
};

/// The names of variables in printed IR. Operators' indices are told from those of reductions.
inline std::string index_name(std::size_t position) {
  constexpr const char* names[] = {"i", "j", "l", "m"};
  return position < 4 ? names[position] : "i" + std::to_string(position);
}

/// A new operator with its buffer; not yet part of the graph.
inline ra::Op new_op(const ModelState& state, ra::OpKind kind, std::string name, DType dtype, Vector<Dim> dims,
                     int slot = -1) {
  if (name.empty()) throw Error(Code::invalid_model, "model '" + state.graph.name + "': an operator needs a name");
  ir::BufferInfo info;
  info.name = std::move(name);
  info.dtype = dtype;
  info.dims = dims;
  info.slot = slot;
  switch (kind) {
    case ra::OpKind::input: info.role = ir::Role::weight; break;
    case ra::OpKind::field: info.role = ir::Role::field; break;
    case ra::OpKind::placeholder: info.role = ir::Role::state; break;
    case ra::OpKind::compute:
    case ra::OpKind::if_then_else: info.role = ir::Role::temp; break;
  }
  if (kind != ra::OpKind::input) info.dims.insert(info.dims.begin(), dims::node);
  ra::Op op;
  op.kind = kind;
  op.buffer = ir::Buffer(std::move(info));
  op.dims = std::move(dims);
  return op;
}

/// Adds `op` at the end of the graph and checks it there; before it, the values that it uses again and again.
inline ir::Buffer add(ModelState& state, ra::Op op) {
  const ir::Buffer buffer = op.buffer;
  const auto append = [&](ra::Op& each) {
    state.graph.ops.push_back(std::move(each));
    ra::require_op(state.graph, int(state.graph.ops.size()) - 1);
  };
  for (ra::Op& value : ra::shared_values(op)) append(value);
  append(op);
  return buffer;
}

/// R1: the next input, bound by name.
inline ir::Buffer add_input(ModelState& state, std::string name, DType dtype, Vector<Dim> dims) {
  Transaction transaction(state);
  int slot = 0;
  for (const ra::Op& op : state.graph.ops) slot += op.kind == ra::OpKind::input;
  const ir::Buffer buffer = add(state, new_op(state, ra::OpKind::input, std::move(name), dtype, std::move(dims), slot));
  transaction.commit();
  return buffer;
}

/// R2.
inline ir::Buffer add_placeholder(ModelState& state, std::string name, DType dtype, Vector<Dim> dims) {
  Transaction transaction(state);
  const ir::Buffer buffer = add(state, new_op(state, ra::OpKind::placeholder, std::move(name), dtype, std::move(dims)));
  transaction.commit();
  return buffer;
}

/// R1, data of the node: the operator that stands for a floating-point field.
inline ir::Buffer add_field(ModelState& state, std::string name, ra::Accessor accessor, Vector<Dim> dims) {
  Transaction transaction(state);
  if (accessor.own_length) {  // as many as the dimensions hold; too many are refused below
    constexpr std::int64_t most = std::numeric_limits<int>::max();
    std::int64_t components = 1;
    for (const Dim& dim : dims)
      components = std::min(components * std::clamp<std::int64_t>(dim.extent(), 0, most), most);
    accessor.components = int(components);
  }
  const int slot = state.number_of(state.graph.fields, accessor);
  const ir::Buffer buffer =
      add(state, new_op(state, ra::OpKind::field, std::move(name), accessor.dtype, std::move(dims), slot));
  transaction.commit();
  return buffer;
}

/// A name that no operator has yet: `wish`, or `wish` with a number.
inline std::string free_name(const ModelState& state, const std::string& wish) {
  std::string name = wish;
  for (int i = 2; state.graph.find(name) >= 0; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

/// The field operator of a scalar field that is read without having been declared; made at the first use.
inline ir::Buffer scalar_field(ModelState& state, const ra::Accessor& accessor) {
  const int slot = state.number_of(state.graph.fields, accessor);
  for (const ra::Op& op : state.graph.ops)
    if (op.kind == ra::OpKind::field && op.buffer->slot == slot && op.dims.empty()) return op.buffer;
  return add_field(state, free_name(state, "node_" + accessor.name), accessor, {});
}

/// R3: an operator whose value at [node, vars...] is `body`.
inline ir::Buffer add_compute(ModelState& state, std::string name, Vector<Dim> dims, ir::Expr node,
                              Vector<ir::Expr> vars, ir::Expr body) {
  ra::Op op = new_op(state, ra::OpKind::compute, std::move(name), body.dtype(), std::move(dims));
  op.node = std::move(node);
  op.index_vars = std::move(vars);
  op.body = std::move(body);
  return add(state, std::move(op));
}

/// What is branched to: an operator as it is, data of the node as an operator "<field>_read" that reads it.
inline ir::Buffer as_branch(ModelState& state, const ir::Buffer& branch) {
  const ra::Op op = state.op(branch);
  if (op.kind != ra::OpKind::field) return branch;
  const ir::Expr node = ir::Var::make("n");
  Vector<ir::Expr> vars, indices{node};
  for (std::size_t d = 0; d < op.dims.size(); ++d) {
    vars.push_back(ir::Var::make(index_name(d)));
    indices.push_back(vars.back());
  }
  return add_compute(state, free_name(state, branch->name + "_read"), op.dims, node, vars,
                     ir::Load::make(branch, std::move(indices)));
}

/// R5: `then_branch` at the nodes where `condition` holds, `else_branch` at the others. An empty name becomes
/// "<then>_or_<else>".
inline ir::Buffer add_branch(ModelState& state, std::string name, ir::Expr node, ir::Expr condition,
                             const ir::Buffer& then_branch, const ir::Buffer& else_branch, int case_number = -1,
                             ir::Expr key = {}, Vector<std::int64_t> cases = {}) {
  if (name.empty()) name = free_name(state, then_branch->name + "_or_" + else_branch->name);
  const ir::Buffer then_read = as_branch(state, then_branch), else_read = as_branch(state, else_branch);
  ra::Op op = new_op(state, ra::OpKind::if_then_else, std::move(name), then_read->dtype, state.op(then_read).dims);
  op.node = std::move(node);
  op.condition = std::move(condition);
  op.then_op = state.graph.find(then_read);
  op.else_op = state.graph.find(else_read);
  op.case_number = case_number;
  op.key = std::move(key);
  op.cases = std::move(cases);
  return add(state, std::move(op));
}

/// R6: a recursion of its own that joins placeholders to their bodies; the graph is left as it was if these are wrong.
inline void add_recursion(ModelState& state, const Vector<std::pair<ir::Buffer, ir::Buffer>>& states) {
  if (state.complete)
    throw Error(Code::invalid_model,
                "the states of model '" + state.graph.name + "' are defined already: its program is made");
  ra::Graph& graph = state.graph;
  const std::size_t before = graph.states.size();
  const int recursion = ra::num_recursions(graph);
  try {
    for (const auto& [placeholder, body] : states) {
      state.op(placeholder), state.op(body);
      graph.states.push_back({graph.find(placeholder), graph.find(body), recursion});
    }
    ra::require_states(graph);
  } catch (...) {
    while (graph.states.size() > before) graph.states.pop_back();
    throw;
  }
}

/// A tensor that is computed at every node, or `at_roots` alone, from what the recursions so far have: a recursion of
/// its own, of the operator "<name>_body".
inline ir::Buffer add_output(ModelState& state, const std::string& name, DType dtype, Vector<Dim> dims, bool at_roots,
                             ir::Expr node, Vector<ir::Expr> vars, ir::Expr body) {
  if (body.dtype() != dtype)
    fail("'" + name + "' is declared as " + std::string(to_string(dtype)) + ", but its lambda gives " +
         std::string(to_string(body.dtype())));
  const ir::Buffer result = add(state, new_op(state, ra::OpKind::placeholder, name, dtype, dims));
  ra::Op op = new_op(state, ra::OpKind::compute, free_name(state, name + "_body"), dtype, std::move(dims));
  op.node = std::move(node);
  op.index_vars = std::move(vars);
  op.body = std::move(body);
  op.at_roots = at_roots;
  const ir::Buffer computed = add(state, std::move(op));
  add_recursion(state, {{result, computed}});
  return result;
}

/// Completes the model. Its results are `results`, in that order; the other states follow. `accessors` are the keys of
/// those that calls read of the nodes. Throws `Error{invalid_model}` for a result that is none, for a recursion that no
/// result depends on, and for an accessor that is missing.
inline std::shared_ptr<const ra::Graph> complete(ModelState& state, const Vector<ir::Buffer>& results,
                                                 const Vector<const void*>& accessors) {
  if (state.complete)
    throw Error(Code::invalid_model,
                "model '" + state.graph.name + "' has its program already; another one takes another Model");
  auto whole = std::make_shared<ra::Graph>(state.graph);
  Vector<ra::State> ordered;
  Vector<bool> needed(std::size_t(ra::num_recursions(*whole)));
  const auto is_listed = [&](const ra::State& s) {
    return any_of(ordered, [&](const ra::State& o) { return o.placeholder == s.placeholder; });
  };
  whole->results = int(results.size());
  for (const ir::Buffer& result : results) {
    const int number = ra::state_of(*whole, whole->find(state.op(result).buffer));
    if (number < 0) fail("'" + result->name + "' is no result of a recursion of model '" + whole->name + "'");
    const ra::State& s = whole->states[std::size_t(number)];
    if (is_listed(s)) fail("'" + result->name + "' is listed twice among the results of model '" + whole->name + "'");
    ordered.push_back(s);
    needed[std::size_t(s.recursion)] = true;
  }
  for (std::size_t r = needed.size(); r-- > 0;) {
    const Vector<bool> reads = ra::operators_needed(*whole, int(r));
    for (const ra::State& s : whole->states) {
      if (needed[r] && reads[std::size_t(s.placeholder)]) needed[std::size_t(s.recursion)] = true;
      if (s.recursion == int(r) && !needed[r])
        fail("no result of model '" + whole->name + "' depends on '" + whole->ops[std::size_t(s.placeholder)].name() +
             "'; list it among the results, or leave it out");
    }
  }
  for (const ra::State& s : whole->states)
    if (!is_listed(s)) ordered.push_back(s);
  whole->states = std::move(ordered);
  ra::require_well_formed(*whole);
  ra::require_accessors(*whole, accessors);
  state.graph.states = whole->states;
  state.complete = true;
  return whole;
}

}  // namespace cortex::dsl
