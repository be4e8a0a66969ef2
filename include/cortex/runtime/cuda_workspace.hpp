// The memory of one call on a device: what goes up, the tensors, and an event after the kernel.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/runtime/cuda_counters.hpp"
#include "cortex/runtime/cuda_device.hpp"
#include "cortex/runtime/cuda_executable.hpp"
#include "cortex/runtime/cuda_launch.hpp"
#include "cortex/runtime/cuda_progress.hpp"
#include "cortex/runtime/cuda_source.hpp"
#include "cortex/runtime/cuda_transfers.hpp"
#include "cortex/runtime/cuda_upload.hpp"
#include "cortex/runtime/groups.hpp"
#include "cortex/runtime/guards.hpp"
#include "cortex/runtime/memory.hpp"
#include "cortex/runtime/workers.hpp"
#include "cortex/runtime/workspace.hpp"

namespace cortex::runtime {

/// How a call comes to the device: with its launch or in one transfer before, or a kernel that stays there fetches it
/// (`codegen::CudaMail`).
enum class CudaWay { transfer, letter };

/// Whether the kernel writes the first state of the roots to memory of the host, too, if that is worth it.
enum class CudaLanding { none, roots };

/// Used by one call at a time. It grows to the largest call that it has served; after that a call allocates nothing.
class CudaWorkspace {
 public:
  CudaWorkspace(std::shared_ptr<const CudaSource> source, std::shared_ptr<const CudaDevice> device)
      : source_(std::move(source)),
        device_(std::move(device)),
        blocks_(std::size_t(source_->code->shape.blocks)),
        part_(source_->code->executable->program),
        links_(in_order(*source_->plan)),
        stopwatch_(source_->code->timings ? std::make_unique<CudaStopwatch>(device_) : nullptr),
        tensors_(source_->plan->storage.size()),
        progress_(device_) {}
  CudaWorkspace(const CudaWorkspace&) = delete;
  CudaWorkspace& operator=(const CudaWorkspace&) = delete;

  CudaRoots& given_roots() { return given_roots_; }
  /// Has `number(workspace, given roots)` number the nodes of each group of a call, with the limits that the weights
  /// give, and checks what it cannot: on threads of the model's pool, too, where they are worth it. Throws what the
  /// first that failed has thrown.
  template <class Number>
  void number_groups(std::size_t groups, std::size_t roots, const Number& number) {
    while (groups_.size() < groups) groups_.push_back(std::make_unique<Workspace>(source_->plan));
    if (given_roots_.own.size() < groups) given_roots_.own.resize(groups);
    for (std::size_t g = 0; g < groups; ++g) {
      groups_[g]->refresh(source_->weights.published(), no_workers_);
      if (!groups_[g]->weights().fault.empty()) throw Error(Code::invalid_weights, groups_[g]->weights().fault);
    }
    const auto one = [&](int group) {
      const std::size_t g = std::size_t(group);
      number(*groups_[g], given_roots_.of_group(g, groups, roots));
      check_guarded(*source_->plan, groups_[g]->nodes, groups_[g]->weights());
    };
    const std::shared_ptr<Workers> pool = groups > 1 ? source_->workers.current().value : nullptr;
    if (!pool) return deal_out(nullptr, 1, int(groups), one);
    std::atomic<double>& root_seconds = source_->root_seconds;
    const double expected = root_seconds.load(std::memory_order_relaxed);
    const Workers::Free free = pool->free(int(std::min(groups, std::size_t(max_call_workers))));
    std::atomic<std::int64_t> all_ns{0};
    deal_out(pool.get(), numbering_team(groups, free.all, free.awake, expected * double(roots)), int(groups),
             [&](int g) { all_ns += ns_of([&] { one(g); }); });
    const double seconds = 1e-9 * double(all_ns.load()) / double(roots);
    // A call that is slow because its memory is new is forgotten at once.
    const double usual = expected > 0 ? std::min(seconds, (3 * expected + seconds) / 4) : seconds;
    root_seconds.store(usual, std::memory_order_relaxed);
  }

  /// Lays out a call on what the linearizers of the first `count` groups have numbered, for `weights`. Allocates if it
  /// is larger than all before it, and waits for the last call of this workspace.
  void prepare(std::size_t count, std::shared_ptr<const CudaWeights> weights, CudaWay way, CudaLanding landing) {
    const std::int64_t before = is_timed() ? now_ns() : 0;
    progress_.wait();
    if (is_timed()) linearizing_since_ns_ += now_ns() - before;  // a wait is no linearization
    num_groups_ = count, way_ = way;
    sent_ = count == 0;  // then nothing is to be sent
    counters_ = {};
    weights_ = std::move(weights);
    counts_.resize(count);
    for (std::size_t g = 0; g < count; ++g) counts_[g] = counts_of(arrays(g));
    num_roots_ = 0;
    for (std::size_t g = 0; g < num_groups_; ++g) num_roots_ += std::size_t(arrays(g).num_roots);
    provide_tensors();
    list_moves();
    provide_landing(landing);
    if (way_ == CudaWay::transfer) provide_words();
    write_upload();
    with_launch_ = way_ == CudaWay::transfer && roots_at_ <= source_->code->text.with_launch ? roots_at_ : 0;
    counters_.bytes_up = with_launch_ ? with_launch_ : upload_bytes_;
  }

  /// The call as a letter, and where it goes on the device.
  jit::CudaPointer letter() const { return reinterpret_cast<jit::CudaPointer>(staging_.data()); }
  jit::CudaPointer room() const { return upload_.at(); }
  /// From a group's slot of it to the next, in bytes.
  std::size_t stride() const { return stride_; }
  const std::shared_ptr<const CudaWeights>& weights() const { return weights_; }
  /// The call has been served; its times, and how often the kernel had to be launched for it.
  void note_served(int launches, std::int64_t copy_ns, std::int64_t serve_ns) {
    sent_ = true;
    counters_.launches = launches;
    counters_.bytes_down += num_landed_ * first_state().row_bytes;
    if (is_timed()) counters_.copy_ns = copy_ns, counters_.kernel_ns = serve_ns;
  }
  /// The first state of the roots if the kernel writes it to the host, a row each; else null.
  const std::byte* landed() const { return num_landed_ ? landed_.data() : nullptr; }

  /// Launches the kernel, with what the call brings or after sending it up, on `stream`, after what this workspace has
  /// been used for so far. Does not wait, allocates nothing, and can be captured into a graph.
  void launch(jit::CudaHandle function, jit::CudaHandle stream) {
    if (num_groups_ == 0) return;
    progress_.in_order(stream, [&] { send(function, stream); });
    sent_ = true;
    ++counters_.launches;
    counters_.bytes_down += num_landed_ * first_state().row_bytes;
  }

  /// Writes a state's rows at the roots to `out` on the device, dense and one after the other: on `stream`, in the
  /// same way.
  void gather(jit::CudaHandle function, const StateView& state, jit::CudaPointer out, jit::CudaHandle stream) {
    if (num_groups_ == 0) return;
    const std::size_t words = size_of(state.dtype) / 4;
    const Vector<std::int64_t>& begin = state.runs.begin;
    codegen::CudaGather what;
    what.call = upload_.at(), what.roots = upload_.at() + roots_at_, what.out = out;
    what.row = std::int64_t(state.row_bytes / 4), what.buffer = state.buffer;
    what.run = std::int32_t(state.runs.length * std::int64_t(words)), what.runs = std::int32_t(begin.size());
    what.stride = begin.size() > 1 ? std::int32_t(begin[1] * std::int64_t(words)) : 0;
    for (std::size_t r = 0; r < begin.size(); ++r)
      if (begin[r] * std::int64_t(words) != std::int64_t(r) * what.stride)
        throw Error(Code::internal, "a state's rows do not lie at even distances");
    jit::cuda::LaunchConfig config{};
    config.grid[0] = unsigned(num_roots_), config.grid[1] = config.grid[2] = 1;
    config.block[0] = unsigned(codegen::cuda_gather_threads), config.block[1] = config.block[2] = 1;
    config.stream = stream;
    progress_.in_order(stream, [&] {
      // What only this kernel reads, or what came with another launch.
      if (way_ == CudaWay::letter || with_launch_) {
        const std::size_t from = with_launch_ ? 0 : roots_at_, bytes = roots_at_ + roots_bytes() - from;
        counters_.bytes_up += bytes;
        send_up(from, bytes, stream);
      }
      launch_kernel(*device_, function, config, what);
    });
    ++counters_.launches;
  }

  /// Whether the call laid out last has been made, sent to the device or to a graph, as far as anyone can tell.
  bool is_sent() const { return sent_ || progress_.is_in_doubt(); }

  /// The uses of its memory on the device.
  CudaProgress& progress() { return progress_; }
  const CudaProgress& progress() const { return progress_; }

  /// Lets go of weights that have been replaced, so that a workspace at rest does not keep their memory: unless a
  /// kernel may still read them.
  void forget_replaced(const CudaWeights* current) {
    if (weights_.get() == current || progress_.is_pending()) return;
    weights_ = nullptr;
    for (const auto& group : groups_) group->forget_replaced(source_->weights.published(), no_workers_);
  }

  /// Until what stands before the last event is done. Throws for what went wrong on the device.
  void wait() {
    progress_.wait();
    if (source_->code->spin_limit && num_groups_) check_barrier();
  }

  /// Of the call laid out last, which has been waited for.
  CudaCounters counters() const {
    CudaCounters counters = counters_;
    counters.device_bytes = upload_.size() + words_.size();
    for (const CudaBlock& tensor : tensors_) counters.device_bytes += tensor.size();
    if (stopwatch_ && counters.launches && way_ == CudaWay::transfer) {
      counters.copy_ns = stopwatch_->between(CudaStopwatch::before_copy, CudaStopwatch::before_kernel);
      counters.kernel_ns = stopwatch_->between(CudaStopwatch::before_kernel, CudaStopwatch::after_kernel);
    }
    return counters;
  }
  bool is_timed() const { return stopwatch_ != nullptr; }
  /// The time between the two is linearization, but for that in which `prepare` waits for an older call.
  void begin_linearization() {
    if (is_timed()) linearizing_since_ns_ = now_ns();
  }
  void end_linearization() {
    if (is_timed()) counters_.linearize_ns = now_ns() - linearizing_since_ns_;
  }

  const Plan& plan() const { return *source_->plan; }
  std::size_t num_groups() const { return num_groups_; }
  /// The weights whose extents bound what a group's nodes may index.
  const WeightSet& checked_weights(std::size_t group) const { return groups_[group]->weights(); }
  const structure::Arrays& arrays(std::size_t group) const { return groups_[group]->arrays(); }
  /// What has been numbered, whatever has been bound since.
  const auto& nodes(std::size_t group) const { return groups_[group]->nodes; }

  /// Where a state of a group begins on the device.
  jit::CudaPointer state(std::size_t group, const StateView& view) const {
    return pointers_[table_of(group) + std::size_t(view.buffer)];
  }

  /// Brings rows to the host, waits for them, and gives each to `take(number, const std::byte*)`. The call has been
  /// waited for, and the stream that it was made on may be no more.
  template <class Take>
  void copy_back(const CudaTransfers& transfers, const Take& take) {
    std::size_t total = 0;
    for (const CudaTransfers::Piece& piece : transfers.pieces) total += std::size_t(piece.to - piece.from);
    grow(landing_, total);
    device_->on_own_stream("a copy of results", [&](jit::CudaHandle stream) {
      std::size_t landed = 0;
      for (const CudaTransfers::Piece& piece : transfers.pieces) {
        const std::size_t length = std::size_t(piece.to - piece.from);
        enqueue_copy(landing_.data() + landed, piece.from, length, stream);
        landed += length;
      }
    });
    for (std::size_t i = 0; i < transfers.at.size(); ++i) take(i, landing_.data() + transfers.at[i]);
  }

  /// The rows of a state at all roots, dense and one after the other, as the kernel `function` has written them to
  /// memory of the host; until the next call.
  const std::byte* gather_back(jit::CudaHandle function, const StateView& state) {
    const std::size_t bytes = num_roots_ * std::size_t(state.size) * size_of(state.dtype);
    grow(landing_, bytes);
    device_->on_own_stream("the gathering of results", [&](jit::CudaHandle stream) {
      gather(function, state, reinterpret_cast<jit::CudaPointer>(landing_.data()), stream);
    });
    counters_.bytes_down += bytes;
    return landing_.data();
  }

 private:
  static constexpr std::size_t line_bytes = 64;  // where arrays begin: there are many small ones

  /// Counts, other arrays that go to shared memory, and the rest: what goes there lies together.
  static Vector<Link> in_order(const Plan& plan) {
    Vector<Link> links;
    const auto rank = [&](const Link& link) {
      const ir::BufferInfo& buffer = *plan.executable->program.buffers[std::size_t(link.buffer)];
      return link.source == Source::counts ? 0 : codegen::is_structure(buffer) ? 1 : 2;
    };
    for (const int wanted : {0, 1, 2})
      for (const Link& link : plan.links)
        if (rank(link) == wanted) links.push_back(link);
    return links;
  }

  void send(jit::CudaHandle function, jit::CudaHandle stream) {
    if (stopwatch_) stopwatch_->mark(CudaStopwatch::before_copy, stream);
    launch_.call = upload_.at(), launch_.words = words_.at() + fault_bytes, launch_.fault = words_.at();
    launch_.before = !moves_.empty(), launch_.after = num_landed_ > 0;
    launch_.with_launch = std::int32_t(with_launch_);
    if (with_launch_)
      std::memcpy(launch_.in, staging_.data(), with_launch_);
    else
      send_up(0, upload_bytes_, stream);
    LaunchAttributes attributes;
    const jit::cuda::LaunchConfig config = launch_config(*source_->code, num_groups_, stream, attributes);
    if (stopwatch_) stopwatch_->mark(CudaStopwatch::before_kernel, stream);
    launch_kernel(*device_, function, config, launch_);
    if (stopwatch_) stopwatch_->mark(CudaStopwatch::after_kernel, stream);
  }

  void enqueue_copy(void* to, jit::CudaPointer from, std::size_t bytes, jit::CudaHandle stream) {
    counters_.bytes_down += bytes;
    device_->call("a copy of results",
                  [&](const jit::CudaDriver& d) { return d.MemcpyDtoHAsync(to, from, bytes, stream); });
  }

  /// Makes `block` at least so large; what it held is lost.
  template <class AnyBlock>
  void grow(AnyBlock& block, std::size_t bytes) {
    if (block.size() >= bytes) return;
    block = AnyBlock();  // before the new one: both may not fit
    block = AnyBlock(device_, aligned(bytes + bytes / 2));
  }

  /// Where each group's tensors lie: those of one buffer side by side, the first group's first.
  void provide_tensors() {
    const Plan& plan = *source_->plan;
    pointers_.assign(part_of(num_groups_), 0);
    for (std::size_t s = 0; s < plan.storage.size(); ++s) {
      const Storage& storage = plan.storage[s];
      if (const CudaTables* tables = tables_of(storage.tabulation)) {  // the program does not write it
        for (std::size_t g = 0; g < num_groups_; ++g)
          pointer(g, storage.buffer) = tables->blocks[std::size_t(storage.result)]->at();
        continue;
      }
      const std::size_t copies = storage.per_worker ? blocks_ : 1;
      std::size_t bytes = 0;
      for (std::size_t g = 0; g < num_groups_; ++g)
        bytes += copies * aligned(rows_of(storage, arrays(g)) * storage.row_bytes);
      grow(tensors_[s], std::max(bytes, device_alignment));
      jit::CudaPointer at = tensors_[s].at();
      for (std::size_t g = 0; g < num_groups_; ++g) {
        const std::size_t own = aligned(rows_of(storage, arrays(g)) * storage.row_bytes);
        pointer(g, storage.buffer) = at;
        if (storage.per_worker) step(g, storage.buffer) = own;
        at += copies * own;
      }
    }
    for (std::size_t buffer = 0; buffer < weights_->blocks.size(); ++buffer)
      if (weights_->blocks[buffer])
        for (std::size_t g = 0; g < num_groups_; ++g) pointer(g, int(buffer)) = weights_->blocks[buffer]->at();
  }

  /// The tables that a tabulation has under the weights of this call, or null.
  const CudaTables* tables_of(int tabulation) const {
    return tabulation < 0 ? nullptr : weights_->tables[std::size_t(tabulation)].get();
  }

  /// The rows that calls find in tables, group by group: from where, and to where in each tensor, after
  /// `provide_tensors`.
  void list_moves() {
    moves_.clear(), first_move_.clear();
    const Plan& plan = *source_->plan;
    for (std::size_t g = 0; g < num_groups_; ++g) {
      first_move_.push_back(moves_.size());
      for (const PlacedRows& placed : plan.placed) {
        const CudaTables* const tables = tables_of(placed.tabulation);
        if (!tables) continue;
        const ir::Tabulation& tabulation = plan.executable->program.tabulations[std::size_t(placed.tabulation)];
        const jit::CudaPointer from = tables->blocks[std::size_t(placed.result)]->at();
        const TabulatedNodes nodes(tabulation, arrays(g));
        for (const structure::NodeNumbers& range : nodes.ranges)
          for (std::int64_t position = range.first; position < range.first + range.count; ++position) {
            const std::int64_t node = nodes[position];
            const std::size_t row = table_row(tabulation, tables->extents, arrays(g), plan.order.field, node);
            jit::CudaPointer to = pointer(g, placed.buffer) + std::uint64_t(node) * placed.row_bytes;
            for (std::size_t b = 0; b < (placed.per_worker ? blocks_ : 1); ++b) {
              moves_.push_back({from + row * placed.row_bytes, to, placed.row_bytes / 4});
              if (placed.per_worker) to += step(g, placed.buffer);
            }
          }
      }
    }
    first_move_.push_back(moves_.size());
  }

  /// Where a buffer of a group is, the first block's where each has its own, and how far it is then to the next's.
  jit::CudaPointer& pointer(std::size_t group, int buffer) { return pointers_[table_of(group) + std::size_t(buffer)]; }
  jit::CudaPointer& step(std::size_t group, int buffer) {
    return pointers_[table_of(group) + part_.step(std::size_t(buffer))];
  }
  /// Where a group's part begins in `pointers_`, and its table: as in `codegen::cuda_parts`.
  std::size_t part_of(std::size_t group) const { return group * part_.words(); }
  std::size_t table_of(std::size_t group) const { return part_of(group) + part_.head; }

  std::size_t word_bytes() const {
    const codegen::CudaText& text = source_->code->text;
    return num_groups_ * std::size_t(codegen::cuda_barrier_words(text.barrier, int(blocks_))) * 8;
  }

  /// What a barrier that was given up leaves, and the words of each group's barrier: zero at first.
  void provide_words() {
    const std::size_t bytes = fault_bytes + word_bytes();
    if (words_.size() < bytes) {
      words_are_clear_ = false;
      grow(words_, bytes);
    }
    if (!words_are_clear_) clear_words();
  }
  void clear_words() {
    words_are_clear_ = false;
    device_->on_own_stream("cuMemsetD8", [&](jit::CudaHandle stream) {
      device_->call("cuMemsetD8",
                    [&](const jit::CudaDriver& d) { return d.MemsetD8Async(words_.at(), 0, words_.size(), stream); });
    });
    words_are_clear_ = true;
  }

  /// Each group's head and table of pointers, then each group's arrays, which code may read past their ends as on CPUs
  /// (both arms of a choice are evaluated, also where there is no child), and the rows that it moves; in a letter the
  /// arrays of each group follow its own table, at even distances. Last the list of roots, which a kernel that stays
  /// does not fetch.
  void write_upload() {
    const Plan& plan = *source_->plan;
    const auto& buffers = plan.executable->program.buffers;
    const auto array = [&](std::size_t g, const Link& link) {
      return linked_array(link, buffers[std::size_t(link.buffer)]->dtype, arrays(g), counts_[g], weights_->computes);
    };
    const std::size_t part = aligned(part_.words() * sizeof(jit::CudaPointer), line_bytes);
    const std::size_t parts = aligned(pointers_.size() * sizeof(jit::CudaPointer), line_bytes);
    std::size_t all = 0, most = 0;
    for (std::size_t g = 0; g < num_groups_; ++g) {
      std::size_t bytes = aligned(num_rows_of(g) * sizeof(codegen::CudaMove), line_bytes);
      for (const Link& link : links_) bytes += aligned(array(g, link).bytes + slack_bytes, line_bytes);
      all += bytes, most = std::max(most, bytes);
    }
    provide_upload(way_ == CudaWay::transfer ? parts + all : slots_of(part + most));
    upload_bytes_ = way_ == CudaWay::transfer ? roots_at_ + roots_bytes() : num_groups_ * part + all;
    std::size_t at = parts;
    for (std::size_t g = 0; g < num_groups_; ++g) {
      if (way_ == CudaWay::letter) at = part_at(g) + part;
      const std::size_t begin = at;
      std::size_t structure = 0;  // bytes of what may be brought near
      for (const Link& link : links_) {
        const LinkedArray from = array(g, link);
        if (from.bytes) std::memcpy(staging_.data() + at, from.data, from.bytes);
        std::memset(staging_.data() + at + from.bytes, 0, slack_bytes);
        pointer(g, link.buffer) = upload_.at() + at;
        at += aligned(from.bytes + slack_bytes, line_bytes);
        if (codegen::is_structure(*buffers[std::size_t(link.buffer)])) structure = at - begin;
      }
      at = write_rows(g, begin, structure, at);
      std::memcpy(staging_.data() + part_at(g), pointers_.data() + part_of(g), part_.words() * sizeof pointers_[0]);
    }
    write_roots();
  }

  /// Slots of a letter with room for so many bytes each. They are as far from each other as in the call before, so that
  /// the kernel need not be told, if that is no nearer and takes no more memory than there is.
  std::size_t slots_of(std::size_t bytes) {
    constexpr std::size_t step = 1024;
    const std::size_t least = std::max(aligned(bytes, step), codegen::cuda_first_piece(source_->code->shape.threads));
    const std::size_t before = num_groups_ * stride_ + roots_bytes();
    if (stride_ < least || before > staging_.size() || before > upload_.size()) stride_ = least;
    return num_groups_ * stride_;
  }
  /// Room for so many bytes of groups, with the list of roots behind them.
  void provide_upload(std::size_t bytes) {
    roots_at_ = bytes;
    grow(staging_, bytes + roots_bytes());
    grow(upload_, bytes + roots_bytes());
  }
  std::size_t roots_bytes() const { return num_roots_ * sizeof(codegen::CudaGatheredRoot); }
  /// Where a group's part is in what goes up, in bytes.
  std::size_t part_at(std::size_t group) const {
    return way_ == CudaWay::letter ? group * stride_ : part_of(group) * sizeof(jit::CudaPointer);
  }

  /// Where each root's rows are, in the order in which the caller gave the roots.
  void write_roots() {
    auto* to = reinterpret_cast<codegen::CudaGatheredRoot*>(staging_.data() + roots_at_);
    for (std::size_t r = 0; r < num_roots_; ++r) {
      const RootPlace place = place_of_root(r, num_groups_);
      const std::size_t table = part_at(place.group) / sizeof(jit::CudaPointer) + part_.head;
      *to++ = {std::int32_t(table), arrays(place.group).root[place.number]};
    }
  }

  const StateView& first_state() const { return source_->plan->states[0]; }

  /// Room on the host for the first state of the roots: if its elements lie side by side, and come in the time in which
  /// a copy by the device's engine would begin.
  void provide_landing(CudaLanding landing) {
    constexpr std::size_t worth = 128 << 10;
    const std::size_t bytes = num_roots_ * first_state().row_bytes;
    num_landed_ = landing == CudaLanding::roots && bytes <= worth && first_state().runs.contiguous() ? num_roots_ : 0;
    if (num_landed_) grow(landed_, bytes);
  }
  std::size_t num_rows_of(std::size_t group) const {
    return first_move_[group + 1] - first_move_[group] + (num_landed_ ? std::size_t(arrays(group).num_roots) : 0);
  }
  /// The head of a group's part, and after its arrays, which end at `at`, the rows to be moved. Returns where they
  /// end.
  std::size_t write_rows(std::size_t group, std::size_t begin, std::size_t structure, std::size_t at) {
    const std::size_t before = first_move_[group + 1] - first_move_[group], rows = num_rows_of(group);
    const std::size_t end = at + aligned(rows * sizeof(codegen::CudaMove), line_bytes);
    jit::CudaPointer* const head = pointers_.data() + part_of(group);
    // From where its part would be in a transfer.
    head[part_.arrays_at] = begin - part_at(group) + part_of(group) * sizeof head[0];
    head[part_.arrays_bytes] = end - begin, head[part_.moved_rows] = part_.rows(before, rows - before);
    head[part_.near_bytes] = structure <= INT32_MAX ? structure : 0;
    auto* to = reinterpret_cast<codegen::CudaMove*>(staging_.data() + end) - rows;
    for (std::size_t m = 0; m < before; ++m) *to++ = moves_[first_move_[group] + m];
    const StateView& state = first_state();
    const std::uint64_t words = std::uint64_t(state.size) * size_of(state.dtype) / 4;
    for (std::size_t number = 0; number < rows - before; ++number) {
      const std::size_t root = root_at({group, number}, num_groups_);
      *to++ = {this->state(group, state) + std::uint64_t(arrays(group).root[number]) * state.row_bytes,
               reinterpret_cast<std::uint64_t>(landed_.data() + root * state.row_bytes), words};
    }
    return end;
  }
  void send_up(std::size_t from, std::size_t bytes, jit::CudaHandle stream) {
    device_->call("the copy of a call's arrays", [&](const jit::CudaDriver& d) {
      return d.MemcpyHtoDAsync(upload_.at() + from, staging_.data() + from, bytes, stream);
    });
  }

  void check_barrier() {
    codegen::CudaFault fault{};
    const jit::CudaPointer at = words_.at();
    copy_back(CudaTransfers({&at, 1}, sizeof fault),
              [&](std::size_t, const std::byte* bytes) { std::memcpy(&fault, bytes, sizeof fault); });
    if (!fault.given_up) return;
    clear_words();
    throw Error(Code::internal, "a barrier was given up: of group " + std::to_string(fault.group) + " block " +
                                    std::to_string(fault.block) + " did not arrive");
  }

  const std::shared_ptr<const CudaSource> source_;
  const std::shared_ptr<const CudaDevice> device_;
  const std::size_t blocks_;  // of a group
  const codegen::CudaPart part_;
  const Published<Workers> no_workers_{nullptr};
  const Vector<Link> links_;  // of the plan, `in_order`
  Vector<std::unique_ptr<Workspace>> groups_;
  Vector<Counts> counts_;
  std::shared_ptr<const CudaWeights> weights_;
  CudaRoots given_roots_;
  Vector<codegen::CudaMove> moves_;
  std::size_t num_groups_ = 0, num_roots_ = 0, upload_bytes_ = 0, roots_at_ = 0;
  std::size_t stride_ = 0;       // of slots of letters
  std::size_t with_launch_ = 0;  // bytes that come with the launch and not in a transfer
  codegen::CudaLaunch launch_;
  bool sent_ = false;
  std::size_t num_landed_ = 0;  // roots whose first state the kernel writes to the host
  CudaWay way_ = CudaWay::transfer;
  Vector<std::size_t> first_move_;          // [groups + 1]
  PinnedBlock staging_, landing_, landed_;  // of what goes up, of copies, and of what the kernel writes
  CudaBlock upload_, words_;
  const std::unique_ptr<CudaStopwatch> stopwatch_;
  CudaCounters counters_;
  std::int64_t linearizing_since_ns_ = 0;
  Vector<CudaBlock> tensors_;          // [Plan::storage]
  Vector<jit::CudaPointer> pointers_;  // [groups][part_.words()]
  bool words_are_clear_ = false;
  CudaProgress progress_;  // which waits before the memory goes
};

}  // namespace cortex::runtime
