// Operator graphs made by hand, as the recursive API would make them, and weights for them.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cortex/ir/build.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/interpret.hpp"

namespace cortex::test::graphs {

/// Builds a graph operator by operator; each function gives the operator's number.
class GraphBuilder {
 public:
  GraphBuilder(std::string name, ra::StructureKind kind, int max_children) {
    graph.name = std::move(name);
    graph.structure = kind;
    graph.max_children = max_children;
  }

  ra::Graph graph;

  int child(const std::string& name) { return add(graph.children_named, {name, nullptr, true}); }
  int container(const std::string& name) { return add(graph.containers, {name, nullptr}); }
  int int_field(const std::string& name) { return add(graph.fields, {name, nullptr}); }

  int input(const std::string& name, std::vector<Dim> dims, DType dtype = DType::f32) {
    ir::BufferInfo info{name, dtype, dims, ir::Role::weight};
    info.slot = inputs_++;
    return push({ra::OpKind::input, ir::Buffer(info), std::move(dims)});
  }

  int placeholder(const std::string& name, std::vector<Dim> dims, DType dtype = DType::f32) {
    return push({ra::OpKind::placeholder, per_node(name, dims, ir::Role::state, dtype), std::move(dims)});
  }

  /// Floating-point data of the node: declares the field as well.
  int float_field(const std::string& name, std::vector<Dim> dims, DType dtype = DType::f32) {
    std::int64_t size = 1;
    for (const Dim& dim : dims) size *= dim.extent();
    ir::BufferInfo info = *per_node(name, dims, ir::Role::field, dtype);
    info.slot = add(graph.fields, {name, nullptr, false, dtype, int(size)});
    return push({ra::OpKind::field, ir::Buffer(info), std::move(dims)});
  }

  /// `body(n, index variables)` gives the element.
  template <class F>
  int compute(const std::string& name, std::vector<Dim> dims, F body, DType dtype = DType::f32) {
    ra::Op op{ra::OpKind::compute, per_node(name, dims, ir::Role::temp, dtype), dims, ir::Var::make("n")};
    constexpr const char* names[] = {"i", "j", "k", "l"};
    for (std::size_t d = 0; d < dims.size(); ++d) op.index_vars.push_back(ir::Var::make(names[d]));
    op.body = body(op.node, op.index_vars);
    return push(std::move(op));
  }

  template <class F>
  int if_then_else(const std::string& name, F condition, int then_op, int else_op) {
    const ra::Op& like = graph.ops[std::size_t(then_op)];
    ra::Op op{ra::OpKind::if_then_else, per_node(name, like.dims, ir::Role::temp, like.buffer->dtype), like.dims,
              ir::Var::make("n")};
    op.condition = condition(op.node);
    op.then_op = then_op;
    op.else_op = else_op;
    return push(std::move(op));
  }

  void recursion_op(int placeholder, int body) { graph.states.push_back({placeholder, body}); }

  ir::Expr at(int op, std::vector<ir::Expr> indices) const {
    return ir::Load::make(graph.ops[std::size_t(op)].buffer, std::move(indices));
  }

  /// A node's child through a named accessor, its k-th child in a container, an integer field, is_leaf.
  ir::Expr child_of(int accessor, const ir::Expr& n) const {
    return call(ir::UfKind::child, graph.children_named, accessor, {n});
  }
  ir::Expr kid_of(int container, const ir::Expr& n, const ir::Expr& k) const {
    return call(ir::UfKind::kth_child, graph.containers, container, {n, k});
  }
  ir::Expr field_of(int accessor, const ir::Expr& n) const {
    return call(ir::UfKind::field, graph.fields, accessor, {n});
  }
  static ir::Expr is_leaf(const ir::Expr& n) { return ir::call(ir::UfKind::is_leaf, "is_leaf", {n}); }

  template <class F>
  static ir::Expr sum(const Dim& dim, const char* name, F body) {
    const ir::Expr var = ir::Var::make(name);
    return ir::Reduce::make(ir::ReduceOp::sum, {var, dim, ir::imm(dim.extent())}, body(var));
  }
  template <class F>
  static ir::Expr sum_over_children(int container, const ir::Expr& n, F body, ir::ReduceOp op = ir::ReduceOp::sum) {
    const ir::Expr var = ir::Var::make("k");
    const ir::Expr count = ir::call(ir::UfKind::num_children, "num_children", {n}, container);
    return ir::Reduce::make(op, {var, dims::child, count}, body(var));
  }

 private:
  static int add(Vector<ra::Accessor>& group, ra::Accessor accessor) {
    group.push_back(std::move(accessor));
    return int(group.size()) - 1;
  }
  int push(ra::Op op) {
    graph.ops.push_back(std::move(op));
    return int(graph.ops.size()) - 1;
  }
  static ir::Buffer per_node(const std::string& name, std::vector<Dim> dims, ir::Role role, DType dtype) {
    dims.insert(dims.begin(), dims::node);
    return ir::Buffer(ir::BufferInfo{name, dtype, std::move(dims), role});
  }
  static ir::Expr call(ir::UfKind kind, const Vector<ra::Accessor>& group, int accessor, std::vector<ir::Expr> args) {
    return ir::call(kind, group[std::size_t(accessor)].name, std::move(args), accessor);
  }

  int inputs_ = 0;
};

inline ir::Expr tanh_of(ir::Expr e) { return ir::Unary::make(ir::UnaryOp::tanh, std::move(e)); }
inline ir::Expr sigmoid_of(ir::Expr e) { return ir::Unary::make(ir::UnaryOp::sigmoid, std::move(e)); }

/// A vocabulary of so many words; 0: of as many as are bound.
inline Dim vocabulary_of(int words) { return words > 0 ? Dim("vocabulary", words) : Dim("vocabulary"); }

/// The paper's Listing 1: h = tanh(h_left + h_right), at a leaf Emb[word]. Inputs: Emb [vocabulary, hidden]. Accessors:
/// children left 0 and right 1, field word 0.
inline ra::Graph tree_rnn(int words, int width) {
  GraphBuilder g("tree_rnn", ra::StructureKind::tree, 2);
  const Dim V = vocabulary_of(words), H("hidden", width);
  const int left = g.child("left"), right = g.child("right"), word = g.int_field("word");
  const int emb = g.input("Emb", {V, H});
  const int rnn = g.placeholder("rnn", {H});
  const int leaf = g.compute("leaf", {H}, [&](auto& n, auto& i) { return g.at(emb, {g.field_of(word, n), i[0]}); });
  const int lh = g.compute("lh", {H}, [&](auto& n, auto& i) { return g.at(rnn, {g.child_of(left, n), i[0]}); });
  const int rh = g.compute("rh", {H}, [&](auto& n, auto& i) { return g.at(rnn, {g.child_of(right, n), i[0]}); });
  const int rec = g.compute("rec", {H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(lh, {n, i[0]}) + g.at(rh, {n, i[0]}));
  });
  const int body = g.if_then_else(
      "body", [&](auto& n) { return g.is_leaf(n); }, leaf, rec);
  g.recursion_op(rnn, body);
  return std::move(g.graph);
}

/// Child-sum TreeLSTM (Tai et al. 2015), states h and c. Inputs: Emb [vocabulary, embedding], and for each gate g of i,
/// o, u, f W_g [hidden, embedding], U_g [hidden, hidden], b_g [hidden]. Accessors: container kids 0, field word 0, read
/// at every node.
inline ra::Graph child_sum_tree_lstm(int words, int embedding, int width, DType dtype = DType::f32) {
  GraphBuilder g("tree_lstm", ra::StructureKind::tree, 0);
  const Dim V = vocabulary_of(words), E("embedding", embedding), H("hidden", width);
  const int kids = g.container("kids"), word = g.int_field("word");
  const int emb = g.input("Emb", {V, E}, dtype);
  const int h = g.placeholder("h", {H}, dtype), c = g.placeholder("c", {H}, dtype);
  const auto kid = [&](int state, const ir::Expr& n, const ir::Expr& k, const ir::Expr& i) {
    return g.at(state, {g.kid_of(kids, n, k), i});
  };
  const int s = g.compute(
      "s", {H},
      [&](auto& n, auto& i) { return g.sum_over_children(kids, n, [&](auto& k) { return kid(h, n, k, i[0]); }); },
      dtype);

  struct Gate {
    int w, u, b;
  };
  const auto gate = [&](const std::string& name) {
    return Gate{g.input("W_" + name, {H, E}, dtype), g.input("U_" + name, {H, H}, dtype),
                g.input("b_" + name, {H}, dtype)};
  };
  const auto affine = [&](const Gate& gate, const ir::Expr& n, const ir::Expr& i, const auto& hidden_at) {
    const ir::Expr x = g.sum(E, "j", [&](auto& j) {
      return g.at(gate.w, {i, j}) * g.at(emb, {g.field_of(word, n), j});
    });
    const ir::Expr y = g.sum(H, "j", [&](auto& j) { return g.at(gate.u, {i, j}) * hidden_at(j); });
    return x + y + g.at(gate.b, {i});
  };
  const auto from_sum = [&](const ir::Expr& n) { return [&g, s, n](const ir::Expr& j) { return g.at(s, {n, j}); }; };
  const Gate wi = gate("i"), wo = gate("o"), wu = gate("u"), wf = gate("f");
  const int i = g.compute(
      "i", {H}, [&](auto& n, auto& v) { return sigmoid_of(affine(wi, n, v[0], from_sum(n))); }, dtype);
  const int o = g.compute(
      "o", {H}, [&](auto& n, auto& v) { return sigmoid_of(affine(wo, n, v[0], from_sum(n))); }, dtype);
  const int u = g.compute(
      "u", {H}, [&](auto& n, auto& v) { return tanh_of(affine(wu, n, v[0], from_sum(n))); }, dtype);
  const int fc = g.compute(
      "fc", {H},
      [&](auto& n, auto& v) {
        return g.sum_over_children(kids, n, [&](auto& k) {
          const ir::Expr f = sigmoid_of(affine(wf, n, v[0], [&](const ir::Expr& j) { return kid(h, n, k, j); }));
          return f * kid(c, n, k, v[0]);
        });
      },
      dtype);
  const int c_new = g.compute(
      "c_new", {H},
      [&](auto& n, auto& v) {
        return g.at(i, {n, v[0]}) * g.at(u, {n, v[0]}) + g.at(fc, {n, v[0]});
      },
      dtype);
  const int h_new = g.compute(
      "h_new", {H},
      [&](auto& n, auto& v) {
        return g.at(o, {n, v[0]}) * tanh_of(g.at(c_new, {n, v[0]}));
      },
      dtype);
  g.recursion_op(h, h_new);
  g.recursion_op(c, c_new);
  return std::move(g.graph);
}

/// Random weights of about unit size over `fan_in`, exact in f32, for every input of `graph`; open dimensions get
/// `open`.
inline ra::Weights random_weights(const ra::Graph& graph, int open, std::mt19937& random) {
  ra::Weights weights;
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const ra::Op& op : graph.ops) {
    if (op.kind != ra::OpKind::input) continue;
    ra::Tensor tensor;
    std::int64_t size = 1;
    for (const Dim& dim : op.dims) {
      tensor.shape.push_back(dim.kind() == DimKind::open ? open : dim.extent());
      size *= tensor.shape.back();
    }
    const float scale =
        op.dims.size() < 2 || op.dims[0].kind() == DimKind::open ? 1.0f : 1.5f / std::sqrt(float(tensor.shape.back()));
    for (std::int64_t i = 0; i < size; ++i) tensor.values.push_back(scale * uniform(random));
    weights.emplace(op.name(), std::move(tensor));
  }
  return weights;
}

}  // namespace cortex::test::graphs
