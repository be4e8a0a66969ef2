// The schedule of a model: plain data, apart from the computation.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/stmt.hpp"

namespace cortex {

/// A schedule of the lowered program's loops and tensors, as steps that each rewrite the program: `cortex::Loops` of
/// `cortex/loops.hpp`.
class LoopSchedule {
 public:
  virtual ~LoopSchedule() = default;
  /// The program under the names that the first step goes by.
  virtual ir::Stmt named(const ir::Stmt& body) const = 0;
  virtual std::size_t size() const = 0;
  /// Whether several workers may run the program.
  virtual bool has_barriers() const = 0;
  virtual std::string text(std::size_t step) const = 0;
  /// Throws `Error{invalid_schedule}` with the reason if the step would change what is computed.
  virtual ir::Stmt apply(std::size_t step, const ir::Stmt& body, const Target& target) const = 0;
};

/// A loop schedule, or none: then the compiler makes its own.
class LoopsByHand {
 public:
  LoopsByHand() = default;
  explicit LoopsByHand(std::shared_ptr<const LoopSchedule> loops) : loops_(std::move(loops)) {}
  const LoopSchedule* operator->() const { return loops_.get(); }
  const LoopSchedule& operator*() const { return *loops_; }
  explicit operator bool() const { return loops_ != nullptr; }
  /// Whether the steps are the same.
  friend bool operator==(const LoopsByHand& a, const LoopsByHand& b) {
    const std::size_t size = a ? a->size() : 0;
    bool same = bool(a) == bool(b) && size == (b ? b->size() : 0);
    for (std::size_t i = 0; i < size && same; ++i) same = a->text(i) == b->text(i);
    return same;
  }

 private:
  std::shared_ptr<const LoopSchedule> loops_;
};

/// How the recursion is run (paper section 3.1). Each member function gives a copy with one more decision, so decisions
/// chain: `Schedule{}.dynamic_batch(out).specialize_if_else(body)`. A default-constructed schedule runs the
/// recursion node by node with all conditions checked at run time; `Schedule::standard()` is what `compile` uses when
/// none is given.
struct Schedule {
  bool batched = false;                          // S1
  bool specialize_all = false;                   // S2, for every branch on is_leaf and every switch
  bool specialize_every = false;                 // S2, for every branch
  Vector<std::string> specialized;               // S2, by name of the if_then_else
  bool leaves_apart = false;                     // a version of the body for leaves, even if the model has no branch
  Vector<std::pair<std::string, int>> unrolled;  // S3, by name of a state or of the model: the depth
  Vector<std::string> refactored;  // S4, by name of the operator at whose contraction the recursion is cut
  LoopsByHand by_hand;             // of the lowered program
  int max_workers = 1;             // threads that may share one call
  bool exact = false;              // tanh, sigmoid, exp of the C library, not the approximations

  /// S1: nodes that do not depend on each other run as one batch.
  [[nodiscard]] Schedule dynamic_batch() const {
    return with([](Schedule& s) { s.batched = true; });
  }
  /// The same, naming the recursion as the paper does; a program has one.
  template <class Op>
  [[nodiscard]] Schedule dynamic_batch(const Op&) const {
    return dynamic_batch();
  }

  /// S2: a version of the program for each side of the branch `op`, on whatever of the structure it is, or for each
  /// case of the switch `op`; batches are sorted into parts to match. Several branches make a part of each combination;
  /// more than 64 are refused when the model is compiled.
  template <class Op>
  [[nodiscard]] Schedule specialize_if_else(const Op& op) const {
    return with([&](Schedule& s) { s.specialized.push_back(name_of(op)); });
  }
  /// S2, for every branch.
  [[nodiscard]] Schedule specialize_if_else() const {
    return with([](Schedule& s) { s.specialize_every = true; });
  }
  /// S2, for every branch on `is_leaf` and every switch.
  [[nodiscard]] Schedule specialize_leaves_and_switches() const {
    return with([](Schedule& s) { s.specialize_all = true; });
  }
  /// A version of the body for leaves: sums over no children and absent initial states vanish from it (L6).
  [[nodiscard]] Schedule specialize_leaves() const {
    return with([](Schedule& s) { s.leaves_apart = true; });
  }
  /// S3: the recursion that computes `op` (a placeholder, a result, or the program for all that go up) takes `depth`
  /// levels of nodes at a time: its body is put into itself, batches are of subtrees, and each subtree is one worker's.
  /// Leaves are apart. For trees and sequences; DAGs are refused when the model is compiled.
  template <class Op>
  [[nodiscard]] Schedule unroll(const Op& op, int depth) const {
    return with([&](Schedule& s) { s.unrolled.emplace_back(name_of(op), depth); });
  }
  /// S4: moves the back edge of the recursion to the contraction of operator `op`. What follows from it at a node joins
  /// what the node's parent begins with: the contraction is cut along its own axis, into one partial sum for each of
  /// the schedule's workers, and each worker adds them up for itself. That saves one of two barriers a level where the
  /// axis is what the workers' slices are of, as in a GRU whose reset gate comes before the product. The partial sums
  /// are as many as the schedule has workers, however many take part. For trees and sequences; DAGs are refused when
  /// the model is compiled.
  template <class Op>
  [[nodiscard]] Schedule refactor(const Op& op) const {
    return with([&](Schedule& s) { s.refactored.push_back(name_of(op)); });
  }
  /// At most `count` threads share one call, each owning a slice of every operator's last dimension.
  [[nodiscard]] Schedule workers(int count) const {
    return with([&](Schedule& s) { s.max_workers = count; });
  }
  /// Runs the loops of the lowered program as `steps` (a `cortex::Loops`) say, and not as the compiler would.
  template <std::derived_from<LoopSchedule> Steps>
  [[nodiscard]] Schedule loops(Steps steps) const {
    return with([&](Schedule& s) { s.by_hand = LoopsByHand(std::make_shared<const Steps>(std::move(steps))); });
  }
  /// The C library's tanh, sigmoid and exp in place of the approximations.
  [[nodiscard]] Schedule exact_activations() const {
    return with([](Schedule& s) { s.exact = true; });
  }

  /// Batched, every branch on is_leaf and every switch specialized, leaves apart.
  static Schedule standard() { return Schedule{}.dynamic_batch().specialize_leaves_and_switches().specialize_leaves(); }

  friend bool operator==(const Schedule&, const Schedule&) = default;

 private:
  template <class Change>
  Schedule with(Change change) const {
    Schedule changed = *this;
    change(changed);
    return changed;
  }
  static std::string name_of(const char* name) { return name; }
  static std::string name_of(const std::string& name) { return name; }
  template <class Op>
  requires requires(const Op& op) {
    { op.name() } -> std::convertible_to<std::string>;
  }
  static std::string name_of(const Op& op) { return op.name(); }
};

}  // namespace cortex
