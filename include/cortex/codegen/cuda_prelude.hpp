// What every generated CUDA source begins with. All that is the hardware's own (PTX, built-in variables, intrinsics)
// stands in `cuda_device_prelude`; a host emulation defines the same names in its place and compiles the rest as it is.
// Nothing is included: a header of CUDA's would cost more than the whole kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cortex::codegen {

/// The primitives. Memory is reached through `load`, `store` and their kin alone.
inline constexpr std::string_view cuda_device_prelude =
    "// ---- the hardware ----\n"
    "#define DEVICE inline __device__ __attribute__((always_inline))\n"
    "#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1107\n"  // which copies parameters that are indexed
    "#define __grid_constant__\n"
    "#endif\n"
    "#define KERNEL(name, threads) \\\n"
    "  extern \"C\" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ Launch launch)\n"
    "#define UNROLL(how) _Pragma(how)\n"
    "#define SHARED(chip) extern __shared__ __align__(16) char chip[]\n"
    "#define MMA(shape, type, sums, a, b0, b1) \\\n"
    "  asm volatile(\"mma.sync.aligned.\" shape \".row.col.f32.\" type \".\" type \".f32 \" \\\n"
    "               \"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\" \\\n"
    "               : \"+f\"(sums[0]), \"+f\"(sums[1]), \"+f\"(sums[2]), \"+f\"(sums[3]) \\\n"
    "               : \"r\"(a.x), \"r\"(a.y), \"r\"(a.z), \"r\"(a.w), \"r\"(b0), \"r\"(b1))\n"
    R"cuda(typedef unsigned long long u64;

DEVICE int thread_number() { return threadIdx.x; }
DEVICE int block_number() { return blockIdx.x; }
// Not `__syncthreads`, which is `.aligned`: before it NVRTC leaves out what brings a warp together again whose threads
// leave a loop one after the other, as where some of them wait for other blocks.
DEVICE void sync_block() { __barrier_sync(0); }
DEVICE bool sync_block_or(bool any) {
  int result;
  asm volatile("{\n.reg .pred one, all;\nsetp.ne.s32 one, %1, 0;\nbarrier.red.or.pred all, 0, one;\n"
               "selp.s32 %0, 1, 0, all;\n}" : "=r"(result) : "r"((int)any) : "memory");
  return result;
}
DEVICE void sync_warp() { __syncwarp(); }
DEVICE void sync_cluster() {
  // Releases and acquires, which only the PTX of CUDA 12 can spell out. Not `.aligned`: nothing promises that a warp is
  // together again after a condition.
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}
DEVICE void relax() { __nanosleep(32); }
// What the thread of the warp has whose number differs in the bits of `distance`. All 32 threads call it together.
template <class T> DEVICE T from_thread(T value, int distance) { return __shfl_xor_sync(0xffffffffu, value, distance); }

DEVICE u64 add_acquire_release(u64* p, u64 value) {
  u64 old;
  asm volatile("atom.add.acq_rel.gpu.global.u64 %0, [%1], %2;" : "=l"(old) : "l"(p), "l"(value) : "memory");
  return old;
}
DEVICE u64 load_acquire(const u64* p) {
  u64 value;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
DEVICE u64 load_relaxed(const u64* p) {
  u64 value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
DEVICE void store_release(u64* p, u64 value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}

// Memory of the host, and the device's clock in nanoseconds: for kernels that take calls from a mailbox.
struct __align__(16) Wide {
  u64 low, high;
};
DEVICE u64 load_acquire_system(const u64* p) {
  u64 value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
DEVICE void store_release_system(u64* p, u64 value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
DEVICE u64 load_far(const u64* p, long long i) {
  u64 value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(p + i) : "memory");
  return value;
}
DEVICE Wide load_far(const Wide* p, long long i) {
  Wide value;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(p + i) : "memory");
  return value;
}
DEVICE u64 clock_ns() {
  u64 time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  return time;
}

template <class T> DEVICE T load_constant(const T* p, long long i) { return __ldg(p + i); }
template <class T> DEVICE T load(const T* p, long long i) {
  __builtin_assume(__isGlobal(p));
  return p[i];
}
template <class T> DEVICE void store(T* p, long long i, T value) {
  __builtin_assume(__isGlobal(p));
  p[i] = value;
}
template <class T> DEVICE T load_chip(const T* p, int i) { return p[i]; }
template <class T> DEVICE void store_chip(T* p, int i, T value) { p[i] = value; }
// Of a row that is in shared memory or in global: the address says which.
template <class T> DEVICE T load_row(const T* row, int i) { return row[i]; }
// A place in the shared memory of that block of the cluster: the one that `p` is in this block's.
template <class T> DEVICE T* in_block(T* p, int block) {
  T* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(block));
  return there;
}
// Into the shared memory of that block, by an address of 32 bits.
DEVICE unsigned address_in_block(const float* p, int block) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(block));
  return there;
}
DEVICE void store_in_block(float* p, int i, float value, int block) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address_in_block(p + i, block)), "f"(value) : "memory");
}
DEVICE void store_quad_in_block(float* p, int i, float a, float b, float c, float d, int block) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};"
               ::"r"(address_in_block(p + i, block)), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
// 8 and 16 bytes at once, at places that are multiples of them.
typedef float2 Pair;
DEVICE Pair load_constant_pair(const float* p, long long i) { return __ldg((const Pair*)(p + i)); }
DEVICE Pair load_row_pair(const float* row, int i) { return *(const Pair*)(row + i); }
DEVICE Pair load_pair(const float* p, long long i) {
  __builtin_assume(__isGlobal(p));
  return *(const Pair*)(p + i);
}
DEVICE float4 load_constant_quad(const float* p, long long i) { return __ldg((const float4*)(p + i)); }
DEVICE ushort4 load_constant_quad(const unsigned short* p, long long i) { return __ldg((const ushort4*)(p + i)); }
DEVICE char4 load_constant_quad(const signed char* p, long long i) { return __ldg((const char4*)(p + i)); }
DEVICE float4 load_row_quad(const float* row, int i) { return *(const float4*)(row + i); }
DEVICE ushort4 load_row_quad(const unsigned short* row, int i) { return *(const ushort4*)(row + i); }
DEVICE char4 load_row_quad(const signed char* row, int i) { return *(const char4*)(row + i); }
template <class T> DEVICE auto load_chip_quad(const T* p, int i) { return load_row_quad(p, i); }
template <class T> DEVICE auto load_quad(const T* p, long long i) {
  __builtin_assume(__isGlobal(p));
  return load_row_quad(p + i, 0);
}
DEVICE void store_chip_quad(float* p, int i, float a, float b, float c, float d) { *(float4*)(p + i) = make_float4(a, b, c, d); }
DEVICE void store_quad(float* p, long long i, float a, float b, float c, float d) {
  __builtin_assume(__isGlobal(p));
  *(float4*)(p + i) = make_float4(a, b, c, d);
}
typedef uint4 Piece;
template <class T> DEVICE Piece load_piece(const T* p, long long i) { return __ldg((const Piece*)(p + i)); }
template <class T> DEVICE void store_chip_piece(T* p, int i, Piece piece) { *(Piece*)(p + i) = piece; }

DEVICE float fma_(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEVICE double fma_(double a, double b, double c) { return __fma_rn(a, b, c); }
DEVICE float bits_to_real(int bits) { return __int_as_float(bits); }
DEVICE double bits_to_real(long long bits) { return __longlong_as_double(bits); }
DEVICE unsigned real_to_bits(float a) { return unsigned(__float_as_int(a)); }
DEVICE u64 real_to_bits(double a) { return u64(__double_as_longlong(a)); }
DEVICE float from_f16(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Tensor cores: a warp's sums += weights * x, as `ir::Mma` says which thread has what. Of a tile's weights each thread
// has 16 bytes, in the order of the threads.
typedef uint4 Fragment;
template <class T> DEVICE Fragment load_fragment(const T* p, long long i) {
  return __ldg((const Fragment*)(p + i) + thread_number() % 32);
}
template <class T> DEVICE Fragment load_chip_fragment(const T* p, int i) {
  return ((const Fragment*)(p + i))[thread_number() % 32];
}
DEVICE unsigned pair_bf16(float low, float high) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
DEVICE unsigned pair_f16(float low, float high) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
DEVICE unsigned round_tf32(float x) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
}
DEVICE void mma_bf16(float* sums, Fragment w, float x0, float x1, float x8, float x9) {
  MMA("m16n8k16", "bf16", sums, w, pair_bf16(x0, x1), pair_bf16(x8, x9));
}
DEVICE void mma_f16(float* sums, Fragment w, float x0, float x1, float x8, float x9) {
  MMA("m16n8k16", "f16", sums, w, pair_f16(x0, x1), pair_f16(x8, x9));
}
DEVICE void mma_tf32(float* sums, Fragment w, float x0, float x4) {
  MMA("m16n8k8", "tf32", sums, w, round_tf32(x0), round_tf32(x4));
}

// a / b where b is 1 or more, or NaN. The compiler's own division takes a branch for divisors that are very small or
// large, and what stands on one side of a branch is not mixed with what stands on the other: gates would be computed
// one after the other. Rounded as a division is, unless the result is subnormal.
DEVICE float ratio_(float a, float b) {
  const float scale = b > 0x1p64f ? 0x1p-64f : 1.0f, scaled = b * scale;
  const float d = scaled > 0x1p126f ? 0x1p126f : scaled;  // for infinity, whose ratio becomes 0
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
  r = fma_(fma_(-d, r, 1.0f), r, r);
  const float q = a * r;
  return fma_(fma_(-d, q, a), r, q) * scale;
}
DEVICE double ratio_(double a, double b) { return a / b; }

DEVICE float abs_(float a) { return fabsf(a); }
DEVICE double abs_(double a) { return fabs(a); }
DEVICE float sqrt_(float a) { return __fsqrt_rn(a); }
DEVICE double sqrt_(double a) { return __dsqrt_rn(a); }
DEVICE float round_(float a) { return rintf(a); }
DEVICE double round_(double a) { return rint(a); }
DEVICE float exp_(float a) { return expf(a); }
DEVICE double exp_(double a) { return exp(a); }
DEVICE float log_(float a) { return logf(a); }
DEVICE double log_(double a) { return log(a); }
DEVICE float tanh_(float a) { return tanhf(a); }
DEVICE double tanh_(double a) { return tanh(a); }
DEVICE float floor_(float a) { return floorf(a); }
DEVICE double floor_(double a) { return floor(a); }
DEVICE float erf_(float a) { return erff(a); }
DEVICE double erf_(double a) { return erf(a); }
DEVICE float sin_(float a) { return sinf(a); }
DEVICE double sin_(double a) { return sin(a); }
DEVICE float cos_(float a) { return cosf(a); }
DEVICE double cos_(double a) { return cos(a); }
DEVICE float log1p_(float a) { return log1pf(a); }
DEVICE double log1p_(double a) { return log1p(a); }
DEVICE float expm1_(float a) { return expm1f(a); }
DEVICE double expm1_(double a) { return expm1(a); }
DEVICE float pow_(float a, float b) { return powf(a, b); }
DEVICE double pow_(double a, double b) { return pow(a, b); }
)cuda";

/// What a barrier that was given up leaves.
struct CudaFault {
  std::int32_t given_up, group, block;  // whether one was; of which group, and the block of it that was missing
};
static_assert(sizeof(CudaFault) == 12 && offsetof(CudaFault, group) == 4 && offsetof(CudaFault, block) == 8,
              "`Group::fault` is an array of the same");

/// What is made of them: arithmetic that IEEE 754 does not spell, and barriers.
inline constexpr std::string_view cuda_common_prelude = R"cuda(// ---- what is made of it ----
DEVICE float from_bf16(unsigned short bits) { return bits_to_real(int(unsigned(bits) << 16)); }
DEVICE float ldexp_(float a, float b) { return a * bits_to_real((int(b) + 127) << 23); }
DEVICE double ldexp_(double a, double b) { return a * bits_to_real(((long long)(b) + 1023) << 52); }
// x = significand * 2^exponent: what lies above the bits of 2/3, the exponent's part of it.
DEVICE unsigned above_2_3(float a) { return real_to_bits(a) - 0x3f2aaaabu; }
DEVICE u64 above_2_3(double a) { return real_to_bits(a) - 0x3fe5555555555555ull; }
DEVICE float exponent_(float a) { return float(int(above_2_3(a)) >> 23); }
DEVICE double exponent_(double a) { return double((long long)(above_2_3(a)) >> 52); }
DEVICE float significand_(float a) { return bits_to_real(int(real_to_bits(a) - (above_2_3(a) >> 23 << 23))); }
DEVICE double significand_(double a) { return bits_to_real((long long)(real_to_bits(a) - (above_2_3(a) >> 52 << 52))); }
template <class T> DEVICE T relu_(T a) { return a < T(0) ? T(0) : a; }
template <class T> DEVICE T sigmoid_(T a) { return T(1) / (T(1) + exp_(-a)); }
// NaN where either side is, and -0 below 0.
DEVICE int min_(int a, int b) { return a < b ? a : b; }
DEVICE int max_(int a, int b) { return a < b ? b : a; }
DEVICE long long min_(long long a, long long b) { return a < b ? a : b; }
DEVICE long long max_(long long a, long long b) { return a < b ? b : a; }
template <class T> DEVICE T min_(T a, T b) { return a != a ? a : b != b ? b : a == b ? (T(1) / a < T(0) ? a : b) : a < b ? a : b; }
template <class T> DEVICE T max_(T a, T b) { return a != a ? a : b != b ? b : a == b ? (T(1) / a < T(0) ? b : a) : a < b ? b : a; }
// Of numbers that are not negative. Both arms of a choice are computed: a division by 0 that is not chosen does no harm.
DEVICE int div_(int a, int b) { return int(unsigned(a) / unsigned(b ? b : 1)); }
DEVICE int mod_(int a, int b) { return int(unsigned(a) % unsigned(b ? b : 1)); }
DEVICE long long div_(long long a, long long b) { return (long long)(u64(a) / u64(b ? b : 1)); }
DEVICE long long mod_(long long a, long long b) { return (long long)(u64(a) % u64(b ? b : 1)); }
// Of numbers in the user's nodes, which may be any: they wrap.
DEVICE int add_(int a, int b) { return int(unsigned(a) + unsigned(b)); }
DEVICE int sub_(int a, int b) { return int(unsigned(a) - unsigned(b)); }
DEVICE int mul_(int a, int b) { return int(unsigned(a) * unsigned(b)); }
DEVICE int quotient_(int a, int b) { return b == -1 ? sub_(0, a) : a / (b ? b : 1); }
DEVICE int remainder_(int a, int b) { return b == -1 ? 0 : a % (b ? b : 1); }

// `ir::Join`. While there are several sums left, a thread hands its neighbour half of them and goes on with the others:
// the additions are those of one sum alone.
template <int THREADS_OF_SUM, int SUMS, class T> DEVICE T join(T* terms) {
  UNROLL("unroll")
  for (int distance = 1; distance < THREADS_OF_SUM; distance *= 2) {
    const bool odd = thread_number() & distance;
    UNROLL("unroll")
    for (int i = 0; i < SUMS; ++i) {
      if (i > 0 && i >= SUMS / (2 * distance)) continue;
      const bool several = SUMS > distance;
      const T a = terms[several ? 2 * i : 0], b = terms[several ? 2 * i + 1 : 0];
      terms[i] = (odd ? b : a) + from_thread(odd ? a : b, distance);
    }
  }
  return terms[0];
}

// To the shared memory of all blocks of the cluster.
template <class T> DEVICE void store_mirrored(T* p, int i, T value) {
  UNROLL("unroll")
  for (int block = 0; block < BLOCKS; ++block) store_in_block(p, i, value, block);
}

DEVICE void store_mirrored_quad(float* p, int i, float a, float b, float c, float d) {
  UNROLL("unroll")
  for (int block = 0; block < BLOCKS; ++block) store_quad_in_block(p, i, a, b, c, d, block);
}

// The barriers of a group whose blocks meet in global memory. A debug build gives up after SPIN_LIMIT looks, says which
// block is missing, and lets the kernel run to its end.
struct Group {
  u64* words;  // of the group: one count, or a flag in and a flag out for each block
  volatile int* fault;  // [0] whether a barrier was given up, [1] the group, [2] the block that was missing
  int number;
  u64 turn;
};
// Each look acquires, which empties the multiprocessor's L1 cache, of which a block that waits has no more use. Looks
// without order, and one after them that acquires and whose value nothing depends on, would not do: NVRTC before CUDA
// 12 leaves out such a load, and what it orders, so that rows which others have written are read from that cache.
DEVICE bool wait_for(const Group& group, const u64* word, u64 value, int block) {
  long long looks = 0;
  while (load_acquire(word) < value) {
    relax();
    if (!SPIN_LIMIT || (!group.fault[0] && ++looks <= SPIN_LIMIT)) continue;
    if (!group.fault[0]) group.fault[1] = group.number, group.fault[2] = block, group.fault[0] = 1;
    return false;
  }
  return true;
}
)cuda";

/// How the blocks of a group meet.
enum class CudaBarrier : std::uint8_t { none, cluster, lock_based, lock_free };

/// How many words of 64 bits a group's barrier needs; BARRIER_WORDS in the texts below, where there are any.
inline int cuda_barrier_words(CudaBarrier barrier, int blocks) {
  if (barrier == CudaBarrier::lock_based) return 1 + blocks;
  return barrier == CudaBarrier::lock_free ? 2 * blocks : 0;
}

/// The barrier of a grid's blocks with one counter that all add to. The count only grows, so it needs no reset.
inline constexpr std::string_view cuda_lock_based_barrier = R"cuda(
static_assert(BARRIER_WORDS == 1 + BLOCKS, "the count, and for debug builds how often each block has come");
DEVICE u64 first_turn(const u64*, int) { return 0; }
DEVICE void sync_grid(Group& group, int block) {
  sync_block();
  if (thread_number() == 0) {
    if (SPIN_LIMIT) add_acquire_release(group.words + 1 + block, 1);
    const u64 old = add_acquire_release(group.words, 1), goal = (old / BLOCKS + 1) * BLOCKS;
    if (!wait_for(group, group.words, goal, -1))
      for (int b = 0; b < BLOCKS; ++b)
        if (load_acquire(group.words + 1 + b) < goal / BLOCKS) group.fault[2] = b;
  }
  sync_block();
}
)cuda";

/// The barrier without atomic read-modify-writes (Xiao and Feng 2010): each block raises a flag, the first block sees
/// them all and answers.
inline constexpr std::string_view cuda_lock_free_barrier = R"cuda(
static_assert(BARRIER_WORDS == 2 * BLOCKS, "a flag in for each block, then a flag out for each");
// The next block for a thread to look after. With as many threads as blocks there is none, and no loop to copy out.
DEVICE int next_block(int b) { return BLOCKS > THREADS ? b + THREADS : BLOCKS; }
DEVICE u64 first_turn(const u64* words, int block) { return load_acquire(words + block); }
DEVICE void sync_grid(Group& group, int block) {
  ++group.turn;
  sync_block();
  if (thread_number() == 0) store_release(group.words + block, group.turn);
  if (block == 0) {
    for (int b = thread_number(); b < BLOCKS; b = next_block(b)) wait_for(group, group.words + b, group.turn, b);
    sync_block();
    for (int b = thread_number(); b < BLOCKS; b = next_block(b)) store_release(group.words + BLOCKS + b, group.turn);
  }
  if (thread_number() == 0 && block != 0) wait_for(group, group.words + BLOCKS + block, group.turn, 0);
  sync_block();
}
)cuda";

}  // namespace cortex::codegen
