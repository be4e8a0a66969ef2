// Conditions that are known where they stand go; all others stay, and programs give the same.
#include "cortex/pass/simplify_guards.hpp"

#include <catch2/catch.hpp>

#include "cortex/structure/linearizer.hpp"
#include "support/differential.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/skip.hpp"
#include "support/small_loops.hpp"

using namespace cortex;
using namespace cortex::test;
using pass::ProofCounts;
using pass::simplify_guards;

namespace {

const Dim H("hidden", 64), O("outer", 4), I("inner", 16);

ir::Expr less(const ir::Expr& a, const ir::Expr& b) { return ir::binary(ir::BinaryOp::lt, a, b); }
ir::Expr call(ir::UfKind kind, std::vector<ir::Expr> args = {}) { return ir::call(kind, "f", std::move(args)); }
ir::Stmt loop_to(const ir::Expr& v, const ir::Expr& extent, const ir::Stmt& body) {
  return ir::For::make(v, dims::batch, extent, ir::ForKind::serial, body);
}

/// `for o = 0:tiles: for i = 0:16: if o * 16 + i < extent: y[o * 16 + i] = 0`.
ir::Stmt guarded(const ir::Expr& tiles, const ir::Expr& extent, const ir::Buffer& y) {
  const ir::Expr o = var("o"), i = var("i"), at = o * 16 + i;
  return loop_to(o, tiles, loop(i, I, ir::If::make(less(at, extent), store(y, {at}, number(0)))));
}

ProofCounts counts_of(const ir::Stmt& s) {
  ProofCounts counts;
  simplify_guards(s, {}, &counts);
  return counts;
}

}  // namespace

TEST_CASE("the guard of tiles that divide their extent goes", "[pass]") {
  const ir::Buffer y = buffer("y", {H});
  ProofCounts counts;
  const ir::Stmt s = simplify_guards(guarded(ir::imm(4), ir::imm(64), y), {}, &counts);
  CHECK(ir::print(s) == "for o = 0:4:  # d_batch\n  for i = 0:16:  # inner\n    y[o * 16 + i] = 0.0\n");
  CHECK(counts == ProofCounts{0, 1, 0, 0});
}

TEST_CASE("of a variable extent the full tiles and the peeled rest go without guard", "[pass]") {
  const ir::Buffer y = buffer("y", {dims::batch});
  const ir::Expr b = var("b"), n = call(ir::UfKind::batch_length, {b}), o = var("o"), at = n / 16 * 16 + o;
  const ir::Stmt rest = loop_to(o, n % 16, ir::If::make(less(at, n), store(y, {at}, number(0))));
  const ir::Stmt s = loop_to(b, call(ir::UfKind::num_batches), block({guarded(n / 16, n, y), rest}));
  CHECK(count(ir::print(s), "if ") == 2);
  CHECK(count(ir::print(simplify_guards(s)), "if ") == 0);
}

TEST_CASE("the guard of the last tile stays where loops round up", "[pass]") {
  const ir::Buffer y = buffer("y", {dims::batch});
  const ir::Expr b = var("b"), n = call(ir::UfKind::batch_length, {b});
  const ir::Stmt s = loop_to(b, call(ir::UfKind::num_batches), guarded((n + 15) / 16, n, y));
  CHECK(simplify_guards(s).same_as(s));
  const ir::Stmt constant = guarded(ir::imm(4), ir::imm(63), y);
  CHECK(simplify_guards(constant).same_as(constant));
}

TEST_CASE("proofs about tiles of even tiles come to an end", "[pass][equality]") {
  const ir::Stmt rows = small::nodes([](auto& node) {
    return small::over(small::H, "i", [&](auto& i) {
      return small::dot(small::W, i, [&](auto& sum) { return store(small::h, {node, i}, sum); });
    });
  });
  const ir::Stmt s = small::after(rows, "tile_nests(); split_cases(t, 3); simplify_guards()");
  CHECK(small::difference(small::program_of(rows), small::program_of(s)) == "");
}

TEST_CASE("a branch that is never taken goes, and a loop that never runs", "[pass]") {
  const ir::Buffer y = buffer("y", {dims::node}), z = buffer("z", {H});
  const ir::Expr n = var("n"), i = var("i");
  const ir::Stmt first = store(y, {n}, number(1)), second = store(y, {n}, number(2));
  const ir::Stmt s =
      loop_to(n, call(ir::UfKind::num_internal), ir::If::make(call(ir::UfKind::is_leaf, {n}), first, second));
  CHECK(ir::print(simplify_guards(s)) == "for n = 0:f:  # d_batch\n  y[n] = 2.0\n");
  CHECK(counts_of(s).proved() == 1);
  const ir::Expr w = call(ir::UfKind::worker), all = call(ir::UfKind::num_workers);
  const ir::Stmt never = loop_to(i, ((w + 1) * 4 / all - w * 4 / all) / 8, store(z, {i}, number(0)));
  CHECK(ir::print(simplify_guards(block({never, store(z, {ir::imm(0)}, number(3))}))) == "z[0] = 3.0\n");
}

TEST_CASE("without knowing how many parts a batch has, a part's nodes may be leaves", "[pass]") {
  const ir::Buffer y = buffer("y", {dims::node});
  const ir::Expr b = var("b"), n = var("n"), node = var("node"), part = b * 2 + 1;
  const ir::Stmt body = ir::If::make(call(ir::UfKind::is_leaf, {node}), store(y, {node}, number(1)));
  const ir::Stmt s = loop_to(b, call(ir::UfKind::num_batches),
                             loop_to(n, call(ir::UfKind::part_length, {part}),
                                     ir::LetStmt::make(node, call(ir::UfKind::part_node, {part, n}), body)));
  CHECK(simplify_guards(s).same_as(s));
  pass::KnownNodes known;
  known.parts = 1;  // so that these are the nodes of inner batches
  CHECK_FALSE(simplify_guards(s, known).same_as(s));
}

TEST_CASE("the part of a condition that is known goes alone", "[pass]") {
  const ir::Buffer y = buffer("y", {H});
  const ir::Expr i = var("i"), w = call(ir::UfKind::worker);
  const ir::Expr first = ir::binary(ir::BinaryOp::eq, w, ir::imm(0));
  const ir::Stmt s = loop(
      i, I,
      ir::If::make(ir::Binary::make(ir::BinaryOp::logical_and, less(i, ir::imm(16)), first), store(y, {i}, number(0))));
  CHECK(ir::print(simplify_guards(s)) == "for i = 0:16:  # inner\n  if f == 0:\n    y[i] = 0.0\n");
}

TEST_CASE("a select's condition says nothing of what its arms read", "[pass]") {
  const ir::Buffer y = buffer("y", {H}), x = buffer("x", {I});
  const ir::Expr i = var("i"), inside = less(i, ir::imm(16));
  // Both arms are evaluated: without the inner select, x would be read past its end.
  const ir::Expr safe = load(x, {ir::Select::make(inside, i, ir::imm(0))});
  const ir::Stmt s = loop(i, H, store(y, {i}, ir::Select::make(inside, safe, number(0))));
  CHECK(simplify_guards(s).same_as(s));
  const ir::Expr o = var("o");
  const ir::Stmt known = loop(o, I, store(y, {o}, ir::Select::make(less(o, ir::imm(16)), number(1), number(0))));
  CHECK(ir::print(simplify_guards(known)) == "for o = 0:16:  # inner\n  y[o] = 1.0\n");
}

TEST_CASE("a condition on data stays", "[pass]") {
  const ir::Buffer y = buffer("y", {H}), x = buffer("x", {H});
  const ir::Expr i = var("i");
  const ir::Stmt s = loop(i, H, ir::If::make(less(load(x, {i}), number(0)), store(y, {i}, number(0))));
  CHECK(simplify_guards(s).same_as(s));
}

TEST_CASE("Z3 removes what follows by cases", "[pass]") {
  need_z3();
  const ir::Buffer y = buffer("y", {H});
  const ir::Expr i = var("i"), j = var("j");
  const ir::Expr either = ir::Binary::make(ir::BinaryOp::logical_or, less(i, ir::imm(3)), less(i, j));
  const ir::Stmt inner = ir::If::make(less(i, ir::imm(15)), store(y, {i}, number(0)));
  const ir::Stmt s = loop(i, I, loop(j, I, ir::If::make(either, inner)));
  CHECK(counts_of(s) == ProofCounts{0, 0, 1, 0});
}

namespace {

/// Every loop of constant extent in tiles of four, with a guard.
ir::Stmt tiled(const ir::Stmt& s) {
  return ir::mutate_with(s, [](auto& self, const ir::For& n) -> ir::Stmt {
    const auto extent = ir::as_int(n.extent);
    if (!extent || n.loop != ir::ForKind::serial) return self.children(n);
    const ir::Expr o = var("o"), i = var("i"), at = o * 4 + i;
    const ir::Stmt body = ir::If::make(less(at, n.extent), ir::substitute(self(n.body), {{n.var.get(), at}}));
    const Dim four("four", 4);
    return ir::For::make(o, dims::sequence, ir::imm((*extent + 3) / 4), ir::ForKind::serial, loop(i, four, body));
  });
}

}  // namespace

TEST_CASE("random programs give the same without the guards that are proved", "[pass][equality][random]") {
  ProofCounts all;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomModel model(seed);
    Random random(seed);
    const Forest forest = random_forest(random, model.graph, 8);
    structure::Workspace workspace;
    const std::vector<structure::FieldCheck> checks(2);
    const structure::Arrays& arrays = structure::Linearizer<Vertex, VertexSet>::run(
        workspace, Structure{structure::Kind(int(model.graph.structure))}, checks, forest.roots);
    const ra::ArraysView<structure::Arrays> view(arrays, model.graph);
    std::vector<std::int32_t> number(std::size_t(arrays.num_nodes));
    std::iota(number.begin(), number.end(), 0);
    const Reference reference(model.graph, view, arrays, number, weights_for(model.graph, num_words, 1));
    const Schedule schedule =
        (seed % 2 ? Schedule::standard() : Schedule{}).exact_activations().workers(1 + int(seed % 3));
    INFO("seed " << seed);
    for (Snapshot& s : passes_of(model.graph, schedule, machine(16))) {
      if (s.pass != "lower" && s.pass != "share_loads" && s.pass != "resolve_structure") continue;
      if (s.pass == "lower") s.program.body = tiled(s.program.body);
      s.program.body = simplify_guards(s.program.body, pass::KnownNodes(s.program), &all);
      CHECK(reference.difference(s.program, {s.pass == "lower" ? 1 : schedule.max_workers, false}) == "");
    }
  }
  CHECK(all.proved() > 100);
}
