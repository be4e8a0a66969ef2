// `torch_node` and `torch_level`: the models on libtorch as its users write them, one node after the other and batched
// by level; `torch_rnn`: its LSTM and GRU, for sequences. No autograd, and views where they save copies.
#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <torch/torch.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "level_order.hpp"
#include "system.hpp"
#include "torch_cost.hpp"

namespace bench {

namespace {

using at::Tensor;
using torch::indexing::Slice;

/// The weights of a model as tensors, matrices of gates that are computed together one below the other.
struct Tensors {
  Tensor Emb, Emb_M, W, U, U_last, b, b_last;

  static Tensor of(const std::vector<float>& values, at::IntArrayRef shape) {
    return torch::from_blob(const_cast<float*>(values.data()), shape).clone();
  }
  static Tensor joined(const Weights& w, std::initializer_list<const char*> names, std::int64_t columns) {
    const std::vector<float> values = w.concatenated(names);
    const auto rows = std::int64_t(values.size()) / columns;
    return of(values, columns == 1 ? at::IntArrayRef({rows}) : at::IntArrayRef({rows, columns}));
  }

  explicit Tensors(const Weights& w) {
    const auto H = std::int64_t(w.hidden);
    Emb = of(w(w.model == Model::mvrnn ? "Emb_v" : "Emb"), {w.words, H});
    switch (w.model) {
      case Model::treefc: W = joined(w, {"W"}, 2 * H), b = joined(w, {"b"}, 1); break;
      case Model::dagrnn: U = joined(w, {"U"}, H), b = joined(w, {"b"}, 1); break;
      case Model::treegru:
        W = joined(w, {"W_z", "W_h"}, H), b_last = joined(w, {"b_z", "b_h"}, 1);
        U = joined(w, {"U_r", "U_z"}, H), b = joined(w, {"b_r", "b_z"}, 1), U_last = joined(w, {"U_h"}, H);
        break;
      case Model::treelstm:
        W = joined(w, {"W_i", "W_o", "W_u"}, H), U = joined(w, {"U_i", "U_o", "U_u"}, H);
        b = joined(w, {"b_i", "b_o", "b_u"}, 1), U_last = joined(w, {"U_f"}, H), b_last = joined(w, {"b_f"}, 1);
        break;
      case Model::mvrnn:
        W = joined(w, {"W_v"}, 2 * H), U = joined(w, {"W_M"}, 2 * H);
        // by rows, as the equations have it
        Emb_M = of(w("Emb_M"), {w.words, H, H}).transpose(1, 2).contiguous();
        break;
      default:
        W = joined(w, {"weight_ih_l0"}, H), U = joined(w, {"weight_hh_l0"}, H);
        b = joined(w, {"bias_ih_l0"}, 1), b_last = joined(w, {"bias_hh_l0"}, 1);
    }
  }
};

void copy_out(const Tensor& from, float* out) {
  const Tensor dense = from.contiguous();
  std::copy_n(dense.data_ptr<float>(), dense.numel(), out);
}

class Torch : public System {
 public:
  explicit Torch(const Setting& setting)
      : model_(setting.model),
        H_(std::int64_t(setting.weights.hidden)),
        threads_(setting.threads),
        t_(setting.weights) {}
  void before_runs() override { at::set_num_threads(threads_); }

 protected:
  Model model_;
  std::int64_t H_;
  int threads_;
  Tensors t_;
};

/// One node after the other: each operation on the row or matrix of one node.
class TorchNode : public Torch {
 public:
  using Torch::Torch;

  void run(const Roots& roots, float* out) override {
    const c10::InferenceMode no_autograd;
    done_.clear();
    for (std::size_t i = 0; i < roots.size(); ++i)
      copy_out(model_ == Model::dagrnn ? in_graph(roots[i]) : in_tree(roots[i]).first, out + i * std::size_t(H_));
  }

 private:
  using Pair = std::pair<Tensor, Tensor>;  // both states; the second may be undefined

  Tensor emb(const Node* n) const { return t_.Emb[n->word]; }

  Pair in_tree(const Node* n) {
    if (!n->left) return leaf(n);
    const Pair l = in_tree(n->left), r = in_tree(n->right);
    switch (model_) {
      case Model::treefc: return {torch::relu(torch::addmv(t_.b, t_.W, torch::cat({l.first, r.first}))), {}};
      case Model::treegru: {
        const Tensor s = l.first + r.first;
        const auto gates = torch::sigmoid(torch::addmv(t_.b, t_.U, s)).chunk(2);
        const Tensor fresh = torch::tanh(torch::addmv(candidate_bias(), t_.U_last, gates[0] * s));
        return {torch::lerp(fresh, s, gates[1]), {}};
      }
      case Model::treelstm: {
        const auto gates = torch::addmv(t_.b, t_.U, l.first + r.first).chunk(3);
        const Tensor f_l = torch::sigmoid(torch::addmv(t_.b_last, t_.U_last, l.first));
        const Tensor f_r = torch::sigmoid(torch::addmv(t_.b_last, t_.U_last, r.first));
        const Tensor c = torch::sigmoid(gates[0]) * torch::tanh(gates[2]) + f_l * l.second + f_r * r.second;
        return {torch::sigmoid(gates[1]) * torch::tanh(c), c};
      }
      default: {
        const Tensor both = torch::cat({torch::mv(l.second, r.first), torch::mv(r.second, l.first)});
        return {torch::tanh(torch::mv(t_.W, both)), torch::mm(t_.U, torch::cat({l.second, r.second}))};
      }
    }
  }

  Pair leaf(const Node* n) const {
    switch (model_) {
      case Model::treefc: return {emb(n), {}};
      case Model::treegru: {
        const auto gates = torch::addmv(t_.b_last, t_.W, emb(n)).chunk(2);
        return {(1 - torch::sigmoid(gates[0])) * torch::tanh(gates[1]), {}};
      }
      case Model::treelstm: {
        const auto gates = torch::addmv(t_.b, t_.W, emb(n)).chunk(3);
        const Tensor c = torch::sigmoid(gates[0]) * torch::tanh(gates[2]);
        return {torch::sigmoid(gates[1]) * torch::tanh(c), c};
      }
      default: return {emb(n), t_.Emb_M[n->word]};
    }
  }
  Tensor candidate_bias() const { return t_.b_last.slice(0, H_); }

  const Tensor& in_graph(const Node* n) {
    const auto index = std::size_t(n->index);
    if (index < done_.size() && done_[index].defined()) return done_[index];
    Tensor s;
    for (const Node* before : {n->left, n->right})
      if (before) s = s.defined() ? s + in_graph(before) : in_graph(before);
    const Tensor x = emb(n) + t_.b;
    if (index >= done_.size()) done_.resize(index + 1);
    return done_[index] = torch::tanh(s.defined() ? torch::addmv(x, t_.U, s) : x);
  }

  std::vector<Tensor> done_;  // by index of the node
};

/// Batched by level: children's rows gathered, and each operation on all rows of a level.
class TorchLevel : public Torch {
 public:
  explicit TorchLevel(const Setting& setting) : Torch(setting), order_(setting.model == Model::dagrnn) {
    for (Tensor* m : {&t_.W, &t_.U, &t_.U_last})
      if (m->defined()) *m = m->t();
  }

  void run(const Roots& roots, float* out) override {
    const c10::InferenceMode no_autograd;
    order_.number(roots);
    const auto count = std::int64_t(order_.count()), leaves = std::int64_t(order_.rows(0));
    const auto H = H_;
    words_ = indices(0, count, [&](std::size_t row) { return order_.word(row); });
    // One row more than there are nodes, of zeros, for predecessors that are absent.
    h_ = torch::empty({count + (model_ == Model::dagrnn), H});
    switch (model_) {
      case Model::treefc: h_.narrow(0, 0, leaves).copy_(leaf_vectors(t_.Emb, leaves)); break;
      case Model::dagrnn:
        h_[count].zero_();
        x_ = torch::index_select(t_.Emb, 0, words_).add_(t_.b);
        rows(h_, 0, leaves).copy_(rows(x_, 0, leaves)).tanh_();
        break;
      case Model::treegru: {
        const auto gates = torch::addmm(t_.b_last, leaf_vectors(t_.Emb, leaves), t_.W).chunk(2, 1);
        Tensor own = rows(h_, 0, leaves);
        torch::mul_out(own, 1 - gates[0].sigmoid(), gates[1].tanh());
        break;
      }
      case Model::treelstm: {
        c_ = torch::empty({count, H});
        const auto gates = torch::addmm(t_.b, leaf_vectors(t_.Emb, leaves), t_.W).chunk(3, 1);
        Tensor h = rows(h_, 0, leaves), c = rows(c_, 0, leaves);
        torch::mul_out(c, gates[0].sigmoid(), gates[2].tanh());
        torch::mul_out(h, gates[1].sigmoid(), c.tanh());
        break;
      }
      default:
        c_ = torch::empty({count, H, H});
        rows(h_, 0, leaves).copy_(leaf_vectors(t_.Emb, leaves));
        rows(c_, 0, leaves).copy_(leaf_vectors(t_.Emb_M, leaves));
    }
    const auto absent = [&](int row) { return row < 0 ? count : row; };
    const Tensor left = indices(0, count, [&](std::size_t row) { return absent(order_.left(row)); });
    const Tensor right = indices(0, count, [&](std::size_t row) { return absent(order_.right(row)); });
    for (std::size_t l = 1; l < order_.levels(); ++l) {
      const auto begin = std::int64_t(order_.begin(l)), n = std::int64_t(order_.rows(l));
      level(begin, n, left.narrow(0, begin, n), right.narrow(0, begin, n));
    }
    for (std::size_t i = 0; i < roots.size(); ++i) copy_out(h_[std::int64_t(order_.root(i))], out + i * std::size_t(H));
  }

  double linearize_us(const Roots& roots) override {
    const double start = now_us();
    order_.number(roots);
    return now_us() - start;
  }

 private:
  template <class Of>
  static Tensor indices(std::int64_t begin, std::int64_t count, Of of) {
    Tensor result = torch::empty({count}, torch::kInt64);
    auto* const values = result.data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < count; ++i) values[i] = of(std::size_t(begin + i));
    return result;
  }
  static Tensor rows(const Tensor& t, std::int64_t begin, std::int64_t count) { return t.narrow(0, begin, count); }
  Tensor leaf_vectors(const Tensor& table, std::int64_t leaves) const {
    return torch::index_select(table, 0, words_.narrow(0, 0, leaves));
  }

  void level(std::int64_t begin, std::int64_t n, const Tensor& left, const Tensor& right) {
    Tensor h = rows(h_, begin, n);
    const Tensor h_l = torch::index_select(h_, 0, left), h_r = torch::index_select(h_, 0, right);
    switch (model_) {
      case Model::treefc:
        torch::addmm_out(h, t_.b, torch::cat({h_l, h_r}, 1), t_.W);
        h.relu_();
        break;
      case Model::dagrnn:
        torch::addmm_out(h, rows(x_, begin, n), h_l + h_r, t_.U);
        h.tanh_();
        break;
      case Model::treegru: {
        const Tensor s = h_l + h_r;
        const auto gates = torch::addmm(t_.b, s, t_.U).sigmoid_().chunk(2, 1);
        const Tensor fresh = torch::addmm(t_.b_last.slice(0, H_), gates[0] * s, t_.U_last).tanh_();
        torch::lerp_out(h, fresh, s, gates[1]);
        break;
      }
      case Model::treelstm: {
        Tensor c = rows(c_, begin, n);
        const auto gates = torch::addmm(t_.b, h_l + h_r, t_.U).chunk(3, 1);
        const auto forget = torch::addmm(t_.b_last, torch::cat({h_l, h_r}), t_.U_last).sigmoid_().chunk(2);
        torch::mul_out(c, gates[0].sigmoid(), gates[2].tanh());
        c.addcmul_(forget[0], torch::index_select(c_, 0, left)).addcmul_(forget[1], torch::index_select(c_, 0, right));
        torch::mul_out(h, gates[1].sigmoid(), c.tanh());
        break;
      }
      default: {
        const Tensor M_l = torch::index_select(c_, 0, left), M_r = torch::index_select(c_, 0, right);
        const Tensor both = torch::cat({torch::bmm(M_l, h_r.unsqueeze(2)), torch::bmm(M_r, h_l.unsqueeze(2))}, 1);
        torch::mm_out(h, both.squeeze(2), t_.W);
        h.tanh_();
        Tensor M = rows(c_, begin, n);
        torch::matmul_out(M, t_.U.t(), torch::cat({M_l, M_r}, 1));
      }
    }
  }

  LevelOrder order_;
  Tensor words_, h_, c_, x_;
};

/// torch.nn's LSTM and GRU: all steps in one call.
class TorchRnn : public Torch {
 public:
  using Torch::Torch;

  void run(const Roots& roots, float* out) override {
    const c10::InferenceMode no_autograd;
    std::int64_t steps = 0;
    for (const Node* n = roots[0]; n; n = n->left) ++steps;
    const auto batch = std::int64_t(roots.size());
    Tensor words = torch::empty({steps * batch}, torch::kInt64);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int64_t step = steps;
      for (const Node* n = roots[std::size_t(b)]; n; n = n->left)
        words.data_ptr<std::int64_t>()[--step * batch + b] = n->word;
    }
    const Tensor x = torch::index_select(t_.Emb, 0, words).view({steps, batch, H_});
    const Tensor zero = torch::zeros({1, batch, H_});
    const std::vector<Tensor> weights{t_.W, t_.U, t_.b, t_.b_last};
    if (model_ == Model::lstm)
      copy_out(std::get<1>(torch::lstm(x, {zero, zero}, weights, true, 1, 0, false, false, false)), out);
    else
      copy_out(std::get<1>(torch::gru(x, zero, weights, true, 1, 0, false, false, false)), out);
  }
};

/// Memory for tensors that is counted; each block begins with its size.
struct Counting final : c10::Allocator {
  static constexpr std::size_t header = 64;
  static inline std::size_t now = 0, peak = 0;
  static void release(void* data) {
    if (!data) return;
    auto* const block = static_cast<char*>(data) - header;
    now -= *reinterpret_cast<std::size_t*>(block);
    std::free(block);
  }
  c10::DataPtr allocate(std::size_t size) const override {
    if (size == 0) return {nullptr, nullptr, &release, c10::Device(c10::DeviceType::CPU)};
    auto* const block = static_cast<char*>(std::aligned_alloc(header, (size + 2 * header - 1) / header * header));
    if (!block) throw std::bad_alloc();
    *reinterpret_cast<std::size_t*>(block) = size;
    now += size;
    peak = std::max(peak, now);
    return {block + header, block + header, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
};

bool is_sequence(Model model) { return model == Model::lstm || model == Model::gru; }

}  // namespace

TorchCost torch_cost(System& system, const Roots& roots, float* out) {
  static Counting counting;
  static long operators = 0, depth = 0;
  c10::Allocator* const before = c10::GetCPUAllocator();
  system.run(roots, out);  // what it keeps from call to call
  c10::SetCPUAllocator(&counting, 1);
  system.run(roots, out);  // and keeps in blocks that are counted
  Counting::peak = Counting::now;
  operators = depth = 0;
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
        if (depth++ == 0) ++operators;  // not what operators call themselves
        return nullptr;
      },
      [](const at::RecordFunction&, at::ObserverContext*) { --depth; }));
  system.run(roots, out);
  at::removeCallback(handle);
  c10::SetCPUAllocator(before, 1);
  return {operators, Counting::peak};
}

std::string torch_description() { return std::string("libtorch ") + TORCH_VERSION; }

std::vector<SystemKind> torch_kinds() {
  const auto kind = [](const char* name, bool sequences, auto make) {
    return SystemKind{name, [=](const Setting& setting) -> std::unique_ptr<System> {
                        if (setting.model > Model::gru || is_sequence(setting.model) != sequences) return nullptr;
                        return make(setting);
                      }};
  };
  return {kind("torch_node", false, [](const Setting& s) { return std::make_unique<TorchNode>(s); }),
          kind("torch_level", false, [](const Setting& s) { return std::make_unique<TorchLevel>(s); }),
          kind("torch_rnn", true, [](const Setting& s) { return std::make_unique<TorchRnn>(s); })};
}

}  // namespace bench
