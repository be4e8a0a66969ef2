// What linear forms can be: their intervals in numbers, and whether they are never negative by the facts known.
//
//   facts o >= 0, n / 16 - 1 - o >= 0, i in [0, 15]   ->   n - 1 - 16 o - i >= 0
//
// An atom is eliminated by adding a fact that bounds it, one after the other, the innermost first, within a fixed
// number of steps: proofs are found or not in the same way each time. The facts of arithmetic are here, those of the
// linearizer in `linearizer_facts.hpp`, those of the place in a program in `scope.hpp`. Paper section 5.1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cortex/pass/linearizer_facts.hpp"

namespace cortex::pass {

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
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Forms and the facts that hold of them.
class Bounds {
 public:
  explicit Bounds(KnownNodes known) : known_(std::move(known)) {}

  /// What the form can be in numbers.
  Interval interval(const Linear& form) {
    if (form.lost) return {};
    Interval sum{Interval::clamp(form.constant), Interval::clamp(form.constant)};
    for (const Linear::Term& term : form.terms) sum = sum.plus(of_atom(term.atom).times({term.by, term.by}));
    return sum;
  }

  // ---- proofs ----

  /// Whether `form` is never negative, by what loops, lets and conditions say; with `structural`, also by what the
  /// linearizer guarantees.
  bool never_negative(const Linear& form, bool structural) {
    const bool outer = std::exchange(structural_, structural);
    const bool result = holds(form);
    structural_ = outer;
    return result;
  }

  Atoms& atoms() { return atoms_; }
  const KnownNodes& known() const { return known_; }
  const std::vector<Linear>& facts() const { return facts_; }

  /// All that is known of one atom; of the linearizer's, only with `structural`.
  std::vector<Linear> facts_of(int atom, bool structural) {
    const bool outer = std::exchange(structural_, structural);
    std::vector<Linear> facts;
    collect(atom, facts);
    structural_ = outer;
    return facts;
  }

 protected:
  ~Bounds() = default;

  /// Adds facts: that `condition`, of a choice between two numbers, holds or does not.
  virtual void assume_choice(const ir::Expr& condition, bool holds) = 0;

  void know(Linear fact) {
    if (!fact.lost) facts_.push_back(std::move(fact));
  }

  /// Whether what `form` says is what a program computes in `type`: no value of it wraps.
  bool fits(const Linear& form, DType type) {
    if (form.lost) return false;
    const bool outer = std::exchange(structural_, true);
    const Interval all = interval(form);
    const bool result = type != DType::i32 ? all.low > -Interval::endless && all.high < Interval::endless
                                           : (all.low >= INT32_MIN || holds(form - INT32_MIN)) &&
                                                 (all.high <= INT32_MAX || holds(Linear(INT32_MAX) - form));
    structural_ = outer;
    return result;
  }

  Linear less(const Linear& a, const Linear& b) {
    const Interval apart = interval(b - a);
    return apart.low >= 0 ? a : apart.high <= 0 ? b : atoms_.form(Symbol::minimum, {a, b});
  }
  Linear greater(const Linear& a, const Linear& b) {
    const Interval apart = interval(b - a);
    return apart.low >= 0 ? b : apart.high <= 0 ? a : atoms_.form(Symbol::maximum, {a, b});
  }

  // ---- intervals ----

  Interval of_atom(int number) {
    const Atom& atom = atoms_[number];
    const auto arg = [&](std::size_t i) { return interval(atom.args[i]); };
    switch (atom.symbol) {
      case Symbol::variable:
      case Symbol::unknown: return {atom.low, atom.high};
      case Symbol::quotient: {
        const std::int64_t least = std::max<std::int64_t>(arg(1).low, 1);
        return {0,
                arg(0).high == Interval::endless ? Interval::endless : std::max<std::int64_t>(arg(0).high, 0) / least};
      }
      case Symbol::remainder: return {0, std::min(arg(0).high, arg(1).high - 1)};
      case Symbol::product: return arg(0).times(arg(1));
      case Symbol::minimum: return {std::min(arg(0).low, arg(1).low), std::min(arg(0).high, arg(1).high)};
      case Symbol::maximum: return {std::max(arg(0).low, arg(1).low), std::max(arg(0).high, arg(1).high)};
      case Symbol::choice: return {std::min(arg(0).low, arg(1).low), std::max(arg(0).high, arg(1).high)};
      case Symbol::num_workers: return {1, most_workers};
      case Symbol::worker: return {0, most_workers - 1};
      case Symbol::num_rows: return {1, Interval::endless};
      case Symbol::field: {
        const auto& limits = known_.field_limit;
        const bool limited =
            structural_ && std::size_t(atom.accessor) < limits.size() && limits[std::size_t(atom.accessor)] >= 0;
        return limited ? Interval{0, limits[std::size_t(atom.accessor)] - 1} : Interval{INT32_MIN, INT32_MAX};
      }
      default: return {structural_ ? 0 : INT32_MIN, INT32_MAX};  // numbers of nodes, edges and batches
    }
  }

  // ---- proofs ----

  static constexpr int most_steps = 600, most_depth = 14;

  /// Whether `form` is never negative: the atom made last is eliminated with each fact about it in turn. What is bound
  /// or made inside is mostly bounded by what stands outside, so this ends.
  bool holds(const Linear& form) {
    if (depth_ == 0) steps_ = 0;
    if (form.lost || interval(form).low >= 0) return !form.lost;
    if (form.terms.empty() || depth_ >= most_depth || ++steps_ > most_steps) return false;
    ++depth_;
    const bool result = eliminate(form, form.terms.back());
    --depth_;
    return result;
  }

  bool eliminate(const Linear& form, const Linear::Term& last) {
    const Atom& atom = atoms_[last.atom];
    if (atom.symbol == Symbol::minimum || atom.symbol == Symbol::maximum || atom.symbol == Symbol::choice)
      return on_both_sides(form, last, atom);
    for (std::size_t i = facts_.size(); i-- > 0;)
      if (const Linear fact = facts_[i]; without(form, last, fact)) return true;
    std::vector<Linear> own;
    collect(last.atom, own);
    for (const Linear& fact : own)
      if (without(form, last, fact)) return true;
    return false;
  }

  /// Whether `form` follows from `fact` and a form without the atom.
  bool without(const Linear& form, const Linear::Term& last, const Linear& fact) {
    const std::int64_t by = fact.coefficient(last.atom);
    if (by == 0 || (by < 0) != (last.by < 0)) return false;
    return holds(form.times(by < 0 ? -by : by).plus(fact, last.by < 0 ? last.by : -last.by));
  }

  bool on_both_sides(const Linear& form, const Linear::Term& last, const Atom& atom) {
    const Linear a = atom.args[0], b = atom.args[1], rest = form.plus(Linear::of(last.atom), -last.by);
    const ir::Expr condition = atom.expr;
    const bool choice = atom.symbol == Symbol::choice, minimum = atom.symbol == Symbol::minimum;
    for (const bool first : {true, false}) {
      bool proved = false;
      const std::size_t facts = facts_.size();
      if (choice && condition)
        assume_choice(condition, first);
      else if (!choice)
        know(first == minimum ? b - a : a - b);
      proved = holds(rest.plus(first ? a : b, last.by));
      facts_.erase(facts_.begin() + std::ptrdiff_t(facts), facts_.end());
      if (!proved) return false;
    }
    return true;
  }

  void collect(int number, std::vector<Linear>& facts) {
    const Linear self = Linear::of(number);
    if (const Interval all = of_atom(number); structural_ || !is_structural(atoms_[number].symbol)) {
      if (all.low > -Interval::endless) facts.push_back(self - all.low);
      if (all.high < Interval::endless) facts.push_back(Linear(all.high) - self);
    }
    arithmetic(number, self, facts);
    if (!structural_ || !is_structural(atoms_[number].symbol) || asking_ > 1) return;
    ++asking_;
    detail::LinearizerFacts(
        atoms_, known_, [&](const Linear& form) { return holds(form); }, facts)
        .of(number);
    --asking_;
  }

  void arithmetic(int number, const Linear& self, std::vector<Linear>& facts) {
    const Atom& atom = atoms_[number];
    switch (atom.symbol) {
      case Symbol::quotient: {
        const Linear &a = atom.args[0], &b = atom.args[1];
        if (b.is_constant()) {
          facts.push_back(a.plus(self, -b.constant));
          facts.push_back(self.times(b.constant) + (b.constant - 1) - a);
        } else {
          facts.push_back(a - self);
          if (const Linear share = share_of_workers(a, b); !share.lost) facts.push_back(share - self);
        }
        return;
      }
      case Symbol::remainder:
        facts.push_back(atom.args[1] - 1 - self);
        facts.push_back(atom.args[0] - self);
        return;
      case Symbol::product: return of_product(atom, self, facts);
      default: return;
    }
  }

  /// (worker * e) / num_workers and ((worker + 1) * e) / num_workers are at most e: gives that e.
  Linear share_of_workers(const Linear& a, const Linear& workers) {
    Linear all;
    all.lost = true;
    const Atom* divisor = atoms_.only(workers);
    if (!divisor || divisor->symbol != Symbol::num_workers) return all;
    const Linear worker = atoms_.form(Symbol::worker);
    const int w = worker.terms[0].atom;
    Linear each = a.coefficient(w);
    for (const Linear::Term& term : a.terms) {
      const Atom& atom = atoms_[term.atom];
      if (atom.symbol != Symbol::product) continue;
      if (atom.args[0].terms[0].atom == w)
        each = each.plus(atom.args[1], term.by);
      else if (atom.args[1].terms[0].atom == w)
        each = each.plus(atom.args[0], term.by);
    }
    const Linear rest = a - atoms_.multiply(worker, each);
    return (rest.is(0) || rest == each) && holds(each) ? each : all;
  }

  /// x * y where both are not negative; and x * (t / n) where x < n, which is at most t - t / n.
  void of_product(const Atom& atom, const Linear& self, std::vector<Linear>& facts) {
    for (const bool first : {true, false}) {
      const Linear &x = atom.args[first ? 0 : 1], &y = atom.args[first ? 1 : 0];
      const Atom* quotient = atoms_.only(y);
      if (!quotient || quotient->symbol != Symbol::quotient) continue;
      const Linear &total = quotient->args[0], &n = quotient->args[1];
      if (holds(x)) facts.push_back(self);
      if (holds(n - 1 - x)) facts.push_back(total - y - self);
    }
    if (holds(atom.args[0]) && holds(atom.args[1])) facts.push_back(self);
  }

  /// The rows of tile t of `split_evenly` (schedule/split.hpp), total / n + min(1, max(0, total % n - t)) for t in
  /// [0, n): they and the rows of the tiles before, which are t * (total / n) + min(t, total % n), are not more than
  /// the total. With n = (total + most - 1) / most they are from 1 to `most`.
  void know_even_split(const Linear& rows) {
    for (const Linear::Term& term : rows.terms) {
      const Atom& one_more = atoms_[term.atom];
      if (one_more.symbol != Symbol::minimum || term.by != 1 || !one_more.args[0].is(1)) continue;
      const Atom* longer = atoms_.only(one_more.args[1]);
      if (!longer || longer->symbol != Symbol::maximum || !longer->args[0].is(0)) continue;
      const Linear each = rows.plus(Linear::of(term.atom), -1);
      const Atom* quotient = atoms_.only(each);
      if (!quotient || quotient->symbol != Symbol::quotient) continue;
      const Linear total = quotient->args[0], n = quotient->args[1];
      const Linear left = n.is_constant() ? total.plus(each, -n.constant) : atoms_.form(Symbol::remainder, {total, n});
      const Linear t = left - longer->args[1];
      const bool outer = std::exchange(structural_, true);
      if (holds(t) && holds(n - 1 - t)) {
        const Linear before = atoms_.multiply(t, each) + less(t, left);
        know(before);
        know(total - before - rows);
        know(rows - each);
        know(each + 1 - rows);
        const Atom* tiles = atoms_.only(n);
        if (tiles && tiles->symbol == Symbol::quotient && tiles->args[1].is_constant()) {
          const std::int64_t most = tiles->args[1].constant;
          if (tiles->args[0] == total + (most - 1)) know(Linear(most) - rows), know(rows - 1);
        }
      }
      structural_ = outer;
      return;
    }
  }

  KnownNodes known_;
  Atoms atoms_;
  std::vector<Linear> facts_;
  bool structural_ = true;
  int steps_ = 0, depth_ = 0, asking_ = 0;
};

}  // namespace cortex::pass
