// Expressions: the one family that the recursive API's operator graph and the ILIR share. Nodes are immutable, shared
// by handle, and built only by `make`, which validates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/dim.hpp"
#include "cortex/base/dtype.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/handle.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/buffer.hpp"

// Constructors name their parameters after the members: users who compile with -Wshadow need not hear of it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"

namespace cortex::ir {

/// An element type and a number of vector lanes (1: scalar).
struct Type {
  DType dtype = DType::i32;
  int lanes = 1;
  friend bool operator==(const Type&, const Type&) = default;
};

enum class ExprKind : std::uint8_t {
  int_imm,
  float_imm,
  var,
  unary,
  binary,
  fma,
  select,
  cast,
  load,
  uf_call,
  reduce,
  let,
  ramp,
  broadcast,
};

/// How many operations may stand inside one another in an expression: passes descend by recursion, and the end of an
/// expression's last handle does.
inline constexpr int max_depth = 4000;

struct ExprNode : Counted {
  const ExprKind kind;
  const std::uint16_t depth;  // how many operations stand inside one another here
  const Type type;

 protected:
  /// A node above parts of at most that depth. Throws `Error{invalid_model}` beyond `max_depth`.
  ExprNode(ExprKind kind, Type type, int depth_of_parts = 0)
      : kind(kind), depth(std::uint16_t(depth_of_parts + 1)), type(type) {
    if (depth_of_parts >= max_depth)
      throw Error(Code::invalid_model,
                  "an expression of more than " + std::to_string(max_depth) +
                      " operations inside one another; give parts of it names with compute, or add up with sum");
  }
};

/// A handle to an expression node.
class Expr {
 public:
  Expr() = default;
  explicit Expr(const ExprNode* node) : node_(node) {}  // new, or one that has handles
  const ExprNode* get() const { return static_cast<const ExprNode*>(node_.get()); }
  const ExprNode* operator->() const { return get(); }
  explicit operator bool() const { return node_.get() != nullptr; }
  bool same_as(const Expr& other) const { return get() == other.get(); }
  Type type() const { return get()->type; }
  DType dtype() const { return get()->type.dtype; }
  int lanes() const { return get()->type.lanes; }

  /// The node as a `T`, or null if it is of another kind.
  template <class T>
  const T* as() const {
    return node_.get() && get()->kind == T::tag ? static_cast<const T*>(get()) : nullptr;
  }

 private:
  Handle node_;
};

/// The handle that owns `node`.
inline Expr handle_of(const ExprNode& node) { return Expr(&node); }

/// The depth of the deepest of `parts`.
template <class... Exprs>
int deepest(const Exprs&... parts) {
  return std::max({int(parts->depth)...});
}
inline int deepest(const Vector<Expr>& parts) {
  int result = 0;
  for (const Expr& part : parts) result = std::max<int>(result, part->depth);
  return result;
}

inline void require(bool condition, const char* what) {
  if (!condition) throw Error(Code::internal, std::string("malformed IR: ") + what);
}

struct IntImm : ExprNode {
  static constexpr ExprKind tag = ExprKind::int_imm;
  std::int64_t value;
  static Expr make(std::int64_t value, DType dtype = DType::i32) {
    require(!is_float(dtype), "an integer immediate of a floating-point type");
    return Expr(new IntImm(value, dtype));
  }

 private:
  IntImm(std::int64_t value, DType dtype) : ExprNode(tag, {dtype, 1}), value(value) {}
};

struct FloatImm : ExprNode {
  static constexpr ExprKind tag = ExprKind::float_imm;
  double value;
  static Expr make(double value, DType dtype) {
    require(is_float(dtype), "a floating-point immediate of an integer type");
    return Expr(new FloatImm(value, dtype));
  }

 private:
  FloatImm(double value, DType dtype) : ExprNode(tag, {dtype, 1}), value(value) {}
};

/// A variable. Each is itself: two of the same name are different variables.
struct Var : ExprNode {
  static constexpr ExprKind tag = ExprKind::var;
  std::string name;
  static Expr make(std::string name, Type type = {DType::i32, 1}) {
    require(!name.empty(), "a variable without a name");
    return Expr(new Var(std::move(name), type));
  }

 private:
  Var(std::string name, Type type) : ExprNode(tag, type), name(std::move(name)) {}
};

/// `exponent` and `significand` take a positive normal number apart: x = significand * 2^exponent, the significand in
/// [2/3, 4/3). Of other numbers they give something, which nothing may depend on. They are the compiler's own.
enum class UnaryOp : std::uint8_t {
  neg,
  abs,
  exp,
  log,
  sqrt,
  tanh,
  sigmoid,
  relu,
  round,
  logical_not,
  floor,
  erf,
  sin,
  cos,
  log1p,
  expm1,
  exponent,
  significand
};

/// Whether `op` is a function that a call of the C library computes, or an approximation.
constexpr bool is_transcendental(UnaryOp op) {
  using enum UnaryOp;
  return op == exp || op == log || op == tanh || op == sigmoid || (op >= erf && op <= expm1);
}

struct Unary : ExprNode {
  static constexpr ExprKind tag = ExprKind::unary;
  UnaryOp op;
  Expr a;
  bool exact;  // transcendental functions: the C library's, not the approximation
  static Expr make(UnaryOp op, Expr a, bool exact = false) {
    require(bool(a), "a unary operator without operand");
    return Expr(new Unary(op, std::move(a), exact));
  }

 private:
  Unary(UnaryOp op, Expr a, bool exact) : ExprNode(tag, a.type(), deepest(a)), op(op), a(std::move(a)), exact(exact) {}
};

/// `min` and `max` give NaN if either side is NaN (IEEE 754-2019 minimum, maximum). Division and remainder of integers
/// are of non-negative numbers. `ldexp(a, b)` is a * 2^b for an integral-valued b in the exponent's normal range.
/// `ratio(a, b)` is a / b of floats where b is 1 or more, or NaN: a divisor that takes no care of small ones. `pow(a,
/// b)` is a^b of floats as C defines it.
enum class BinaryOp : std::uint8_t {
  add,
  sub,
  mul,
  div,
  mod,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  ldexp,
  ratio,
  pow
};

constexpr bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }
constexpr bool is_transcendental(BinaryOp op) { return op == BinaryOp::pow; }

struct Binary : ExprNode {
  static constexpr ExprKind tag = ExprKind::binary;
  BinaryOp op;
  Expr a, b;
  static Expr make(BinaryOp op, Expr a, Expr b) {
    require(a && b, "a binary operator without operand");
    require(a.type() == b.type(), "a binary operator on two types");
    return Expr(new Binary(op, std::move(a), std::move(b)));
  }

 private:
  Binary(BinaryOp op, Expr a, Expr b)
      : ExprNode(tag, is_comparison(op) ? Type{DType::boolean, a.lanes()} : a.type(), deepest(a, b)),
        op(op),
        a(std::move(a)),
        b(std::move(b)) {}
};

/// a * b + c, rounded once.
struct Fma : ExprNode {
  static constexpr ExprKind tag = ExprKind::fma;
  Expr a, b, c;
  static Expr make(Expr a, Expr b, Expr c) {
    require(a && b && c && a.type() == b.type() && b.type() == c.type(), "a fused multiply-add on several types");
    require(is_float(a.dtype()), "a fused multiply-add of integers");
    return Expr(new Fma(std::move(a), std::move(b), std::move(c)));
  }

 private:
  Fma(Expr a, Expr b, Expr c)
      : ExprNode(tag, a.type(), deepest(a, b, c)), a(std::move(a)), b(std::move(b)), c(std::move(c)) {}
};

struct Select : ExprNode {
  static constexpr ExprKind tag = ExprKind::select;
  Expr condition, then_value, else_value;
  static Expr make(Expr condition, Expr then_value, Expr else_value) {
    require(condition && condition.dtype() == DType::boolean, "a select without a boolean condition");
    require(then_value && else_value && then_value.type() == else_value.type(), "a select of two types");
    require(condition.lanes() == then_value.lanes(), "a select of different numbers of lanes");
    return Expr(new Select(std::move(condition), std::move(then_value), std::move(else_value)));
  }

 private:
  Select(Expr c, Expr t, Expr e)
      : ExprNode(tag, t.type(), deepest(c, t, e)),
        condition(std::move(c)),
        then_value(std::move(t)),
        else_value(std::move(e)) {}
};

struct Cast : ExprNode {
  static constexpr ExprKind tag = ExprKind::cast;
  Expr a;
  static Expr make(DType dtype, Expr a) {
    if (a.dtype() == dtype) return a;
    return Expr(new Cast(dtype, std::move(a)));
  }

 private:
  Cast(DType dtype, Expr a) : ExprNode(tag, {dtype, a.lanes()}, deepest(a)), a(std::move(a)) {}
};

/// An element of a buffer, one index per logical dimension. A vector index (a ramp) in one of them reads a vector.
struct Load : ExprNode {
  static constexpr ExprKind tag = ExprKind::load;
  Buffer buffer;
  Vector<Expr> indices;
  static Expr make(Buffer buffer, Vector<Expr> indices) {
    require(bool(buffer), "a load without a buffer");
    int lanes = buffer->lanes;
    for (const Expr& index : indices) {
      require(index && is_int(index.dtype()), "an index that is not an integer");
      if (index.lanes() > 1) lanes = index.lanes();
    }
    Type type{buffer->dtype, lanes};
    return Expr(new Load(std::move(buffer), std::move(indices), type));
  }

 private:
  Load(Buffer buffer, Vector<Expr> indices, Type type)
      : ExprNode(tag, type, deepest(indices)), buffer(std::move(buffer)), indices(std::move(indices)) {}
};

/// What an uninterpreted function stands for (paper section 5.1). Each is given its meaning, an array of the linearizer
/// or arithmetic on its numbering, by the pass `resolve_structure`.
enum class UfKind : std::uint8_t {
  child,         // (node) -> node; the child through named accessor `accessor`; num_nodes where there is none
  kth_child,     // (node, k) -> node; child k of container `accessor`; num_nodes where there are fewer
  num_children,  // (node) -> how many children container `accessor` holds
  field,         // (node[, k]) -> an integer field of the node
  is_leaf,       // (node) -> bool
  num_nodes,
  num_leaves,
  num_internal,
  num_batches,
  num_internal_batches,    // () -> a count
  all_node,                // (n_idx) -> node: any order
  leaf_node,               // (n_idx) -> node: the leaves
  internal_node,           // (n_idx) -> node: the inner nodes, any order
  sequence_node,           // (n_idx) -> node: all nodes, children before parents
  internal_sequence_node,  // (n_idx) -> node: the inner nodes, children before parents
  batch_node,              // (b_idx, n_idx) -> node: batch 0 holds the leaves
  batch_length,            // (b_idx)
  internal_batch_node,
  internal_batch_length,  // the same over the inner nodes' batches alone
  edge,                   // (node, k) -> edge of container `accessor`
  edge_child,             // (edge) -> node
  span_edges,             // (first node, count) -> how many edges the nodes first .. first + count have
  downward_node,          // (n_idx) -> node: parents before children; the inner nodes come first
  num_roots,              // () -> how many roots the call has, repeated ones included
  root_node,              // (n_idx) -> node: the roots, in the order given
  part_node,              // (p_idx, n_idx) -> node: part p_idx % parts of batch p_idx / parts
  part_length,            // (p_idx)
  listed_node,    // (p_idx, n_idx) -> node: those of part p_idx and the parts behind it in all batches, any order
  listed_length,  // (p_idx, parts) -> how many part p_idx and those behind it have, so many parts together
  num_ranges,     // () -> how many ranges all nodes of a piece are
  range_node,     // (range, n_idx) -> node: those of a `NodeRange`, any order
  range_length,   // (range)
  num_groups,     // () -> how many batches of subtrees there are
  group_length,   // (g_idx) -> how many subtrees group g_idx has
  group_node,     // (g_idx, t_idx) -> node: the top of a subtree
  num_inner,      // (node) -> how many of its children are in its own subtree
  inner_child,    // (node, k) -> node
  worker,
  num_workers,  // () -> which worker runs this, of how many
  thread,       // () -> which of the worker's threads: on a GPU a worker is a thread block
};

/// Nodes of a piece (structure/pieces.hpp) that have consecutive numbers:
///
///   of a whole call       lower: all nodes          upper: none, and no range      inner: the inner nodes
///   of one of several     lower: its inner nodes    upper: its leaves              inner: its inner nodes
enum class NodeRange : std::uint8_t { lower, upper, inner };

/// Whether a call is a child of the node, or at the end of the edge, that it is given. `inner_child` is none of these:
/// a loop over a subtree binds it to a variable, and does the work of that node.
constexpr bool is_child(UfKind kind) {
  return kind == UfKind::child || kind == UfKind::kth_child || kind == UfKind::edge_child;
}

/// Of num_nodes, num_leaves, num_internal, part_length, listed_length and range_length, `accessor` is the number of the
/// tabulation that the rows counted are of: in calls that have tables these are none.
struct Uf {
  UfKind kind;
  std::string name;
  int accessor = -1;  // the number of the accessor in its group (named children, containers, fields)
  friend bool operator==(const Uf& a, const Uf& b) { return a.kind == b.kind && a.accessor == b.accessor; }
};

struct UfCall : ExprNode {
  static constexpr ExprKind tag = ExprKind::uf_call;
  Uf uf;
  Vector<Expr> args;
  static Expr make(Uf uf, Vector<Expr> args) {
    for (const Expr& arg : args) require(arg && is_int(arg.dtype()), "an uninterpreted function of a non-integer");
    return Expr(new UfCall(std::move(uf), std::move(args)));
  }

 private:
  UfCall(Uf uf, Vector<Expr> args)
      : ExprNode(tag, {uf.kind == UfKind::is_leaf ? DType::boolean : DType::i32, 1}, deepest(args)),
        uf(std::move(uf)),
        args(std::move(args)) {}
};

enum class ReduceOp : std::uint8_t { sum, prod, max, min };

/// One axis of a reduction: its variable, its named dimension, and its extent (an expression for the children of a
/// node).
struct ReduceAxis {
  Expr var;
  Dim dim;
  Expr extent;
};

/// A reduction of `body` over `axis`; over no elements it is the operation's identity. Only in the recursive API's
/// graph: lowering turns it into a loop.
struct Reduce : ExprNode {
  static constexpr ExprKind tag = ExprKind::reduce;
  ReduceOp op;
  ReduceAxis axis;
  Expr body;
  static Expr make(ReduceOp op, ReduceAxis axis, Expr body) {
    require(body && axis.var && axis.var.as<Var>() && axis.extent, "a reduction without axis or body");
    return Expr(new Reduce(op, std::move(axis), std::move(body)));
  }

 private:
  Reduce(ReduceOp op, ReduceAxis axis, Expr body)
      : ExprNode(tag, body.type(), deepest(axis.extent, body)), op(op), axis(std::move(axis)), body(std::move(body)) {}
};

/// `body` with `var` standing for `value`, which is evaluated once.
struct Let : ExprNode {
  static constexpr ExprKind tag = ExprKind::let;
  Expr var, value, body;
  static Expr make(Expr var, Expr value, Expr body) {
    require(var && var.as<Var>() && value && body && var.type() == value.type(),
            "a let of another type than its value");
    return Expr(new Let(std::move(var), std::move(value), std::move(body)));
  }

 private:
  Let(Expr var, Expr value, Expr body)
      : ExprNode(tag, body.type(), deepest(value, body)),
        var(std::move(var)),
        value(std::move(value)),
        body(std::move(body)) {}
};

/// The vector base, base + 1, ... of `lanes` integers.
struct Ramp : ExprNode {
  static constexpr ExprKind tag = ExprKind::ramp;
  Expr base;
  static Expr make(Expr base, int lanes) {
    require(base && is_int(base.dtype()) && base.lanes() == 1 && lanes > 1,
            "a ramp from something that is no integer scalar");
    return Expr(new Ramp(std::move(base), lanes));
  }

 private:
  Ramp(Expr base, int lanes) : ExprNode(tag, {base.dtype(), lanes}, deepest(base)), base(std::move(base)) {}
};

/// `value` in every lane.
struct Broadcast : ExprNode {
  static constexpr ExprKind tag = ExprKind::broadcast;
  Expr value;
  static Expr make(Expr value, int lanes) {
    require(value && value.lanes() == 1 && lanes > 1, "a broadcast of a vector");
    return Expr(new Broadcast(std::move(value), lanes));
  }

 private:
  Broadcast(Expr value, int lanes) : ExprNode(tag, {value.dtype(), lanes}, deepest(value)), value(std::move(value)) {}
};

}  // namespace cortex::ir

#pragma GCC diagnostic pop
