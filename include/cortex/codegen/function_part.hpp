// A part of a kernel that becomes a function of its own, and what that needs of what stands around it.
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

/// `body` reads `parameters`, whose values outside are `arguments`.
struct FunctionPart {
  ir::Stmt body;
  Vector<ir::Expr> parameters, arguments;
};

/// Whether an array has an element for each batch, or for each part of one: then there is an element wherever the batch
/// is bound.
inline bool is_of_batches(const ir::Buffer& buffer) {
  return buffer->role == ir::Role::index && buffer->slot >= ir::slot_of::batch_begin &&
         buffer->slot <= ir::slot_of::part_length;
}

namespace detail {

/// How many elements lie between the matrices of a weight that is several of them; 0: it is not.
inline std::int64_t size_of_matrix(const ir::BufferInfo& buffer) {
  if (buffer.role != ir::Role::weight || buffer.dims.size() < 3 || buffer.dims[0].kind() != DimKind::dense) return 0;
  for (const ir::Axis& axis : buffer.layout.axes)
    if (axis.source == 0) return axis.divisor == 1 && axis.modulus == 0 ? axis.stride : 0;
  return 0;
}

/// The greatest constant that is added in an offset, or in where a ramp of them begins; empty if there is none.
inline ir::Expr constant_in(const ir::Expr& offset) {
  if (ir::as_int(offset)) return offset;
  if (const auto* ramp = offset.as<ir::Ramp>()) return constant_in(ramp->base);
  const auto* sum = offset.as<ir::Binary>();
  if (!sum || sum->op != ir::BinaryOp::add) return {};
  const ir::Expr a = constant_in(sum->a), b = constant_in(sum->b);
  return a && b ? (*ir::as_int(a) < *ir::as_int(b) ? b : a) : a ? a : b;
}

/// The same offset with `value` in place of `constant`.
inline ir::Expr with_constant(const ir::Expr& offset, const ir::Expr& constant, const ir::Expr& value) {
  if (offset.same_as(constant)) return value;
  if (const auto* ramp = offset.as<ir::Ramp>())
    return ir::Ramp::make(with_constant(ramp->base, constant, value), ramp->type.lanes);
  const auto* sum = offset.as<ir::Binary>();
  if (!sum || sum->op != ir::BinaryOp::add) return offset;
  return ir::binary(ir::BinaryOp::add, with_constant(sum->a, constant, value), with_constant(sum->b, constant, value));
}

/// What becomes a parameter of a part, beside variables: it is then the same part for one case of a switch, or for one
/// of several matrices, as for another.
class Parameters {
 public:
  explicit Parameters(const ir::Stmt& s) {
    ir::visit_with(
        s, [&](const ir::For& n) { bound_.insert(n.var.get()); },
        [&](const ir::LetStmt& n) { bound_.insert(n.var.get()); },
        [&](const ir::Let& n) { bound_.insert(n.var.get()); });
    ir::visit_with(
        s, [](const ir::Prefetch&) { return false; }, [&](const ir::Load& load) { add_matrix(load); });
  }

  FunctionPart part_of(const ir::Stmt& s) {
    FunctionPart part;
    part.body = ir::mutate_with(s, [&](auto& self, const ir::Load& load) -> ir::Expr {
      if (is_outside(load)) return parameter_for(ir::handle_of(load));
      if (const Matrix* matrix = matrix_of(load.buffer)) return in_matrix(self.children(load), *matrix);
      return self.children(load);
    });
    ir::visit_with(part.body, [&](const ir::Var& v) {
      if (!bound_.insert(&v)) return;
      part.parameters.push_back(ir::handle_of(v));
      part.arguments.push_back(part.parameters.back());
      for (const auto& [value, parameter] : values_)
        if (parameter.same_as(part.parameters.back())) part.arguments.back() = value;
    });
    return part;
  }

 private:
  /// In which of the matrices of a weight all is that the part reads of it.
  struct Matrix {
    ir::Buffer weight;
    std::int64_t number;  // -1: in several
    std::int64_t begin() const { return number * size_of_matrix(*weight); }
  };

  const Matrix* matrix_of(const ir::Buffer& buffer) const {
    for (const Matrix& matrix : matrices_)
      if (matrix.weight == buffer) return matrix.number < 0 ? nullptr : &matrix;
    return nullptr;
  }

  void add_matrix(const ir::Load& load) {
    const std::int64_t size = load.indices.size() == 1 ? size_of_matrix(*load.buffer) : 0;
    if (size <= 0) return;
    const ir::Expr constant = constant_in(load.indices[0]);
    const std::int64_t number = constant ? *ir::as_int(constant) / size : 0;
    for (Matrix& matrix : matrices_)
      if (matrix.weight == load.buffer) {
        if (matrix.number != number) matrix.number = -1;
        return;
      }
    matrices_.push_back({load.buffer, number});
  }

  /// The load with where its matrix begins as a parameter.
  ir::Expr in_matrix(const ir::Expr& e, const Matrix& matrix) {
    const auto& load = *e.as<ir::Load>();
    ir::Expr offset = load.indices[0];
    const auto* ramp = offset.as<ir::Ramp>();
    const ir::Type type = ramp ? ramp->base.type() : offset.type();
    if (type.lanes != 1) return e;
    if (matrix.number > 0) {
      const ir::Expr constant = constant_in(offset);
      if (!constant) return e;
      offset = with_constant(offset, constant, ir::constant(double(*ir::as_int(constant) - matrix.begin()), type));
    }
    const ir::Expr begin = parameter_for(ir::constant(double(matrix.begin()), type));
    ramp = offset.as<ir::Ramp>();
    offset = ramp ? ir::Ramp::make(ir::binary(ir::BinaryOp::add, begin, ramp->base), ramp->type.lanes)
                  : ir::binary(ir::BinaryOp::add, begin, offset);
    return ir::Load::make(load.buffer, {offset});
  }

  /// Where the nodes of a batch begin, or how many they are.
  bool is_outside(const ir::Load& load) const {
    bool outside = is_of_batches(load.buffer) && load.indices.size() == 1 && load.type.lanes == 1;
    if (outside)
      ir::visit_with(
          load.indices[0], [&](const ir::Var& v) { outside &= !bound_.contains(&v); },
          [&](const ir::Load&) { outside = false; });
    return outside;
  }

  ir::Expr parameter_for(const ir::Expr& value) {
    for (const auto& [known, parameter] : values_)
      if (ir::equal(known, value)) return parameter;
    return values_.emplace_back(value, ir::Var::make("given", value.type())).second;
  }

  PointerSet bound_;
  Vector<Matrix> matrices_;
  Vector<std::pair<ir::Expr, ir::Expr>> values_;  // and what stands for each
};

}  // namespace detail

/// The variables that are bound outside `s` become parameters; so does where the nodes of a batch begin, and where the
/// one of several matrices begins that the part reads.
inline FunctionPart function_part(const ir::Stmt& s) { return detail::Parameters(s).part_of(s); }

}  // namespace cortex::codegen
