// Weights in two bytes an element or one, where the schedule asks for it (`Schedule::store`): the copy that the code
// reads is narrow, and elements are widened to f32 as they are read.
//
//   for r: a = fma(W[i,r],x[r],a)     ->     for r: a = fma(f32(W[i,r]),x[r],a)     # W is bf16, made of W at bind
//   y[i] = a                                 y[i] = a
//
// Of whole numbers times scales (i8) the scales multiply the finished sum, where all of its terms have the same ones:
//
//   for r: a = fma(W[i,r],x[r],a)     ->     for r: a = fma(f32(W[i,r]),x[r],a)
//   y[i] = a                                 y[i] = a * W_scales[i]
//
// and elsewhere each element. A weight has one scale for each index of the dimensions that no sum runs over.
//
// Runs before weights are packed: the packed copy is of the narrow type. The logical indices stay.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/schedule.hpp"

namespace cortex::schedule {

namespace detail {

/// Elements of f32 of the weight, whatever they are stored as: a weight that the program reads.
struct StoredWeight {
  ir::Buffer weight, narrow, scales;  // `narrow` is null where it stays as it is; `scales` where there are none
  std::uint32_t summed = 0;           // dimensions that a sum runs over, in some place
  bool looked_up = false;             // by an index that the nodes give
};

class WeightNarrower {
 public:
  explicit WeightNarrower(const Schedule& schedule) : schedule_(schedule) {}

  ir::Stmt run(const ir::Stmt& body) {
    find_weights(body);
    bool any = false;
    for (StoredWeight& w : weights_) any |= narrow(w);
    if (!any) return body;
    return ir::mutate_with(
        body,
        [&](auto& self, const ir::Alloc& alloc) -> ir::Stmt {
          Sum sum = sum_in(alloc);
          if (!sum.store) return self.children(alloc);
          sums_.push_back(std::move(sum));
          const ir::Stmt result = self.children(alloc);
          sums_.pop_back();
          return result;
        },
        [&](auto& self, const ir::Store& store) -> ir::Stmt {
          const Sum* sum = sum_of(store.buffer);
          return sum && sum->store == &store ? accumulate(self, store) : self.children(store);
        },
        [&](auto& self, const ir::Load& load) -> ir::Expr {
          const ir::Expr read = self.children(load);
          if (const Sum* sum = sum_of(load.buffer)) return scaled(read, sum->scales);
          return widened(load.buffer, read);
        });
  }

 private:
  /// An accumulator whose terms all have the scales `scales`.
  struct Sum {
    ir::Buffer accumulator;
    const ir::Store* store = nullptr;  // of a term more; null: it is none
    Vector<ir::Expr> scales;
  };

  // ---- what the program reads ----

  /// Variables of loops that accumulate, in `accumulator`, over all their iterations; and what is bound inside of
  /// these.
  void find_sums_over(const ir::Buffer& accumulator, const ir::Stmt& body) {
    ir::visit_with(body, [&](const ir::For& loop) {
      bool sums = false, restarts = false;
      ir::visit_with(loop.body, [&](const ir::Store& store) {
        if (store.buffer != accumulator) return;
        bool on = false, own = false;
        ir::visit_with(store.value, [&](const ir::Load& load) { on |= load.buffer == accumulator; });
        for (const ir::Expr& index : store.indices) own |= ir::uses(index, loop.var);
        sums |= on && !own;
        restarts |= !on;
      });
      if (!sums || restarts) return;
      summed_.insert(loop.var.get());
      ir::visit_with(loop.body, [&](const ir::LetStmt& let) { summed_.insert(let.var.get()); });
    });
  }

  /// What the elements of a tensor are made of that are stored where a sum reads them, under a name (`fuse_into_sums`).
  static PointerSet find_read_by_elements(const ir::Stmt& body) {
    PointerSet names, loads;
    ir::visit_with(body, [&](const ir::Store& store) {
      if (store.buffer->scope != ir::Scope::local && store.value.as<ir::Var>()) names.insert(store.value.get());
    });
    ir::visit_with(body, [&](const ir::LetStmt& let) {
      if (names.contains(let.var.get())) ir::visit_with(let.value, [&](const ir::Load& load) { loads.insert(&load); });
    });
    return loads;
  }

  void find_weights(const ir::Stmt& body) {
    ir::visit_with(body, [&](const ir::Alloc& alloc) { find_sums_over(alloc.buffer, alloc.body); });
    const PointerSet of_elements = find_read_by_elements(body);
    ir::visit_with(body, [&](const ir::Load& load) {
      if (load.buffer->role != ir::Role::weight || load.buffer->scope == ir::Scope::local) return;
      StoredWeight& w = entry(load.buffer);
      const bool of_sum = !of_elements.contains(&load);
      for (std::size_t d = 0; d < load.indices.size(); ++d)
        ir::visit_with(
            load.indices[d],
            [&](const ir::Var& var) { w.summed |= std::uint32_t(of_sum && summed_.contains(&var)) << d; },
            [&](const ir::UfCall&) { w.looked_up = true; });
    });
  }

  StoredWeight& entry(const ir::Buffer& weight) {
    for (StoredWeight& w : weights_)
      if (w.weight == weight) return w;
    weights_.push_back({weight, {}, {}});
    return weights_.back();
  }

  DType type_of(const StoredWeight& w) const {
    for (const auto& [name, type] : schedule_.stored)
      if (name == w.weight->name) return type;
    const bool product = w.weight->dims.size() > 1 && w.summed && !w.looked_up;
    return product && w.weight->dtype == DType::f32 ? schedule_.weight_type : w.weight->dtype;
  }

  bool narrow(StoredWeight& w) const {
    const DType type = type_of(w);
    if (type == w.weight->dtype) return false;
    ir::BufferInfo info = *w.weight;
    info.dtype = type;
    info.packed_from = w.weight;
    if (type == DType::i8) {
      const auto rank = std::uint32_t(info.dims.size()), last = 1u << (rank - 1);
      info.channels = ((1u << rank) - 1) & ~(w.summed ? w.summed : last);
      w.scales = scales(info);
    }
    w.narrow = ir::Buffer(std::move(info));
    return true;
  }

  static ir::Buffer scales(ir::BufferInfo info) {
    Vector<Dim> dims;
    for (std::size_t d = 0; d < info.dims.size(); ++d)
      if (info.channels >> d & 1u) dims.push_back(info.dims[d]);
    if (dims.empty()) dims.emplace_back("tensor", 1);
    info.name += "_scales";
    info.dtype = DType::f32;
    info.dims = std::move(dims);
    info.is_scales = true;
    return ir::Buffer(std::move(info));
  }

  const StoredWeight* narrowed(const ir::Buffer& buffer) const {
    for (const StoredWeight& w : weights_)
      if (w.weight == buffer && w.narrow) return &w;
    return nullptr;
  }

  // ---- sums ----

  /// The accumulator that `alloc` is, if it starts at 0 and takes one term after the other in one place, whose factors
  /// have scales that are the same wherever it is there. Pieces of a loop have one buffer, and a sum each.
  Sum sum_in(const ir::Alloc& alloc) const {
    if (!alloc.buffer->dims.empty()) return {};
    Vector<const ir::Store*> stores;
    PointerSet bound;
    ir::visit_with(
        alloc.body, [&](const ir::For& loop) { bound.insert(loop.var.get()); },
        [&](const ir::LetStmt& let) { bound.insert(let.var.get()); },
        [&](const ir::Store& s) {
          if (s.buffer == alloc.buffer) stores.push_back(&s);
        });
    if (stores.size() != 2) return {};
    const auto* zero = stores[0]->value.as<ir::FloatImm>();
    const auto* term = stores[1]->value.as<ir::Fma>();
    if (!zero || zero->value != 0 || !term || !reads(term->c, alloc.buffer)) return {};
    Sum sum{alloc.buffer, stores[1], {}};
    collect_scales(term->a, sum.scales);
    collect_scales(term->b, sum.scales);
    bool same = !sum.scales.empty();
    for (const ir::Expr& scale : sum.scales)
      ir::visit_with(scale, [&](const ir::Var& var) { same &= !bound.contains(&var); });
    return same ? sum : Sum();
  }

  static bool reads(const ir::Expr& e, const ir::Buffer& buffer) {
    const auto* load = e.as<ir::Load>();
    return load && load->buffer == buffer;
  }

  /// The scales of the factors of `product`.
  void collect_scales(const ir::Expr& product, Vector<ir::Expr>& scales) const {
    const auto* load = product.as<ir::Load>();
    const StoredWeight* w = load ? narrowed(load->buffer) : nullptr;
    if (w && w->scales) scales.push_back(scale_at(*w, load->indices));
  }

  const Sum* sum_of(const ir::Buffer& buffer) const {
    for (const Sum& sum : sums_)
      if (sum.accumulator == buffer) return &sum;
    return nullptr;
  }

  template <class Self>
  ir::Stmt accumulate(Self& self, const ir::Store& store) const {
    const auto& term = *store.value.as<ir::Fma>();
    return ir::Store::make(store.buffer, store.indices,
                           ir::Fma::make(factor(self, term.a), factor(self, term.b), term.c));
  }

  /// A factor of a term, without its scale.
  template <class Self>
  ir::Expr factor(Self& self, const ir::Expr& e) const {
    const auto* load = e.as<ir::Load>();
    const StoredWeight* w = load ? narrowed(load->buffer) : nullptr;
    return w ? ir::Cast::make(DType::f32, ir::Load::make(w->narrow, load->indices)) : self(e);
  }

  // ---- reads ----

  ir::Expr widened(const ir::Buffer& buffer, const ir::Expr& read) const {
    const StoredWeight* w = narrowed(buffer);
    if (!w) return read;
    const auto& indices = read.as<ir::Load>()->indices;
    const ir::Expr element = ir::Cast::make(DType::f32, ir::Load::make(w->narrow, indices));
    return w->scales ? scaled(element, {scale_at(*w, indices)}) : element;
  }

  static ir::Expr scale_at(const StoredWeight& w, const Vector<ir::Expr>& indices) {
    Vector<ir::Expr> own;
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (w.narrow->channels >> d & 1u) own.push_back(indices[d]);
    if (own.empty()) own.push_back(ir::imm(0));
    return ir::Load::make(w.scales, std::move(own));
  }

  static ir::Expr scaled(ir::Expr e, const Vector<ir::Expr>& scales) {
    for (const ir::Expr& scale : scales) e = ir::Binary::make(ir::BinaryOp::mul, e, scale);
    return e;
  }

  const Schedule& schedule_;
  PointerSet summed_;  // variables that sums run over
  Vector<StoredWeight> weights_;
  Vector<Sum> sums_;  // around the place
};

}  // namespace detail

inline ir::Stmt store_weights(const ir::Stmt& body, const Schedule& schedule) {
  return detail::WeightNarrower(schedule).run(body);
}

/// Throws `Error{invalid_schedule}` if the schedule stores what is no input of f32, or as what no weight is stored as.
inline void check_stored(const ra::Graph& graph, const Schedule& schedule) {
  const auto refuse = [](const std::string& what) { throw Error(Code::invalid_schedule, "store: " + what); };
  const auto check_type = [&](DType type) {
    if (type != DType::f32 && type != DType::bf16 && type != DType::f16 && type != DType::i8)
      refuse("weights are stored as f32, bf16, f16 or i8, and not as " + std::string(to_string(type)));
  };
  check_type(schedule.weight_type);
  for (const auto& [name, type] : schedule.stored) {
    check_type(type);
    std::string all;
    const ra::Op* input = nullptr;
    for (const ra::Op& op : graph.ops) {
      if (op.kind != ra::OpKind::input) continue;
      all += (all.empty() ? "'" : ", '") + op.name() + "'";
      if (op.name() == name) input = &op;
    }
    if (!input) refuse("model '" + graph.name + "' has no input '" + name + "'; its inputs are " + all);
    if (input->buffer->dtype != DType::f32)
      refuse("input '" + name + "' of model '" + graph.name + "' is " + std::string(to_string(input->buffer->dtype)) +
             "; inputs of f32 alone are stored as another type");
  }
  if (!is_narrow(schedule.weight_type)) return;
  for (const ra::Op& op : graph.ops)
    if (op.kind == ra::OpKind::input && op.dims.size() > 1 && op.dims[0].kind() != DimKind::open &&
        op.buffer->dtype != DType::f32)
      refuse("input '" + op.name() + "' of model '" + graph.name + "' is " + std::string(to_string(op.buffer->dtype)) +
             "; store_weights is for models whose matrices are f32");
}

}  // namespace cortex::schedule
