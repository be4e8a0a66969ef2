// Interprets an operator graph: the recursion as it is written, node by node over an abstract view of the nodes.
// Nothing of the compiler is on the way, so that everything else can be held against it.
//
// In plain doubles it is the reference; in `Bounded` numbers each element also says how far a right evaluation in the
// operators' own types may be from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ra/bounded.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/node_view.hpp"
#include "cortex/ra/recursions.hpp"

namespace cortex::ra {

/// What is bound to an input: row-major, its shape that of the input's dimensions.
struct Tensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  double rounding = 0;  // up to what share of itself a right evaluation may read each value otherwise
};

/// By the input's name.
using Weights = std::map<std::string, Tensor>;

/// [state, in the graph's order][node][element, row-major].
template <class T>
using States = std::vector<std::vector<std::vector<T>>>;

namespace detail {

/// A node of an operator's expression, ready to be evaluated: variables are slots, tensors are numbers of operators.
struct Term {
  ir::ExprKind kind = ir::ExprKind::int_imm;
  std::uint8_t op = 0;  // UnaryOp, BinaryOp, ReduceOp, UfKind
  DType dtype = DType::i32, operand = DType::i32;
  int slot = -1;  // var, reduce: of the variable; load: the operator; uf_call: the accessor
  std::int64_t integer = 0;
  double real = 0;
  std::vector<int> parts;  // operands; load, uf_call: indices; reduce: extent, body
};

/// Turns the expressions of one operator into terms.
class TermBuilder {
 public:
  TermBuilder(const Graph& graph, std::vector<Term>& terms, int& num_slots)
      : graph_(graph), terms_(terms), num_slots_(num_slots) {}

  int bind(const ir::Expr& var) {
    slots_.insert_or_assign(var.get(), num_slots_);
    return num_slots_++;
  }
  /// The current node is slot 0 of every operator.
  void bind_node(const ir::Expr& var) { slots_.insert_or_assign(var.get(), 0); }

  int term(const ir::Expr& e) {
    Term t;
    t.kind = e->kind;
    t.dtype = e.dtype();
    switch (e->kind) {
      case ir::ExprKind::int_imm: t.integer = e.as<ir::IntImm>()->value; break;
      case ir::ExprKind::float_imm: t.real = e.as<ir::FloatImm>()->value; break;
      case ir::ExprKind::var: t.slot = slot_of(e); break;
      case ir::ExprKind::unary:
        t.op = std::uint8_t(e.as<ir::Unary>()->op), t.parts = all({e.as<ir::Unary>()->a});
        break;
      case ir::ExprKind::binary: {
        const auto& n = *e.as<ir::Binary>();
        t.op = std::uint8_t(n.op), t.operand = n.a.dtype(), t.parts = all({n.a, n.b});
        break;
      }
      case ir::ExprKind::fma: t.parts = all({e.as<ir::Fma>()->a, e.as<ir::Fma>()->b, e.as<ir::Fma>()->c}); break;
      case ir::ExprKind::select:
        t.parts = all({e.as<ir::Select>()->condition, e.as<ir::Select>()->then_value, e.as<ir::Select>()->else_value});
        break;
      case ir::ExprKind::cast: t.operand = e.as<ir::Cast>()->a.dtype(), t.parts = all({e.as<ir::Cast>()->a}); break;
      case ir::ExprKind::load:
        t.slot = source_of(e.as<ir::Load>()->buffer), t.parts = all(e.as<ir::Load>()->indices);
        break;
      case ir::ExprKind::uf_call:
        t.op = std::uint8_t(e.as<ir::UfCall>()->uf.kind), t.slot = e.as<ir::UfCall>()->uf.accessor,
        t.parts = all(e.as<ir::UfCall>()->args);
        break;
      case ir::ExprKind::reduce: {
        const auto& n = *e.as<ir::Reduce>();
        t.op = std::uint8_t(n.op);
        t.parts = all({n.axis.extent});
        t.slot = bind(n.axis.var);
        t.parts.push_back(term(n.body));
        break;
      }
      case ir::ExprKind::let:
      case ir::ExprKind::ramp:
      case ir::ExprKind::broadcast:
        throw Error(Code::internal,
                    "model '" + graph_.name + "': an expression that lowering makes stands in an operator");
    }
    terms_.push_back(std::move(t));
    return int(terms_.size()) - 1;
  }

  std::vector<int> take_reads() { return std::move(reads_); }

 private:
  std::vector<int> all(const Vector<ir::Expr>& list) {
    std::vector<int> result;
    for (const ir::Expr& e : list) result.push_back(term(e));
    return result;
  }

  int slot_of(const ir::Expr& var) const {
    const auto found = slots_.find(var.get());
    if (found == slots_.end())
      throw Error(Code::internal,
                  "model '" + graph_.name + "': variable '" + var.as<ir::Var>()->name + "' is not bound");
    return found->second;
  }

  int source_of(const ir::Buffer& buffer) {
    const int source = graph_.find(buffer);
    if (source < 0)
      throw Error(Code::internal, "model '" + graph_.name + "': '" + buffer->name + "' is read, but no operator");
    reads_.push_back(source);
    return source;
  }

  const Graph& graph_;
  std::vector<Term>& terms_;
  int& num_slots_;
  std::vector<int> reads_;
  PointerMap<int> slots_;
};

template <class T>
class GraphInterpreter {
 public:
  /// `given`: what placeholders read, in place of what is computed here; null: none. `wanted`, [node]: where states are
  /// computed; null: everywhere.
  GraphInterpreter(const Graph& graph, const NodeView& view, const Weights& weights, const Arithmetic<T>& arithmetic,
                   const States<double>* given, const std::vector<char>* wanted)
      : graph_(graph),
        view_(view),
        math_(arithmetic),
        given_(given),
        wanted_(wanted),
        num_nodes_(view.num_nodes()),
        plans_(graph.ops.size()) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i) plan(int(i), weights);
    slots_.resize(std::size_t(num_slots_));
    read_structure();
  }

  States<T> run() {
    states_.assign(graph_.states.size(), std::vector<std::vector<T>>(std::size_t(num_nodes_)));
    const std::vector<int> order = children_first();
    for (int r = 0; r < num_recursions(graph_); ++r) {
      recursion_ = r;
      const Direction direction = direction_of(graph_, r);
      if (direction == Direction::roots)
        for (const int node : view_.roots()) evaluate(node);
      else if (direction == Direction::down)
        for (const auto& node : reversed(order)) evaluate(node);
      else
        for (const int node : order) evaluate(node);
    }
    return std::move(states_);
  }

 private:
  struct Plan {
    int body = -1, condition = -1;      // terms
    int state = -1;                     // of a placeholder
    std::vector<int> vars;              // slots of the index variables
    std::vector<int> reads;             // operators
    std::vector<std::int64_t> extents;  // without the node
    std::int64_t size = 1;
    const Tensor* weight = nullptr;
    std::vector<T> value;  // at the current node
    int taken = -1;        // branch: the operator at the current node
    bool needed = false;
  };

  [[noreturn]] void fail(Code code, const std::string& what) const {
    throw Error(code, "model '" + graph_.name + "': " + what);
  }
  const Op& op(int i) const { return graph_.ops[std::size_t(i)]; }
  Plan& plan_of(int i) { return plans_[std::size_t(i)]; }

  // ---- preparation ----

  void plan(int number, const Weights& weights) {
    const Op& o = op(number);
    Plan& p = plan_of(number);
    for (const Dim& dim : o.dims) p.extents.push_back(dim.extent());
    for (std::size_t s = 0; s < graph_.states.size(); ++s)
      if (graph_.states[s].placeholder == number) p.state = int(s);
    if (o.kind == OpKind::input) bind_weight(o, p, weights);
    for (const std::int64_t extent : p.extents) p.size *= extent;
    TermBuilder builder(graph_, terms_, num_slots_);
    if (o.node) builder.bind_node(o.node);
    for (const ir::Expr& var : o.index_vars) p.vars.push_back(builder.bind(var));
    if (o.body) p.body = builder.term(o.body);
    if (o.condition) p.condition = builder.term(o.condition);
    p.reads = builder.take_reads();
  }

  void bind_weight(const Op& o, Plan& p, const Weights& weights) const {
    const auto found = weights.find(o.name());
    if (found == weights.end()) fail(Code::invalid_weights, "nothing is bound to input '" + o.name() + "'");
    p.weight = &found->second;
    std::int64_t size = 1;
    bool fits = p.weight->shape.size() == o.dims.size();
    for (std::size_t d = 0; fits && d < o.dims.size(); ++d) {
      fits = o.dims[d].kind() == DimKind::open || p.weight->shape[d] == o.dims[d].extent();
      size *= p.weight->shape[d];
    }
    if (!fits || size != std::int64_t(p.weight->values.size()))
      fail(Code::invalid_weights, "what is bound to input '" + o.name() + "' has another shape");
    p.extents = p.weight->shape;
  }

  void read_structure() {
    const std::size_t n = std::size_t(num_nodes_);
    child_.assign(graph_.children_named.size(), std::vector<int>(n));
    kids_.assign(graph_.containers.size(), std::vector<std::vector<int>>(n));
    for (std::size_t a = 0; a < child_.size(); ++a)
      for (std::size_t node = 0; node < n; ++node) child_[a][node] = view_.child(int(a), int(node));
    for (std::size_t c = 0; c < kids_.size(); ++c)
      for (std::size_t node = 0; node < n && graph_.containers[c].relation == Relation::children; ++node)
        kids_[c][node] = view_.children(int(c), int(node));
    for (std::size_t c = 0; c < kids_.size(); ++c) {
      if (graph_.containers[c].relation == Relation::parents) find_parents(kids_[c]);
      if (graph_.containers[c].relation == Relation::members) find_members(kids_[c]);
    }
  }

  /// Calls `f` on each child of `node`, through every accessor in turn.
  template <class F>
  void for_each_link(int node, F f) const {
    for (const auto& child : child_)
      if (child[std::size_t(node)] >= 0) f(child[std::size_t(node)]);
    for (std::size_t c = 0; c < kids_.size(); ++c)
      if (graph_.containers[c].relation == Relation::children)
        for (const int kid : kids_[c][std::size_t(node)]) f(kid);
  }

  void find_parents(std::vector<std::vector<int>>& parents) const {
    for (int node = 0; node < num_nodes_; ++node)
      for_each_link(node, [&](int child) {
        std::vector<int>& list = parents[std::size_t(child)];
        if (list.empty() || list.back() != node) list.push_back(node);
      });
  }

  /// Breadth first, each once.
  void find_members(std::vector<std::vector<int>>& members) const {
    for (const int root : view_.roots()) {
      std::vector<char> seen(static_cast<std::size_t>(num_nodes_));
      std::vector<int>& list = members[std::size_t(root)];
      list = {root};
      seen[std::size_t(root)] = true;
      for (std::size_t at = 0; at < list.size(); ++at)
        for_each_link(list[at], [&](int child) {
          if (!std::exchange(seen[std::size_t(child)], true)) list.push_back(child);
        });
    }
  }

  /// All nodes, children before parents; a stack of its own in place of recursion, so that chains may be long.
  std::vector<int> children_first() const {
    std::vector<int> order;
    std::vector<char> seen(static_cast<std::size_t>(num_nodes_));  // 1: its children are under way, 2: in order
    std::vector<int> stack;
    const auto push = [&](int node, int parent) {
      if (node < 0 || seen[std::size_t(node)] == 2) return;
      if (seen[std::size_t(node)] == 1)
        fail(Code::invalid_structure, "node " + std::to_string(parent) + " is part of a cycle");
      stack.push_back(node);
    };
    for (int start = 0; start < num_nodes_; ++start) {
      if (seen[std::size_t(start)] == 0) stack.push_back(start);
      while (!stack.empty()) {
        const int node = stack.back();
        char& state = seen[std::size_t(node)];
        if (state != 0) {
          if (state == 1) order.push_back(node), state = 2;
          stack.pop_back();
          continue;
        }
        state = 1;
        for_each_link(node, [&](int child) { push(child, node); });
      }
    }
    return order;
  }

  // ---- one node ----

  /// Operators are evaluated where they are needed alone: what a branch does not take may not be defined here.
  void evaluate(int node) {
    if (wanted_ && !(*wanted_)[std::size_t(node)]) return;
    slots_[0] = node;
    for (Plan& p : plans_) p.needed = false;
    for (const State& state : graph_.states)
      if (state.recursion == recursion_) plan_of(state.body).needed = true;
    for (int i = int(plans_.size()); i-- > 0;) {
      Plan& p = plan_of(i);
      if (!p.needed) continue;
      for (const int read : p.reads) plan_of(read).needed = true;
      if (op(i).kind != OpKind::if_then_else) continue;
      p.taken = truth(p.condition).value ? op(i).then_op : op(i).else_op;
      plan_of(p.taken).needed = true;
    }
    for (std::size_t i = 0; i < plans_.size(); ++i)
      if (plans_[i].needed && op(int(i)).kind == OpKind::compute) compute(plans_[i]);
    for (std::size_t s = 0; s < graph_.states.size(); ++s)
      if (graph_.states[s].recursion == recursion_)
        states_[s][std::size_t(node)] = value_of(graph_.states[s].body).value;
  }

  Plan& value_of(int number) {
    while (op(number).kind == OpKind::if_then_else) number = plan_of(number).taken;
    return plan_of(number);
  }

  void compute(Plan& p) {
    p.value.resize(std::size_t(p.size));
    for (const int var : p.vars) slots_[std::size_t(var)] = 0;
    for (T& element : p.value) {
      element = real(p.body);
      for (std::size_t d = p.vars.size(); d-- > 0;) {
        std::int64_t& index = slots_[std::size_t(p.vars[d])];
        if (++index < p.extents[d]) break;
        index = 0;
      }
    }
  }

  // ---- expressions ----

  const Term& at(int term) const { return terms_[std::size_t(term)]; }

  T real(int term) {
    const Term& t = at(term);
    switch (t.kind) {
      case ir::ExprKind::float_imm: return math_.constant(t.real, t.dtype);
      case ir::ExprKind::unary: return math_.unary(ir::UnaryOp(t.op), real(t.parts[0]), t.dtype);
      case ir::ExprKind::binary: {
        const T a = real(t.parts[0]), b = real(t.parts[1]);
        return math_.binary(ir::BinaryOp(t.op), a, b, t.dtype);
      }
      case ir::ExprKind::fma: {
        const T a = real(t.parts[0]), b = real(t.parts[1]), c = real(t.parts[2]);
        return math_.fma(a, b, c, t.dtype);
      }
      case ir::ExprKind::select: {
        const Truth condition = truth(t.parts[0]);
        if (condition.certain) return real(t.parts[condition.value ? 1 : 2]);
        const T a = real(t.parts[1]), b = real(t.parts[2]);
        return math_.select(condition, a, b);
      }
      case ir::ExprKind::cast: return cast(t);
      case ir::ExprKind::load: return load(t);
      case ir::ExprKind::reduce: return reduce(t);
      default: fail(Code::internal, "a number is expected where an expression of another kind stands");
    }
  }

  T cast(const Term& t) {
    if (is_float(t.operand)) return math_.cast(real(t.parts[0]), t.operand, t.dtype);
    if (is_int(t.operand)) return math_.integer(integer(t.parts[0]), t.dtype);
    return math_.select(truth(t.parts[0]), math_.exact(1), math_.exact(0));
  }

  T load(const Term& t) {
    const Op& source = op(t.slot);
    Plan& p = plan_of(t.slot);
    const std::size_t first = source.kind == OpKind::input ? 0 : 1;
    std::int64_t node = slots_[0], offset = 0;
    if (source.kind == OpKind::placeholder || source.kind == OpKind::field) node = integer(t.parts[0]);
    for (std::size_t d = 0; d < p.extents.size(); ++d) {
      const std::int64_t index = integer(t.parts[d + first]);
      if (index < 0 || index >= p.extents[d]) [[unlikely]]
        out_of_range(source, d, index, p.extents[d]);
      offset = offset * p.extents[d] + index;
    }
    switch (source.kind) {
      case OpKind::input: return math_.within(p.weight->values[std::size_t(offset)], p.weight->rounding);
      case OpKind::field: return math_.exact(view_.field(source.buffer->slot, int(node), int(offset)));
      case OpKind::placeholder:
        if (node < 0) return math_.exact(0);  // the initial state
        if (given_) return math_.exact(given_->at(std::size_t(p.state)).at(std::size_t(node)).at(std::size_t(offset)));
        return states_[std::size_t(p.state)][std::size_t(node)][std::size_t(offset)];
      default: return value_of(t.slot).value[std::size_t(offset)];
    }
  }

  [[noreturn]] void out_of_range(const Op& source, std::size_t d, std::int64_t index, std::int64_t extent) const {
    fail(Code::out_of_range, "index " + std::to_string(index) + " into dimension '" + source.dims[d].name() + "' of '" +
                                 source.name() + "' at node " + std::to_string(slots_[0]) + " is not in [0, " +
                                 std::to_string(extent) + ")");
  }

  T reduce(const Term& t) {
    if (ir::ReduceOp(t.op) == ir::ReduceOp::sum) {
      auto sum = math_.sum(t.dtype);
      for_each_term(t, [&](int body) { sum.add(real(body)); });
      return sum.result();
    }
    constexpr ir::BinaryOp steps[] = {ir::BinaryOp::add, ir::BinaryOp::mul, ir::BinaryOp::max, ir::BinaryOp::min};
    T result = math_.exact(ir::identity(ir::ReduceOp(t.op)));
    bool empty = true;
    for_each_term(t, [&](int body) {
      const T value = real(body);
      result = empty ? value : math_.binary(steps[t.op], result, value, t.dtype);
      empty = false;
    });
    return result;
  }

  /// Calls `f` on the body for each value of the axis. Nested reductions of one kind are one, into one accumulator.
  template <class F>
  void for_each_term(const Term& t, F f) {
    const std::int64_t extent = integer(t.parts[0]);
    const Term& body = at(t.parts[1]);
    for (std::int64_t i = 0; i < extent; ++i) {
      slots_[std::size_t(t.slot)] = i;
      if (body.kind == ir::ExprKind::reduce && body.op == t.op)
        for_each_term(body, f);
      else
        f(t.parts[1]);
    }
  }

  Truth truth(int term) {
    const Term& t = at(term);
    if (t.kind == ir::ExprKind::int_imm) return {t.integer != 0};
    if (t.kind == ir::ExprKind::unary) return !truth(t.parts[0]);
    if (t.kind == ir::ExprKind::uf_call) return {view_.is_leaf(present(t))};
    if (t.kind == ir::ExprKind::select) {
      const Truth c = truth(t.parts[0]), a = truth(t.parts[1]), b = truth(t.parts[2]);
      return (c && a) || (!c && b);
    }
    if (t.kind == ir::ExprKind::cast) {
      if (is_int(t.operand)) return {integer(t.parts[0]) != 0};
      return math_.compare(ir::BinaryOp::ne, real(t.parts[0]), math_.exact(0));
    }
    if (t.kind != ir::ExprKind::binary)
      fail(Code::internal, "a condition is expected where an expression of another kind stands");
    const auto o = ir::BinaryOp(t.op);
    if (is_float(t.operand)) {
      const T a = real(t.parts[0]), b = real(t.parts[1]);
      return math_.compare(o, a, b);
    }
    if (is_int(t.operand)) {
      const std::int64_t a = integer(t.parts[0]), b = integer(t.parts[1]);
      return {ir::fold(o, a, b) != 0};
    }
    const Truth a = truth(t.parts[0]);
    if (o == ir::BinaryOp::logical_and) return a.certain && !a.value ? a : a && truth(t.parts[1]);
    if (o == ir::BinaryOp::logical_or) return a.certain && a.value ? a : a || truth(t.parts[1]);
    const Truth b = truth(t.parts[1]), same = (a && b) || (!a && !b);
    return o == ir::BinaryOp::eq ? same : !same;
  }

  /// An integer, or the number of a node; -1: no node.
  std::int64_t integer(int term) {
    const Term& t = at(term);
    switch (t.kind) {
      case ir::ExprKind::int_imm: return t.integer;
      case ir::ExprKind::var: return slots_[std::size_t(t.slot)];
      case ir::ExprKind::unary: {
        const std::int64_t a = integer(t.parts[0]);
        if (ir::UnaryOp(t.op) == ir::UnaryOp::neg) return -a;
        if (ir::UnaryOp(t.op) == ir::UnaryOp::abs) return a < 0 ? -a : a;
        return ir::UnaryOp(t.op) == ir::UnaryOp::relu && a < 0 ? 0 : a;
      }
      case ir::ExprKind::binary: {
        const auto o = ir::BinaryOp(t.op);
        const std::int64_t a = integer(t.parts[0]), b = integer(t.parts[1]);
        if ((o == ir::BinaryOp::div || o == ir::BinaryOp::mod) && b == 0)
          return o == ir::BinaryOp::div ? a : 0;  // as in generated code
        return ir::fold(o, a, b);
      }
      case ir::ExprKind::select: return integer(t.parts[truth(t.parts[0]).value ? 1 : 2]);
      case ir::ExprKind::cast:
        if (is_float(t.operand)) fail(Code::internal, "computed data becomes an integer");
        return is_int(t.operand) ? integer(t.parts[0]) : truth(t.parts[0]).value;
      case ir::ExprKind::uf_call: return function(t);
      case ir::ExprKind::reduce: return integer_reduce(t);
      default: fail(Code::internal, "an integer is expected where an expression of another kind stands");
    }
  }

  std::int64_t integer_reduce(const Term& t) {
    constexpr ir::BinaryOp steps[] = {ir::BinaryOp::add, ir::BinaryOp::mul, ir::BinaryOp::max, ir::BinaryOp::min};
    std::int64_t result = ir::ReduceOp(t.op) == ir::ReduceOp::prod;
    bool empty = true;
    for_each_term(t, [&](int body) {
      const std::int64_t value = integer(body);
      result = empty ? value : ir::fold(steps[t.op], result, value);
      empty = false;
    });
    return result;
  }

  std::int64_t function(const Term& t) {
    const std::size_t accessor = std::size_t(t.slot);
    switch (ir::UfKind(t.op)) {
      case ir::UfKind::child: {
        const std::int64_t node = integer(t.parts[0]);
        return node < 0 ? -1 : child_[accessor][std::size_t(node)];
      }
      case ir::UfKind::kth_child: {
        const std::int64_t node = integer(t.parts[0]), k = integer(t.parts[1]);
        if (node < 0 || k < 0) return -1;
        const std::vector<int>& kids = kids_[accessor][std::size_t(node)];
        return k < std::int64_t(kids.size()) ? kids[std::size_t(k)] : -1;
      }
      case ir::UfKind::num_children: return std::int64_t(kids_[accessor][std::size_t(present(t))].size());
      case ir::UfKind::field:
        return std::int64_t(view_.field(t.slot, present(t), t.parts.size() > 1 ? int(integer(t.parts[1])) : 0));
      default: fail(Code::internal, "a function that lowering makes stands in an operator");
    }
  }

  /// The node that a function is of, which must be there.
  int present(const Term& t) {
    const std::int64_t node = integer(t.parts[0]);
    if (node < 0) fail(Code::internal, "the structure of an absent child is read at node " + std::to_string(slots_[0]));
    return int(node);
  }

  const Graph& graph_;
  const NodeView& view_;
  const Arithmetic<T> math_;
  const States<double>* const given_;
  const std::vector<char>* const wanted_;
  const int num_nodes_;
  int num_slots_ = 1;
  std::vector<Term> terms_;
  std::vector<Plan> plans_;
  std::vector<std::int64_t> slots_;                  // slot 0: the current node
  std::vector<std::vector<int>> child_;              // [accessor][node]
  std::vector<std::vector<std::vector<int>>> kids_;  // [container][node]
  States<T> states_;
  int recursion_ = 0;
};

}  // namespace detail

/// Evaluates the states of `graph` at every node of `view`. Reading a placeholder at an absent child gives 0. Throws
/// `invalid_weights` for an input that nothing fits is bound to, `out_of_range` for an index outside of a tensor, and
/// `invalid_structure` for a cycle.
template <class T>
States<T> interpret(const Graph& graph, const NodeView& view, const Weights& weights,
                    const Arithmetic<T>& arithmetic = {}) {
  return detail::GraphInterpreter<T>(graph, view, weights, arithmetic, nullptr, nullptr).run();
}

/// The same with children's states not computed here but given, and taken as exact: what each node's states should be
/// if those of its children are right. Held against the very results that are `given`, the bounds do not grow with the
/// height of a tree, so they stay tight where those of `interpret` have long become wide; and if every node is right by
/// its children, all are. `wanted`, [node]: where states are computed, which have no elements elsewhere; null:
/// everywhere.
template <class T>
States<T> interpret_from(const States<double>& given, const Graph& graph, const NodeView& view, const Weights& weights,
                         const Arithmetic<T>& arithmetic = {}, const std::vector<char>* wanted = nullptr) {
  return detail::GraphInterpreter<T>(graph, view, weights, arithmetic, &given, wanted).run();
}

}  // namespace cortex::ra
