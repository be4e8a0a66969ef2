// A kernel that stays on a device and serves calls from a mailbox (`codegen/cuda_serve.hpp`): its weights are brought
// to registers and shared memory once, and a call costs no launch.
//
// What the host asks of the driver while the kernel runs, and whether that could wait for the kernel:
//   StreamQuery               does not wait; it is how a kernel that has failed is noticed
//   MemAlloc, MemHostAlloc    are not promised not to: at worst until the kernel ends by itself, having nothing to do.
//                             Calls allocate where they are larger than all before them.
//   MemFree, MemFreeHost,     do, so `CudaDevice::give_back` keeps them until the kernel has ended
//   ModuleUnload
//   copies of results         do not: they and the kernel have streams of their own, which wait for no other
//   weights bound anew        allocate, and may run the model's kernel to make tables: the kernel is ended before
//   kernels of others, and    find the room that is left: one multiprocessor's, unless `groups` says otherwise; where
//   what moves results        there is none they wait for the kernel's end
//   all of another stream     may wait for it, too, where the two streams share a queue of the hardware
// Functions are loaded with their modules' (`cuModuleGetFunction`), before the kernel is launched.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "cortex/base/clock.hpp"
#include "cortex/runtime/barrier.hpp"
#include "cortex/runtime/cuda_loaded.hpp"
#include "cortex/runtime/turn.hpp"

namespace cortex::runtime {

/// How long a resident model stays on its device, and how much of it it takes.
struct ResidentOptions {
  int groups = 0;         // of blocks, among which a call's roots are shared; 0: as many as would run at once on all
                          // multiprocessors but one, and as the schedule allows
  double idle_ms = 10;    // without a call, after which the kernel ends; the next call launches it again
  double life_ms = 1000;  // after which it ends once a call is done: what waits for the whole device has its turn, and
                          // no watchdog of a display's takes it for hung
  double patience_ms = 10000;  // that a call waits for its answer, before it throws
};

/// The kernel of a model on a device. Its calls are served one after the other.
class CudaResident final : public CudaDevice::Occupant {
 public:
  static std::shared_ptr<CudaResident> make(std::shared_ptr<CudaLoaded> loaded, const ResidentOptions& options) {
    std::shared_ptr<CudaResident> resident(new CudaResident(std::move(loaded), options), let_go);
    resident->device_->add_occupant(resident);
    return resident;
  }
  CudaResident(const CudaResident&) = delete;
  ~CudaResident() override {
    leave();  // ended it is by `let_go`; of one that was left behind this lets go of weights and calls
    device_->remove_occupant(this);
    give_back();
  }

  const CudaLoaded& loaded() const { return *loaded_; }
  const ResidentOptions& options() const { return options_; }
  int most_groups() const { return groups_; }
  /// In words, for `explain`.
  std::string residence() const {
    const auto ms = [](double value) {
      char text[32];
      std::snprintf(text, sizeof text, "%g", value);
      return std::string(text);
    };
    const int blocks = groups_ * loaded_->source().code->shape.blocks;
    return "stays on the device from call to call, with " + std::to_string(groups_) + " groups in " +
           std::to_string(blocks) + " blocks, until there is no call for " + ms(options_.idle_ms) +
           " ms or it has run for " + ms(options_.life_ms) + " ms; the next call launches it again";
  }
  /// How often the kernel has been launched.
  std::uint64_t launches() const { return launches_; }

  bool is_running() const override {
    const std::uint64_t launch = launch_;
    return launch && !device_->is_in_child() && answer(&codegen::CudaAnswers::ended) != launch;
  }
  void leave() override {
    // Behind the end of the driver, as where an object lives as long as the process, the mailbox may be no memory.
    if (device_->has_driver_ended()) return void(launch_ = 0);
    try {
      stop();
    } catch (...) {
    }
  }

  /// Ends the kernel if weights have been bound since it was launched: what a call does for the new ones could wait for
  /// it.
  void make_way_for_weights() {
    device_->refuse_if_lost();
    if (is_running() && !loaded_->has_current_weights()) stop();
  }

  /// Ends the kernel, after the call that it serves, and waits for that. Throws `Error{unavailable}` if it does not
  /// end in the time of `patience_ms`, and what the device has failed with.
  void stop() {
    if (device_->is_in_child()) return device_->refuse_if_lost();
    std::shared_ptr<const CudaWeights> weights;  // are let go of after the turn, as memory may be given back
    Hostages hostages;
    {
      const Turn::Holder turn(turn_);
      end();
      weights = std::move(weights_), hostages = std::move(hostages_);
    }
    device_->give_back_deferred();
  }

  /// Serves a call that is laid out as a letter, with the weights that it is for. Waits for it. Throws
  ///   unavailable  no answer has come in the time of `patience_ms`; the call's memory is kept then
  ///   device_lost  the kernel has failed
  void serve(CudaCall& call) {
    CudaWorkspace& workspace = *call.operator->();
    if (workspace.num_groups() == 0) return;
    std::shared_ptr<const CudaWeights> replaced;
    const Turn::Holder turn(turn_);
    refuse_if_stuck();
    if (launch_ && weights_ != workspace.weights()) end();
    int launches = 0;
    for (;;) {
      const bool starts = !is_running();
      if (starts) {
        device_->give_back_deferred();  // which under steady calls has no other time
        // A launch serves the call that it is made for: only one that was running before can have ended without.
        if (launches == 2) throw Error(Code::unavailable, "the kernel of a resident model ends without serving a call");
        if (weights_ != workspace.weights()) {
          replaced = std::move(weights_);
          bring_table(*workspace.weights());
          weights_ = workspace.weights();
        }
        ++number_;  // above all that the last launch can have put on its desk: its last call's number, and one more
      }
      const bool moves = put_letter(workspace) || starts;
      post(workspace.num_groups() | (moves ? codegen::cuda_letter_has_moved : 0));
      if (starts) launch(number_ - 1), ++launches;
      try {
        if (wait(number_) == Answer::done) break;
      } catch (const Error&) {
        if (stuck_) hostages_.push_back(call.give_up());
        throw;
      }
    }
    workspace.note_served(launches, std::int64_t(answer(&codegen::CudaAnswers::copy_ns)),
                          std::int64_t(answer(&codegen::CudaAnswers::serve_ns)));
  }

 private:
  using Hostages = Vector<std::unique_ptr<CudaWorkspace>>;
  enum class Answer { done, ended };
  static constexpr std::size_t answers_at = 128, table_at = 256;  // in the mailbox, each in lines of its own
  static_assert(sizeof(codegen::CudaMail) <= answers_at && answers_at + sizeof(codegen::CudaAnswers) <= table_at);

  /// With the last handle. If the kernel does not end, what it uses stays until it has.
  static void let_go(CudaResident* resident) {
    std::unique_ptr<CudaResident> last(resident);
    resident->leave();
    if (!resident->stuck_) return;
    const std::shared_ptr<const CudaDevice> device = resident->device_;
    device->keep_until_ended(std::move(last));
  }

  CudaResident(std::shared_ptr<CudaLoaded> loaded, const ResidentOptions& options)
      : loaded_(std::move(loaded)), device_(loaded_->device()), options_(options) {
    const CudaExecutable& code = *loaded_->source().code;
    check_options(code);
    try {
      const jit::CudaImage image = jit::compile_cuda(device_->nvrtc(), code.text.resident_source(), device_->gpu().sm,
                                                     {.least_sm = least_sm(code.text)});
      module_ = device_->load(image);
      device_->call("cuModuleGetFunction", [&](const jit::CudaDriver& d) {
        return d.ModuleGetFunction(&function_, module_, "cortex_resident");
      });
      count_groups(code);
      device_->own_stream();  // for copies of results: made before a kernel is there that it could have to wait for
      device_->call("cuStreamCreate",
                    [&](const jit::CudaDriver& d) { return d.StreamCreate(&stream_, jit::cuda::non_blocking); });
      mailbox_ = PinnedBlock(device_, table_at + table_bytes());
      std::memset(mailbox_.data(), 0, mailbox_.size());
      make_desk(code);
    } catch (...) {
      give_back();
      throw;
    }
  }

  void check_options(const CudaExecutable& code) const {
    const auto refuse = [](const std::string& what) {
      throw Error(Code::invalid_argument, "a resident model: " + what);
    };
    if (code.spin_limit) refuse("barriers that give up are for launches; leave out CompileOptions::spin_limit");
    if (options_.groups < 0) refuse("it has no " + std::to_string(options_.groups) + " groups");
    const auto check = [&](double ms, const char* name, double most) {
      if (!(ms >= 0.001 && ms <= most))
        refuse(std::string(name) + " is " + std::to_string(ms) + ", but takes from 0.001 to " +
               std::to_string(std::int64_t(most)));
    };
    constexpr double day = 24 * 3600e3;
    check(options_.idle_ms, "idle_ms", day), check(options_.life_ms, "life_ms", day);
    check(options_.patience_ms, "patience_ms", day);
  }

  void count_groups(const CudaExecutable& code) {
    groups_ = groups_at_once(*device_, code, function_, true, options_.groups ? 0 : 1);
    if (options_.groups > groups_)
      throw Error(Code::invalid_argument, "a resident model: " + std::to_string(options_.groups) +
                                              " groups are asked for, but " + std::to_string(groups_) +
                                              " run at once on " + device_->name());
    groups_ = std::min(options_.groups ? options_.groups : std::min(groups_, loaded_->most_groups()),
                       codegen::cuda_most_resident_groups);
  }

  void make_desk(const CudaExecutable& code) {
    const int blocks = code.shape.blocks;
    words_at_ = fault_bytes + std::size_t(codegen::cuda_desk_words(groups_ * blocks)) * 8;
    weights_at_ = words_at_ + std::size_t(groups_ * codegen::cuda_barrier_words(code.text.barrier, blocks)) * 8;
    desk_ = CudaBlock(device_, weights_at_ + table_bytes());
    device_->call("cuMemsetD8", [&](const jit::CudaDriver& d) {
      const jit::CudaResult failed = d.MemsetD8Async(desk_.at(), 0, desk_.size(), stream_);
      return failed ? failed : d.StreamSynchronize(stream_);
    });
  }

  std::size_t table_bytes() const {
    return loaded_->source().code->executable->program.buffers.size() * sizeof(jit::CudaPointer);
  }
  /// Puts where the weights are beside the desk, after all launches before: every warp of a launch reads it, and memory
  /// of the host is cached nowhere on a device.
  void bring_table(const CudaWeights& weights) {
    jit::CudaPointer* const table = reinterpret_cast<jit::CudaPointer*>(mailbox_.data() + table_at);
    for (std::size_t b = 0; b < weights.blocks.size(); ++b) table[b] = weights.blocks[b] ? weights.blocks[b]->at() : 0;
    device_->call("a copy of a table of weights", [&](const jit::CudaDriver& d) {
      const jit::CudaResult failed = d.MemcpyHtoDAsync(desk_.at() + weights_at_, table, table_bytes(), stream_);
      return failed ? failed : d.StreamSynchronize(stream_);
    });
  }

  void give_back() {
    if (stream_) device_->in_context([&](const jit::CudaDriver& d) { return d.StreamDestroy(stream_); });
    if (module_) device_->give_back(CudaDevice::Given::module, reinterpret_cast<std::uint64_t>(module_));
    stream_ = module_ = nullptr;
  }

  // ---- the mailbox: words of 64 bits, each with one writer ----

  codegen::CudaMail& mail() const { return *reinterpret_cast<codegen::CudaMail*>(mailbox_.data()); }
  std::uint64_t answer(std::uint64_t codegen::CudaAnswers::*word) const {
    auto& answers = *reinterpret_cast<codegen::CudaAnswers*>(mailbox_.data() + answers_at);
    return __atomic_load_n(&(answers.*word), __ATOMIC_ACQUIRE);
  }
  /// Says where a call's letter is. The kernel has answered the number before this one, so nobody reads what is written
  /// here. Whether it is another place than that of the last one.
  bool put_letter(const CudaWorkspace& workspace) {
    bool moves = false;
    const auto put = [&](std::uint64_t& word, std::uint64_t value) { moves |= std::exchange(word, value) != value; };
    put(mail().letter, workspace.letter()), put(mail().room, workspace.room()), put(mail().stride, workspace.stride());
    return moves;
  }
  /// `what`: how many groups take part, and whether the letter has moved; 0 ends the kernel.
  void post(std::uint64_t what) {
    ++number_;
    __atomic_store_n(&mail().posted, number_ << codegen::cuda_number_at | what, __ATOMIC_RELEASE);
  }

  /// Until the kernel has served a number, or has ended before. Looks again and again at first, as calls take some tens
  /// of microseconds, then lets other threads run.
  Answer wait(std::uint64_t number) {
    // The system wakes a thread some 60 us late: a call that takes less than the former should not wait for that.
    constexpr std::int64_t long_call_ns = 2'000'000, longest = 50'000;  // the latter of a pause
    const std::int64_t start = now_ns();
    std::int64_t asked = start;
    for (;;) {
      for (int looks = 0; looks < 64; ++looks) {
        if (answer(&codegen::CudaAnswers::done) >= number) return Answer::done;
        if (!is_running()) return end_of(number);
        relax();
      }
      const std::int64_t now = now_ns();
      if (now - asked < spin_ns) continue;
      asked = now;
      if (has_gone()) return end_of(number);
      if (double(now - start) > options_.patience_ms * 1e6) fail_stuck(no_answer());
      if (now - start < long_call_ns) {
        ::sched_yield();
      } else {
        const timespec pause{0, long(std::min((now - start) / 16, longest))};
        ::nanosleep(&pause, nullptr);
      }
    }
  }
  /// `done` is written before `ended`: when that has been seen, it is known whether there was still an answer.
  Answer end_of(std::uint64_t number) {
    const bool served = answer(&codegen::CudaAnswers::done) >= number;
    launch_ = 0;
    return served ? Answer::done : Answer::ended;
  }
  /// Whether the driver says that the kernel is no more. An error that leaves the device alive may be of the question,
  /// and not of the kernel: it is asked again, until the error has come so often that it is no chance.
  bool has_gone() {
    constexpr int no_chance = 16;
    const jit::CudaResult result =
        device_->in_context([&](const jit::CudaDriver& d) { return d.StreamQuery(stream_); });
    if (result == jit::cuda::success || result == jit::cuda::not_ready) {
      errors_ = 0;
      return result == jit::cuda::success;
    }
    if (!jit::cuda::is_sticky(result) && ++errors_ < no_chance) return false;
    errors_ = 0;
    try {
      device_->check(result, "the kernel of a resident model");
    } catch (const Error& error) {
      if (error.code != Code::device_lost) fail_stuck(error.message + ": it may still run; stop() waits for it");
      launch_ = 0;
      throw;
    }
    return false;
  }

  /// The kernel is not known to have ended, so that what it uses is kept.
  [[noreturn]] void fail_stuck(std::string why) {
    stuck_ = true;
    why_stuck_ = std::move(why);
    throw Error(Code::unavailable, why_stuck_);
  }
  void refuse_if_stuck() const {
    device_->refuse_if_lost();
    if (stuck_) throw Error(Code::unavailable, why_stuck_);
  }
  std::string no_answer() const {
    return "the kernel of a resident model has not answered for " + std::to_string(std::int64_t(options_.patience_ms)) +
           " ms on " + device_->name() + ": a call that takes longer needs a greater patience_ms; stop() waits for it";
  }

  // ---- the kernel ----

  /// Calls with numbers above `last` are its own.
  void launch(std::uint64_t last) {
    const CudaExecutable& code = *loaded_->source().code;
    device_->refuse_if_lost();
    const auto at = [](const void* pinned) { return reinterpret_cast<std::uint64_t>(pinned); };
    codegen::CudaService service;
    service.weights = desk_.at() + weights_at_;
    service.words = desk_.at() + words_at_, service.fault = desk_.at(), service.desk = desk_.at() + fault_bytes;
    service.mail = at(mailbox_.data()), service.answers = at(mailbox_.data() + answers_at);
    service.last = last, service.launch = launches_ + 1;
    service.idle_ns = std::uint64_t(options_.idle_ms * 1e6), service.life_ns = std::uint64_t(options_.life_ms * 1e6);
    LaunchAttributes attributes;
    launch_kernel(*device_, function_, launch_config(code, std::size_t(groups_), stream_, attributes, true), service);
    launch_ = ++launches_;
  }

  /// Ends the kernel, and waits until nothing of it is left. The caller has the turn.
  void end() {
    if (is_running()) {
      post(0);
      wait(~std::uint64_t(0));
    }
    launch_ = 0, stuck_ = false;
    device_->call("the end of a kernel", [&](const jit::CudaDriver& d) { return d.StreamSynchronize(stream_); });
  }

  const std::shared_ptr<CudaLoaded> loaded_;
  const std::shared_ptr<const CudaDevice> device_;
  const ResidentOptions options_;
  jit::CudaHandle module_ = nullptr, function_ = nullptr, stream_ = nullptr;
  int groups_ = 0;
  PinnedBlock mailbox_;  // CudaMail, CudaAnswers, and the table of weights on its way
  CudaBlock desk_;       // the word for a fault, the desk, the words of barriers, the table of weights
  std::size_t words_at_ = 0, weights_at_ = 0;
  Turn turn_;                                   // at what follows; who posts has it until the answer is there
  std::shared_ptr<const CudaWeights> weights_;  // of the last launch
  std::uint64_t number_ = 0;                    // that was posted last
  std::atomic<std::uint64_t> launch_{0},
      launches_{0};  // the launch whose end has not been seen, or 0; and their number
  std::atomic<bool> stuck_{false};
  std::string why_stuck_;
  int errors_ = 0;     // that the driver has given one after the other where it was asked about the kernel
  Hostages hostages_;  // memory of calls that were not answered
};

}  // namespace cortex::runtime
