// `openblas_level`: by_level.hpp on OpenBLAS. For products of few rows OpenBLAS offers several ways whose speeds differ
// up to four times: sgemm or one sgemv a row, on the weights as they are or transposed. Which is the fastest for a
// number of rows is measured once, when the product is made.
#pragma once

#if CORTEX_BENCH_OPENBLAS

#include <cblas.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "by_level.hpp"

namespace bench {

struct OpenBlas {
  static void use_threads(int threads) { openblas_set_num_threads(threads); }

  /// By one thread: OpenBLAS has threads of its own, which others would get in the way of.
  template <class Work>
  static void each_row(std::size_t rows, Work work) {
    for (std::size_t r = 0; r < rows; ++r) work(r);
  }

  /// Its version, and the kernels in effect. On CPUs that it does not know it falls back on much slower ones:
  /// OPENBLAS_CORETYPE chooses others, which `bench/run` sets.
  static std::string description() {
    return openblas_get_config() + std::string(", kernels for ") + openblas_get_corename();
  }

  /// y[rows][to] = x[rows][from] times a matrix, in whichever of OpenBLAS's ways is the fastest for so many rows.
  class Product {
   public:
    Product(const std::vector<float>& forth, std::size_t from, std::size_t to)
        : from_(int(from)), to_(int(to)), forth_(forth), back_(transposed(forth, from, to)) {
      way_.fill(gemm_forth);
      const std::vector<float> x(most_measured * from, 0.5F);
      std::vector<float> y(most_measured * to);
      for (std::size_t rows = 1; rows <= most_measured; ++rows) {
        double best = INFINITY;
        for (const Way way : {gemm_forth, gemm_back, gemv_forth, gemv_back}) {
          if (rows > 8 && (way == gemv_forth || way == gemv_back)) continue;
          const double time = time_of([&] { run(way, x.data(), int(rows), y.data(), 0); });
          if (time < best) best = time, way_[rows - 1] = way;
        }
      }
    }

    void operator()(const float* x, std::size_t rows, float* y, bool add) const {
      run(rows <= most_measured ? way_[rows - 1] : gemm_forth, x, int(rows), y, add ? 1.0F : 0.0F);
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
      for (int run = 0; run < 12; ++run) {
        const double start = now_us();
        for (int i = 0; i < 2; ++i) work();
        best = std::min(best, now_us() - start);
      }
      return best;
    }

    void run(Way way, const float* x, int rows, float* y, float beta) const {
      switch (way) {
        case gemm_forth:
          return cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, to_, from_, 1, x, from_, forth_.data(),
                             to_, beta, y, to_);
        case gemm_back:
          return cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, to_, from_, 1, x, from_, back_.data(),
                             from_, beta, y, to_);
        case gemv_forth:
          for (int r = 0; r < rows; ++r)
            cblas_sgemv(CblasRowMajor, CblasTrans, from_, to_, 1, forth_.data(), to_, x + std::ptrdiff_t(r) * from_, 1,
                        beta, y + std::ptrdiff_t(r) * to_, 1);
          return;
        case gemv_back:
          for (int r = 0; r < rows; ++r)
            cblas_sgemv(CblasRowMajor, CblasNoTrans, to_, from_, 1, back_.data(), from_, x + std::ptrdiff_t(r) * from_,
                        1, beta, y + std::ptrdiff_t(r) * to_, 1);
          return;
      }
    }

    int from_, to_;
    Buffer forth_, back_;
    std::array<Way, most_measured> way_;
  };
};

}  // namespace bench

#endif
