// What a generated CUDA source finds on the host in place of the device prelude: the same names, each told to the
// emulation, which holds the threads. Includes nothing, so that a kernel compiles in a fraction of a second.
#define DEVICE inline __attribute__((always_inline))
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
  void (*relax)();
  bool (*touch)(const void* at, int bytes, bool write);  // false: the access is wrong, and not to be made
  bool (*synchronise)(const void* at, bool acquire, bool release);
};
extern "C" {
__attribute__((visibility("default"))) const Emulator* emulator;
}

DEVICE int thread_number() { return emulator->thread(); }
DEVICE int block_number() { return emulator->block(); }
DEVICE void sync_block() { emulator->sync_block(); }
DEVICE void sync_cluster() { emulator->sync_cluster(); }
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
// Without order: what a test puts in the place of the others to take a fence away.
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
  return load(p, i);
}
template <class T>
T load_chip(const T* p, int i) {
  return load(p, i);
}
template <class T>
void store_chip(T* p, int i, T value) {
  store(p, i, value);
}

DEVICE float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }
DEVICE float bits_to_real(int bits) { return __builtin_bit_cast(float, bits); }
DEVICE double bits_to_real(long long bits) { return __builtin_bit_cast(double, bits); }
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
