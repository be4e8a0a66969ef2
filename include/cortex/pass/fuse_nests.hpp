// Fuses nests over the same loops into one, and the reductions of one nest into one pass over k: the gates of a cell
// read the state together, and their epilogue finds the sums in registers.
//
//   for n: for i: {a = 0; for j: a += Wi[i,j] * s[n,j]; ti[n,i] = a}
//   for n: for i: {a = 0; for j: a += Wu[i,j] * s[n,j]; tu[n,i] = a}
//   for n: for i: c[n,i] = sigmoid(ti[n,i]) * tanh(tu[n,i])
//     ->
//   for n: for i: {a = 0; b = 0; for j: {a += ..; b += ..}; ti[n,i] = a; tu[n,i] = b; c[n,i] = ...}
//
// Needs each nest alone in its loop over rows (`distribute_rows`, `fuse_edges`). A nest joins the earliest one after
// everything that it reads other than element by element; nests of different parts of a batch, such as cases of a
// switch, have no rows in common. Paper section 4.1 and 6 (fusion, O1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/schedule/access.hpp"

namespace cortex::pass {

namespace detail {

/// One reduction or elementwise store of a fused nest, taken apart.
struct Member {
  Vector<ir::Buffer> locals;
  Vector<ir::Stmt> before;        // the accumulator's start
  const ir::For* loop = nullptr;  // the contraction, or those of all children, if it is one
  Vector<ir::Stmt> after;         // the store of the result, or everything

  Vector<ir::Stmt> before_and_loop() const {
    Vector<ir::Stmt> result = before;
    result.push_back(ir::handle_of(*loop));
    return result;
  }
};

inline Member take_apart(ir::Stmt inner) {
  Member member;
  while (const auto* alloc = inner.as<ir::Alloc>()) {
    member.locals.push_back(alloc->buffer);
    inner = alloc->body;
  }
  bool passed = false;
  for (const ir::Stmt& s : schedule::stmts_of(inner)) {
    const auto* loop = s.as<ir::For>();
    if (!passed && loop && (loop->dim.kind() == DimKind::dense || schedule::contracts_each_child(*loop))) {
      member.loop = loop;
      passed = true;
    } else {
      (passed ? member.after : member.before).push_back(s);
    }
  }
  if (!member.loop) std::swap(member.before, member.after);
  return member;
}

/// Contractions that do not need each other, each loop accumulating all that run over its axis; then what follows them.
struct Phase {
  struct Loop {
    const ir::For* loop;
    Vector<ir::Stmt> bodies;
  };
  Vector<ir::Stmt> before;
  Vector<Loop> loops;
  Vector<ir::Stmt> after;

  void add(const Member& m) {
    append(before, m.before);
    const auto fits = [&](const Loop& l) {
      return l.loop->dim == m.loop->dim && l.loop->loop == m.loop->loop && ir::equal(l.loop->extent, m.loop->extent) &&
             shares_operand(l, m);
    };
    auto at = std::find_if(loops.begin(), loops.end(), fits);
    if (at == loops.end()) at = loops.insert(at, Loop{m.loop, {}});
    at->bodies.push_back(ir::substitute(m.loop->body, {{m.loop->var.get(), at->loop->var}}));
    append(after, m.after);
  }

  /// Whether the contraction of `m` reads what one of the loop's does, so that one load serves both. Others would only
  /// take each other's registers.
  static bool shares_operand(const Loop& l, const Member& m) {
    const Vector<ir::Expr> own = operands_of(ir::substitute(m.loop->body, {{m.loop->var.get(), l.loop->var}}));
    for (const ir::Stmt& body : l.bodies)
      for (const ir::Expr& known : operands_of(body))
        for (const ir::Expr& operand : own)
          if (ir::equal(known, operand)) return true;
    return false;
  }
  /// What a contraction reads, and the constants by which it multiplies.
  static Vector<ir::Expr> operands_of(const ir::Stmt& body) {
    Vector<ir::Expr> operands;
    ir::visit_with(
        body,
        [&](const ir::Load& load) {
          if (load.buffer->scope != ir::Scope::local) operands.push_back(ir::handle_of(load));
          return false;
        },
        [&](const ir::Fma& fma) {
          for (const ir::Expr& e : {fma.a, fma.b})
            if (e.as<ir::FloatImm>()) operands.push_back(e);
        });
    return operands;
  }

  Vector<ir::Stmt> loops_and_after() const {
    Vector<ir::Stmt> result;
    for (const Loop& l : loops)
      result.push_back(ir::For::make(l.loop->var, l.loop->dim, l.loop->extent, l.loop->loop, ir::Block::make(l.bodies),
                                     l.loop->piece));
    append(result, after);
    return result;
  }
  Vector<ir::Stmt> all() const {
    Vector<ir::Stmt> result = before;
    append(result, loops_and_after());
    return result;
  }

  /// Whether what `m` begins with may stand before the loops, and its contraction among them. Contractions write locals
  /// alone, but a loop that the user has taken apart may stand where one is expected.
  bool may_join(const Member& m, bool carried) const {
    return independent(loops_and_after(), m.before_and_loop(), carried);
  }
  /// Whether `m` may stand before all of it.
  bool may_follow(const Member& m, bool carried) const {
    Vector<ir::Stmt> whole = m.before_and_loop();
    append(whole, m.after);
    return independent(all(), whole, carried);
  }
  static bool independent(const Vector<ir::Stmt>& a, const Vector<ir::Stmt>& b, bool carried) {
    return schedule::dependence(schedule::accesses_of(ir::Block::make(a)), schedule::accesses_of(ir::Block::make(b)),
                                carried) == schedule::Dependence::none;
  }
};

/// Puts the members of one nest together: a contraction joins the first phase after whatever it reads.
inline ir::Stmt put_together(const Vector<ir::Stmt>& inners, bool carried) {
  Vector<ir::Buffer> locals;
  Vector<Member> members;
  for (const ir::Stmt& inner : inners) members.push_back(take_apart(inner));
  Vector<Phase> phases;
  for (const Member& m : members) {
    append(locals, m.locals);
    if (phases.empty()) phases.emplace_back();
    if (!m.loop) {
      append(phases.back().after, m.after);
      continue;
    }
    std::size_t at = phases.size();
    while (at > 0 && phases[at - 1].may_join(m, carried) && (at == phases.size() || phases[at].may_follow(m, carried)))
      --at;
    if (at == phases.size()) phases.emplace_back();
    phases[at].add(m);
  }
  Vector<ir::Stmt> stmts;
  for (const Phase& p : phases) append(stmts, p.all());
  return ir::with_allocs(locals, ir::Block::make(stmts));
}

/// What a nest contracts: rows of several nodes can be multiplied together, which have different numbers of children.
enum class Contracts : std::uint8_t { nothing, nodes, children };

inline Contracts contracted_by(const ir::Stmt& inner) {
  if (!schedule::has_contraction(inner)) return Contracts::nothing;
  bool of_children = false;
  ir::visit_with(inner, [&](const ir::For& loop) { of_children |= schedule::contracts_each_child(loop); });
  return of_children ? Contracts::children : Contracts::nodes;
}

struct Group {
  schedule::Nest header;
  Vector<ir::Stmt> inners;  // over the header's variables
  Vector<schedule::Access> accesses;
  Contracts contracts = Contracts::nothing;
  int contractions = 0;
  bool may_be_table = false;

  /// Whether a nest that contracts so fits in, up to `most` contractions.
  bool takes(Contracts what, int most) const {
    const bool alike = contracts == Contracts::nothing || contracts == what;
    return what == Contracts::nothing || (alike && contractions < most);
  }
};

class NestFuser {
 public:
  NestFuser(int most_contractions, bool tables, bool carried)
      : most_(most_contractions), tables_(tables), carried_(carried) {}

  Vector<ir::Stmt> run(const Vector<ir::Stmt>& stmts) {
    whole_ = schedule::read_whole(ir::Block::make(stmts));
    Vector<ir::Stmt> result;
    Vector<schedule::Nest> nests;
    for (const ir::Stmt& stmt : stmts) {
      if (const auto nest = schedule::parse_nest(stmt)) {
        nests.push_back(*nest);
      } else {
        place(nests, result);
        result.push_back(stmt);
      }
    }
    place(nests, result);
    return result;
  }

 private:
  /// Contractions and what they need find their places first; the rest joins them.
  void place(Vector<schedule::Nest>& nests, Vector<ir::Stmt>& out) {
    Vector<bool> late(nests.size());
    for (std::size_t n = nests.size(); n-- > 0;) {
      late[n] = !schedule::has_contraction(nests[n].inner) && !feeds_contraction(nests[n]);
      const auto own = schedule::accesses_of(nests[n].inner);
      for (std::size_t m = n + 1; late[n] && m < nests.size(); ++m)
        late[n] = late[m] || schedule::dependence(own, schedule::accesses_of(nests[m].inner), carried_) ==
                                 schedule::Dependence::none;
    }
    const Vector<bool> tables = tables_among(nests);
    for (const bool last : {false, true})
      for (std::size_t n = 0; n < nests.size(); ++n)
        if (late[n] == last) add(nests[n], last, tables[n]);
    flush(out);
    nests.clear();
  }

  /// Which of the nests tables may stand for: contractions that read nothing which the program computes, and what is
  /// made of these alone.
  Vector<bool> tables_among(const Vector<schedule::Nest>& nests) const {
    Vector<bool> tables(nests.size());
    if (!tables_ || carried_) return tables;
    Vector<ir::Buffer> written;  // by those of them
    Vector<std::size_t> writers;
    for (std::size_t n = 0; n < nests.size(); ++n) {
      const auto is_known = [&](const ir::Buffer& buffer) {
        for (std::size_t w = 0; w < written.size(); ++w)
          if (written[w] == buffer && has_rows_for(nests[writers[w]], nests[n])) return true;
        return false;
      };
      const auto accesses = schedule::accesses_of(nests[n].inner);
      bool fits = true, reads = false;
      for (const schedule::Access& access : accesses) {
        if (access.write) continue;
        fits &= is_known(access.buffer) && !schedule::reads_child_state(access);
        reads = true;
      }
      tables[n] = fits && (reads || schedule::has_contraction(nests[n].inner));
      for (const schedule::Access& access : accesses)
        if (tables[n] && access.write) written.push_back(access.buffer), writers.push_back(n);
    }
    return tables;
  }
  /// Whether `writer` has rows of the nodes that `reader` is for, or one for all.
  static bool has_rows_for(const schedule::Nest& writer, const schedule::Nest& reader) {
    const auto &theirs = writer.rows, &own = reader.rows;
    return !theirs || (own && theirs->dim == own->dim && ir::equal(theirs->extent, own->extent));
  }

  /// `late`: nothing but what comes late needs it, so what each worker does for itself can stand after all that is
  /// shared.
  void add(const schedule::Nest& nest, bool late, bool may_be_table) {
    const Contracts contracts = contracted_by(nest.inner);
    std::size_t earliest = 0, behind = 0;  // where it may join a group, and where one of its own may stand
    Vector<schedule::SameLoops> maps;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      // What each worker does for itself and what workers share stay apart.
      const bool alike = schedule::is_replicated(nest) == schedule::is_replicated(groups_[g].header);
      maps.push_back(alike ? schedule::same_loops(nest, groups_[g].header) : schedule::SameLoops());
      const ir::Stmt inner = maps[g].same ? ir::substitute(nest.inner, maps[g].variables) : nest.inner;
      const auto depends = schedule::dependence(groups_[g].accesses, schedule::accesses_of(inner), carried_,
                                                schedule::rows_apart(groups_[g].header, nest));
      if (depends == schedule::Dependence::none) continue;
      behind = g + 1;
      earliest = depends == schedule::Dependence::pointwise && maps[g].same ? g : behind;
    }
    Vector<std::size_t> fitting;
    for (std::size_t g = earliest; g < groups_.size(); ++g)
      if (maps[g].same && groups_[g].takes(contracts, most_) && groups_[g].may_be_table == may_be_table)
        fitting.push_back(g);
    if (!fitting.empty()) {
      const bool early = contracts != Contracts::nothing || feeds_contraction(nest);
      const std::size_t g = early ? fitting.front() : fitting.back();
      return join(groups_[g], ir::substitute(nest.inner, maps[g].variables), contracts);
    }
    const std::size_t place = late && schedule::is_replicated(nest) ? groups_.size() : behind;
    const auto at = groups_.insert(groups_.begin() + std::ptrdiff_t(place), Group{nest, {}, {}});
    at->may_be_table = may_be_table;
    join(*at, nest.inner, contracts);
  }

  /// Whether some nest reads whole what `nest` computes: then the earlier it is done, the earlier that nest can be.
  /// Anything else is done late, in the epilogue of the nest whose sums it reads.
  bool feeds_contraction(const schedule::Nest& nest) const {
    for (const schedule::Access& access : schedule::accesses_of(nest.inner))
      if (access.write && access.buffer->role == ir::Role::temp && whole_.contains(access.buffer.id())) return true;
    return false;
  }

  static void join(Group& group, const ir::Stmt& inner, Contracts contracts) {
    group.inners.push_back(inner);
    const auto accesses = schedule::accesses_of(inner);
    append(group.accesses, accesses);
    if (contracts == Contracts::nothing) return;
    group.contracts = contracts;
    ++group.contractions;
  }

  void flush(Vector<ir::Stmt>& out) {
    for (Group& group : groups_) {
      if (group.inners.size() > 1) group.header.inner = put_together(group.inners, carried_);
      out.push_back(schedule::build_nest(group.header));
    }
    groups_.clear();
  }

  int most_;
  bool tables_, carried_;
  PointerSet whole_;
  Vector<Group> groups_;
};

}  // namespace detail

/// `most_contractions`: how many reductions one nest may accumulate side by side; registers bound it. `tables`: what
/// may be read from tables stays apart from what is computed in calls, which gives the same bits with tables and
/// without. `carried`: `body` stands in a loop that carries the dependence.
inline ir::Stmt fuse_nests(const ir::Stmt& body, int most_contractions, bool tables = false, bool carried = false) {
  const ir::Stmt inside = ir::mutate_with(body, [&](auto&, const ir::For& loop) -> ir::Stmt {
    if (!(loop.dim == dims::all_batches || loop.dim == dims::sequence)) return ir::handle_of(loop);
    const auto* let = loop.body.as<ir::LetStmt>();
    ir::Stmt inner = fuse_nests(let ? let->body : loop.body, most_contractions, tables, true);
    if (inner.same_as(let ? let->body : loop.body)) return ir::handle_of(loop);
    if (let) inner = ir::LetStmt::make(let->var, let->value, inner);
    return ir::For::make(loop.var, loop.dim, loop.extent, loop.loop, inner, loop.piece);
  });
  const Vector<ir::Stmt> stmts = schedule::stmts_of(inside);
  const Vector<ir::Stmt> fused = detail::NestFuser(most_contractions, tables, carried).run(stmts);
  bool same = fused.size() == stmts.size();
  for (std::size_t i = 0; same && i < stmts.size(); ++i) same = ir::equal(fused[i], stmts[i]);
  return same ? inside : ir::Block::make(fused);
}

}  // namespace cortex::pass
