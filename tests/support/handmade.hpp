// Small programs made by hand, for what no model lowers to.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/print.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::test {

inline ir::Expr var(const std::string& name) { return ir::Var::make(name); }
inline ir::Expr number(double v) { return ir::FloatImm::make(v, DType::f32); }
inline ir::Expr function(ir::UnaryOp op, ir::Expr a) { return ir::Unary::make(op, std::move(a)); }

inline ir::Buffer buffer(const std::string& name, std::vector<Dim> dims, ir::Role role = ir::Role::temp,
                         DType dtype = DType::f32) {
  return ir::Buffer(ir::BufferInfo{name, dtype, std::move(dims), role});
}
inline ir::Buffer local(const std::string& name, std::vector<Dim> dims = {}) {
  ir::BufferInfo info{name, DType::f32, std::move(dims)};
  info.scope = ir::Scope::local;
  return ir::Buffer(std::move(info));
}
inline ir::Expr load(const ir::Buffer& b, std::vector<ir::Expr> indices) {
  return ir::Load::make(b, std::move(indices));
}
inline ir::Stmt store(const ir::Buffer& b, std::vector<ir::Expr> indices, ir::Expr value) {
  return ir::Store::make(b, std::move(indices), std::move(value));
}

/// A loop over all of a dense dimension.
inline ir::Stmt loop(const ir::Expr& i, const Dim& dim, ir::Stmt body, ir::ForKind kind = ir::ForKind::serial) {
  return ir::For::make(i, dim, ir::imm(dim.extent()), kind, std::move(body));
}
inline ir::Stmt block(std::vector<ir::Stmt> stmts) { return ir::Block::make(stmts); }

/// `for n_idx: node = all_nodes(n_idx): body`.
inline ir::Stmt for_nodes(const ir::Expr& node, ir::Stmt body) {
  const ir::Expr n = var("n_idx");
  return ir::For::make(n, dims::batch, ir::call(ir::UfKind::num_nodes, "num_nodes"), ir::ForKind::serial,
                       ir::LetStmt::make(node, ir::call(ir::UfKind::all_node, "all_nodes", {n}), std::move(body)));
}

/// `acc = 0; for r: acc += value(r); then(acc)`.
template <class Value, class Then>
ir::Stmt sum_over(const Dim& dim, Value value, Then then) {
  const ir::Buffer acc = local("acc");
  const ir::Expr r = var("r"), sum = load(acc, {});
  return ir::Alloc::make(
      acc, block({store(acc, {}, number(0)),
                  loop(r, dim, store(acc, {}, ir::combine(ir::ReduceOp::sum, sum, value(r)))), then(sum)}));
}

}  // namespace cortex::test
