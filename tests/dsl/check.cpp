// ra::check refuses graphs that were made by hand, or changed, against the same rules that hold for lambdas.
#include "cortex/ra/check.hpp"

#include "dsl/support.hpp"

using namespace dsl_test;

namespace {

using Catch::Contains;
using cortex::Dim;
using cortex::ir::Expr;
using cortex::ir::UfKind;
using cortex::ra::Graph;
using cortex::ra::Op;

/// The graph of: h = W h(left) at inner nodes, 0 at leaves.
Graph good() {
  static const Dim H{"hidden", 8};
  cortex::Model<Word> m("m", cortex::tree.with_max_children(2));
  auto W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto zero = m.compute("zero", H, [&](auto, auto) { return cortex::cast<float>(0); });
  auto x = m.compute("x", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return W(i, j) * h(left(n), j); }) * word(n) * age(n);
  });
  auto b = m.if_then_else(
      "b", [](auto n) { return is_leaf(n); }, zero, x);
  return m.recursion_op(h, b).graph();
}

Op& at(Graph& g, const char* name) { return g.ops[std::size_t(g.find(std::string(name)))]; }
Expr read(Graph& g, const char* name, std::vector<Expr> indices) {
  return cortex::ir::Load::make(at(g, name).buffer, std::move(indices));
}
Expr child(const Expr& node, int accessor = 0) { return cortex::ir::call(UfKind::child, "left", {node}, accessor); }

/// What `check` says of the graph after `change`.
template <class F>
std::string verdict(F&& change) {
  Graph g = good();
  change(g);
  return refusal([&] { cortex::ra::check(g); });
}

/// What it says of operator x with another body, made of the graph, x's node and x's index.
template <class F>
std::string verdict_on(F&& make) {
  return verdict([&](Graph& g) {
    Op& x = at(g, "x");
    x.body = make(g, x.node, x.index_vars[0]);
  });
}

TEST_CASE("a graph from lambdas passes the check") {
  CHECK(verdict([](Graph&) {}) == "");
}

TEST_CASE("check holds recursive calls to their properties") {
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               return read(g, "h", {n, i});
             }),
             Contains("(P.2)") && Contains("placeholder 'h' is read at the node itself"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               return read(g, "h", {child(child(n)), i});
             }),
             Contains("(P.2)") && Contains("further away than at a child"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               return read(g, "zero", {child(n), i});
             }),
             Contains("(P.2)") && Contains("'zero' is read at a child"));
  CHECK_THAT(verdict([](Graph& g) {
               Op& b = at(g, "b");
               b.condition = cortex::ir::binary(cortex::ir::BinaryOp::gt, read(g, "zero", {b.node, cortex::ir::imm(0)}),
                                                cortex::ir::constant(0, {cortex::DType::f32, 1}));
             }),
             Contains("(P.1)") && Contains("its condition is made of computed data"));
  const auto to_index = [](const Expr& e) { return cortex::ir::Cast::make(cortex::DType::i32, e); };
  CHECK_THAT(verdict_on([&](Graph& g, Expr n, Expr i) {
               return read(g, "W", {to_index(read(g, "zero", {n, i})), i});
             }),
             Contains("(P.1)") && Contains("indexed by computed data"));
  CHECK_THAT(verdict_on([&](Graph& g, Expr n, Expr i) {
               return read(g, "h", {child(n), to_index(read(g, "zero", {n, i}))});
             }),
             Contains("(P.3)"));
  CHECK_THAT(verdict_on([&](Graph& g, Expr n, Expr i) {
               g.containers.push_back({"kids", nullptr});
               return read(g, "h",
                           {cortex::ir::call(UfKind::kth_child, "kids", {n, to_index(read(g, "zero", {n, i}))}, 0), i});
             }),
             Contains("(P.3)") && Contains("a child is chosen by computed data"));
}

TEST_CASE("check holds reads to what is there") {
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               return read(g, "b", {n, i});
             }),
             Contains("reads 'b', which is not defined before it"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr) { return read(g, "zero", {n}); }),
             Contains("reads 'zero' with 1 indices, not 2"));
  CHECK_THAT(verdict_on([](Graph& g, Expr, Expr) { return read(g, "zero", {}); }),
             Contains("reads 'zero' with 0 indices, not 2"));
  CHECK_THAT(verdict_on([](Graph& g, Expr, Expr i) {
               return read(g, "zero", {i, i});
             }),
             Contains("a node is expected"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr) {
               return read(g, "zero", {n, n});
             }),
             Contains("the node itself is used as a number"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               return read(g, "h", {child(n, 3), i});
             }),
             Contains("reads an accessor that the graph does not list: 'left'"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr) {
               return read(g, "zero", {n, child(n)});
             }),
             Contains("a node is used as a number"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr) {
               return read(g, "zero", {n, cortex::ir::call(UfKind::field, "id", {child(n)}, 0)});
             }),
             Contains("'id' is read at a child that may be absent"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr) { return read(g, "node_age", {child(n)}); }),
             Contains("'node_age' is read at a child that may be absent"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               return read(g, "zero", {n, i}) + read(g, "zero", {n, cortex::ir::call(UfKind::num_nodes, "num_nodes")});
             }),
             Contains("a function that lowering makes, not an operator: 'num_nodes'"));
}

TEST_CASE("check holds reductions to their dimensions") {
  const auto over = [](std::int64_t extent) {
    return verdict_on([&](Graph& g, Expr n, Expr i) {
      const Expr r = cortex::ir::Var::make("r");
      return cortex::ir::Reduce::make(cortex::ir::ReduceOp::sum, {r, at(g, "x").dims[0], cortex::ir::imm(extent)},
                                      read(g, "zero", {n, i}));
    });
  };
  CHECK(over(8) == "");
  CHECK_THAT(over(7), Contains("a reduction of another extent than its dimension"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               return cortex::ir::Reduce::make(cortex::ir::ReduceOp::sum, {i, at(g, "x").dims[0], cortex::ir::imm(8)},
                                               read(g, "zero", {n, i}));
             }),
             Contains("a reduction over a variable that is taken"));
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               const Expr k = cortex::ir::Var::make("k");
               return cortex::ir::Reduce::make(cortex::ir::ReduceOp::sum, {k, cortex::dims::child, cortex::ir::imm(2)},
                                               read(g, "zero", {n, i}));
             }),
             Contains("has num_children as its extent"));
}

TEST_CASE("check refuses what only lowering makes") {
  CHECK_THAT(verdict_on([](Graph& g, Expr n, Expr i) {
               const Expr v = cortex::ir::Var::make("v");
               return cortex::ir::Let::make(v, i, read(g, "zero", {n, v}));
             }),
             Contains("an expression of a kind that lowering makes"));
}

TEST_CASE("check holds operators to their declarations") {
  CHECK_THAT(verdict([](Graph& g) { g.name.clear(); }), Contains("a model needs a name"));
  CHECK_THAT(verdict([](Graph& g) { g.states.clear(); }), Contains("it has no state"));
  CHECK_THAT(verdict([](Graph& g) { g.states[0].body = 99; }), Contains("a state names no operator"));
  CHECK_THAT(verdict([](Graph& g) { std::swap(g.states[0].body, g.states[0].placeholder); }),
             Contains("'b' is not a placeholder"));
  CHECK_THAT(verdict([](Graph& g) { g.ops[0].buffer = {}; }), Contains("an operator of model 'm' has no name"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "x").dims.clear(); }), Contains("other dimensions than the operator"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "x").kind = cortex::ra::OpKind::placeholder; }),
             Contains("plays another role"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "x").index_vars.clear(); }), Contains("another number of index variables"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "x").body = {}; }), Contains("no node variable or no body"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "x").body = cortex::ir::imm(1); }),
             Contains("its body is of another type than its buffer"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "b").condition = {}; }), Contains("no node variable or no condition"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "b").else_op = g.find(std::string("b")); }),
             Contains("a branch is no operator before it"));
  CHECK_THAT(verdict([](Graph& g) { at(g, "b").else_op = g.find(std::string("h")); }),
             Contains("branch 'h' is not computed"));
}

}  // namespace
