// Runs the iterations of vectorized loops in the lanes of vectors.
//
//   vectorized for lane = 0:16: y[16 * o + lane] = a * x[16 * o + lane]
//     ->
//   y[ramp(16 * o,16)] = x16(a) * x[ramp(16 * o,16)]
//
// Local buffers inside become vectors. Loops inside keep scalar extents: an extent or condition that differs by lane is
// refused.
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::pass {

namespace detail {

class Vectorizer {
 public:
  Vectorizer(const ir::Expr& lane, int lanes) : lanes_(lanes) {
    vectors_.emplace(lane.get(), ir::Ramp::make(ir::imm(0), lanes));
  }

  ir::Stmt stmt(const ir::Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::for_: {
        const auto& loop = *s.as<ir::For>();
        return ir::For::make(loop.var, loop.dim, scalar(loop.extent, "a loop's extent"), loop.loop, stmt(loop.body));
      }
      case ir::StmtKind::let: {
        const auto& let = *s.as<ir::LetStmt>();
        const ir::Expr value = expr(let.value), var = let_var(let.var, value);
        return ir::LetStmt::make(var, value, stmt(let.body));
      }
      case ir::StmtKind::if_: {
        const auto& branch = *s.as<ir::If>();
        return ir::If::make(scalar(branch.condition, "a condition"), stmt(branch.then_body),
                            branch.else_body ? stmt(branch.else_body) : ir::Stmt());
      }
      case ir::StmtKind::block: {
        Vector<ir::Stmt> stmts;
        for (const ir::Stmt& child : s.as<ir::Block>()->stmts) stmts.push_back(stmt(child));
        return ir::Block::make(stmts);
      }
      case ir::StmtKind::alloc: {
        const auto& alloc = *s.as<ir::Alloc>();
        ir::BufferInfo info = *alloc.buffer;
        info.lanes = lanes_;
        const ir::Buffer wide{std::move(info)};
        locals_.emplace(alloc.buffer.id(), wide);
        return ir::Alloc::make(wide, stmt(alloc.body));
      }
      case ir::StmtKind::store: return store(*s.as<ir::Store>());
      case ir::StmtKind::mma:
      case ir::StmtKind::tile_rows:
      case ir::StmtKind::tile_product:
      case ir::StmtKind::join:
      case ir::StmtKind::barrier: return s;
      case ir::StmtKind::prefetch: return ir::Prefetch::make(expr(s.as<ir::Prefetch>()->place));
    }
    throw Error(Code::internal, "a statement of an unknown kind");
  }

 private:
  ir::Stmt store(const ir::Store& s) {
    Vector<ir::Expr> indices;
    bool vector = false;
    for (const ir::Expr& index : s.indices) {
      indices.push_back(expr(index));
      vector |= indices.back().lanes() > 1;
    }
    const auto local = locals_.find(s.buffer.id());
    const ir::Expr value = expr(s.value);
    if (local != locals_.end()) return ir::Store::make(local->second, std::move(indices), widen(value));
    if (!vector && value.lanes() > 1)
      throw Error(Code::internal, "vectorize: lanes that store to one element of '" + s.buffer->name + "'");
    return ir::Store::make(s.buffer, std::move(indices), vector ? widen(value) : value);
  }

  ir::Expr scalar(const ir::Expr& e, const char* what) {
    const ir::Expr result = expr(e);
    if (result.lanes() > 1) throw Error(Code::internal, std::string("vectorize: ") + what + " differs by lane");
    return result;
  }

  ir::Expr widen(const ir::Expr& e) const { return e.lanes() > 1 ? e : ir::Broadcast::make(e, lanes_); }

  ir::Expr let_var(const ir::Expr& var, const ir::Expr& value) {
    if (value.lanes() == 1) return var;
    const ir::Expr wide = ir::Var::make(var.as<ir::Var>()->name, value.type());
    vectors_.insert_or_assign(var.get(), wide);
    return wide;
  }

  /// All scalar, or all vectors.
  template <class Make>
  ir::Expr aligned(Vector<ir::Expr> parts, Make make) {
    for (ir::Expr& part : parts) part = expr(part);
    return of_one_width(std::move(parts), make);
  }
  template <class Make>
  ir::Expr of_one_width(Vector<ir::Expr> parts, Make make) {
    bool vector = false;
    for (const ir::Expr& part : parts) vector |= part.lanes() > 1;
    if (vector)
      for (ir::Expr& part : parts) part = widen(part);
    return make(parts);
  }

  ir::Expr expr(const ir::Expr& e) {
    switch (e->kind) {
      case ir::ExprKind::var: {
        const auto found = vectors_.find(e.get());
        return found == vectors_.end() ? e : found->second;
      }
      case ir::ExprKind::binary: {
        const auto& op = *e.as<ir::Binary>();
        const ir::Expr a = expr(op.a), b = expr(op.b);
        // base + lane: consecutive elements.
        if (op.op == ir::BinaryOp::add && a.lanes() == 1 && b.as<ir::Ramp>())
          return ir::Ramp::make(a + b.as<ir::Ramp>()->base, lanes_);
        if (op.op == ir::BinaryOp::add && b.lanes() == 1 && a.as<ir::Ramp>())
          return ir::Ramp::make(a.as<ir::Ramp>()->base + b, lanes_);
        return of_one_width({a, b}, [&](auto& p) { return ir::binary(op.op, p[0], p[1]); });
      }
      case ir::ExprKind::fma: {
        const auto& op = *e.as<ir::Fma>();
        return aligned({op.a, op.b, op.c}, [](auto& p) { return ir::Fma::make(p[0], p[1], p[2]); });
      }
      case ir::ExprKind::select: {
        const auto& op = *e.as<ir::Select>();
        return aligned({op.condition, op.then_value, op.else_value},
                       [](auto& p) { return ir::Select::make(p[0], p[1], p[2]); });
      }
      case ir::ExprKind::let: {
        const auto& let = *e.as<ir::Let>();
        const ir::Expr value = expr(let.value), var = let_var(let.var, value);
        return ir::Let::make(var, value, expr(let.body));
      }
      case ir::ExprKind::load: {
        const auto& load = *e.as<ir::Load>();
        Vector<ir::Expr> indices;
        for (const ir::Expr& index : load.indices) indices.push_back(expr(index));
        const auto local = locals_.find(load.buffer.id());
        return ir::Load::make(local == locals_.end() ? load.buffer : local->second, std::move(indices));
      }
      case ir::ExprKind::uf_call:
        return ir::rebuild(
            *e.get(), [&](const ir::Expr& part) { return scalar(part, "an argument of an uninterpreted function"); });
      default: return ir::rebuild(*e.get(), [&](const ir::Expr& part) { return expr(part); });
    }
  }

  int lanes_;
  PointerMap<ir::Expr> vectors_;
  PointerMap<ir::Buffer> locals_;
};

}  // namespace detail

inline ir::Stmt vectorize(const ir::Stmt& body) {
  return ir::mutate_with(body, [](auto& self, const ir::For& loop) -> ir::Stmt {
    if (loop.loop != ir::ForKind::vectorized) return self.children(loop);
    const auto lanes = ir::as_int(loop.extent);
    if (!lanes || *lanes < 2)
      throw Error(Code::internal, "vectorize: a vectorized loop without a constant extent of at least 2");
    return detail::Vectorizer(loop.var, int(*lanes)).stmt(loop.body);
  });
}

}  // namespace cortex::pass
