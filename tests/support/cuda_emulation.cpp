// The emulation of a GPU itself, which kernels call for each word that they touch: compiled once, and optimised.
#include "support/cuda_emulation.hpp"

#include <algorithm>

namespace cortex::test {

void WatchedMemory::add(const void* begin, std::size_t bytes) {
  regions_[address(begin)] = Region{bytes, 4, {}};
  regions_[address(begin)].words.resize((bytes + 3) / 4);
  last_ = nullptr;
}

void WatchedMemory::remove(const void* begin) {
  regions_.erase(address(begin));
  last_ = nullptr;
}

void WatchedMemory::written_by_host(const void* at, std::size_t bytes) {
  Region* region = find(at);
  if (!region) return;
  const std::size_t size = region->word_bytes, from = address(at) - begin_;
  for (std::size_t w = from / size; w < (from + bytes + size - 1) / size; ++w) region->words[w].written = true;
}

void WatchedMemory::forget_times() {
  for (auto& [begin, region] : regions_)
    for (Word& word : region.words)
      word.write_time = word.read_time = 0, word.writer = word.reader = 0, word.readers.clear();
}

WatchedMemory::Region* WatchedMemory::find(const void* at) {
  const std::uintptr_t a = address(at);
  if (last_ && a >= begin_ && a < begin_ + last_->bytes) return last_;
  auto found = regions_.upper_bound(a);
  if (found == regions_.begin()) return nullptr;
  --found;
  if (a >= found->first + found->second.bytes) return nullptr;
  begin_ = found->first;
  return last_ = &found->second;
}

Emulation::Emulation(WatchedMemory& memory, const Shape& shape, Interleaving order)
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

Emulation::~Emulation() {
  if (memory_.user_ == this) memory_.user_ = nullptr;
  for (auto& block : shared_)
    if (shape_.shared_bytes) memory_.remove(block.get());
}

bool Emulation::go_on(bool until_quiet) {
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

void Emulation::touch_by_host(const void* at, std::size_t bytes, bool write) {
  WatchedMemory::Region* region = memory_.user_ == this ? memory_.find(at) : nullptr;
  if (!region) return;
  const std::size_t size = region->word_bytes, from = WatchedMemory::address(at) - memory_.begin_;
  current_ = host();  // no thread
  for (std::size_t w = from / size; w < (from + bytes + size - 1) / size; ++w)
    if (write || region->words[w].written) check(region->words[w], w * size / 4, write);
  ++clocks_[std::size_t(host())][std::size_t(host())];
}

const EmulatorTable* Emulation::table() {
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

void Emulation::enter() {
  Emulation* self = active();
  self->kernel_(self->argument_);
  self = active();
  self->fibres_[std::size_t(self->current_)].state = State::done;
  self->check_left(self->current_);
  setcontext(&self->scheduler_);
}

char* Emulation::shared_of(int block) {
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

std::string Emulation::name(int thread) const {
  if (thread == host()) return "the host";
  return "thread " + std::to_string(thread % shape_.threads) + " of block " + std::to_string(thread / shape_.threads);
}

void Emulation::problem(const std::string& what) {
  if (problem_.empty()) problem_ = what;
  if (!in_thread_ || !stops_) return;
  fatal_ = true;
  suspend();
}

void Emulation::start(int t) {
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

void Emulation::make_ready(int t) {
  fibres_[std::size_t(t)].state = State::ready;
  ready_.push_back(t);
}

bool Emulation::pick() {
  if (ready_.empty()) return false;
  std::size_t at = 0;
  if (order_.kind == Interleaving::last_first) at = ready_.size() - 1;
  if (order_.kind == Interleaving::random) at = draw() % ready_.size();
  if (yields_ > 0 && order_.kind == Interleaving::last_first) at = draw() % ready_.size();  // who waits lets others run
  current_ = ready_[at];
  ready_.erase(ready_.begin() + std::ptrdiff_t(at));
  return true;
}

std::uint32_t Emulation::draw() {
  random_ = random_ * 1664525 + 1013904223;
  return random_ >> 8;
}

void Emulation::suspend() { swapcontext(&fibres_[std::size_t(current_)].context, &scheduler_); }

void Emulation::yield() {
  if (++yields_ > most_yields) {
    problem(name(current_) + " waits for ever");
    fatal_ = true;
  }
  ready_.push_back(current_);
  suspend();
}

std::vector<int> Emulation::peers(int thread, State kind) const {
  const bool of_warp = kind == State::warp || kind == State::exchange;
  const int size = of_warp ? warp_threads : shape_.threads * (kind == State::cluster ? shape_.cluster : 1);
  const int first = thread / size * size;
  std::vector<int> result;
  for (int t = first; t < first + size; ++t) result.push_back(t);
  return result;
}

void Emulation::meet(State kind) {
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

bool Emulation::vote(bool mine) {
  const int self = current_;
  fibres_[std::size_t(self)].vote = mine;
  meet(State::block);
  fibres_[std::size_t(self)].vote = false;
  return fibres_[std::size_t(self)].any;
}

void Emulation::order(const std::vector<int>& threads) {
  Clock joined(clocks_.size());
  for (const int t : threads) join(joined, clocks_[std::size_t(t)]);
  for (const int t : threads) {
    clocks_[std::size_t(t)] = joined;
    ++clocks_[std::size_t(t)][std::size_t(t)];
  }
}

void Emulation::check_left(int thread) {
  for (const State kind : {State::warp, State::exchange, State::block, State::cluster})
    for (const int t : peers(thread, kind))
      if (fibres_[std::size_t(t)].state == kind)
        problem(name(thread) + " has ended, but " + name(t) + " waits for it at a barrier");
}

void Emulation::join(Clock& into, const Clock& from) {
  for (std::size_t t = 0; t < into.size(); ++t) into[t] = std::max(into[t], from[t]);
}

bool Emulation::synchronise(const void* at, bool acquire, bool release) {
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

bool Emulation::synchronise_system(const void* at, bool acquire, bool release) {
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

bool Emulation::touch_constant(const void* at, int bytes) {
  if (!touch(at, bytes, false)) return false;
  const WatchedMemory::Region& region = *memory_.find(at);
  const std::size_t offset = WatchedMemory::address(at) - memory_.begin_, size = region.word_bytes;
  for (std::size_t w = offset / size; w < (offset + std::size_t(bytes)) / size; ++w)
    if (region.words[w].write_time)
      problem(name(current_) + " reads as constant what " + name(region.words[w].writer) + " has written");
  return true;
}

bool Emulation::touch(const void* at, int bytes, bool write) {
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

void Emulation::check(WatchedMemory::Word& word, std::size_t at, bool write) {
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

}  // namespace cortex::test
