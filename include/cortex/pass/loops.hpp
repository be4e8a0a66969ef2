// A schedule of the program's loops and tensors by hand, as a list of steps: what the compiler does by itself where
// there is none. A header of its own, for those who write schedules or tune them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/pass/loop_step.hpp"
#include "cortex/pass/pipeline.hpp"
#include "cortex/pass/share_subexpressions.hpp"
#include "cortex/pass/simplify_guards.hpp"
#include "cortex/schedule/layouts.hpp"
#include "cortex/schedule/place_temporaries.hpp"
#include "cortex/schedule/restructure.hpp"
#include "cortex/schedule/rfactor.hpp"
#include "cortex/schedule/share_bound_loops.hpp"

namespace cortex {

namespace pass {

/// A step on a program.
struct StepCall {
  const ir::Stmt& body;
  const LoopStep& step;
  const Target& target;
  const std::string& name(std::size_t i) const { return step.names[i]; }
  std::int64_t number(std::size_t i) const { return step.numbers[i]; }
};

/// Where a primitive may stand among the others. Barriers are put where the program stands then: what moves work from
/// one nest to another, shares more of it, or reads whole what a worker read its own slice of, comes before them.
enum class When : std::uint8_t { any, before_barriers, makes_tiles };

/// What a primitive takes, and what it does. `arguments`: l a loop, t a tensor, b who shares a loop, n a number;
/// capitals: one or more.
struct LoopPrimitive {
  std::string_view name, arguments;
  ir::Stmt (*apply)(const StepCall&);
  When when = When::any;
};

namespace detail {

/// Whether each worker does a nest for itself, or its share of it, or one alone does it. A nest of which workers would
/// share a part is refused.
inline bool has_its_workers(const schedule::Nest& nest, const ir::Stmt& stmt) {
  const auto* outermost = stmt.as<ir::For>();
  const std::string what = outermost ? "what '" + schedule::name_of(*outermost) + "' does"
                                     : "what is done with a local buffer or a condition";
  const bool own = schedule::is_replicated(nest);
  ir::visit_with(
      nest.inner,
      [&](const ir::Store& store) {
        if (own && store.buffer->scope == ir::Scope::shared)
          schedule::refuse(what + " writes '" + store.buffer->name +
                           "', which workers share, beside what each of them has for itself; distribute that first");
      },
      [&](const ir::For& inner) {
        if (inner.loop == ir::ForKind::parallel)
          schedule::refuse("loop '" + schedule::name_of(inner) + "' shares only a part of " + what +
                           "; distribute that first");
      });
  return own || schedule::is_one_workers(nest) || schedule::has_shared_loop(nest);
}

/// All that no loop shares among the workers, and that is not each worker's own, for the first worker alone. A nest is
/// one worker's with its local buffers, or nobody's.
inline ir::Stmt rest_for_first_worker(const ir::Stmt& body) {
  const ir::Expr alone = ir::binary(ir::BinaryOp::eq, ir::worker(), ir::imm(0));
  const auto first_workers = [&](ir::Mutator& self, const ir::Stmt& stmt) -> ir::Stmt {
    const auto nest = schedule::parse_nest(stmt);
    if (!nest) return self.children(*stmt.get());
    if (has_its_workers(*nest, stmt)) return stmt;
    schedule::Nest first = *nest;
    first.guard = ir::both(alone, nest->guard);
    return schedule::build_nest(first);
  };
  return ir::mutate_with(
      body,
      [&](auto& self, const ir::For& loop) -> ir::Stmt {
        return loop.loop == ir::ForKind::parallel ? handle_of(loop) : first_workers(self, handle_of(loop));
      },
      [&](auto& self, const ir::If& branch) -> ir::Stmt { return first_workers(self, handle_of(branch)); },
      [&](auto& self, const ir::Alloc& alloc) -> ir::Stmt { return first_workers(self, handle_of(alloc)); },
      [&](auto& self, const ir::Store& store) -> ir::Stmt { return first_workers(self, handle_of(store)); });
}

/// Who can share the iterations of a loop. A worker of a GPU is a block.
inline constexpr std::string_view sharers[] = {"group", "worker", "block", "thread"};

/// Makes `c`'s loop one that its second name shares.
inline ir::Stmt bind_loop(const StepCall& c) {
  const std::string& to = c.name(1);
  if (to == "worker" || to == "block") return schedule::share_loop(c.body, c.name(0));
  if (to == "group")
    schedule::refuse(
        "groups share the roots of a call, each runs the whole program for its own, and no loop of the program goes "
        "over groups; how many blocks are one is GpuSchedule's group and blocks (on_gpu), and a CPU's workers are one");
  if (c.target.backend != Backend::cuda)
    schedule::refuse("a worker of a CPU is one thread: bind(" + c.name(0) +
                     ", worker) shares the loop among workers, " + "vectorize(" + c.name(0) +
                     ") among the lanes of a vector");
  return schedule::share_among_threads(c.body, c.name(0));
}

/// Refuses a step that makes vectors, where there are none.
inline void need_vectors(const StepCall& c) {
  if (c.target.backend == Backend::cuda)
    schedule::refuse("a thread of a GPU has no vectors; bind(loop, thread) shares a loop among threads, jam(loop) " +
                     std::string("puts its iterations side by side in one"));
}

inline ir::Stmt barriers_by_hand(const ir::Stmt& body) { return insert_barriers(rest_for_first_worker(body)); }

/// All primitives, in the order in which a reader meets them.
inline constexpr std::array loop_primitives{
    // One loop or a nest of them
    LoopPrimitive{"split", "ln",
                  [](const StepCall& c) { return schedule::split_loop(c.body, c.name(0), c.number(0)); }},
    LoopPrimitive{
        "split_cases", "ln",
        [](const StepCall& c) { return schedule::split_loop(c.body, c.name(0), c.number(0), schedule::Rest::cases); }},
    LoopPrimitive{
        "split_guarded", "ln",
        [](const StepCall& c) { return schedule::split_loop(c.body, c.name(0), c.number(0), schedule::Rest::guard); }},
    LoopPrimitive{
        "tile", "llnn",
        [](const StepCall& c) { return schedule::tile_loops(c.body, c.name(0), c.name(1), c.number(0), c.number(1)); }},
    LoopPrimitive{"fuse", "ll", [](const StepCall& c) { return schedule::fuse_loops(c.body, c.name(0), c.name(1)); }},
    LoopPrimitive{"reorder", "L", [](const StepCall& c) { return schedule::reorder_loops(c.body, c.step.names); }},
    LoopPrimitive{"unroll", "l", [](const StepCall& c) { return schedule::unroll_loop(c.body, c.name(0)); }},
    LoopPrimitive{"jam", "l", [](const StepCall& c) { return schedule::jam_loop(c.body, c.name(0)); }},
    LoopPrimitive{"vectorize", "l",
                  [](const StepCall& c) {
                    need_vectors(c);
                    return schedule::vectorize_loop(c.body, c.name(0));
                  }},
    LoopPrimitive{"parallel", "l", [](const StepCall& c) { return schedule::share_loop(c.body, c.name(0)); },
                  When::before_barriers},
    LoopPrimitive{"bind", "lb", bind_loop, When::before_barriers},
    // Statements between loops
    LoopPrimitive{"merge", "ll", [](const StepCall& c) { return schedule::merge_loops(c.body, c.name(0), c.name(1)); }},
    LoopPrimitive{"distribute", "l", [](const StepCall& c) { return schedule::distribute_loop(c.body, c.name(0)); }},
    LoopPrimitive{"rfactor", "ln",
                  [](const StepCall& c) { return schedule::rfactor_loop(c.body, c.name(0), c.number(0)); }},
    // Temporaries and copies
    LoopPrimitive{"compute_inline", "t", [](const StepCall& c) { return schedule::compute_inline(c.body, c.name(0)); },
                  When::before_barriers},
    LoopPrimitive{"compute_at", "tl",
                  [](const StepCall& c) { return schedule::compute_at(c.body, c.name(0), c.name(1)); },
                  When::before_barriers},
    LoopPrimitive{"cache_read", "tl",
                  [](const StepCall& c) { return schedule::cache_read(c.body, c.name(0), c.name(1)); },
                  When::before_barriers},
    LoopPrimitive{"cache_write", "tl",
                  [](const StepCall& c) { return schedule::cache_write(c.body, c.name(0), c.name(1)); },
                  When::before_barriers},
    // Where tensors lie
    LoopPrimitive{
        "layout_split", "tnn",
        [](const StepCall& c) { return schedule::layout_split(c.body, c.name(0), c.number(0), c.number(1)); }},
    LoopPrimitive{"layout_reorder", "tN",
                  [](const StepCall& c) { return schedule::layout_reorder(c.body, c.name(0), c.step.numbers); }},
    LoopPrimitive{"layout_fuse", "tn",
                  [](const StepCall& c) { return schedule::layout_fuse(c.body, c.name(0), c.number(0)); }},
    LoopPrimitive{"layout_pad", "tnn",
                  [](const StepCall& c) { return schedule::layout_pad(c.body, c.name(0), c.number(0), c.number(1)); }},
    // What the compiler does by itself, to the whole program
    LoopPrimitive{"inline_temporaries", "", [](const StepCall& c) { return inline_temporaries(c.body); },
                  When::before_barriers},
    LoopPrimitive{"remove_dead", "", [](const StepCall& c) { return remove_dead(c.body); }},
    LoopPrimitive{"distribute_rows", "", [](const StepCall& c) { return distribute_rows(c.body); },
                  When::before_barriers},
    LoopPrimitive{"fuse_edges", "", [](const StepCall& c) { return fuse_edges(c.body); }, When::before_barriers},
    LoopPrimitive{"fuse_nests", "",
                  [](const StepCall& c) { return fuse_nests(c.body, schedule::most_gates(c.target)); },
                  When::before_barriers},
    LoopPrimitive{"index_densely", "", [](const StepCall& c) { return index_densely(c.body); }, When::before_barriers},
    LoopPrimitive{"forward_stores", "", [](const StepCall& c) { return forward_stores(c.body); },
                  When::before_barriers},
    LoopPrimitive{"chain_sums", "", [](const StepCall& c) { return chain_sums(c.body); }},
    LoopPrimitive{"hoist_conditions", "", [](const StepCall& c) { return hoist_conditions(c.body); }},
    LoopPrimitive{"hoist_invariants", "", [](const StepCall& c) { return hoist_invariants(c.body); }},
    LoopPrimitive{"share_subexpressions", "", [](const StepCall& c) { return share_subexpressions(c.body); }},
    LoopPrimitive{"simplify_guards", "", [](const StepCall& c) { return simplify_guards(c.body); }},
    LoopPrimitive{"share_work", "",
                  [](const StepCall& c) {
                    const bool gpu = c.target.backend == Backend::cuda;
                    return schedule::share_work(
                        c.body, gpu ? schedule::SlicesOfMatrices::columns : schedule::SlicesOfMatrices::rows);
                  },
                  When::before_barriers},
    LoopPrimitive{"insert_barriers", "", [](const StepCall& c) { return barriers_by_hand(c.body); },
                  When::before_barriers},
    LoopPrimitive{"pack_weights", "", [](const StepCall& c) { return schedule::pack_weights(c.body, c.target); }},
    LoopPrimitive{"tile_nests", "",
                  [](const StepCall& c) {
                    need_vectors(c);
                    return schedule::tile_nests(c.body, c.target);
                  },
                  When::makes_tiles},
    LoopPrimitive{"share_loads", "", [](const StepCall& c) { return share_loads(c.body); }},
};

inline const LoopPrimitive* primitive_named(std::string_view name) {
  for (const LoopPrimitive& primitive : loop_primitives)
    if (primitive.name == name) return &primitive;
  return nullptr;
}

/// What is wrong with a step by itself: there is none of its name, or it takes other arguments. Empty if nothing is.
inline std::string wrong_with(const LoopStep& step) {
  const LoopPrimitive* primitive = primitive_named(step.primitive);
  if (!primitive) {
    std::string all;
    for (const LoopPrimitive& each : loop_primitives) all += (all.empty() ? "" : ", ") + std::string(each.name);
    return "there is no primitive '" + step.primitive + "'; there are " + all;
  }
  std::size_t names = 0, numbers = 0;
  bool more_names = false, more_numbers = false;
  std::string wanted;
  for (const char c : primitive->arguments) {
    const bool number = c == 'n' || c == 'N';
    ++(number ? numbers : names);
    (number ? more_numbers : more_names) |= c == 'L' || c == 'N';
    wanted += (wanted.empty() ? "" : ", ");
    wanted += number ? "number" : c == 't' ? "tensor" : c == 'b' ? "group or worker or block or thread" : "loop";
    if (c == 'L' || c == 'N') wanted += ", ...";
  }
  const bool right = (more_names ? step.names.size() >= names : step.names.size() == names) &&
                     (more_numbers ? step.numbers.size() >= numbers : step.numbers.size() == numbers);
  bool known = true;  // who is to share a loop
  for (std::size_t i = 0; right && i < names; ++i)
    if (primitive->arguments[i] == 'b') known = contains(sharers, step.names[i]);
  return right && known ? "" : to_string(step) + ": it takes " + step.primitive + "(" + wanted + ")";
}

/// Looks at the steps of a schedule one after the other.
class StepChecker {
 public:
  /// What is wrong with the next step, by itself or in that it comes too late. Empty if nothing is.
  std::string wrong_with_next(const LoopStep& step) {
    if (std::string wrong = wrong_with(step); !wrong.empty()) return wrong;
    shared_ |= step.primitive == "parallel" || step.primitive == "bind" || step.primitive == "share_work";
    tiled_ |= shared_ && step.primitive == "tile_nests";
    if (tiled_ && step.primitive == "insert_barriers")
      return "insert_barriers(): it has to come before tile_nests(), since work is shared";
    if (barriers_ && primitive_named(step.primitive)->when == When::before_barriers)
      return to_string(step) + ": it has to come before insert_barriers()";
    barriers_ |= step.primitive == "insert_barriers";
    return "";
  }

 private:
  bool barriers_ = false, shared_ = false, tiled_ = false;  // tiling gives each worker its iterations
};

/// The rest of a text, which are steps of a loop schedule.
inline Vector<LoopStep> read_loop_steps(StepReader& reader) {
  Vector<LoopStep> steps;
  StepChecker checker;
  while (auto step = reader.next()) {
    if (const std::string wrong = checker.wrong_with_next(*step); !wrong.empty()) reader.fail(wrong);
    steps.push_back(std::move(*step));
  }
  return steps;
}

}  // namespace detail
}  // namespace pass

/// A schedule of the lowered program's loops and tensors (paper section 5, I7 to I12), in place of the compiler's own:
/// a list of steps, each a pure function from program to program that keeps what is computed, or refuses with a
/// sentence. Loops and tensors have the names that `functor.print("ilir")` shows; a step gives new ones by adding to
/// these (`split(i, 16)` makes `i.o`, `i.i`, and `i.r` for the rest), and what is copied gets a number.
///
///     Schedule::standard().loops(Loops{}.split("i", 16).vectorize("i.i"))
///     Schedule::standard().loops(Loops::parse("split(i, 16); vectorize(i.i)"))
///
/// What a primitive refuses is thrown by `compile` as `Error{invalid_schedule}`, with the step and the reason.
class Loops : public LoopSchedule {
 public:
  Loops() = default;
  /// Throws `Error{invalid_schedule}` for a step that does not exist, has other arguments than it takes, or comes too
  /// late.
  explicit Loops(Vector<LoopStep> steps) : steps_(std::move(steps)) {
    pass::detail::StepChecker checker;
    for (const LoopStep& step : steps_)
      if (const std::string wrong = checker.wrong_with_next(step); !wrong.empty())
        throw Error(Code::invalid_schedule, "loop schedule: " + wrong);
  }
  /// Steps as text, one a line or with ';' between them; '#' begins a comment, and a name that is no word stands in
  /// quotes. Throws `Error{invalid_schedule}` naming the line.
  static Loops parse(std::string_view text) {
    pass::detail::StepReader reader(text, "loop schedule");
    return Loops(pass::detail::read_loop_steps(reader));
  }

  // One loop or a nest of them
  Loops split(std::string loop, std::int64_t factor) const { return with({"split", {std::move(loop)}, {factor}}); }
  Loops split_cases(std::string loop, std::int64_t factor) const {
    return with({"split_cases", {std::move(loop)}, {factor}});
  }
  Loops split_guarded(std::string loop, std::int64_t factor) const {
    return with({"split_guarded", {std::move(loop)}, {factor}});
  }
  Loops tile(std::string outer, std::string inner, std::int64_t outer_factor, std::int64_t inner_factor) const {
    return with({"tile", {std::move(outer), std::move(inner)}, {outer_factor, inner_factor}});
  }
  Loops fuse(std::string outer, std::string inner) const {
    return with({"fuse", {std::move(outer), std::move(inner)}, {}});
  }
  Loops reorder(Vector<std::string> loops) const { return with({"reorder", std::move(loops), {}}); }
  Loops unroll(std::string loop) const { return with({"unroll", {std::move(loop)}, {}}); }
  Loops jam(std::string loop) const { return with({"jam", {std::move(loop)}, {}}); }
  Loops vectorize(std::string loop) const { return with({"vectorize", {std::move(loop)}, {}}); }
  Loops parallel(std::string loop) const { return with({"parallel", {std::move(loop)}, {}}); }
  /// `to`: who shares the loop's iterations. "worker", which is `parallel`; "block", the same in the words of a GPU,
  /// whose workers are thread blocks; "thread": the threads of a block, neighbours neighbouring iterations. "group" is
  /// refused with what to set instead: groups share roots, and no loop.
  Loops bind(std::string loop, std::string to) const { return with({"bind", {std::move(loop), std::move(to)}, {}}); }
  // Statements between loops
  Loops merge(std::string first, std::string second) const {
    return with({"merge", {std::move(first), std::move(second)}, {}});
  }
  Loops distribute(std::string loop) const { return with({"distribute", {std::move(loop)}, {}}); }
  Loops rfactor(std::string loop, std::int64_t factor) const { return with({"rfactor", {std::move(loop)}, {factor}}); }
  // Temporaries and copies
  Loops compute_inline(std::string tensor) const { return with({"compute_inline", {std::move(tensor)}, {}}); }
  Loops compute_at(std::string tensor, std::string loop) const {
    return with({"compute_at", {std::move(tensor), std::move(loop)}, {}});
  }
  Loops cache_read(std::string tensor, std::string loop) const {
    return with({"cache_read", {std::move(tensor), std::move(loop)}, {}});
  }
  Loops cache_write(std::string tensor, std::string loop) const {
    return with({"cache_write", {std::move(tensor), std::move(loop)}, {}});
  }
  // Where tensors lie: axes are counted from the outermost in memory
  Loops layout_split(std::string tensor, std::int64_t axis, std::int64_t factor) const {
    return with({"layout_split", {std::move(tensor)}, {axis, factor}});
  }
  Loops layout_reorder(std::string tensor, Vector<std::int64_t> order) const {
    return with({"layout_reorder", {std::move(tensor)}, std::move(order)});
  }
  Loops layout_fuse(std::string tensor, std::int64_t axis) const {
    return with({"layout_fuse", {std::move(tensor)}, {axis}});
  }
  Loops layout_pad(std::string tensor, std::int64_t axis, std::int64_t multiple) const {
    return with({"layout_pad", {std::move(tensor)}, {axis, multiple}});
  }
  /// A step on the whole program that the compiler's own schedule consists of: "inline_temporaries", "remove_dead",
  /// "distribute_rows", "fuse_edges", "fuse_nests", "index_densely", "forward_stores", "chain_sums", "share_work",
  /// "insert_barriers", "pack_weights", "tile_nests", "share_loads"; and "simplify_guards", "hoist_conditions",
  /// "hoist_invariants", "share_subexpressions".
  Loops whole(std::string step) const { return with({std::move(step), {}, {}}); }

  /// These steps, and after them those of `more`.
  Loops then(const Loops& more) const {
    Vector<LoopStep> steps = steps_;
    append(steps, more.steps_);
    return Loops(std::move(steps));
  }

  const Vector<LoopStep>& steps() const { return steps_; }
  friend bool operator==(const Loops& a, const Loops& b) { return a.steps_ == b.steps_; }

  bool has_barriers() const override {
    return any_of(steps_, [](const LoopStep& s) { return s.primitive == "insert_barriers"; });
  }
  std::size_t size() const override { return steps_.size(); }
  std::string text(std::size_t step) const override { return cortex::to_string(steps_[step]); }
  bool makes_tiles(std::size_t step) const override {
    return pass::detail::primitive_named(steps_[step].primitive)->when == pass::When::makes_tiles;
  }
  ir::Stmt named(const ir::Stmt& body) const override { return schedule::with_unique_names(body); }
  ir::Stmt apply(std::size_t step, const ir::Stmt& body, const Target& target) const override {
    const LoopStep& s = steps_[step];
    try {
      const ir::Stmt after = pass::detail::primitive_named(s.primitive)->apply({body, s, target});
      schedule::check_lanes(after);
      schedule::check_locals(after);
      schedule::check_loops_of_threads(after);
      return schedule::with_unique_names(schedule::in_scope(after, "what the step moved"));
    } catch (const Error& error) {
      if (error.code != Code::invalid_schedule) throw;
      throw Error(Code::invalid_schedule, "loop schedule: " + to_string(s) + ": " + error.message);
    }
  }

 private:
  Loops with(LoopStep step) const { return then(Loops({std::move(step)})); }

  Vector<LoopStep> steps_;
};

/// All steps, one a line.
inline std::string to_string(const Loops& loops) {
  std::string text;
  for (std::size_t i = 0; i < loops.size(); ++i) text += loops.text(i) + "\n";
  return text;
}

}  // namespace cortex
