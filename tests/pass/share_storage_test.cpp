// Temporaries that lie in the same memory: which may, and that results do not change.
#include <catch2/catch.hpp>

#include "cortex/models/gru.hpp"
#include "support/golden.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Step {
  int id = 0;
  const Step* previous = nullptr;
};

/// The levels of a tree, with two temporaries of a level, x and then y, each written by one nest and read by the next.
struct Levels {
  Dim H{"hidden", 4};
  ir::Expr b = var("b_idx");
  ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state), w = buffer("w", {H}, ir::Role::weight);
  ir::Buffer x = buffer("x", {dims::batch, H}), y = buffer("y", {dims::batch, H});
  ir::ForKind kind = ir::ForKind::serial;

  template <class Body>
  ir::Stmt nest(Body body) const {
    const ir::Expr n = var("n_idx"), node = var("node"), i = var("i");
    return ir::For::make(n, dims::batch, ir::call(ir::UfKind::internal_batch_length, "batch_sizes", {b}),
                         ir::ForKind::serial,
                         ir::LetStmt::make(node, ir::call(ir::UfKind::internal_batch_node, "internal_batches", {b, n}),
                                           loop(i, H, body(n, node, i), kind)));
  }
  ir::Stmt write(const ir::Buffer& t) const {
    return nest([&](auto& n, auto&, auto& i) { return store(t, {n, i}, load(w, {i})); });
  }
  ir::Stmt read(const ir::Buffer& t) const {
    return nest([&](auto& n, auto& node, auto& i) { return store(h, {node, i}, load(t, {n, i})); });
  }
  ir::Stmt of(std::vector<ir::Stmt> stmts) const {
    return ir::For::make(b, dims::all_batches, ir::call(ir::UfKind::num_internal_batches, "num_internal_batches"),
                         ir::ForKind::serial, block(std::move(stmts)));
  }
};

bool shares(const ir::Stmt& body, int workers) {
  const ir::Stmt after = pass::share_storage(body, workers > 1);
  bool found = false;
  ir::visit_with(after, [&](const ir::Load& load) { found |= bool(load.buffer->stored_in); });
  CHECK(found != after.same_as(body));
  return found;
}

const ir::Stmt barrier = ir::Barrier::make();

}  // namespace

TEST_CASE("what a layer has ahead lies where the layer before had its own", "[pass][golden]") {
  const auto program = models::gru<Step, float, 2>(cortex::field<&Step::id>, cortex::optional_child<&Step::previous>,
                                                   {.input = 4, .hidden = 4})
                           .program;
  check_golden(
      "pass/share_storage/gru_of_two_layers.ilir",
      text_after("share_storage", program.graph(), Schedule::standard().tabulate_nothing().exact_activations()));
}

TEST_CASE("temporaries that are live together stay apart", "[pass]") {
  const Levels p;
  CHECK_FALSE(shares(p.of({p.write(p.x), p.write(p.y), p.read(p.x), p.read(p.y)}), 1));
}

TEST_CASE("what a variable is computed of lives until then", "[pass]") {
  const Levels p;
  const ir::Buffer s = buffer("s", {}), t = buffer("t", {p.H});
  const ir::Type real{DType::f32, 1};
  const ir::Expr first = ir::Var::make("first", real), second = ir::Var::make("second", real);
  const ir::Expr i = var("i"), j = var("j");
  const ir::Stmt result = loop(j, p.H, store(p.h, {ir::imm(0), j}, load(t, {j}) * second));
  const ir::Stmt rest =
      block({loop(i, p.H, store(t, {i}, load(p.w, {i}) * first)), ir::LetStmt::make(second, load(s, {}), result)});
  CHECK_FALSE(shares(block({store(s, {}, number(2)), ir::LetStmt::make(first, load(s, {}), rest)}), 1));
}

TEST_CASE("what a row's variable is computed of lives until then, where the row's node has no name", "[pass]") {
  const Levels p;
  const Dim none = dims::batch;
  const auto over_rows = [&](const ir::Stmt& body, const ir::Expr& n) {
    return ir::For::make(n, none, ir::call(ir::UfKind::num_nodes, "num_nodes"), ir::ForKind::serial, body);
  };
  const ir::Buffer s = buffer("s", {dims::batch}), t = buffer("t", {dims::batch});
  const ir::Expr a = var("a"), b = var("b"), c = var("c"), d = var("d");
  const ir::Expr value = ir::Var::make("value", ir::Type{DType::f32, 1});
  const ir::Stmt last = ir::LetStmt::make(value, load(s, {c}), store(p.h, {c, ir::imm(0)}, value));
  CHECK_FALSE(shares(block({over_rows(store(s, {a}, number(2)), a), over_rows(store(t, {b}, number(3)), b),
                            over_rows(last, c), over_rows(store(p.h, {d, ir::imm(1)}, load(t, {d})), d)}),
                     1));
}

TEST_CASE("one worker's temporaries share as soon as one is read for the last time", "[pass]") {
  const Levels p;
  CHECK(shares(p.of({p.write(p.x), p.read(p.x), p.write(p.y), p.read(p.y)}), 1));
}

TEST_CASE("several workers' temporaries share only with barriers between them, also around the loop", "[pass]") {
  const Levels p;
  const auto run = [&](bool inside, bool at_end, bool at_begin) {
    return shares(p.of({at_begin ? barrier : ir::Stmt(), p.write(p.x), p.read(p.x), inside ? barrier : ir::Stmt(),
                        p.write(p.y), p.read(p.y), at_end ? barrier : ir::Stmt()}),
                  2);
  };
  CHECK_FALSE(run(false, false, false));
  CHECK_FALSE(run(true, false, false));
  CHECK_FALSE(run(false, true, false));
  CHECK(run(true, true, false));
  CHECK(run(true, false, true));
}

TEST_CASE("a barrier at the end of a loop parts it from what follows", "[pass]") {
  const Levels p, q;
  const auto after = [&](bool with_barrier) {
    return block(
        {p.of({p.write(p.x), p.read(p.x), with_barrier ? barrier : ir::Stmt()}), q.of({q.write(p.y), q.read(p.y)})});
  };
  CHECK_FALSE(shares(after(false), 2));
  CHECK(shares(after(true), 2));
}

TEST_CASE("workers that keep to their own slices need no barrier to share", "[pass]") {
  Levels p;
  p.kind = ir::ForKind::parallel;
  CHECK(shares(p.of({p.write(p.x), p.read(p.x), p.write(p.y), p.read(p.y)}), 2));
}

TEST_CASE("rows of different kinds do not share", "[pass]") {
  Levels p;
  p.y = buffer("y", {dims::batch_edge, p.H});
  CHECK_FALSE(shares(p.of({p.write(p.x), p.read(p.x), p.write(p.y), p.read(p.y)}), 1));
}

TEST_CASE("what a child's row is read of lives as long as the loop", "[pass]") {
  Levels p;
  p.x = buffer("x", {dims::node, p.H});
  p.y = buffer("y", {dims::node, p.H});
  const auto at_node = [&](const ir::Buffer& t) {
    return p.nest([&](auto&, auto& node, auto& i) { return store(t, {node, i}, load(p.w, {i})); });
  };
  const auto of_child = [&](const ir::Buffer& t, bool own) {
    return p.nest([&](auto&, auto& node, auto& i) {
      const ir::Expr at = own ? ir::Expr(node) : ir::call(ir::UfKind::child, "left", {node}, 0);
      return store(p.h, {node, i}, load(t, {at, i}));
    });
  };
  CHECK_FALSE(shares(p.of({at_node(p.x), of_child(p.x, false), at_node(p.y), of_child(p.y, true)}), 1));
  CHECK(shares(p.of({at_node(p.x), of_child(p.x, true), at_node(p.y), of_child(p.y, true)}), 1));
}

TEST_CASE("the larger row decides, and flattened programs know one buffer", "[pass]") {
  Levels p;
  const Dim wide("wide", 40);
  p.y = buffer("y", {dims::batch, wide, p.H});
  const auto wide_nest = [&](bool write) {
    return p.nest([&](auto& n, auto& node, auto& i) {
      const ir::Expr k = ir::imm(39);
      return write ? store(p.y, {n, k, i}, load(p.w, {i})) : store(p.h, {node, i}, load(p.y, {n, k, i}));
    });
  };
  const ir::Stmt body =
      pass::share_storage(p.of({p.write(p.x), p.read(p.x), wide_nest(true), wide_nest(false)}), false);
  ir::Program program{"p", {p.h, p.w}, body, ir::Level::scheduled};
  PointerSet seen;
  ir::visit_with(body, [&](const ir::Store& s) {
    if (s.buffer->role == ir::Role::temp && seen.insert(s.buffer.id())) program.buffers.push_back(s.buffer);
  });
  REQUIRE(program.buffers.size() == 4);
  CHECK(program.buffers[2]->stored_in == program.buffers[3]);
  const ir::Program flat = pass::flatten_storage(program);
  REQUIRE(flat.buffers.size() == 3);
  CHECK(flat.buffers[2]->layout.row_size == 40 * 4);
}
