// The schedule of a model: plain data, apart from the computation.
#pragma once

#include <climits>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
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
  /// Whether a step writes nests out for each number of rows, of which a call runs one.
  virtual bool makes_tiles(std::size_t step) const = 0;
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

/// The shape of the register tiles that the compiler makes of products, where it is not left to the compiler. 0: it is;
/// the numbers then follow from the target's registers. Rows, vectors and sweeps change no result; gates may in its
/// last bits, since two sums that are added up become one where they are accumulated side by side.
struct Tiling {
  int rows = 0;     // nodes (or edges) that a tile computes at most
  int vectors = 0;  // vectors of each gate's outputs that a tile computes at most, where its rows are few
  int gates = 0;    // products that a tile accumulates side by side at most
  /// Whether every other sweep over a worker's weights goes backwards.
  enum class Sweeps : std::uint8_t { where_it_pays, forward, alternating };
  Sweeps sweeps = Sweeps::where_it_pays;

  friend bool operator==(const Tiling&, const Tiling&) = default;
};

/// Whether subtrees of a call that are equal are computed once.
enum class Sharing : unsigned char { off, where_it_pays, on };

/// Whether nodes of a batch that choose the same of several matrices stand side by side.
enum class Sorting : unsigned char { off, where_it_pays, on };

/// Whether what follows from words and weights alone is read from tables.
enum class Tabulating : unsigned char { off, where_it_pays, on };

/// How a GPU shares a call among its threads. What is not said, the compiler chooses from the model's shapes and the
/// device. Results depend on `tensor_cores`, which rounds what it multiplies, and on `parts`, which orders additions;
/// once these are said, on nothing else here, not even in their last bit. Where `parts` is left to the compiler it
/// follows from `blocks` and `threads`, and `blocks` in turn from `group` and `weights`. A recursion that `refactor`
/// cuts has as many partial sums as a group has blocks.
struct GpuSchedule {
  /// Who is a group, which computes some of the trees and whose blocks meet at a barrier a level.
  enum class Group : std::uint8_t {
    automatic,
    block,    // one thread block: no barrier beyond it
    cluster,  // a cluster of blocks, from compute capability 9.0 on: the hardware's barrier
    grid,     // all blocks of the launch: a barrier in global memory, launched cooperatively
  };
  static constexpr std::string_view group_names[] = {"automatic", "block", "cluster", "grid"};
  enum class Weights : std::uint8_t {
    automatic,
    streamed,   // read from the L2 cache at every level
    resident,   // each block's slice in its shared memory, for the time of a call
    registers,  // what a thread multiplies at every level in its registers, as much as they hold of it; the rest as if
                // automatic
  };
  static constexpr std::string_view weights_names[] = {"automatic", "streamed", "resident", "registers"};
  /// What tensor cores multiply, from compute capability 8.0 on. All products of a model's matrices with what nodes
  /// have are theirs, at every level, however small; matrices are rounded to the type when they are bound, and stored
  /// so, what they multiply where it is read; sums are f32, and all else is as it was. bf16 and f16 round to 8 and 11
  /// bits, tf32 to 11 with the range of f32; of f16 what is above 65504 becomes infinite. A model with other sums of
  /// products at nodes, such as of a matrix at each, is refused.
  enum class TensorCores : std::uint8_t { off, bf16, f16, tf32 };
  static constexpr std::string_view tensor_cores_names[] = {"off", "bf16", "f16", "tf32"};
  Group group = Group::automatic;
  Weights weights = Weights::automatic;
  TensorCores tensor_cores = TensorCores::off;
  bool lock_based = true;  // the barrier of a grid: an atomic counter, or else a flag for each block
  int blocks = 0;          // of a group; 0: the compiler's choice, as below
  int threads = 0;         // of a block
  int rows = 0;  // nodes, or rows of their matrices, that a thread computes side by side, at most: 1, 2, 4 or 8
  /// Threads that share the sum of one output (split-K): each adds up a part of the products, four neighbours of every
  /// so many, and the parts are added by halves, in the same order at every level. 1, 2, 4, 8, 16 or 32; with 1 a
  /// thread has a sum to itself. On tensor cores, chains of products that a warp has of each tile: 1, 2, 4 or 8. Left
  /// to the compiler it follows from the others: as many as keep the threads of a block at work for a single node.
  /// Where there are many rows, ahead of the levels and of matrices at nodes, a sum has at most 8 parts.
  int parts = 0;
  /// Rows that each block of a cluster keeps in its shared memory of what its blocks exchange: of states those of the
  /// nodes computed last, of intermediate results the first of a level. Its blocks write them there (distributed shared
  /// memory, from compute capability 9.0 on); others are read from the L2 cache. A group of one block keeps them for
  /// itself. A power of two; 0: none; -1, the compiler's choice: as many as fit beside weights, up to 64, but in a
  /// cluster only with tensor cores or weights in registers; without these they were measured to cost more than they
  /// save.
  int recent_rows = -1;
  friend bool operator==(const GpuSchedule&, const GpuSchedule&) = default;
};

/// How the recursion is run (paper section 3.1). Each member function gives a copy with one more decision, so decisions
/// chain: `Schedule{}.dynamic_batch(out).specialize_if_else(body)`. A default-constructed schedule runs the
/// recursion node by node with all conditions checked at run time; `Schedule::standard()` is what `compile` uses when
/// none is given.
struct Schedule {
  /// The most workers that a schedule may ask for, and the most groups of them. Of these one call takes as many as
  /// `runtime::max_call_workers`.
  static constexpr int most_workers = 1024;

  bool batched = false;                          // S1
  bool specializes_where_it_pays = false;        // S2, for every branch where it pays
  bool specialize_every = false;                 // S2, for every branch
  Vector<std::string> specialized;               // S2, by name of the if_then_else
  int level_fill = 1;                            // nodes that small levels are filled up to; 0: the compiler's choice
  static constexpr int by_the_caches = INT_MIN;  // of `piece_nodes`: the compiler's choice
  int piece_nodes = 0;                           // nodes of the pieces that large calls are computed in; 0: whole
  bool leaves_apart = false;                     // a version of the body for leaves, even if the model has no branch
  Vector<std::pair<std::string, int>> unrolled;  // S3, by name of a state or of the model: the depth
  Vector<std::string> refactored;  // S4, by name of the operator at whose contraction the recursion is cut
  LoopsByHand by_hand;             // of the lowered program
  Tiling tiling;                   // where loops are not scheduled by hand
  int max_workers = 1;             // threads that may share one call
  bool fewer_workers = false;      // in a call that is not worth as many
  int num_groups = 0;              // of these threads, each with some of a call's roots; 0: the compiler's choice
  DType weight_type = DType::f32;  // of weights that sums of products read
  Vector<std::pair<std::string, DType>> stored;  // of inputs by name, whatever that says
  Sharing sharing = Sharing::off;                // of equal subtrees
  Sorting sorting = Sorting::off;                // of batches, by the matrices that nodes choose
  Tabulating tabulating = Tabulating::off;
  static constexpr int usual_table_megabytes = 64;
  /// At most so much for tables.
  int table_megabytes = usual_table_megabytes;
  bool vectors_alone = false;  // no products on a CPU's matrix unit
  bool exact = false;          // functions of the C library, not the approximations
  bool fuses = true;           // operators into common loops
  GpuSchedule gpu;             // CPUs do not look at it

  /// S1: nodes that do not depend on each other run as one batch.
  [[nodiscard]] Schedule dynamic_batch() const {
    return with([](Schedule& s) { s.batched = true; });
  }
  /// The same, with the name of a recursion or the program as the paper has it: all recursions of the program are
  /// batched, whichever is named.
  template <class Op>
  [[nodiscard]] Schedule dynamic_batch(const Op&) const {
    constexpr bool is_named = requires(const Op& named) { name_of(named); };
    static_assert(is_named, "dynamic_batch takes nothing, or the program, a state or an operator, or the name of one");
    return dynamic_batch();
  }

  /// Levels of fewer than `least` nodes, from 1 to 1024, take nodes from lower levels which nobody waits for so soon: a
  /// node stands anywhere above its children and below its parents, and not as low as it can. A level of one node reads
  /// the weights that one of several reads, so towards the roots of most trees these nodes are next to free. 1: levels
  /// are of one height, as in the paper. 0 leaves it to the compiler, which compares weights with arithmetic. It takes
  /// a few nanoseconds a node while nodes are numbered. No number changes results. Needs `dynamic_batch`; with
  /// `unroll`, and for a model that reads parents, it is refused when the model is compiled.
  [[nodiscard]] Schedule fill_levels(int least) const {
    return with([&](Schedule& s) { s.level_fill = least; });
  }
  /// The same by the compiler's choice, and not where it would be refused.
  [[nodiscard]] Schedule fill_levels_where_it_pays() const { return fill_levels(0); }

  /// Calls of about twice as many nodes and more are computed in pieces of neighbouring roots that reach about `least`,
  /// from 1 on, or more, one piece after the other: what a piece writes is still in the cache when it is read, where a
  /// call of a thousand trees would send each level to memory and fetch it from there. No number changes results, nor
  /// what of a call is kept. Needs `dynamic_batch`; with `unroll`, for a model that reads parents, for GPUs, and with
  /// loops by hand that run over all nodes at once, it is refused when the model is compiled.
  [[nodiscard]] Schedule pieces(int least) const {
    return with([&](Schedule& s) { s.piece_nodes = least; });
  }
  /// The same with as many nodes as the cost model finds best for the machine's caches, for trees whose levels then
  /// have four nodes on average, and not where it would be refused.
  [[nodiscard]] Schedule pieces_where_they_pay() const { return pieces(by_the_caches); }
  /// Each call as a whole, however many nodes it has.
  [[nodiscard]] Schedule whole_calls() const { return pieces(0); }

  /// S2: a version of the program for each side of the branch `op`, on whatever of the structure it is, or for each
  /// case of the switch `op`; batches are sorted into parts to match. Several branches make a part of each combination;
  /// more than 64, or than 256 cases of one switch alone, are refused when the model is compiled.
  template <class Op>
  [[nodiscard]] Schedule specialize_if_else(const Op& op) const {
    return with([&](Schedule& s) { s.specialized.push_back(name_of(op)); });
  }
  /// S2, for every branch.
  [[nodiscard]] Schedule specialize_if_else() const {
    return with([](Schedule& s) { s.specialize_every = true; });
  }
  /// S2, for every branch on `is_leaf`, every switch, and every other branch on whose sides nodes multiply more than on
  /// both, as far as several leave no more than 64 combinations, and one no more than 256: the last of them, or the
  /// last cases of a switch, are decided at each node then.
  [[nodiscard]] Schedule specialize_where_it_pays() const {
    return with([](Schedule& s) { s.specializes_where_it_pays = true; });
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
  /// what the node's parent begins with: the contraction is cut along its own axis into partial sums of one size, and
  /// each worker adds them up for itself. That saves one of two barriers a level where the axis is what the workers'
  /// slices are of, as in a GRU whose reset gate comes before the product. There is a partial sum for each worker that
  /// `workers` asks for, of which the axis has to be a multiple; where the schedule leaves their number to the pool
  /// there are four or two, or as few as the axis has to be cut into. However many workers take part, the sums are the
  /// same. For trees and sequences; DAGs, and axes of no such number, are refused when the model is compiled.
  template <class Op>
  [[nodiscard]] Schedule refactor(const Op& op) const {
    return with([&](Schedule& s) { s.refactored.push_back(name_of(op)); });
  }
  /// Nodes of a call that are equal in all that the model reads of them, fields bit for bit, and whose children are the
  /// same or equal, are computed once; results are those of every node still, and the same bits. They are found while
  /// nodes are numbered, which takes a few nanoseconds a node. For recursions from children to parents: a model that
  /// reads parents or all nodes of a root, and `unroll` and `refactor`, are refused when the model is compiled.
  [[nodiscard]] Schedule share_subtrees() const {
    return with([](Schedule& s) { s.sharing = Sharing::on; });
  }
  /// The same for models with enough products at a node that finding equal ones is next to nothing, and not where it
  /// would be refused.
  [[nodiscard]] Schedule share_subtrees_where_it_pays() const {
    return with([](Schedule& s) { s.sharing = Sharing::where_it_pays; });
  }
  /// Every node is computed, whatever the schedule said of sharing before.
  [[nodiscard]] Schedule share_no_subtrees() const {
    return with([](Schedule& s) { s.sharing = Sharing::off; });
  }
  /// Where a node chooses one of two to eight matrices by a number of its own, such as its tag in `U(tag(n), i, j)`,
  /// the nodes of a batch are sorted by that number: those that chose the same have a product in common, whose matrix
  /// is read once for all of them. The same bits. For trees and DAGs in batches, and the first such number of a model.
  [[nodiscard]] Schedule sort_by_matrix() const {
    return with([](Schedule& s) { s.sorting = Sorting::on; });
  }
  /// The same for matrices of 96 x 96 elements or more (64 x 64 that children of a DAG choose), on CPUs, and not where
  /// loops are scheduled by hand.
  [[nodiscard]] Schedule sort_by_matrix_where_it_pays() const {
    return with([](Schedule& s) { s.sorting = Sorting::where_it_pays; });
  }
  /// Nodes stay in the order in which they are found, whatever the schedule said of matrices before.
  [[nodiscard]] Schedule sort_by_no_matrix() const {
    return with([](Schedule& s) { s.sorting = Sorting::off; });
  }
  /// What follows at a node from its integer fields alone (the product of a word's vector with a weight, all that a
  /// leaf computes of its word), and what follows from weights alone, is computed when weights are bound, for each
  /// value that the fields may have, and calls read it from tables: the same bits. The tables of a model take at most
  /// `megabytes`, from 1 to 65536; what does not fit is computed in calls. It takes a contraction to be worth a table.
  [[nodiscard]] Schedule tabulate(int megabytes = usual_table_megabytes) const {
    return with([&](Schedule& s) { s.tabulating = Tabulating::on, s.table_megabytes = megabytes; });
  }
  /// The same with 64 MB, for machine code: not for the interpreter, which is slow to make tables, nor for products on
  /// a GPU's tensor cores, nor where loops are scheduled by hand, for both of which `tabulate` is refused.
  [[nodiscard]] Schedule tabulate_where_it_pays() const {
    return with(
        [](Schedule& s) { s.tabulating = Tabulating::where_it_pays, s.table_megabytes = usual_table_megabytes; });
  }
  /// What depends on a node's fields is computed in calls, whatever the schedule said of tables before; what follows
  /// from weights alone is computed when they are bound all the same.
  [[nodiscard]] Schedule tabulate_nothing() const {
    return with([](Schedule& s) { s.tabulating = Tabulating::off, s.table_megabytes = usual_table_megabytes; });
  }
  /// At most `count` threads share one call, each owning a slice of every operator's last dimension: as many of them as
  /// are free. Takes the place of `workers_where_they_pay`.
  [[nodiscard]] Schedule workers(int count) const {
    return with([&](Schedule& s) { s.max_workers = count, s.fewer_workers = false; });
  }
  /// A call takes fewer where the compiler predicts that more would not shorten it by a tenth: threads that wait for
  /// each other at every level of a small model take longer than one, and so may threads that have to be woken. At most
  /// as many as `workers` says before; where that says nothing, the caller and the threads of the pool that the model
  /// is compiled with.
  [[nodiscard]] Schedule workers_where_they_pay() const {
    return with([](Schedule& s) { s.fewer_workers = true; });
  }
  /// How many threads may share a call, or a group of one: any number up to `max_workers`; where a call may take fewer,
  /// powers of two and all of them. Slices then are of few sizes, and half of the machine code, which is for what other
  /// slices leave over, is not made.
  Vector<int> team_sizes() const {
    Vector<int> sizes;
    for (int size = 1; size < max_workers; size = fewer_workers ? 2 * size : size + 1) sizes.push_back(size);
    sizes.push_back(std::max(max_workers, 1));
    return sizes;
  }
  /// The threads that share a call stand in at most `count` groups of one size, from 1 to 1024. Each group numbers and
  /// computes its own share of the call's roots, and its threads own slices; groups do not wait for each other. 1: all
  /// threads compute all roots. 0 leaves it to the compiler, which compares barriers with weights that each group reads
  /// again. What a call has of roots and threads bounds its groups; a call whose roots share nodes has one, but for a
  /// DAG whose groups share few. Several threads read the nodes at the same time. On a GPU, the most
  /// groups of blocks that a launch has. No number changes results.
  [[nodiscard]] Schedule groups(int count) const {
    return with([&](Schedule& s) { s.num_groups = count; });
  }
  /// Stores the input `input` of f32 as `type`: f32, bf16, f16, or i8, whole numbers times a scale for each index of
  /// the dimensions that no sum runs over (a row of a matrix that multiplies a vector, a row of a table). What is bound
  /// is f32 all the same, and rounded to the nearest when it is bound; arithmetic is in f32. Decides over
  /// `store_weights`.
  template <class Op>
  [[nodiscard]] Schedule store(const Op& input, DType type) const {
    return with([&](Schedule& s) {
      for (auto& [name, known] : s.stored)
        if (name == name_of(input)) return void(known = type);
      s.stored.emplace_back(name_of(input), type);
    });
  }
  /// Stores as `type` all weights that sums of products read, such as the matrices of a cell. Vectors, and tables that
  /// nodes look up, stay f32 unless `store` names them.
  [[nodiscard]] Schedule store_weights(DType type) const {
    return with([&](Schedule& s) { s.weight_type = type; });
  }
  /// Runs the loops of the lowered program as `steps` (a `cortex::Loops`) say, and not as the compiler would.
  template <std::derived_from<LoopSchedule> Steps>
  [[nodiscard]] Schedule loops(Steps steps) const {
    return with([&](Schedule& s) { s.by_hand = LoopsByHand(std::make_shared<const Steps>(std::move(steps))); });
  }
  /// Register tiles of at most `count` nodes (or edges), 1 to 24; 0, here and below, leaves it to the compiler. A
  /// number that registers do not hold is legal, and slow.
  [[nodiscard]] Schedule tile_rows(int count) const {
    return with([&](Schedule& s) { s.tiling.rows = count; });
  }
  /// Register tiles of at most `count` vectors of each gate's outputs, 1 to 8.
  [[nodiscard]] Schedule tile_vectors(int count) const {
    return with([&](Schedule& s) { s.tiling.vectors = count; });
  }
  /// At most `count` products side by side in one pass over what they read, 1 to 16: the gates of a cell.
  [[nodiscard]] Schedule tile_gates(int count) const {
    return with([&](Schedule& s) { s.tiling.gates = count; });
  }
  /// Each worker reads its weights backwards in every other sweep over them, so that a sweep begins with what the one
  /// before ended with, which its cache still holds. Left to the compiler, it does so where its slice of the weights of
  /// a level, in a group of one worker if need be, is more than three fifths of the second-level cache.
  [[nodiscard]] Schedule alternate_sweeps() const {
    return with([](Schedule& s) { s.tiling.sweeps = Tiling::Sweeps::alternating; });
  }
  /// All sweeps over weights go the same way.
  [[nodiscard]] Schedule sweep_forward() const {
    return with([](Schedule& s) { s.tiling.sweeps = Tiling::Sweeps::forward; });
  }
  /// Products are made with vectors even where a CPU's matrix unit (Intel's AMX) would make them: those of rows of
  /// nodes with weights stored as bf16. The unit multiplies bf16 exactly and adds in f32; rows of f32 go through it as
  /// sums of three of bf16, so that its error is that of sums in f32. But numbers below 1e-33 lose digits there, those
  /// above 3.39e38 count as infinite, and an infinite number in a row makes a NaN.
  [[nodiscard]] Schedule multiply_in_vectors() const {
    return with([](Schedule& s) { s.vectors_alone = true; });
  }
  /// The C library's functions (tanh, sigmoid, exp, log, erf, sin, ...) in place of the approximations.
  [[nodiscard]] Schedule exact_activations() const {
    return with([](Schedule& s) { s.exact = true; });
  }

  /// Each operator has loops of its own, and its values at all nodes lie in memory, as where operators are calls of a
  /// library: what fusion saves (paper section 7.3). Refused with `loops`, where nothing is fused but by their steps.
  [[nodiscard]] Schedule fuse_nothing() const {
    return with([](Schedule& s) { s.fuses = false; });
  }

  /// How a GPU shares the work.
  [[nodiscard]] Schedule on_gpu(const GpuSchedule& how) const {
    return with([&](Schedule& s) { s.gpu = how; });
  }

  /// Batched, every branch on is_leaf, every switch and branches on whose sides nodes multiply specialized, leaves
  /// apart; small levels filled, large calls in pieces, equal subtrees shared, batches sorted by matrices, words
  /// tabulated and calls shared by several threads where it pays.
  static Schedule standard() {
    return Schedule{}
        .dynamic_batch()
        .fill_levels_where_it_pays()
        .pieces_where_they_pay()
        .specialize_where_it_pays()
        .specialize_leaves()
        .share_subtrees_where_it_pays()
        .sort_by_matrix_where_it_pays()
        .tabulate_where_it_pays()
        .workers_where_they_pay();
  }

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
