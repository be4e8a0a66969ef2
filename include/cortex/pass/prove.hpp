// Proves conditions on integers at a place of a program, and says by what: the intervals of loops, lets and conditions,
// the rules that follow from the linearizer, or Z3 (paper section 5.1 and appendix A, I5 and I6).
//
//   for i = 0:16:  i < 20                                  intervals
//   for n = 0:batch_length(b):  batch_begin(b) + n < num_nodes   rules: a batch is contiguous and within the nodes
//   y >= 1, 2 * x == 4 * y + 2, x != 3:  ...               Z3: what has no chain of sums
//
// The cheapest comes first, and what needs no linearizer counts as intervals. Without Z3 in the build (CORTEX_Z3=0) the
// last step is left out: what it would prove stays unproved, and its checks stay in the program.
#pragma once

#include <string>
#include <utility>

#include "cortex/base/config.hpp"
#include "cortex/pass/scope.hpp"
#if CORTEX_Z3
#include <memory>

#include "cortex/pass/prove_z3.hpp"
#endif

namespace cortex::pass {

/// By what a condition is proved.
enum class Proof : std::uint8_t { no, rules, intervals, z3 };

/// How many conditions each kind of proof settled.
struct ProofCounts {
  int rules = 0, intervals = 0, z3 = 0, unproved = 0;

  void add(Proof proof) {
    switch (proof) {
      case Proof::no: ++unproved; return;
      case Proof::rules: ++rules; return;
      case Proof::intervals: ++intervals; return;
      case Proof::z3: ++z3; return;
    }
  }
  ProofCounts& operator+=(const ProofCounts& other) {
    rules += other.rules, intervals += other.intervals, z3 += other.z3, unproved += other.unproved;
    return *this;
  }
  int proved() const { return rules + intervals + z3; }
  friend bool operator==(const ProofCounts&, const ProofCounts&) = default;
};

inline std::string to_string(const ProofCounts& counts) {
  return std::to_string(counts.rules) + " by rules, " + std::to_string(counts.intervals) + " by intervals, " +
         std::to_string(counts.z3) + " by Z3, " + std::to_string(counts.unproved) + " unproved";
}

/// A walk over one program proves with one of these, and with one context of Z3 in it.
class Prover {
 public:
  explicit Prover(KnownNodes known = {}, bool use_z3 = true) : scope_(std::move(known)), use_z3_(use_z3) {}

  /// Where the walk stands.
  Scope& scope() { return scope_; }

  /// By what `condition` is `wanted` here.
  Proof prove(const ir::Expr& condition, bool wanted = true) {
    Proof proof = Proof::no;
    scope_.within([&] {
      if (scope_.entails(condition, wanted, false))
        proof = Proof::intervals;
      else if (scope_.entails(condition, wanted, true))
        proof = Proof::rules;
#if CORTEX_Z3
      else if (use_z3_ && Scope::is_pure(condition) && z3().entails(scope_, condition, wanted))
        proof = Proof::z3;
#endif
    });
    return proof;
  }

  /// By what `form` is never negative here.
  Proof never_negative(const Linear& form) {
    if (scope_.never_negative(form, false)) return Proof::intervals;
    if (scope_.never_negative(form, true)) return Proof::rules;
#if CORTEX_Z3
    if (use_z3_ && !form.lost && z3().never_negative(scope_, form)) return Proof::z3;
#endif
    return Proof::no;
  }

 private:
#if CORTEX_Z3
  Z3Prover& z3() {
    if (!z3_) z3_ = std::make_unique<Z3Prover>();
    return *z3_;
  }
  std::unique_ptr<Z3Prover> z3_;
#endif
  Scope scope_;
  [[maybe_unused]] bool use_z3_;  // where there is one
};

/// The weaker of two proofs that are both needed.
inline Proof both(Proof a, Proof b) {
  if (a == Proof::no || b == Proof::no) return Proof::no;
  if (a == Proof::z3 || b == Proof::z3) return Proof::z3;
  return a == Proof::rules || b == Proof::rules ? Proof::rules : Proof::intervals;
}

}  // namespace cortex::pass
