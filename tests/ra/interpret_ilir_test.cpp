// ILIR written by hand, as lowering would make it, against the interpretation of the operator graph.
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "cortex/ir/interpret.hpp"
#include "cortex/ir/verify.hpp"
#include "support/graphs.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;
using namespace cortex::ir;

namespace {

constexpr int words = 11;

ir::Storage bound(const ra::Weights& weights) {
  ir::Storage storage;
  for (const auto& [name, tensor] : weights) storage[name] = tensor.values;
  return storage;
}

/// The states of all nodes, and the zeros behind them.
std::vector<double> rows(const std::vector<std::vector<double>>& state) {
  std::vector<double> result;
  for (const auto& row : state) result.insert(result.end(), row.begin(), row.end());
  result.insert(result.end(), state.at(0).size(), 0.0);
  return result;
}

const Buffer& buffer_of(const ra::Graph& graph, const char* name) {
  return graph.ops[std::size_t(graph.find(std::string(name)))].buffer;
}
const Dim& dim_of(const ra::Graph& graph, const char* name, std::size_t d) {
  return graph.ops[std::size_t(graph.find(std::string(name)))].dims[d];
}

Expr at(const Buffer& buffer, std::vector<Expr> indices) { return Load::make(buffer, std::move(indices)); }
Expr uf(UfKind kind, std::vector<Expr> args = {}) { return call(kind, "uf", std::move(args), 0); }

template <class F>
Stmt loop(const char* name, const Dim& dim, const Expr& extent, F body) {
  const Expr i = Var::make(name);
  return For::make(i, dim, extent, ForKind::serial, body(i));
}
template <class F>
Stmt let(const char* name, const Expr& value, F body) {
  const Expr v = Var::make(name);
  return LetStmt::make(v, value, body(v));
}

/// for leaves: rnn = Emb[word]; for batches of inner nodes, children before parents: rnn = tanh(rnn[left] + rnn[right])
Program tree_rnn_program(const ra::Graph& graph) {
  const Buffer &rnn = buffer_of(graph, "rnn"), &emb = buffer_of(graph, "Emb");
  const Dim& H = dim_of(graph, "rnn", 0);
  const auto child = [](int a, const Expr& n) { return call(UfKind::child, a == 0 ? "left" : "right", {n}, a); };
  const Stmt leaves = loop("n_idx", dims::batch, uf(UfKind::num_leaves), [&](auto& n) {
    return let("node", uf(UfKind::leaf_node, {n}), [&](auto& node) {
      return loop("i", H, imm(H.extent()), [&](auto& i) {
        return Store::make(rnn, {node, i}, at(emb, {uf(UfKind::field, {node}), i}));
      });
    });
  });
  const Stmt inner = loop("b_idx", dims::all_batches, uf(UfKind::num_internal_batches), [&](auto& b) {
    return loop("n_idx", dims::batch, uf(UfKind::internal_batch_length, {b}), [&](auto& n) {
      return let("node", uf(UfKind::internal_batch_node, {b, n}), [&](auto& node) {
        return loop("i", H, imm(H.extent()), [&](auto& i) {
          return Store::make(rnn, {node, i},
                             Unary::make(UnaryOp::tanh, at(rnn, {child(0, node), i}) + at(rnn, {child(1, node), i})));
        });
      });
    });
  });
  return {"tree_rnn", {rnn, emb}, Block::make({leaves, inner}), Level::loops};
}

/// Builds the TreeLSTM: one loop over the nodes, children first, each sum in a local accumulator.
class TreeLstmProgram {
 public:
  explicit TreeLstmProgram(const ra::Graph& graph)
      : graph_(graph), H_(dim_of(graph, "h", 0)), E_(dim_of(graph, "W_i", 1)) {}

  Program program() {
    const Stmt body = loop("n_idx", dims::sequence, uf(UfKind::num_nodes), [&](auto& n) {
      return let("node", uf(UfKind::sequence_node, {n}), [&](auto& node) {
        const Stmt s = each(H_, [&](auto& i) {
          return sum(
              dims::child, uf(UfKind::num_children, {node}),
              [&](auto& k) {
                return at(h_, {kid(node, k), i});
              },
              [&](auto& total) {
                return Store::make(s_, {node, i}, total);
              });
        });
        return Block::make({s, each(H_, [&](auto& i) { return gates(node, i); })});
      });
    });
    Program result{"tree_lstm", {h_, c_, s_, buffer_of(graph_, "Emb")}, body, Level::loops};
    for (const char* gate : {"i", "o", "u", "f"})
      for (const char* kind : {"W_", "U_", "b_"})
        result.buffers.push_back(buffer_of(graph_, (std::string(kind) + gate).c_str()));
    return result;
  }

 private:
  template <class F>
  static Stmt each(const Dim& dim, F body) {
    return loop("i", dim, imm(dim.extent()), body);
  }

  static Expr kid(const Expr& node, const Expr& k) { return call(UfKind::kth_child, "kids", {node, k}, 0); }

  /// {acc = 0; for k: acc += term(k); then(acc)}
  template <class F, class G>
  static Stmt sum(const Dim& dim, const Expr& extent, F term, G then) {
    BufferInfo info{"acc", DType::f32, {}};
    info.scope = Scope::local;
    const Buffer acc(info);
    const Expr total = at(acc, {});
    const Stmt steps =
        loop("k", dim, extent, [&](auto& k) { return Store::make(acc, {}, combine(ReduceOp::sum, total, term(k))); });
    return Alloc::make(acc, Block::make({Store::make(acc, {}, constant(0, {DType::f32, 1})), steps, then(total)}));
  }

  /// then(W x + U hidden + b)
  template <class F, class G>
  Stmt affine(const std::string& gate, const Expr& node, const Expr& i, F hidden, G then) {
    const auto weight = [&](const char* kind) { return buffer_of(graph_, (kind + gate).c_str()); };
    const auto x = [&](auto& j) {
      return at(weight("W_"), {i, j}) * at(buffer_of(graph_, "Emb"), {uf(UfKind::field, {node}), j});
    };
    return sum(E_, imm(E_.extent()), x, [&](auto& wx) {
      return sum(
          H_, imm(H_.extent()),
          [&](auto& j) {
            return at(weight("U_"), {i, j}) * hidden(j);
          },
          [&](auto& uh) { return then(wx + uh + at(weight("b_"), {i})); });
    });
  }

  Stmt gates(const Expr& node, const Expr& i) {
    const auto s = [&](auto& j) { return at(s_, {node, j}); };
    const auto sigmoid = [](const Expr& e) { return Unary::make(UnaryOp::sigmoid, e); };
    const auto tanh = [](const Expr& e) { return Unary::make(UnaryOp::tanh, e); };
    const Expr k = Var::make("k");
    BufferInfo info{"fc", DType::f32, {}};
    info.scope = Scope::local;
    const Buffer fc(info);
    const Stmt forget = affine(
        "f", node, i,
        [&](auto& j) {
          return at(h_, {kid(node, k), j});
        },
        [&](const Expr& f) {
          return Store::make(fc, {}, at(fc, {}) + sigmoid(f) * at(c_, {kid(node, k), i}));
        });
    const Stmt cell = affine("i", node, i, s, [&](const Expr& input) {
      return affine("u", node, i, s, [&](const Expr& update) {
        return Store::make(c_, {node, i}, sigmoid(input) * tanh(update) + at(fc, {}));
      });
    });
    const Stmt output = affine("o", node, i, s, [&](const Expr& o) {
      return Store::make(h_, {node, i}, sigmoid(o) * tanh(at(c_, {node, i})));
    });
    const Stmt sums = For::make(k, dims::child, uf(UfKind::num_children, {node}), ForKind::serial, forget);
    return Alloc::make(fc, Block::make({Store::make(fc, {}, constant(0, {DType::f32, 1})), sums, cell, output}));
  }

  const ra::Graph& graph_;
  const Dim H_, E_;
  const Buffer h_ = buffer_of(graph_, "h"), c_ = buffer_of(graph_, "c"),
               s_{BufferInfo{"s", DType::f32, {dims::node, H_}}};
};

}  // namespace

TEST_CASE("TreeRNN over batches, written by hand, gives what its graph means", "[ilir]") {
  std::mt19937 random(21);
  const ra::Graph graph = graphs::tree_rnn(0, 5);
  const Program program = tree_rnn_program(graph);
  verify(program, Level::loops);
  for (int round = 0; round < 20; ++round) {
    const NodeTable nodes = random_table(1 + int(random() % 40), 2, words, random, true);
    const Linear linear(nodes, 2);
    const ra::Weights weights = graphs::random_weights(graph, words, random);
    Storage storage = bound(weights);
    interpret(program, linear.arrays, storage);
    CHECK(storage.at("rnn") == rows(ra::interpret<double>(graph, ra::ArraysView(linear.arrays, graph), weights)[0]));
  }
}

TEST_CASE("child-sum TreeLSTM node by node, written by hand, gives what its graph means", "[ilir]") {
  std::mt19937 random(22);
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 3, 4);
  const Program program = TreeLstmProgram(graph).program();
  verify(program, Level::loops);
  for (int round = 0; round < 10; ++round) {
    const NodeTable nodes = random_table(1 + int(random() % 30), 3, words, random, false, round % 2 == 1);
    const Linear linear(nodes);
    const ra::Weights weights = graphs::random_weights(graph, words, random);
    Storage storage = bound(weights);
    interpret(program, linear.arrays, storage);
    const auto states = ra::interpret<double>(graph, ra::ArraysView(linear.arrays, graph), weights);
    for (std::size_t state = 0; state < 2; ++state) {
      const std::vector<double> expected = rows(states[state]), got = storage.at(state == 0 ? "h" : "c");
      REQUIRE(got.size() == expected.size());
      for (std::size_t e = 0; e < got.size(); ++e) CHECK(got[e] == Approx(expected[e]).epsilon(1e-13));
    }
  }
}

TEST_CASE("no nodes at all are no work", "[ilir]") {
  const ra::Graph graph = graphs::child_sum_tree_lstm(words, 3, 4);
  std::mt19937 random(23);
  Storage storage = bound(graphs::random_weights(graph, words, random));
  const Linear linear{NodeTable{}};
  interpret(TreeLstmProgram(graph).program(), linear.arrays, storage);
  CHECK(storage.at("h") == std::vector<double>(4));
}

TEST_CASE("parents before children read what nothing was stored to", "[ilir]") {
  std::mt19937 random(24);
  const ra::Graph graph = graphs::tree_rnn(0, 5);
  Program program = tree_rnn_program(graph);
  const auto stmts = program.body.as<Block>()->stmts;
  program.body = Block::make({stmts[1], stmts[0]});
  const NodeTable nodes = random_table(10, 2, words, random, true);
  const Linear linear(nodes, 2);
  Storage storage = bound(graphs::random_weights(graph, words, random));
  CHECK_THROWS_WITH(
      interpret(program, linear.arrays, storage),
      Catch::Matchers::Contains("'rnn'") && Catch::Matchers::Contains("to which nothing has been stored"));
}
