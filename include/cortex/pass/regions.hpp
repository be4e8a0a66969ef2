// Bounds inference through uninterpreted functions: which region of a buffer a statement reads or writes, one interval
// for each dimension, whose ends are forms over what is bound outside of the statement (paper section 5.1, I5).
//
//   for n_idx = 0:batch_sizes(b): node = internal_batches(b,n_idx): for i = 0:H: h[node,i] = f(h[left(node),i])
//     writes h[batch_begin(b + 1) .. + batch_length(b + 1), 0 .. + H]     # a batch is contiguous
//     reads  h[batch_begin(b + 1) + 1 .. up to num_nodes, 0 .. + H]       # children lie above their parents
//
// Works on any level above `device`.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/pass/prove.hpp"

namespace cortex::pass {

/// The extent of dimension `d` of `buffer`. Stores do not reach the row behind the last node, which is all zero.
inline Linear extent_of(Atoms& atoms, const ir::Buffer& buffer, std::size_t d, bool store = false) {
  const Dim& dim = buffer->dims[d];
  switch (dim.kind()) {
    case DimKind::node: {
      const bool behind = !store && buffer->role != ir::Role::field;
      return atoms.form(Symbol::num_nodes) + (behind ? 1 : 0);
    }
    case DimKind::batch: return atoms.form(Symbol::max_batch);
    case DimKind::batch_edge: return atoms.form(Symbol::max_batch_edges, buffer->slot);
    case DimKind::edge: return atoms.form(Symbol::edge_begin, buffer->slot, {atoms.form(Symbol::num_nodes)});
    case DimKind::open: return atoms.form(Symbol::num_rows, buffer->slot);
    default: return dim.extent();
  }
}

/// From `low`, `extent` elements of one dimension.
struct Span {
  Linear low, extent;
};

struct Region {
  ir::Buffer buffer;
  bool written;
  Vector<Span> dims;
};

namespace detail {

class RegionFinder {
 public:
  explicit RegionFinder(Scope& scope) : scope_(scope), outer_(scope.atoms().size()) {}

  Vector<Region> run(const ir::Stmt& body) {
    stmt(body);
    return std::move(regions_);
  }

 private:
  void stmt(const ir::Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::for_: {
        const auto& n = *s.as<ir::For>();
        expr(n.extent);
        return scope_.within(
            [&] {
              scope_.enter_loop(n.var, n.extent);
              stmt(n.body);
            },
            true);
      }
      case ir::StmtKind::let: {
        const auto& n = *s.as<ir::LetStmt>();
        expr(n.value);
        return scope_.within(
            [&] {
              scope_.enter_let(n.var, n.value);
              stmt(n.body);
            },
            true);
      }
      case ir::StmtKind::if_: {
        const auto& n = *s.as<ir::If>();
        expr(n.condition);
        for (const ir::Stmt& side : {n.then_body, n.else_body})
          if (side)
            scope_.within(
                [&] {
                  scope_.assume(n.condition, side.same_as(n.then_body));
                  stmt(side);
                },
                true);
        return;
      }
      case ir::StmtKind::block:
        for (const ir::Stmt& part : s.as<ir::Block>()->stmts) stmt(part);
        return;
      case ir::StmtKind::alloc: return stmt(s.as<ir::Alloc>()->body);
      case ir::StmtKind::store: {
        const auto& n = *s.as<ir::Store>();
        for (const ir::Expr& index : n.indices) expr(index);
        expr(n.value);
        return access(n.buffer, n.indices, true);
      }
      case ir::StmtKind::barrier:
      case ir::StmtKind::prefetch: return;
    }
  }

  void expr(const ir::Expr& e) {
    ir::visit_with(
        e,
        [&](const ir::Let& n) {
          expr(n.value);
          scope_.within(
              [&] {
                scope_.enter_let(n.var, n.value);
                expr(n.body);
              },
              true);
          return false;
        },
        [&](const ir::Load& load) { access(load.buffer, load.indices, false); });
  }

  void access(const ir::Buffer& buffer, const Vector<ir::Expr>& indices, bool written) {
    if (buffer->role == ir::Role::index || buffer->scope == ir::Scope::local) return;
    Region region{buffer, written, {}};
    for (std::size_t d = 0; d < indices.size(); ++d) region.dims.push_back(span(buffer, d, indices[d], written));
    for (Region& known : regions_)
      if (known.buffer == buffer && known.written == written) return join(known, region);
    regions_.push_back(std::move(region));
  }

  Span span(const ir::Buffer& buffer, std::size_t d, const ir::Expr& index, bool written) {
    const auto* ramp = index.as<ir::Ramp>();
    const Linear form = scope_.unchecked(ramp ? ramp->base : index);
    Linear low, high;
    const bool bounded = outermost(form, false, low) && outermost(form + (ramp ? ramp->type.lanes - 1 : 0), true, high);
    if (!bounded) return {0, extent_of(scope_.atoms(), buffer, d, written)};
    return {low, high + 1 - low};
  }

  /// Whether the value of the atom differs from one execution inside of the body to the next.
  bool varies(int number) {
    const Atom& atom = scope_.atoms()[number];
    if (number >= outer_ && (atom.symbol == Symbol::variable || atom.symbol == Symbol::unknown || atom.expr))
      return true;
    for (const Linear& arg : atom.args)
      for (const Linear::Term& term : arg.terms)
        if (varies(term.atom)) return true;
    return false;
  }

  /// A bound of `form` by what stands outside of the body: the greatest that is less, or the least that is greater, of
  /// those that facts give one after the other. False if there is none.
  bool outermost(const Linear& form, bool upper, Linear& bound, int depth = 0) {
    if (form.lost || depth > 12) return false;
    std::size_t inner = form.terms.size();
    while (inner > 0 && !varies(form.terms[inner - 1].atom)) --inner;
    if (inner == 0) return bound = form, true;
    const Linear::Term last = form.terms[inner - 1];
    const Vector<Linear> own = scope_.facts_of(last.atom, true);
    const auto try_fact = [&](const Linear& fact) {
      const std::int64_t by = fact.coefficient(last.atom);
      // form <= form + k * fact, and form >= form - k * fact, for k >= 0
      const std::int64_t k = upper ? -last.by : last.by;
      if ((by != 1 && by != -1) || (by < 0) != (k < 0)) return false;
      const Linear next = form.plus(fact, upper ? (k < 0 ? -k : k) : (k < 0 ? k : -k));
      return outermost(next, upper, bound, depth + 1);
    };
    for (std::size_t i = scope_.facts().size(); i-- > 0;)
      if (const Linear fact = scope_.facts()[i]; try_fact(fact)) return true;
    for (const Linear& fact : own)
      if (try_fact(fact)) return true;
    return false;
  }

  void join(Region& known, const Region& other) {
    for (std::size_t d = 0; d < known.dims.size(); ++d) {
      Span &a = known.dims[d], b = other.dims[d];
      const Linear a_end = a.low + a.extent, b_end = b.low + b.extent;
      const auto not_above = [&](const Linear& x, const Linear& y) { return scope_.never_negative(y - x, true); };
      const bool low_a = not_above(a.low, b.low), low_b = !low_a && not_above(b.low, a.low);
      const bool end_a = not_above(b_end, a_end), end_b = !end_a && not_above(a_end, b_end);
      if ((low_a || low_b) && (end_a || end_b)) {
        const Linear low = low_a ? a.low : b.low;
        a = {low, (end_a ? a_end : b_end) - low};
      } else {
        a = {0, extent_of(scope_.atoms(), known.buffer, d, known.written)};
      }
    }
  }

  Scope& scope_;
  int outer_;
  Vector<Region> regions_;
};

}  // namespace detail

/// The regions of all buffers but local ones and the linearizer's own that `body` reads and writes, one for each buffer
/// and way, in order of first use. `scope` is the place where `body` stands; its atoms are those of the result.
inline Vector<Region> regions(const ir::Stmt& body, Scope& scope) { return detail::RegionFinder(scope).run(body); }

/// `h[batch_begin(b) .. + batch_length(b), 0 .. + 4]`
inline std::string to_string(const Region& region, const Atoms& atoms) {
  std::string text = region.buffer->name + "[";
  for (std::size_t d = 0; d < region.dims.size(); ++d)
    text += (d ? ", " : "") + atoms.text(region.dims[d].low) + " .. + " + atoms.text(region.dims[d].extent);
  return text + "]";
}

}  // namespace cortex::pass
