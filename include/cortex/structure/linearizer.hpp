// The linearizer (paper section 4.2 and appendix B): from the user's own nodes to the arrays that generated code reads.
//
// It is instantiated for one node type and exactly the accessors that a model reads, all inlined. A run
//   1. discovers the nodes breadth first and notes for each link the place of its target (`discover`);
//   2. finds heights, cycles and forbidden sharing, and numbers the nodes (`numbering`), those that are one value
//      alike (`sharing`), piece by piece (`divide`) and small batches filled (`fill_levels`) if it is told to;
//   3. writes children and fields in the order of the numbers.
// Nothing recurses and nothing is allocated once the workspace is as large as the input.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "cortex/base/memory.hpp"
#include "cortex/base/multiples.hpp"
#include "cortex/structure/accessor_set.hpp"
#include "cortex/structure/arrays.hpp"
#include "cortex/structure/derived.hpp"
#include "cortex/structure/failures.hpp"
#include "cortex/structure/fill_levels.hpp"
#include "cortex/structure/kind.hpp"
#include "cortex/structure/links.hpp"
#include "cortex/structure/numbering.hpp"
#include "cortex/structure/partition.hpp"
#include "cortex/structure/pieces.hpp"
#include "cortex/structure/share_subtrees.hpp"
#include "cortex/structure/state_rows.hpp"
#include "cortex/structure/subtrees.hpp"
#include "cortex/structure/tape.hpp"
#include "cortex/structure/unnumbered.hpp"
#include "cortex/structure/workspace.hpp"

namespace cortex::structure {

/// Linearizes structures of `Node` for the accessors of `Set`, a type `Accessors<...>`. Stateless.
template <class Node, class Set>
class Linearizer {
  static_assert(
      fits_node<Set, Node>,
      "an accessor of this model cannot be read from this node type: the member does not exist there, a child "
      "is no pointer to a node and no index, or a field is no number and no array or row of numbers");
  using Named = ChildAccessors<Set>;
  using Containers = ChildrenAccessors<Set>;
  using Fields = FieldAccessors<Set>;
  static constexpr std::size_t num_named = Named::size;
  static constexpr std::size_t num_containers = Containers::size;
  using Derived = DerivedAccessors<Set>;
  static constexpr std::size_t num_fields = Fields::size;
  static constexpr std::size_t num_rows = num_named + 2 * num_containers;
  using Tape = detail::Tape<num_rows>;

  template <class A, class B>
  struct Joined;
  template <class... As, class... Bs>
  struct Joined<Accessors<As...>, Accessors<Bs...>> {
    static constexpr std::array<std::string_view, sizeof...(As) + sizeof...(Bs)> names{As::name()..., Bs::name()...};
  };
  static constexpr std::span<const std::string_view> link_names() { return Joined<Named, Containers>::names; }

 public:
  /// Numbers everything that `roots` reach and checks it against `structure`. `checks` holds one entry per field
  /// accessor, in the set's order. `roots` is a range of pointers (raw or smart) to nodes, or of nodes. The result lies
  /// in `workspace` and holds until its next run; batches are sorted into the parts of the workspace's partition.
  ///
  /// Throws Error: invalid_structure for a cycle, a null root, a null child, a shared child or too many children;
  /// out_of_range for field values outside their table or 32 bits, for a kind that a switch has no case for, and for
  /// more visits, or members, than the workspace allows; out_of_memory. What the user's own pointers, containers and
  /// lambdas throw passes through. Either way the workspace can be used again.
  template <class Roots>
  static const Arrays& run(Workspace& workspace, const Structure& structure, std::span<const FieldCheck> checks,
                           Roots&& roots) {
    static_assert(!uses_arena<Set, Node>,
                  "children are indices here: pass the arena that they index, cortex::arena(nodes)");
    using Root = decltype(*begin_of(roots));
    static_assert(!LinkTo<Root, Node> || !is_index_link<Root>,
                  "roots are indices here: pass the arena that they index");
    return run_in(workspace, structure, checks, roots, Arena<Node>{});
  }
  static const Arrays& run(Workspace& workspace, const Structure& structure, std::span<const FieldCheck> checks,
                           std::initializer_list<const Node*> roots) {
    return run<const std::initializer_list<const Node*>&>(workspace, structure, checks, roots);
  }

  /// The same for links that are indices into `arena`; roots are indices or pointers. An index that is negative, or the
  /// greatest of an unsigned type, means "no node"; any other past the end, and a root that stands elsewhere, gets
  /// Code::out_of_range.
  template <class Roots>
  static const Arrays& run(Workspace& workspace, const Structure& structure, std::span<const FieldCheck> checks,
                           Roots&& roots, Arena<Node> arena) {
    return run_in(workspace, structure, checks, roots, arena);
  }
  template <class Root>
  requires LinkTo<const Root&, Node>
  static const Arrays& run(Workspace& workspace, const Structure& structure, std::span<const FieldCheck> checks,
                           std::initializer_list<Root> roots, Arena<Node> arena) {
    return run_in(workspace, structure, checks, roots, arena);
  }

  /// Writes the addresses of `roots` to `list` and returns how many there are: `run_listed` takes any of them. Throws
  /// what `run` throws for roots that are null or past the arena's end. Whether pointers lead into an arena is for
  /// `run_listed` to see: a list serves all models of a node type, also those that follow no indices.
  template <class Roots>
  static std::size_t list(Block<const void*>& list, Roots& roots, Arena<Node> arena = {}) {
    std::size_t count = 0;
    for_each_root(roots, arena, [&](const Node* node) {
      list.extend(count + 1, count)[count] = node;
      ++count;
    });
    return count;
  }
  static const Arrays& run_listed(Workspace& workspace, const Structure& structure, std::span<const FieldCheck> checks,
                                  std::span<const void* const> roots, Arena<Node> arena = {}) {
    begin(workspace, checks);
    enter_each(workspace.state_, [&](auto enter) {
      for (const void* const& root : roots) {
        if constexpr (uses_arena<Set, Node>)
          if (!arena.contains(static_cast<const Node*>(root))) [[unlikely]]
            fail::root_outside(&root - roots.data(), arena.size);
        enter(root);
      }
    });
    return number(workspace, structure, checks, arena);
  }

 private:
  template <class Roots>
  static const Arrays& run_in(Workspace& workspace, const Structure& structure, std::span<const FieldCheck> checks,
                              Roots& roots, Arena<Node> arena) {
    begin(workspace, checks);
    enter_each(workspace.state_, [&](auto enter) { for_each_root(roots, arena, enter); });
    return number(workspace, structure, checks, arena);
  }

  static void begin(Workspace& workspace, std::span<const FieldCheck> checks) {
    if (checks.size() != num_fields)
      throw Error(Code::internal, "the linearizer needs one FieldCheck per field accessor");
    workspace.state_.begin(num_named, num_containers, Derived::size, num_fields);
  }

  /// All that follows once the roots are entered: the same code however they were given.
  [[gnu::noinline]] static const Arrays& number(Workspace& workspace, const Structure& structure,
                                                std::span<const FieldCheck> checks, const Arena<Node>& arena) {
    WalkState& walk = workspace.state_;
    discover(walk, structure, arena, Named{}, Containers{});
    const std::int32_t heights = walk.num_repeats == 0 ? numbering::measure_forest(walk)
                                                       : numbering::resolve_sharing(walk, structure.kind, link_names());
    if (workspace.shares_ && workspace.subtree_depth_ == 0)
      sharing::merge_equal(walk, detail::ReadFields<Node, Set>(walk, checks), workspace.hash_mask_);
    Arrays arrays;
    numbering::divide(walk, heights, workspace.subtree_depth_ == 0 ? workspace.piece_nodes_ : 0, workspace.piece_width_,
                      arrays);
    if (asks_parents(workspace.partition_, checks)) numbering::count_parents(walk);
    numbering::lay_out_batches(walk, arrays);
    bool numbered = workspace.level_fill_ > 1 && workspace.subtree_depth_ == 0 &&
                    numbering::fill_levels(walk, workspace.level_fill_, arrays);
    if (const Partition* partition = workspace.partition_) {
      classify(walk, *partition);
      numbering::lay_out_parts(walk, partition->parts, arrays);
      if (partition->listed != Where::nowhere)
        numbering::list_parts(walk, partition->listed == Where::internal, arrays);
      numbered = false;
    }
    if (!numbered) numbering::assign_numbers(walk, arrays);
    numbering::write_roots(walk, arrays);
    write_named(walk, arrays, std::make_index_sequence<num_named>{});
    if constexpr (num_named == 1 && num_containers == 0)
      if (structure.kind == Kind::sequence && arrays.num_pieces == 1)
        arrays.child_step = derived::common_step(arrays, walk.child_table[0]);
    for (std::size_t c = 0; c < num_containers; ++c) write_container(walk, arrays, c);
    write_fields(walk, arrays, checks, Fields{});
    arrays.child = walk.child_table.data();
    arrays.children = walk.csr_table.data();
    write_derived(walk, arrays, Derived{});
    if (workspace.subtree_depth_ > 0) arrays.subtrees = subtrees::write(walk, arrays, workspace.subtree_depth_);
    if (workspace.rows_apart_ > 0)
      state_rows::assign(walk, arrays, workspace.rows_apart_, workspace.overwrites_children_);
    arrays.field = walk.field_table.data();
    walk.arrays = arrays;
    walk.remember_size();
    walk.finished = true;
    return walk.arrays;
  }

  // ------------------------------------------------------------------------------------------------------- discovery

  /// The node that a link leads to, or null. `refuse` is called with an index past the end of the arena.
  template <class Ref, class Refuse>
  static const Node* follow(std::remove_reference_t<Ref>& link, const Arena<Node>& arena, Refuse&& refuse) {
    using Link = std::remove_cvref_t<Ref>;
    if constexpr (NodeItself<Ref, Node>) {
      return std::addressof(link);
    } else if constexpr (PointerTo<Link, Node>) {
      return to_raw(link);
    } else {
      if (is_none(link)) return nullptr;
      if (std::uint64_t(link) >= arena.size) [[unlikely]]
        refuse(std::to_string(+link));
      return arena.nodes + link;
    }
  }

  /// Calls `take` with the node of each root.
  template <class Roots, class Take>
  static void for_each_root(Roots& roots, const Arena<Node>& arena, Take take) {
    static_assert(LinkTo<decltype(*begin_of(roots)), Node>,
                  "roots must be pointers to nodes, nodes, or indices into an arena");
    std::int64_t number = 0;
    auto at = begin_of(roots);
    for (const auto end = end_of(roots); at != end; ++at, ++number) {
      auto&& link = *at;
      const Node* node = follow<decltype(*at)>(
          link, arena, [&](const std::string& index) { fail::root_index(number, index, arena.size); });
      if (node == nullptr) [[unlikely]]
        fail::null_root(number);
      if constexpr (uses_arena<Set, Node>)
        if (!arena.contains(node)) [[unlikely]]
          fail::root_outside(number, arena.size);
      take(node);
    }
  }

  /// Gives each root a place: `give(enter)` calls `enter(root)` for each.
  template <class Give>
  static void enter_each(WalkState& walk, Give give) {
    Tape tape(walk);
    std::int32_t tail = 1;
    give([&](const void* root) {
      if (tail >= tape.limit) [[unlikely]] {
        detail::make_room(walk, 0, tail, 1);
        tape.load(walk);
      }
      tape.node[tail] = root;
      tape.parent[tail] = 0;
      ++tail;
    });
    walk.tail = tail;
    walk.num_roots = tail - 1;
  }

  /// Visits places in order, each link giving a new place at the tail, so the list of places is its own queue. A node
  /// is looked up in the table when its place is visited, by when its slot has had the time to reach the cache.
  template <class... Ns, class... Cs>
  static void discover(WalkState& walk, const Structure& structure, [[maybe_unused]] const Arena<Node>& arena,
                       Accessors<Ns...>, Accessors<Cs...>) {
    static_assert(num_named < spare_places, "a node type with 64 or more named children: use a children accessor");
    Tape tape(walk);
    const std::int32_t bound = structure.child_bound();
    std::int32_t tail = walk.tail;
    for (std::int32_t place = 1; place < tail; ++place) {
      const Node& node = *static_cast<const Node*>(tape.node[place]);
      prefetch_ahead(tape, place, tail);
      const std::int32_t original = tape.table.insert(&node, place, tape.node);
      if (original != 0) [[unlikely]] {
        note_repeat(walk, place, original);
        continue;
      }
      if (tail + std::int32_t(num_named) > tape.limit) [[unlikely]] {
        detail::make_room(walk, place, tail, std::int32_t(num_named));
        tape.load(walk);
      }
      const std::int32_t first = tail;
      bool lacks_required = false;
      [[maybe_unused]] std::size_t row = 0;
      (enter_named<Ns>(walk, tape, node, arena, place, tail, row++, lacks_required), ...);
      (enter_container<Cs>(walk, structure, tape, node, arena, place, tail, row), ...);
      const std::int32_t links = tail - first;
      if (lacks_required & (links > 0)) [[unlikely]]
        refuse_null_child<Ns...>(walk, place);
      if (links > bound) [[unlikely]]
        refuse_too_many(walk, structure, place, first, tail);
    }
    walk.tail = tail;
    if (tail - 1 > walk.max_visits) fail::too_many_visits(walk);
  }

  static void prefetch_ahead(const Tape& tape, std::int32_t place, std::int32_t tail) {
    constexpr std::int32_t distance = 8;
    const std::int32_t ahead = place + distance < tail ? place + distance : place;
    __builtin_prefetch(tape.node[ahead]);
    __builtin_prefetch(tape.table.entries + tape.table.home(tape.node[ahead]), 1);
  }

  static void note_repeat(WalkState& walk, std::int32_t place, std::int32_t original) {
    const std::size_t count = std::size_t(walk.num_repeats);
    if (count + 1 >= walk.repeat.capacity()) [[unlikely]]
      make_room_for_repeats(walk);
    walk.repeat.data()[count] = {place, original};
    ++walk.num_repeats;
  }
  [[gnu::cold, gnu::noinline]] static void make_room_for_repeats(WalkState& walk) {
    const std::size_t count = std::size_t(walk.num_repeats);
    walk.repeat.extend(count + 1, count);
  }

  template <class A>
  static void enter_named(WalkState& walk, Tape& tape, const Node& node, const Arena<Node>& arena, std::int32_t place,
                          std::int32_t& tail, std::size_t row, bool& lacks_required) {
    const Node* child = nullptr;
    if (A::is_reachable(node)) {
      using Ref = decltype(A::get(node));
      auto&& link = A::get(node);
      child = follow<Ref>(
          link, arena, [&](const std::string& index) { fail::link_index(walk, place, A::name(), index, arena.size); });
    }
    // No branch on whether the child is there, which no predictor can guess: an absent child's place is overwritten.
    tape.node[tail] = child;
    tape.parent[tail] = place;
    tape.row[row][place] = child != nullptr ? tail : 0;
    tail += child != nullptr;
    if constexpr (A::kind == AccessorKind::child) lacks_required |= child == nullptr;
  }

  template <class A>
  static void enter_container(WalkState& walk, const Structure& structure, Tape& tape, const Node& node,
                              const Arena<Node>& arena, std::int32_t place, std::int32_t& tail, std::size_t& row) {
    const std::int32_t first = tail;
    enum class Entered { as_usual, in_new_room, as_the_last };
    auto enter = [&](const Node* child) {
      Entered how = Entered::as_usual;
      if (tail >= tape.limit) [[unlikely]] {
        const bool refused = numbering::is_refused(structure, tape.node + first, tape.node + tail, child);
        walk.cut_short |= refused;
        how = refused ? Entered::as_the_last : Entered::in_new_room;
        detail::make_room(walk, place, tail, 1);
        tape.load(walk);
      }
      tape.node[tail] = child;
      tape.parent[tail] = place;
      ++tail;
      return how;
    };
    auto refuse = [&](const std::string& index) { fail::link_index(walk, place, A::name(), index, arena.size); };
    A::for_each_member(node, [&](auto&& held) {
      using Ref = decltype(held);
      if constexpr (LinkTo<Ref, Node>) {
        if (const Node* child = follow<Ref>(held, arena, refuse)) enter(child);
      } else {
        auto at = begin_of(held);
        const std::int32_t begin = tail;
        for (const auto end = end_of(held); at != end; ++at) {
          auto&& link = *at;
          const Node* child = follow<decltype(*at)>(link, arena, refuse);
          if (child == nullptr) [[unlikely]]
            fail::null_element(walk, place, A::name(), tail - begin);
          const Entered how = enter(child);
          if (how == Entered::as_usual) [[likely]]
            continue;
          if (how == Entered::as_the_last) break;
          if (goes_round(held, tape.node + begin, tape.node + tail)) fail::endless_list(walk, place, A::name());
        }
      }
    });
    tape.row[row++][place] = first;
    tape.row[row++][place] = tail - first;
  }

  template <class... Ns>
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_null_child([[maybe_unused]] const WalkState& walk,
                                                                       [[maybe_unused]] std::int32_t place) {
    [[maybe_unused]] std::size_t row = 0;
    (..., [&] {
      if (Ns::kind == AccessorKind::child && walk.row[row].data()[place] == 0)
        fail::null_child(walk, place, Ns::name());
      ++row;
    }());
    throw Error(Code::internal, "the linearizer lost the child that is null");
  }

  [[gnu::noinline]] static void refuse_too_many(const WalkState& walk, const Structure& structure, std::int32_t place,
                                                std::int32_t first, std::int32_t tail) {
    const std::int64_t count = numbering::count_children(walk, place, first, tail, structure.child_bound());
    if (count > structure.child_bound()) fail::too_many_children(walk, place, count, structure, link_names());
  }

  // ----------------------------------------------------------------------------------------------------------- parts

  static bool asks_parents(const Partition* partition, std::span<const FieldCheck> checks) {
    bool asked = false;
    for (const FieldCheck& check : checks) asked |= asks(check.guard, KeyStep::Op::num_parents);
    if (partition)
      for (const Selector& selector : partition->selectors)
        asked |= asks(selector.key, KeyStep::Op::num_parents) || asks(selector.guard, KeyStep::Op::num_parents);
    return asked;
  }

  /// Gives each place its part, and refuses a node that a switch has no case for.
  static void classify(WalkState& walk, const Partition& partition) {
    std::int32_t* const part = walk.part.reserve(std::size_t(walk.tail) + 1);
    for (std::int32_t place = 1; place < walk.tail; ++place) {
      const Where where = walk.height.data()[place] == 0 ? Where::leaves : Where::internal;
      std::int32_t number = 0;
      if (!walk.is_first(place)) continue;
      for (const Selector& selector : partition.selectors) {
        std::size_t answer = 0;
        if ((int(selector.where) & int(where)) && detail::holds<Node, Set>(selector.guard, walk, place)) {
          // Others are asked of more nodes than need the answer, and fields that are needed are refused as such.
          const auto unreachable = selector.exhaustive ? detail::Unreachable::refused : detail::Unreachable::zero;
          const std::int64_t value = evaluate(selector.key, detail::Unnumbered<Node, Set>(walk, place, unreachable));
          answer = selector.answer_to(value);
          if (selector.exhaustive && answer == selector.values.size()) [[unlikely]]
            fail::no_case(walk, place, selector, value);
        }
        if (selector.partitions) number = number * selector.answers() + std::int32_t(answer);
      }
      part[place] = number;
    }
  }

  // --------------------------------------------------------------------------------------------------------- writing

  template <std::size_t... k>
  static void write_named(WalkState& walk, const Arrays& arrays, std::index_sequence<k...>) {
    if constexpr (sizeof...(k) > 0) {
      const std::int32_t* const order = walk.order.data();
      const std::int32_t* const number = walk.number.data();
      const std::array<const std::int32_t*, num_named> from{walk.row[k].data()...};
      const std::array<std::int32_t*, num_named> to{walk.child[k].reserve(std::size_t(arrays.num_nodes) + 1)...};
      for (std::int32_t n = 0; n < arrays.num_internal; ++n) {
        const std::int32_t place = order[n];
        ((to[k][n] = number[from[k][place]]), ...);
      }
      (std::fill(to[k] + arrays.num_internal, to[k] + arrays.num_nodes, arrays.num_nodes), ...);
      ((walk.child_table[k] = to[k]), ...);
    }
  }

  static void write_container(WalkState& walk, const Arrays& arrays, std::size_t c) {
    const std::int32_t* const order = walk.order.data();
    const std::int32_t* const number = walk.number.data();
    const std::int32_t* const first = walk.row[num_named + 2 * c].data();
    const std::int32_t* const count = walk.row[num_named + 2 * c + 1].data();
    std::int32_t* const begin = walk.csr_begin[c].reserve(std::size_t(arrays.num_nodes) + 1);
    std::int32_t* const child = walk.csr_child[c].reserve(std::size_t(walk.tail) + 2);
    std::int32_t edge = 0;
    for (std::int32_t n = 0; n < arrays.num_internal; ++n) {
      const std::int32_t place = order[n];
      const std::int32_t from = first[place], size = count[place];
      begin[n] = edge;
      // Two are written in any case, to be overwritten by the next node: most nodes have no more, and no branch is
      // missed.
      child[edge] = number[from];
      child[edge + 1] = number[from + 1];
      for (std::int32_t k = 2; k < size; ++k) child[edge + k] = number[from + k];
      edge += size;
    }
    std::fill(begin + arrays.num_internal, begin + arrays.num_nodes + 1, edge);
    std::int32_t widest = 0;
    for (std::int32_t b = 1; b < arrays.num_batches; ++b) {
      const std::int32_t low = arrays.batch_begin[b];
      widest = std::max(widest, begin[low + arrays.batch_length[b]] - begin[low]);
    }
    walk.csr_table[c] = {begin, child, edge, widest};
  }

  template <class... Ds>
  static void write_derived(WalkState& walk, const Arrays& arrays, Accessors<Ds...>) {
    [[maybe_unused]] std::size_t at = num_containers;
    ((walk.csr_table[at] = Ds::kind == AccessorKind::parents ? derived::write_parents(walk, arrays, at)
                                                             : derived::write_members(walk, arrays, at),
      ++at),
     ...);
  }

  template <class... Fs>
  static void write_fields(WalkState& walk, const Arrays& arrays, [[maybe_unused]] std::span<const FieldCheck> checks,
                           Accessors<Fs...>) {
    [[maybe_unused]] std::size_t f = 0;
    ((walk.field_table[f] = write_field<Fs>(walk, arrays, checks[f], walk.field_data[f]), ++f), ...);
  }

  /// Fields come last, so a field is read only from structures that are sound, and where it is read is a range of
  /// numbers.
  template <class A>
  static FieldArray write_field(const WalkState& walk, const Arrays& arrays, const FieldCheck& check,
                                Block<std::byte>& block) {
    using Shape = typename A::template Shape<Node>;
    using Source = typename Shape::Element;
    using Element = std::conditional_t<std::is_floating_point_v<Source>, Source, std::int32_t>;
    constexpr bool own_length = Shape::components == 0;
    const std::size_t components = std::size_t(own_length ? check.components : Shape::components);
    const std::size_t stride = Shape::is_vector ? round_up(components, row_multiple) : 1;
    const std::size_t num_nodes = std::size_t(arrays.num_nodes), num_internal = std::size_t(arrays.num_internal);
    const std::size_t begin = (int(check.where) & int(Where::internal)) ? 0 : num_internal;
    const std::size_t end = (int(check.where) & int(Where::leaves)) ? num_nodes : std::max(begin, num_internal);
    Element* const data = reinterpret_cast<Element*>(block.reserve(num_nodes * stride * sizeof(Element) + slack_bytes));
    std::memset(static_cast<void*>(data), 0, begin * stride * sizeof(Element));
    std::memset(static_cast<void*>(data + end * stride), 0, (num_nodes - end) * stride * sizeof(Element));
    const void* const* const node = walk.node.data();
    const std::int32_t* const order = walk.order.data();
    const auto range = detail::IntegerRange::of<Source>(check.limit);
    const std::span<const KeyStep> guard = check.guard;
    for (std::size_t n = begin; n < end; ++n) {
      Element* const row = data + n * stride;
      if (!detail::holds<Node, Set>(guard, walk, order[n])) {
        std::memset(static_cast<void*>(row), 0, stride * sizeof(Element));
        continue;
      }
      const Node& source = *static_cast<const Node*>(node[order[n]]);
      if (!A::is_reachable(source)) [[unlikely]]
        fail::unreachable_field(walk, order[n], A::name());
      auto&& value = A::get(source);
      auto element = [&](int k, auto scalar) {
        return checked<A, Element>(scalar, Shape::is_vector ? k : -1, range, walk, order[n], check);
      };
      if constexpr (own_length) {
        if (std::size_t(value.size()) != components) [[unlikely]]
          fail::field_length(walk, order[n], A::name(), std::size_t(value.size()), check);
        std::copy_n(value.data(), components, row);
      } else if constexpr (Shape::is_vector) {
        for (int k = 0; k < Shape::components; ++k) row[k] = element(k, value[std::size_t(k)]);
      }
      if constexpr (Shape::is_vector) {
        std::memset(static_cast<void*>(row + components), 0, (stride - components) * sizeof(Element));
      } else {
        row[0] = element(0, value);
      }
    }
    return {data, std::int32_t(stride)};
  }

  /// One value of a field as generated code holds it, checked if it is an integer.
  template <class A, class Element, class T>
  static Element checked(T value, int element, const detail::IntegerRange& range, const WalkState& walk,
                         std::int32_t place, const FieldCheck& check) {
    if constexpr (std::is_floating_point_v<T>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return checked<A, Element>(std::underlying_type_t<T>(value), element, range, walk, place, check);
    } else {
      if (!range.contains(std::uint64_t(value))) [[unlikely]]
        refuse_value<A>(value, element, walk, place, check);
      return static_cast<Element>(value);
    }
  }

  template <class A, class T>
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_value(T value, int element, const WalkState& walk,
                                                                  std::int32_t place, const FieldCheck& check) {
    const bool past_limit = check.limit >= 0 && (std::uint64_t(value) >= std::uint64_t(check.limit));
    if (past_limit) fail::field_limit(walk, place, A::name(), element, std::to_string(+value), check);
    fail::field_width(walk, place, A::name(), element, std::to_string(+value));
  }
};

}  // namespace cortex::structure
