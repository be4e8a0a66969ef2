// Leaves the states of leaves where they are: those that are rows of a weight, chosen by a field of the node, are read
// from there and not copied first.
//
//   for n_idx = 0:leaf_batch_size:                    ->   (gone)
//     node = leaf_batch(n_idx)
//     for i: h[node,i] = Emb[word(node),i]
//   .. h[left(node),i] ..                             ->   left_is_leaf = left(node) < num_nodes && is_leaf(left(node))
//                                                          left_row = select(left_is_leaf,word(left(node)),0)
//                                                          .. select(left_is_leaf,Emb[left_row,i],h[left(node),i]) ..
//
// `find_rows_in_place` runs on nests; `read_in_place` last of all that works on loops, since what comes between is
// about the reads of a state as such. The printer makes one load of the two, from an address that is chosen once a row.
// Results find rows by the list that the program keeps (`Program::in_place`).
//
// What the state needs: at leaves no other store, rows of the weight's shape and type, and readers of named children
// alone. The row of zeros that stands for an absent one is the state's own. The dimensions of a row may have changed
// places, as where matrices are kept by columns and their table by rows:
//
//   M[node,j,i] = Emb_M[word(node),i,j]   ->   .. select(left_is_leaf,Emb_M_as_M[left_row,i,j],M[left(node),j,i]) ..
//
// Emb_M_as_M is the table in the layout of M's rows, which it takes on when it is bound. Nothing else may read the
// table then, since there would be two of them in memory.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/nest.hpp"
#include "cortex/schedule/padded_layout.hpp"

namespace cortex::pass {

/// A state whose rows at leaves are those of `weight`, and the field that chooses them. `dims` are the weight's
/// dimensions in the state's order; where that is not their own, `rows` is a copy of the weight laid out like the
/// state.
struct RowsInPlace {
  ir::Buffer state, weight, rows;
  ir::Uf field;
  Vector<int> dims;
};

namespace detail {

class RowFinder {
 public:
  explicit RowFinder(const ir::Program& program) : program_(program) {
    ir::visit_with(program.body, [&](const ir::LetStmt& let) { nodes_.insert_or_assign(let.var.get(), let.value); });
  }

  Vector<RowsInPlace> run() const {
    Vector<RowsInPlace> found;
    schedule::for_each_nest(program_.body, [&](const schedule::Nest& nest) {
      for (const ir::Stmt& s : schedule::stmts_of(nest.inner))
        if (const auto* store = s.as<ir::Store>()) consider(nest, *store, found);
    });
    return found;
  }

 private:
  using K = ir::UfKind;

  static bool is_over_leaves(const schedule::Nest& nest) {
    const auto* extent = nest.rows ? nest.rows->extent.as<ir::UfCall>() : nullptr;
    const auto* node = nest.let_value ? nest.let_value.as<ir::UfCall>() : nullptr;
    return extent && node && extent->uf.kind == K::num_leaves && extent->uf.accessor < 0 &&
           node->uf.kind == K::leaf_node && !nest.guard;
  }

  void consider(const schedule::Nest& nest, const ir::Store& store, Vector<RowsInPlace>& found) const {
    const auto* load = store.value.as<ir::Load>();
    if (!is_over_leaves(nest) || store.buffer->role != ir::Role::state || !load) return;
    const Vector<int> dims = copied_dims(nest, store, *load);
    const bool as_bound = std::is_sorted(dims.begin(), dims.end());
    if (dims.empty() || !(as_bound || is_read_once(load->buffer))) return;
    const auto* field = load->indices[0].as<ir::UfCall>();
    const bool by_field = field && field->uf.kind == K::field && field->args.size() == 1 &&
                          field->args[0].same_as(nest.let_var) &&
                          program_.field_components.at(std::size_t(field->uf.accessor)) == 1;
    if (by_field && stores_at_leaves(store.buffer) == 1 && is_read_at_children(store.buffer))
      found.push_back({store.buffer, load->buffer, as_bound ? load->buffer : laid_out(load->buffer, store.buffer, dims),
                       field->uf, dims});
  }

  /// If the nest copies a whole row of the one to the row of the other: which dimension of the weight each of the
  /// state's is.
  static Vector<int> copied_dims(const schedule::Nest& nest, const ir::Store& store, const ir::Load& load) {
    const ir::BufferInfo &state = *store.buffer, &weight = *load.buffer;
    const bool rows = weight.role == ir::Role::weight && weight.layout.empty() && state.layout.empty() &&
                      weight.dtype == state.dtype && weight.dims.size() == state.dims.size() && state.dims.size() > 1 &&
                      nest.loops.size() + 1 == state.dims.size() && store.indices[0].same_as(nest.let_var);
    if (!rows) return {};
    Vector<int> dims{0};
    for (std::size_t d = 1; d < state.dims.size(); ++d) {
      const schedule::LoopHeader& loop = nest.loops[d - 1];
      const auto is_its = [&](const ir::Expr& index) { return index.same_as(loop.var); };
      const auto at = std::find_if(load.indices.begin() + 1, load.indices.end(), is_its) - load.indices.begin();
      const bool whole = store.indices[d].same_as(loop.var) && std::size_t(at) < weight.dims.size() &&
                         weight.dims[std::size_t(at)].extent() == state.dims[d].extent() &&
                         ir::as_int(loop.extent) == state.dims[d].extent();
      if (!whole) return {};
      dims.push_back(int(at));
    }
    return dims;
  }

  bool is_read_once(const ir::Buffer& weight) const {
    int reads = 0;
    ir::visit_with(program_.body, [&](const ir::Load& load) { reads += load.buffer == weight; });
    return reads == 1;
  }

  /// The weight with its rows in the layout of the state's.
  static ir::Buffer laid_out(const ir::Buffer& weight, const ir::Buffer& state, const Vector<int>& dims) {
    ir::BufferInfo info = *weight;
    for (std::size_t d = 0; d < dims.size(); ++d) info.dims[d] = weight->dims[std::size_t(dims[d])];
    info.layout = schedule::padded_layout(info);
    for (ir::Axis& axis : info.layout.axes) axis.source = dims[std::size_t(axis.source)];
    info.dims = weight->dims;
    info.name += "_as_" + state->name;
    info.packed_from = weight;
    return ir::Buffer(std::move(info));
  }

  /// How many stores there are to rows of the state that may be leaves'.
  int stores_at_leaves(const ir::Buffer& state) const {
    int count = 0;
    ir::visit_with(program_.body, [&](const ir::Store& store) {
      if (!(store.buffer == state)) return;
      const auto node = nodes_.find(store.indices[0].get());
      const auto* call = node == nodes_.end() ? nullptr : node->second.as<ir::UfCall>();
      const bool inner = call && (call->uf.kind == K::internal_node || call->uf.kind == K::internal_batch_node ||
                                  call->uf.kind == K::internal_sequence_node);
      count += !inner;
    });
    return count;
  }

  /// Whether it is read at all, and only at children with a name.
  bool is_read_at_children(const ir::Buffer& state) const {
    bool read = false, named = true;
    ir::visit_with(program_.body, [&](const ir::Load& load) {
      if (!(load.buffer == state)) return;
      const auto* call = load.indices[0].as<ir::UfCall>();
      read = true;
      named &= call && call->uf.kind == K::child && call->args[0].as<ir::Var>();
    });
    return read && named;
  }

  const ir::Program& program_;
  PointerMap<ir::Expr> nodes_;  // what variables of lets are
};

}  // namespace detail

/// The states of `program` whose leaves' rows can stay where they are. Runs before nests are tiled.
inline Vector<RowsInPlace> find_rows_in_place(const ir::Program& program) { return detail::RowFinder(program).run(); }

namespace detail {

class PlaceChooser {
 public:
  explicit PlaceChooser(const Vector<RowsInPlace>& in_place) : in_place_(in_place) {}

  ir::Stmt run(const ir::Stmt& body) {
    return ir::mutate_with(
        body, [&](auto& self, const ir::LetStmt& let) { return with_places(self, let); },
        [&](auto& self, const ir::For& loop) -> ir::Stmt {
          const ir::Stmt kept = self.children(loop);
          return ir::is_nothing(kept.as<ir::For>()->body) ? ir::nothing() : kept;
        },
        [&](auto& self, const ir::Block& block) -> ir::Stmt {
          const ir::Stmt kept = self.children(block);
          if (!kept.as<ir::Block>()) return kept;
          Vector<ir::Stmt> stmts = kept.as<ir::Block>()->stmts;
          erase_where(stmts, ir::is_nothing);
          return ir::Block::make(stmts);
        },
        [&](auto& self, const ir::Store& store) -> ir::Stmt {
          const RowsInPlace* const rows = rows_of(store.buffer);
          const auto* load = store.value.as<ir::Load>();
          return rows && load && load->buffer == rows->weight ? ir::nothing() : self.children(store);
        },
        [&](auto& self, const ir::Load& load) -> ir::Expr {
          const RowsInPlace* const rows = rows_of(load.buffer);
          const ir::Expr own = self.children(load);
          return rows ? either(*rows, *own.as<ir::Load>()) : own;
        });
  }

 private:
  /// Where the row of a child of a node is.
  struct Place {
    ir::Expr child, leaf, row;  // row: of the weight; 0 of inner nodes, whose field may be anything
    ir::Uf field;
  };

  const RowsInPlace* rows_of(const ir::Buffer& buffer) const {
    const auto of_it = [&](const RowsInPlace& rows) { return rows.state == buffer; };
    const auto found = std::find_if(in_place_.begin(), in_place_.end(), of_it);
    return found == in_place_.end() ? nullptr : &*found;
  }

  static Place place_of(const ir::Expr& child, const RowsInPlace& rows) {
    const ir::Expr present = ir::binary(ir::BinaryOp::lt, child, ir::num_nodes()),
                   leaf = ir::both(present, ir::call(ir::UfKind::is_leaf, "is_leaf", {child}));
    return {child, leaf, ir::Select::make(leaf, ir::UfCall::make(rows.field, {child}), ir::imm(0)), rows.field};
  }

  /// The places of the children of `let`'s node are bound where the node is: text is shorter for it.
  template <class Self>
  ir::Stmt with_places(Self& self, const ir::LetStmt& let) {
    Vector<Place> own;
    ir::visit_with(let.body, [&](const ir::Load& load) {
      const RowsInPlace* const rows = rows_of(load.buffer);
      const auto* call = rows ? load.indices[0].as<ir::UfCall>() : nullptr;
      if (!call || !call->args[0].same_as(let.var) || find(own, load.indices[0], rows->field)) return;
      own.push_back(place_of(load.indices[0], *rows));
    });
    if (own.empty()) {
      const ir::Stmt kept = self.children(let);
      return ir::is_nothing(kept.as<ir::LetStmt>()->body) ? ir::nothing() : kept;
    }
    const std::size_t before = places_.size();
    for (const Place& place : own) {
      const std::string name = place.child.as<ir::UfCall>()->uf.name;
      places_.push_back({place.child, ir::Var::make(name + "_is_leaf", place.leaf.type()), ir::Var::make(name + "_row"),
                         place.field});
    }
    ir::Stmt body = self(let.body);
    for (std::size_t i = own.size(); i-- > 0;) {
      const Place& named = places_[before + i];
      const ir::Expr row = ir::Select::make(named.leaf, own[i].row.as<ir::Select>()->then_value, ir::imm(0));
      body = ir::LetStmt::make(named.leaf, own[i].leaf, ir::LetStmt::make(named.row, row, body));
    }
    places_.resize(before);
    return ir::is_nothing(body) ? body : ir::LetStmt::make(let.var, self(let.value), body);
  }

  static const Place* find(const Vector<Place>& places, const ir::Expr& child, const ir::Uf& field) {
    for (const Place& place : places)
      if (ir::equal(place.child, child) && place.field == field) return &place;
    return nullptr;
  }

  ir::Expr either(const RowsInPlace& rows, const ir::Load& own) const {
    const Place* const known = find(places_, own.indices[0], rows.field);
    const Place place = known ? *known : place_of(own.indices[0], rows);
    Vector<ir::Expr> indices = own.indices;
    for (std::size_t d = 0; d < indices.size(); ++d)
      indices[std::size_t(rows.dims[d])] = d ? own.indices[d] : place.row;
    return ir::Select::make(place.leaf, ir::Load::make(rows.rows, indices), ir::handle_of(own));
  }

  const Vector<RowsInPlace>& in_place_;
  Vector<Place> places_;  // of the children of the nodes around
};

}  // namespace detail

/// `program` without the stores of those rows, and with reads from where they are.
inline void read_in_place(ir::Program& program, const Vector<RowsInPlace>& in_place) {
  for (const RowsInPlace& rows : in_place)
    program.in_place.push_back({ir::index_of(program, rows.state), rows.weight->slot, rows.field.accessor, rows.dims});
  program.body = detail::PlaceChooser(in_place).run(program.body);
  const auto* block = program.body.as<ir::Block>();
  if (!block || !block->stmts.front().as<ir::Barrier>()) return;
  Vector<ir::Stmt> stmts = block->stmts;  // there is nothing to wait for
  stmts.erase(stmts.begin());
  program.body = ir::Block::make(stmts);
}

}  // namespace cortex::pass
