// What the tests of dsl/ share: node types, their accessors, and ways to look at what a call built or threw.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "cortex/dsl/model.hpp"
#include "cortex/ir/print.hpp"

namespace dsl_test {

struct Word {
  int id;
  const Word* left;
  const Word* right;
  bool known;
  float age;
  double weight;
  float features[4];
  int ids[3];
};
struct Node {
  int label;
  std::vector<const Node*> kids;
  std::vector<const Node*> others;
};

inline constexpr auto left = cortex::child<&Word::left>;
inline constexpr auto right = cortex::child<&Word::right>;
inline constexpr auto perhaps = cortex::optional_child<&Word::right>;
inline constexpr auto word = cortex::field<&Word::id>;
inline constexpr auto known = cortex::field<&Word::known>;
inline constexpr auto age = cortex::field<&Word::age>;
inline constexpr auto weight = cortex::field<&Word::weight>;
inline constexpr auto features = cortex::field<&Word::features>;
inline constexpr auto ids = cortex::field<&Word::ids>;
inline constexpr auto kids = cortex::children<&Node::kids>;
inline constexpr auto others = cortex::children<&Node::others>;
inline constexpr auto label = cortex::field<&Node::label>;

template <const auto&... accessors>
using SetOf = cortex::structure::Accessors<std::remove_cvref_t<decltype(accessors)>...>;

inline const cortex::ra::Op& op(const cortex::ra::Graph& graph, const std::string& name) {
  const int number = graph.find(name);
  REQUIRE(number >= 0);
  return graph.ops[std::size_t(number)];
}

/// The body of that operator as text.
inline std::string body(const cortex::ra::Graph& graph, const std::string& name) {
  return cortex::ir::print(op(graph, name).body);
}

/// The message of the `Error{invalid_model}` that `call` throws; empty if it throws none.
template <class F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const cortex::Error& error) {
    CHECK(error.code == cortex::Code::invalid_model);
    return error.message;
  }
  return {};
}

/// A model over words in which each test adds one operator.
struct Words {
  cortex::Dim V{"vocabulary"}, H{"hidden", 8}, E{"input", 4};
  cortex::Model<Word> m{"words", cortex::tree};
  cortex::Input<2> Emb = m.input<float>("Emb", V, H);
  cortex::Input<2> W = m.input<float>("W", H, E);
  cortex::Placeholder<Word, float, 1> h = m.placeholder<float>("h", H);
  cortex::Op<Word, 1, SetOf<word>> leaf = m.compute("leaf", H, [this](auto n, auto i) { return Emb(word(n), i); });

  /// The body of `[node, hidden]` operator "x" given by the lambda.
  template <class F>
  std::string text(F&& lambda) {
    m.compute("x", H, std::forward<F>(lambda));
    return body(m.graph(), "x");
  }
};

/// The same over nodes with containers of children.
struct Nodes {
  cortex::Dim H{"hidden", 8}, E{"input", 4};
  cortex::Model<Node> m{"nodes", cortex::dag};
  cortex::Input<2> U = m.input<float>("U", H, H);
  cortex::Placeholder<Node, float, 1> h = m.placeholder<float>("h", H);

  template <class F>
  std::string text(F&& lambda) {
    m.compute("x", H, std::forward<F>(lambda));
    return body(m.graph(), "x");
  }
};

}  // namespace dsl_test
