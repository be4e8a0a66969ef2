// The probes of `machine.hpp`.
#include "machine.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "system.hpp"

namespace bench {

namespace {
namespace probe {

// One kernel for each width of vectors. Each runs `steps` times twelve chains of multiply-adds, which hide each other's
// latency, and returns the operations done; or adds up `bytes` bytes at `data`.
volatile float sink;

#if defined(__x86_64__)
[[gnu::target("avx512f"), gnu::noinline]] double multiply_add_512(long steps) {
  __m512 a[12];
  for (int i = 0; i < 12; ++i) a[i] = _mm512_set1_ps(float(i));
  const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(0.001F);
  for (long s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) a[i] = _mm512_fmadd_ps(a[i], x, y);
  }
  for (int i = 1; i < 12; ++i) a[0] = _mm512_add_ps(a[0], a[i]);
  sink = _mm512_cvtss_f32(a[0]);
  return double(steps) * 12 * 16 * 2;
}
[[gnu::target("avx2,fma"), gnu::noinline]] double multiply_add_256(long steps) {
  __m256 a[12];
  for (int i = 0; i < 12; ++i) a[i] = _mm256_set1_ps(float(i));
  const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(0.001F);
  for (long s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < 12; ++i) a[i] = _mm256_fmadd_ps(a[i], x, y);
  }
  for (int i = 1; i < 12; ++i) a[0] = _mm256_add_ps(a[0], a[i]);
  sink = _mm256_cvtss_f32(a[0]);
  return double(steps) * 12 * 8 * 2;
}
/// A matrix product's multiply-adds: six rows times four vectors of outputs, `steps` long, with each vector of weights
/// and each row's number loaded where it is multiplied.
[[gnu::target("avx512f"), gnu::noinline]] double tile_512(const float* weights, const float* rows, long steps) {
  __m512 a[6][4];
#pragma GCC unroll 6
  for (auto& row : a)
#pragma GCC unroll 4
    for (__m512& sum : row) sum = _mm512_setzero_ps();
  for (long k = 0; k < steps; ++k) {
    __m512 w[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) w[v] = _mm512_load_ps(weights + k * 64 + v * 16);
#pragma GCC unroll 6
    for (int r = 0; r < 6; ++r) {
      const __m512 x = _mm512_set1_ps(rows[r * steps + k]);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) a[r][v] = _mm512_fmadd_ps(w[v], x, a[r][v]);
    }
  }
  __m512 sum = _mm512_setzero_ps();
  for (const auto& row : a)
    for (const __m512& one : row) sum = _mm512_add_ps(sum, one);
  sink = _mm512_cvtss_f32(sum);
  return double(steps) * 6 * 64 * 2;
}
/// The same, of six rows times two vectors.
[[gnu::target("avx2,fma"), gnu::noinline]] double tile_256(const float* weights, const float* rows, long steps) {
  __m256 a[6][2];
#pragma GCC unroll 6
  for (auto& row : a) row[0] = row[1] = _mm256_setzero_ps();
  for (long k = 0; k < steps; ++k) {
    const __m256 w[2] = {_mm256_load_ps(weights + k * 16), _mm256_load_ps(weights + k * 16 + 8)};
#pragma GCC unroll 6
    for (int r = 0; r < 6; ++r) {
      const __m256 x = _mm256_set1_ps(rows[r * steps + k]);
      a[r][0] = _mm256_fmadd_ps(w[0], x, a[r][0]);
      a[r][1] = _mm256_fmadd_ps(w[1], x, a[r][1]);
    }
  }
  __m256 sum = _mm256_setzero_ps();
  for (const auto& row : a) sum = _mm256_add_ps(sum, _mm256_add_ps(row[0], row[1]));
  sink = _mm256_cvtss_f32(sum);
  return double(steps) * 6 * 16 * 2;
}
[[gnu::target("avx512f"), gnu::noinline]] void read_512(const float* data, std::size_t count) {
  __m512 a[8] = {};
  for (std::size_t at = 0; at + 128 <= count; at += 128) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) a[i] = _mm512_add_ps(a[i], _mm512_load_ps(data + at + i * 16));
  }
  for (int i = 1; i < 8; ++i) a[0] = _mm512_add_ps(a[0], a[i]);
  sink = _mm512_cvtss_f32(a[0]);
}
[[gnu::target("avx2"), gnu::noinline]] void read_256(const float* data, std::size_t count) {
  __m256 a[8] = {};
  for (std::size_t at = 0; at + 64 <= count; at += 64) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i) a[i] = _mm256_add_ps(a[i], _mm256_load_ps(data + at + i * 8));
  }
  for (int i = 1; i < 8; ++i) a[0] = _mm256_add_ps(a[0], a[i]);
  sink = _mm256_cvtss_f32(a[0]);
}
#endif

using Vector [[gnu::vector_size(16)]] = float;
[[gnu::noinline]] double multiply_add_128(long steps) {
  Vector a[12];
  for (int i = 0; i < 12; ++i) a[i] = Vector{} + float(i);
  for (long s = 0; s < steps; ++s)
    for (Vector& v : a) v = v * 0.999F + 0.001F;
  for (int i = 1; i < 12; ++i) a[0] += a[i];
  sink = a[0][0];
  return double(steps) * 12 * 4 * 2;
}
[[gnu::noinline]] void read_128(const float* data, std::size_t count) {
  Vector a[8] = {};
  for (std::size_t at = 0; at + 32 <= count; at += 32)
    for (std::size_t i = 0; i < 8; ++i) a[i] += *reinterpret_cast<const Vector*>(data + at + i * 4);
  for (int i = 1; i < 8; ++i) a[0] += a[i];
  sink = a[0][0];
}

double multiply_add(long steps) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return multiply_add_512(steps);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_add_256(steps);
#endif
  return multiply_add_128(steps);
}
/// Tiles of a matrix product whose operands stay in the first-level cache, again and again: operations done.
double multiply_in_tiles(int times) {
  constexpr long steps = 64;
  alignas(64) static const std::array<float, steps * 64> weights{};
  alignas(64) static const std::array<float, steps * 6> rows{};
  double done = 0;
  for (int i = 0; i < times; ++i) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
      done += tile_512(weights.data(), rows.data(), steps);
      continue;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      done += tile_256(weights.data(), rows.data(), steps);
      continue;
    }
#endif
    done += multiply_add_128(steps);
  }
  return done;
}
#if defined(__x86_64__)
/// The clock, in GHz, right after each of many turns of `work`, some 50 us each: by products that wait for each other,
/// three cycles each. It sinks where the processor needs more power, and rises again soon.
template <class Work>
double clock_ghz(Work work) {
  constexpr int products = 600, turns = 300;
  std::vector<double> ghz;
  for (int turn = 0; turn < turns; ++turn) {
    work();
    std::uint64_t value = 3;
    _mm_lfence();  // until all of it is done
    const double start = now_us();
    for (int i = 0; i < products; i += 4)
      asm volatile("imul %0, %0\n imul %0, %0\n imul %0, %0\n imul %0, %0" : "+r"(value));
    ghz.push_back(3 * products / (now_us() - start) / 1e3);
  }
  std::nth_element(ghz.begin(), ghz.begin() + turns / 2, ghz.end());
  return ghz[turns / 2];
}
#endif
void read(const float* data, std::size_t count) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return read_512(data, count);
  if (__builtin_cpu_supports("avx2")) return read_256(data, count);
#endif
  read_128(data, count);
}

/// Two threads that set a flag each and wait for the other's, as Cortex's barrier does: microseconds a meeting.
double barrier_us(int tries) {
  struct alignas(128) Line {
    std::atomic<int> flag{0};
  } lines[2];
  constexpr int meetings = 20000;
  const auto meet = [&](int self) {
    for (int i = 1; i <= meetings; ++i) {
      lines[self].flag.store(i, std::memory_order_release);
      // A neighbour may have taken the other's core: then spinning keeps it away.
      for (int spins = 0; lines[1 - self].flag.load(std::memory_order_acquire) < i; ++spins)
        if (spins > 20000) std::this_thread::yield();
    }
  };
  double best = INFINITY;
  for (int run = 0; run < tries; ++run) {
    for (Line& line : lines) line.flag = 0;
    std::atomic<bool> ready{false};
    std::thread other([&] {
      ready = true;
      meet(1);
    });
    while (!ready) std::this_thread::yield();
    const double start = now_us();
    meet(0);
    best = std::min(best, (now_us() - start) / meetings);
    other.join();
  }
  return best;
}

/// Runs `work(thread)` on so many threads at once, each on a CPU of its own where there are enough; microseconds until
/// the last is done.
template <class Work>
double together(int threads, Work work) {
  std::atomic<int> waiting{threads};
  std::vector<double> begin(std::size_t(threads), 0.0), end(std::size_t(threads), 0.0);
  const auto part = [&](int t) {
    --waiting;
    while (waiting.load() > 0) std::this_thread::yield();
    begin[std::size_t(t)] = now_us();
    work(t);
    end[std::size_t(t)] = now_us();
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(part, t);
  part(0);
  for (std::thread& other : others) other.join();
  return *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
}

}  // namespace probe
}  // namespace

Machine probe_machine(std::vector<int> threads, int tries) {
  if (std::find(threads.begin(), threads.end(), 1) == threads.end()) threads.insert(threads.begin(), 1);
  Machine machine;
  machine.threads = threads;
  constexpr std::size_t K = 1024;
  machine.slices = {16 * K,   32 * K,   64 * K,   128 * K,  256 * K,   512 * K,  768 * K,
                    1024 * K, 1536 * K, 2048 * K, 4096 * K, 16384 * K, 65536 * K};
  for (const int t : threads) {
    const auto best_of = [&](auto work) {
      double best = 0;
      for (int run = 0; run < tries; ++run) {
        std::vector<double> done(static_cast<std::size_t>(t));
        const double us = probe::together(t, [&](int self) { done[std::size_t(self)] = work(); });
        double operations = 0;
        for (const double d : done) operations += d;
        best = std::max(best, operations / us / 1e3);
      }
      return best;
    };
    machine.gflops.push_back(best_of([] { return probe::multiply_add(100000); }));
    machine.tile_gflops.push_back(best_of([] { return probe::multiply_in_tiles(4000); }));
    machine.gigabytes.emplace_back();
    for (const std::size_t slice : machine.slices) {
      const std::size_t count = slice / sizeof(float);
      std::vector<float*> data;
      for (int self = 0; self < t; ++self) {
        data.push_back(
            static_cast<float*>(std::aligned_alloc(2048 * K, (slice + 2048 * K - 1) / (2048 * K) * 2048 * K)));
        std::fill_n(data.back(), count, 1.0F);
      }
      double rate = 0;
      const std::size_t repeats = std::max<std::size_t>(1, 32 * 1024 * K / slice);
      for (int run = 0; run < tries; ++run) {
        const double us = probe::together(t, [&](int self) {
          for (std::size_t i = 0; i < repeats + 1; ++i) probe::read(data[std::size_t(self)], count);
        });
        rate = std::max(rate, double(slice) * double(repeats + 1) * t / us / 1e3);
      }
      for (float* d : data) std::free(d);
      machine.gigabytes.back().push_back(rate);
    }
    // What a larger slice reaches, a smaller one does too, if nothing comes between.
    std::vector<double>& row = machine.gigabytes.back();
    for (std::size_t s = row.size() - 1; s-- > 0;) row[s] = std::max(row[s], row[s + 1]);
  }
  machine.barrier_us = std::thread::hardware_concurrency() > 1 ? probe::barrier_us(tries) : 0;
#if defined(__x86_64__)
  machine.register_ghz = probe::clock_ghz([] { probe::multiply_add(30000); });
  machine.tile_ghz = probe::clock_ghz([] { probe::multiply_in_tiles(200); });
#endif
  return machine;
}

}  // namespace bench
