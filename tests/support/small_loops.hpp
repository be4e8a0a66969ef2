// Programs of a few loops, each as small as shows what one primitive of loop schedules does, and what it takes to apply
// steps to them and to compare what they compute.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "cortex/ir/interpret.hpp"
#include "cortex/ir/verify.hpp"
#include "cortex/pass/loops.hpp"
#include "support/handmade.hpp"
#include "support/node_tables.hpp"

namespace cortex::test::small {

inline const Dim H("hidden", 8), N("rows", 6), K("inner", 10), V("vocabulary");

// Weights; states, which are the results; temporaries.
inline const ir::Buffer v = buffer("v", {K}, ir::Role::weight), x = buffer("x", {H}, ir::Role::weight),
                        A = buffer("A", {N, H}, ir::Role::weight), B = buffer("B", {N, K}, ir::Role::weight),
                        Q = buffer("Q", {H, H}, ir::Role::weight), U = buffer("U", {H, K}, ir::Role::weight),
                        W = buffer("W", {H, K}, ir::Role::weight), Emb = buffer("Emb", {V, H}, ir::Role::weight);
inline const ir::Buffer y = buffer("y", {H}, ir::Role::state), y2 = buffer("y2", {H}, ir::Role::state),
                        Y = buffer("Y", {N, H}, ir::Role::state), h = buffer("h", {dims::node, H}, ir::Role::state),
                        z = buffer("z", {dims::node}, ir::Role::state);
inline const ir::Buffer t = buffer("t", {H}), T = buffer("T", {N, H}), s = buffer("s", {dims::node, H}),
                        e = buffer("e", {dims::edge, H}), number_of = buffer("number_of", {});

inline ir::Expr tanh(const ir::Expr& a) { return function(ir::UnaryOp::tanh, a); }
inline ir::Expr real(const ir::Expr& a) { return ir::Cast::make(DType::f32, a); }
inline ir::Expr less(const ir::Expr& a, const ir::Expr& b) { return ir::binary(ir::BinaryOp::lt, a, b); }
inline ir::Expr reversed(const ir::Expr& i) { return ir::imm(H.extent() - 1) - i; }

/// `for i: body(i)` over all of `dim`.
template <class F>
ir::Stmt over(const Dim& dim, const char* name, F body) {
  const ir::Expr i = var(name);
  return loop(i, dim, body(i));
}
/// `acc = 0; for r: acc += M[i,r] * v[r]; then(acc)`.
template <class F>
ir::Stmt dot(const ir::Buffer& M, const ir::Expr& i, F then) {
  return sum_over(
      K,
      [&](const ir::Expr& r) {
        return load(M, {i, r}) * load(v, {r});
      },
      then);
}
/// `for n_idx: node = all_nodes(n_idx): body(node)`.
template <class F>
ir::Stmt nodes(F body) {
  const ir::Expr node = var("node");
  return for_nodes(node, body(node));
}
/// `for b_idx: for n_idx: node = batches(b_idx, n_idx): body(node)`: children are in earlier batches.
template <class F>
ir::Stmt batches(F body) {
  const ir::Expr b = var("b_idx"), n = var("n_idx"), node = var("node");
  const ir::Stmt batch =
      ir::For::make(n, dims::batch, ir::call(ir::UfKind::batch_length, "batch_sizes", {b}), ir::ForKind::serial,
                    ir::LetStmt::make(node, ir::call(ir::UfKind::batch_node, "batches", {b, n}), body(node)));
  return ir::For::make(b, dims::all_batches, ir::call(ir::UfKind::num_batches, "num_batches"), ir::ForKind::serial,
                       batch);
}
/// `for k = 0:num_children(node): body(k)`.
template <class F>
ir::Stmt children(const ir::Expr& node, F body) {
  const ir::Expr k = var("k");
  return ir::For::make(k, dims::child, ir::call(ir::UfKind::num_children, "num_children", {node}, 0),
                       ir::ForKind::serial, body(k));
}
inline ir::Expr edge(const ir::Expr& node, const ir::Expr& k) {
  return ir::call(ir::UfKind::edge, "edge", {node, k}, 0);
}
inline ir::Expr kid(const ir::Expr& node, const ir::Expr& k) {
  return ir::call(ir::UfKind::kth_child, "kids", {node, k}, 0);
}

// ---- Programs ----

inline ir::Stmt scale() {
  return over(H, "i", [](auto& i) { return store(y, {i}, load(x, {i}) * number(2)); });
}
/// h at every node: how many there are is known at the call.
inline ir::Stmt at_nodes() {
  return nodes([](auto& node) {
    return over(H, "i", [&](auto& i) { return store(h, {node, i}, load(x, {i}) * real(node)); });
  });
}
/// A number at every node: a sum over two axes, of which the inner one is longer than a vector or two.
inline ir::Stmt norms() {
  const ir::Buffer acc = local("acc");
  const ir::Expr q = var("q"), r = var("r");
  return nodes([&](auto& node) {
    const ir::Expr term = load(W, {q, r}) * (load(v, {r}) * real(node));
    const ir::Stmt adding = store(acc, {}, ir::binary(ir::BinaryOp::max, load(acc, {}), term));
    return ir::Alloc::make(
        acc, block({store(acc, {}, number(-3)), loop(q, H, loop(r, K, adding)), store(z, {node}, load(acc, {}))}));
  });
}
inline ir::Stmt matrix() {
  return over(N, "i", [](auto& i) {
    return over(H, "j", [&](auto& j) { return store(Y, {i, j}, load(A, {i, j}) + load(x, {j})); });
  });
}
inline ir::Stmt product() {
  return over(H, "i", [](auto& i) { return dot(W, i, [&](auto& sum) { return store(y, {i}, sum); }); });
}
/// The product of two matrices.
inline ir::Stmt matrix_product() {
  return over(N, "i", [](auto& i) {
    return over(H, "j", [&](auto& j) {
      return sum_over(
          K,
          [&](const ir::Expr& r) {
            return load(W, {j, r}) * load(B, {i, r});
          },
          [&](auto& sum) {
            return store(Y, {i, j}, sum);
          });
    });
  });
}
/// Two products in one loop, each with its own pass over r.
inline ir::Stmt two_products() {
  return over(H, "i", [](auto& i) {
    return block({dot(U, i, [&](auto& sum) { return store(y, {i}, sum); }),
                  dot(W, i, [&](auto& sum) { return store(y2, {i}, sum); })});
  });
}
/// Two products one after the other, and what `then` makes of their sums.
template <class F>
ir::Stmt two_sums(F then) {
  const ir::Buffer a = local("a"), b = local("b");
  return over(H, "i", [&](auto& i) {
    const auto adding = [&](const ir::Buffer& sum, const ir::Buffer& M, const ir::Expr& r) {
      return loop(r, K, store(sum, {}, ir::Fma::make(load(M, {i, r}), load(v, {r}), load(sum, {}))));
    };
    const ir::Stmt element = block({store(a, {}, number(0)), store(b, {}, number(0)), adding(a, W, var("r")),
                                    adding(b, U, var("r")), then(i, load(a, {}), load(b, {}))});
    return ir::Alloc::make(a, ir::Alloc::make(b, element));
  });
}
/// Two products, of which only the total is wanted.
inline ir::Stmt total_of_two() {
  return two_sums([](auto& i, const ir::Expr& a, const ir::Expr& b) { return store(y, {i}, tanh(a + b)); });
}
/// A temporary, and what is computed of it.
inline ir::Stmt through_t() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, tanh(load(x, {i}))); }),
                over(H, "j", [](auto& j) { return store(y, {j}, load(t, {j}) * number(2)); })});
}
/// A temporary of the same loop, read again behind its store.
inline ir::Stmt t_in_one_loop() {
  return over(H, "i", [](auto& i) {
    return block({store(t, {i}, tanh(load(x, {i}))), store(y, {i}, load(t, {i}) * load(t, {i}))});
  });
}
/// A copy of a weight, and what is computed of it.
inline ir::Stmt copied() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(x, {i})); }),
                over(H, "j", [](auto& j) { return store(y, {j}, tanh(load(t, {j}))); })});
}
/// Two products in two loops.
inline ir::Stmt gates() {
  return block({over(H, "i", [](auto& i) { return dot(U, i, [&](auto& sum) { return store(y, {i}, sum); }); }),
                over(H, "j", [](auto& j) { return dot(W, j, [&](auto& sum) { return store(y2, {j}, sum); }); })});
}
/// Two nests of one loop over nodes; the second needs the first one's row whole.
inline ir::Stmt two_nests(const ir::Expr& node) {
  return block({over(H, "i",
                     [&](auto& i) {
                       return store(s, {node, i}, load(x, {i}) * real(node));
                     }),
                over(H, "j", [&](auto& j) {
                  return store(h, {node, j}, load(s, {node, reversed(j)}));
                })});
}
inline ir::Stmt two_nests_a_node() { return nodes(two_nests); }
inline ir::Stmt two_nests_a_batch() { return batches(two_nests); }
/// Work of each child, and its sum at each node.
inline ir::Stmt of_edges() {
  const ir::Stmt work = nodes([](auto& node) {
    return children(node, [&](auto& k) {
      return over(H, "i", [&](auto& i) {
        return store(e, {edge(node, k), i}, tanh(load(x, {i}) * real(kid(node, k))));
      });
    });
  });
  const ir::Stmt fold = nodes([](auto& node) {
    return over(H, "i", [&](auto& i) {
      const ir::Buffer acc = local("acc");
      const ir::Stmt add = children(node, [&](auto& k) {
        return store(acc, {}, load(acc, {}) + load(e, {edge(node, k), i}));
      });
      return ir::Alloc::make(acc, block({store(acc, {}, number(0)), add, store(h, {node, i}, load(acc, {}))}));
    });
  });
  return block({work, fold});
}
/// A condition that all iterations ask alike.
inline ir::Stmt asked_often() {
  const ir::Expr positive = less(number(0), load(v, {ir::imm(0)}));
  return over(H, "i",
              [&](auto& i) { return ir::If::make(positive, store(y, {i}, load(x, {i})), store(y, {i}, number(0))); });
}
inline ir::Stmt computed_often() {
  return over(H, "i", [](auto& i) { return store(y, {i}, load(x, {i}) * tanh(load(v, {ir::imm(0)}))); });
}
inline ir::Stmt said_twice() {
  return over(H, "i", [](auto& i) { return store(y, {i}, tanh(load(x, {i})) * (tanh(load(x, {i})) + number(1))); });
}
/// A guard that holds in every iteration.
inline ir::Stmt guarded() {
  return over(H, "i", [](auto& i) { return ir::If::make(less(i, ir::imm(8)), store(y, {i}, load(x, {i}))); });
}
/// A temporary with rows, each of which is contracted.
inline ir::Stmt rows_of_t() {
  return block({over(N, "n",
                     [](auto& n) {
                       return over(H, "i", [&](auto& i) { return store(T, {n, i}, tanh(load(A, {n, i}))); });
                     }),
                over(N, "m", [](auto& m) {
                  return over(H, "j", [&](auto& j) {
                    return sum_over(
                        H,
                        [&](auto& r) {
                          return load(Q, {j, r}) * load(T, {m, r});
                        },
                        [&](auto& sum) {
                          return store(Y, {m, j}, sum);
                        });
                  });
                })});
}
/// h of two children of each node, at each index in turn.
inline ir::Stmt of_children() {
  const auto of = [](int accessor, const char* name, const ir::Expr& node, const ir::Expr& i) {
    return load(h, {ir::call(ir::UfKind::child, name, {node}, accessor), i});
  };
  const ir::Expr n = var("n_idx"), node = var("node"), b = var("b_idx"), m = var("n_idx"), inner = var("node");
  const ir::Stmt leaves = ir::For::make(
      n, dims::batch, ir::call(ir::UfKind::num_leaves, "leaf_batch_size"), ir::ForKind::serial,
      ir::LetStmt::make(node, ir::call(ir::UfKind::leaf_node, "leaf_batch", {n}), over(H, "i", [&](auto& i) {
                          return store(h, {node, i}, load(x, {i}) * real(node));
                        })));
  const ir::Stmt sum = over(H, "i", [&](auto& i) {
    return sum_over(
        H,
        [&](auto& r) {
          return load(Q, {i, r}) * (of(0, "left", inner, r) + of(1, "right", inner, r));
        },
        [&](auto& total) {
          return store(h, {inner, i}, tanh(total));
        });
  });
  const ir::Stmt batch = ir::For::make(
      m, dims::batch, ir::call(ir::UfKind::internal_batch_length, "batch_sizes", {b}), ir::ForKind::serial,
      ir::LetStmt::make(inner, ir::call(ir::UfKind::internal_batch_node, "internal_batches", {b, m}), sum));
  return block(
      {leaves, ir::For::make(b, dims::all_batches, ir::call(ir::UfKind::num_internal_batches, "num_internal_batches"),
                             ir::ForKind::serial, batch)});
}

// ---- Steps ----

/// `body` after the steps, with the names that a program's text shows.
ir::Stmt after(const ir::Stmt& body, const std::string& steps, const Target& target = {});

/// What the first refused step says; "" if none is.
std::string refusal(const ir::Stmt& body, const std::string& steps, const Target& target = {});

/// `like` with another body, and the buffers that this one has: states first, then in order of use.
ir::Program program_of(const ir::Stmt& body, ir::Program like = {"small"});

/// The program's text, with where the elements of a tensor lie if a schedule says so.
std::string text_of(const ir::Program& program);

/// Where `after` gives another result than `before`, run by `workers`: "" if nowhere to a relative 1e-9.
std::string difference(const ir::Program& before, const ir::Program& after, int workers = 1);

}  // namespace cortex::test::small
