// `dynet`: the models on DyNet, in its own terms, with its automatic batching: a graph is built for each batch, node by
// node, and run forward once. It is built only against an install of yours (`bench/run --dynet PREFIX`), and is not
// part of any test; tried with DyNet 2.1 on Eigen 3.4.
#include <dynet/dynet.h>
#include <dynet/expr.h>
#include <dynet/init.h>
#include <dynet/model.h>
#include <dynet/tensor.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "system.hpp"

namespace bench {

namespace {

using dynet::Expression;

class DyNet : public System {
 public:
  explicit DyNet(const Setting& setting) : model_(setting.model), H_(unsigned(setting.weights.hidden)) {
    initialize();
    for (const auto& [name, values] : setting.weights.values) {
      if (name.rfind("Emb", 0) == 0) {
        const unsigned words = unsigned(setting.weights.words), size = unsigned(values.size()) / words;
        // Columns first, as DyNet's matrices are, and as the table of matrices is.
        const dynet::Dim dim = size == H_ ? dynet::Dim({H_}) : dynet::Dim({H_, H_});
        tables_[name] = parameters_.add_lookup_parameters(words, dim);
        for (unsigned w = 0; w < words; ++w)
          tables_[name].initialize(w, {values.begin() + long(w * size), values.begin() + long((w + 1) * size)});
      } else {
        const unsigned columns = unsigned(values.size()) / H_;
        std::vector<float> by_columns(values.size());
        for (unsigned i = 0; i < H_; ++i)
          for (unsigned j = 0; j < columns; ++j) by_columns[j * H_ + i] = values[i * columns + j];
        weights_[name] = parameters_.add_parameters(columns == 1 ? dynet::Dim({H_}) : dynet::Dim({H_, columns}));
        weights_[name].set_value(by_columns);
      }
    }
  }

  void run(const Roots& roots, float* out) override {
    dynet::ComputationGraph graph;
    constants_.clear();
    for (auto& [name, weight] : weights_) constants_[name] = dynet::const_parameter(graph, weight);
    done_.clear();
    std::vector<Expression> states;
    for (const Node* root : roots)
      states.push_back(model_ == Model::dagrnn ? in_graph(graph, root) : in_tree(graph, root).h);
    const std::vector<float> all = dynet::as_vector(graph.forward(dynet::concatenate(states)));
    std::copy(all.begin(), all.end(), out);
  }

 private:
  struct Pair {
    Expression h, second;
  };

  static void initialize() {
    static const bool once = [] {
      dynet::DynetParams params;
      params.autobatch = 1;
      params.mem_descriptor = "2048";
      params.random_seed = 1;
      dynet::initialize(params);
      return true;
    }();
    (void)once;
  }

  const Expression& weight(const char* name) const { return constants_.at(name); }
  Expression look_up(dynet::ComputationGraph& graph, const char* table, const Node* n) {
    return dynet::const_lookup(graph, tables_.at(table), unsigned(n->word));
  }
  Expression linear(const std::string& W, const Expression& x, const std::string& b) const {
    return dynet::affine_transform({constants_.at(b), constants_.at(W), x});
  }

  Pair in_tree(dynet::ComputationGraph& graph, const Node* n) {
    using namespace dynet;
    if (!n->left) {
      if (model_ == Model::mvrnn) return {look_up(graph, "Emb_v", n), look_up(graph, "Emb_M", n)};
      const Expression x = look_up(graph, "Emb", n);
      if (model_ == Model::treegru)
        return {cmult(1 - logistic(linear("W_z", x, "b_z")), tanh(linear("W_h", x, "b_h"))), {}};
      if (model_ == Model::treefc) return {x, {}};
      const Expression c = cmult(logistic(linear("W_i", x, "b_i")), tanh(linear("W_u", x, "b_u")));
      return {cmult(logistic(linear("W_o", x, "b_o")), tanh(c)), c};
    }
    const Pair l = in_tree(graph, n->left), r = in_tree(graph, n->right);
    switch (model_) {
      case Model::treefc: return {rectify(linear("W", concatenate({l.h, r.h}), "b")), {}};
      case Model::treegru: {
        const Expression s = l.h + r.h, reset = logistic(linear("U_r", s, "b_r")),
                         z = logistic(linear("U_z", s, "b_z"));
        const Expression fresh = tanh(linear("U_h", cmult(reset, s), "b_h"));
        return {cmult(z, s) + cmult(1 - z, fresh), {}};
      }
      case Model::treelstm: {
        const Expression s = l.h + r.h;
        const Expression c = cmult(logistic(linear("U_i", s, "b_i")), tanh(linear("U_u", s, "b_u"))) +
                             cmult(logistic(linear("U_f", l.h, "b_f")), l.second) +
                             cmult(logistic(linear("U_f", r.h, "b_f")), r.second);
        return {cmult(logistic(linear("U_o", s, "b_o")), tanh(c)), c};
      }
      default:
        return {tanh(weight("W_v") * concatenate({l.second * r.h, r.second * l.h})),
                weight("W_M") * concatenate({l.second, r.second})};
    }
  }

  Expression in_graph(dynet::ComputationGraph& graph, const Node* n) {
    if (const auto found = done_.find(n); found != done_.end()) return found->second;
    Expression h = look_up(graph, "Emb", n);
    if (n->left && n->right)
      h = h + linear("U", in_graph(graph, n->left) + in_graph(graph, n->right), "b");
    else if (n->left || n->right)
      h = h + linear("U", in_graph(graph, n->left ? n->left : n->right), "b");
    else
      h = h + weight("b");
    return done_[n] = dynet::tanh(h);
  }

  Model model_;
  unsigned H_;
  dynet::ParameterCollection parameters_;
  std::map<std::string, dynet::Parameter> weights_;
  std::map<std::string, dynet::LookupParameter> tables_;
  std::map<std::string, Expression> constants_;
  std::map<const Node*, Expression> done_;
};

}  // namespace

SystemKind dynet_kind() {
  return {"dynet", [](const Setting& setting) -> std::unique_ptr<System> {
            if (setting.model >= Model::lstm) return nullptr;
            return std::make_unique<DyNet>(setting);
          }};
}

}  // namespace bench
