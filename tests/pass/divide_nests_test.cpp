// Nests over all nodes of a call, and over its inner ones, become nests over those of a piece.
#include "cortex/pass/divide_nests.hpp"

#include <catch2/catch.hpp>

#include "cortex/ir/print.hpp"
#include "cortex/pass/resolve_structure.hpp"
#include "support/handmade.hpp"

using namespace cortex;
using namespace cortex::test;
using K = ir::UfKind;

namespace {

const Dim H("hidden", 4);
const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state);

/// `for n = 0:extent: node = number(n): h[node,i] = node`.
ir::Stmt rows(K count, const char* count_name, K number, const char* name, int tabulation = -1) {
  const ir::Expr n = var("n_idx"), node = var("node"), i = var("i");
  const ir::Stmt body = loop(i, H, store(h, {node, i}, ir::Cast::make(DType::f32, node)));
  return ir::For::make(n, dims::batch, ir::call(count, count_name, {}, tabulation), ir::ForKind::serial,
                       ir::LetStmt::make(node, ir::call(number, name, {n}), body));
}

}  // namespace

TEST_CASE("a nest over all nodes runs over each range of a piece, and one over inner nodes over that of these",
          "[pass]") {
  CHECK(ir::print(pass::divide_nests(rows(K::num_nodes, "num_nodes", K::all_node, "all_nodes"))) ==
        R"(for range = 0:num_ranges:  # d_sequence
  for n_idx = 0:range_length(range):  # d_batch
    node = range_nodes(range,n_idx)
    for i = 0:4:  # hidden
      h[node,i] = f32(node)
)");
  CHECK(ir::print(pass::divide_nests(rows(K::num_internal, "num_internal", K::internal_node, "internal_nodes"))) ==
        R"(for n_idx = 0:range_length(2):  # d_batch
  node = range_nodes(2,n_idx)
  for i = 0:4:  # hidden
    h[node,i] = f32(node)
)");
  const ir::Stmt leaves = rows(K::num_leaves, "leaf_batch_size", K::leaf_node, "leaf_batch");
  CHECK(pass::divide_nests(leaves).same_as(leaves));
}

TEST_CASE("a nest over the edges of all nodes runs over those of each range", "[pass]") {
  const ir::Expr first = ir::call(K::all_node, "all_nodes", {ir::imm(0)}), e = var("e_idx"), i = var("i");
  const ir::Buffer g = buffer("g", {dims::edge, H});
  const ir::Stmt nest = ir::For::make(
      e, dims::batch_edge, ir::call(K::span_edges, "span_edges", {first, ir::num_nodes()}, 0), ir::ForKind::serial,
      loop(i, H, store(g, {ir::call(K::edge, "edge", {first, ir::imm(0)}, 0) + e, i}, number(1))));
  CHECK(ir::print(pass::divide_nests(nest)) == R"(for range = 0:num_ranges:  # d_sequence
  for e_idx = 0:span_edges(range_nodes(range,0),range_length(range)):  # d_batch_edge
    for i = 0:4:  # hidden
      g[edge(range_nodes(range,0),0) + e_idx,i] = 1.0
)");
}

TEST_CASE("what tables hold is not computed for nests that are divided", "[pass]") {
  for (const K count : {K::num_nodes, K::num_internal}) {
    const K number = count == K::num_nodes ? K::all_node : K::internal_node;
    const ir::Stmt divided = pass::divide_nests(rows(count, "count", number, "nodes", 3));
    int lengths = 0, reads = 0;
    ir::visit_with(
        divided, [&](const ir::UfCall& call) { lengths += call.uf.kind == K::range_length && call.uf.accessor == 3; });
    ir::visit_with(pass::resolve_structure(divided, {}),
                   [&](const ir::Load& load) { reads += load.buffer->slot == ir::slot_of::computes; });
    CHECK((lengths == 1 && reads == 1));
  }
}
