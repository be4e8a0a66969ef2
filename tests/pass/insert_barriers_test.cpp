// Where a barrier is spared, on programs made by hand: each of them has no race, and one barrier less than it would
// have if loops, workers and nodes were looked at less closely.
#include "cortex/pass/insert_barriers.hpp"

#include <catch2/catch.hpp>

#include "cortex/ir/races.hpp"
#include "cortex/ir/verify.hpp"
#include "support/handmade.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Dim H("hidden", 6), one("one", 1);
const auto parallel = ir::ForKind::parallel;

const ir::Buffer a = buffer("a", {dims::node, H}), b = buffer("b", {dims::node, H});
const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state), g = buffer("g", {dims::node, H}, ir::Role::state);
const ir::Buffer z = buffer("z", {dims::batch, H}), t = buffer("t", {H}), u = buffer("u", {one});
const ir::Buffer scalar = buffer("scalar", {}), other = buffer("other", {});

ir::Expr turned(const ir::Expr& i) { return ir::imm(H.extent() - 1) - i; }
ir::Expr one_more(const ir::Expr& e) { return e + number(1); }
ir::Expr left_of(const ir::Expr& node) { return ir::call(ir::UfKind::child, "left", {node}, 0); }

/// `for n_idx: node = all_nodes(n_idx): parallel for i: to[node,i] = value(node, i)`.
template <class F>
ir::Stmt at_all(const ir::Buffer& to, F value) {
  const ir::Expr node = var("node"), i = var("i");
  return for_nodes(node, loop(i, H, store(to, {node, i}, value(node, i)), parallel));
}

/// `for b_idx in batches: body(b_idx)`.
template <class F>
ir::Stmt for_batches(F body) {
  const ir::Expr b_idx = var("b_idx");
  return ir::For::make(b_idx, dims::all_batches, ir::call(ir::UfKind::num_batches, "num_batches"), ir::ForKind::serial,
                       body(b_idx));
}

/// `for n_idx over dim: node = batches(b_idx, n_idx): body(node)`.
template <class F>
ir::Stmt for_batch(const ir::Expr& b_idx, const Dim& dim, F body) {
  const ir::Expr n = var("n_idx"), node = var("node");
  return ir::For::make(n, dim, ir::call(ir::UfKind::batch_length, "batch_sizes", {b_idx}), ir::ForKind::serial,
                       ir::LetStmt::make(node, ir::call(ir::UfKind::batch_node, "batches", {b_idx, n}), body(n, node)));
}

/// h of each node from its child's, turned over: what needs a barrier between batches.
ir::Stmt recursion(const ir::Buffer& state = h) {
  return for_batches([&](const ir::Expr& b_idx) {
    return for_batch(b_idx, dims::batch, [&](auto&, const ir::Expr& node) {
      const ir::Expr i = var("i");
      return loop(i, H, store(state, {node, i}, one_more(load(state, {left_of(node), turned(i)}))), parallel);
    });
  });
}

int count_barriers(const ir::Stmt& s) {
  int found = 0;
  ir::visit_with(s, [&](const ir::Barrier&) { ++found; });
  return found;
}

/// How many barriers the pass puts into `s`; fails if any is missing, with 2 to 4 workers on trees of several shapes.
int barriers(const ir::Stmt& s) {
  ir::Program program{"handmade", {a, b, h, g, z, t, u, scalar, other}, pass::insert_barriers(s), ir::Level::scheduled};
  ir::visit_with(program.body, [&](const ir::Store& store) {
    if (ir::index_of(program, store.buffer) < 0) program.buffers.push_back(store.buffer);  // copies that take turns
  });
  ir::verify(program, ir::Level::scheduled);
  std::mt19937 random(5);
  for (const NodeTable& table : {random_table(12, 3, 9, random), chain_table(5), chain_table(1)}) {
    const Linear linear(table, 1);
    for (int workers = 2; workers <= 4; ++workers) {
      ir::Storage storage;
      const auto race = ir::find_race(program, linear.arrays, storage, workers);
      CHECK((race ? ir::describe(*race, program) : "") == "");
    }
  }
  return count_barriers(program.body);
}

}  // namespace

TEST_CASE("the barrier that ends a loop's last iteration stands behind the loop too", "[pass][races]") {
  const auto after = at_all(g, [](auto& node, auto& i) { return load(h, {node, turned(i)}); });
  CHECK(barriers(block({recursion(), after})) == 1);
}

TEST_CASE("a loop parts what stands around it if it always runs", "[pass][races]") {
  const auto before = at_all(a, [](auto&, auto&) { return number(1); });
  const auto after = at_all(b, [](auto& node, auto& i) { return load(a, {node, turned(i)}); });
  CHECK(barriers(block({before, recursion(), after})) == 1);
  const auto times = [](ir::UfKind count, const ir::Stmt& s) {
    const ir::For& n = *s.as<ir::For>();
    return ir::For::make(n.var, n.dim, ir::call(count, "count"), n.loop, n.body);
  };
  CHECK(barriers(block({before, times(ir::UfKind::num_internal_batches, recursion()), after})) == 2);
  // A piece of a call may have no leaves.
  const ir::Stmt for_leaves = times(ir::UfKind::num_leaves, recursion());
  CHECK(count_barriers(pass::insert_barriers(block({before, for_leaves, after}))) == 2);
}

TEST_CASE("the parts of a batch have different nodes, and inner batches others than the leaves", "[pass]") {
  const ir::Expr b_idx = var("b_idx");
  const auto at = [&](const ir::Expr& part, bool write) {
    const ir::Expr n = var("n_idx"), node = var("node"), i = var("i");
    const ir::Expr value = write ? number(1) : load(a, {node, turned(i)});
    const ir::Stmt nest = loop(i, H, store(write ? a : b, {node, i}, value), parallel);
    return ir::For::make(n, dims::batch, ir::call(ir::UfKind::part_length, "part_sizes", {part}), ir::ForKind::serial,
                         ir::LetStmt::make(node, ir::call(ir::UfKind::part_node, "parts", {part, n}), nest));
  };
  const auto batches = [&](std::vector<ir::Stmt> body) {
    return ir::For::make(b_idx, dims::all_batches, ir::call(ir::UfKind::num_internal_batches, "num_internal_batches"),
                         ir::ForKind::serial, block(std::move(body)));
  };
  const auto count = [](const ir::Stmt& s) { return count_barriers(pass::insert_barriers(s)); };
  const ir::Expr first = (b_idx + 1) * 3, second = (b_idx + 1) * 3 + 1;
  CHECK(count(batches({at(first, false), at(second, true)})) == 0);
  CHECK(count(batches({at(first, false), at(first, true)})) == 1);
  CHECK(count(block({batches({at(first, false)}), batches({at(second, true)})})) == 1);  // b_idx of two loops
  CHECK(count(block({at(ir::imm(3), false), batches({at(second, true)})})) == 0);
  CHECK(count(block({at(ir::imm(4), false), batches({at(second, true)})})) == 1);
  CHECK(count(block({at(ir::imm(1), false), at(ir::imm(2), true)})) == 0);
  CHECK(count(block({at(ir::imm(1), false), at(ir::imm(1), true)})) == 1);
}

TEST_CASE("leaves are no inner nodes, and what a condition excludes does not meet", "[pass][races]") {
  const auto at = [](ir::UfKind number, ir::UfKind count, const ir::Buffer& to, const ir::Expr& node, auto value,
                     const ir::Expr& condition) {
    const ir::Expr n = var("n_idx"), i = var("i");
    const ir::Stmt nest = loop(i, H, store(to, {node, i}, value(node, i)), parallel);
    return ir::For::make(
        n, dims::batch, ir::call(count, "count"), ir::ForKind::serial,
        ir::LetStmt::make(node, ir::call(number, "number", {n}), condition ? ir::If::make(condition, nest) : nest));
  };
  using enum ir::UfKind;
  const ir::Expr x = var("node"), y = var("node");
  const auto write = [](auto&, auto&) { return number(1); };
  const auto read = [](auto& node, auto& i) { return load(a, {node, turned(i)}); };
  const ir::Stmt leaves = at(leaf_node, num_leaves, b, x, read, {});
  CHECK(barriers(block({leaves, at(internal_node, num_internal, a, y, write, {})})) == 0);
  CHECK(barriers(block({leaves, at(all_node, num_nodes, a, y, write, {})})) == 1);

  const auto leaf = [](const ir::Expr& node) { return ir::call(ir::UfKind::is_leaf, "is_leaf", {node}); };
  const auto is_not = [](const ir::Expr& e) { return ir::Unary::make(ir::UnaryOp::logical_not, e); };
  const ir::Stmt some = at(all_node, num_nodes, b, x, read, leaf(x));
  CHECK(barriers(block({some, at(all_node, num_nodes, a, y, write, is_not(leaf(y)))})) == 0);
  CHECK(barriers(block({some, at(all_node, num_nodes, a, y, write, leaf(y))})) == 1);
  // Of the children's parents alone is known that they are no leaves.
  const auto of_child = [](auto& node, auto& i) { return load(a, {left_of(node), turned(i)}); };
  const ir::Stmt parents = at(all_node, num_nodes, b, x, of_child, is_not(leaf(x)));
  CHECK(barriers(block({parents, at(all_node, num_nodes, a, y, write, leaf(y))})) == 1);
}

TEST_CASE("what stands behind a loop's first barrier needs none in front of the loop", "[pass][races]") {
  const auto before = at_all(a, [](auto&, auto&) { return number(1); });
  const auto twice = for_batches([&](const ir::Expr& b_idx) {
    const auto first = for_batch(b_idx, dims::batch, [&](auto& n, auto& node) {
      const ir::Expr i = var("i");
      return loop(i, H, store(z, {n, i}, load(a, {node, i})), parallel);
    });
    const auto second = for_batch(b_idx, dims::batch, [&](auto& n, auto& node) {
      const ir::Expr i = var("i");
      return loop(i, H, store(g, {node, i}, load(z, {n, turned(i)}) + load(a, {node, turned(i)})), parallel);
    });
    return block({first, second});
  });
  CHECK(barriers(block({before, twice})) == 1);
}

TEST_CASE("what one worker does alone needs no barrier in between", "[pass][races]") {
  const ir::Expr first = ir::binary(ir::BinaryOp::eq, ir::call(ir::UfKind::worker, "worker"), ir::imm(0)), i = var("i");
  const auto alone = [&](const ir::Buffer& to, const ir::Expr& value) {
    return ir::If::make(first, store(to, {}, value));
  };
  CHECK(barriers(block({alone(scalar, number(1)), alone(other, load(scalar, {}))})) == 0);
  const auto all = loop(i, H, store(t, {i}, load(scalar, {})), parallel);
  CHECK(barriers(block({alone(scalar, number(1)), all})) == 1);
}

TEST_CASE("barriers stand where a variable's value is read, and among what is done with it", "[pass][races]") {
  const ir::Expr first = ir::Var::make("first", {DType::f32, 1}), i = var("i"), j = var("j"), k = var("k");
  const auto set = loop(i, H, store(t, {i}, number(1)), parallel);
  const ir::Buffer v = buffer("v", {H}), w = buffer("w", {H});
  const auto of_first = loop(j, H, store(v, {j}, first), parallel);
  const auto whole = loop(k, H, store(w, {k}, load(v, {turned(k)})), parallel);
  CHECK(barriers(block({set, ir::LetStmt::make(first, load(t, {ir::imm(0)}), of_first)})) == 1);
  CHECK(barriers(block({set, ir::LetStmt::make(first, load(t, {ir::imm(0)}), block({of_first, whole}))})) == 2);
  CHECK(barriers(block({set, ir::LetStmt::make(first, number(2), block({of_first, whole}))})) == 1);
}

TEST_CASE("a dimension of one element is one worker's", "[pass][races]") {
  const ir::Expr i = var("i"), j = var("j"), k = var("k");
  const auto write = loop(i, one, store(u, {i}, number(1)), parallel);
  const ir::Buffer v = buffer("v", {one});
  const auto same = loop(j, one, store(v, {j}, load(u, {ir::imm(0)})), parallel);
  const auto all = loop(k, H, store(t, {k}, load(u, {ir::imm(0)})), parallel);
  CHECK(count_barriers(pass::insert_barriers(block({write, same}))) == 0);
  CHECK(barriers(block({write, all})) == 1);
}

TEST_CASE("a state is written once, before anything reads it, so that what reads it comes first at other nodes alone",
          "[pass][races]") {
  const auto by_leaf = [](bool leaves, const ir::Buffer& to, const ir::Buffer& from) {
    const ir::Expr node = var("node"), i = var("i");
    const ir::Expr leaf = ir::call(ir::UfKind::is_leaf, "is_leaf", {node});
    const auto nest = loop(i, H, store(to, {node, i}, from ? load(from, {node, turned(i)}) : number(1)), parallel);
    return for_nodes(node, ir::If::make(leaves ? leaf : ir::Unary::make(ir::UnaryOp::logical_not, leaf), nest));
  };
  const auto leaves = by_leaf(true, h, {}), reads = by_leaf(true, g, h), inner = by_leaf(false, h, {});
  CHECK(barriers(block({leaves, reads, inner})) == 1);
}

TEST_CASE("between single nodes of one batch there is no barrier for their children's states", "[pass][races]") {
  const ir::Stmt s = for_batches([&](const ir::Expr& b_idx) {
    return for_batch(b_idx, dims::sequence, [&](auto&, const ir::Expr& node) {
      const ir::Expr i = var("i");
      return block({loop(i, H, store(h, {node, i}, one_more(load(h, {left_of(node), turned(i)}))), parallel)});
    });
  });
  CHECK(barriers(s) == 1);
  const ir::Stmt after = pass::insert_barriers(s);
  CHECK(ir::print(after).find("\n  barrier") != std::string::npos);  // of the batches, not of the nodes
}

TEST_CASE("iterations take turns with a temporary, and whatever loop uses it next stands behind a barrier",
          "[pass][races]") {
  const auto turns = [&](const ir::Buffer& to) {
    return for_batches([&](const ir::Expr& b_idx) {
      const auto first = for_batch(b_idx, dims::batch, [&](auto& n, auto&) {
        const ir::Expr i = var("i");
        return loop(i, H, store(z, {n, i}, number(1)), parallel);
      });
      const auto second = for_batch(b_idx, dims::batch, [&](auto& n, auto& node) {
        const ir::Expr i = var("i");
        return loop(i, H, store(to, {node, i}, load(z, {n, turned(i)})), parallel);
      });
      return block({first, second});
    });
  };
  CHECK(barriers(turns(h)) == 1);
  CHECK(barriers(block({turns(h), turns(g)})) == 3);
}
