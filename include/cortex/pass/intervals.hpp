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

#include "cortex/base/vector.hpp"
#include "cortex/pass/linearizer_facts.hpp"

namespace cortex::pass {

/// Forms and the facts that hold of them.
class Bounds {
 public:
  /// The numbers of the call come first, each after those that bound it.
  explicit Bounds(KnownNodes known) : known_(std::move(known)) {
    for (const Symbol symbol : {Symbol::num_nodes, Symbol::num_internal, Symbol::num_leaves, Symbol::num_batches,
                                Symbol::num_groups, Symbol::child_step, Symbol::num_ranges, Symbol::max_batch})
      atoms_.form(symbol);
  }

  /// What the form can be in numbers.
  Interval interval(const Linear& form) {
    if (form.lost) return {};
    Interval sum{Interval::clamp(form.constant), Interval::clamp(form.constant)};
    for (const Linear::Term& term : form.terms) sum = sum.plus(of_atom(term.atom).scaled(term.by));
    return sum;
  }

  // ---- proofs ----

  /// Whether `form` is never negative, by what loops, lets and conditions say; with `structural`, also by what the
  /// linearizer guarantees.
  bool never_negative(const Linear& form, bool structural) {
    const Structural scope(*this, structural);
    return holds(form);
  }

  Atoms& atoms() { return atoms_; }
  const KnownNodes& known() const { return known_; }
  const Vector<Linear>& facts() const { return facts_; }

  /// All that is known of one atom; of the linearizer's, only with `structural`.
  Vector<Linear> facts_of(int atom, bool structural) {
    const Structural scope(*this, structural);
    const Handle list = collected(atom);
    return static_cast<const FactList*>(list.get())->facts;
  }

 protected:
  ~Bounds() = default;

  /// While it lives, what the linearizer guarantees counts, or does not.
  class Structural {
   public:
    Structural(Bounds& bounds, bool counts) : bounds_(bounds), outer_(std::exchange(bounds.structural_, counts)) {}
    ~Structural() { bounds_.structural_ = outer_; }
    Structural(const Structural&) = delete;
    Structural& operator=(const Structural&) = delete;

   private:
    Bounds& bounds_;
    bool outer_;
  };

  /// Adds facts: that `condition`, of a choice between two numbers, holds or does not.
  virtual void assume_choice(const ir::Expr& condition, bool holds) = 0;

  void know(Linear fact) {
    if (fact.lost) return;
    facts_.push_back(std::move(fact));
    forget();
  }
  void forget_facts(std::size_t from) {
    facts_.erase(facts_.begin() + std::ptrdiff_t(from), facts_.end());
    forget();
  }
  void forget() { collected_.clear(), failures_.clear(); }

  /// Whether what `form` says is what a program computes in `type`: no value of it wraps.
  bool fits(const Linear& form, DType type) {
    if (form.lost) return false;
    const Structural scope(*this, true);
    const Interval all = interval(form);
    if (type != DType::i32) return all.low > -Interval::endless && all.high < Interval::endless;
    return (all.low >= INT32_MIN || holds(form - INT32_MIN)) &&
           (all.high <= INT32_MAX || holds(Linear(INT32_MAX) - form));
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

  /// Of one atom, remembered as long as the atom.
  Interval of_atom(int number) {
    const Atom& atom = atoms_[number];
    if (atom.interval[structural_].is_empty()) {
      const Interval found = interval_of(number);
      atom.interval[structural_] = found;
    }
    return atom.interval[structural_];
  }

  Interval interval_of(int number) {
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
      case Symbol::num_rows: return {0, Interval::endless};
      case Symbol::child:
      case Symbol::kth_child: return {INT32_MIN, INT32_MAX};  // of an absent node's child nothing is known
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

  static constexpr int most_steps = 100, most_depth = 14, most_nested = 6, most_in_all = 6000;

  /// Whether `form` is never negative: the atom made last is eliminated with each fact about it in turn. What is bound
  /// or made inside is mostly bounded by what stands outside, so this ends; short proofs are looked for first.
  bool holds(const Linear& form) {
    if (search_.depth > 0) return holds_deeper(form);
    failures_.clear();
    in_all_ = 0;
    const bool result = search(form, most_depth, 0);
    search_.depth = 0;
    return result;
  }

  bool search(const Linear& form, int most, int used) {
    bool result = false;
    search_.cut = true;
    for (const int depth : {3, 5, most}) {
      if (result || !search_.cut) break;
      search_ = {.steps = used, .depth = 1, .depth_limit = depth, .cut = false};
      result = holds_deeper(form);
    }
    return result;
  }

  bool holds_deeper(const Linear& form) {
    if (form.lost || interval(form).low >= 0) return !form.lost;
    if (form.terms.empty()) return false;
    if (++in_all_ > most_in_all) return search_.cut = shallow_ = true, false;
    if (search_.depth > search_.depth_limit || ++search_.steps > most_steps) return search_.cut = true, false;
    const Failure self{key_of(form), search_.depth_limit - search_.depth};
    for (const Failure& known : failures_)
      if (known.key == self.key && known.depth >= self.depth) return search_.cut = true, false;
    ++search_.depth;
    const bool result = eliminate(form, innermost(form));
    --search_.depth;
    if (!result && search_.steps <= most_steps) failures_.push_back(self);
    return result;
  }

  std::uint64_t key_of(const Linear& form) const {
    std::uint64_t key = structural_;
    const auto add = [&](std::uint64_t part) { key = (key ^ part) * 0x9E3779B97F4A7C15u, key ^= key >> 29; };
    add(std::uint64_t(form.constant));
    for (const Linear::Term& term : form.terms) add(std::uint64_t(term.atom)), add(std::uint64_t(term.by));
    return key;
  }

  /// The same for what a fact asks for, in a few steps of its own: whether the fact counts does not depend on how far
  /// the proof that uses it has come. Such proofs need facts in turn, and those further proofs: not without end.
  bool asked(const Linear& form) {
    if (nested_ >= most_nested) return shallow_ = true, false;
    if (nested_ == 0 && search_.depth == 0) in_all_ = 0;
    ++nested_;
    const Search outer = search_;
    const bool result = search(form, 7, most_steps - 40);
    search_ = outer;
    --nested_;
    return result;
  }

  /// The term to eliminate first: that made last, but numbers of the whole call after all others, because facts bound
  /// the others by them.
  Linear::Term innermost(const Linear& form) const {
    for (std::size_t i = form.terms.size(); i-- > 0;)
      if (!is_of_call(atoms_[form.terms[i].atom])) return form.terms[i];
    return form.terms.back();
  }

  static bool is_of_call(const Atom& atom) {
    if (atom.symbol == Symbol::edge_begin) return atom.args[0] == Linear::of(0);  // all edges
    return atom.symbol <= Symbol::num_workers;
  }

  bool eliminate(const Linear& form, const Linear::Term& last) {
    for (std::size_t i = facts_.size(); i-- > 0;) {
      if (!bounds(facts_[i], last)) continue;
      const Linear fact = facts_[i];  // copied, since the proof may learn more facts
      if (without(form, last, fact)) return true;
    }
    const Atom& atom = atoms_[last.atom];
    if (atom.symbol == Symbol::choice) return on_both_sides(form, last, atom);  // what is known of both says less
    const Handle own = collected(last.atom);
    for (const Linear& fact : static_cast<const FactList*>(own.get())->facts)
      if (bounds(fact, last) && without(form, last, fact)) return true;
    const bool two_sides = atom.symbol == Symbol::minimum || atom.symbol == Symbol::maximum;
    return two_sides && on_both_sides(form, last, atom);
  }

  /// Whether the fact bounds the atom on the side where the term makes a form small.
  static bool bounds(const Linear& fact, const Linear::Term& last) {
    const std::int64_t by = fact.coefficient(last.atom);
    return by != 0 && (by < 0) == (last.by < 0);
  }

  /// Whether `form` follows from `fact` and a form without the atom. Integers: k * form >= 1 - k is enough.
  bool without(const Linear& form, const Linear::Term& last, const Linear& fact) {
    const std::int64_t by = fact.coefficient(last.atom), k = by < 0 ? -by : by,
                       other = last.by < 0 ? last.by : -last.by;
    return holds(k == 1 ? form.plus(fact, other) : (form.times(k) + (k - 1)).plus(fact, other));
  }

  bool on_both_sides(const Linear& form, const Linear::Term& last, const Atom& atom) {
    const Linear a = atom.args[0], b = atom.args[1], rest = form.plus(Linear::of(last.atom), -last.by);
    const bool choice = atom.symbol == Symbol::choice, minimum = atom.symbol == Symbol::minimum;
    for (const bool first : {true, false}) {
      const std::size_t facts = facts_.size();
      if (choice && atom.expr)
        assume_choice(atom.expr, first);
      else if (!choice)
        know(first == minimum ? b - a : a - b);
      const bool proved = holds(rest.plus(first ? a : b, last.by));
      forget_facts(facts);
      if (!proved) return false;
    }
    return true;
  }

  /// What is known of an atom, remembered until something else is known of the place.
  Handle collected(int number) {
    for (const Collected& known : collected_)
      if (known.atom == number && known.structural == structural_) return known.facts;
    auto* const list = new FactList;
    const Handle facts(list);
    const bool outer = std::exchange(shallow_, false);
    collect(number, list->facts);
    if (asking_ == 0 && !shallow_) collected_.push_back({number, structural_, facts});
    shallow_ |= outer;
    return facts;
  }

  void collect(int number, Vector<Linear>& facts) {
    const Linear self = Linear::of(number);
    arithmetic(number, self, facts);
    if (structural_ && is_structural(atoms_[number].symbol) && asking_ < 2) {
      ++asking_;
      detail::LinearizerFacts(
          atoms_, known_, [&](const Linear& form) { return asked(form); }, facts)
          .of(number);
      --asking_;
    }
    if (const Interval all = of_atom(number); structural_ || !is_structural(atoms_[number].symbol)) {
      if (all.low > -Interval::endless) facts.push_back(self - all.low);
      if (all.high < Interval::endless) facts.push_back(Linear(all.high) - self);
    }
  }

  void arithmetic(int number, const Linear& self, Vector<Linear>& facts) {
    const Atom& atom = atoms_[number];
    switch (atom.symbol) {
      case Symbol::quotient: {
        const Linear &a = atom.args[0], &b = atom.args[1];
        if (b.is_constant()) {
          if (const int left = atoms_.find({Symbol::remainder, -1, {}, {a, b}}); left >= 0) {
            facts.push_back(a.plus(self, -b.constant) - Linear::of(left));
            facts.push_back(self.times(b.constant) + Linear::of(left) - a);
          }
          facts.push_back(a.plus(self, -b.constant));
          facts.push_back(self.times(b.constant) + (b.constant - 1) - a);
        } else {
          facts.push_back(a - self);
          ascending(atom, self, facts);
          if (const Linear share = share_of_workers(a, b); !share.lost) facts.push_back(share - self);
        }
        return;
      }
      case Symbol::remainder: {
        const Linear &a = atom.args[0], &b = atom.args[1];
        facts.push_back(b - 1 - self);
        facts.push_back(a - self);
        if (!b.is_constant()) return;
        const Linear whole = atoms_.form(Symbol::quotient, {a, b}).times(b.constant);
        facts.push_back(a - whole - self);
        facts.push_back(self + whole - a);
        return;
      }
      case Symbol::product: return of_product(atom, self, facts);
      case Symbol::minimum:
      case Symbol::maximum:
        for (const Linear& side : atom.args)
          facts.push_back(atom.symbol == Symbol::minimum ? side - self : self - side);
        return;
      default: return;
    }
  }

  /// Quotients by one divisor ascend with what is divided.
  void ascending(const Atom& atom, const Linear& self, Vector<Linear>& facts) {
    for (int i = atoms_.size(); i-- > 0;) {
      const Atom& other = atoms_[i];
      if (&other == &atom || other.symbol != Symbol::quotient || !(other.args[1] == atom.args[1])) continue;
      const Linear apart = atom.args[0] - other.args[0];
      if (asked(apart))
        facts.push_back(self - Linear::of(i));
      else if (asked(apart.times(-1)))
        facts.push_back(Linear::of(i) - self);
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
    return (rest.is(0) || rest == each) && asked(each) ? each : all;
  }

  /// x * y where both are not negative; and x * (t / n) where x < n, which is at most t - t / n.
  void of_product(const Atom& atom, const Linear& self, Vector<Linear>& facts) {
    for (const bool first : {true, false}) {
      const Linear &x = atom.args[first ? 0 : 1], &y = atom.args[first ? 1 : 0];
      const Atom* quotient = atoms_.only(y);
      if (!quotient || quotient->symbol != Symbol::quotient) continue;
      const Linear &total = quotient->args[0], &n = quotient->args[1];
      if (asked(x)) facts.push_back(self);
      if (asked(n - 1 - x)) facts.push_back(total - y - self);
    }
    if (asked(atom.args[0]) && asked(atom.args[1])) facts.push_back(self);
  }

  /// What is known of the tiles of `split_evenly` (schedule/split.hpp). Tile t of n has total / n + min(1, max(0,
  /// total % n - t)) rows, and the tiles before it have t * (total / n) + min(t, total % n): both together are at most
  /// the total. With n = (total + most - 1) / most, or min((total + usual - 1) / usual, max(1, total - (most - 1))) for
  /// `usual` of at most `most`, the rows are from 1 to `most`.
  void know_even_split(const Linear& form) {
    for (const Linear::Term& term : form.terms) {
      const Atom& atom = atoms_[term.atom];
      if (atom.symbol != Symbol::minimum || term.by != 1) continue;
      const Linear rest = form.plus(Linear::of(term.atom), -1);
      const Atom* longer = atoms_.only(atom.args[1]);
      if (longer && longer->symbol == Symbol::remainder) return know_rows_before(form, rest, atom.args[0], *longer);
      if (longer && longer->symbol == Symbol::maximum && longer->args[0].is(0) && atom.args[0].is(1))
        return know_rows(form, rest, longer->args[1]);
    }
  }

  void know_rows_before(const Linear& before, const Linear& full, const Linear& t, const Atom& left) {
    const Linear each = atoms_.form(Symbol::quotient, {left.args[0], left.args[1]});
    if (!(full == atoms_.multiply(t, each)) || !is_tile(t, left.args[1])) return;
    know(before);
    know(left.args[0] - each - before);
  }

  void know_rows(const Linear& rows, const Linear& each, const Linear& apart) {
    const Atom* quotient = atoms_.only(each);
    if (!quotient || quotient->symbol != Symbol::quotient) return;
    const Linear total = quotient->args[0], tiles = quotient->args[1];
    const Linear left = atoms_.form(Symbol::remainder, {total, tiles}), t = left - apart;
    if (!is_tile(t, tiles)) return;
    know(total - (atoms_.multiply(t, each) + less(t, left)) - rows);
    know(rows - each);
    know(each + 1 - rows);
    if (const std::int64_t most = most_rows(tiles, total)) know(Linear(most) - rows), know(rows - 1);
  }

  /// How many rows a tile has at most; 0 if `tiles` is no number of tiles that is known.
  std::int64_t most_rows(const Linear& tiles, const Linear& total) const {
    const Atom* count = atoms_.only(tiles);
    if (!count) return 0;
    if (count->symbol == Symbol::minimum) {
      const Atom* few = atoms_.only(count->args[1]);
      const std::int64_t usual = most_rows(count->args[0], total);
      if (!usual || !few || few->symbol != Symbol::maximum || !few->args[0].is(1)) return 0;
      const Linear most = total - few->args[1] + 1;
      return most.is_constant() && most.constant >= usual ? most.constant : 0;
    }
    if (count->symbol != Symbol::quotient || !count->args[1].is_constant()) return 0;
    const std::int64_t most = count->args[1].constant;
    return count->args[0] == total + (most - 1) ? most : 0;
  }

  bool is_tile(const Linear& t, const Linear& tiles) {
    return never_negative(t, true) && never_negative(tiles - 1 - t, true);
  }

  KnownNodes known_;
  Atoms atoms_;
  Vector<Linear> facts_;
  struct FactList : Counted {
    Vector<Linear> facts;
  };
  struct Collected {
    int atom;
    bool structural;
    Handle facts;
  };
  /// A form, by its hash, that was not proved in so many steps down.
  struct Failure {
    std::uint64_t key;
    int depth;
  };
  /// Where a proof is.
  struct Search {
    int steps = 0, depth = 0, depth_limit = 0;
    bool cut = false;  // whether something was left out
  };
  Vector<Failure> failures_;
  Search search_;
  bool shallow_ = false;  // whether a fact was left out because it would have been asked for too far down
  Vector<Collected> collected_;
  bool structural_ = true;
  int asking_ = 0, nested_ = 0, in_all_ = 0;
};

}  // namespace cortex::pass
