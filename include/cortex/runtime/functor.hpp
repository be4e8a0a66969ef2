// The compiled model as the user has it: bind weights, call it with nodes.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/dsl/model.hpp"
#include "cortex/runtime/bind_forms.hpp"
#include "cortex/runtime/compile.hpp"
#include "cortex/runtime/numberer.hpp"
#include "cortex/runtime/output.hpp"
#include "cortex/runtime/roots.hpp"

namespace cortex {

/// The machine that the program runs on, as a target. Throws `Error{unavailable}` if the build has no LLVM.
inline Target host_target() { return runtime::host_target(); }

/// How `compile` compiles: `CompileOptions{}.on(target).with_workers(pool)`, each member function a copy with one more
/// decision, or `{.target = target, .workers = pool}`.
struct CompileOptions {
  std::optional<Target> target;  // none: the machine that the program runs on
  // Threads that may help calls, unless the schedule wants one alone; none: the caller alone.
  std::shared_ptr<Workers> workers;
  bool timings = false;  // fill in Output::linearize_ns and execute_ns, which reads clocks on every call

  [[nodiscard]] CompileOptions on(Target machine) const {
    CompileOptions changed = *this;
    changed.target = std::move(machine);
    return changed;
  }
  [[nodiscard]] CompileOptions with_workers(std::shared_ptr<Workers> pool) const {
    CompileOptions changed = *this;
    changed.workers = std::move(pool);
    return changed;
  }
  [[nodiscard]] CompileOptions with_timings() const {
    CompileOptions changed = *this;
    changed.timings = true;
    return changed;
  }
};

namespace runtime {

/// The schedule with as many workers as there are, where it leaves their number to the compiler.
inline Schedule with_pool(Schedule schedule, const Workers* pool) {
  if (pool && schedule.fewer_workers && schedule.max_workers == 1 && !schedule.by_hand)
    schedule.max_workers = std::min(pool->size() + 1, max_call_workers);
  return schedule;
}

template <class T>
inline constexpr bool is_arena = false;
template <class Node>
inline constexpr bool is_arena<Arena<Node>> = true;

/// The structure that a graph is declared for.
inline Structure structure_of(const ra::Graph& graph) { return {structure::Kind(graph.structure), graph.max_children}; }

namespace detail {

/// Fills `positions`, by number in the graph, with positions in the set.
template <class... As>
void place_accessors(const ra::Graph& graph, Vector<int>& positions, std::size_t count, structure::Accessors<As...>) {
  positions.assign(count, -1);
  int position = 0;
  [[maybe_unused]] const auto place = [&](int number) {
    if (number >= 0) positions[std::size_t(number)] = position;
    ++position;
  };
  (place(dsl::accessor_number<As>(graph)), ...);
}

}  // namespace detail

/// Where the linearizer of `Set` puts what the graph's accessors name.
template <class Set>
AccessorOrder accessor_order(const ra::Graph& graph) {
  AccessorOrder order;
  detail::place_accessors(graph, order.child, graph.children_named.size(), structure::ChildAccessors<Set>{});
  detail::place_accessors(graph, order.children, graph.containers.size(), structure::ContainerAccessors<Set>{});
  detail::place_accessors(graph, order.field, graph.fields.size(), structure::FieldAccessors<Set>{});
  return order;
}

}  // namespace runtime

/// A compiled model over nodes of type `Node` that reads the accessors in `Set`. Calling it is const, and any number of
/// threads may call it, and bind weights to it, at the same time. Copies are handles to the same model: they share
/// weights, workers and memory; what was moved from is one too. `First` is the element type of the first state.
///
/// A call takes roots: a node, a pointer to one (raw or smart), or a range of pointers or of nodes; where links are
/// indices, an arena and indices or pointers. It throws, or returns from its `try_` form,
///   invalid_structure  nodes that are not what the model is declared for
///   out_of_range       a field or an index past the end of a weight
///   invalid_weights    weights that were never bound, whose open dimensions disagree, or that lack an element which is
///                      read whatever the nodes
///   invalid_argument   an output span that is too small or of another element type, found before any work
///   out_of_memory      more nodes than the machine has memory for: a smaller call may succeed
/// What the user's own types throw passes through. After the first calls of a size, a call allocates nothing.
template <class Node, class Set, class First = float>
class Functor : public runtime::BindForms<Functor<Node, Set, First>> {
 public:
  using Output = cortex::Output<Node, First>;

  /// A functor of an executable that was made for this node type and these accessors; users call `compile`.
  explicit Functor(std::shared_ptr<const runtime::Executable> executable, const CompileOptions& options = {}) {
    runtime::AccessorOrder order = runtime::accessor_order<Set>(executable->graph);
    structure_ = runtime::structure_of(executable->graph);
    model_ = runtime::CompiledModel::make(std::move(executable), std::move(order), options.workers, options.timings);
  }

  /// An `AnyFunctor` of a functor over the same nodes.
  template <class Known>
  requires(std::is_same_v<Set, runtime::AnyAccessors> && !std::is_same_v<Known, Set>)
      Functor(const Functor<Node, Known, First>& known)
      : structure_(known.structure_), numberer_(known.numberer_), model_(known.model_) {}

  // Moving copies: what is left behind is a handle still, and not one to nothing.
  Functor(const Functor&) = default;
  Functor& operator=(const Functor&) = default;

  // ---- calls ----

  /// The states at `roots` and below, in memory that the result leases.
  template <class Roots>
  requires(!runtime::is_arena<std::remove_cvref_t<Roots>>) Output operator()(Roots&& roots) const {
    return Output(lease(roots));
  }
  Output operator()(std::initializer_list<runtime::ListedRoot<Node>> roots) const { return Output(lease(roots)); }
  template <class Roots>
  Output operator()(Arena<Node> arena, Roots&& roots) const {
    return Output(lease(roots, arena));
  }
  Output operator()(Arena<Node> arena, std::initializer_list<std::int64_t> roots) const {
    return Output(lease(roots, arena));
  }

  /// Writes the first state at each root to `out`, dense and row-major [root, dims...], and returns the number of
  /// roots.
  template <class Roots, runtime::OutputRange Out>
  requires(!runtime::is_arena<std::remove_cvref_t<Roots>>) std::size_t operator()(Roots&& roots, Out&& out) const {
    return write(roots, runtime::writable(out));
  }
  template <class Roots, runtime::OutputRange Out>
  std::size_t operator()(Arena<Node> arena, Roots&& roots, Out&& out) const {
    return write(roots, runtime::writable(out), arena);
  }
  template <runtime::OutputRange Out>
  std::size_t operator()(std::initializer_list<runtime::ListedRoot<Node>> roots, Out&& out) const {
    return write(roots, runtime::writable(out));
  }

  /// A call in any of these forms, of braced lists that of nodes and pointers, whose error is returned.
  template <class... Arguments>
  auto try_call(Arguments&&... arguments) const {
    return attempt([&] { return (*this)(std::forward<Arguments>(arguments)...); });
  }
  Result<Output> try_call(std::initializer_list<runtime::ListedRoot<Node>> roots) const {
    return attempt([&] { return (*this)(roots); });
  }

  /// The first half of a call, for what wants to know of its size beforehand: nodes are numbered, and states are not
  /// computed: to ask for one is `Error{invalid_argument}`. Weights need not be bound.
  template <class Roots, class... ArenaIfAny>
  Output number(Roots&& roots, const ArenaIfAny&... arena) const {
    return Output(with_numbering([&](const auto& numbering) { return model_->number(numbering); }, roots, arena...));
  }

  // ---- weights ----

  // `bind` and `try_bind` are those of `BindForms`.

  /// Calls `binds`, which binds weights to this model: `model.bind_together([&] { model.bind("W", w).bind("U", u); })`.
  /// All that it binds on this thread takes effect at once when it returns: every call has either the old weights or
  /// the new ones, never some of each. If it throws, memory runs out, or weights disagree then on the extent of an open
  /// dimension (`Error{invalid_weights}`), nothing is bound; a `try_bind` that fails inside throws nothing, and is the
  /// lambda's to act on. Old and new weights are in memory together until then; tables that follow from them are made
  /// once.
  template <class Binds>
  Functor& bind_together(Binds&& binds) {
    const std::shared_ptr<runtime::CompiledModel> model = model_;  // `binds` may assign another to this functor
    model->bind_together(binds);
    return *this;
  }

  /// The same, whose error is returned; exceptions of other types pass through.
  template <class Binds>
  Result<Done> try_bind_together(Binds&& binds) {
    return attempt([&] { bind_together(binds); });
  }

  // ---- threads, and what the compiler made ----

  /// Lets later calls share the threads of `workers`, up to as many as the model was compiled for (by
  /// `CompileOptions::with_workers` or `Schedule::workers`; else for one, and this changes nothing); null: the caller
  /// works alone.
  Functor& use(std::shared_ptr<Workers> workers) {
    model_->use(std::move(workers));
    return *this;
  }

  /// What the weights bound now take, and what calls take per node, edge and worker. What one call took:
  /// `Output::memory()`.
  ModelMemory memory() const { return model_->memory(); }

  /// The code, the texts on the way to it, and how long its making took.
  const runtime::Executable& executable() const { return *model_->executable(); }

  /// The model as text: "ra" the operator graph, "ilir" the loops made of it, "scheduled" the loops that are left of
  /// these, with barriers, packed weights and shared memory; "tiled" the same with each worker's own iterations, as
  /// register tiles for each number of rows; "llvm" the LLVM IR (empty for the interpreter). Throws
  /// `Error{invalid_argument}` for any other name. `explain` in `cortex/explain.hpp` says what they amount to.
  std::string print(std::string_view form) const { return runtime::text_of(executable(), form); }

  /// Writes the machine code of a model that was compiled for a level of CPUs (`Target::x86_64`) to an object file. A
  /// program that is linked with it (and exports its symbols, as with -rdynamic), or has loaded a shared library made
  /// of it (`load_code`), compiles the same model, under the same schedule and for the same target, without LLVM and in
  /// the time that its checks and passes take. Weights are not in it. Throws `Error{invalid_argument}` for a model of
  /// another target, and a path that cannot be written; `unavailable` if the build has no LLVM.
  void write_code(const std::string& path) const { runtime::write_code(executable(), path); }

 private:
  template <class Roots, class... ArenaIfAny>
  runtime::Lease lease(Roots& roots, const ArenaIfAny&... arena) const {
    return with_numbering([&](const auto& numbering) { return model_->call(numbering); }, roots, arena...);
  }

  /// Calls `take` with what numbers the nodes at `roots` and below.
  template <class Take, class Roots, class... ArenaIfAny>
  runtime::Lease with_numbering(Take take, Roots& roots, const ArenaIfAny&... arena) const {
    return runtime::with_roots<Node>(roots, [&](auto& range) {
      const auto all = [&](runtime::Workspace& workspace) {
        numberer_.run(workspace.nodes, workspace.division.roots, structure_, workspace.checks(), range, arena...);
      };
      const auto list = [&](runtime::Workspace& workspace) {
        using List = structure::Linearizer<Node, structure::Accessors<>>;  // the same for all accessors
        workspace.division.num_roots = List::list(workspace.division.roots, range, arena...);
      };
      const auto some = [&](runtime::Workspace& workspace, std::span<const void* const> listed) {
        numberer_.run_listed(workspace.nodes, structure_, workspace.checks(), listed, arena...);
      };
      return take(runtime::Numbering{all, list, some});
    });
  }

  static constexpr auto count_of = [](auto& range) {
    if constexpr (requires { std::size(range); }) return std::size_t(std::size(range));
    std::size_t count = 0;
    for (auto at = structure::begin_of(range); at != structure::end_of(range); ++at) ++count;
    return count;
  };

  template <class Roots, class T, class... ArenaIfAny>
  std::size_t write(Roots& roots, std::span<T> out, const ArenaIfAny&... arena) const {
    const runtime::StateView& state = model_->plan().states[0];
    const runtime::StateSpec& spec = executable().states[0];
    if (state.dtype != dtype_of<T>) runtime::detail::wrong_element(spec, dtype_of<T>);
    const std::size_t count = runtime::with_roots<Node>(roots, count_of);
    const std::size_t size = std::size_t(state.size);
    if (out.size() / size < count) runtime::detail::small_span(spec, count * size, out.size());
    const runtime::Lease done = lease(roots, arena...);
    if (done->num_roots() != count) runtime::detail::other_roots(executable(), count, done->num_roots());
    for (std::size_t i = 0; i < count; ++i) {
      const runtime::Workspace::Place root = done->root(i);
      runtime::copy_dense(state, root.group->row(state, root.number), out.data() + i * size);
    }
    return count;
  }

  template <class, class, class>
  friend class Functor;
  friend runtime::BindForms<Functor>;
  const ra::Graph& graph() const { return executable().graph; }
  void bind_values(std::string_view name, DType dtype, const void* values, std::size_t count,
                   std::span<const std::int64_t> shape) {
    model_->bind(name, dtype, values, count, shape);
  }

  Structure structure_;
  [[no_unique_address]] runtime::Numberer<Node, Set> numberer_;
  std::shared_ptr<runtime::CompiledModel> model_;
};

/// A functor whose type does not say which accessors the model reads, so that it can be named: the type of a member, of
/// a parameter, of what a function in another file returns. `Functor`s become one by themselves, and all that they do
/// it does: `class Tagger { cortex::AnyFunctor<Word> model_; }`, `model_(cortex::compile(program))`. It costs a list of
/// the roots and one call through a pointer for each call; where children are indices, that the arena is given is found
/// out at the call, `Error{invalid_argument}`.
template <class Node, class First = float>
using AnyFunctor = Functor<Node, runtime::AnyAccessors, First>;

/// Compiles a model for the nodes and accessors that its type names. The result is the same for the same program,
/// schedule and target. Throws `Error`: invalid_schedule, unavailable (this build or machine lacks the target),
/// compile_failed, out_of_memory.
template <class... Types>
Functor<Types...> compile(const Program<Types...>& program, const Schedule& schedule,
                          const CompileOptions& options = {}) {
  return Functor<Types...>(runtime::compile_graph(program.graph(), runtime::with_pool(schedule, options.workers.get()),
                                                  options.target ? *options.target : runtime::host_target()),
                           options);
}
template <class Node, class... Rest>
void compile(const Model<Node>&, const Rest&...) {
  static_assert(sizeof(Node) == 0,
                "compile takes a complete program, which recursion_op or program gives, not a model");
}
/// The same under `Schedule::standard()`.
template <class... Types>
Functor<Types...> compile(const Program<Types...>& program, const CompileOptions& options = {}) {
  return compile(program, Schedule::standard(), options);
}

/// `compile` in any of these forms, whose error is returned.
template <class... Types, class... Arguments>
Result<Functor<Types...>> try_compile(const Program<Types...>& program, const Arguments&... arguments) {
  return attempt([&] { return compile(program, arguments...); });
}

}  // namespace cortex
