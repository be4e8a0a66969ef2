// What an expression is of the sums of variables that it reads at, and how many values it has therefore: a tensor over
// these sums has each of them once. Of a window that goes over a grid, say, neighbouring places see the same elements:
//
//   select(y + dy >= 1, h[max(y + dy - 1,0)], 0) for y = 0:16, dy = 0:3     48 places, 18 values
//     ->
//   select(u >= 1, h[max(u - 1,0)], 0)           for u = 0:18               read at y + dy
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/lower/definition.hpp"

namespace cortex::lower {

/// An expression as an element of a tensor.
struct Element {
  Vector<IndexVar> indices;  // of the tensor
  ir::Expr value;            // at these; empty: it is none
  ir::Substitution at;       // where the expression is in it
  std::int64_t values = 1;   // elements of the tensor; 0: not known
};

namespace detail {

/// Finds the sums of variables of `scope` in an expression.
class IndexSums {
 public:
  explicit IndexSums(const Vector<IndexVar>& scope) : scope_(scope), alone_(scope.size(), false) {}

  /// None if a variable stands by itself and in a sum, or in two; or if data that a node has at a sum of multiples
  /// decides where something is read, since there are sums between these that nobody asks for, and nobody checks.
  Element element_of(const ir::Expr& e) {
    ir::visit_with(
        e,
        [&](const ir::Binary& n) {
          const Sum sum = sum_of(n);
          if (sum.found) note(sum);
          return !sum.found;
        },
        [&](const ir::Var& var) {
          if (const int v = number_of(&var); v >= 0) alone_[std::size_t(v)] = true;
        });
    if (!all_differ() || (has_gaps() && reads_at_data(e))) return {};
    Element result;
    for (std::size_t v = 0; v < scope_.size(); ++v) {
      if (alone_[v]) add(result, scope_[v]);
      for (const Group& group : groups_)
        if (group.terms[0].variable == int(v)) add(result, group);
    }
    result.value = ir::mutate_with(e, [&](auto& self, const ir::Binary& n) -> ir::Expr {
      const Sum sum = sum_of(n);
      if (!sum.found) return self.children(n);
      if (sum.terms.size() < 2) return ir::handle_of(n);
      const Group& group = group_of(sum.terms);
      return group.index.var + (group.least + sum.constant);
    });
    return result;
  }

 private:
  struct Term {
    int variable;  // of the scope
    std::int64_t by;
    friend bool operator==(const Term&, const Term&) = default;
  };
  struct Sum {
    bool found = false;
    std::int64_t constant = 0;
    Vector<Term> terms;  // by ascending variable
  };
  /// Sums that differ by a constant alone.
  struct Group {
    Vector<Term> terms;
    IndexVar index;  // goes from 0 where the sum is least
    std::int64_t least;
  };

  static constexpr std::int64_t most = std::int64_t(1) << 30;  // dimensions have fewer elements

  int number_of(const ir::ExprNode* e) const {
    for (std::size_t v = 0; v < scope_.size(); ++v)
      if (scope_[v].var.get() == e) return int(v);
    return -1;
  }

  /// `n` as a sum of constants and multiples of variables of the scope, if it is one.
  Sum sum_of(const ir::Binary& n) const {
    Sum sum;
    sum.found = is_int(n.type.dtype) && collect(ir::handle_of(n), 1, sum);
    return sum;
  }
  bool collect(const ir::Expr& e, std::int64_t by, Sum& sum) const {
    if (by > most || by < -most) return false;
    if (const auto constant = ir::as_int(e)) {
      sum.constant += by * std::clamp(*constant, -most, most);
      return *constant<most&& * constant> - most && sum.constant < most && sum.constant > -most;
    }
    if (const int v = number_of(e.get()); v >= 0) {
      const auto at = std::find_if(sum.terms.begin(), sum.terms.end(), [&](const Term& t) { return t.variable >= v; });
      if (at != sum.terms.end() && at->variable == v) return false;
      sum.terms.insert(at, Term{v, by});
      return true;
    }
    const auto* n = e.as<ir::Binary>();
    if (!n) return false;
    if (n->op == ir::BinaryOp::add || n->op == ir::BinaryOp::sub)
      return collect(n->a, by, sum) && collect(n->b, n->op == ir::BinaryOp::add ? by : -by, sum);
    const auto factor = ir::as_int(n->b);
    return n->op == ir::BinaryOp::mul && factor && *factor != 0 && *factor<most&& * factor> - most &&
           collect(n->a, by * *factor, sum);
  }

  void note(const Sum& sum) {
    if (sum.terms.size() == 1) alone_[std::size_t(sum.terms[0].variable)] = true;
    if (sum.terms.size() < 2 || any_of(groups_, [&](const Group& g) { return g.terms == sum.terms; })) return;
    std::int64_t least = 0, greatest = 0;
    for (const Term& term : sum.terms) {
      const std::int64_t last = term.by * (scope_[std::size_t(term.variable)].dim.extent() - 1);
      (last < 0 ? least : greatest) += last;
    }
    const Dim dim(scope_[std::size_t(sum.terms[0].variable)].dim.name() + "_seen",
                  std::clamp<std::int64_t>(greatest - least + 1, 1, most));
    groups_.push_back({sum.terms, {ir::Var::make("u"), dim}, least});
  }
  const Group& group_of(const Vector<Term>& terms) const {
    for (const Group& group : groups_)
      if (group.terms == terms) return group;
    throw Error(Code::internal, "a sum of indices that was not met");
  }
  /// Whether each variable of the expression stands by itself or in one group.
  bool all_differ() const {
    Vector<bool> met = alone_;
    for (const Group& group : groups_)
      for (const Term& term : group.terms) {
        if (met[std::size_t(term.variable)]) return false;
        met[std::size_t(term.variable)] = true;
      }
    return true;
  }

  bool has_gaps() const {
    return any_of(groups_, [](const Group& group) {
      return any_of(group.terms, [](const Term& term) { return term.by != 1 && term.by != -1; });
    });
  }
  /// Whether something is read at an index that is made of a field of a node.
  static bool reads_at_data(const ir::Expr& e) {
    bool found = false;
    ir::visit_with(e, [&](const ir::Load& load) {
      for (const ir::Expr& index : load.indices)
        ir::visit_with(index, [&](const ir::UfCall& call) { found |= call.uf.kind == ir::UfKind::field; });
    });
    return found;
  }

  static void add(Element& result, const IndexVar& index) {
    result.values = index.dim.extent() > 0 && result.values < most ? result.values * index.dim.extent() : 0;
    result.indices.push_back(index);
  }
  void add(Element& result, const Group& group) const {
    add(result, group.index);
    ir::Expr place;
    for (const Term& term : group.terms) {
      const ir::Expr part = scope_[std::size_t(term.variable)].var * term.by;
      place = place ? place + part : part;
    }
    result.at.emplace(group.index.var.get(), place - group.least);
  }

  const Vector<IndexVar>& scope_;
  Vector<bool> alone_;
  Vector<Group> groups_;
};

}  // namespace detail

/// `e` as an element of a tensor over the variables of `scope` that it uses and their sums.
inline Element element_of(const ir::Expr& e, const Vector<IndexVar>& scope) {
  return detail::IndexSums(scope).element_of(e);
}

}  // namespace cortex::lower
