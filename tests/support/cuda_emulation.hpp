// A GPU on the host: each thread of a launch is a fibre, which runs until it meets a barrier or waits for memory. Finds
// accesses outside of memory and such as are not aligned, reads of what nothing has written, races by vector clocks,
// and threads that wait for ever.
#pragma once

#include <ucontext.h>

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
  void add(const void* begin, std::size_t bytes);
  void remove(const void* begin);
  void written_by_host(const void* at, std::size_t bytes);
  void forget_times();

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
  Region* find(const void* at);

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

  Emulation(WatchedMemory& memory, const Shape& shape, Interleaving order);
  ~Emulation();

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
  bool go_on(bool until_quiet);
  const std::string& what_went_wrong() const { return problem_; }

  /// Threads end with the first thing that goes wrong: what they do then may take for ever.
  void stop_at_problems() { stops_ = true; }

  /// The clock that the threads read, each time a nanosecond later.
  void set_clock(std::uint64_t* ns) { clock_ns_ = ns; }

  /// The host reads or writes memory while threads go on: what they have done there, they have to have told it.
  void touch_by_host(const void* at, std::size_t bytes, bool write);

  static const EmulatorTable* table();

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
  static constexpr std::size_t stack_bytes = 4 * 1024 * 1024;  // of which memory is taken as it is used
  static constexpr long most_yields = 2000000;

  static Emulation*& active() {
    static Emulation* emulation = nullptr;
    return emulation;
  }
  static void enter();

  /// The shared memory of a block of this thread's cluster, which has to have begun for certain, and not to have ended.
  char* shared_of(int block);

  int host() const { return int(fibres_.size()); }
  std::string name(int thread) const;
  void problem(const std::string& what);

  // ---- fibres ----

  void start(int t);
  void make_ready(int t);
  bool pick();
  std::uint32_t draw();

  void suspend();
  void yield();

  // ---- barriers ----

  std::vector<int> peers(int thread, State kind) const;
  void meet(State kind);
  bool vote(bool mine);
  /// What any of them did is before what all of them do from now on.
  void order(const std::vector<int>& threads);
  /// Nobody may wait for a thread that has ended.
  void check_left(int thread);
  static void join(Clock& into, const Clock& from);

  // ---- memory ----

  bool synchronise(const void* at, bool acquire, bool release);
  /// The same with the host, which passes on to all what any has told it.
  bool synchronise_system(const void* at, bool acquire, bool release);
  /// What is read as constant stays the same for as long as the launch runs.
  bool touch_constant(const void* at, int bytes);

  bool touch(const void* at, int bytes, bool write);
  void check(WatchedMemory::Word& word, std::size_t at, bool write);

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
