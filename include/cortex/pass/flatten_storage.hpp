// Decides where elements lie and turns every index list into one element offset.
//
//   h[node,ramp(i,16)]     ->     h[ramp(i64(node) * 256 + i64(i),16)]
//
// Buffers without a layout get rows padded to whole cache lines, so that vectors of one row never share a line with the
// next. Temporaries that share memory (`share_storage`) become one buffer. Last of all passes: nothing after it knows a
// tensor's dimensions.
#pragma once

#include <cstdint>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/element_at.hpp"
#include "cortex/schedule/padded_layout.hpp"

namespace cortex::pass {

namespace detail {

/// Row-major without room, of constant extents.
inline ir::Layout dense_layout(const ir::Buffer& buffer) {
  ir::Layout layout;
  layout.fixed_size = 1;
  for (int d = int(buffer->dims.size()) - 1; d >= 0; --d) {
    layout.axes.push_back({d, 1, 0, layout.fixed_size});
    layout.fixed_size *= buffer->dims[std::size_t(d)].extent();
  }
  return layout;
}

/// Element offsets of one buffer's accesses.
class Flattener {
 public:
  ir::Stmt run(const ir::Stmt& body) {
    return ir::mutate_with(
        body,
        [&](auto& self, const ir::Load& load) -> ir::Expr {
          Vector<ir::Expr> indices;
          for (const ir::Expr& index : load.indices) indices.push_back(self(index));
          if (stays(load.buffer)) return ir::Load::make(load.buffer, std::move(indices));
          return ir::Load::make(home(load.buffer), {place(planned(load.buffer), indices)});
        },
        [&](auto& self, const ir::Store& store) -> ir::Stmt {
          Vector<ir::Expr> indices;
          for (const ir::Expr& index : store.indices) indices.push_back(self(index));
          copies_ = ir::keeps_weights(store.buffer->scope);
          const ir::Expr value = self(store.value);
          if (stays(store.buffer)) return ir::Store::make(store.buffer, std::move(indices), value);
          const ir::Expr at = place(planned(store.buffer), indices);
          copies_ = false;
          return ir::Store::make(home(store.buffer), {at}, value);
        },
        [&](auto& self, const ir::Alloc& alloc) -> ir::Stmt {
          const ir::Stmt inner = self(alloc.body);
          if (stays(alloc.buffer) && inner.same_as(alloc.body)) return handle_of(alloc);
          return ir::Alloc::make(stays(alloc.buffer) ? alloc.buffer : planned(alloc.buffer), inner);
        });
  }

  ir::Buffer planned(const ir::Buffer& buffer) {
    auto& result = planned_[buffer.id()];
    if (!result) {
      ir::BufferInfo info = *buffer;
      if (buffer->scope == ir::Scope::local) {
        info.layout = dense_layout(buffer);
        info.dims = {Dim("element", info.layout.fixed_size)};
      } else if (info.layout.empty()) {
        info.layout = schedule::padded_layout(*buffer);
      }
      result = ir::Buffer(std::move(info));
    }
    return result;
  }

  /// The buffer in whose memory `buffer` lies.
  ir::Buffer home(const ir::Buffer& buffer) { return planned(buffer->stored_in ? buffer->stored_in : buffer); }

 private:
  /// Local buffers of one dimension or none have offsets for indices as they are.
  static bool stays(const ir::Buffer& buffer) { return buffer->scope == ir::Scope::local && buffer->dims.size() < 2; }

  /// The part of an index that an axis takes: a scalar, and whether the lanes of a ramp follow it with stride 1.
  struct Part {
    ir::Expr scalar;
    bool lanes = false;
  };

  static Part part_of(const ir::Axis& axis, const ir::Ramp& ramp) {
    const ir::Expr& base = ramp.base;
    if (axis.divisor == 1 && axis.modulus == 0) return {base, true};
    const std::int64_t panel = axis.divisor == 1 ? axis.modulus : axis.divisor;
    const ir::Expr quotient = schedule::exact_quotient(base, panel);
    if (!quotient || ramp.type.lanes > panel) return {};
    if (axis.divisor == 1) return {ir::imm(0), true};
    return {axis.modulus ? quotient % axis.modulus : quotient, false};
  }

  static ir::Expr part_of(const ir::Axis& axis, ir::Expr index) {
    const auto by = [&](std::int64_t n) { return ir::constant(double(n), index.type()); };
    if (axis.divisor != 1) {
      const schedule::DividedSum known(index, axis.divisor);
      index = known.quotient ? known.quotient : ir::binary(ir::BinaryOp::div, index, by(axis.divisor));
    }
    if (axis.modulus != 0) {
      const schedule::DividedSum known(index, axis.modulus);
      index = known.quotient ? known.rest : ir::binary(ir::BinaryOp::mod, index, by(axis.modulus));
    }
    return index;
  }

  /// What is copied to a GPU's shared memory is written as the elements at places, and those places are known.
  ir::Expr place(const ir::Buffer& buffer, const Vector<ir::Expr>& indices) const {
    const ir::Expr known = copies_ ? schedule::place_of(*buffer, indices) : ir::Expr();
    return known ? known : offset(buffer, indices);
  }

  static ir::Expr offset(const ir::Buffer& buffer, const Vector<ir::Expr>& indices) {
    // Rows of nodes may exceed 32 bits, and so may a tensor that just fits, where its layout has gaps.
    const bool wide = ir::kind_of_rows(*buffer) != DimKind::dense || buffer->layout.fixed_size > INT32_MAX;
    ir::Expr scalar, vector;
    int ramp_lanes = 0;
    const auto widen = [&](ir::Expr e) { return wide ? ir::Cast::make(DType::i64, std::move(e)) : e; };
    const auto add = [&](ir::Expr& sum, const ir::Expr& e, std::int64_t stride) {
      const ir::Expr term = ir::binary(ir::BinaryOp::mul, widen(e), ir::constant(double(stride), widen(e).type()));
      sum = sum ? ir::binary(ir::BinaryOp::add, sum, term) : term;
    };
    for (const auto& axis : reversed(buffer->layout.axes)) {
      const ir::Expr& index = indices[std::size_t(axis.source)];
      const auto* ramp = index.as<ir::Ramp>();
      const Part part = ramp ? part_of(axis, *ramp) : Part{};
      if (index.lanes() == 1)
        add(scalar, part_of(axis, index), axis.stride);
      else if (part.scalar && (!part.lanes || axis.stride == 1)) {
        add(scalar, part.scalar, axis.stride);
        if (part.lanes) ramp_lanes = index.lanes();
      } else if (ramp && axis.divisor == 1 && axis.modulus == 0) {  // from one lane to the next it is as far everywhere
        add(scalar, ramp->base, axis.stride);
        add(vector, ir::Ramp::make(ir::imm(0), index.lanes()), axis.stride);
      } else
        add(vector, part_of(axis, index), axis.stride);
    }
    if (!scalar) scalar = widen(ir::imm(0));
    ir::Expr result = ramp_lanes ? ir::Ramp::make(scalar, ramp_lanes) : scalar;
    if (!vector) return result;
    if (!ramp_lanes) result = ir::Broadcast::make(scalar, vector.lanes());
    return ir::binary(ir::BinaryOp::add, result, vector);
  }

  PointerMap<ir::Buffer> planned_;
  bool copies_ = false;  // in a store to a GPU's shared memory
};

}  // namespace detail

/// The program at level `device`: states keep their places at the front of the buffers.
inline ir::Program flatten_storage(const ir::Program& program) {
  detail::Flattener flattener;
  ir::Program result = program;
  result.body = flattener.run(program.body);
  result.level = ir::Level::device;
  result.buffers.clear();
  for (const ir::Buffer& buffer : program.buffers)
    if (!buffer->stored_in) result.buffers.push_back(flattener.planned(buffer));
  return result;
}

}  // namespace cortex::pass
