// Statements of the ILIR: loops with variable extents, conditionals, stores, barriers.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/expr.hpp"

// Constructors name their parameters after the members: users who compile with -Wshadow need not hear of it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"

namespace cortex::ir {

enum class StmtKind : std::uint8_t {
  for_,
  let,
  store,
  if_,
  block,
  alloc,
  mma,
  join,
  tile_rows,
  tile_product,
  barrier,
  prefetch
};

struct StmtNode : Counted {
  const StmtKind kind;

 protected:
  explicit StmtNode(StmtKind kind) : kind(kind) {}
};

/// A handle to a statement node.
class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(const StmtNode* node) : node_(node) {}  // new, or one that has handles
  const StmtNode* get() const { return static_cast<const StmtNode*>(node_.get()); }
  const StmtNode* operator->() const { return get(); }
  explicit operator bool() const { return node_.get() != nullptr; }
  bool same_as(const Stmt& other) const { return get() == other.get(); }
  template <class T>
  const T* as() const {
    return node_.get() && get()->kind == T::tag ? static_cast<const T*>(get()) : nullptr;
  }

 private:
  Handle node_;
};

inline Stmt handle_of(const StmtNode& node) { return Stmt(&node); }

enum class ForKind : std::uint8_t {
  serial,
  parallel,  // the workers of the call share its iterations: worker w of W runs [extent w / W, extent (w + 1) / W), or,
             // shared in pieces of `piece` iterations each, the pieces [count w / W, count (w + 1) / W)
  vectorized,  // all iterations at once, in the lanes of a vector; constant extent
  unrolled,    // copied out; constant extent
  threads,     // the threads of a GPU's block share its iterations: thread t of T runs t, t + T, t + 2 T, ...
  parts,       // the parts of a sum, in whatever order; constant extent. Of a GPU neighbouring threads have one each
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
    return Stmt(new For(std::move(var), std::move(dim), std::move(extent), loop, std::move(body), piece));
  }

 private:
  For(Expr var, Dim dim, Expr extent, ForKind loop, Stmt body, std::int64_t piece)
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
    return Stmt(new LetStmt(std::move(var), std::move(value), std::move(body)));
  }

 private:
  LetStmt(Expr var, Expr value, Stmt body)
      : StmtNode(tag), var(std::move(var)), value(std::move(value)), body(std::move(body)) {}
};

struct Store : StmtNode {
  static constexpr StmtKind tag = StmtKind::store;
  Buffer buffer;
  Vector<Expr> indices;
  Expr value;
  static Stmt make(Buffer buffer, Vector<Expr> indices, Expr value) {
    require(buffer && value && value.dtype() == buffer->dtype, "a store of another type than its buffer");
    for (const Expr& index : indices) require(index && is_int(index.dtype()), "an index that is not an integer");
    return Stmt(new Store(std::move(buffer), std::move(indices), std::move(value)));
  }

 private:
  Store(Buffer buffer, Vector<Expr> indices, Expr value)
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
    return Stmt(new If(std::move(condition), std::move(then_body), std::move(else_body)));
  }

 private:
  If(Expr condition, Stmt then_body, Stmt else_body)
      : StmtNode(tag),
        condition(std::move(condition)),
        then_body(std::move(then_body)),
        else_body(std::move(else_body)) {}
};

/// Statements one after the other; nested blocks are flattened, and one statement alone is itself.
struct Block : StmtNode {
  static constexpr StmtKind tag = StmtKind::block;
  Vector<Stmt> stmts;
  static Stmt make(const Vector<Stmt>& stmts) {
    Vector<Stmt> flat;
    for (const Stmt& stmt : stmts) {
      if (!stmt) continue;
      if (const auto* block = stmt.as<Block>())
        append(flat, block->stmts);
      else
        flat.push_back(stmt);
    }
    if (flat.size() == 1) return flat.front();
    return Stmt(new Block(std::move(flat)));
  }

 private:
  Block(Vector<Stmt> stmts) : StmtNode(tag), stmts(std::move(stmts)) {}
};

/// The statement that does nothing, and whether a statement is it.
inline Stmt nothing() { return Block::make({}); }
inline bool is_nothing(const Stmt& s) { return s.as<Block>() && s.as<Block>()->stmts.empty(); }

/// `body` with a buffer of local scope; its contents are undefined at the start of each execution.
struct Alloc : StmtNode {
  static constexpr StmtKind tag = StmtKind::alloc;
  Buffer buffer;
  Stmt body;
  static Stmt make(Buffer buffer, Stmt body) {
    require(buffer && buffer->scope == Scope::local && body, "an allocation that is not local");
    return Stmt(new Alloc(std::move(buffer), std::move(body)));
  }

 private:
  Alloc(Buffer buffer, Stmt body) : StmtNode(tag), buffer(std::move(buffer)), body(std::move(body)) {}
};

/// `body` inside of lets, the first of them outermost: variables with what they stand for, or the lets of other bodies.
inline Stmt with_lets(const Vector<std::pair<Expr, Expr>>& lets, Stmt body) {
  for (const auto& [var, value] : reversed(lets)) body = LetStmt::make(var, value, body);
  return body;
}
inline Stmt with_lets(const Vector<const LetStmt*>& lets, Stmt body) {
  for (const LetStmt* let : reversed(lets)) body = LetStmt::make(let->var, let->value, body);
  return body;
}

/// `body` with buffers of local scope, the first of them outermost.
inline Stmt with_allocs(const Vector<Buffer>& buffers, Stmt body) {
  for (const Buffer& buffer : reversed(buffers)) body = Alloc::make(buffer, body);
  return body;
}

/// A warp's product of a tile, made by tensor cores: sum[i,n] += W[i,k] * x[k,n] for 16 outputs i, 8 rows n and K
/// indices k, which are 16 of bf16 or f16, and 8 of tf32. All 32 threads of the warp run it together. Thread l has
///   sum       outputs l / 4 and l / 4 + 8 of rows l % 4 * 2 and l % 4 * 2 + 1, output by output: a local buffer, [4]
///   x         of row l / 4, rounded by casts: k = l % 4 * 2 + {0, 1, 8, 9}; of tf32 k = l % 4 + {0, 4}
/// and `weights` is a load of the tile's first element, in a layout that tiles lie in one after the other
/// (`schedule::fragment_layout`). Products are exact, and added in f32.
struct Mma : StmtNode {
  static constexpr StmtKind tag = StmtKind::mma;
  Buffer sum;
  Expr weights;
  Vector<Expr> x;
  static Stmt make(Buffer sum, Expr weights, Vector<Expr> x) {
    require(sum && sum->scope == Scope::local && sum->dims.size() == 1 && sum->dims[0].extent() == 4 &&
                sum->dtype == DType::f32,
            "a tile's sums that are no four elements of f32");
    require(weights && weights.as<Load>() && weights.lanes() == 1, "a tile's weights that are not loaded");
    require(x.size() == (weights.dtype() == DType::tf32 ? 2u : 4u), "a tile of another shape than its type's");
    for (const Expr& e : x) require(e && e.as<Cast>() && e.type() == weights.type(), "a tile's operand is not rounded");
    return Stmt(new Mma(std::move(sum), std::move(weights), std::move(x)));
  }

 private:
  Mma(Buffer sum, Expr weights, Vector<Expr> x)
      : StmtNode(tag), sum(std::move(sum)), weights(std::move(weights)), x(std::move(x)) {}
};

/// Sums over `threads` neighbouring threads of a warp, a power of two, by halves: of 8 ((0 + 1) + (2 + 3)) + ((4 + 5) +
/// (6 + 7)). Each thread has `terms[r]` of R sums, a local buffer, [R]; thread t of them is given sum t % R in `sum`, a
/// local buffer without dimensions. R is a power of two of at most `threads`. All 32 threads of the warp run it
/// together. `terms` is undefined afterwards. How many sums are joined at once does not change one of them.
struct Join : StmtNode {
  static constexpr StmtKind tag = StmtKind::join;
  Buffer sum, terms;
  int threads;
  static Stmt make(Buffer sum, Buffer terms, int threads) {
    require(sum && terms && sum->scope == Scope::local && terms->scope == Scope::local && sum->dims.empty() &&
                terms->dims.size() == 1 && sum->dtype == terms->dtype && is_float(sum->dtype),
            "a join of what threads do not have for themselves");
    const std::int64_t sums = terms->dims[0].extent();
    require(threads >= 2 && threads <= 32 && (threads & (threads - 1)) == 0 && sums >= 1 && sums <= threads &&
                (sums & (sums - 1)) == 0,
            "a join of numbers of threads or sums that are no powers of two of a warp");
    return Stmt(new Join(std::move(sum), std::move(terms), threads));
  }

 private:
  Join(Buffer sum, Buffer terms, int threads)
      : StmtNode(tag), sum(std::move(sum)), terms(std::move(terms)), threads(threads) {}
};

/// The tiles of a CPU's matrix unit (Intel's AMX) have `rows` rows from here on, 1 to 16; with 0 the unit is given
/// back. Computes nothing.
struct TileRows : StmtNode {
  static constexpr StmtKind tag = StmtKind::tile_rows;
  Expr rows;
  static Stmt make(Expr rows) {
    require(rows && rows.type() == Type{DType::i32, 1}, "a number of rows that is no integer");
    return Stmt(new TileRows(std::move(rows)));
  }

 private:
  explicit TileRows(Expr rows) : StmtNode(tag), rows(std::move(rows)) {}
};

/// Products of at most 16 rows with panels of 16 outputs each, made by a CPU's matrix unit, which multiplies bf16 and
/// adds in f32. Weights are bf16; what they multiply is f32, as the sum of three of bf16, x = x_0 + x_1 + x_2, each
/// the nearest to what those before it leave. For panel p, row r and output i
///   sums[p,r,i] += x_0[r,k] W[i,k] + x_1[r,k] W[i,k] + x_2[r,k] W[i,k]
/// over 32 * `steps` indices k, in an order that neither the number of rows nor of panels changes.
///   sums      a local buffer, [panels * 256]
///   weights   for each panel a load of its first element (k = 0), in `schedule::tile_layout`; of their dimensions
///             `column` is i's and `summed` is k's
///   x         a load of the first element of the rows' pieces, of a buffer of one dimension: k / 32, piece, r, k % 32
/// Padding of both is 0. With `more`, what is in the sums is added to; else they begin at 0.
struct TileProduct : StmtNode {
  static constexpr StmtKind tag = StmtKind::tile_product;
  static constexpr int outputs = 16, most_rows = 16, most_panels = 4, depth = 32, pieces = 3;
  static constexpr int tile = 512;  // elements of a tile of bf16: 16 rows of 32, or 16 pairs of k of 16 outputs
  static constexpr int sums_of_panel = 256;
  struct Shape {
    int steps = 0;
    int column = 0, summed = 1;
    bool more = false;
    friend bool operator==(const Shape&, const Shape&) = default;
  };
  Buffer sums;
  Vector<Expr> weights;
  Expr x, rows;
  Shape shape;
  static Stmt make(Buffer sums, Vector<Expr> weights, Expr x, Expr rows, Shape shape) {
    require(sums && sums->scope == Scope::local && sums->dims.size() == 1 && sums->dtype == DType::f32 &&
                sums->dims[0].extent() >= std::int64_t(weights.size()) * sums_of_panel,
            "a tile's sums that are no local buffer of their size");
    require(!weights.empty() && weights.size() <= most_panels && shape.steps >= 1,
            "a product of another shape than the matrix unit's");
    for (const Expr& e : weights)
      require(e && e.as<Load>() && e.type() == Type{DType::bf16, 1}, "a tile's weights that are not loaded");
    require(x && x.as<Load>() && x.type() == Type{DType::bf16, 1} && x.as<Load>()->indices.size() == 1,
            "a tile's rows that are not loaded");
    require(rows && rows.type() == Type{DType::i32, 1}, "a number of rows that is no integer");
    return Stmt(new TileProduct(std::move(sums), std::move(weights), std::move(x), std::move(rows), shape));
  }

 private:
  TileProduct(Buffer sums, Vector<Expr> weights, Expr x, Expr rows, Shape shape)
      : StmtNode(tag),
        sums(std::move(sums)),
        weights(std::move(weights)),
        x(std::move(x)),
        rows(std::move(rows)),
        shape(shape) {}
};

/// Whom a barrier is among.
enum class Meeting : std::uint8_t {
  workers,  // of the group: a barrier of their threads, too
  threads,  // of each worker
  warp,     // the 32 threads of each warp: on one way with each other again, and nothing that others wait for
};

/// All arrive before any goes on, and see what the others wrote before it.
struct Barrier : StmtNode {
  static constexpr StmtKind tag = StmtKind::barrier;
  Meeting among;
  static Stmt make(Meeting among = Meeting::workers) { return Stmt(new Barrier(among)); }

 private:
  explicit Barrier(Meeting among) : StmtNode(tag), among(among) {}
};

/// Asks for the memory that `place` reads, a load or a choice of two, since it is wanted soon. Changes nothing, and may
/// ask for what is not there.
struct Prefetch : StmtNode {
  static constexpr StmtKind tag = StmtKind::prefetch;
  Expr place;
  static Stmt make(Expr place) {
    require(place && (place.as<Load>() || place.as<Select>()), "a prefetch of what is not read from memory");
    return Stmt(new Prefetch(std::move(place)));
  }

 private:
  explicit Prefetch(Expr place) : StmtNode(tag), place(std::move(place)) {}
};

}  // namespace cortex::ir

#pragma GCC diagnostic pop
