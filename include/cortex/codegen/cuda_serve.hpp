// How a kernel that stays on the device is called: through a mailbox in memory of the host, and a desk in the device's.
//
// One thread, the first of the launch's first block, looks at the mailbox, passes on what it finds there, and answers:
// it alone decides whether the kernel serves or ends, so that all blocks do the same, and the bus has one reader. Every
// other block looks at the desk for itself, whether its group is a block, a cluster or of the whole grid: the word lies
// in the L2 cache, which all reach in the same time, and to hand it on from the first block of a group by the group's
// barrier would take longer than to look. Each word has one writer, and numbers of calls only grow:
//
//   posted    host         a call's number * 2^16 + 2^15 where its letter is not where the last one was + how many
//                          groups it takes; 0 groups: end, also of a call that takes too long, which is then not
//                          answered
//   order     first block  the same, on the desk, after where the call's letter is
//   finished  all blocks   how often blocks have finished a call
//   done      first block  the number of the last call that all have finished
//   ended     first block  the number of this launch, when it has told all to end: its last word to the host
//
// The kernel also ends by itself, when no call has come for a while or it has run for long; a call may be posted at
// that very moment. It is not lost: a launch that has said `ended` serves nothing any more, so the host, which waits
// for `done` or `ended`, knows then which calls were served, and gives the others to the next launch. No number is used
// by two launches, so what the last one has left on the desk is never taken for news.
//
// What blocks have written, results in the host's memory too, they release to the first block with `finished`, for the
// device, and it releases to the host with `done`, for the system: order is handed on, whatever the scope of each step.
//
// Of each call a group's first block copies the group's slot of the letter, its part with the table of where buffers
// are and behind it the linearizer's arrays, from the host's memory to the device's: all threads, 16 bytes at a time.
// The host's memory is cached nowhere on the device, and what a thread reads of it is a transaction of its own on the
// bus, unless its neighbours read what lies beside: all wait for each, so no other block reads any of it, nor a thread
// what another has. And to go over the bus and back takes as long as a level of a small model, so nothing is read to
// know what to read next: where the letter is is read only where it has moved, and of a slot a first piece at once.
// What is written while the kernel runs is never read as constant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cortex/codegen/cuda_numbers.hpp"

namespace cortex::codegen {

/// What `cortex_resident` is given, by value, in this order. Pointers are of the device, or of pinned memory.
struct CudaService {
  std::uint64_t weights;  // [buffers of the program]: where each weight is
  std::uint64_t words;    // as `CudaLaunch::words`
  std::uint64_t fault;    // as `CudaLaunch::fault`
  std::uint64_t desk;     // [cuda_desk_words(blocks)]: zero before the first launch, then left alone
  std::uint64_t mail;     // `CudaMail`
  std::uint64_t answers;  // `CudaAnswers`
  std::uint64_t last;     // calls with numbers above this one are new
  std::uint64_t launch;   // the number of this launch
  std::uint64_t idle_ns;  // without a call, after which the kernel ends
  std::uint64_t life_ns;  // after which it ends once a call is done
};

/// What the host writes.
struct CudaMail {
  std::uint64_t posted;  // released after the others
  // Read where `posted` says that any of them is another than for the last call.
  std::uint64_t letter;  // pinned memory: a slot for each group, which begins with its part, see `cuda_parts`
  std::uint64_t room;    // the device's memory for the same
  std::uint64_t stride;  // bytes from a slot to the next: a multiple of 16, and at least `cuda_first_piece`
};
/// In `posted` and `order`: the bit from which on there is the number, the one below it, and the most that the others
/// hold.
inline constexpr int cuda_number_at = 16;
inline constexpr std::uint64_t cuda_letter_has_moved = 1 << (cuda_number_at - 1);
inline constexpr int cuda_most_resident_groups = int(cuda_letter_has_moved) - 1;

inline constexpr int cuda_first_pieces = 256;  // of 16 bytes, at most
/// How many bytes of a slot are read before it is known how many are to be: 16 for each thread, and no more than most
/// slots have.
inline constexpr std::size_t cuda_first_piece(int threads) {
  return 16 * std::size_t(threads < cuda_first_pieces ? threads : cuda_first_pieces);
}

/// What the kernel writes.
struct CudaAnswers {
  std::uint64_t done, ended;
  std::uint64_t copy_ns, serve_ns;  // that the last call took until the first group had its arrays, and then
};

/// Words of 64 bits on the desk: `order` and where the letter is, as in the mail, then `finished`, and then a state for
/// each block, each in lines of its own.
inline constexpr int cuda_desk_finished = 16, cuda_desk_states = 32, cuda_state_words = 16;
static_assert(sizeof(CudaMail) <= 8 * cuda_desk_finished);
/// How many of them a launch of so many blocks needs.
inline int cuda_desk_words(int blocks) { return cuda_desk_states + cuda_state_words * blocks; }

/// What a kernel that stays does around its program, as text, which goes by the words and numbers above.
inline std::string cuda_serve() {
  const auto word = [](std::size_t offset) { return offset / 8; };
  return "\n// ---- calls from a mailbox ----\n" + cuda_define("NUMBER_AT", cuda_number_at) +
         cuda_define("LETTER_MOVED", cuda_letter_has_moved) + cuda_define("MOST_GROUPS", cuda_most_resident_groups) +
         cuda_define("FIRST_PIECES", cuda_first_pieces) + cuda_define("STATE_WORDS", cuda_state_words) +
         cuda_enum("Mail", {{"posted", word(offsetof(CudaMail, posted))},
                            {"letter", word(offsetof(CudaMail, letter))},
                            {"room", word(offsetof(CudaMail, room))},
                            {"stride", word(offsetof(CudaMail, stride))}}) +
         cuda_enum("Answers", {{"done", word(offsetof(CudaAnswers, done))},
                               {"ended", word(offsetof(CudaAnswers, ended))},
                               {"copy_ns", word(offsetof(CudaAnswers, copy_ns))},
                               {"serve_ns", word(offsetof(CudaAnswers, serve_ns))}}) +
         cuda_enum("Desk", {{"order", word(offsetof(CudaMail, posted))},
                            {"finished", cuda_desk_finished},
                            {"states", cuda_desk_states}}) +
         R"cuda(
// The letter, its room and the stride are at the same places on the desk and in the mail.
struct Launch {
  void* const* weights;
  u64* words;
  volatile int* fault;
  u64 *desk, *mail, *answers;
  u64 last, number, idle_ns, life_ns;
};
// Of each block, on the desk, for its first thread: in registers it would take the place of what the program works with.
// The last call that was taken; and of the first block, what `finished` is when all have finished it, and by the clock
// when the launch began, the call was taken, and its arrays were there. For all threads of a group's first block: how
// many pieces of 16 bytes the group's slot has.
enum State { call, goal, begin, taken, opened, pieces };
DEVICE int groups_of(u64 posted) { return (int)(posted & MOST_GROUPS); }
DEVICE bool has_moved(u64 posted) { return posted & LETTER_MOVED; }
DEVICE u64 number_of(u64 posted) { return posted >> NUMBER_AT; }
DEVICE u64* state_of(const Launch& launch) { return launch.desk + states + STATE_WORDS * block_number(); }

// Waits longer the longer there is nothing, up to a quarter of a microsecond: a fraction of what a look over the bus
// takes.
struct Patience {
  int turns = 1;
  DEVICE void wait() {
    for (int turn = 0; turn < turns; ++turn) relax();
    if (turns < 8) ++turns;
  }
};

DEVICE void begin_service(const Launch& launch) {
  if (thread_number() != 0) return;
  u64* const state = state_of(launch);
  store(state, call, launch.last);
  if (block_number() != 0) return;
  store(state, goal, load_acquire(launch.desk + finished));
  store(state, begin, clock_ns());
  store(state, taken, 0ull);
}
// Of the first thread of the first block. Whether there is a call; without one, all end.
DEVICE bool receive(const Launch& launch) {
  u64* const state = state_of(launch);
  const u64 last = load(state, call), started = load(state, begin), answering = load(state, taken);
  u64 all = load(state, goal);
  // A block that never gets room would be waited for without end: where the host gives up and orders the end, all that
  // are there leave, which makes room. It is rarely asked, as that is a way over the bus.
  bool given_up = false;
  for (u64 asked = clock_ns(); answering && !given_up && load_acquire(launch.desk + finished) < all;) {
    relax();
    if (clock_ns() - asked < 1000000) continue;
    asked = clock_ns();
    const u64 next = load_acquire_system(launch.mail + posted);
    given_up = number_of(next) > last && !groups_of(next);
  }
  if (answering && !given_up) {
    const u64 now = clock_ns(), there = load(state, opened);
    store(launch.answers, copy_ns, there - answering);
    store(launch.answers, serve_ns, now - there);
    store_release_system(launch.answers + done, last);
  }
  Patience patience;
  const u64 since = clock_ns();
  u64 next;
  for (;;) {
    next = load_acquire_system(launch.mail + posted);
    const bool news = number_of(next) > last;
    if (news && !answering) break;  // what it was launched for
    const u64 now = clock_ns();
    if (now - started > launch.life_ns || (!news && now - since > launch.idle_ns)) next = (last + 1) << NUMBER_AT;
    if (number_of(next) > last) break;
    patience.wait();
  }
  const int groups = groups_of(next);
  if (groups) {
    store(state, call, number_of(next));
    store(state, goal, all + u64(groups) * BLOCKS);
    store(state, taken, clock_ns());
  }
  if (has_moved(next)) {
    const u64 from = load_far(launch.mail, letter), to = load_far(launch.mail, room),
              each = load_far(launch.mail, stride);
    store(launch.desk, letter, from);
    store(launch.desk, room, to);
    store(launch.desk, stride, each);
  }
  store_release(launch.desk + order, next);
  if (!groups) store_release_system(launch.answers + ended, launch.number);
  return groups;
}
// Of the first thread of any other block. Calls that take fewer groups are none of its own.
DEVICE bool follow(const Launch& launch, int group) {
  u64* const state = state_of(launch);
  u64 last = load(state, call);
  Patience patience;
  for (;;) {
    while (number_of(load_relaxed(launch.desk + order)) <= last) patience.wait();
    const u64 next = load_acquire(launch.desk + order);
    const int groups = groups_of(next);
    last = number_of(next);
    if (groups && group >= groups) continue;
    store(state, call, last);
    return groups;
  }
}
DEVICE bool take_call(const Launch& launch, int group) {
  bool none = false;
  if (thread_number() == 0) none = block_number() == 0 ? !receive(launch) : !follow(launch, group);
  return !sync_block_or(none);
}
DEVICE void end_call(const Launch& launch) {
  sync_block();
  if (thread_number() == 0) add_acquire_release(launch.desk + finished, 1);
}

// Of a group's first block. Copies the group's slot of the letter, which all of the group have when it has met: a piece
// for each thread, up to FIRST_PIECES, the first of which says how much there is, and then the rest. A load waits for
// the bus and back, and a store for its load: so a thread has several loads on their way before the first store.
DEVICE void open_letter(const Launch& launch, int group) {
  const u64 slot = group * load(launch.desk, stride);
  const Wide* const from = (const Wide*)(load(launch.desk, letter) + slot);
  Wide* const to = (Wide*)(load(launch.desk, room) + slot);
  u64* const state = state_of(launch);
  constexpr int at_first = THREADS < FIRST_PIECES ? THREADS : FIRST_PIECES;
  static_assert(arrays_at == 0 && arrays_bytes == 1, "the first piece has both");
  Wide first = {};
  if (thread_number() < at_first) {
    first = load_far(from, thread_number());
    store(to, thread_number(), first);
  }
  bool more = false;
  if (thread_number() == 0) {
    const u64 count = (first.low + first.high) / 16 - part_of(group) / 2;
    store(state, State::pieces, count);
    more = count > at_first;
  }
  if (!sync_block_or(more)) return;
  const long long count = (long long)load(state, State::pieces);
  constexpr int at_once = 8;
  for (long long i = at_first + thread_number(); i < count; i += at_once * THREADS) {
    Wide piece[at_once];
    UNROLL("unroll")
    for (int k = 0; k < at_once; ++k)
      if (i + k * THREADS < count) piece[k] = load_far(from, i + k * THREADS);
    UNROLL("unroll")
    for (int k = 0; k < at_once; ++k)
      if (i + k * THREADS < count) store(to, i + k * THREADS, piece[k]);
  }
}
// Where the call would begin if the parts of all groups lay together, as those of a launch do.
DEVICE const u64* opened_letter(const Launch& launch, int group) {
  return (const u64*)(load(launch.desk, room) + group * load(launch.desk, stride)) - part_of(group);
}
// Of all threads, when the group has met.
DEVICE void letter_is_open(const Launch& launch) {
  if (block_number() == 0 && thread_number() == 0) store(state_of(launch), opened, clock_ns());
}
)cuda";
}

}  // namespace cortex::codegen
