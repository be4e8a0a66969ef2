// Computation leaves the recursion where it does not depend on it: what does not depend on the node is computed once,
// input matrix products are computed ahead for all nodes as one product (paper section 4.3 and 6.1; L5, O3): those that
// all versions of the body have in common for all nodes, others for the nodes of the version's part of all batches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/lower/definition.hpp"

namespace cortex::lower {

/// What leaves and inner nodes multiply alike ahead of the recursion: at once, which is less code, or each for itself,
/// where leaves go on with the sums in registers.
enum class Ahead : std::uint8_t { at_once, apart };

/// The definitions by where they are evaluated.
struct Placement {
  /// One recursion: `ahead` holds a version per part: leaves, inner nodes, or all, and then those of parts of batches.
  struct Pass {
    ra::Direction direction;
    Vector<Version> ahead;
    Vector<Version> recursion;
    int unrolled = 0;
  };
  Vector<Definition> once;
  Vector<Pass> passes;
  ir::Listed listed = ir::Listed::nothing;  // of which nodes some are computed ahead by parts of all batches
};

namespace detail {

/// Takes the node out of definitions that do not depend on it, and out of all others the functions of weights alone,
/// and the arithmetic on weights alone in their contractions. A state keeps its row per node and copies the common
/// value.
class NodeFreer {
 public:
  /// `read_later`: tensors whose rows later recursions read, of which some nodes may have the same value.
  NodeFreer(Vector<Definition>& once, const PointerSet& read_later) : once_(once), read_later_(read_later) {}

  void run(Version& version) {
    PointerMap<int> definitions;  // of each buffer: one for each side of a branch
    for (const Definition& d : version.definitions) ++definitions[d.buffer.id()];
    Vector<Definition> kept;
    for (Definition& d : version.definitions) {
      d.body = drop_node(d.body);
      const bool free = d.node && !d.child && !ir::uses(d.body, d.node);
      const bool trivial = d.body.as<ir::Load>() || d.body.as<ir::FloatImm>();
      const bool alone =
          d.buffer->role == ir::Role::temp && definitions[d.buffer.id()] == 1 && !read_later_.contains(d.buffer.id());
      if (!d.node && !d.child) {
        freed_.emplace(d.buffer.id(), once(d));
      } else if (!free || (trivial && !alone)) {
        d.body = with_functions_once(d, d.indices, d.body);
        kept.push_back(std::move(d));
      } else if (alone) {
        freed_.emplace(d.buffer.id(), once(without_node(d)));
      } else {
        d.body = ir::Load::make(once(without_node(d)), vars_of(d.indices));
        kept.push_back(std::move(d));
      }
    }
    version.definitions = std::move(kept);
  }

 private:
  /// The buffer that holds what `d` computes, which several versions and recursions may share.
  ir::Buffer once(Definition d) {
    for (const Definition& other : once_)
      if (same_values(other, d)) return other.buffer;
    once_.push_back(std::move(d));
    return once_.back().buffer;
  }

  /// Reads of tensors that have lost their node dimension lose the index.
  ir::Expr drop_node(const ir::Expr& e) const {
    return ir::mutate_with(e, [&](auto& self, const ir::Load& load) -> ir::Expr {
      const auto found = freed_.find(load.buffer.id());
      if (found == freed_.end()) return self.children(load);
      const bool has_node = !load.buffer->dims.empty() && load.buffer->dims[0] == dims::node;
      Vector<ir::Expr> indices;
      for (std::size_t i = has_node; i < load.indices.size(); ++i) indices.push_back(self(load.indices[i]));
      return ir::Load::make(found->second, std::move(indices));
    });
  }

  static Definition without_node(const Definition& d) {
    ir::BufferInfo info = *d.buffer;
    if (info.role == ir::Role::state) info.name += "_common";
    info.role = ir::Role::temp;
    info.dims.erase(info.dims.begin());
    return common(d, std::move(info), d.indices, d.body);
  }

  /// A definition of `body`, which is the same for all nodes, over `indices`.
  static Definition common(const Definition& of, ir::BufferInfo info, Vector<IndexVar> indices, const ir::Expr& body) {
    Definition result;
    result.op = of.op;
    result.buffer = ir::Buffer(std::move(info));
    // Fresh variables: the definition that it came from may live on with the old ones.
    ir::Substitution fresh;
    for (IndexVar& index : indices) {
      const ir::Expr var = ir::Var::make(index.var.as<ir::Var>()->name);
      fresh.emplace(index.var.get(), var);
      index.var = var;
    }
    result.indices = std::move(indices);
    result.body = ir::substitute(body, fresh);
    return result;
  }

  /// `e`, a part of the body of `d`, with reads of tensors that are computed once in place of functions and quotients
  /// of what is the same for all nodes, and, in a contraction, of other arithmetic on it. `scope`: the variables around
  /// it.
  ir::Expr with_functions_once(const Definition& d, const Vector<IndexVar>& scope, const ir::Expr& e,
                               bool contracted = false) {
    if (const auto* reduce = e.as<ir::Reduce>()) {
      Vector<IndexVar> inside = scope;
      const bool dense = reduce->axis.dim.kind() == DimKind::dense;
      if (dense) inside.push_back({reduce->axis.var, reduce->axis.dim});
      const ir::Expr body = with_functions_once(d, inside, reduce->body, contracted || dense);
      return body.same_as(reduce->body) ? e : ir::Reduce::make(reduce->op, reduce->axis, body);
    }
    const bool functions = ir::has_functions(e);
    if (!is_float(e.dtype()) || !(functions || contracted)) return e;
    if (is_common(e, scope) && (functions || is_worth_memory(e, scope))) return read_once(d, scope, e);
    return ir::rebuild(*e.get(), [&](const ir::Expr& part) { return with_functions_once(d, scope, part, contracted); });
  }

  /// Whether arithmetic on weights is better read than done for each node: of no more elements than the largest of the
  /// weights, or not many, and never so many that tables would hardly hold them. A weight as it is, or in another
  /// order, is none; one whose elements are read again and again is, such as the diagonals of a Toeplitz matrix.
  static bool is_worth_memory(const ir::Expr& e, const Vector<IndexVar>& scope) {
    constexpr double many = 1 << 20, most = 1 << 22;  // 4 and 16 MB of f32
    double elements = 1, largest = many;
    for (const IndexVar& index : scope)
      if (ir::uses(e, index.var)) elements *= double(index.dim.extent());
    ir::visit_with(e, [&](const ir::Load& load) { largest = std::max(largest, ir::dense_elements(*load.buffer)); });
    ir::Expr inner = e;
    while (const auto* unary = inner.as<ir::Unary>()) inner = unary->a;
    const auto* load = inner.as<ir::Load>();
    if (inner.as<ir::Cast>() || (load && elements <= ir::dense_elements(*load->buffer))) return false;
    return elements <= std::min(largest, most);
  }

  ir::Expr read_once(const Definition& d, const Vector<IndexVar>& scope, const ir::Expr& e) {
    ir::BufferInfo info;
    info.name = d.buffer->name + "_of_weights" + (count_ ? std::to_string(count_ + 1) : "");
    info.dtype = e.dtype();
    Vector<IndexVar> indices;
    Vector<ir::Expr> read;
    for (const IndexVar& index : scope) {
      if (!ir::uses(e, index.var)) continue;
      // Slices that workers own are of what each node has; of this there is one for all.
      const bool dense = index.dim.kind() == DimKind::dense;
      indices.push_back({index.var, dense ? index.dim : Dim(index.dim.name(), index.dim.extent())});
      info.dims.push_back(indices.back().dim);
      read.push_back(index.var);
    }
    ++count_;
    return ir::Load::make(once(common(d, std::move(info), std::move(indices), e)), std::move(read));
  }

  /// Whether `e` reads tensors, and of nothing but variables of the scope: neither of a node nor of a child.
  static bool is_common(const ir::Expr& e, const Vector<IndexVar>& scope) {
    bool common = true, reads = false;
    ir::visit_with(
        e, [&](const ir::UfCall&) { common = false; },
        [&](const ir::Load& load) {
          reads = true;
          common &= load.buffer->role == ir::Role::weight || ir::kind_of_rows(*load.buffer) == DimKind::dense;
        },
        [&](const ir::Var& var) {
          common &= any_of(scope, [&](const IndexVar& index) { return index.var.get() == &var; });
        });
    return common && reads;
  }

  Vector<Definition>& once_;
  const PointerSet& read_later_;
  PointerMap<ir::Buffer> freed_;
  int count_ = 0;
};

/// The buffers of a version whose definitions can be evaluated ahead and are worth it: input matrix products, and what
/// those read. A tensor may have several definitions, one for each side of a branch: it goes as a whole, or stays.
inline PointerSet ahead_of(const Version& version, const Vector<ir::Buffer>& states) {
  PointerSet recurrent, ahead;
  for (const ir::Buffer& state : states) recurrent.insert(state.id());
  for (bool more = true; more;) {
    more = false;
    for (const Definition& d : version.definitions) {
      bool depends = d.buffer->role == ir::Role::state || bool(d.child) || d.by_matrix;
      for_each_read(d.body, [&](const ir::Load& load) { depends |= recurrent.contains(load.buffer.id()); });
      more |= depends && recurrent.insert(d.buffer.id());
    }
  }
  for (const Definition& d : version.definitions)
    if (!recurrent.contains(d.buffer.id()) && has_contraction(d.body)) ahead.insert(d.buffer.id());
  for (const auto& d : reversed(version.definitions))
    if (ahead.contains(d.buffer.id()))
      for_each_read(d.body, [&](const ir::Load& load) {
        if (load.buffer->role == ir::Role::temp && !load.buffer->dims.empty() && load.buffer->dims[0] == dims::node)
          ahead.insert(load.buffer.id());
      });
  return ahead;
}

inline bool defines(const Version& version, const ir::Buffer& buffer) {
  return any_of(version.definitions, [&](const Definition& d) { return d.buffer == buffer; });
}

/// Whether every tensor over the nodes that `d` reads is defined in `everywhere`, and nowhere in `elsewhere`.
inline bool reads_only(const Definition& d, const Version& everywhere, const Vector<const Version*>& elsewhere) {
  bool all = true;
  for_each_read(d.body, [&](const ir::Load& load) {
    if (load.buffer->role != ir::Role::temp || load.buffer->dims.empty() || !(load.buffer->dims[0] == dims::node))
      return;
    all &= defines(everywhere, load.buffer);
    for (const Version* version : elsewhere) all &= !defines(*version, load.buffer);
  });
  return all;
}

/// The definitions of `buffer` in a version.
inline Vector<Definition> definitions_of(const Version& version, const ir::Buffer& buffer) {
  Vector<Definition> result;
  for (const Definition& d : version.definitions)
    if (d.buffer == buffer) result.push_back(d);
  return result;
}

/// `e` with reads of other buffers in place of some.
inline ir::Expr reading(const ir::Expr& e, const PointerMap<ir::Buffer>& others) {
  return ir::mutate_with(e, [&](auto& self, const ir::Load& load) -> ir::Expr {
    const auto to = others.find(load.buffer.id());
    if (to == others.end()) return self.children(load);
    Vector<ir::Expr> indices;
    for (const ir::Expr& index : load.indices) indices.push_back(self(index));
    return ir::Load::make(to->second, std::move(indices));
  });
}

/// Lets a version keep in the same tensors as `first` what both compute of an operator, such as a sum of it; but for
/// sides of branches, which have a tensor together, and for what is `read_later`.
inline void share_tensors(const Version& first, Version& version, const PointerSet& read_later) {
  PointerMap<ir::Buffer> shared;
  for (Definition& d : version.definitions) {
    d.body = reading(d.body, shared);
    if (d.buffer->role != ir::Role::temp || !d.node || d.child || defines(first, d.buffer)) continue;
    if (read_later.contains(d.buffer.id())) continue;
    for (const Definition& other : first.definitions) {
      if (other.op != d.op || other.buffer->role != ir::Role::temp || defines(version, other.buffer)) continue;
      const bool whole =
          definitions_of(first, other.buffer).size() == 1 && definitions_of(version, d.buffer).size() == 1;
      if (!whole || !same_values(other, d)) continue;
      shared.emplace(d.buffer.id(), other.buffer);
      d.buffer = other.buffer;
      break;
    }
  }
}

/// What all versions of one part compute alike, as one version: all of what they have of a tensor, and all that it
/// reads.
inline Version common_to(const Vector<Version*>& versions) {
  const auto all_have = [&](const Vector<Definition>& definitions) {
    return all_of(versions, [&](const Version* version) {
      const Vector<Definition> theirs = definitions_of(*version, definitions[0].buffer);
      bool same = theirs.size() == definitions.size();
      for (std::size_t i = 0; same && i < theirs.size(); ++i) same = same_definition(definitions[i], theirs[i]);
      return same;
    });
  };
  PointerSet differ;  // the tensors that some have otherwise, or of what some have otherwise
  for (const Version* version : versions)
    for (const Definition& d : version->definitions)
      if (!all_have(definitions_of(*version, d.buffer))) differ.insert(d.buffer.id());
  for (bool more = true; more;) {
    more = false;
    for (const Definition& d : versions[0]->definitions)
      for_each_read(d.body, [&](const ir::Load& load) {
        if (load.buffer->role == ir::Role::temp && differ.contains(load.buffer.id()))
          more |= differ.insert(d.buffer.id());
      });
  }
  Version common{versions[0]->part, {}, -1, {}};
  for (const Definition& d : versions[0]->definitions)
    if (!differ.contains(d.buffer.id())) common.definitions.push_back(d);
  return common;
}

/// The versions of one part, with what they compute alike in the same tensors.
inline Vector<Version*> versions_of(Vector<Version>& versions, Part part, const PointerSet& read_later) {
  Vector<Version*> alike;
  for (Version& version : versions)
    if (version.part == part) alike.push_back(&version);
  for (std::size_t v = 1; v < alike.size(); ++v) share_tensors(*alike[0], *alike[v], read_later);
  return alike;
}

/// Takes what `versions` of one part have in common out of them, if it can be evaluated ahead and is worth it.
inline Vector<Definition> take_ahead(const Vector<Version*>& versions, const Vector<ir::Buffer>& states) {
  if (versions.empty()) return {};
  const Version common = versions.size() == 1 ? *versions[0] : common_to(versions);
  const PointerSet ahead = ahead_of(common, states);
  const auto goes = [&](const Definition& d) { return ahead.contains(d.buffer.id()); };
  for (Version* version : versions) erase_where(version->definitions, goes);
  Vector<Definition> taken;
  for (const Definition& d : common.definitions)
    if (goes(d)) taken.push_back(d);
  return taken;
}

/// Takes out of the versions that are for parts of a batch what can be evaluated ahead at their nodes of all batches,
/// into tensors of their own: other versions keep theirs while they need them. The nodes of a program's parts are
/// listed once, so `listed` says whether it is the inner ones, or all.
inline void take_by_part(Vector<Version>& versions, const Vector<ir::Buffer>& states, ir::Listed& listed,
                         Vector<Version>& ahead) {
  for (Version& version : versions) {
    if (version.number < 0 || version.part == Part::leaves) continue;  // the leaves of a part stand in one batch
    const ir::Listed wanted = version.part == Part::all ? ir::Listed::all_nodes : ir::Listed::inner_nodes;
    if (listed != ir::Listed::nothing && listed != wanted) continue;
    Version here{version.part, take_ahead({&version}, states), version.number, version.parts, {}};
    if (here.definitions.empty()) continue;
    listed = wanted;
    PointerMap<ir::Buffer> own;
    for (const Definition& d : here.definitions) own.emplace(d.buffer.id(), ir::Buffer(ir::BufferInfo(*d.buffer)));
    for (Definition& d : here.definitions) d.buffer = own.find(d.buffer.id())->second, d.body = reading(d.body, own);
    for (Definition& d : version.definitions) d.body = reading(d.body, own);
    ahead.push_back(std::move(here));
  }
}

/// The tensors that recursions after each read and do not define: it has them for them (`drop_repeated`).
inline Vector<PointerSet> read_after_each(const Vector<Recursion>& recursions) {
  Vector<PointerSet> result(recursions.size());
  for (std::size_t r = 1; r < recursions.size(); ++r)
    for (const Version& version : recursions[r].versions)
      for (const Definition& d : version.definitions)
        for_each_read(d.body, [&](const ir::Load& load) {
          for (std::size_t before = 0; before < r && !defines(version, load.buffer); ++before)
            result[before].insert(load.buffer.id());
        });
  return result;
}

/// Sorts the definitions of one recursion. Leaves have no recursion to leave, so only what they share with the inner
/// nodes moves, or among each other. `read_later`: the tensors that later recursions read.
inline Placement::Pass hoist_one(Recursion recursion, const PointerSet& read_later, Ahead ahead, ir::Listed& listed) {
  Placement::Pass result{recursion.direction, {}, {}, recursion.unrolled};
  Vector<Version>& versions = recursion.versions;
  if (recursion.direction == ra::Direction::up || recursion.direction == ra::Direction::down) {
    const Vector<Version*> leaves = versions_of(versions, Part::leaves, read_later);
    Version everywhere;
    const auto add = [&](Version here) {
      if (!here.definitions.empty()) result.ahead.push_back(std::move(here));
    };
    for (const Part part : {Part::internal, Part::all}) {
      Version here{part, {}, -1, {}};
      Version taken{part, take_ahead(versions_of(versions, part, read_later), recursion.states), -1, {}};
      for (Version* other : leaves)
        if (ahead == Ahead::at_once) share_tensors(taken, *other, read_later);
      for (Definition& d : taken.definitions) {
        const auto is_same = [&](const Definition& o) { return same_definition(d, o); };
        const bool shared = !leaves.empty() && all_of(leaves, [&](const Version* other) {
          return any_of(other->definitions, is_same) && reads_only(d, everywhere, {&here, other});
        });
        for (Version* other : leaves)
          if (shared) erase_where(other->definitions, is_same);
        (shared ? everywhere : here).definitions.push_back(std::move(d));
      }
      add(std::move(here));
    }
    if (leaves.size() > 1) add({Part::leaves, take_ahead(leaves, recursion.states), -1, {}});
    if (!everywhere.definitions.empty()) result.ahead.insert(result.ahead.begin(), std::move(everywhere));
    take_by_part(versions, recursion.states, listed, result.ahead);
  }
  result.recursion = std::move(versions);
  return result;
}

}  // namespace detail

/// Sorts the definitions by stage.
inline Placement hoist(Vector<Recursion> recursions, Ahead ahead) {
  Placement result;
  // Each version apart: what depends on the node among inner nodes may be the same for all leaves. What is left has
  // rows for nodes, which later recursions may read.
  const Vector<PointerSet> read_later = detail::read_after_each(recursions);
  for (std::size_t r = 0; r < recursions.size(); ++r)
    for (Version& version : recursions[r].versions) detail::NodeFreer(result.once, read_later[r]).run(version);
  for (std::size_t r = 0; r < recursions.size(); ++r)
    result.passes.push_back(detail::hoist_one(std::move(recursions[r]), read_later[r], ahead, result.listed));
  return result;
}

}  // namespace cortex::lower
