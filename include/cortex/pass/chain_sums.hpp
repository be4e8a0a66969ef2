// Adds up in one accumulator what is only wanted as a total: the second sum goes on where the first one ends.
//
//   a = 0; for j: a += W[i,j] * x[j]         a = 0; for j: a += W[i,j] * x[j]
//   b = 0; for j: b += U[i,j] * y[j]    ->   for j: a += U[i,j] * y[j]
//   h[i] = tanh(a + b)                       h[i] = tanh(a)
//
// Half the accumulators leave registers for twice the rows. Runs on nests that `fuse_nests` has put together and
// `forward_stores` has rid of temporaries. Sums that share a loop over k stay apart, since they share what they read.
#pragma once

#include "cortex/base/vector.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/pass/forward_stores.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::pass {

namespace detail {

/// A sum of a nest's element: it starts from zero, grows in one loop, and is read once after it.
struct ChainLink {
  ir::Buffer sum;
  std::size_t init = 0, loop = 0;  // of the element's statements
  ir::Expr read;                   // what stands for it where it is used: its load, or the variable of a let of that

  explicit operator bool() const { return bool(read); }
};

class SumChainer {
 public:
  /// The element with one sum less, or nothing if no two sums are only added up.
  ir::Stmt run(ir::Stmt inner) {
    for (; const auto* alloc = inner.as<ir::Alloc>(); inner = alloc->body) locals_.push_back(alloc->buffer);
    stmts_ = schedule::stmts_of(inner);
    for (const ir::Buffer& local : locals_)
      if (const ChainLink link = link_of(local)) links_.push_back(link);
    const ChainLink *first = nullptr, *second = nullptr;
    ir::Expr total;
    for (const ir::Stmt& s : stmts_)
      ir::visit_with(s, [&](const ir::Binary& add) {
        if (first || add.op != ir::BinaryOp::add) return;
        const ChainLink *a = link_read_by(add.a), *b = link_read_by(add.b);
        if (!a || !b || a->loop == b->loop || a->sum->dtype != b->sum->dtype) return;
        first = a->loop < b->loop ? a : b;
        second = first == a ? b : a;
        total = ir::handle_of(add);
      });
    return first ? chained(*first, *second, total) : ir::Stmt();
  }

 private:
  /// Without `read`, and so false, if `sum` is no such sum.
  ChainLink link_of(const ir::Buffer& sum) const {
    if (!sum->dims.empty() || sum->lanes != 1) return {};
    ChainLink link{sum, stmts_.size(), stmts_.size(), {}};
    int reads = 0, writes = 0;
    for (std::size_t i = 0; i < stmts_.size(); ++i) {
      const auto* store = stmts_[i].as<ir::Store>();
      const auto* loop = stmts_[i].as<ir::For>();
      if (store && store->buffer == sum && is_zero(store->value)) {
        ++writes, link.init = i;
      } else if (loop && ir::stores_to(stmts_[i], sum)) {
        ++writes, link.loop = i;
        if (loop->dim.kind() != DimKind::dense || !adds_up(*loop, sum)) return {};
      } else {
        if (ir::stores_to(stmts_[i], sum)) return {};
        ir::visit_with(
            stmts_[i],
            [&](const ir::LetStmt& let) {
              const auto* load = let.value.as<ir::Load>();
              if (load && load->buffer == sum && uses_of(let.var) == 1) link.read = let.var;
            },
            [&](const ir::Load& load) {
              if (!(load.buffer == sum)) return;
              ++reads;
              if (!link.read) link.read = ir::handle_of(load);
            });
      }
    }
    const bool whole = writes == 2 && reads == 1 && link.init < link.loop;
    return whole ? link : ChainLink();
  }

  static bool is_zero(const ir::Expr& e) {
    const auto* imm = e.as<ir::FloatImm>();
    return imm && imm->value == 0;
  }

  /// Whether `loop` does nothing to `sum` but add to it, once an iteration.
  static bool adds_up(const ir::For& loop, const ir::Buffer& sum) {
    int reads = 0, sums = 0;
    ir::visit_with(
        loop.body, [&](const ir::Load& load) { reads += load.buffer == sum; },
        [&](const ir::Store& store) {
          if (!(store.buffer == sum)) return;
          const auto is_sum = [&](const ir::Expr& e) { return e.as<ir::Load>() && e.as<ir::Load>()->buffer == sum; };
          const auto* fma = store.value.as<ir::Fma>();
          const auto* add = store.value.as<ir::Binary>();
          sums +=
              (fma && is_sum(fma->c)) || (add && add->op == ir::BinaryOp::add && (is_sum(add->a) || is_sum(add->b)));
        });
    return reads == 1 && sums == 1;
  }

  int uses_of(const ir::Expr& var) const {
    int uses = 0;
    for (const ir::Stmt& s : stmts_) ir::visit_with(s, [&](const ir::Var& v) { uses += &v == var.get(); });
    return uses;
  }

  const ChainLink* link_read_by(const ir::Expr& e) const {
    for (const ChainLink& link : links_)
      if (e.same_as(link.read)) return &link;
    return nullptr;
  }

  ir::Stmt chained(const ChainLink& first, const ChainLink& second, const ir::Expr& total) const {
    Vector<ir::Stmt> stmts;
    for (std::size_t i = 0; i < stmts_.size(); ++i) {
      if (i == second.init) continue;
      stmts.push_back(i == second.loop ? ir::with_buffer(stmts_[i], second.sum, first.sum)
                                       : with_total(stmts_[i], first, second, total));
    }
    ir::Stmt result = ir::Block::make(stmts);
    for (const ir::Buffer& local : reversed(locals_))
      if (!(local == second.sum)) result = ir::Alloc::make(local, result);
    return result;
  }

  /// The variables of both sums give way to one load of the total, where it is used.
  static ir::Stmt with_total(const ir::Stmt& stmt, const ChainLink& first, const ChainLink& second,
                             const ir::Expr& total) {
    return ir::mutate_with(
        stmt,
        [&](auto& self, const ir::LetStmt& let) -> ir::Stmt {
          const bool gone = let.var.same_as(first.read) || let.var.same_as(second.read);
          return gone ? self(let.body) : self.children(let);
        },
        [&](auto& self, const ir::Binary& e) -> ir::Expr {
          return ir::handle_of(e).same_as(total) ? ir::Load::make(first.sum, {}) : self.children(e);
        });
  }

  Vector<ir::Buffer> locals_;
  Vector<ir::Stmt> stmts_;
  Vector<ChainLink> links_;
};

}  // namespace detail

inline ir::Stmt chain_sums(const ir::Stmt& body) {
  return schedule::map_nests(body, [](const schedule::Nest& nest) -> ir::Stmt {
    schedule::Nest result = nest;
    bool changed = false;
    while (const ir::Stmt fewer = detail::SumChainer().run(result.inner)) result.inner = fewer, changed = true;
    return changed ? schedule::build_nest(result) : ir::Stmt();
  });
}

}  // namespace cortex::pass
