// The TreeLSTM written by hand on OpenBLAS, batched by level: what an engineer with a good BLAS and patience reaches.
//
//   number the nodes by height, and note the rows of children
//   leaves:  gather word vectors; one product for the gates i, o, u; pointwise
//   levels:  sums of children's states; one product for i, o, u; pointwise
//   then, on each level but the last, one product for the forget gates of its own rows: each is wanted once, by the one
//   parent, and here the rows are contiguous, so children's rows are never copied; f_k c_k is kept in place of c_k
//
// Nothing is allocated once the buffers have their size. For products of few rows OpenBLAS offers several ways whose
// speeds differ up to four times: sgemm or one sgemv a row, on the weights as they are or transposed. Which is the
// fastest for a number of rows is measured once, when the object is made.
#pragma once

#if CORTEX_BENCH_OPENBLAS

#include <cblas.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "../../examples/support/recursion.hpp"

namespace bench {

using examples::Phrase;

/// Starts the program again with OpenBLAS told to use its AVX-512 kernels, if the CPU has AVX-512 and it is told
/// otherwise or nothing: on CPUs that it does not know it falls back on much slower ones. To be called first in `main`.
inline void use_best_openblas([[maybe_unused]] char** argv) {
#if defined(__x86_64__)
  const char* const told = std::getenv("OPENBLAS_CORETYPE");
  if (__builtin_cpu_supports("x86-64-v4") && (!told || std::string(told) != "SKYLAKEX")) {
    setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 1);
    unsetenv("OPENBLAS_L2_SIZE");   // the library finds the size of this CPU's cache itself
    execv("/proc/self/exe", argv);  // returns only if it fails; what is in effect is printed
  }
#endif
  openblas_set_num_threads(1);
}

inline std::string openblas_name() {
  return openblas_get_config() + std::string(", kernels for ") + openblas_get_corename();
}

/// Uninitialised, aligned to cache lines, growing.
class Buffer {
 public:
  float* room(std::size_t count) {
    if (count > size_) {
      std::free(data_);
      size_ = count + count / 2;
      data_ = static_cast<float*>(std::aligned_alloc(64, (size_ * sizeof(float) + 63) / 64 * 64));
      if (!data_) throw std::bad_alloc();
      std::fill(data_, data_ + size_, 0.0F);
    }
    return data_;
  }
  explicit Buffer(const std::vector<float>& values = {}) {
    std::copy(values.begin(), values.end(), room(std::max<std::size_t>(values.size(), 1)));
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() const { return data_; }

 private:
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

/// y[rows][to] = x[rows][from] times a matrix, in whichever of OpenBLAS's ways is the fastest for so many rows.
class Product {
 public:
  /// `forth` is the matrix as [from][to].
  Product(const std::vector<float>& forth, std::size_t from, std::size_t to)
      : from_(int(from)), to_(int(to)), forth_(forth), back_(transposed(forth, from, to)) {
    way_.fill(gemm_forth);
    const std::vector<float> x(most_measured * from, 0.5F);
    std::vector<float> y(most_measured * to);
    for (std::size_t rows = 1; rows <= most_measured; ++rows) {
      double best = INFINITY;
      for (const Way way : {gemm_forth, gemm_back, gemv_forth, gemv_back}) {
        if (rows > 8 && (way == gemv_forth || way == gemv_back)) continue;
        const double time = time_of([&] { run(way, x.data(), int(rows), y.data()); });
        if (time < best) best = time, way_[rows - 1] = way;
      }
    }
  }

  void operator()(const float* x, std::size_t rows, float* y) const {
    run(rows <= most_measured ? way_[rows - 1] : gemm_forth, x, int(rows), y);
  }

  /// The ways taken for 1, 2, ... rows: M or m for sgemm, v for sgemv; capital where the matrix is [from][to].
  std::string choices() const {
    std::string text;
    for (const Way way : way_) text += "MmVv"[way];
    return text;
  }

 private:
  enum Way : std::uint8_t { gemm_forth, gemm_back, gemv_forth, gemv_back };
  static constexpr std::size_t most_measured = 16;

  static std::vector<float> transposed(const std::vector<float>& m, std::size_t from, std::size_t to) {
    std::vector<float> result(m.size());
    for (std::size_t j = 0; j < from; ++j)
      for (std::size_t i = 0; i < to; ++i) result[i * from + j] = m[j * to + i];
    return result;
  }
  /// The best of some runs that follow each other, as the levels of a tree do; neighbours on the machine only add to
  /// it.
  template <class Work>
  static double time_of(Work&& work) {
    double best = INFINITY;
    for (int run = 0; run < 25; ++run) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 2; ++i) work();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  }

  void run(Way way, const float* x, int rows, float* y) const {
    switch (way) {
      case gemm_forth:
        return cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, to_, from_, 1, x, from_, forth_.data(), to_,
                           0, y, to_);
      case gemm_back:
        return cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, to_, from_, 1, x, from_, back_.data(), from_,
                           0, y, to_);
      case gemv_forth:
        for (int r = 0; r < rows; ++r)
          cblas_sgemv(CblasRowMajor, CblasTrans, from_, to_, 1, forth_.data(), to_, x + std::ptrdiff_t(r) * from_, 1, 0,
                      y + std::ptrdiff_t(r) * to_, 1);
        return;
      case gemv_back:
        for (int r = 0; r < rows; ++r)
          cblas_sgemv(CblasRowMajor, CblasNoTrans, to_, from_, 1, back_.data(), from_, x + std::ptrdiff_t(r) * from_, 1,
                      0, y + std::ptrdiff_t(r) * to_, 1);
        return;
    }
  }

  int from_, to_;
  Buffer forth_, back_;
  std::array<Way, most_measured> way_;
};

namespace pointwise {

// tanh as an odd rational function, degree 13 over 6, of x clamped to where tanh is 1 in float: error below 3e-7.
[[gnu::always_inline]] inline float tanh(float x) {
  constexpr float limit = 7.90531110763549805F;
  x = x < -limit ? -limit : x;
  x = x > limit ? limit : x;
  const float s = x * x;
  float p = -2.76076847742355e-16F;
  p = p * s + 2.00018790482477e-13F;
  p = p * s + -8.60467152213735e-11F;
  p = p * s + 5.12229709037114e-08F;
  p = p * s + 1.48572235717979e-05F;
  p = p * s + 6.37261928875436e-04F;
  p = p * s + 4.89352455891786e-03F;
  float q = 1.19825839466702e-06F;
  q = q * s + 1.18534705686654e-04F;
  q = q * s + 2.26843463243900e-03F;
  q = q * s + 4.89352518554385e-03F;
  return x * p / q;
}
[[gnu::always_inline]] inline float sigmoid(float x) { return 0.5F * tanh(0.5F * x) + 0.5F; }

// Gates are [3][n] a row: i, o, u.
EXAMPLES_VECTORISED static void leaf(std::size_t n, const float* __restrict gates, const float* __restrict bias,
                                     float* __restrict h, float* __restrict c) {
  for (std::size_t i = 0; i < n; ++i) {
    const float cell = sigmoid(gates[i] + bias[i]) * tanh(gates[2 * n + i] + bias[2 * n + i]);
    c[i] = cell;
    h[i] = sigmoid(gates[n + i] + bias[n + i]) * tanh(cell);
  }
}
EXAMPLES_VECTORISED static void inner(std::size_t n, const float* __restrict gates, const float* __restrict bias,
                                      const float* fc_left, const float* fc_right, float* __restrict h,
                                      float* __restrict c) {
  for (std::size_t i = 0; i < n; ++i) {
    const float cell =
        sigmoid(gates[i] + bias[i]) * tanh(gates[2 * n + i] + bias[2 * n + i]) + (fc_left[i] + fc_right[i]);
    c[i] = cell;
    h[i] = sigmoid(gates[n + i] + bias[n + i]) * tanh(cell);
  }
}
/// c becomes f c.
EXAMPLES_VECTORISED static void forget(std::size_t n, const float* __restrict gate, const float* __restrict bias,
                                       float* __restrict c) {
  for (std::size_t i = 0; i < n; ++i) c[i] *= sigmoid(gate[i] + bias[i]);
}
EXAMPLES_VECTORISED static void add(std::size_t n, const float* a, const float* b, float* __restrict sum) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}

}  // namespace pointwise

class OpenblasLevel {
 public:
  explicit OpenblasLevel(const examples::TreeLstmWeights& w)
      : hidden_(std::size_t(w.hidden)),
        input_(std::size_t(w.input)),
        embedding_(w.Emb),
        W_(examples::stacked<float>({&w.W_i, &w.W_o, &w.W_u}, input_), input_, 3 * hidden_),
        U_(examples::stacked<float>({&w.U_i, &w.U_o, &w.U_u}, hidden_), hidden_, 3 * hidden_),
        U_f_(examples::stacked<float>({&w.U_f}, hidden_), hidden_, hidden_),
        b_(examples::stacked<float>({&w.b_i, &w.b_o, &w.b_u}, 1)),
        b_f_(w.b_f) {}

  std::string choices() const {
    return "ways for 1 to 16 rows: W " + W_.choices() + ", U " + U_.choices() + ", U_f " + U_f_.choices();
  }

  /// Writes h of each root to `out`, [root][hidden].
  void operator()(const std::vector<const Phrase*>& roots, float* out) {
    number(roots);
    const std::size_t n = hidden_, count = nodes_.size();
    float* const h = h_.room(count * n);
    float* const c = c_.room(count * n);
    float* const x = x_.room(count * std::max(n, input_));
    float* const gates = gates_.room(count * 3 * n);
    for (std::size_t level = 0; level + 1 < begin_.size(); ++level) {
      const std::size_t begin = begin_[level], rows = begin_[level + 1] - begin;
      float* const own_h = h + begin * n;
      float* const own_c = c + begin * n;
      if (level == 0) {
        for (std::size_t r = 0; r < rows; ++r)
          std::copy_n(embedding_.data() + std::size_t(word_[r]) * input_, input_, x + r * input_);
        W_(x, rows, gates);
        for (std::size_t r = 0; r < rows; ++r)
          pointwise::leaf(n, gates + r * 3 * n, b_.data(), own_h + r * n, own_c + r * n);
      } else {
        for (std::size_t r = 0; r < rows; ++r)
          pointwise::add(n, h + left(begin + r) * n, h + right(begin + r) * n, x + r * n);
        U_(x, rows, gates);
        for (std::size_t r = 0; r < rows; ++r)
          pointwise::inner(n, gates + r * 3 * n, b_.data(), c + left(begin + r) * n, c + right(begin + r) * n,
                           own_h + r * n, own_c + r * n);
      }
      if (level + 2 == begin_.size()) break;
      U_f_(own_h, rows, gates);
      for (std::size_t r = 0; r < rows; ++r) pointwise::forget(n, gates + r * n, b_f_.data(), own_c + r * n);
    }
    for (std::size_t i = 0; i < roots.size(); ++i) std::copy_n(h + std::size_t(row_[i]) * n, n, out + i * n);
  }

 private:
  std::size_t left(std::size_t row) const { return std::size_t(left_[row]); }
  std::size_t right(std::size_t row) const { return std::size_t(right_[row]); }

  /// Gives each node a row, so that the rows of one height follow each other, leaves first. Breadth first, where a
  /// node's children stand side by side behind it; backwards over that for the heights; then a counting sort.
  void number(const std::vector<const Phrase*>& roots) {
    nodes_.assign(roots.begin(), roots.end());
    first_child_.clear();
    for (std::size_t at = 0; at < nodes_.size(); ++at) {
      const Phrase* const phrase = nodes_[at];
      first_child_.push_back(int(nodes_.size()));
      if (phrase->left) nodes_.push_back(phrase->left), nodes_.push_back(phrase->right);
    }
    const std::size_t count = nodes_.size();
    height_.resize(count), row_.resize(count), word_.resize(count), left_.resize(count), right_.resize(count);
    begin_.assign(1, 0);
    for (std::size_t at = count; at-- > 0;) {
      const std::size_t child = std::size_t(first_child_[at]);
      height_[at] = nodes_[at]->left ? 1 + std::max(height_[child], height_[child + 1]) : 0;
      if (std::size_t(height_[at]) + 2 > begin_.size()) begin_.resize(std::size_t(height_[at]) + 2);
      ++begin_[std::size_t(height_[at]) + 1];
    }
    for (std::size_t level = 1; level < begin_.size(); ++level) begin_[level] += begin_[level - 1];
    next_.assign(begin_.begin(), begin_.end());
    for (std::size_t at = count; at-- > 0;) {  // children before parents: their rows are known
      const std::size_t row = next_[std::size_t(height_[at])]++;
      row_[at] = int(row);
      if (nodes_[at]->left) {
        left_[row] = row_[std::size_t(first_child_[at])];
        right_[row] = row_[std::size_t(first_child_[at]) + 1];
      } else {
        word_[row] = nodes_[at]->word;
      }
    }
  }

  std::size_t hidden_, input_;
  Buffer embedding_;
  Product W_, U_, U_f_;
  Buffer b_, b_f_;
  Buffer h_, c_, x_, gates_;
  std::vector<const Phrase*> nodes_;             // breadth first
  std::vector<int> first_child_, height_, row_;  // [node]
  std::vector<int> word_, left_, right_;         // [row]
  std::vector<std::size_t> begin_, next_;        // [level] its first row
};

}  // namespace bench

#endif
