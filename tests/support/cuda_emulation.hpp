// A GPU on the host: each thread of a launch is a fibre, which runs until it meets a barrier or waits for memory. Finds
// accesses outside of memory and such as are not aligned, reads of what nothing has written, races by vector clocks,
// and threads that wait for ever.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cortex::test {

/// The table that kernels call; its layout is that of `Emulator` in cuda_emulation_device.hpp.
struct EmulatorTable {
  int (*thread)();
  int (*block)();
  char* (*shared)();
  void (*sync_block)();
  void (*sync_cluster)();
  void (*sync_warp)();
  void (*exchange)();
  char* (*warp_board)();
  void (*relax)();
  bool (*touch)(const void*, int, bool);
  bool (*synchronise)(const void*, bool, bool);
  bool (*sync_block_or)(bool);
  bool (*touch_constant)(const void*, int);
  bool (*synchronise_system)(const void*, bool, bool);
  unsigned long long (*clock_ns)();
  char* (*shared_of)(int block);
};

class Emulation;

/// What is known of a piece of memory: which words have been written, and who touched them when. Words are of 4 bytes;
/// where a kernel touches less at once, as small. Host code writes between launches, which order all.
class WatchedMemory {
 public:
  void add(const void* begin, std::size_t bytes) {
    regions_[address(begin)] = Region{bytes, 4, {}};
    regions_[address(begin)].words.resize((bytes + 3) / 4);
    last_ = nullptr;
  }
  void remove(const void* begin) {
    regions_.erase(address(begin));
    last_ = nullptr;
  }
  void written_by_host(const void* at, std::size_t bytes) {
    Region* region = find(at);
    if (!region) return;
    const std::size_t size = region->word_bytes, from = address(at) - begin_;
    for (std::size_t w = from / size; w < (from + bytes + size - 1) / size; ++w) region->words[w].written = true;
  }
  void forget_times() {
    for (auto& [begin, region] : regions_)
      for (Word& word : region.words)
        word.write_time = word.read_time = 0, word.writer = word.reader = 0, word.readers.clear();
  }

 private:
  friend class Emulation;
  const Emulation* user_ = nullptr;  // whose times words have
  struct Word {
    std::uint32_t write_time = 0, read_time = 0;
    std::uint16_t writer = 0, reader = 0;
    bool written = false;
    std::vector<std::uint32_t> readers;  // [thread] when it last read; empty: only `reader` did
  };
  struct Region {
    std::size_t bytes = 0, word_bytes = 4;
    std::vector<Word> words;
    /// Words of `size` bytes from now on, if they are larger: each is as what it was a part of.
    void refine(std::size_t size) {
      if (size >= word_bytes) return;
      std::vector<Word> finer;
      for (const Word& word : words) finer.insert(finer.end(), word_bytes / size, word);
      words = std::move(finer);
      word_bytes = size;
    }
  };
  static std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

  /// The region that holds `at`, and in `begin_` where it begins.
  Region* find(const void* at) {
    const std::uintptr_t a = address(at);
    if (last_ && a >= begin_ && a < begin_ + last_->bytes) return last_;
    auto found = regions_.upper_bound(a);
    if (found == regions_.begin()) return nullptr;
    --found;
    if (a >= found->first + found->second.bytes) return nullptr;
    begin_ = found->first;
    return last_ = &found->second;
  }

  std::map<std::uintptr_t, Region> regions_;
  Region* last_ = nullptr;
  std::uintptr_t begin_ = 0;
};

/// In which order threads that can run do so.
struct Interleaving {
  enum Kind { first_first, last_first, random } kind = first_first;
  std::uint32_t seed = 1;
};

/// One launch. It may be left and gone on with while its threads wait for the host, which is ordered with them by words
/// of the system alone.
class Emulation {
 public:
  struct Shape {
    int blocks = 1, threads = 1, cluster = 1;
    std::size_t shared_bytes = 0;
    int missing_block = -1;  // does not run
  };

  Emulation(WatchedMemory& memory, const Shape& shape, Interleaving order)
      : memory_(memory), shape_(shape), order_(order), random_(order.seed | 1) {
    const int total = shape.blocks * shape.threads;
    fibres_.resize(std::size_t(total));
    clocks_.assign(std::size_t(total) + 1, Clock(std::size_t(total) + 1));  // the last is the host's
    for (int t = 0; t <= total; ++t) clocks_[std::size_t(t)][std::size_t(t)] = 1;
    boards_.resize(std::size_t(total + warp_threads - 1) / warp_threads);
    shared_.resize(std::size_t(shape.blocks));
    for (auto& block : shared_) {
      block.reset(new char[shape.shared_bytes + 16]);
      if (shape.shared_bytes) memory_.add(block.get(), shape.shared_bytes);
    }
    memory_.forget_times();
    memory_.user_ = this;
  }
  ~Emulation() {
    if (memory_.user_ == this) memory_.user_ = nullptr;
    for (auto& block : shared_)
      if (shape_.shared_bytes) memory_.remove(block.get());
  }

  /// Runs `kernel` on all threads; what went wrong first, "" if nothing did.
  template <class Kernel>
  std::string run(const Kernel& kernel) {
    begin(kernel);
    go_on(false);
    return problem_;
  }

  /// Makes `kernel`, which has to stay, ready on all threads.
  template <class Kernel>
  void begin(const Kernel& kernel) {
    kernel_ = [](void* k) { (*static_cast<const Kernel*>(k))(); };
    argument_ = const_cast<Kernel*>(&kernel);
    for (int t = 0; t < int(fibres_.size()); ++t) start(t);
  }

  /// Runs the threads to their ends, or if `until_quiet`, until all that can run only look for what does not come.
  /// Whether they have ended, or cannot go on.
  bool go_on(bool until_quiet) {
    if (memory_.user_ != this) memory_.forget_times();  // what others did meanwhile, the host has ordered
    memory_.user_ = this;
    active() = this;
    yields_ = 0;
    const auto is_quiet = [&] { return until_quiet && yields_ > 64 * (long(ready_.size()) + 1); };
    while (!is_quiet() && pick()) {
      in_thread_ = true;
      swapcontext(&scheduler_, &fibres_[std::size_t(current_)].context);
      in_thread_ = false;
      if (!problem_.empty() && fatal_) break;
    }
    active() = nullptr;
    if (!ready_.empty() && !fatal_) return false;
    for (std::size_t t = 0; t < fibres_.size() && problem_.empty(); ++t)
      if (fibres_[t].state != State::ready && fibres_[t].state != State::done)
        problem(name(int(t)) + " waits at a barrier that others never reach");
    return true;
  }
  const std::string& what_went_wrong() const { return problem_; }

  /// Threads end with the first thing that goes wrong: what they do then may take for ever.
  void stop_at_problems() { stops_ = true; }

  /// The clock that the threads read, each time a nanosecond later.
  void set_clock(std::uint64_t* ns) { clock_ns_ = ns; }

  /// The host reads or writes memory while threads go on: what they have done there, they have to have told it.
  void touch_by_host(const void* at, std::size_t bytes, bool write) {
    WatchedMemory::Region* region = memory_.user_ == this ? memory_.find(at) : nullptr;
    if (!region) return;
    const std::size_t size = region->word_bytes, from = WatchedMemory::address(at) - memory_.begin_;
    current_ = host();  // no thread
    for (std::size_t w = from / size; w < (from + bytes + size - 1) / size; ++w)
      if (write || region->words[w].written) check(region->words[w], w * size / 4, write);
    ++clocks_[std::size_t(host())][std::size_t(host())];
  }

  static const EmulatorTable* table() {
    static const EmulatorTable functions{
        [] { return active()->current_ % active()->shape_.threads; },
        [] { return active()->current_ / active()->shape_.threads; },
        [] { return active()->shared_[std::size_t(active()->current_ / active()->shape_.threads)].get(); },
        [] { active()->meet(State::block); },
        [] { active()->meet(State::cluster); },
        [] { active()->meet(State::warp); },
        [] { active()->meet(State::exchange); },
        [] { return active()->boards_[std::size_t(active()->current_ / warp_threads)].bytes; },
        [] { active()->yield(); },
        [](const void* at, int bytes, bool write) { return active()->touch(at, bytes, write); },
        [](const void* at, bool acquire, bool release) { return active()->synchronise(at, acquire, release); },
        [](bool any) { return active()->vote(any); },
        [](const void* at, int bytes) { return active()->touch_constant(at, bytes); },
        [](const void* at, bool acquire, bool release) { return active()->synchronise_system(at, acquire, release); },
        []() -> unsigned long long { return active()->clock_ns_ ? ++*active()->clock_ns_ : 1; },
        [](int block) { return active()->shared_of(block); }};
    return &functions;
  }

 private:
  using Clock = std::vector<std::uint32_t>;
  enum class State { ready, warp, exchange, block, cluster, done };
  static constexpr int warp_threads = 32;
  struct alignas(16) Board {
    char bytes[1024];
  };
  struct Fibre {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state = State::ready;
    bool vote = false, any = false;  // of a block that meets: the thread's, and what came of all
  };
  static constexpr std::size_t stack_bytes = 1024 * 1024;
  static constexpr long most_yields = 2000000;

  static Emulation*& active() {
    static Emulation* emulation = nullptr;
    return emulation;
  }
  static void enter() {
    Emulation* self = active();
    self->kernel_(self->argument_);
    self = active();
    self->fibres_[std::size_t(self->current_)].state = State::done;
    self->check_left(self->current_);
    setcontext(&self->scheduler_);
  }

  /// The shared memory of a block of this thread's cluster, which has to have begun for certain, and not to have ended.
  char* shared_of(int block) {
    const int own = current_ / shape_.threads, there = own / shape_.cluster * shape_.cluster + block;
    const auto begin = std::size_t(there * shape_.threads), end = begin + std::size_t(shape_.threads);
    bool begun = there == own, running = false;
    for (std::size_t t = begin; t < end; ++t) {
      begun |= clocks_[std::size_t(current_)][t] > 0;
      running |= fibres_[t].state != State::done;
    }
    if (!begun || !running)
      problem(name(current_) + " reaches for the shared memory of block " + std::to_string(there) +
              (begun ? ", which has ended" : ", which may not have begun"));
    return shared_[std::size_t(there)].get();
  }

  int host() const { return int(fibres_.size()); }
  std::string name(int thread) const {
    if (thread == host()) return "the host";
    return "thread " + std::to_string(thread % shape_.threads) + " of block " + std::to_string(thread / shape_.threads);
  }
  void problem(const std::string& what) {
    if (problem_.empty()) problem_ = what;
    if (!in_thread_ || !stops_) return;
    fatal_ = true;
    suspend();
  }

  // ---- fibres ----

  void start(int t) {
    Fibre& fibre = fibres_[std::size_t(t)];
    if (t / shape_.threads == shape_.missing_block) {
      fibre.state = State::done;
      return;
    }
    fibre.stack.reset(new char[stack_bytes]);
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = stack_bytes;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, &Emulation::enter, 0);
    make_ready(t);
  }

  void make_ready(int t) {
    fibres_[std::size_t(t)].state = State::ready;
    ready_.push_back(t);
  }

  bool pick() {
    if (ready_.empty()) return false;
    std::size_t at = 0;
    if (order_.kind == Interleaving::last_first) at = ready_.size() - 1;
    if (order_.kind == Interleaving::random) at = draw() % ready_.size();
    if (yields_ > 0 && order_.kind == Interleaving::last_first)
      at = draw() % ready_.size();  // who waits lets others run
    current_ = ready_[at];
    ready_.erase(ready_.begin() + std::ptrdiff_t(at));
    return true;
  }
  std::uint32_t draw() {
    random_ = random_ * 1664525 + 1013904223;
    return random_ >> 8;
  }

  void suspend() { swapcontext(&fibres_[std::size_t(current_)].context, &scheduler_); }

  void yield() {
    if (++yields_ > most_yields) {
      problem(name(current_) + " waits for ever");
      fatal_ = true;
    }
    ready_.push_back(current_);
    suspend();
  }

  // ---- barriers ----

  std::vector<int> peers(int thread, State kind) const {
    const bool of_warp = kind == State::warp || kind == State::exchange;
    const int size = of_warp ? warp_threads : shape_.threads * (kind == State::cluster ? shape_.cluster : 1);
    const int first = thread / size * size;
    std::vector<int> result;
    for (int t = first; t < first + size; ++t) result.push_back(t);
    return result;
  }

  void meet(State kind) {
    const int self = current_;
    fibres_[std::size_t(self)].state = kind;
    const std::vector<int> all = peers(self, kind);
    const bool complete =
        std::all_of(all.begin(), all.end(), [&](int t) { return fibres_[std::size_t(t)].state == kind; });
    if (!complete) {
      for (const int t : all)
        if (fibres_[std::size_t(t)].state == State::done)
          problem(name(t) + " has ended, but " + name(self) + " waits for it at a barrier");
      return suspend();
    }
    yields_ = 0;
    const bool any = std::any_of(all.begin(), all.end(), [&](int t) { return fibres_[std::size_t(t)].vote; });
    for (const int t : all) fibres_[std::size_t(t)].any = any;
    if (kind != State::exchange) order(all);  // registers change hands, and memory is as it was
    for (const int t : all) make_ready(t);
    suspend();
  }
  bool vote(bool mine) {
    const int self = current_;
    fibres_[std::size_t(self)].vote = mine;
    meet(State::block);
    fibres_[std::size_t(self)].vote = false;
    return fibres_[std::size_t(self)].any;
  }
  /// What any of them did is before what all of them do from now on.
  void order(const std::vector<int>& threads) {
    Clock joined(clocks_.size());
    for (const int t : threads) join(joined, clocks_[std::size_t(t)]);
    for (const int t : threads) {
      clocks_[std::size_t(t)] = joined;
      ++clocks_[std::size_t(t)][std::size_t(t)];
    }
  }
  /// Nobody may wait for a thread that has ended.
  void check_left(int thread) {
    for (const State kind : {State::warp, State::exchange, State::block, State::cluster})
      for (const int t : peers(thread, kind))
        if (fibres_[std::size_t(t)].state == kind)
          problem(name(thread) + " has ended, but " + name(t) + " waits for it at a barrier");
  }

  static void join(Clock& into, const Clock& from) {
    for (std::size_t t = 0; t < into.size(); ++t) into[t] = std::max(into[t], from[t]);
  }

  // ---- memory ----

  bool synchronise(const void* at, bool acquire, bool release) {
    if (!memory_.find(at)) {
      problem(name(current_) + " synchronises outside of memory");
      return false;
    }
    Clock& word = words_[at];
    word.resize(clocks_.size());
    Clock& own = clocks_[std::size_t(current_)];
    if (acquire) join(own, word);
    if (release) {
      join(word, own);
      ++own[std::size_t(current_)];
    }
    return true;
  }

  /// The same with the host, which passes on to all what any has told it.
  bool synchronise_system(const void* at, bool acquire, bool release) {
    if (!memory_.find(at)) {
      problem(name(current_) + " synchronises outside of memory");
      return false;
    }
    Clock &own = clocks_[std::size_t(current_)], &host_now = clocks_[std::size_t(host())];
    if (acquire) join(own, host_now);
    if (release) {
      join(host_now, own);
      ++own[std::size_t(current_)];
    }
    return true;
  }

  /// What is read as constant stays the same for as long as the launch runs.
  bool touch_constant(const void* at, int bytes) {
    if (!touch(at, bytes, false)) return false;
    const WatchedMemory::Region& region = *memory_.find(at);
    const std::size_t offset = WatchedMemory::address(at) - memory_.begin_, size = region.word_bytes;
    for (std::size_t w = offset / size; w < (offset + std::size_t(bytes)) / size; ++w)
      if (region.words[w].write_time)
        problem(name(current_) + " reads as constant what " + name(region.words[w].writer) + " has written");
    return true;
  }

  bool touch(const void* at, int bytes, bool write) {
    WatchedMemory::Region* region = memory_.find(at);
    const std::size_t offset = region ? WatchedMemory::address(at) - memory_.begin_ : 0;
    if (!region || offset + std::size_t(bytes) > region->bytes) {
      problem(name(current_) + (write ? " writes" : " reads") + " outside of memory");
      return false;
    }
    if (WatchedMemory::address(at) % std::size_t(bytes) != 0) {
      problem(name(current_) + (write ? " writes " : " reads ") + std::to_string(bytes) +
              " bytes at an address that is no multiple of them");
      return false;
    }
    region->refine(std::size_t(bytes));
    const std::size_t size = region->word_bytes;
    for (std::size_t w = offset / size; w < (offset + std::size_t(bytes)) / size; ++w)
      check(region->words[w], w * size / 4, write);
    return true;
  }

  void check(WatchedMemory::Word& word, std::size_t at, bool write) {
    const Clock& known = clocks_[std::size_t(current_)];
    const std::uint32_t now = known[std::size_t(current_)];
    const auto race = [&](int other, const char* how) {
      problem("a race on word " + std::to_string(at) + ": " + name(other) + how + " it and " + name(current_) +
              (write ? " writes it" : " reads it") + ", with nothing to order them");
    };
    if (word.write_time > known[word.writer]) race(word.writer, " writes");
    if (!write) {
      if (!word.written) problem(name(current_) + " reads word " + std::to_string(at) + ", which nothing has written");
      if (!word.readers.empty()) {
        word.readers[std::size_t(current_)] = now;
      } else if (word.read_time > known[word.reader]) {
        word.readers.resize(clocks_.size());
        word.readers[word.reader] = word.read_time;
        word.readers[std::size_t(current_)] = now;
      } else {
        word.reader = std::uint16_t(current_), word.read_time = now;
      }
      return;
    }
    if (word.read_time > known[word.reader]) race(word.reader, " reads");
    for (std::size_t t = 0; t < word.readers.size(); ++t)
      if (word.readers[t] > known[t]) race(int(t), " reads");
    word.readers.clear();
    word.writer = std::uint16_t(current_), word.write_time = now, word.written = true, word.read_time = 0;
  }

  WatchedMemory& memory_;
  const Shape shape_;
  const Interleaving order_;
  std::uint32_t random_;
  std::vector<Fibre> fibres_;
  std::vector<Clock> clocks_;  // [threads and the host][the same]
  std::uint64_t* clock_ns_ = nullptr;
  std::map<const void*, Clock> words_;
  std::vector<std::unique_ptr<char[]>> shared_;
  std::vector<Board> boards_;  // [warp of the launch]
  std::vector<int> ready_;
  ucontext_t scheduler_;
  void (*kernel_)(void*) = nullptr;
  void* argument_ = nullptr;
  int current_ = 0;
  long yields_ = 0;
  bool fatal_ = false, stops_ = false, in_thread_ = false;
  std::string problem_;
};

}  // namespace cortex::test
