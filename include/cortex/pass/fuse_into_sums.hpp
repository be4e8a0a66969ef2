// The elements of a matrix that a sum at the same node reads once each are computed and stored where it reads them.
//
//   for d: for e: S[node,d,e] = f[node] * S[prev(node),d,e] + k[node,d] * v[node,e]
//   for e: {y = 0; for d: y += q[node,d] * S[node,d,e]; o[node,e] = y}
//     ->
//   for e: {y = 0; for d: {S[node,d,e] = ..; y += q[node,d] * S[node,d,e]}; o[node,e] = y}
//
// So a recursion over matrices, as of linear attention, goes through those of a node once, and `forward_stores` has the
// element in a register. A nest whose lanes would then lie across rows of the matrix stays; so do functions such as
// exp, which take longer than what is saved, and what is made of a matrix that another nest computes at the node: it
// shares that one's loops (`fuse_nests`).
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::pass {

namespace detail {

/// Loops over the elements of a matrix at a node, or of several, that compute each from other tensors:
/// `for d: for e: S[node,d,e] = value`.
struct MatrixOfElements {
  Vector<const ir::For*> loops;
  const ir::Store* store = nullptr;

  /// How many rows there are to a column.
  std::int64_t rows() const {
    std::int64_t rows = 1;
    for (std::size_t d = 0; d + 1 < loops.size(); ++d) rows *= loops[d]->dim.extent();
    return rows;
  }

  explicit MatrixOfElements(const ir::Stmt& stmt) {
    ir::Stmt work = stmt;
    for (const auto* loop = work.as<ir::For>(); loop; loop = work.as<ir::For>()) {
      loops.push_back(loop);
      work = ir::Stmt(loop->body);
    }
    const auto* found = work.as<ir::Store>();
    if (found && loops.size() >= 2 && is_element(*found)) store = found;
  }

 private:
  bool is_element(const ir::Store& element) const {
    bool fits = element.buffer->scope == ir::Scope::shared && element.indices.size() == loops.size() + 1 &&
                !ir::has_functions(element.value);
    for (std::size_t d = 0; fits && d < loops.size(); ++d)
      fits = loops[d]->dim.kind() == DimKind::dense && element.indices[d + 1].same_as(loops[d]->var);
    ir::visit_with(element.value, [&](const ir::Load& load) {  // a matrix of the node, as of a table
      fits &= load.buffer->role == ir::Role::state || load.indices.size() < element.indices.size();
    });
    return fits;
  }
};

/// Where a nest of sums reads the elements of a matrix.
class SumOfElements {
 public:
  /// The loop in which `reader` reads each element of the matrix once, with the last index for its innermost results.
  SumOfElements(const MatrixOfElements& matrix, const ir::Stmt& reader) : matrix_(matrix) {
    Vector<const ir::For*> around;
    ir::Stmt work = reader;
    for (const auto* loop = work.as<ir::For>(); loop; loop = work.as<ir::For>()) {
      around.push_back(loop);
      work = ir::Stmt(loop->body);
    }
    if (around.empty() || !work.as<ir::Alloc>() || reads(reader) != 1) return;
    while (const auto* alloc = work.as<ir::Alloc>()) work = ir::Stmt(alloc->body);
    for (const ir::Stmt& stmt : schedule::stmts_of(work))
      if (const auto* sum = stmt.as<ir::For>(); sum && reads(stmt) == 1) find_read(*sum, around);
  }

  const ir::For* loop() const { return loop_; }

  /// `reader` with the matrix computed in it.
  ir::Stmt with_matrix(const ir::Stmt& reader) const {
    const ir::Stmt element = ir::substitute(ir::handle_of(*matrix_.store), variables_);
    return ir::mutate_with(reader, [&](auto& self, const ir::For& loop) -> ir::Stmt {
      if (&loop != loop_) return self.children(loop);
      Vector<ir::Stmt> stmts{element};
      append(stmts, schedule::stmts_of(loop.body));
      return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, ir::Block::make(stmts), loop.piece);
    });
  }

 private:
  int reads(const ir::Stmt& stmt) const {
    int count = 0;
    ir::visit_with(stmt, [&](const ir::Load& load) { count += load.buffer == matrix_.store->buffer; });
    return count;
  }

  void find_read(const ir::For& sum, const Vector<const ir::For*>& around) {
    if (sum.dim.kind() != DimKind::dense) return;
    Vector<const ir::For*> loops = around;
    loops.push_back(&sum);
    ir::visit_with(sum.body, [&](const ir::Load& load) {
      if (load.buffer == matrix_.store->buffer && load.indices.back().same_as(around.back()->var) &&
          reads_each_once(load, loops))
        loop_ = &sum;
    });
  }
  /// Whether the loops are over the matrix's dimensions, in any order; then they are its loops.
  bool reads_each_once(const ir::Load& load, const Vector<const ir::For*>& loops) {
    if (loops.size() != matrix_.loops.size() || !load.indices[0].same_as(matrix_.store->indices[0])) return false;
    for (const ir::For* loop : loops) {
      const std::size_t known = variables_.size();
      for (std::size_t d = 0; d < matrix_.loops.size(); ++d)
        if (load.indices[d + 1].same_as(loop->var) && ir::equal(loop->extent, matrix_.loops[d]->extent))
          variables_.emplace(matrix_.loops[d]->var.get(), loop->var);
      if (variables_.size() != known + 1) return false;  // also of a diagonal, which is read of two dimensions
    }
    return true;
  }

  const MatrixOfElements& matrix_;
  const ir::For* loop_ = nullptr;
  ir::Substitution variables_;  // the matrix's, as those of the sum
};

/// Of what is done at a node, in order.
inline Vector<ir::Stmt> fuse_into_sums(Vector<ir::Stmt> stmts, int enough_columns) {
  for (std::size_t m = 0; m < stmts.size(); ++m) {
    const MatrixOfElements matrix(stmts[m]);
    if (!matrix.store) continue;
    const std::int64_t columns = matrix.loops.back()->dim.extent();
    if (columns < enough_columns && columns < matrix.rows()) continue;
    const Vector<schedule::Access> own = schedule::accesses_of(stmts[m]);
    std::size_t reader = m + 1;  // the first that needs it
    while (reader < stmts.size() &&
           schedule::dependence(own, schedule::accesses_of(stmts[reader]), true) == schedule::Dependence::none)
      ++reader;
    if (reader == stmts.size()) continue;
    const SumOfElements sum(matrix, stmts[reader]);
    if (!sum.loop()) continue;
    stmts[reader] = sum.with_matrix(stmts[reader]);
    stmts.erase(stmts.begin() + std::ptrdiff_t(m--));
  }
  return stmts;
}

}  // namespace detail

/// Of nests as lowering writes them, one for each tensor. Workers would share the columns of a fused nest, where they
/// can share rows of a matrix: where there are fewer columns, `enough_columns` have to be there for them.
inline ir::Stmt fuse_into_sums(const ir::Stmt& body, int enough_columns = 0) {
  return ir::mutate_with(body, [&](auto& self, const ir::Block& block) -> ir::Stmt {
    const Vector<ir::Stmt> stmts = detail::fuse_into_sums(block.stmts, enough_columns);
    return stmts.size() == block.stmts.size() ? self.children(block) : self(ir::Block::make(stmts));
  });
}

}  // namespace cortex::pass
