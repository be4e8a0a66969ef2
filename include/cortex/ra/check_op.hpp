// Whether an operator is well formed beside those before it: dimensions that fit (paper section 5, I4) and the
// properties P.1 to P.3 (section 2, R8).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/names.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/integer_range.hpp"
#include "cortex/ra/recursions.hpp"

namespace cortex::ra {

namespace detail {

/// The parts of a message as one text. One function call however many parts, so that messages cost little to compile.
inline std::string joined(std::initializer_list<std::string_view> parts) {
  std::string result;
  for (const std::string_view part : parts) result += part;
  return result;
}

inline std::string text(const Vector<Dim>& list) {
  std::string result = "[";
  for (const Dim& dim : list)
    result += (result.size() > 1 ? ", " : "") + dim.name() +
              (dim.kind() == DimKind::dense ? " " + std::to_string(dim.extent()) : "");
  return result + "]";
}

/// Of dimensions that differ: what they are, and what they should be.
inline std::string unlike(const Vector<Dim>& own, const Vector<Dim>& wanted) {
  const std::string is = text(own), should_be = text(wanted);
  if (is != should_be) return is + ", not " + should_be;
  return is + ", but another of that name; use one Dim object, or copies of it, for both";
}

/// Checks one operator of a graph against those before it.
class OpChecker {
 public:
  OpChecker(const Graph& graph, int number) : graph_(graph), number_(number), op_(graph.ops[std::size_t(number)]) {}

  void run() {
    declaration();
    if (op_.kind == OpKind::compute) compute();
    if (op_.kind == OpKind::if_then_else) branch();
  }

 private:
  /// A variable in scope: an index of the operator, or the axis of a reduction around the place.
  struct Bound {
    const ir::ExprNode* var;
    Dim dim;
    int container = -1;  // axis over children: whose
  };

  [[noreturn]] void fail(std::initializer_list<std::string_view> what) const {
    throw Error(Code::invalid_model,
                joined({"operator '", op_.buffer->name, "' of model '", graph_.name, "': ", joined(what)}));
  }
  void require(bool condition, const char* what) const {
    if (!condition) fail({what});
  }

  // ---- the tensor itself ----

  /// Whether the model's own operator has the name, which computes what `output` declares.
  bool is_of_output() const {
    const int first = graph_.find(op_.name());
    return any_of(graph_.states, [&](const State& state) {
      return state.body == first && graph_.ops[std::size_t(state.placeholder)].name() + "_body" == op_.name();
    });
  }

  void declaration() const {
    if (!op_.buffer || op_.buffer->name.empty())
      throw Error(Code::invalid_model, "an operator of model " + in_quotes(graph_.name) + " has no name");
    if (graph_.find(op_.name()) != number_)
      fail({"the name is used twice; give each operator its own",
            is_of_output() ? ": output has taken it for its body" : ""});
    if (!is_float(op_.buffer->dtype))
      fail({"its elements are ", to_string(op_.buffer->dtype), "; tensors hold f32 or f64"});
    Vector<Dim> expected = op_.dims;
    if (op_.kind != OpKind::input) expected.insert(expected.begin(), dims::node);
    require(op_.buffer->dims == expected, "its buffer has other dimensions than the operator");
    require(op_.buffer->role == role(), "its buffer plays another role than the operator");
    require(op_.kind != OpKind::input || !op_.dims.empty(),
            "an input has at least one dimension; a scalar is a Dim of extent 1");
    dimensions();
    if (op_.kind == OpKind::field) field();
  }

  ir::Role role() const {
    switch (op_.kind) {
      case OpKind::input: return ir::Role::weight;
      case OpKind::field: return ir::Role::field;
      case OpKind::placeholder: return ir::Role::state;
      default: return ir::Role::temp;
    }
  }

  void dimensions() const {
    std::int64_t size = 1;
    for (std::size_t d = 0; d < op_.dims.size(); ++d) {
      const Dim& dim = op_.dims[d];
      if (dim.kind() == DimKind::open) {
        if (op_.kind != OpKind::input || d > 0)
          fail({"dimension ", in_quotes(dim.name()),
                " has no extent; only the first dimension of an input can be open"});
        continue;
      }
      extent(dim);
      size = size > Interval::highest ? size : size * std::min(dim.extent(), Interval::highest + 1);
    }
    if (size > Interval::highest) fail({"it has more than 2^31 - 1 elements a row"});
  }

  void extent(const Dim& dim) const {
    if (dim.kind() != DimKind::dense)
      fail({"dimension ", in_quotes(dim.name()), " has no extent: it is open, or the compiler's own"});
    if (dim.extent() < 1)
      fail({"dimension ", in_quotes(dim.name()), " has extent ", std::to_string(dim.extent()), "; the least is 1"});
  }

  void field() const {
    const int slot = op_.buffer->slot;
    require(slot >= 0 && std::size_t(slot) < graph_.fields.size(), "its buffer names no field of the node");
    const Accessor& accessor = graph_.fields[std::size_t(slot)];
    std::int64_t size = 1;
    for (const Dim& dim : op_.dims) size *= dim.extent();
    if (size != accessor.components)
      fail({"its dimensions hold ", std::to_string(size), " elements, but field ", in_quotes(accessor.name),
            accessor.own_length ? " was declared with " : " of the node has ", std::to_string(accessor.components),
            accessor.own_length ? " before, and a field has one length in a model: read it through a getter of another "
                                  "name where nodes have another one"
                                : ""});
    if (accessor.dtype != op_.buffer->dtype)
      fail({"field ", in_quotes(accessor.name), " holds ", to_string(accessor.dtype), ", not ",
            to_string(op_.buffer->dtype)});
  }

  // ---- what it computes ----

  void compute() {
    require(op_.node && op_.node.as<ir::Var>() && op_.body, "it has no node variable or no body");
    require(op_.index_vars.size() == op_.dims.size(), "it has another number of index variables than of dimensions");
    for (std::size_t d = 0; d < op_.dims.size(); ++d) {
      require(op_.index_vars[d] && op_.index_vars[d].as<ir::Var>(), "an index variable is missing");
      scope_.push_back({op_.index_vars[d].get(), op_.dims[d]});
    }
    if (op_.body.type() != ir::Type{op_.buffer->dtype, 1}) fail({"its body is of another type than its buffer"});
    value(op_.body);
  }

  void branch() {
    require(op_.node && op_.node.as<ir::Var>() && op_.condition, "it has no node variable or no condition");
    require(op_.condition.type() == ir::Type{DType::boolean, 1}, "its condition is not a boolean");
    if (ir::has_loads(op_.condition))
      fail({"(P.1) control flow depends on the structure alone: its condition is made of computed data"});
    value(op_.condition);
    if (op_.key) {
      require(is_int(op_.key.dtype()) && !ir::has_loads(op_.key), "the key of a switch is no integer of the structure");
      value(op_.key);
    }
    for (const int side : {op_.then_op, op_.else_op}) {
      require(side >= 0 && side < number_, "a branch is no operator before it");
      const Op& taken = graph_.ops[std::size_t(side)];
      if (taken.kind != OpKind::compute && taken.kind != OpKind::if_then_else)
        fail({"branch ", in_quotes(taken.name()), " is not computed; read it in a compute and branch to that"});
      if (taken.dims != op_.dims)
        fail({"branch ", in_quotes(taken.name()), " has other dimensions: ", unlike(taken.dims, op_.dims)});
      if (taken.buffer->dtype != op_.buffer->dtype)
        fail({"branch ", in_quotes(taken.name()), " is ", to_string(taken.buffer->dtype), ", not ",
              to_string(op_.buffer->dtype)});
    }
  }

  /// Walks an expression that is data or structure, but no node.
  void value(const ir::Expr& e) {
    require(e.lanes() == 1, "a vector among its expressions");
    switch (e->kind) {
      case ir::ExprKind::int_imm:
      case ir::ExprKind::float_imm: return;
      case ir::ExprKind::var: return variable(e);
      case ir::ExprKind::unary: return unary(*e.as<ir::Unary>());
      case ir::ExprKind::binary: return binary(*e.as<ir::Binary>());
      case ir::ExprKind::fma: return value(e.as<ir::Fma>()->a), value(e.as<ir::Fma>()->b), value(e.as<ir::Fma>()->c);
      case ir::ExprKind::select:
        return value(e.as<ir::Select>()->condition), value(e.as<ir::Select>()->then_value),
               value(e.as<ir::Select>()->else_value);
      case ir::ExprKind::cast: return value(e.as<ir::Cast>()->a);
      case ir::ExprKind::load: return load(*e.as<ir::Load>());
      case ir::ExprKind::uf_call: return call(*e.as<ir::UfCall>());
      case ir::ExprKind::reduce: return reduce(*e.as<ir::Reduce>());
      case ir::ExprKind::let:
      case ir::ExprKind::ramp:
      case ir::ExprKind::broadcast: break;
    }
    fail({"an expression of a kind that lowering makes, not an operator"});
  }

  const Bound* find(const ir::Expr& var) const {
    for (const auto& bound : reversed(scope_))
      if (bound.var == var.get()) return &bound;
    return nullptr;
  }

  void variable(const ir::Expr& e) const {
    if (e.same_as(op_.node)) fail({"the node itself is used as a number"});
    if (!find(e)) fail({"variable ", in_quotes(e.as<ir::Var>()->name), " belongs to another operator or reduction"});
  }

  void unary(const ir::Unary& n) {
    using enum ir::UnaryOp;
    if (n.op == logical_not)
      require(n.a.dtype() == DType::boolean, "'not' of something that is no boolean");
    else if (n.op == neg || n.op == abs)
      require(n.a.dtype() != DType::boolean, "arithmetic on a boolean; choose values with select");
    else
      require(is_float(n.a.dtype()), "a function of an integer; convert it first");
    value(n.a);
  }

  void binary(const ir::Binary& n) {
    using enum ir::BinaryOp;
    const bool logic = n.op == logical_and || n.op == logical_or, same = n.op == eq || n.op == ne;
    if (logic)
      require(n.a.dtype() == DType::boolean, "'and' or 'or' of something that is no boolean");
    else if (!same)
      require(n.a.dtype() != DType::boolean, "arithmetic on a boolean; choose values with select");
    value(n.a);
    value(n.b);
    if (n.op != div && n.op != mod) return;
    require(n.op == div || is_int(n.a.dtype()), "a remainder of floating-point numbers");
    if (!is_int(n.a.dtype())) return;
    if (range(n.b).lo < 1)
      fail({"an integer is divided by what may be 0 or negative; keep the divisor positive with max(..., 1)"});
    if (range(n.a).from_below() && range(n.a).lo < 0)
      fail({"an integer that may be negative is divided; keep it from below with max(..., 0)"});
  }

  // ---- tensors read ----

  void load(const ir::Load& n) {
    const int read = graph_.find(n.buffer);
    if (read < 0) fail({"reads ", in_quotes(n.buffer->name), ", which is not part of this model"});
    if (read >= number_) fail({"reads ", in_quotes(n.buffer->name), ", which is not defined before it"});
    const Op& source = graph_.ops[std::size_t(read)];
    if (source.at_roots && !op_.at_roots)
      fail({"reads ", in_quotes(source.name()), ", a readout, which has a value at the roots alone"});
    const std::size_t first = source.kind == OpKind::input ? 0 : 1;
    if (n.indices.size() != first + source.dims.size())
      fail({"reads ", in_quotes(source.name()), " with ", std::to_string(n.indices.size()), " indices, not ",
            std::to_string(first + source.dims.size())});
    if (first) at_node(source, n.indices[0]);
    for (std::size_t d = 0; d < source.dims.size(); ++d) index(source, d, n.indices[d + first]);
  }

  void at_node(const Op& source, const ir::Expr& node) {
    if (source.kind == OpKind::field) return present(source.name(), node);
    const int steps = depth(node);
    if (source.kind != OpKind::placeholder && steps != 0)
      fail({"(P.2) recursive calls come first: ", in_quotes(source.name()),
            " is read at a child; read a placeholder there, or the operator at the node itself"});
    if (source.kind != OpKind::placeholder) return;
    if (is_readout(source) && (steps > 0 || !op_.at_roots))
      fail({"reads ", in_quotes(source.name()),
            ", a readout: it has a value at the roots alone, for other readouts to read"});
    if (steps == 1) return;
    if (steps > 1 || !computed_before(source))
      fail({"(P.2) recursive calls come first: placeholder ", in_quotes(source.name()), " is read ",
            (steps == 0 ? "at the node itself; read it at a child" : "further away than at a child")});
  }

  /// Whether a recursion that is complete has computed what the placeholder stands for.
  bool computed_before(const Op& placeholder) const {
    for (const State& state : graph_.states)
      if (graph_.ops[std::size_t(state.placeholder)].buffer == placeholder.buffer) return state.body < number_;
    return false;
  }

  bool is_readout(const Op& placeholder) const {
    for (const State& state : graph_.states)
      if (graph_.ops[std::size_t(state.placeholder)].buffer == placeholder.buffer)
        return state.body >= 0 && std::size_t(state.body) < graph_.ops.size() &&
               graph_.ops[std::size_t(state.body)].at_roots;
    return false;
  }

  void index(const Op& source, std::size_t d, const ir::Expr& e) {
    const Dim& dim = source.dims[d];
    const std::string where = "dimension " + in_quotes(dim.name()) + " of " + in_quotes(source.name());
    if (ir::has_loads(e))
      fail({(source.kind == OpKind::placeholder ? "(P.3) recursive calls are independent: "
                                                : "(P.1) control flow depends on the structure alone: "),
            where, " is indexed by computed data"});
    if (!is_int(e.dtype())) fail({where, " is indexed by a ", to_string(e.dtype())});
    value(e);
    if (const Bound* bound = e.as<ir::Var>() ? find(e) : nullptr; bound && bound->dim.kind() != DimKind::child) {
      if (bound->dim == dim) return;
      if (bound->dim.name() != dim.name()) {
        const bool fits = dim.kind() == DimKind::open || bound->dim.extent() <= dim.extent();
        const std::string is = where + " is indexed by a variable of " + in_quotes(bound->dim.name());
        if (contains(source.dims, bound->dim))
          fail({is, "; its dimensions are ", text(source.dims), ", and indices stand in their order"});
        fail({is, fits ? "; if its first elements are meant, write i + 0" : ""});
      }
      if (bound->dim.extent() == dim.extent())
        fail({where,
              " is indexed by a variable of another dimension of that name; use one Dim object, or copies of it, "
              "for both"});
      fail({where, ", whose extent is ", std::to_string(dim.extent()),
            ", is indexed by a variable of another dimension of that name, whose extent is ",
            std::to_string(bound->dim.extent()), "; give them different names"});
    }
    if (const Bound* bound = e.as<ir::Var>() ? find(e) : nullptr; bound && most(bound->container) == 0)
      fail({where, " is indexed by the position of a child, which has no bound; declare one with with_max_children"});
    fits(where, e);
    inside(where, dim, e);
  }

  /// Whether it is made of where a fold is among a node's children, of which there are as many as the node has.
  bool of_position(const ir::Expr& e) const {
    bool found = false;
    ir::visit_with(e, [&](const ir::Var& var) {
      const Bound* bound = find(handle_of(var));
      found |= bound && bound->container >= 0;
    });
    return found;
  }

  void fits(const std::string& where, const ir::Expr& e) const {
    if (!ir::asks_structure(e) && !range(e).fits)
      fail({where, " is indexed by arithmetic that leaves 32 bits on the way to its value"});
  }

  /// An index into `dim` may lie inside: an interval is wider than the values that nodes give, since it knows neither
  /// the condition under which the index is read nor that two terms are of the same number. What no nodes have a say in
  /// lies inside for certain, since `i + 1` is a mistake whatever the nodes.
  void inside(const std::string& where, const Dim& dim, const ir::Expr& e) const {
    const Interval values = range(e);
    const bool checked = ir::asks_structure(e), open = dim.kind() == DimKind::open;
    const bool below = checked ? values.hi < 0 : values.from_below() && values.lo < 0;
    const bool above = checked ? values.lo >= dim.extent() : values.from_above() && values.hi >= dim.extent();
    if (!below && (open || !above)) return;
    const auto end = [](bool known, std::int64_t value) { return known ? std::to_string(value) : std::string("..."); };
    const std::string extent =
        dim.kind() == DimKind::open ? std::string("an open extent") : std::to_string(dim.extent()) + " elements";
    if (values.from_below() && values.from_above() && values.lo == values.hi)
      fail({where, " is indexed by ", std::to_string(values.lo), ", but has ", extent});
    fail({where, " is indexed by ", end(values.from_below(), values.lo), " to ", end(values.from_above(), values.hi),
          ", but has ", extent, "; keep the index inside with min and max"});
  }

  // ---- structure read ----

  /// How many child steps from the current node `e` stands; checks the steps on the way.
  int depth(const ir::Expr& e) {
    if (e.same_as(op_.node)) return 0;
    const auto* step = e.as<ir::UfCall>();
    if (!step || (step->uf.kind != ir::UfKind::child && step->uf.kind != ir::UfKind::kth_child))
      fail({"a node is expected where an expression of another kind stands"});
    const bool kth = step->uf.kind == ir::UfKind::kth_child;
    arguments(*step, kth ? graph_.containers : graph_.children_named, kth ? 2 : 1, kth ? 2 : 1);
    if (kth) position(step->args[1], step->uf.accessor);
    return depth(step->args[0]) + 1;
  }

  void position(const ir::Expr& k, int container) {
    if (ir::has_loads(k)) fail({"(P.3) recursive calls are independent: a child is chosen by computed data"});
    value(k);
    const Bound* bound_var = k.as<ir::Var>() ? find(k) : nullptr;
    const bool folds = bound_var && bound_var->container == container;
    const Relation relation = graph_.containers[std::size_t(container)].relation;
    if (!folds && (relation == Relation::members || (relation == Relation::parents && most(container) != 1)))
      fail({"reads one of the ", relation == Relation::members ? "nodes of an input" : "parents of a DAG's node",
            " by its number, but they have no order; fold over them, as in sum(...)"});
    fits("a container of children", k);
    const Interval values = range(k);
    // Where nodes have a say in it, a child before the first is absent, as one behind the last is: such as the one
    // before that at a fold's position.
    if (ir::asks_structure(k) || of_position(k) ? values.hi < 0 : values.from_below() && values.lo < 0)
      fail({"a child is chosen by a number that may be negative; keep it from below with max(..., 0)"});
    const int bound = most(container);
    if (bound > 0 && values.lo >= bound)
      fail({"child ", std::to_string(values.lo), " is read, but nodes have at most ", std::to_string(bound),
            graph_.containers[std::size_t(container)].relation == Relation::parents ? " parents" : " children"});
  }

  void arguments(const ir::UfCall& n, const Vector<Accessor>& group, std::size_t least, std::size_t most) const {
    if (n.uf.accessor < 0 || std::size_t(n.uf.accessor) >= group.size())
      fail({"reads an accessor that the graph does not list: ", in_quotes(n.uf.name)});
    if (n.args.size() < least || n.args.size() > most)
      fail({"accessor ", in_quotes(n.uf.name), " has the wrong number of arguments"});
  }

  void call(const ir::UfCall& n) {
    switch (n.uf.kind) {
      case ir::UfKind::child:
      case ir::UfKind::kth_child: return fail({"a node is used as a number"});
      case ir::UfKind::is_leaf: require(n.args.size() == 1, "is_leaf takes one node"); break;
      case ir::UfKind::num_children: arguments(n, graph_.containers, 1, 1); break;
      case ir::UfKind::field: component(n); break;
      default: fail({"a function that lowering makes, not an operator: ", in_quotes(n.uf.name)});
    }
    present(n.uf.name, n.args[0]);
  }

  void component(const ir::UfCall& n) {
    arguments(n, graph_.fields, 1, 2);
    const Accessor& accessor = graph_.fields[std::size_t(n.uf.accessor)];
    if (is_float(accessor.dtype))
      fail({"field ", in_quotes(accessor.name), " holds floating-point data; read it through a field operator"});
    const bool array = accessor.array || accessor.components > 1;
    if (array != (n.args.size() == 2))
      fail({"field ", in_quotes(accessor.name), " has ", std::to_string(accessor.components),
            " component(s); it is read with ", (array ? "the number of one" : "no index")});
    if (n.args.size() < 2) return;
    if (ir::has_loads(n.args[1]))
      fail({"(P.1) control flow depends on the structure alone: field ", in_quotes(accessor.name),
            " is indexed by computed data"});
    value(n.args[1]);
    const std::string where = "field " + in_quotes(accessor.name) + " of the node";
    fits(where, n.args[1]);
    inside(where, Dim("components", accessor.components), n.args[1]);
  }

  /// Structure and data of a child are read only where there is one for certain: at child `k` of a reduction over
  /// children.
  void present(const std::string& read, const ir::Expr& node) {
    const int steps = depth(node);
    if (steps == 0) return;
    const auto* child = node.as<ir::UfCall>();
    const Bound* k =
        child->uf.kind == ir::UfKind::kth_child && child->args[1].as<ir::Var>() ? find(child->args[1]) : nullptr;
    if (steps > 1 || !k || k->container != child->uf.accessor)
      fail({in_quotes(read),
            " is read at a child that may be absent; read it at the node itself, or at the children of a reduction"});
  }

  void reduce(const ir::Reduce& n) {
    require(!n.axis.var.same_as(op_.node) && !find(n.axis.var), "a reduction over a variable that is taken");
    require(n.type.dtype != DType::boolean, "a reduction of booleans");
    int container = -1;
    if (n.axis.dim.kind() == DimKind::child) {
      const auto* count = n.axis.extent.as<ir::UfCall>();
      require(count && count->uf.kind == ir::UfKind::num_children,
              "a reduction over children has num_children as its extent");
      call(*count);
      if (graph_.containers[std::size_t(count->uf.accessor)].relation == Relation::members && !op_.at_roots)
        fail({"runs over all nodes of an input, which only a readout can"});
      require(depth(count->args[0]) == 0,
              "(P.2) recursive calls come first: a reduction over the children of another node; a node reads its own "
              "alone");
      container = count->uf.accessor;
    } else {
      extent(n.axis.dim);
      const auto* count = n.axis.extent.as<ir::IntImm>();
      require(count && count->value == n.axis.dim.extent(), "a reduction of another extent than its dimension");
    }
    scope_.push_back({n.axis.var.get(), n.axis.dim, container});
    value(n.body);
    scope_.pop_back();
  }

  // ---- facts about expressions ----

  Interval range(const ir::Expr& e) const {
    if (const auto* n = e.as<ir::IntImm>()) return interval(true, n->value, true, n->value);
    if (const auto* n = e.as<ir::Binary>()) return combined(n->op, range(n->a), range(n->b));
    if (const auto* n = e.as<ir::Unary>(); n && n->op == ir::UnaryOp::neg)
      return combined(ir::BinaryOp::sub, {0, 0}, range(n->a));
    if (const auto* n = e.as<ir::Select>()) {
      const Interval a = range(n->then_value), b = range(n->else_value);
      return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.fits && b.fits};
    }
    if (const auto* n = e.as<ir::UfCall>(); n && n->uf.kind == ir::UfKind::num_children)
      return interval(true, 0, most(n->uf.accessor) > 0, most(n->uf.accessor));
    if (const Bound* bound = e.as<ir::Var>() ? find(e) : nullptr) {
      if (bound->dim.kind() == DimKind::child)
        return interval(true, 0, most(bound->container) > 0, most(bound->container) - 1);
      return interval(true, 0, true, bound->dim.extent() - 1);
    }
    return {};
  }

  /// The most nodes that a container has, or 0 if that is not known.
  int most(int container) const {
    switch (container < 0 ? Relation::children : graph_.containers[std::size_t(container)].relation) {
      case Relation::children: return graph_.max_children;
      case Relation::parents: return graph_.structure == StructureKind::dag ? 0 : 1;
      case Relation::members: return 0;
    }
    return 0;
  }

  const Graph& graph_;
  const int number_;
  const Op& op_;
  Vector<Bound> scope_;
};

}  // namespace detail

/// Checks operator `number` of `graph` against the operators before it; throws `Error{invalid_model}` that names the
/// operator, the tensor and the dimension at fault.
inline void check_op(const Graph& graph, int number) { detail::OpChecker(graph, number).run(); }

}  // namespace cortex::ra
