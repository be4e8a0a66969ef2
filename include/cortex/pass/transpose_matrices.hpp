// Lays matrices that nodes have, and those computed of weights alone, the other way round where loops would walk across
// their rows, or where rows are shorter than vectors.
//
//   for i: {a = 0; for r: a += M[left(n),i,r] * v[right(n),r]; t[n,i] = a}
//   for i: for j: {a = 0; for r: a += W[i,r] * M[left(n),r,j]; M[n,i,j] = a}
//     ->
//   for i: {a = 0; for r: a += M[left(n),r,i] * v[right(n),r]; t[n,i] = a}
//   for j: for i: {a = 0; for r: a += W[i,r] * M[left(n),j,r]; M[n,j,i] = a}
//
// The innermost loop over results becomes that over a vector's elements, which are loaded at once where they lie side
// by side and gathered one by one where they do not. Matrices of which one is an elementwise function of another lie
// the same way. Which way is better is a matter of how many elements would be gathered, and of how much is computed in
// lanes that have no result; where it is the same, they lie as the model says. Users see a state as it was
// (`BufferInfo::transposed`), but get copies of it and no views; so the first state, which they look at most, stays
// if its rows are whole lines of the cache. Of tensors of weights alone with more dimensions, any may come last.
//
// Runs first, since what comes later goes by the order of loops and indices.
#pragma once

#include <algorithm>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/nest.hpp"
#include "cortex/schedule/sums_in_lanes.hpp"

namespace cortex::pass {

namespace detail {

class MatrixTransposer {
 public:
  MatrixTransposer(ir::Program& program, int lanes) : program_(program), lanes_(lanes) {
    ir::visit_with(program.body, [&](const ir::For& loop) {
      if (is_over_elements(loop)) look_at(loop);
      return !is_over_elements(loop);
    });
  }

  void run() {
    for (Matrix& matrix : matrices_)
      matrix.fixed |=
          !program_.buffers.empty() && matrix.buffer == program_.buffers[0] && has_whole_lines(*matrix.buffer);
    double least = cost();
    for (int set = 0; set < int(matrices_.size()); ++set) {
      if (matrices_[std::size_t(set)].set != set || is_fixed(set)) continue;
      transposed_.push_back(set);
      const double now = cost();
      if (now < least)
        least = now;
      else
        transposed_.pop_back();
    }
    if (!transposed_.empty()) rewrite();
  }

 private:
  /// A tensor with a matrix at each node, or one for all of them. Those of one set are transposed together; its number
  /// is that of its first.
  struct Matrix {
    ir::Buffer buffer;
    int set;
    std::size_t lanes;   // the dimension that is last where it is turned
    bool fixed = false;  // it lies as the model says, and so do those of its set
  };
  /// What is done for each element of a loop's results, `times` in all: something is computed, or read, a matrix or
  /// what a node's fields choose of something that stays as it is.
  struct Step {
    int result;                   // the matrix that the loop stores, or -1
    const ir::For *row, *column;  // the last two loops over results; null in place of a row where there is one
    double times;
    bool in_lanes = false;       // vectors are of what is summed up there, unless they are of results
    Vector<ir::Expr> indices{};  // of what is read
    int matrix = -1;             // likewise
  };

  static bool is_over_elements(const ir::For& loop) {
    return loop.dim.kind() == DimKind::dense && loop.loop == ir::ForKind::serial;
  }
  static bool has_matrices(const ir::Buffer& buffer) {
    const Vector<Dim>& dims = buffer->dims;
    const std::size_t n = dims.size();
    const bool has_rows = n >= 3 && dims[0].kind() != DimKind::dense;
    return ir::changes_in_calls(*buffer) && (has_rows || (n == 2 && buffer->role == ir::Role::temp)) &&
           dims[n - 2].kind() == DimKind::dense && dims[n - 1].kind() == DimKind::dense;
  }
  /// A tensor of weights alone, of which no matrix of another is a function: its loops need not be turned with it.
  static bool is_constant(const ir::Buffer& buffer) {
    return buffer->role == ir::Role::temp && buffer->scope != ir::Scope::local && buffer->dims.size() >= 3 &&
           all_of(buffer->dims, [](const Dim& dim) { return dim.kind() == DimKind::dense; });
  }
  static bool ends_with(const Vector<ir::Expr>& indices, const ir::Expr& row, const ir::Expr& column) {
    const std::size_t n = indices.size();
    return row && n >= 2 && indices[n - 2].same_as(row) && indices[n - 1].same_as(column);
  }

  // ---- what there is ----

  int matrix_of(const ir::Buffer& buffer) {
    if (!has_matrices(buffer) && !is_constant(buffer)) return -1;
    for (std::size_t m = 0; m < matrices_.size(); ++m)
      if (matrices_[m].buffer == buffer) return int(m);
    const std::size_t lanes = buffer->dims.size() - 2;
    const bool few = has_few(buffer, lanes, 1) || has_few(buffer, lanes, 2);  // which tiles of products are short for
    matrices_.push_back({buffer, int(matrices_.size()), lanes, few && !is_constant(buffer)});
    return int(matrices_.size()) - 1;
  }
  static bool has_whole_lines(const ir::BufferInfo& state) {
    return state.dims.back().extent() * std::int64_t(size_of(state.dtype)) % cache_line == 0;
  }
  /// Whether so many vectors along that dimension would not be filled, and those along the last one are.
  bool has_few(const ir::Buffer& buffer, std::size_t dim, int vectors) const {
    return buffer->dims[dim].extent() < vectors * lanes_ && buffer->dims.back().extent() >= vectors * lanes_;
  }

  void join(int a, int b) {
    const int of_a = matrices_[std::size_t(a)].set, of_b = matrices_[std::size_t(b)].set;
    for (Matrix& matrix : matrices_)
      if (matrix.set == std::max(of_a, of_b)) matrix.set = std::min(of_a, of_b);
  }

  /// The outermost of loops over elements.
  void look_at(const ir::For& outermost) {
    const ir::For* column = &outermost;
    const ir::For* row = nullptr;
    double times = extent_of(outermost, 1);
    for (const auto* next = column->body.as<ir::For>(); next && is_over_elements(*next);
         next = next->body.as<ir::For>())
      row = std::exchange(column, next), times *= extent_of(*next, 1);
    int result = -1;
    bool pure = true, of_elements = false;
    ir::visit_with(column->body, [&](const ir::Store& store) {
      if (store.buffer->scope == ir::Scope::local || is_constant(store.buffer)) return;
      of_elements |= ir::uses(store.indices.back(), column->var);
      const int m = matrix_of(store.buffer);
      const bool element = m >= 0 && ends_with(store.indices, row ? row->var : ir::Expr(), column->var);
      if (m >= 0 && !element) matrices_[std::size_t(m)].fixed = true;
      if (element && result >= 0) join(result, m);
      if (element) result = m;
      pure &= element;
    });
    if (result >= 0 && !pure) matrices_[std::size_t(result)].fixed = true;
    if (result >= 0) pairs_.insert(row);
    if (of_elements) note(column->body, {result, row, column, times});
  }

  static double extent_of(const ir::For& loop, int unknown) {
    return double(ir::as_int(loop.extent).value_or(unknown));
  }
  /// Whether vectors are of what the loop sums up, where its results do not fill any.
  bool is_summed_in_lanes(const ir::For& loop) const {
    bool in_lanes = extent_of(loop, 1) >= 2 * lanes_;
    for (const ir::Stmt& s : schedule::stmts_of(loop.body)) {
      const auto* store = s.as<ir::Store>();
      in_lanes &=
          store && store->buffer->scope == ir::Scope::local && schedule::is_read_in_lanes(store->value, loop.var);
    }
    return in_lanes;
  }

  void note(const ir::Stmt& body, const Step& where) {
    const ir::Expr row = where.row ? where.row->var : ir::Expr(), column = where.column->var;
    ir::visit_with(
        body,
        [&](const ir::For& loop) {
          Step inside = where;
          inside.times *= extent_of(loop, 2), inside.in_lanes |= is_summed_in_lanes(loop);
          note(loop.body, inside);
          return false;
        },
        [&](const ir::Store& store) {
          const auto* load = store.value.as<ir::Load>();  // a copy takes on the layout of what is copied
          const bool copies = load && !has_matrices(load->buffer) && has_matrices(store.buffer);
          if (!copies) steps_.push_back(where);
          return !copies;
        },
        [&](const ir::Load& load) {
          const int matrix = matrix_of(load.buffer);
          if (is_constant(load.buffer))
            turn_to(matrices_[std::size_t(matrix)], load.indices, column);
          else if (matrix >= 0 && where.result >= 0 && ends_with(load.indices, row, column))
            join(matrix, where.result);
          if (matrix < 0 && (load.indices.size() < 2 || !chosen_by_nodes(load))) return;
          steps_.push_back(where);
          steps_.back().indices = load.indices, steps_.back().matrix = matrix;
        });
  }
  /// A constant that is read along `column` in another dimension than the last: there, if anywhere, lanes are found.
  void turn_to(Matrix& constant, const Vector<ir::Expr>& indices, const ir::Expr& column) const {
    for (std::size_t d = 0; d + 1 < indices.size(); ++d)
      if (indices[d].same_as(column)) constant.lanes = d, constant.fixed = has_few(constant.buffer, d, 1);
  }
  static bool chosen_by_nodes(const ir::Load& load) {
    return load.buffer->role == ir::Role::field || ir::asks_structure(load.indices[0]);
  }

  // ---- which way ----

  bool is_fixed(int set) const {
    return any_of(matrices_, [&](const Matrix& matrix) { return matrix.set == set && matrix.fixed; });
  }
  bool is_transposed(int m) const {
    return m >= 0 && any_of(transposed_, [&](int set) { return set == matrices_[std::size_t(m)].set; });
  }

  /// How many elements are read across rows, and how many lanes have no result.
  double cost() const {
    double sum = 0;
    for (const Step& step : steps_) {
      const ir::For& lane = is_transposed(step.result) ? *step.row : *step.column;
      const auto results = double(lane.dim.extent());
      if (results < lanes_ && step.in_lanes) continue;
      if (step.indices.empty())
        sum += step.times * std::max(lanes_ / results - 1, 0.0);
      else if (is_read_across(step, lane.var))
        sum += step.times;
    }
    return sum;
  }
  bool is_read_across(const Step& read, const ir::Expr& lane) const {
    const std::size_t last =
        is_transposed(read.matrix) ? matrices_[std::size_t(read.matrix)].lanes : read.indices.size() - 1;
    bool across = false;
    for (std::size_t d = 0; d < read.indices.size(); ++d) across |= d != last && ir::uses(read.indices[d], lane);
    return across && !ir::uses(read.indices[last], lane);
  }

  // ---- the other way round ----

  /// `list` with its element of that number last.
  template <class T>
  static void make_last(Vector<T>& list, std::size_t number) {
    std::rotate(list.begin() + std::ptrdiff_t(number), list.begin() + std::ptrdiff_t(number) + 1, list.end());
  }

  struct Turned {
    ir::Buffer buffer;
    std::size_t lanes;
  };

  void rewrite() {
    PointerMap<Turned> to;
    for (std::size_t m = 0; m < matrices_.size(); ++m) {
      if (!is_transposed(int(m))) continue;
      ir::BufferInfo info = *matrices_[m].buffer;
      make_last(info.dims, matrices_[m].lanes);
      info.transposed = true;
      to.emplace(matrices_[m].buffer.id(), Turned{ir::Buffer(std::move(info)), matrices_[m].lanes});
    }
    const auto turned = [&](const ir::Buffer& buffer, Vector<ir::Expr> indices) -> ir::Place {
      const auto found = to.find(buffer.id());
      if (found == to.end()) return {};
      make_last(indices, found->second.lanes);
      return ir::Place{found->second.buffer, std::move(indices)};
    };
    program_.body = ir::with_places(program_.body, turned, [&](auto& self, const ir::For& loop) -> ir::Stmt {
      if (!stores_transposed(loop)) return self.children(loop);
      const auto& inner = *loop.body.as<ir::For>();
      const ir::Stmt body = ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, self(inner.body));
      return ir::For::make(inner.var, inner.dim, inner.extent, inner.loop, body);
    });
    for (ir::Buffer& buffer : program_.buffers)
      if (const auto found = to.find(buffer.id()); found != to.end()) buffer = found->second.buffer;
  }

  bool stores_transposed(const ir::For& row) const {
    if (!pairs_.contains(&row)) return false;
    bool found = false;
    ir::visit_with(row.body, [&](const ir::Store& store) {
      for (std::size_t m = 0; m < matrices_.size(); ++m)
        found |= matrices_[m].buffer == store.buffer && is_transposed(int(m));
    });
    return found;
  }

  ir::Program& program_;
  int lanes_;
  Vector<Matrix> matrices_;
  Vector<Step> steps_;
  PointerSet pairs_;        // loops over the rows of a matrix that is stored, element by element
  Vector<int> transposed_;  // sets
};

}  // namespace detail

/// `lanes`: of a vector. What has fewer rows, such as gates, is not turned, since vectors over rows would be empty but
/// for these; nor what has less than two vectors of them, such as heads, if its own rows are longer.
inline void transpose_matrices(ir::Program& program, int lanes) { detail::MatrixTransposer(program, lanes).run(); }

}  // namespace cortex::pass
