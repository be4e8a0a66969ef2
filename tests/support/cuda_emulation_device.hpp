// What a generated CUDA source finds on the host in place of the device prelude: the same names, each told to the
// emulation, which holds the threads. Includes nothing, so that a kernel compiles in a fraction of a second.
#define DEVICE inline
#define KERNEL(name, threads) extern "C" void name(const Launch launch)
#define UNROLL(how)
#define SHARED(chip) char* const chip = emulator->shared()
typedef unsigned long long u64;

struct Emulator {
  int (*thread)();
  int (*block)();
  char* (*shared)();
  void (*sync_block)();
  void (*sync_cluster)();
  void (*sync_warp)();
  void (*exchange)();     // the threads of a warp meet, and nothing is ordered by it
  char* (*warp_board)();  // 1024 bytes that the threads of a warp share, apart from the program's memory
  void (*relax)();
  bool (*touch)(const void* at, int bytes, bool write);  // false: the access is wrong, and not to be made
  bool (*synchronise)(const void* at, bool acquire, bool release);
  bool (*sync_block_or)(bool any);
  bool (*touch_constant)(const void* at, int bytes);
  bool (*synchronise_system)(const void* at, bool acquire, bool release);  // with the host
  u64 (*clock_ns)();
  char* (*shared_of)(int block);  // of the cluster
};
extern "C" {
__attribute__((visibility("default"))) const Emulator* emulator;
}

DEVICE int thread_number() { return emulator->thread(); }
DEVICE int block_number() { return emulator->block(); }
DEVICE void sync_block() { emulator->sync_block(); }
DEVICE bool sync_block_or(bool any) { return emulator->sync_block_or(any); }
DEVICE void sync_cluster() { emulator->sync_cluster(); }
DEVICE void sync_warp() { emulator->sync_warp(); }
template <class T>
T from_thread(T value, int distance) {
  T* const board = (T*)emulator->warp_board();
  board[thread_number() % 32] = value;
  emulator->exchange();
  value = board[(thread_number() ^ distance) % 32];
  emulator->exchange();
  return value;
}
DEVICE void relax() { emulator->relax(); }

DEVICE u64 add_acquire_release(u64* p, u64 value) {
  if (!emulator->synchronise(p, true, true)) return 0;
  const u64 old = *p;
  *p += value;
  return old;
}
DEVICE u64 load_acquire(const u64* p) { return emulator->synchronise(p, true, false) ? *(const volatile u64*)p : 0; }
DEVICE void store_release(u64* p, u64 value) {
  if (emulator->synchronise(p, false, true)) *p = value;
}
// Without order: for those who wait, and what a test puts in the place of the others to take a fence away.
DEVICE u64 load_relaxed(const u64* p) { return emulator->synchronise(p, false, false) ? *(const volatile u64*)p : 0; }
DEVICE void store_relaxed(u64* p, u64 value) {
  if (emulator->synchronise(p, false, false)) *p = value;
}
DEVICE u64 add_relaxed(u64* p, u64 value) {
  if (!emulator->synchronise(p, false, false)) return 0;
  const u64 old = *p;
  *p += value;
  return old;
}

struct alignas(16) Wide {
  u64 low, high;
};
DEVICE u64 load_acquire_system(const u64* p) {
  return emulator->synchronise_system(p, true, false) ? __atomic_load_n(p, __ATOMIC_ACQUIRE) : 0;
}
DEVICE void store_release_system(u64* p, u64 value) {
  if (emulator->synchronise_system(p, false, true)) __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
DEVICE u64 load_relaxed_system(const u64* p) {
  return emulator->synchronise_system(p, false, false) ? __atomic_load_n(p, __ATOMIC_ACQUIRE) : 0;
}
DEVICE void store_relaxed_system(u64* p, u64 value) {
  if (emulator->synchronise_system(p, false, false)) __atomic_store_n(p, value, __ATOMIC_RELEASE);
}
template <class T>
T load_far(const T* p, long long i) {
  return emulator->touch(p + i, sizeof(T), false) ? p[i] : T{};
}
DEVICE u64 clock_ns() { return emulator->clock_ns(); }

template <class T>
T load(const T* p, long long i) {
  return emulator->touch(p + i, sizeof(T), false) ? p[i] : T(0);
}
template <class T>
void store(T* p, long long i, T value) {
  if (emulator->touch(p + i, sizeof(T), true)) p[i] = value;
}
template <class T>
T load_constant(const T* p, long long i) {
  return emulator->touch_constant(p + i, sizeof(T)) ? p[i] : T(0);
}
template <class T>
T load_chip(const T* p, int i) {
  return load(p, i);
}
template <class T>
void store_chip(T* p, int i, T value) {
  store(p, i, value);
}

template <class T>
T load_row(const T* row, int i) {
  return load(row, i);
}
/// A place in the shared memory of another block of the cluster, at which `p` is in this block's.
template <class T>
T* in_block(T* p, int block) {
  return (T*)(emulator->shared_of(block) + ((char*)p - emulator->shared()));
}

template <class T>
void store_in_block(T* p, int i, T value, int block) {
  store_chip(in_block(p, block), i, value);
}

struct Piece {
  unsigned part[4];
};
struct Pair {
  float x, y;
};
DEVICE Pair load_pair(const float* p, long long i) {
  return emulator->touch(p + i, sizeof(Pair), false) ? *(const Pair*)(p + i) : Pair{};
}
DEVICE Pair load_row_pair(const float* row, int i) { return load_pair(row, i); }
DEVICE Pair load_constant_pair(const float* p, long long i) {
  return emulator->touch_constant(p + i, sizeof(Pair)) ? *(const Pair*)(p + i) : Pair{};
}
template <class T>
struct Quad {
  T x, y, z, w;
};
template <class T>
Quad<T> load_quad(const T* p, long long i) {
  return emulator->touch(p + i, sizeof(Quad<T>), false) ? *(const Quad<T>*)(p + i) : Quad<T>{};
}
template <class T>
Quad<T> load_chip_quad(const T* p, int i) {
  return load_quad(p, i);
}
template <class T>
Quad<T> load_row_quad(const T* row, int i) {
  return load_quad(row, i);
}
template <class T>
Quad<T> load_constant_quad(const T* p, long long i) {
  return emulator->touch_constant(p + i, sizeof(Quad<T>)) ? *(const Quad<T>*)(p + i) : Quad<T>{};
}
template <class T>
Piece load_piece(const T* p, long long i) {
  return emulator->touch_constant(p + i, sizeof(Piece)) ? *(const Piece*)(p + i) : Piece{};
}
DEVICE void store_quad(float* p, long long i, float a, float b, float c, float d) {
  if (emulator->touch(p + i, sizeof(Quad<float>), true)) *(Quad<float>*)(p + i) = {a, b, c, d};
}
DEVICE void store_quad_in_block(float* p, int i, float a, float b, float c, float d, int block) {
  store_quad(in_block(p, block), i, a, b, c, d);
}
DEVICE void store_chip_quad(float* p, int i, float a, float b, float c, float d) { store_quad(p, i, a, b, c, d); }
template <class T>
void store_chip_piece(T* p, int i, Piece piece) {
  if (emulator->touch(p + i, sizeof(Piece), true)) *(Piece*)(p + i) = piece;
}

DEVICE float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }
DEVICE float ratio_(float a, float b) { return a / b; }
DEVICE double ratio_(double a, double b) { return a / b; }
DEVICE float bits_to_real(int bits) { return __builtin_bit_cast(float, bits); }
DEVICE double bits_to_real(long long bits) { return __builtin_bit_cast(double, bits); }
DEVICE unsigned real_to_bits(float a) { return __builtin_bit_cast(unsigned, a); }
DEVICE u64 real_to_bits(double a) { return __builtin_bit_cast(u64, a); }
DEVICE float from_f16(
    unsigned short bits) {  // a binary16 has 5 bits of exponent, which begin at -14, and 10 of fraction
  const int sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return bits_to_real(sign | 0x7f800000 | fraction << 13);
  const float magnitude = exponent ? bits_to_real((exponent + 112) << 23 | fraction << 13) : float(fraction) / 16777216;
  return sign ? -magnitude : magnitude;
}
DEVICE float abs_(float a) { return __builtin_fabsf(a); }
DEVICE double abs_(double a) { return __builtin_fabs(a); }
DEVICE float sqrt_(float a) { return __builtin_sqrtf(a); }
DEVICE double sqrt_(double a) { return __builtin_sqrt(a); }
DEVICE float round_(float a) { return __builtin_rintf(a); }
DEVICE double round_(double a) { return __builtin_rint(a); }
DEVICE float exp_(float a) { return __builtin_expf(a); }
DEVICE double exp_(double a) { return __builtin_exp(a); }
DEVICE float log_(float a) { return __builtin_logf(a); }
DEVICE double log_(double a) { return __builtin_log(a); }
DEVICE float tanh_(float a) { return __builtin_tanhf(a); }
DEVICE double tanh_(double a) { return __builtin_tanh(a); }
DEVICE float floor_(float a) { return __builtin_floorf(a); }
DEVICE double floor_(double a) { return __builtin_floor(a); }
DEVICE float erf_(float a) { return __builtin_erff(a); }
DEVICE double erf_(double a) { return __builtin_erf(a); }
DEVICE float sin_(float a) { return __builtin_sinf(a); }
DEVICE double sin_(double a) { return __builtin_sin(a); }
DEVICE float cos_(float a) { return __builtin_cosf(a); }
DEVICE double cos_(double a) { return __builtin_cos(a); }
DEVICE float log1p_(float a) { return __builtin_log1pf(a); }
DEVICE double log1p_(double a) { return __builtin_log1p(a); }
DEVICE float expm1_(float a) { return __builtin_expm1f(a); }
DEVICE double expm1_(double a) { return __builtin_expm1(a); }

// Tensor cores by the definition of PTX's mma: which register of which thread of a warp holds which element of A (16
// outputs times K), B (K times 8) and of the sums (16 times 8).
struct Fragment {
  unsigned part[4];
};
template <class T>
Fragment load_fragment(const T* p, long long i) {
  const Fragment* const from = (const Fragment*)(p + i) + thread_number() % 32;
  return emulator->touch(from, sizeof(Fragment), false) ? *from : Fragment{};
}
template <class T>
Fragment load_chip_fragment(const T* p, int i) {
  return load_fragment(p, i);
}
DEVICE unsigned to_bits(float x) { return __builtin_bit_cast(unsigned, x); }
DEVICE float of_bits(unsigned bits) { return __builtin_bit_cast(float, bits); }
DEVICE unsigned round_bf16(float x) {
  const unsigned bits = to_bits(x);
  return x != x ? bits >> 16 | 64 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
DEVICE unsigned round_f16(float x) {  // to multiples of the last place of the result, which is 2^-24 at least
  const unsigned sign = to_bits(x) >> 16 & 0x8000;
  const float a = __builtin_fabsf(x);
  if (x != x) return 0x7e00 | sign;
  if (a >= 65520) return 0x7c00 | sign;
  int exponent = int(to_bits(a) >> 23) - 127;
  if (exponent < -14) exponent = -14;
  const unsigned places = unsigned(__builtin_rintf(__builtin_ldexpf(a, 10 - exponent)));  // 1024 is the leading one
  return sign | (unsigned(exponent + 14) * 1024 + places);
}
DEVICE unsigned round_tf32(float x) { return x != x ? to_bits(x) : (to_bits(x) + 0x1000) & 0xffffe000; }

struct Board {  // [thread][register]
  unsigned a[32][4], b[32][2];
};
/// `value(register, half)` is the number in a half of a register, or in all of it where there are `halves` 1.
template <int halves, class Value>
void mma(float* sums, const Fragment& w, unsigned x, unsigned y, Value value) {
  Board& board = *(Board*)emulator->warp_board();
  const int thread = thread_number() % 32, group = thread / 4, place = thread % 4;
  for (int r = 0; r < 4; ++r) board.a[thread][r] = w.part[r];
  board.b[thread][0] = x, board.b[thread][1] = y;
  emulator->exchange();
  for (int e = 0; e < 4; ++e) {
    const int output = group + 8 * (e / 2), row = place * 2 + e % 2;
    double sum = sums[e];
    for (int k = 0; k < 8 * halves; ++k) {
      const int holder = k / halves % 4, half = k % halves, upper = k / (4 * halves);
      const unsigned a = board.a[output % 8 * 4 + holder][output / 8 + 2 * upper], b = board.b[row * 4 + holder][upper];
      sum += double(value(a, half)) * double(value(b, half));
    }
    sums[e] = float(sum);
  }
  emulator->exchange();
}
DEVICE void mma_bf16(float* sums, const Fragment& w, float x0, float x1, float x8, float x9) {
  mma<2>(sums, w, round_bf16(x0) | round_bf16(x1) << 16, round_bf16(x8) | round_bf16(x9) << 16,
         [](unsigned pair, int half) { return of_bits((half ? pair >> 16 : pair & 0xffff) << 16); });
}
DEVICE void mma_f16(float* sums, const Fragment& w, float x0, float x1, float x8, float x9) {
  mma<2>(sums, w, round_f16(x0) | round_f16(x1) << 16, round_f16(x8) | round_f16(x9) << 16,
         [](unsigned pair, int half) { return from_f16((unsigned short)(half ? pair >> 16 : pair & 0xffff)); });
}
DEVICE void mma_tf32(float* sums, const Fragment& w, float x0, float x4) {
  mma<1>(sums, w, round_tf32(x0), round_tf32(x4), [](unsigned whole, int) { return of_bits(whole & 0xffffe000); });
}
