// Statements of the ILIR: loops with variable extents, conditionals, stores, barriers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cortex/ir/expr.hpp"

namespace cortex::ir {

enum class StmtKind : std::uint8_t { for_, let, store, if_, block, alloc, barrier };

struct StmtNode : std::enable_shared_from_this<StmtNode> {
  const StmtKind kind;
  virtual ~StmtNode() = default;

 protected:
  explicit StmtNode(StmtKind kind) : kind(kind) {}
};

/// A handle to a statement node.
class Stmt {
 public:
  Stmt() = default;
  template <std::derived_from<StmtNode> T>
  Stmt(std::shared_ptr<const T> node) : node_(std::move(node)) {}
  const StmtNode* get() const { return node_.get(); }
  const StmtNode* operator->() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }
  bool same_as(const Stmt& other) const { return node_ == other.node_; }
  template <class T>
  const T* as() const {
    return node_ && node_->kind == T::tag ? static_cast<const T*>(node_.get()) : nullptr;
  }

 private:
  std::shared_ptr<const StmtNode> node_;
};

inline Stmt handle_of(const StmtNode& node) { return Stmt(node.shared_from_this()); }

enum class ForKind : std::uint8_t {
  serial,
  parallel,    // the workers of the call share its iterations: worker w of W runs [extent w / W, extent (w + 1) / W), or,
               // shared in pieces of `piece` iterations each, the pieces [count w / W, count (w + 1) / W)
  vectorized,  // all iterations at once, in the lanes of a vector; constant extent
  unrolled,    // copied out; constant extent
};

/// `for var in [0, extent)`. `dim` is the named dimension that the loop ranges over.
struct For : StmtNode {
  static constexpr StmtKind tag = StmtKind::for_;
  Expr var;
  Dim dim;
  Expr extent;
  ForKind loop;
  Stmt body;
  std::int64_t piece;  // of a parallel loop: divides the extent
  static Stmt make(Expr var, Dim dim, Expr extent, ForKind loop, Stmt body, std::int64_t piece = 1) {
    require(var && var.as<Var>() && extent && is_int(extent.dtype()) && body,
            "a loop without variable, extent or body");
    require(piece >= 1 && (piece == 1 || loop == ForKind::parallel), "a loop in pieces that is not parallel");
    return std::make_shared<const For>(Key{}, std::move(var), std::move(dim), std::move(extent), loop, std::move(body),
                                       piece);
  }
  struct Key {};
  For(Key, Expr var, Dim dim, Expr extent, ForKind loop, Stmt body, std::int64_t piece)
      : StmtNode(tag),
        var(std::move(var)),
        dim(std::move(dim)),
        extent(std::move(extent)),
        loop(loop),
        body(std::move(body)),
        piece(piece) {}
};

/// `body` with `var` standing for `value`.
struct LetStmt : StmtNode {
  static constexpr StmtKind tag = StmtKind::let;
  Expr var, value;
  Stmt body;
  static Stmt make(Expr var, Expr value, Stmt body) {
    require(var && var.as<Var>() && value && var.type() == value.type() && body,
            "a let of another type than its value");
    return std::make_shared<const LetStmt>(Key{}, std::move(var), std::move(value), std::move(body));
  }
  struct Key {};
  LetStmt(Key, Expr var, Expr value, Stmt body)
      : StmtNode(tag), var(std::move(var)), value(std::move(value)), body(std::move(body)) {}
};

struct Store : StmtNode {
  static constexpr StmtKind tag = StmtKind::store;
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  static Stmt make(Buffer buffer, std::vector<Expr> indices, Expr value) {
    require(buffer && value && value.dtype() == buffer->dtype, "a store of another type than its buffer");
    for (const Expr& index : indices) require(index && is_int(index.dtype()), "an index that is not an integer");
    return std::make_shared<const Store>(Key{}, std::move(buffer), std::move(indices), std::move(value));
  }
  struct Key {};
  Store(Key, Buffer buffer, std::vector<Expr> indices, Expr value)
      : StmtNode(tag), buffer(std::move(buffer)), indices(std::move(indices)), value(std::move(value)) {}
};

/// The conditional operator (paper section 5.2). `else_body` may be empty.
struct If : StmtNode {
  static constexpr StmtKind tag = StmtKind::if_;
  Expr condition;
  Stmt then_body, else_body;
  static Stmt make(Expr condition, Stmt then_body, Stmt else_body = {}) {
    require(condition && condition.type() == Type{DType::boolean, 1} && then_body,
            "an if without boolean condition or body");
    return std::make_shared<const If>(Key{}, std::move(condition), std::move(then_body), std::move(else_body));
  }
  struct Key {};
  If(Key, Expr condition, Stmt then_body, Stmt else_body)
      : StmtNode(tag),
        condition(std::move(condition)),
        then_body(std::move(then_body)),
        else_body(std::move(else_body)) {}
};

/// Statements one after the other; nested blocks are flattened, and one statement alone is itself.
struct Block : StmtNode {
  static constexpr StmtKind tag = StmtKind::block;
  std::vector<Stmt> stmts;
  static Stmt make(const std::vector<Stmt>& stmts) {
    std::vector<Stmt> flat;
    for (const Stmt& stmt : stmts) {
      if (!stmt) continue;
      if (const auto* block = stmt.as<Block>())
        flat.insert(flat.end(), block->stmts.begin(), block->stmts.end());
      else
        flat.push_back(stmt);
    }
    if (flat.size() == 1) return flat.front();
    return std::make_shared<const Block>(Key{}, std::move(flat));
  }
  struct Key {};
  Block(Key, std::vector<Stmt> stmts) : StmtNode(tag), stmts(std::move(stmts)) {}
};

/// `body` with a buffer of local scope; its contents are undefined at the start of each execution.
struct Alloc : StmtNode {
  static constexpr StmtKind tag = StmtKind::alloc;
  Buffer buffer;
  Stmt body;
  static Stmt make(Buffer buffer, Stmt body) {
    require(buffer && buffer->scope == Scope::local && body, "an allocation that is not local");
    return std::make_shared<const Alloc>(Key{}, std::move(buffer), std::move(body));
  }
  struct Key {};
  Alloc(Key, Buffer buffer, Stmt body) : StmtNode(tag), buffer(std::move(buffer)), body(std::move(body)) {}
};

/// Every worker of the group arrives before any goes on, and sees what the others wrote before it.
struct Barrier : StmtNode {
  static constexpr StmtKind tag = StmtKind::barrier;
  static Stmt make() { return std::make_shared<const Barrier>(Key{}); }
  struct Key {};
  explicit Barrier(Key) : StmtNode(tag) {}
};

}  // namespace cortex::ir
