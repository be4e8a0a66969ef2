// The models written by hand, batched by level, over a library's matrix product: what an engineer with a good library
// and patience reaches.
//
//   number the nodes by height, and note the rows of children
//   each level: gather what the product reads into contiguous rows, one product for all gates that can share one, and
//   then all that follows of it in one pass; leaves read word vectors in place where no product needs them contiguous
//
// Nothing is allocated once the buffers have their size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "level_order.hpp"
#include "pointwise.hpp"
#include "system.hpp"

namespace bench {

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
  Buffer() = default;
  explicit Buffer(const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), room(std::max<std::size_t>(values.size(), 1)));
  }
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* data() const { return data_; }
  std::size_t bytes() const { return size_ * sizeof(float); }

 private:
  float* data_ = nullptr;
  std::size_t size_ = 0;
};

/// `Library` has `use_threads(n)`, `each_row(rows, work)`, which calls `work(r)` for each of them, and `Product`, made
/// of a matrix [from][to], `from` and `to`, and called with rows x [rows][from], their number, y [rows][to], and
/// whether the product is to be added to y.
template <class Library>
class ByLevel : public WatchedSystem {
  using Product = typename Library::Product;
  using size_t = std::size_t;

 public:
  /// Null for the models that only Cortex is tried on.
  static std::unique_ptr<System> make(const Setting& setting) {
    if (setting.model > Model::gru) return nullptr;
    return std::make_unique<ByLevel>(setting);
  }
  explicit ByLevel(const Setting& setting)
      : w_(setting.weights), threads_(setting.threads), H_(w_.hidden), order_(w_.model == Model::dagrnn) {
    Library::use_threads(threads_);
    const auto product = [&](std::initializer_list<const char*> names, size_t inputs) {
      const std::vector<float> forth = w_.stacked(names, inputs);
      return std::make_unique<Product>(forth, inputs, forth.size() / inputs);
    };
    switch (w_.model) {
      case Model::treefc: W_ = product({"W"}, 2 * H_), b_ = w_.concatenated({"b"}); break;
      case Model::dagrnn: U_ = product({"U"}, H_), b_ = w_.concatenated({"b"}); break;
      case Model::treegru:
        W_ = product({"W_z", "W_h"}, H_), U_ = product({"U_r", "U_z"}, H_), U_last_ = product({"U_h"}, H_);
        b_ = w_.concatenated({"b_r", "b_z", "b_h"});
        break;
      case Model::treelstm:
        W_ = product({"W_i", "W_o", "W_u"}, H_), U_ = product({"U_i", "U_o", "U_u"}, H_);
        U_last_ = product({"U_f"}, H_), b_ = w_.concatenated({"b_i", "b_o", "b_u", "b_f"});
        break;
      case Model::mvrnn: {
        W_ = product({"W_v"}, 2 * H_);
        const std::vector<float> forth = w_.stacked({"W_M"}, 2 * H_);
        const auto half = forth.begin() + std::ptrdiff_t(H_ * H_);
        U_ = std::make_unique<Product>(std::vector<float>(forth.begin(), half), H_, H_);
        U_last_ = std::make_unique<Product>(std::vector<float>(half, forth.end()), H_, H_);
        break;
      }
      default: {
        W_ = product({"weight_ih_l0"}, H_), U_ = product({"weight_hh_l0"}, H_);
        b_ = w_("bias_ih_l0");
        const std::vector<float>& recurrent = w_("bias_hh_l0");
        const size_t outside = (w_.model == Model::gru ? 2 : 4) * H_;
        for (size_t i = 0; i < outside; ++i) b_[i] += recurrent[i];
        b_.insert(b_.end(), recurrent.begin() + std::ptrdiff_t(outside), recurrent.end());
        zero_.assign(H_, 0);
        break;
      }
    }
  }

  void before_runs() override { Library::use_threads(threads_); }

  void run(const Roots& roots, float* out) override {
    timed(&Activities::number, [&] { order_.number(roots); });
    switch (w_.model) {
      case Model::treefc: tree_fc(); break;
      case Model::dagrnn: dag_rnn(); break;
      case Model::treegru: tree_gru(); break;
      case Model::treelstm: tree_lstm(); break;
      case Model::mvrnn: mv_rnn(); break;
      default: sequence();
    }
    for (size_t i = 0; i < roots.size(); ++i) std::copy_n(state(order_.root(i)), H_, out + i * H_);
  }

  double linearize_us(const Roots& roots) override {
    const double start = now_us();
    order_.number(roots);
    return now_us() - start;
  }

  void watch(Activities* activities) override { activities_ = activities; }
  size_t bytes() const override {
    return h_.bytes() + c_.bytes() + x_.bytes() + gates_.bytes() + candidate_.bytes() + matrices_.bytes();
  }

 private:
  template <class Work>
  void timed(Activities::Part Activities::*part, Work work) {
    if (!activities_) return work();
    const double start = now_us();
    work();
    (activities_->*part).us += now_us() - start;
    ++(activities_->*part).calls;
  }
  template <class Work>
  void gather(size_t rows, Work work) {
    timed(&Activities::gather, [&] { Library::each_row(rows, work); });
  }
  template <class Work>
  void pointwise_rows(size_t rows, Work work) {
    timed(&Activities::pointwise, [&] { Library::each_row(rows, work); });
  }
  void product(const Product& m, const float* x, size_t rows, float* y, bool add = false) {
    timed(&Activities::product, [&] { m(x, rows, y, add); });
  }

  const float* emb(size_t row) const { return w_emb_ + size_t(order_.word(row)) * H_; }
  /// The first state of a row; of leaves that are their word's vector, that vector.
  const float* state(size_t row) const { return in_place_ && row < order_.rows(0) ? emb(row) : h_.data() + row * H_; }
  const float* left(size_t row) const { return state(size_t(order_.left(row))); }
  const float* right(size_t row) const { return state(size_t(order_.right(row))); }
  float* own(size_t row) { return h_.data() + row * H_; }

  /// Calls `level(begin, rows)` for all but leaves.
  template <class Level>
  void above_leaves(Level level) {
    for (size_t l = 1; l < order_.levels(); ++l) level(order_.begin(l), order_.rows(l));
  }
  void word_vectors(size_t rows, float* x) {
    gather(rows, [&](size_t r) { std::copy_n(emb(r), H_, x + r * H_); });
  }
  /// Sums of children's states.
  void sums(size_t begin, size_t rows, float* x) {
    gather(rows, [&](size_t r) { pointwise::add(H_, left(begin + r), right(begin + r), x + r * H_); });
  }

  void tree_fc() {
    in_place_ = true;
    h_.room(order_.count() * H_);
    float* const x = x_.room(order_.most_rows() * 2 * H_);
    above_leaves([&](size_t begin, size_t rows) {
      gather(rows, [&](size_t r) {
        std::copy_n(left(begin + r), H_, x + r * 2 * H_);
        std::copy_n(right(begin + r), H_, x + r * 2 * H_ + H_);
      });
      product(*W_, x, rows, own(begin));
      pointwise_rows(rows, [&](size_t r) { pointwise::add_relu(H_, b_.data(), own(begin + r)); });
    });
  }

  void dag_rnn() {
    h_.room(order_.count() * H_);
    float* const x = x_.room(order_.most_rows() * H_);
    pointwise_rows(order_.rows(0), [&](size_t r) { pointwise::tanh_of_both(H_, emb(r), b_.data(), own(r)); });
    above_leaves([&](size_t begin, size_t rows) {
      gather(rows, [&](size_t r) {
        const int l = order_.left(begin + r), k = order_.right(begin + r);
        if (l >= 0 && k >= 0)
          pointwise::add(H_, own(size_t(l)), own(size_t(k)), x + r * H_);
        else
          std::copy_n(own(size_t(std::max(l, k))), H_, x + r * H_);
      });
      product(*U_, x, rows, own(begin));
      pointwise_rows(rows, [&](size_t r) { pointwise::tanh_of_sum(H_, emb(begin + r), b_.data(), own(begin + r)); });
    });
  }

  void tree_gru() {
    h_.room(order_.count() * H_);
    float* const x = x_.room(order_.most_rows() * 2 * H_);
    float* const reset = x + order_.most_rows() * H_;
    float* const gates = gates_.room(order_.most_rows() * 2 * H_);
    float* const candidate = candidate_.room(order_.most_rows() * H_);
    const size_t leaves = order_.rows(0);
    word_vectors(leaves, x);
    product(*W_, x, leaves, gates);
    pointwise_rows(leaves, [&](size_t r) { pointwise::gru_leaf(H_, gates + r * 2 * H_, b_.data() + H_, own(r)); });
    above_leaves([&](size_t begin, size_t rows) {
      sums(begin, rows, x);
      product(*U_, x, rows, gates);
      pointwise_rows(
          rows, [&](size_t r) { pointwise::gru_reset(H_, gates + r * 2 * H_, b_.data(), x + r * H_, reset + r * H_); });
      product(*U_last_, reset, rows, candidate);
      pointwise_rows(rows, [&](size_t r) {
        pointwise::gru_inner(H_, gates + r * 2 * H_ + H_, b_.data() + H_, candidate + r * H_, b_.data() + 2 * H_,
                             x + r * H_, own(begin + r));
      });
    });
  }

  // The forget gates are computed for a level's own rows, as soon as it has its states: each is wanted once, by the one
  // parent, and here the rows are contiguous, so children's rows are never copied. f_k c_k is kept in place of c_k.
  void tree_lstm() {
    h_.room(order_.count() * H_);
    float* const c = c_.room(order_.count() * H_);
    float* const x = x_.room(order_.most_rows() * H_);
    float* const gates = gates_.room(order_.most_rows() * 3 * H_);
    const auto forget = [&](size_t begin, size_t rows) {
      if (begin + rows == order_.count()) return;  // the last level has no parents
      product(*U_last_, own(begin), rows, gates);
      pointwise_rows(rows, [&](size_t r) {
        pointwise::lstm_forget(H_, gates + r * H_, b_.data() + 3 * H_, c + (begin + r) * H_);
      });
    };
    const size_t leaves = order_.rows(0);
    word_vectors(leaves, x);
    product(*W_, x, leaves, gates);
    pointwise_rows(leaves,
                   [&](size_t r) { pointwise::lstm_leaf(H_, gates + r * 3 * H_, b_.data(), own(r), c + r * H_); });
    forget(0, leaves);
    above_leaves([&](size_t begin, size_t rows) {
      sums(begin, rows, x);
      product(*U_, x, rows, gates);
      pointwise_rows(rows, [&](size_t r) {
        const size_t row = begin + r;
        pointwise::lstm_inner(H_, gates + r * 3 * H_, b_.data(), c + size_t(order_.left(row)) * H_,
                              c + size_t(order_.right(row)) * H_, own(row), c + row * H_);
      });
      forget(begin, rows);
    });
  }

  void mv_rnn() {
    in_place_ = true;
    const size_t leaves = order_.rows(0), square = H_ * H_;
    h_.room(order_.count() * H_);
    float* const matrices = matrices_.room((order_.count() - leaves) * square);
    float* const x = x_.room(order_.most_rows() * 2 * H_);
    const auto matrix = [&](int row) -> const float* {
      return size_t(row) < leaves ? w_.word("Emb_M", order_.word(size_t(row)), square)
                                  : matrices + (size_t(row) - leaves) * square;
    };
    above_leaves([&](size_t begin, size_t rows) {
      pointwise_rows(rows, [&](size_t r) {
        const size_t row = begin + r;
        pointwise::times_columns(H_, matrix(order_.left(row)), right(row), x + r * 2 * H_);
        pointwise::times_columns(H_, matrix(order_.right(row)), left(row), x + r * 2 * H_ + H_);
      });
      product(*W_, x, rows, own(begin));
      pointwise_rows(rows, [&](size_t r) { pointwise::tanh_all(H_, own(begin + r)); });
      for (size_t row = begin; row < begin + rows; ++row) {
        float* const out = matrices + (row - leaves) * square;
        product(*U_, matrix(order_.left(row)), H_, out);
        product(*U_last_, matrix(order_.right(row)), H_, out, true);
      }
    });
  }

  void sequence() {
    const bool lstm = w_.model == Model::lstm;
    const size_t width = (lstm ? 4 : 3) * H_;
    h_.room(order_.count() * H_);
    float* const c = c_.room(order_.count() * H_);
    float* const all = x_.room(order_.count() * (H_ + width));
    float* const x = all + order_.count() * H_;
    float* const u = gates_.room(order_.most_rows() * width);
    float* const before = candidate_.room(order_.most_rows() * H_);
    word_vectors(order_.count(), all);
    product(*W_, all, order_.count(), x);
    timed(&Activities::pointwise, [&] { pointwise::add_bias(order_.count(), width, b_.data(), x); });
    for (size_t l = 0; l < order_.levels(); ++l) {
      const size_t begin = order_.begin(l), rows = order_.rows(l);
      gather(rows, [&](size_t r) {
        const float* const h = l == 0 ? zero_.data() : own(size_t(order_.left(begin + r)));
        std::copy_n(h, H_, before + r * H_);
      });
      if (l == 0)
        std::fill_n(u, rows * width, 0.0F);
      else
        product(*U_, before, rows, u);
      pointwise_rows(rows, [&](size_t r) {
        const size_t row = begin + r;
        if (lstm)
          pointwise::lstm_step(H_, x + row * width, u + r * width,
                               l == 0 ? zero_.data() : c + size_t(order_.left(row)) * H_, own(row), c + row * H_);
        else
          pointwise::gru_step(H_, x + row * width, u + r * width, b_.data() + width, before + r * H_, own(row));
      });
    }
  }

  const Weights& w_;
  int threads_;
  size_t H_;
  LevelOrder order_;
  const float* w_emb_ = w_(w_.model == Model::mvrnn ? "Emb_v" : "Emb").data();
  bool in_place_ = false;  // leaves are their words' vectors
  std::unique_ptr<Product> W_, U_, U_last_;
  std::vector<float> b_, zero_;
  Buffer h_, c_, x_, gates_, candidate_, matrices_;
  Activities* activities_ = nullptr;
};

}  // namespace bench
