// `onednn_level`: by_level.hpp on oneDNN, and `onednn_rnn`: oneDNN's own LSTM and GRU, for sequences.
//
// Weights are packed in the layout that oneDNN asks for (format_tag::any), once for each layout; a primitive is made
// for each number of rows, and kept. oneDNN has two primitives for this product, matmul and inner_product: which is the
// faster for a number of rows is measured when its primitives are made.
#pragma once

#if CORTEX_BENCH_ONEDNN

#include <omp.h>

#include <dnnl.hpp>
#include <string>

#include "by_level.hpp"

namespace bench {

struct OneDnn {
  static void use_threads(int threads) { omp_set_num_threads(threads); }
  /// By oneDNN's threads, if it is worth waking them.
  template <class Work>
  static void each_row(std::size_t rows, Work work) {
#pragma omp parallel for schedule(static) if (rows >= 8)
    for (std::size_t r = 0; r < rows; ++r) work(r);
  }

  static std::string description() {
    const dnnl_version_t* const v = dnnl::version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
  }
  static const dnnl::engine& engine() {
    static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return engine;
  }
  static dnnl::stream& stream() {
    static dnnl::stream stream(engine());
    return stream;
  }

  class Product {
    using Memory = dnnl::memory;
    using Tag = dnnl::memory::format_tag;

   public:
    Product(const std::vector<float>& forth, std::size_t from, std::size_t to)
        : from_(Memory::dim(from)),
          to_(Memory::dim(to)),
          forth_(forth),
          weights_{{{{from_, to_}, Memory::data_type::f32, Tag::ab}, engine(), forth_.data()}, {}},
          // inner_product's weights are [outputs, inputs]: the same numbers in the other order
          weights_back_{{{{to_, from_}, Memory::data_type::f32, Tag::ba}, engine(), forth_.data()}, {}} {}

    void operator()(const float* x, std::size_t rows, float* y, bool add) const {
      auto& cache = add ? adding_ : storing_;
      if (rows >= cache.size()) cache.resize(rows + 1);
      if (!cache[rows]) cache[rows] = fastest(Memory::dim(rows), add);
      cache[rows]->run(x, y);
    }

   private:
    /// A primitive with its arguments, of which only the pointers to x and y change.
    struct Ready {
      dnnl::primitive primitive;
      Memory x, y, weights, scratch;
      std::unordered_map<int, Memory> arguments;

      Ready(dnnl::primitive p, const Memory::desc& x_desc, const Memory::desc& y_desc, Memory packed,
            const Memory::desc& scratch_desc)
          : primitive(std::move(p)),
            x(x_desc, engine(), nullptr),
            y(y_desc, engine(), nullptr),
            weights(std::move(packed)),
            scratch(scratch_desc, engine()),
            arguments{
                {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y}, {DNNL_ARG_SCRATCHPAD, scratch}} {}
      void run(const float* from, float* to) {
        x.set_data_handle(const_cast<float*>(from));
        y.set_data_handle(to);
        primitive.execute(stream(), arguments);
      }
    };

    /// One of the two orders of the weights, and the layouts that it was packed in. Apart, because descriptors do not
    /// tell a square matrix from its transpose.
    struct Weights {
      Memory plain;
      mutable std::vector<Memory> packed;

      /// In the layout `desc`, packed when it is first asked for.
      Memory in(const Memory::desc& desc) const {
        for (const Memory& known : packed)
          if (known.get_desc() == desc) return known;
        Memory result(desc, engine());
        dnnl::reorder(plain, result).execute(stream(), const_cast<Memory&>(plain), result);
        stream().wait();
        packed.push_back(result);
        return result;
      }
    };

    std::unique_ptr<Ready> fastest(Memory::dim rows, bool add) const {
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      if (add) {
        dnnl::post_ops sum;
        sum.append_sum(1.0F);
        attributes.set_post_ops(sum);
      }
      const Memory::desc x({rows, from_}, Memory::data_type::f32, Tag::ab);
      const Memory::desc y({rows, to_}, Memory::data_type::f32, Tag::ab);
      const Memory::desc any({from_, to_}, Memory::data_type::f32, Tag::any);
      const Memory::desc any_back({to_, from_}, Memory::data_type::f32, Tag::any);

      const dnnl::matmul::primitive_desc matmul({x, any, y}, attributes, engine());
      auto first = std::make_unique<Ready>(dnnl::matmul(matmul), x, y, weights_.in(matmul.weights_desc()),
                                           matmul.scratchpad_desc());
      const dnnl::inner_product_forward::primitive_desc inner({dnnl::prop_kind::forward_inference, x, any_back, y},
                                                              attributes, engine());
      auto second = std::make_unique<Ready>(dnnl::inner_product_forward(inner), x, y,
                                            weights_back_.in(inner.weights_desc()), inner.scratchpad_desc());
      const std::vector<float> from(std::size_t(rows * from_), 0.5F);
      std::vector<float> to(std::size_t(rows * to_));
      const auto time_of = [&](Ready& ready) {
        double best = INFINITY;
        for (int run = 0; run < 8; ++run) {
          const double start = now_us();
          for (int i = 0; i < 2; ++i) ready.run(from.data(), to.data());
          best = std::min(best, now_us() - start);
        }
        return best;
      };
      return time_of(*first) <= time_of(*second) ? std::move(first) : std::move(second);
    }

    Memory::dim from_, to_;
    Buffer forth_;
    Weights weights_, weights_back_;
    mutable std::vector<std::unique_ptr<Ready>> storing_, adding_;  // by the number of rows
  };
};

/// oneDNN's LSTM and its GRU with the reset behind the product, which is torch's ("lbr_gru"): all steps in one call.
class OneDnnRnn : public System {
  using Memory = dnnl::memory;
  using Tag = dnnl::memory::format_tag;
  using Dims = dnnl::memory::dims;

 public:
  explicit OneDnnRnn(const Setting& setting)
      : w_(setting.weights), threads_(setting.threads), H_(w_.hidden), lstm_(w_.model == Model::lstm) {}

  void before_runs() override { OneDnn::use_threads(threads_); }

  void run(const Roots& roots, float* out) override {
    const std::size_t batch = roots.size();
    std::size_t steps = 0;
    for (const Node* n = roots[0]; n; n = n->left) ++steps;
    if (batch != batch_ || steps != steps_) prepare(batch, steps);
    float* const x = x_.room(steps * batch * H_);
    const std::vector<float>& emb = w_("Emb");
    for (std::size_t b = 0; b < batch; ++b) {
      std::size_t step = steps;
      for (const Node* n = roots[b]; n; n = n->left)
        std::copy_n(emb.data() + std::size_t(n->word) * H_, H_, x + (--step * batch + b) * H_);
    }
    primitive_.execute(OneDnn::stream(), arguments_);
    std::copy_n(static_cast<const float*>(last_.get_data_handle()), batch * H_, out);
  }

 private:
  static Memory::desc any(const Dims& dims) { return {dims, Memory::data_type::f32, Tag::any}; }
  static Memory::desc plain(const Dims& dims, Tag tag) { return {dims, Memory::data_type::f32, tag}; }

  Memory packed(Memory plain, const Memory::desc& desc) {
    Memory result(desc, OneDnn::engine());
    dnnl::reorder(plain, result).execute(OneDnn::stream(), plain, result);
    OneDnn::stream().wait();
    return result;
  }

  void prepare(std::size_t batch, std::size_t steps) {
    OneDnn::use_threads(threads_);
    batch_ = batch, steps_ = steps;
    using dim = Memory::dim;
    const dim T = dim(steps), N = dim(batch), H = dim(H_), G = lstm_ ? 4 : 3;
    const auto& engine = OneDnn::engine();
    // oneDNN's order of the LSTM's gates, i, f, c~, o, is torch's; that of the GRU's, u, r, o, begins with torch's
    // second.
    const std::size_t bias_rows = lstm_ ? 4 : 4;
    std::vector<float> ih = w_("weight_ih_l0"), hh = w_("weight_hh_l0"), b_ih = w_("bias_ih_l0"),
                       b_hh = w_("bias_hh_l0"), bias(bias_rows * H_);
    if (!lstm_) {
      for (std::vector<float>* m : {&ih, &hh, &b_ih, &b_hh}) {
        const auto gate = std::ptrdiff_t(m->size() / 3);
        std::rotate(m->begin(), m->begin() + gate, m->begin() + 2 * gate);  // z, r, n
      }
    }
    for (std::size_t i = 0; i < bias.size(); ++i) {
      if (lstm_ || i < 2 * H_)
        bias[i] = b_ih[i] + b_hh[i];
      else
        bias[i] = i < 3 * H_ ? b_ih[i] : b_hh[i - H_];  // the candidate's own, and the one inside the reset
    }
    // [layer, direction, gate, output, input] as torch has it is ldgoi; the descriptor's order is l, d, i, g, o.
    const Dims weight_dims{1, 1, H, G, H}, state_dims{1, 1, N, H}, bias_dims{1, 1, dim(bias_rows), H};
    const Memory::desc x_desc = plain({T, N, H}, Tag::tnc), y_desc = plain({T, N, H}, Tag::tnc);
    const Memory::desc state_desc = plain(state_dims, Tag::ldnc), bias_desc = plain(bias_dims, Tag::ldgo);
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto direction = dnnl::rnn_direction::unidirectional_left2right;
    Memory::desc layer_desc, iteration_desc;
    if (lstm_) {
      const dnnl::lstm_forward::primitive_desc p(
          {kind, direction, x_desc, Memory::desc(), Memory::desc(), any(weight_dims), any(weight_dims), bias_desc,
           y_desc, state_desc, state_desc},
          engine);
      primitive_ = dnnl::lstm_forward(p);
      layer_desc = p.weights_layer_desc(), iteration_desc = p.weights_iter_desc();
    } else {
      const dnnl::lbr_gru_forward::primitive_desc p(
          {kind, direction, x_desc, Memory::desc(), any(weight_dims), any(weight_dims), bias_desc, y_desc, state_desc},
          engine);
      primitive_ = dnnl::lbr_gru_forward(p);
      layer_desc = p.weights_layer_desc(), iteration_desc = p.weights_iter_desc();
    }
    bias_ = std::move(bias);
    last_ = Memory(state_desc, engine);
    arguments_ = {
        {DNNL_ARG_SRC_LAYER, Memory(x_desc, engine, x_.room(steps * batch * H_))},
        {DNNL_ARG_WEIGHTS_LAYER, packed(Memory(plain(weight_dims, Tag::ldgoi), engine, ih.data()), layer_desc)},
        {DNNL_ARG_WEIGHTS_ITER, packed(Memory(plain(weight_dims, Tag::ldgoi), engine, hh.data()), iteration_desc)},
        {DNNL_ARG_BIAS, Memory(bias_desc, engine, bias_.data())},
        {DNNL_ARG_DST_LAYER, Memory(y_desc, engine)},
        {DNNL_ARG_DST_ITER, last_}};
    if (lstm_) arguments_[DNNL_ARG_DST_ITER_C] = Memory(state_desc, engine);
  }

  const Weights& w_;
  int threads_;
  std::size_t H_;
  bool lstm_;
  std::size_t batch_ = 0, steps_ = 0;
  Buffer x_;
  std::vector<float> bias_;
  dnnl::primitive primitive_;
  Memory last_;
  std::unordered_map<int, Memory> arguments_;
};

}  // namespace bench

#endif
