// Keeps what a thread reads of the weights at every level in its registers, filled once a call (O2, the paper's model
// persistence).
//
//   for b: .. i = begin + thread: for r = 0:R: a += W[i,r] * x[r]
//     ->
//   local W_registers[P]
//   for e = 0:P: W_registers[e] = W[max(min(begin + thread,I - 1),0),e]
//   for b: .. i = begin + thread: {for r = 0:P: a += W_registers[r] * x[r]
//                                  for r = 0:R - P: a += W[i,P + r] * x[P + r]}
//
// Of matrices that an innermost loop of constant extent reads at a place that only the thread decides: such an element
// is the same at every level. P is the same for all of them, as far as they are that large; where it is less than R,
// the rest is read as before: from shared memory, or from the L2 cache. The order of r stays, and so do results. The
// code that comes of it copies the loop over r out, so that each element has a register. Runs on what threads share
// already; slices in shared memory of which nothing is read any more go.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/schedule/block_slice.hpp"
#include "cortex/schedule/nest.hpp"

namespace cortex::schedule {

namespace detail {

class RegisterKeeper {
 public:
  explicit RegisterKeeper(const GpuShape& shape) : shape_(shape) {}

  ir::Stmt run(const ir::Stmt& body) {
    ir::visit_with(body, [&](const ir::Store& store) {
      const auto* from = store.value.as<ir::Load>();
      if (store.buffer->scope == ir::Scope::chip && from) sources_.insert_or_assign(store.buffer.id(), from->buffer);
    });
    ir::Stmt result = ir::mutate_with(body, [&](auto& self, const ir::For& loop) -> ir::Stmt {
      return carries_recursion(loop) ? over_registers(loop) : self.children(loop);
    });
    if (result.same_as(body)) refuse_all();
    return without_unread(result);
  }

 private:
  /// A matrix, read at `indices`, in which `at_` stands for the loop's variable.
  struct Kept {
    ir::Buffer weight;
    Vector<ir::Expr> indices;
    Dim dim;                     // of the loop
    std::int64_t extent, count;  // of the loop; of it in registers
    ir::Buffer registers;
  };

  [[noreturn]] void refuse_all() const {
    if (read_by_all_)
      refuse_gpu("weights are to stay in registers, each thread's own, but all threads read the same elements of " +
                 left_out_ + ", which has one column; keep the weights in shared memory");
    refuse_gpu(
        "weights are to stay in registers, but at no level a thread reads the same elements of a matrix as at the "
        "others" +
        (left_out_.empty() ? ""
                           : ": " + left_out_ + " has more columns in a slice than a block has threads, or is read " +
                                 "at places that nodes decide") +
        "; take more blocks or threads, or keep the weights in shared memory");
  }

  /// The loop that carries the recursion, after what fills the registers.
  ir::Stmt over_registers(const ir::For& loop) {
    kept_.clear();
    at_levels(loop, [&](const ir::For& contraction) {
      collect(contraction);
      return ir::handle_of(contraction);
    });
    if (kept_.empty()) return ir::handle_of(loop);
    divide();
    ir::Stmt result = at_levels(loop, [&](const ir::For& contraction) { return split(contraction); });
    Vector<ir::Stmt> fills;
    for (const Kept& kept : kept_) fills.push_back(fill(kept));
    fills.push_back(result);
    result = ir::Block::make(fills);
    for (const Kept& kept : reversed(kept_)) result = ir::Alloc::make(kept.registers, result);
    return result;
  }

  /// `loop` with each innermost loop of constant extent replaced by what `f` makes of it; meanwhile `known_` has its
  /// variable, and those around it that only the thread decides.
  ir::Stmt at_levels(const ir::For& loop, FunctionRef<ir::Stmt(const ir::For&)> f) {
    known_ = {};
    return ir::mutate_with(
        ir::handle_of(loop),
        [&](auto& self, const ir::LetStmt& let) -> ir::Stmt {
          const ir::Expr value = ir::substitute(let.value, known_);
          if (is_of_thread(value))
            known_.insert_or_assign(let.var.get(), value);
          else
            known_.erase(let.var.get());
          return self.children(let);
        },
        [&](auto& self, const ir::For& inner) -> ir::Stmt {
          bool innermost = true;
          ir::visit_with(inner.body, [&](const ir::For&) { innermost = false; });
          const bool constant = inner.extent.as<ir::IntImm>() && inner.loop == ir::ForKind::serial;
          if (!innermost || !constant || inner.dim.kind() != DimKind::dense) return self.children(inner);
          known_.insert_or_assign(inner.var.get(), at_);
          const ir::Stmt result = f(inner);
          known_.erase(inner.var.get());
          return result;
        });
  }

  /// Whether nothing but who runs it decides a value.
  bool is_of_thread(const ir::Expr& e) const {
    bool own = true;
    ir::visit_with(
        e, [&](const ir::Load&) { own = false; }, [&](const ir::Var& v) { own &= &v == at_.get(); },
        [&](const ir::UfCall& call) {
          using enum ir::UfKind;
          own &= call.uf.kind == thread || call.uf.kind == worker || call.uf.kind == num_workers;
        });
    return own;
  }

  /// What a load in the loop reads, without count and registers; nothing if it is nothing to keep.
  std::optional<Kept> read_by(const ir::Load& load, const ir::For& loop) const {
    const bool chip = load.buffer->scope == ir::Scope::chip;
    Kept read{source_of(load.buffer), {}, loop.dim, *ir::as_int(loop.extent), 0, {}};
    if (read.weight->role != ir::Role::weight || read.weight->fragments || load.indices.size() < 2) return {};
    if (any_of(read.weight->dims, [](const Dim& d) { return d.kind() == DimKind::open; }))
      return {};  // how many rows there are, for threads without a column of their own, is not known
    bool own = true, moves = false, differs = false;
    for (std::size_t d = 0; d < load.indices.size(); ++d) {
      const ir::Expr index = ir::substitute(chip ? in_weight(load, read.weight, d) : load.indices[d], known_);
      read.indices.push_back(index);
      own &= bool(index) && is_of_thread(index);
      moves |= ir::uses(index, at_);
      differs |= ir::asks_structure(index);
    }
    return own && moves && differs ? std::optional(read) : std::nullopt;
  }

  /// Whether a matrix that the loop sums over has no other dimension for threads to share.
  bool has_one_column(const ir::Load& load, const ir::For& loop) const {
    const ir::Buffer matrix = source_of(load.buffer);
    bool one = true;
    for (std::size_t d = 0; d < load.indices.size(); ++d)
      one &= ir::uses(load.indices[d], loop.var) || matrix->dims[d].extent() == 1;
    return one;
  }

  /// The weight of which a buffer is a slice in shared memory, or else the buffer.
  ir::Buffer source_of(const ir::Buffer& buffer) const {
    const auto source = sources_.find(buffer.id());
    return source == sources_.end() ? buffer : source->second;
  }

  /// The index of the weight that a block's slice in shared memory is indexed for by index `d`.
  ir::Expr in_weight(const ir::Load& load, const ir::Buffer& weight, std::size_t d) const {
    const BlockSlice slice = slice_of(weight->dims[d].extent(), shape_.slice_unit, shape_.blocks, true);
    const auto* from = load.indices[d].as<ir::Binary>();
    const bool shifted = from && from->op == ir::BinaryOp::sub && ir::equal(from->b, slice.begin);
    return shifted ? from->a : load.indices[d];
  }

  Kept* find(const Kept& read) {
    for (Kept& kept : kept_) {
      bool same = kept.weight == read.weight && kept.extent == read.extent;
      for (std::size_t d = 0; same && d < read.indices.size(); ++d) same = ir::equal(kept.indices[d], read.indices[d]);
      if (same) return &kept;
    }
    return nullptr;
  }

  void collect(const ir::For& loop) {
    ir::visit_with(loop.body, [&](const ir::Load& load) {
      const std::optional<Kept> read = read_by(load, loop);
      if (!read) {
        const ir::Buffer source = source_of(load.buffer);
        const bool matrix = source->role == ir::Role::weight && load.indices.size() > 1;
        if (matrix && left_out_.empty())
          left_out_ = "'" + source->name + "'", read_by_all_ = has_one_column(load, loop);
      } else if (!find(*read)) {
        kept_.push_back(*read);
      }
    });
  }

  /// Registers of an element; those of less than 32 bits have one for themselves.
  static std::int64_t registers_of(const Kept& kept) { return size_of(kept.weight->dtype) > 4 ? 2 : 1; }

  /// Gives each matrix its share of the thread's registers, those of one extent the same: a loop reads them together.
  /// What small ones do not need, the others get.
  void divide() {
    Vector<std::int64_t> extents;
    for (const Kept& kept : kept_)
      if (!contains(extents, kept.extent)) extents.push_back(kept.extent);
    std::sort(extents.begin(), extents.end());
    std::int64_t room = shape_.weight_registers, waiting = 0;
    for (const Kept& kept : kept_) waiting += registers_of(kept);
    for (const std::int64_t extent : extents) {
      const std::int64_t share = room / waiting, count = share >= extent ? extent : share < 8 ? share : share / 4 * 4;
      for (Kept& kept : kept_) {
        if (kept.extent != extent) continue;
        if (count < std::min(extent, least)) refuse_share(kept, share);
        kept.count = count, kept.registers = registers(kept);
        room -= count * registers_of(kept), waiting -= registers_of(kept);
      }
    }
  }

  [[noreturn]] void refuse_share(const Kept& kept, std::int64_t share) const {
    refuse_gpu("weights are to stay in registers, but a thread has room for " +
               std::to_string(shape_.weight_registers) + " elements beside what it works with, and of " +
               std::to_string(kept_.size()) + " matrices '" + kept.weight->name + "' would get " +
               std::to_string(share) + " of " + std::to_string(kept.extent) +
               "; take fewer threads, or keep the weights in shared memory");
  }

  static ir::Buffer registers(const Kept& kept) {
    ir::BufferInfo info;
    info.name = kept.weight->name + "_registers";
    info.dtype = kept.weight->dtype;
    info.role = ir::Role::weight;
    info.scope = ir::Scope::local;
    info.dims = {Dim("element", kept.count)};
    info.packed_from = kept.weight;
    return ir::Buffer(std::move(info));
  }

  /// The loop, its first part over registers.
  ir::Stmt split(const ir::For& loop) {
    const std::int64_t extent = *ir::as_int(loop.extent);
    std::int64_t count = extent;
    bool any = false;
    ir::visit_with(loop.body, [&](const ir::Load& load) {
      if (const auto read = read_by(load, loop)) any = true, count = std::min(count, find(*read)->count);
    });
    if (!any) return ir::handle_of(loop);
    const ir::Stmt first = ir::mutate_with(loop.body, [&](auto& self, const ir::Load& load) -> ir::Expr {
      const auto read = read_by(load, loop);
      return read ? ir::Load::make(find(*read)->registers, {loop.var}) : self.children(load);
    });
    Vector<ir::Stmt> parts{ir::For::make(loop.var, loop.dim, ir::imm(count), loop.loop, first)};
    if (count < extent) {
      const ir::Expr r = ir::Var::make(loop.var.as<ir::Var>()->name);
      const ir::Stmt rest = ir::substitute(loop.body, {{loop.var.get(), r + count}});
      parts.push_back(ir::For::make(r, loop.dim, ir::imm(extent - count), loop.loop, rest));
    }
    return ir::Block::make(parts);
  }

  /// A thread without a column of its own reads what is there, and uses none of it; so does a block without columns,
  /// whose last one would be before the first.
  ir::Stmt fill(const Kept& kept) const {
    const ir::Expr e = ir::Var::make("e");
    Vector<ir::Expr> from;
    for (std::size_t d = 0; d < kept.indices.size(); ++d) {
      const ir::Expr index = ir::substitute(kept.indices[d], {{at_.get(), e}});
      const ir::Expr last = ir::imm(kept.weight->dims[d].extent() - 1);
      const bool inside = index.same_as(e) || index.as<ir::IntImm>();
      using enum ir::BinaryOp;
      from.push_back(inside ? index : ir::binary(max, ir::binary(min, index, last), ir::imm(0)));
    }
    const ir::Stmt copy = ir::Store::make(kept.registers, {e}, ir::Load::make(kept.weight, from));
    return ir::For::make(e, kept.dim, ir::imm(kept.count), ir::ForKind::serial, copy);
  }

  /// `body` without filling shared memory of which nothing is read.
  static ir::Stmt without_unread(const ir::Stmt& body) {
    PointerSet read;
    ir::add_loaded(body, read);
    return ir::mutate_with(body, [&](auto& self, const ir::For& loop) -> ir::Stmt {
      bool unread = false, other = false;
      ir::visit_with(loop.body, [&](const ir::Store& store) {
        const bool here = store.buffer->scope == ir::Scope::chip && !read.contains(store.buffer.id());
        unread |= here, other |= !here;
      });
      return unread && !other ? ir::nothing() : self.children(loop);
    });
  }

  static constexpr std::int64_t least = 2;  // of a loop, for a part of it to be worth code of its own

  const GpuShape& shape_;
  const ir::Expr at_ = ir::Var::make("at");
  PointerMap<ir::Buffer> sources_;  // of slices in shared memory
  ir::Substitution known_;
  Vector<Kept> kept_;
  std::string left_out_;      // the first matrix of which registers keep nothing
  bool read_by_all_ = false;  // that one
};

}  // namespace detail

/// Throws `Error{invalid_schedule}` where registers can hold no part of the weights.
inline ir::Stmt keep_registers(const ir::Stmt& body, const GpuShape& shape) {
  return detail::RegisterKeeper(shape).run(body);
}

}  // namespace cortex::schedule
