// The streams of emulated GPUs: they do nothing until they are waited for, as a device that is slow, and are ordered
// among each other by events, and by the default stream as the driver does; and what a capture takes out of one, with
// the rules that it makes for all threads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_resident.hpp"

namespace cortex::test {

class FakeStreams {
 public:
  struct Stream;
  /// A place in the order of a stream's work.
  struct Point {
    Stream* stream = nullptr;
    std::uint64_t ticket = 0;
  };
  struct Work {
    std::function<void()> run;
    std::uint64_t ticket;
    Point behind;                              // of another stream
    std::shared_ptr<FakeResident> resident{};  // goes on for longer than `run`, which makes it
  };
  struct Stream {
    std::deque<Work> queue;
    std::vector<std::function<void()>> captured;
    bool blocking = false;  // made by the driver, and ordered with the default stream
  };

  /// Errors that are named where they are returned.
  enum : int { capture_forbids = 900, capture_invalid = 901, implicit = 906, captured_event = 907 };
  /// The stream that each thread has as its own.
  static void* per_thread() { return reinterpret_cast<void*>(2); }

  // What the machine does where a stream comes to it.
  std::function<bool(FakeResident&)> go_on_resident;  // whether it has ended
  std::function<void(double)> pass;                   // so many ms
  std::function<void(const std::string&)> found;
  int stalls = 0;         // how often a kernel that stays was waited for until it was idle for long
  std::string forbidden;  // the first call that was made though a capture forbids it, which has spoilt that

  void clear() { streams_.clear(); }
  Stream* at(int device, void* handle) {
    static thread_local char own;
    return &streams_[{device, handle == per_thread() ? &own : handle}];
  }
  void make(int device, void* handle, bool blocking) { at(device, handle)->blocking = blocking; }
  /// Its work goes on, and its handle is good for nothing.
  void destroy(int device, void* handle) {
    flush(*at(device, handle));
    gone_.insert({device, handle});
  }
  void forget(int device, void* handle) { streams_.erase({device, handle}); }
  bool is_gone(int device, void* handle) const { return gone_.count({device, handle}); }

  /// Of what was enqueued last.
  std::uint64_t last_ticket() const { return tickets_; }
  /// An error of the driver or 0.
  int enqueue(int device, void* handle, const std::function<void()>& work, bool by_user = false) {
    Stream* const to = at(device, handle);
    if (!by_user && uses_default(device, handle)) return implicit;
    if (to == capturing_) {
      if (!forbidden.empty()) return capture_invalid;
      return to->captured.push_back(work), 0;
    }
    // Streams that block stand behind what the default one has been given, and it behind what they have.
    if (to->blocking) wait_for(*to, *at(device, nullptr));
    if (!handle)
      for (auto& [key, stream] : streams_)
        if (key.first == device && stream.blocking) wait_for(*to, stream);
    return to->queue.push_back({work, ++tickets_, {}}), 0;
  }
  void enqueue(Stream& to, std::shared_ptr<FakeResident> resident) {
    to.queue.push_back({{}, ++tickets_, {}, std::move(resident)});
  }
  /// What `to` is given from now on stands behind a point.
  void wait_for(Stream& to, const Point& point) {
    to.queue.push_back({[] {}, ++tickets_, point});
  }
  void wait_for(Stream& to, Stream& other) { wait_for(to, {&other, tickets_}); }

  static bool is_done(const Point& point) {
    return !point.stream || point.stream->queue.empty() || point.stream->queue.front().ticket > point.ticket;
  }
  void flush(Stream& stream) { flush(stream, tickets_); }
  void flush(Stream& stream, std::uint64_t up_to) {
    while (!stream.queue.empty() && stream.queue.front().ticket <= up_to) run_first(stream, true);
  }
  void flush_all() {
    for (auto& [key, stream] : streams_) flush(stream);
  }
  /// Without waiting. Whether the stream has nothing left to do.
  bool go_on(Stream& stream) {
    while (!stream.queue.empty())
      if (!run_first(stream, false)) return false;
    return true;
  }
  /// Gives each kernel that stays to `visit(stream, resident)`.
  template <class Visit>
  void each_resident(const Visit& visit) {
    for (auto& [key, stream] : streams_)
      if (!stream.queue.empty() && stream.queue.front().resident) visit(stream, *stream.queue.front().resident);
  }
  /// What a stream has to do next. Whether it is done: a kernel that stays may not be, unless it is waited for.
  bool run_first(Stream& stream, bool wait) {
    if (!stream.queue.front().resident) {
      const Work work = std::move(stream.queue.front());
      stream.queue.pop_front();
      if (work.behind.stream) flush(*work.behind.stream, work.behind.ticket);
      work.run();
      return true;
    }
    const std::shared_ptr<FakeResident> resident = stream.queue.front().resident;
    constexpr int soon = 20, most = 10000;
    for (int turn = 0; !go_on_resident(*resident); ++turn) {
      if (!wait) return false;
      if (turn == soon) ++stalls;
      if (turn > soon) pass(1);
      if (turn < most) continue;
      found("a kernel is waited for that never ends");
      break;
    }
    if (!stream.queue.empty() && stream.queue.front().resident == resident) stream.queue.pop_front();
    return true;
  }

  // ---- captures ----

  enum Mode : int { global, thread_local_mode, relaxed };
  /// Of the calling thread: whether captures of its own and of others forbid it something.
  static int& mode() {
    static thread_local int mode = global;
    return mode;
  }
  void begin_capture(int device, void* handle, Mode mode) {
    capturing_ = at(device, handle);
    capture_mode_ = mode, capturing_thread_ = &FakeStreams::mode();
    capturing_->captured.clear();
    forbidden.clear();
  }
  /// What has been captured: nothing of a capture that has been spoilt.
  std::vector<std::function<void()>> end_capture() {
    auto graph = forbidden.empty() ? std::move(capturing_->captured) : std::vector<std::function<void()>>();
    capturing_ = nullptr;
    return graph;
  }
  bool is_capturing() const { return capturing_; }
  bool is_capturing(const Stream* stream) const { return capturing_ && capturing_ == stream; }
  /// Whether the calling thread may not do now what could be unsafe in a capture; if so it has spoilt that.
  bool forbids(const char* name) {
    const bool own = capturing_thread_ == &mode() && capture_mode_ != relaxed;
    if (!capturing_ || mode() == relaxed || (!own && (mode() != global || capture_mode_ != global))) return false;
    return spoil(name);
  }
  bool spoil(const char* name) {
    if (forbidden.empty()) forbidden = name;
    return true;
  }
  /// Whether a stream is the default one while another is captured, which it would have to wait for.
  bool uses_default(int device, void* handle) {
    return capturing_ && !handle && at(device, handle) != capturing_ && spoil("work on the default stream");
  }

 private:
  std::map<std::pair<int, void*>, Stream> streams_;  // [device, handle]
  std::set<std::pair<int, void*>> gone_;
  Stream* capturing_ = nullptr;
  int capture_mode_ = global;
  const int* capturing_thread_ = nullptr;
  std::uint64_t tickets_ = 0;
};

}  // namespace cortex::test
