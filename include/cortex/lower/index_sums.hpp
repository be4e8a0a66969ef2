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

  /// None if a variable stands by itself and in a sum, or in two; or if sums of multiples have gaps between them and
  /// nodes' fields are read, which may say where to read on: nobody asks for what is in the gaps, and nobody checks it.
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
        },
        [&](const ir::UfCall& call) { reads_fields_ |= call.uf.kind == ir::UfKind::field; });
    if (!all_differ() || (has_gaps_ && reads_fields_)) return {};
    Element result;
    for (std::size_t v = 0; v < scope_.size(); ++v) {
      if (alone_[v]) add(result, scope_[v]);
      for (const Group& group : groups_)
        if (group.first == v) add(result, group);
    }
    result.value = ir::mutate_with(e, [&](auto& self, const ir::Binary& n) -> ir::Expr {
      const Sum sum = sum_of(n);
      if (!sum.found) return self.children(n);
      if (sum.variables < 2) return ir::handle_of(n);
      const Group& group = *find(sum.by);
      return group.index.var + (group.least + sum.constant);
    });
    return result;
  }

 private:
  /// A constant and multiples of variables.
  struct Sum {
    bool found = false;
    std::int64_t constant = 0;
    Vector<std::int64_t> by;  // [variable of the scope]
    int variables = 0;        // that have a multiple
  };
  /// Sums that differ by a constant alone.
  struct Group {
    Vector<std::int64_t> by;
    std::size_t first;  // of its variables
    IndexVar index;     // goes from 0 where the sum is least
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
    sum.by.resize(scope_.size());
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
      std::int64_t& own = sum.by[std::size_t(v)];
      if (own) return false;
      own = by, ++sum.variables;
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
    std::size_t first = scope_.size();
    std::int64_t least = 0, greatest = 0;
    for (std::size_t v = scope_.size(); v-- > 0;) {
      const std::int64_t by = sum.by[v], last = by * (scope_[v].dim.extent() - 1);
      if (by) first = v;
      (last < 0 ? least : greatest) += last;
      has_gaps_ |= sum.variables > 1 && (by > 1 || by < -1);
    }
    if (sum.variables == 1) alone_[first] = true;
    if (sum.variables < 2 || find(sum.by)) return;
    const Dim dim(scope_[first].dim.name() + "_seen", std::clamp<std::int64_t>(greatest - least + 1, 1, most));
    groups_.push_back({sum.by, first, {ir::Var::make("u"), dim}, least});
  }
  /// The group of sums of these multiples; null: they are met for the first time.
  const Group* find(const Vector<std::int64_t>& by) const {
    for (const Group& group : groups_)
      if (group.by == by) return &group;
    return nullptr;
  }
  /// Whether each variable of the expression stands by itself or in one group.
  bool all_differ() const {
    for (std::size_t v = 0; v < scope_.size(); ++v) {
      int times = alone_[v];
      for (const Group& group : groups_) times += group.by[v] != 0;
      if (times > 1) return false;
    }
    return true;
  }

  static void add(Element& result, const IndexVar& index) {
    result.values = index.dim.extent() > 0 && result.values < most ? result.values * index.dim.extent() : 0;
    result.indices.push_back(index);
  }
  void add(Element& result, const Group& group) const {
    add(result, group.index);
    ir::Expr place = ir::imm(-group.least);
    for (std::size_t v = scope_.size(); v-- > 0;)
      if (group.by[v]) place = scope_[v].var * group.by[v] + place;
    result.at.emplace(group.index.var.get(), place);
  }

  const Vector<IndexVar>& scope_;
  Vector<bool> alone_;
  bool has_gaps_ = false, reads_fields_ = false;
  Vector<Group> groups_;
};

}  // namespace detail

/// `e` as an element of a tensor over the variables of `scope` that it uses and their sums.
inline Element element_of(const ir::Expr& e, const Vector<IndexVar>& scope) {
  return detail::IndexSums(scope).element_of(e);
}

}  // namespace cortex::lower
