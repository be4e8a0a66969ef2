// Small models of shapes that are rare, each there for what some pass could get wrong. Accessors of all: children left
// 0 and right 1, container kids 0, fields word 0 and, where it is read, features 1.
#pragma once

#include <string>
#include <vector>

#include "cortex/ra/check.hpp"
#include "support/graphs.hpp"

namespace cortex::test::odd {

using graphs::sigmoid_of, graphs::tanh_of;

/// GraphBuilder with the accessors of node tables, and shorthands.
struct Odd : graphs::GraphBuilder {
  using E = ir::Expr;
  explicit Odd(const std::string& name, int extent = 8)
      : GraphBuilder(name, ra::StructureKind::dag, 0), H("hidden", extent), K("inner", 3) {
    left = child("left"), right = child("right"), kids = container("kids"), word = int_field("word");
  }
  Dim H, K, V{"vocabulary"};
  int left, right, kids, word;

  E word_of(const E& n) const { return field_of(word, n); }
  template <class F>
  E over_kids(const E& n, F body, ir::ReduceOp op = ir::ReduceOp::sum) const {
    return sum_over_children(
        kids, n, [&](const E& k) { return body(kid_of(kids, n, k)); }, op);
  }
  template <class F>
  static E over(ir::ReduceOp op, const Dim& dim, F body) {
    const E var = ir::Var::make("r");
    return ir::Reduce::make(op, {var, dim, ir::imm(dim.extent())}, body(var));
  }
  template <class F>
  static E dot(const Dim& dim, F body) {
    return over(ir::ReduceOp::sum, dim, body);
  }
  static E number(double v) { return ir::FloatImm::make(v, DType::f32); }
  static E even(const E& i) { return ir::binary(ir::BinaryOp::eq, i % 2, ir::imm(0)); }
  ra::Graph done() {
    ra::check(graph);
    return std::move(graph);
  }
};

/// A state of one number a node.
inline ra::Graph scalar_state() {
  Odd g("scalar_state");
  const int w = g.input("w", {g.V}), h = g.placeholder("h", {});
  const int body = g.compute("body", {}, [&](auto& n, auto&) {
    return tanh_of(g.at(w, {g.word_of(n)}) + g.over_kids(n, [&](auto kid) { return g.at(h, {kid}); }));
  });
  g.recursion_op(h, body);
  return g.done();
}

/// A matrix a node, contracted from both sides, with a weight of three dimensions and a transposed one.
inline ra::Graph matrix_state(int extent) {
  Odd g("matrix_state", extent);
  const int T = g.input("T", {g.H, g.K, g.H}), U = g.input("U", {g.K, g.K}), Emb = g.input("Emb", {g.V, g.K, g.H});
  const int M = g.placeholder("M", {g.K, g.H});
  const int up = g.compute("up", {g.K, g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(T, {i[1], i[0], r}) * g.at(M, {g.child_of(g.left, n), i[0], r}); });
  });
  const int across = g.compute("across", {g.K, g.H}, [&](auto& n, auto& i) {
    return g.dot(g.K, [&](auto& r) { return g.at(U, {r, i[0]}) * g.at(M, {g.child_of(g.right, n), r, i[1]}); });
  });
  const int body = g.compute("body", {g.K, g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(up, {n, i[0], i[1]}) + g.at(across, {n, i[0], i[1]}) + g.at(Emb, {g.word_of(n), i[0], i[1]}));
  });
  g.recursion_op(M, body);
  return g.done();
}

/// A square matrix a node, each row of which is a product of the children's row with one weight, and a vector that
/// the children's matrices map.
inline ra::Graph matrix_rows(int extent) {
  Odd g("matrix_rows", extent);
  const int W = g.input("W", {g.H, g.H}), U = g.input("U", {g.H, g.H}), Emb = g.input("Emb", {g.V, g.H, g.H});
  const int M = g.placeholder("M", {g.H, g.H}), v = g.placeholder("v", {g.H});
  const int rows = g.compute("rows", {g.H, g.H}, [&](auto& n, auto& i) {
    const auto product = [&](int weight, const auto& kid) {
      return g.dot(g.H, [&](auto& r) { return g.at(weight, {i[1], r}) * g.at(M, {g.child_of(kid, n), i[0], r}); });
    };
    return tanh_of(product(W, g.left) + product(U, g.right) + g.at(Emb, {g.word_of(n), i[0], i[1]}));
  });
  const int mapped = g.compute("mapped", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(Odd::number(1) + g.dot(g.H, [&](auto& r) {
      return g.at(M, {g.child_of(g.left, n), r, i[0]}) * g.at(v, {g.child_of(g.right, n), r});
    }));
  });
  g.recursion_op(M, rows);
  g.recursion_op(v, mapped);
  return g.done();
}

/// Greatest, least and product over children and over dimensions, one inside another.
inline ra::Graph extremes(int extent) {
  Odd g("extremes", extent);
  const int W = g.input("W", {g.H, g.H}), Emb = g.input("Emb", {g.V, g.H}), h = g.placeholder("h", {g.H});
  const int leaf = g.compute("leaf", {g.H}, [&](auto& n, auto& i) { return g.at(Emb, {g.word_of(n), i[0]}); });
  const int top = g.compute("top", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(
        n,
        [&](auto kid) {
          return g.at(h, {kid, i[0]});
        },
        ir::ReduceOp::max);
  });
  const int nested = g.compute("nested", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(
        n,
        [&](auto kid) {
          return g.over(ir::ReduceOp::max, g.H, [&](auto& r) {
            return g.at(W, {i[0], r}) * tanh_of(g.at(h, {kid, r}));
          });
        },
        ir::ReduceOp::min);
  });
  const int spread = g.compute("spread", {g.H}, [&](auto& n, auto& i) {
    return g.over(ir::ReduceOp::prod, g.K, [&](auto& r) {
      return Odd::number(0.5) + ir::Cast::make(DType::f32, r) * g.at(top, {n, i[0]});
    });
  });
  const int rec = g.compute("rec", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(top, {n, i[0]}) + g.at(nested, {n, i[0]}) * g.at(spread, {n, i[0]}) +
                   g.over_kids(
                       n,
                       [&](auto kid) {
                         return g.at(h, {kid, i[0]});
                       },
                       ir::ReduceOp::prod));
  });
  g.recursion_op(h, g.if_then_else(
                        "body", [&](auto& n) { return g.is_leaf(n); }, leaf, rec));
  return g.done();
}

/// Two states of one body, a third that copies a child's, and one whose body another state's reads.
inline ra::Graph shared_bodies(int extent) {
  Odd g("shared_bodies", extent);
  const int Emb = g.input("Emb", {g.V, g.H}), U = g.input("U", {g.H, g.H});
  const int a = g.placeholder("a", {g.H}), b = g.placeholder("b", {g.H}), c = g.placeholder("c", {g.H}),
            d = g.placeholder("d", {g.H});
  const int body = g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(Emb, {g.word_of(n), i[0]}) + g.over_kids(n, [&](auto kid) {
      return g.at(b, {kid, i[0]}) - g.at(c, {kid, i[0]});
    }));
  });
  const int copy = g.compute("copy", {g.H}, [&](auto& n, auto& i) { return g.at(a, {g.child_of(g.left, n), i[0]}); });
  const int last = g.compute("last", {g.H}, [&](auto& n, auto& i) {
    return sigmoid_of(g.dot(g.H,
                            [&](auto& r) {
                              return g.at(U, {i[0], r}) * g.at(body, {n, r});
                            }) +
                      g.at(d, {g.child_of(g.right, n), i[0]}) + g.at(copy, {n, i[0]}));
  });
  g.recursion_op(a, body), g.recursion_op(b, body), g.recursion_op(c, copy), g.recursion_op(d, last);
  return g.done();
}

/// An operator needed under two conditions, branches inside branches, and a branch read as a tensor.
inline ra::Graph conditions(int extent) {
  Odd g("conditions", extent);
  const int Emb = g.input("Emb", {g.V, g.H}), U = g.input("U", {g.H, g.H}), h = g.placeholder("h", {g.H});
  const int x = g.compute("x", {g.H}, [&](auto& n, auto& i) { return tanh_of(g.at(Emb, {g.word_of(n), i[0]})); });
  const int ux = g.compute("ux", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(U, {i[0], r}) * g.at(x, {n, r}); });
  });
  const int s = g.compute("s", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(n, [&](auto kid) { return g.at(h, {kid, i[0]}); });
  });
  const int us = g.compute("us", {g.H}, [&](auto& n, auto& i) {
    return sigmoid_of(g.dot(g.H, [&](auto& r) { return g.at(U, {r, i[0]}) * g.at(s, {n, r}); }));
  });
  const auto even = [&](auto& n) { return Odd::even(g.word_of(n)); };
  const int inner = g.if_then_else("inner", even, us, ux);
  const int either = g.if_then_else(
      "either", [&](auto& n) { return g.is_leaf(n); }, x, inner);
  const int mixed = g.compute("mixed", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(either, {n, i[0]}) - g.at(s, {n, i[0]}) * g.at(x, {n, i[0]}));
  });
  const auto many = [&](auto& n) { return ir::binary(ir::BinaryOp::gt, g.word_of(n), ir::imm(3)); };
  g.recursion_op(h, g.if_then_else("body", many, mixed, g.if_then_else("rest", even, x, ux)));
  return g.done();
}

/// Temporaries that are the same at all leaves, but not at inner nodes.
inline ra::Graph free_at_leaves(int extent) {
  Odd g("free_at_leaves", extent);
  const int A = g.input("A", {g.H, g.H}), b = g.input("b", {g.H}), h = g.placeholder("h", {g.H}),
            c = g.placeholder("c", {g.H});
  const int t = g.compute("t", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(b, {i[0]}) + g.over_kids(n, [&](auto kid) { return g.at(h, {kid, i[0]}); }));
  });
  const int u = g.compute("u", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(A, {i[0], r}) * g.at(t, {n, r}); });
  });
  const int body = g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return sigmoid_of(g.at(u, {n, i[0]}) * g.at(t, {n, i[0]}) + g.at(c, {g.child_of(g.right, n), i[0]}));
  });
  g.recursion_op(h, body), g.recursion_op(c, t);
  return g.done();
}

/// A third child where there are fewer, data of the nodes, and indices that are not plain variables.
inline ra::Graph indices(int extent) {
  Odd g("indices", extent);
  const int x = g.float_field("x", {g.K}), Emb = g.input("Emb", {g.V, g.H}), W = g.input("W", {g.H, g.K}),
            U = g.input("U", {g.H, g.H});
  const int h = g.placeholder("h", {g.H});
  const auto back = [&](const ir::Expr& i) { return ir::imm(g.H.extent() - 1) - i; };
  const int wx = g.compute("wx", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.K, [&](auto& r) { return g.at(W, {i[0], r}) * g.at(x, {n, r}); });
  });
  const int t = g.compute("t", {g.H}, [&](auto& n, auto& i) {
    const ir::Expr third = g.at(h, {g.kid_of(g.kids, n, ir::imm(2)), i[0]}),
                   second = g.at(h, {g.kid_of(g.kids, n, ir::imm(1)), back(i[0])});
    return tanh_of(third + second * g.at(Emb, {g.word_of(n), (i[0] + 1) % g.H.extent()}));
  });
  const int us = g.compute("us", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(n, [&](auto kid) {
      return g.dot(g.H, [&](auto& r) {
        return g.at(U, {back(i[0]), r}) * g.at(h, {kid, r});
      }) * g.at(Emb, {g.word_of(kid), i[0]});
    });
  });
  const int body = g.compute("body", {g.H}, [&](auto& n, auto& i) {
    const ir::Expr low = ir::binary(ir::BinaryOp::lt, i[0], ir::imm(2));
    const ir::Expr turned = g.at(t, {n, back(i[0])});
    return tanh_of(ir::Select::make(low, g.at(wx, {n, i[0]}), turned) + sigmoid_of(g.at(us, {n, i[0]})) +
                   ir::Cast::make(DType::f32, i[0]) * Odd::number(0.01));
  });
  g.recursion_op(h, body);
  return g.done();
}

/// Attention over the children: numbers per child, softmax, and what they weigh. In f64.
inline ra::Graph attention(int extent) {
  Odd g("attention", extent);
  constexpr DType f64 = DType::f64;
  const int Emb = g.input("Emb", {g.V, g.H}, f64), q = g.input("q", {g.H}, f64), A = g.input("A", {g.H, g.H}, f64),
            h = g.placeholder("h", {g.H}, f64);
  const auto exp_of = [](ir::Expr e) { return ir::Unary::make(ir::UnaryOp::exp, std::move(e)); };
  const auto score = [&](const ir::Expr& kid) {
    return g.dot(g.H, [&](auto& r) { return g.at(q, {r}) * g.at(h, {kid, r}); });
  };
  const int top = g.compute(
      "top", {}, [&](auto& n, auto&) { return g.over_kids(n, score, ir::ReduceOp::max); }, f64);
  const int total = g.compute(
      "total", {},
      [&](auto& n, auto&) { return g.over_kids(n, [&](auto kid) { return exp_of(score(kid) - g.at(top, {n})); }); },
      f64);
  const int mix = g.compute(
      "mix", {g.H},
      [&](auto& n, auto& i) {
        return g.over_kids(n, [&](auto kid) {
          return exp_of(score(kid) - g.at(top, {n})) / g.at(total, {n}) * g.dot(g.H, [&](auto& r) {
            return g.at(A, {i[0], r}) * g.at(h, {kid, r});
          });
        });
      },
      f64);
  const int rec = g.compute(
      "rec", {g.H},
      [&](auto& n, auto& i) {
        return tanh_of(g.at(mix, {n, i[0]}) + g.at(Emb, {g.word_of(n), i[0]}));
      },
      f64);
  const int leaf = g.compute(
      "leaf", {g.H},
      [&](auto& n, auto& i) {
        return g.at(Emb, {g.word_of(n), i[0]});
      },
      f64);
  g.recursion_op(h, g.if_then_else(
                        "body", [&](auto& n) { return g.is_leaf(n); }, leaf, rec));
  return g.done();
}

/// Reductions over two dimensions (a tensor product of the children), and over children and a dimension.
inline ra::Graph tensor_product(int extent) {
  Odd g("tensor_product", extent);
  const int T = g.input("T", {g.K, g.H, g.K}), U = g.input("U", {g.H, g.K}), Emb = g.input("Emb", {g.V, g.K}),
            h = g.placeholder("h", {g.K});
  const int both = g.compute("both", {g.K}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& a) {
      return g.dot(g.K, [&](auto& b) {
        return g.at(T, {i[0], a, b}) * g.at(h, {g.child_of(g.left, n), b}) *
               sigmoid_of(g.at(h, {g.child_of(g.right, n), i[0]}));
      });
    });
  });
  const int all = g.compute("all", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(n, [&](auto kid) {
      return g.dot(g.K, [&](auto& r) { return g.at(U, {i[0], r}) * g.at(h, {kid, r}); });
    });
  });
  const int turned = g.compute("turned", {g.K, g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(all, {n, i[1]}) * g.at(Emb, {g.word_of(n), i[0]}));
  });
  const int narrow = g.compute("narrow", {g.K}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(turned, {n, i[0], r}); });
  });
  const int body = g.compute("body", {g.K}, [&](auto& n, auto& i) {
    return tanh_of(g.at(both, {n, i[0]}) + g.at(narrow, {n, i[0]}) + g.at(Emb, {g.word_of(n), i[0]}));
  });
  g.recursion_op(h, body);
  return g.done();
}

/// A sum over the children beside a contraction that does not read it: one nest, of which one part alone is tiled.
inline ra::Graph beside(int extent) {
  Odd g("beside", extent);
  const int U = g.input("U", {g.H, g.H}), Emb = g.input("Emb", {g.V, g.H}), h = g.placeholder("h", {g.H});
  const int s = g.compute("s", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(n, [&](auto kid) { return g.at(h, {kid, i[0]}); });
  });
  const int u = g.compute("u", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(U, {i[0], r}) * g.at(h, {g.child_of(g.left, n), r}); });
  });
  const int most = g.compute("most", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(
        n,
        [&](auto kid) {
          return g.at(h, {kid, i[0]}) * g.at(s, {n, i[0]});
        },
        ir::ReduceOp::prod);
  });
  g.recursion_op(h, g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(s, {n, i[0]}) * g.at(u, {n, i[0]}) + g.at(Emb, {g.word_of(n), i[0]}) - g.at(most, {n, i[0]}));
  }));
  return g.done();
}

/// f32 and f64 over one dimension, of which workers own slices.
inline ra::Graph mixed_types(int extent) {
  Odd g("mixed_types", extent);
  constexpr DType f64 = DType::f64;
  const int U = g.input("U", {g.H, g.H}), Emb = g.input("Emb", {g.V, g.H}), A = g.input("A", {g.H, g.H}, f64);
  const int h = g.placeholder("h", {g.H}), c = g.placeholder("c", {g.H}, f64);
  const int u = g.compute("u", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(U, {i[0], r}) * g.at(h, {g.child_of(g.left, n), r}); });
  });
  const int x = g.compute("x", {g.H}, [&](auto& n, auto& i) { return g.at(Emb, {g.word_of(n), i[0]}); });
  const int either = g.if_then_else(
      "either", [&](auto& n) { return Odd::even(g.word_of(n)); }, u, x);
  const int wide = g.compute(
      "wide", {g.H},
      [&](auto& n, auto& i) {
        return tanh_of(ir::Cast::make(f64, g.at(either, {n, i[0]})) + g.dot(g.H, [&](auto& r) {
          return g.at(A, {i[0], r}) * g.at(c, {g.child_of(g.right, n), r});
        }));
      },
      f64);
  const int narrow = g.compute("narrow", {g.H}, [&](auto& n, auto& i) {
    return ir::Cast::make(DType::f32, g.at(wide, {n, i[0]})) * g.at(either, {n, i[0]});
  });
  g.recursion_op(h, narrow), g.recursion_op(c, wide);
  return g.done();
}

/// Work that could go ahead of the recursion, over what leaves and inner nodes compute differently.
inline ra::Graph degrees(int extent) {
  Odd g("degrees", extent);
  const int W = g.input("W", {g.H, g.H}), Emb = g.input("Emb", {g.V, g.H}), h = g.placeholder("h", {g.H});
  const int t = g.compute("t", {g.H}, [&](auto& n, auto& i) {
    const ir::Expr degree = ir::call(ir::UfKind::num_children, "num_children", {n}, g.kids);
    return g.at(Emb, {g.word_of(n), i[0]}) + ir::Cast::make(DType::f32, degree);
  });
  const int wt = g.compute("wt", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(W, {i[0], r}) * g.at(t, {n, r}); });
  });
  g.recursion_op(h, g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(wt, {n, i[0]}) + g.over_kids(n, [&](auto kid) { return g.at(h, {kid, i[0]}); }));
  }));
  return g.done();
}

/// Numbers and vectors that no node changes.
inline ra::Graph constants(int extent) {
  Odd g("constants", extent);
  const int a = g.input("a", {g.H}), A = g.input("A", {g.H, g.H}), h = g.placeholder("h", {g.H});
  const int dot = g.compute(
      "dot", {}, [&](auto&, auto&) { return g.dot(g.H, [&](auto& r) { return g.at(a, {r}) * g.at(a, {r}); }); });
  const int v = g.compute("v", {g.H}, [&](auto& n, auto& i) { return tanh_of(g.at(a, {i[0]}) * g.at(dot, {n})); });
  const int Av = g.compute("Av", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(A, {i[0], r}) * g.at(v, {n, r}); });
  });
  const int first = g.compute("first", {g.H}, [&](auto& n, auto& i) { return sigmoid_of(g.at(Av, {n, i[0]})); });
  const int rec = g.compute("rec", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(h, {g.child_of(g.left, n), i[0]}) + g.at(dot, {n}) * g.at(h, {g.child_of(g.right, n), i[0]}) +
                   g.at(v, {n, i[0]}));
  });
  g.recursion_op(h, g.if_then_else(
                        "body", [&](auto& n) { return g.is_leaf(n); }, first, rec));
  return g.done();
}

/// A number that no node changes, another one of it, and two products ahead: what stands behind
/// the number's variable needs barriers too.
inline ra::Graph common_number(int extent) {
  Odd g("common_number", extent);
  const int a = g.input("a", {g.H}), A = g.input("A", {g.H, g.H}), h = g.placeholder("h", {g.H});
  const int c = g.compute("c", {}, [&](auto&, auto&) { return tanh_of(g.at(a, {ir::imm(0)})); });
  const int u = g.compute("u", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(A, {r, i[0]}) * (g.at(a, {r}) * g.at(c, {n})); });
  });
  const int d = g.compute("d", {}, [&](auto& n, auto&) { return sigmoid_of(g.at(c, {n}) * g.at(u, {n, ir::imm(0)})); });
  const int Au = g.compute("Au", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(A, {i[0], r}) * g.at(u, {n, r}); }) * g.at(d, {n});
  });
  const int rec = g.compute("rec", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(h, {g.child_of(g.left, n), i[0]}) +
                   g.at(Au, {n, i[0]}) * g.at(h, {g.child_of(g.right, n), i[0]}) + g.at(c, {n}) - g.at(d, {n}));
  });
  g.recursion_op(h, g.if_then_else(
                        "body", [&](auto& n) { return g.is_leaf(n); }, Au, rec));
  return g.done();
}

/// Children chosen by an index variable, outermost and innermost, and a sum over a dimension and the children inside
/// it.
inline ra::Graph chosen_children(int extent) {
  Odd g("chosen_children", extent);
  const int U = g.input("U", {g.H, g.H}), Emb = g.input("Emb", {g.V, g.H}), h = g.placeholder("h", {g.H});
  const auto kid_at = [&](const ir::Expr& n, const ir::Expr& k, const ir::Expr& i) {
    return g.at(h, {g.kid_of(g.kids, n, k), i});
  };
  const int outer = g.compute("outer", {g.K, g.H}, [&](auto& n, auto& i) { return tanh_of(kid_at(n, i[0], i[1])); });
  const int inner = g.compute("inner", {g.H, g.K}, [&](auto& n, auto& i) { return sigmoid_of(kid_at(n, i[1], i[0])); });
  const int u = g.compute("u", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) {
      return g.over_kids(n, [&](auto kid) { return g.at(U, {i[0], r}) * tanh_of(g.at(h, {kid, r})); });
    });
  });
  g.recursion_op(h, g.compute("body", {g.H}, [&](auto& n, auto& i) {
    const ir::Expr both = g.dot(g.K, [&](auto& r) { return g.at(outer, {n, r, i[0]}) * g.at(inner, {n, i[0], r}); });
    return tanh_of(g.at(u, {n, i[0]}) + both + g.at(Emb, {g.word_of(n), i[0]}));
  }));
  return g.done();
}

/// Products of each child with a matrix of its own, by its position and by its word. Of up to three children, those by
/// position are products for each position.
inline ra::Graph own_matrices(int extent, int most_children) {
  Odd g("own_matrices", extent);
  g.graph.max_children = most_children;
  const Dim P("position", most_children);
  const int U = g.input("U", {P, g.H, g.H}), W = g.input("W", {P, g.H, g.H}), A = g.input("A", {g.V, g.H, g.H}),
            b = g.input("b", {P, g.H}), Emb = g.input("Emb", {g.V, g.H}), h = g.placeholder("h", {g.H});
  const auto product = [&](int weight, const ir::Expr& which, const ir::Expr& kid, const ir::Expr& i) {
    return g.dot(g.H, [&](auto& r) { return g.at(weight, {which, i, r}) * g.at(h, {kid, r}); });
  };
  const auto over_positions = [&](const ir::Expr& n, auto value) {
    return g.sum_over_children(g.kids, n, [&](const ir::Expr& k) { return value(k, g.kid_of(g.kids, n, k)); });
  };
  const int gated = g.compute("gated", {g.H}, [&](auto& n, auto& i) {
    return over_positions(n, [&](const ir::Expr& k, const ir::Expr& kid) {
      return sigmoid_of(product(U, k, kid, i[0]) + g.at(b, {k, i[0]})) * (Odd::number(1) + g.at(h, {kid, i[0]}));
    });
  });
  const int placed = g.compute("placed", {g.H}, [&](auto& n, auto& i) {
    return over_positions(n, [&](const ir::Expr& k, const ir::Expr& kid) { return product(W, k, kid, i[0]); });
  });
  const int named = g.compute("named", {g.H}, [&](auto& n, auto& i) {
    return g.over_kids(n, [&](auto kid) { return product(A, g.word_of(kid), kid, i[0]); });
  });
  g.recursion_op(h, g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(gated, {n, i[0]}) + g.at(placed, {n, i[0]}) + g.at(named, {n, i[0]}) +
                   g.at(Emb, {g.word_of(n), i[0]}));
  }));
  return g.done();
}

inline ra::Graph own_matrices_of_four(int extent) { return own_matrices(extent, 4); }

/// An operator that others read whole: a contraction at inner nodes, none at leaves.
inline ra::Graph half_contracted(int extent) {
  Odd g("half_contracted", extent);
  const int U = g.input("U", {g.H, g.H}), A = g.input("A", {g.H, g.H}), Emb = g.input("Emb", {g.V, g.H}),
            h = g.placeholder("h", {g.H});
  const int t = g.compute("t", {g.H}, [&](auto& n, auto& i) {
    return tanh_of(g.at(Emb, {g.word_of(n), i[0]}) + g.dot(g.H, [&](auto& r) {
      return g.at(U, {i[0], r}) * g.at(h, {g.child_of(g.left, n), r});
    }));
  });
  g.recursion_op(h, g.compute("body", {g.H}, [&](auto& n, auto& i) {
    return g.dot(g.H, [&](auto& r) {
      return g.at(A, {i[0], r}) * g.at(t, {n, r});
    }) - g.at(h, {g.child_of(g.right, n), i[0]});
  }));
  return g.done();
}

}  // namespace cortex::test::odd
