// GRUs whose reset gate comes before the product with U_h (PAPER M3, M7, M9), in each number type: two contractions a
// level, the second over what the first gives. Accessors: container kids 0, or child next 0; field id 0.
#pragma once

#include <string>
#include <vector>

#include "cortex/dsl/model.hpp"
#include "cortex/structure/accessors.hpp"

namespace cortex::test {

/// A word with any number of children.
struct Token {
  int id = 0;
  std::vector<const Token*> kids;
};
/// A word of a list.
struct Link {
  int id = 0;
  const Link* next = nullptr;
};

namespace detail {

/// `m`, whose nodes have the field `id` and the sum of whose children's states is `sum_of(h)(n, i)`:
///   s = sum h_k; r, z = sigmoid(W x + U s + b); candidate = tanh(W_h x + U_h (r s) + b_h); h = z s + (1 - z) candidate
/// or, `Simple`, h = (1 - z) candidate. x = Emb[id] at every node; with `Branch`, h = x at a leaf.
template <class Real, bool Simple, bool Branch, class M, class Id, class SumOf>
auto gru(M& m, int extent, const Id& id, const SumOf& sum_of) {
  Dim V{"vocabulary"}, H("hidden", extent);
  const auto matrix = [&](const char* name) { return m.template input<Real>(name, H, H); };
  const auto vector = [&](const char* name) { return m.template input<Real>(name, H); };
  auto Emb = m.template input<Real>("Emb", V, H);
  auto Wr = matrix("Wr"), Wz = matrix("Wz"), Wh = matrix("Wh"), Ur = matrix("Ur"), Uz = matrix("Uz"), Uh = matrix("Uh");
  auto br = vector("br"), bz = vector("bz"), bh = vector("bh");
  auto h = m.template placeholder<Real>("h", H);
  auto s = m.compute("s", H, sum_of(h));
  const auto of_input = [&](auto W, auto b) {
    return [=](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * Emb(id(n), j); }) + b(i); };
  };
  const auto gate = [&](auto W, auto U, auto b) {
    return [=](auto n, auto i) {
      return sigmoid(of_input(W, b)(n, i) + sum(H, [&](auto j) { return U(i, j) * s(n, j); }));
    };
  };
  auto r = m.compute("r", H, gate(Wr, Ur, br)), z = m.compute("z", H, gate(Wz, Uz, bz));
  auto candidate = m.compute("candidate", H, [&](auto n, auto i) {
    return tanh(of_input(Wh, bh)(n, i) + sum(H, [&](auto j) { return Uh(i, j) * (r(n, j) * s(n, j)); }));
  });
  auto rec = m.compute("rec", H, [&](auto n, auto i) {
    const auto fresh = (1 - z(n, i)) * candidate(n, i);
    if constexpr (Simple)
      return fresh;
    else
      return z(n, i) * s(n, i) + fresh;
  });
  if constexpr (Branch) {
    auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(id(n), i); });
    return m.recursion_op(h, m.if_then_else(
                                 "body", [](auto n) { return is_leaf(n); }, leaf, rec));
  } else {
    return m.recursion_op(h, rec);
  }
}

}  // namespace detail

/// Child-sum TreeGRU, or SimpleTreeGRU, over trees or sequences of tokens.
template <class Real = float, bool Simple = false, bool Branch = false>
auto child_sum_gru(int extent, Structure structure = cortex::tree) {
  Model<Token> m(Simple ? "simple_tree_gru" : "tree_gru", structure);
  return detail::gru<Real, Simple, Branch>(m, extent, cortex::field<&Token::id>, [](auto h) {
    return [=](auto n, auto i) { return sum(cortex::children<&Token::kids>(n), [&](auto k) { return h(k, i); }); };
  });
}

/// The sequential GRU, over lists.
template <class Real = float>
auto sequential_gru(int extent) {
  Model<Link> m("gru", cortex::sequence);
  return detail::gru<Real, false, false>(m, extent, cortex::field<&Link::id>, [](auto h) {
    return [=](auto n, auto i) { return h(cortex::optional_child<&Link::next>(n), i); };
  });
}

/// Two states, of which one is behind the contraction of `candidate` and both are read whole: r = sigmoid(U_r sum h_k),
/// candidate = tanh(U_c (r sum c_k)), c = r + candidate, h = tanh(c) sum h_k.
inline auto two_state_gru(int extent) {
  Dim H("hidden", extent), V{"vocabulary"};
  Model<Token> m("two_state_gru", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto Ur = m.input<float>("Ur", H, H), Uc = m.input<float>("Uc", H, H);
  auto h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);
  const auto total = [](auto state) {
    return [=](auto n, auto i) { return sum(cortex::children<&Token::kids>(n), [&](auto k) { return state(k, i); }); };
  };
  auto hs = m.compute("hs", H, total(h)), cs = m.compute("cs", H, total(c));
  auto r = m.compute("r", H, [&](auto n, auto i) {
    return sigmoid(Emb(cortex::field<&Token::id>(n), i) + sum(H, [&](auto j) { return Ur(i, j) * hs(n, j); }));
  });
  auto candidate = m.compute("candidate", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return Uc(i, j) * (r(n, j) * cs(n, j)); }));
  });
  auto c_body = m.compute("c_body", H, [&](auto n, auto i) { return r(n, i) + candidate(n, i); });
  auto h_body = m.compute("h_body", H, [&](auto n, auto i) { return tanh(c_body(n, i)) + 0.5 * hs(n, i); });
  return m.recursion_op(h, h_body, c, c_body);
}

}  // namespace cortex::test
