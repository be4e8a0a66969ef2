// What stands between matrix products, for the systems written by hand: as good as g++ makes it from plain loops, which
// is AVX-512 or AVX2 where there is one (see EXAMPLES_VECTORISED), with rational activations that vectorise.
#pragma once

#include <cstddef>

#include "../../examples/support/recursion.hpp"

namespace bench::pointwise {

using std::size_t;

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

EXAMPLES_VECTORISED static void add(size_t n, const float* a, const float* b, float* __restrict sum) {
  for (size_t i = 0; i < n; ++i) sum[i] = a[i] + b[i];
}
EXAMPLES_VECTORISED static void add_relu(size_t n, const float* __restrict bias, float* __restrict y) {
  for (size_t i = 0; i < n; ++i) y[i] = y[i] + bias[i] > 0 ? y[i] + bias[i] : 0;
}
EXAMPLES_VECTORISED static void tanh_of_sum(size_t n, const float* a, const float* b, float* __restrict y) {
  for (size_t i = 0; i < n; ++i) y[i] = tanh(y[i] + a[i] + b[i]);
}
EXAMPLES_VECTORISED static void tanh_of_both(size_t n, const float* a, const float* b, float* __restrict y) {
  for (size_t i = 0; i < n; ++i) y[i] = tanh(a[i] + b[i]);
}
EXAMPLES_VECTORISED static void tanh_all(size_t n, float* __restrict y) {
  for (size_t i = 0; i < n; ++i) y[i] = tanh(y[i]);
}

// TreeLSTM. Gates are [3][n] a row: i, o, u.
EXAMPLES_VECTORISED static void lstm_leaf(size_t n, const float* __restrict gates, const float* __restrict bias,
                                          float* __restrict h, float* __restrict c) {
  for (size_t i = 0; i < n; ++i) {
    const float cell = sigmoid(gates[i] + bias[i]) * tanh(gates[2 * n + i] + bias[2 * n + i]);
    c[i] = cell;
    h[i] = sigmoid(gates[n + i] + bias[n + i]) * tanh(cell);
  }
}
EXAMPLES_VECTORISED static void lstm_inner(size_t n, const float* __restrict gates, const float* __restrict bias,
                                           const float* fc_left, const float* fc_right, float* __restrict h,
                                           float* __restrict c) {
  for (size_t i = 0; i < n; ++i) {
    const float cell =
        sigmoid(gates[i] + bias[i]) * tanh(gates[2 * n + i] + bias[2 * n + i]) + (fc_left[i] + fc_right[i]);
    c[i] = cell;
    h[i] = sigmoid(gates[n + i] + bias[n + i]) * tanh(cell);
  }
}
/// c becomes f c.
EXAMPLES_VECTORISED static void lstm_forget(size_t n, const float* __restrict gate, const float* __restrict bias,
                                            float* __restrict c) {
  for (size_t i = 0; i < n; ++i) c[i] *= sigmoid(gate[i] + bias[i]);
}

// TreeGRU. Gates of a leaf are [2][n] a row: z, candidate; of an inner node r, z.
EXAMPLES_VECTORISED static void gru_leaf(size_t n, const float* __restrict gates, const float* __restrict bias,
                                         float* __restrict h) {
  for (size_t i = 0; i < n; ++i) h[i] = (1 - sigmoid(gates[i] + bias[i])) * tanh(gates[n + i] + bias[n + i]);
}
EXAMPLES_VECTORISED static void gru_reset(size_t n, const float* __restrict gates, const float* __restrict bias,
                                          const float* __restrict s, float* __restrict reset) {
  for (size_t i = 0; i < n; ++i) reset[i] = sigmoid(gates[i] + bias[i]) * s[i];
}
EXAMPLES_VECTORISED static void gru_inner(size_t n, const float* __restrict update, const float* __restrict update_bias,
                                          const float* __restrict candidate, const float* __restrict candidate_bias,
                                          const float* __restrict s, float* __restrict h) {
  for (size_t i = 0; i < n; ++i) {
    const float z = sigmoid(update[i] + update_bias[i]);
    h[i] = z * s[i] + (1 - z) * tanh(candidate[i] + candidate_bias[i]);
  }
}

// torch's LSTM, gates [4][n] a row: i, f, g, o; and its GRU, [3][n]: r, z, n. `x` holds the input's part with both
// biases, but for the GRU's candidate, whose recurrent bias stays inside the reset.
EXAMPLES_VECTORISED static void lstm_step(size_t n, const float* __restrict x, const float* __restrict gates,
                                          const float* c_before, float* __restrict h, float* __restrict c) {
  for (size_t i = 0; i < n; ++i) {
    const float cell = sigmoid(x[i] + gates[i]) * tanh(x[2 * n + i] + gates[2 * n + i]) +
                       sigmoid(x[n + i] + gates[n + i]) * c_before[i];
    c[i] = cell;
    h[i] = sigmoid(x[3 * n + i] + gates[3 * n + i]) * tanh(cell);
  }
}
EXAMPLES_VECTORISED static void gru_step(size_t n, const float* __restrict x, const float* __restrict gates,
                                         const float* __restrict candidate_bias, const float* h_before,
                                         float* __restrict h) {
  for (size_t i = 0; i < n; ++i) {
    const float r = sigmoid(x[i] + gates[i]), z = sigmoid(x[n + i] + gates[n + i]);
    const float fresh = tanh(x[2 * n + i] + r * (gates[2 * n + i] + candidate_bias[i]));
    h[i] = (1 - z) * fresh + z * h_before[i];
  }
}
/// Adds a row of `bias` to each of `rows`.
EXAMPLES_VECTORISED static void add_bias(size_t rows, size_t n, const float* __restrict bias, float* __restrict y) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < n; ++i) y[r * n + i] += bias[i];
}

/// y = the matrix with these columns, [column][row], times x.
EXAMPLES_VECTORISED static void times_columns(size_t n, const float* __restrict columns, const float* __restrict x,
                                              float* __restrict y) {
  for (size_t i = 0; i < n; ++i) y[i] = 0;
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < n; ++i) y[i] += x[j] * columns[j * n + i];
}

}  // namespace bench::pointwise
