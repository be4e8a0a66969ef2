// Finds the nests whose results at a node follow from integer fields of it alone, such as a word: calls can read them
// from tables, which hold a row for each value of the fields.
//
//   for n_idx = 0:leaf_batch_size:                    ->   for n_idx = 0:computed_leaf_batch_size:
//     node = leaf_batch(n_idx)                               (the same)
//     for i: h[node,i] = tanh(sum(r, W[i,r] * Emb[word(node),r]))
//   for i: x[i] = sum(r, W[i,r] * b[r])               ->   if computed_num_nodes > 0: (the same)
//
// The nests stay: they make the tables too, so what a table holds has the bits that a call would compute. Their counts
// of rows are marked with the number of a tabulation, and what they write is kept apart from other memory. The
// runtime makes a tabulation's tables when weights are bound, and in calls puts the rows in place and lets none be
// counted; what follows from the weights alone is one row for all nodes.
//
// Nests that read each other's temporaries go together. What a tabulation needs: no condition on the node, nothing of
// other nodes, and integer fields that index weights as they are, so that their range is known and every row can be
// computed. Only where a contraction is saved, or what is of weights alone. Runs when nests are fused and
// temporaries indexed densely, before workers, memory and tiles are decided.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/pass/recycle_states.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::pass {

/// What tables follow from: weights alone, or fields of nodes too.
enum class TablesOf : std::uint8_t { weights, words_and_weights };

namespace detail {

class Tabulator {
 public:
  Tabulator(const ir::Program& program, TablesOf tables) : program_(program), tables_(tables) {}

  Vector<ir::Tabulation> tabulations;

  ir::Stmt run() {
    collect(program_.body, true);
    for (Found& nest : nests_)
      if (!nest.is_value) inspect(nest);
    while (drop_misfits()) continue;
    join();
    number();
    return tabulations.empty() ? program_.body : rewritten();
  }

 private:
  using Rows = ir::Tabulation::Rows;
  using Parts = ir::Tabulation::Parts;
  using K = ir::UfKind;
  static constexpr std::size_t most = 16;  // tabulations of one program

  /// Which nodes rows are of.
  struct Nodes {
    Rows rows = Rows::all;
    Parts parts{};    // at all batches
    ir::Expr part{};  // of one batch
  };

  struct Found {
    schedule::Nest nest;
    Nodes nodes;
    bool top;  // in no loop that carries a dependence
    bool fits = false;
    Vector<schedule::Access> accesses{};
    Vector<ir::Tabulation::Key> keys{};
    Vector<int> weights{};
    std::size_t group = 0;  // the first nest that it goes together with
    int tabulation = -1;
    bool is_value = false;  // no nest, but what is read for a variable outside of any
  };

  // ---- all nests, and what is read between them, in order ----

  void collect(const ir::Stmt& stmt, bool top) {
    if (const auto nest = schedule::parse_nest(stmt)) {
      Nodes nodes{inner_ ? Rows::internal : Rows::all};
      if (nest->rows) nodes = nest->let_value ? nodes_of(nest->let_value, nest->rows->extent) : Nodes();
      if (top && !nest->rows) nodes = {Rows::once};
      nests_.push_back({*nest, nodes, top});
      return;
    }
    if (const auto* block = stmt.as<ir::Block>()) {
      for (const ir::Stmt& s : block->stmts) collect(s, top);
    } else if (const auto* loop = stmt.as<ir::For>()) {
      collect(loop->body, false);
    } else if (const auto* let = stmt.as<ir::LetStmt>()) {
      collect_reads(let->value);
      const bool outside = inner_;
      inner_ = nodes_of(let->value).rows == Rows::internal;
      collect(let->body, false);
      inner_ = outside;
    }
  }

  /// What is read of rows for a variable of a loop over single nodes.
  void collect_reads(const ir::Expr& value) {
    Found found{{}, {inner_ ? Rows::internal : Rows::all}, false};
    found.is_value = true;
    ir::visit_with(value, [&](const ir::Load& load) { found.accesses.push_back({load.buffer, load.indices, false}); });
    if (!found.accesses.empty()) nests_.push_back(std::move(found));
  }

  /// Which nodes `node` may be, in a loop of `extent` iterations if it is one of that.
  Nodes nodes_of(const ir::Expr& node, const ir::Expr& extent = {}) const {
    const auto* call = node.as<ir::UfCall>();
    switch (call ? call->uf.kind : K::all_node) {
      case K::leaf_node: return {Rows::leaves};
      case K::internal_node:
      case K::internal_batch_node:
      case K::internal_sequence_node:
      case K::group_node:
      case K::inner_child: return {Rows::internal};
      case K::listed_node: {
        const auto* length = extent ? extent.as<ir::UfCall>() : nullptr;
        const bool listed = length && length->uf.kind == K::listed_length;
        const Parts parts{int(ir::as_int(call->args[0]).value()),
                          listed ? int(ir::as_int(length->args[1]).value()) : 0};
        return {program_.listed == ir::Listed::inner_nodes ? Rows::internal : Rows::all, parts, {}};
      }
      case K::part_node: {  // batch 0 holds the leaves
        const auto part = ir::as_int(call->args[0]);
        if (!part || *part >= program_.parts) return {Rows::all, {}, call->args[0]};
        return {Rows::leaves, {int(*part), 1}, call->args[0]};
      }
      default: return {};
    }
  }

  /// Whether some node may be of both.
  static bool meet(const Nodes& a, const Nodes& b) {
    if (a.rows == Rows::leaves && b.rows == Rows::internal) return false;
    if (a.rows == Rows::internal && b.rows == Rows::leaves) return false;
    const auto before = [](const Parts& x, const Parts& y) { return x.first + x.count <= y.first; };
    if (a.parts.count && b.parts.count && (before(a.parts, b.parts) || before(b.parts, a.parts))) return false;
    return !a.part || !b.part ||
           !(schedule::are_other_parts(a.part, b.part, false) || schedule::are_other_parts(b.part, a.part, false));
  }

  // ---- each nest by itself ----

  /// Whether a nest computes nothing but rows of its own nodes, from fields that index weights, weights and such rows.
  void inspect(Found& found) {
    const schedule::Nest& nest = found.nest;
    found.accesses = schedule::accesses_of(nest.inner);
    found.fits = found.top && !nest.guard && over_rows(found);
    for (const schedule::Access& access : found.accesses)
      found.fits &= at_own_row(found, access) && !(access.write && ir::may_share_rows(program_, access.buffer));
    ir::visit_with(
        nest.inner,
        [&](const ir::UfCall& call) {
          const bool plain = is_plain_field(nest, call);
          if (plain) add_key(found.keys, call.uf.accessor);
          found.fits &= plain;
        },
        [&](const ir::Load& load) {
          if (load.buffer->role == ir::Role::field) found.fits = false;
          if (load.buffer->role != ir::Role::weight) return;
          add(found.weights, load.buffer->slot);
          for (std::size_t d = 0; d < load.indices.size(); ++d) bound(found, load, int(d));
        });
    for (const schedule::LoopHeader& loop : nest.loops) found.fits &= ir::as_int(loop.extent).has_value();
  }

  static bool over_rows(const Found& found) {
    const schedule::Nest& nest = found.nest;
    if (!nest.rows) return found.nodes.rows == Rows::once;
    const auto *extent = nest.rows->extent.as<ir::UfCall>(),
               *node = nest.let_value ? nest.let_value.as<ir::UfCall>() : nullptr;
    if (!extent || !node || !(nest.rows->dim == dims::batch) || nest.rows->kind != ir::ForKind::serial) return false;
    const K count = extent->uf.kind;
    switch (node->uf.kind) {
      case K::leaf_node: return count == K::num_leaves;
      case K::all_node: return count == K::num_nodes;
      case K::internal_node: return count == K::num_internal;
      case K::part_node:
      case K::listed_node:
        return count == (node->uf.kind == K::part_node ? K::part_length : K::listed_length) &&
               found.nodes.parts.count && ir::equal(node->args[0], extent->args[0]);
      default: return false;
    }
  }

  /// Rows of nodes, of a batch's nodes, or tensors without rows; those are read by anyone, and written where no row is.
  static bool at_own_row(const Found& found, const schedule::Access& access) {
    const ir::BufferInfo& buffer = *access.buffer;
    if (buffer.scope != ir::Scope::shared) return false;
    const DimKind first = ir::kind_of_rows(buffer);
    if (first == DimKind::dense) return !access.write || (!found.nest.rows && buffer.role == ir::Role::temp);
    if (!found.nest.rows) return false;
    if (first == DimKind::node) return access.indices[0].same_as(found.nest.let_var);
    return first == DimKind::batch && access.indices[0].same_as(found.nest.rows->var);
  }

  static bool is_plain_field(const schedule::Nest& nest, const ir::UfCall& call) {
    return call.uf.kind == K::field && call.args.size() == 1 && nest.let_var && call.args[0].same_as(nest.let_var);
  }

  /// The index of a weight: a field as it is, or nothing of the node.
  static void bound(Found& found, const ir::Load& load, int dim) {
    const ir::Expr& index = load.indices[std::size_t(dim)];
    if (!ir::asks_structure(index) && !(found.nest.let_var && ir::uses(index, found.nest.let_var))) return;
    const auto* call = index.as<ir::UfCall>();
    if (!call || !is_plain_field(found.nest, *call)) {
      found.fits = false;
      return;
    }
    add_key(found.keys, call->uf.accessor);
    for (ir::Tabulation::Key& key : found.keys)
      if (key.field == call->uf.accessor) add(key.bounds, {load.buffer->slot, dim});
  }

  static void add_key(Vector<ir::Tabulation::Key>& keys, int field) {
    auto at = std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key.field >= field; });
    if (at == keys.end() || at->field != field) keys.insert(at, {field, {}});
  }
  template <class T>
  static void add(Vector<T>& list, const T& value) {
    if (!contains(list, value)) list.push_back(value);
  }

  // ---- nests among each other ----

  /// Calls `f` with each access of another nest to the same tensor, where one of the two writes, at rows that both may
  /// have.
  template <class F>
  void meetings(const Found& found, F f) {
    for (const schedule::Access& mine : found.accesses)
      for (Found& other : nests_)
        if (&other != &found)
          for (const schedule::Access& theirs : other.accesses)
            if (mine.buffer == theirs.buffer && (mine.write || theirs.write) && meet(found.nodes, other.nodes))
              f(mine, other, theirs);
  }

  /// Nests that need a row that no fitting nest has computed, or whose rows another writes or wants in a batch's
  /// memory.
  bool drop_misfits() {
    bool dropped = false;
    for (Found& found : nests_) {
      if (!found.fits) continue;
      meetings(found, [&](const schedule::Access& mine, const Found& other, const schedule::Access& theirs) {
        if (goes_together(found, other)) return;
        const DimKind rows = ir::kind_of_rows(*mine.buffer);
        const bool rowless = rows == DimKind::dense, of_nodes = rows == DimKind::node;
        const bool fine = theirs.write ? other.fits && !mine.write && (rowless || (of_nodes && all_nodes(other)))
                                       : rowless || of_nodes;
        if (!fine) found.fits = false, dropped = true;
      });
    }
    return dropped;
  }

  static bool all_nodes(const Found& nest) { return nest.nodes.rows == Rows::all && !nest.nodes.parts.count; }
  static bool goes_together(const Found& a, const Found& b) {
    return a.fits && b.fits && a.nodes.rows == b.nodes.rows && a.nodes.parts == b.nodes.parts;
  }

  /// Puts nests together that read each other's rows, and lets each have the keys and weights of what it reads.
  void join() {
    for (std::size_t n = 0; n < nests_.size(); ++n) nests_[n].group = n;
    for (Found& found : nests_) {
      if (!found.fits) continue;
      meetings(found, [&](const schedule::Access&, const Found& other, const schedule::Access&) {
        if (!goes_together(found, other)) return;
        const std::size_t from = std::max(found.group, other.group), to = std::min(found.group, other.group);
        for (Found& nest : nests_)
          if (nest.group == from) nest.group = to;
      });
    }
    for (Found& found : nests_) {  // what is read stands before
      if (!found.fits) continue;
      meetings(found, [&](const schedule::Access&, const Found& other, const schedule::Access& theirs) {
        if (theirs.write) take(found, other);
      });
    }
  }

  static void take(Found& to, const Found& from) {
    for (const int weight : from.weights) add(to.weights, weight);
    for (const ir::Tabulation::Key& key : from.keys) {
      add_key(to.keys, key.field);
      for (ir::Tabulation::Key& mine : to.keys)
        if (mine.field == key.field)
          for (const auto& b : key.bounds) add(mine.bounds, b);
    }
  }

  /// Numbers the groups that save a contraction, or are of weights alone, and whose fields all have a range; those of
  /// the same rows and fields are one tabulation.
  void number() {
    for (std::size_t g = 0; g < nests_.size(); ++g) {
      if (!nests_[g].fits || nests_[g].group != g) continue;
      Found sum{{}, nests_[g].nodes, true};
      bool saves = sum.nodes.rows == Rows::once;
      for (const Found& nest : nests_) {
        if (!nest.fits || nest.group != g) continue;
        take(sum, nest);
        saves |= schedule::has_contraction(nest.nest.inner);
      }
      bool bounded = sum.nodes.rows == Rows::once || !sum.keys.empty();
      for (const ir::Tabulation::Key& key : sum.keys) bounded &= !key.bounds.empty();
      if (!saves || !bounded || (tables_ == TablesOf::weights && sum.nodes.rows != Rows::once)) continue;
      const int tabulation = tabulation_of(sum);
      if (tabulation < 0) continue;
      for (Found& nest : nests_)
        if (nest.fits && nest.group == g) nest.tabulation = tabulation;
    }
  }

  int tabulation_of(const Found& sum) {
    const auto same_fields = [&](const ir::Tabulation& t) {
      return std::equal(t.keys.begin(), t.keys.end(), sum.keys.begin(), sum.keys.end(),
                        [](const auto& a, const auto& b) { return a.field == b.field; });
    };
    for (std::size_t t = 0; t < tabulations.size(); ++t) {
      ir::Tabulation& known = tabulations[t];
      if (known.rows != sum.nodes.rows || known.parts != sum.nodes.parts || !same_fields(known)) continue;
      for (std::size_t k = 0; k < known.keys.size(); ++k)
        for (const auto& b : sum.keys[k].bounds) add(known.keys[k].bounds, b);
      for (const int weight : sum.weights) add(known.weights, weight);
      return int(t);
    }
    if (tabulations.size() == most) return -1;
    tabulations.push_back({sum.nodes.rows, sum.nodes.parts, sum.keys, sum.weights, {}, {}});
    return int(tabulations.size()) - 1;
  }

  // ---- the program with its marks ----

  ir::Stmt rewritten() {
    PointerMap<ir::Buffer> kept;
    for (const Found& nest : nests_)
      if (nest.tabulation >= 0) keep_results(nest, kept);
    std::size_t next = 0;
    const ir::Stmt marked = schedule::map_nests(program_.body, [&](const schedule::Nest&) -> ir::Stmt {
      while (nests_[next].is_value) ++next;
      const Found& found = nests_[next++];
      if (found.tabulation < 0) return {};
      schedule::Nest nest = found.nest;
      if (nest.rows) {
        const ir::UfCall& extent = *nest.rows->extent.as<ir::UfCall>();
        nest.rows->extent = ir::call(extent.uf.kind, "computed_" + extent.uf.name, extent.args, found.tabulation);
      } else {
        nest.guard = ir::binary(ir::BinaryOp::gt, ir::call(K::num_nodes, "computed_num_nodes", {}, found.tabulation),
                                ir::imm(0));
      }
      return build_nest(nest);
    });
    return ir::with_buffers(marked, kept);
  }

  /// States, and temporaries that something outside of the tabulation reads.
  void keep_results(const Found& nest, PointerMap<ir::Buffer>& kept) {
    ir::Tabulation& tabulation = tabulations[std::size_t(nest.tabulation)];
    for (const schedule::Access& access : nest.accesses) {
      if (!access.write) continue;
      if (access.buffer->role == ir::Role::state) {
        add(tabulation.states, ir::index_of(program_, access.buffer));
        std::sort(tabulation.states.begin(), tabulation.states.end());
        continue;
      }
      bool read = false;
      for (const Found& other : nests_)
        if (other.tabulation != nest.tabulation && meet(nest.nodes, other.nodes))
          for (const schedule::Access& theirs : other.accesses) read |= !theirs.write && theirs.buffer == access.buffer;
      if (!read) continue;
      ir::Buffer& own = kept[access.buffer.id()];
      if (!own) {
        ir::BufferInfo info = *access.buffer;
        info.kept = num_kept_++;
        own = ir::Buffer(std::move(info));
      }
      add(tabulation.temps, own->kept);
    }
  }

  const ir::Program& program_;
  TablesOf tables_;
  Vector<Found> nests_;
  bool inner_ = false;
  int num_kept_ = 0;
};

}  // namespace detail

/// Marks the nests in `program.body` and lists the tabulations in `program.tabulations`.
inline void tabulate(ir::Program& program, TablesOf tables) {
  detail::Tabulator tabulator(program, tables);
  const ir::Stmt body = tabulator.run();
  program.body = body;
  program.tabulations = std::move(tabulator.tabulations);
}

}  // namespace cortex::pass
