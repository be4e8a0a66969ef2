// Integer expressions as linear forms: a constant plus multiples of atoms, which are what the arithmetic cannot take
// apart (variables, arrays of the linearizer at an index, quotients, products).
//
//   internal_batches(b,n) + 2 * i - 1   ->   -1 + batch_begin(b + 1) + n + 2 i
//
// Two expressions that differ only in how a sum is written are one form, so the proofs of `prove.hpp` need no rules for
// that. Forms are of mathematical integers: whoever makes one of a 32-bit expression has to know that it does not wrap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/expr.hpp"

namespace cortex::pass {

/// A sum of atoms, by their numbers in a table of `Atoms`.
struct Linear {
  struct Term {
    int atom;
    std::int64_t by;  // not 0
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::int64_t constant = 0;
  Vector<Term> terms;  // by ascending atom
  bool lost = false;   // a coefficient left 64 bits: nothing is known of it

  Linear() = default;
  Linear(std::int64_t c) : constant(c) {}
  bool is_constant() const { return terms.empty() && !lost; }
  bool is(std::int64_t c) const { return is_constant() && constant == c; }

  std::int64_t coefficient(int atom) const {
    for (const Term& term : terms)
      if (term.atom == atom) return term.by;
    return 0;
  }

  static Linear of(int atom) {
    Linear result;
    result.terms.push_back({atom, 1});
    return result;
  }

  /// this + other * by
  Linear plus(const Linear& other, std::int64_t by = 1) const {
    Linear sum;
    sum.lost = lost || other.lost;
    sum.terms.reserve(terms.size() + other.terms.size());
    const auto combined = [&](std::int64_t a, std::int64_t b) {
      std::int64_t product = 0, total = 0;
      sum.lost |= __builtin_mul_overflow(b, by, &product) || __builtin_add_overflow(a, product, &total);
      return total;
    };
    sum.constant = combined(constant, other.constant);
    std::size_t i = 0, j = 0;
    while (i < terms.size() || j < other.terms.size()) {
      const int a = i < terms.size() ? terms[i].atom : INT32_MAX,
                b = j < other.terms.size() ? other.terms[j].atom : INT32_MAX;
      const int atom = a < b ? a : b;
      const std::int64_t total = combined(a == atom ? terms[i++].by : 0, b == atom ? other.terms[j++].by : 0);
      if (total != 0) sum.terms.push_back({atom, total});
    }
    return sum;
  }
  Linear times(std::int64_t by) const { return Linear().plus(*this, by); }

  friend Linear operator+(const Linear& a, const Linear& b) { return a.plus(b); }
  friend Linear operator-(const Linear& a, const Linear& b) { return a.plus(b, -1); }
  friend bool operator==(const Linear& a, const Linear& b) {
    return !a.lost && !b.lost && a.constant == b.constant && a.terms == b.terms;
  }
};

/// All integers from `low` to `high`, both included; 2^61 stands for without end.
struct Interval {
  static constexpr std::int64_t endless = std::int64_t(1) << 61;
  std::int64_t low = -endless, high = endless;

  static std::int64_t clamp(std::int64_t a) { return std::clamp(a, -endless, endless); }
  static std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (!__builtin_mul_overflow(a, b, &result)) return clamp(result);
    return (a < 0) == (b < 0) ? endless : -endless;
  }
  Interval plus(const Interval& b) const { return {clamp(low + b.low), clamp(high + b.high)}; }
  Interval times(const Interval& b) const {
    const std::int64_t all[] = {product(low, b.low), product(low, b.high), product(high, b.low), product(high, b.high)};
    return {*std::min_element(all, all + 4), *std::max_element(all, all + 4)};
  }
  Interval scaled(std::int64_t by) const {
    const std::int64_t a = product(low, by), b = product(high, by);
    return by < 0 ? Interval{b, a} : Interval{a, b};
  }
  bool is_empty() const { return low > high; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// What an atom stands for. The first group are numbers of the call, the second arrays of the linearizer (see
/// structure/arrays.hpp), the third arithmetic, the last what nothing is known of.
enum class Symbol : std::uint8_t {
  num_nodes,
  num_internal,
  num_leaves,
  num_batches,
  num_roots,
  num_groups,
  child_step,
  num_ranges,
  max_batch,
  max_batch_edges,  // of container `accessor`
  num_rows,         // of the open dimension of weight `accessor`
  worker,
  num_workers,
  batch_begin,  // (batch)
  batch_length,
  part_begin,  // (part)
  part_length,
  part_offset,  // (part)
  part_list,    // (position)
  range_begin,  // (range of nodes)
  range_length,
  root,         // (position)
  group_begin,  // (group)
  group_node,   // (position)
  inner_begin,  // (node)
  inner_child,  // (position)
  child,        // (node), through accessor `accessor`
  kth_child,    // (node, k), of container `accessor`: where k may be past the last one
  edge_begin,   // (node), of container `accessor`
  edge_child,   // (edge), of container `accessor`
  field,        // (node[, k]), of field `accessor`
  quotient,     // (a, b): floor(a / b) of a >= 0 and b >= 1
  remainder,    // (a, b): a - b * floor(a / b) of a >= 0 and b >= 1
  product,      // (a, b), each one atom
  minimum,      // (a, b)
  maximum,      // (a, b)
  choice,       // (then, else) by the condition `expr`
  variable,     // `expr`
  unknown,      // any value of its type
};

/// The name of the function or operator.
constexpr std::string_view spelling(Symbol symbol) {
  constexpr std::string_view names[] = {
      "num_nodes",    "num_internal", "num_leaves",      "num_batches", "num_roots",   "num_groups",  "child_step",
      "num_ranges",   "max_batch",    "max_batch_edges", "num_rows",    "worker",      "num_workers", "batch_begin",
      "batch_length", "part_begin",   "part_length",     "part_offset", "part_list",   "range_begin", "range_length",
      "root",         "group_begin",  "group_node",      "inner_begin", "inner_child", "child",       "kth_child",
      "edge_begin",   "edge_child",   "field",           "quotient",    "remainder",   "product",     "min",
      "max",          "select",       "variable",        "unknown"};
  return names[std::size_t(symbol)];
}

/// Whether what is known of the atom is known of the linearizer.
constexpr bool is_structural(Symbol symbol) { return symbol <= Symbol::field; }

struct Atom {
  Symbol symbol;
  int accessor = -1;
  ir::Expr expr;
  Vector<Linear> args;
  std::int64_t low = INT32_MIN, high = INT32_MAX;   // of a variable or an unknown
  mutable Interval interval[2] = {{1, 0}, {1, 0}};  // remembered, without and with the linearizer's facts
};

/// The atoms of one program, each once. Atoms made inside a scope go when it ends.
class Atoms {
 public:
  const Atom& operator[](int atom) const { return *atoms_[std::size_t(atom)]; }
  int size() const { return int(atoms_.size()); }
  void shrink(int size) { atoms_.erase(atoms_.begin() + size, atoms_.end()); }

  /// The number of the atom equal to `atom`, which is added if there is none. Nothing but itself is an `unknown`.
  int number_of(Atom atom) {
    const int found = find(atom);
    if (found >= 0) return found;
    atoms_.push_back(std::make_unique<Atom>(std::move(atom)));
    return size() - 1;
  }
  int find(const Atom& atom) const {
    if (atom.symbol == Symbol::unknown) return -1;
    for (int i = 0; i < size(); ++i)
      if (same(*atoms_[std::size_t(i)], atom)) return i;
    return -1;
  }

  Linear form(Symbol symbol, int accessor = -1, Vector<Linear> args = {}) {
    return Linear::of(number_of({symbol, accessor, {}, std::move(args)}));
  }
  Linear form(Symbol symbol, Vector<Linear> args) { return form(symbol, -1, std::move(args)); }

  /// The atom that `form` is, or null.
  const Atom* only(const Linear& form) const {
    const bool one = !form.lost && form.constant == 0 && form.terms.size() == 1 && form.terms[0].by == 1;
    return one ? &(*this)[form.terms[0].atom] : nullptr;
  }

  Linear multiply(const Linear& a, const Linear& b) {
    if (a.is_constant()) return b.times(a.constant);
    if (b.is_constant()) return a.times(b.constant);
    Linear result = a.times(b.constant);
    result.lost |= b.lost;
    for (const Linear::Term& y : b.terms) {
      Linear scaled = Linear::of(y.atom).times(a.constant);
      for (const Linear::Term& x : a.terms) {
        const int low = x.atom < y.atom ? x.atom : y.atom, high = x.atom < y.atom ? y.atom : x.atom;
        scaled = scaled.plus(form(Symbol::product, {Linear::of(low), Linear::of(high)}), x.by);
      }
      result = result.plus(scaled, y.by);
    }
    return result;
  }

  /// The form as text, for messages: `batch_begin(b_idx + 1) + 2 * i - 1`.
  std::string text(const Linear& form) const {
    if (form.lost) return "?";
    std::string out;
    const auto add = [&](std::int64_t by, const std::string& what) {
      const std::uint64_t size = by < 0 ? -std::uint64_t(by) : std::uint64_t(by);
      out += out.empty() ? (by < 0 ? "-" : "") : by < 0 ? " - " : " + ";
      out += what.empty() ? std::to_string(size) : size == 1 ? what : std::to_string(size) + " * " + what;
    };
    for (const Linear::Term& term : form.terms) add(term.by, text((*this)[term.atom]));
    if (form.constant != 0 || out.empty()) add(form.constant, "");
    return out;
  }

 private:
  std::string text(const Atom& atom) const {
    if (atom.symbol == Symbol::variable) return atom.expr.as<ir::Var>()->name;
    std::string out(spelling(atom.symbol));
    if (is_structural(atom.symbol) && atom.accessor >= 0) out += "#" + std::to_string(atom.accessor);
    if (atom.args.empty()) return out;
    for (std::size_t i = 0; i < atom.args.size(); ++i) out += (i ? "," : "(") + text(atom.args[i]);
    return out + ")";
  }

  static bool same(const Atom& a, const Atom& b) {
    if (a.symbol != b.symbol || a.accessor != b.accessor || a.args.size() != b.args.size()) return false;
    if (a.low != b.low || a.high != b.high) return false;  // one variable of two loops
    for (std::size_t i = 0; i < a.args.size(); ++i)
      if (!(a.args[i] == b.args[i])) return false;
    if (!a.expr || !b.expr) return !a.expr && !b.expr;
    return a.expr.same_as(b.expr) || (a.symbol == Symbol::choice && ir::equal(a.expr, b.expr));
  }

  Vector<std::unique_ptr<Atom>> atoms_;  // they stay where they are
};

}  // namespace cortex::pass
