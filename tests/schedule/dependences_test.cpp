// What loop primitives refuse because it would change results, and what they make of the cases that are easily got
// wrong, on programs made by hand: each is the least that has the dependence or the rest in question.
#include <catch2/catch.hpp>
#include <set>

#include "cortex/ir/races.hpp"
#include "cortex/schedule/layouts.hpp"
#include "cortex/schedule/place_temporaries.hpp"
#include "cortex/schedule/restructure.hpp"
#include "cortex/schedule/rfactor.hpp"
#include "cortex/schedule/share_iterations.hpp"
#include "support/handmade.hpp"

using namespace cortex;
using namespace cortex::test;
using namespace cortex::schedule;
using Catch::Matchers::Contains;

namespace {

const Dim H("hidden", 8), half("half", 4);
const ir::Expr i = var("i"), j = var("j"), k = var("k");
const ir::Buffer x = buffer("x", {H}, ir::Role::weight), M = buffer("M", {H, H}, ir::Role::weight);
const ir::Buffer s = buffer("s", {H}), t = buffer("t", {H}), y = buffer("y", {H});
const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state), z = buffer("z", {dims::node, H});

ir::Expr one_more(const ir::Expr& e) { return e + number(1); }
ir::Expr turned(const ir::Expr& e) { return ir::imm(H.extent() - 1) - e; }

/// `for n: node = nodes(n): body(node)`, where nodes come after their children.
template <class Body>
ir::Stmt node_by_node(Body body) {
  const ir::Expr n = var("n"), node = var("node");
  return ir::For::make(n, dims::sequence, ir::call(ir::UfKind::num_nodes, "num_nodes"), ir::ForKind::serial,
                       ir::LetStmt::make(node, ir::call(ir::UfKind::sequence_node, "nodes", {n}), body(node)));
}
ir::Expr child_of(const ir::Expr& node) { return ir::call(ir::UfKind::child, "left", {node}, 0); }

/// `local a: for k: a = a op M[i,k] + 0; y[i] = a` in a loop over i, of `extent` iterations of k.
ir::Stmt reduction(ir::ReduceOp op, std::int64_t extent) {
  const ir::Buffer a = local("a");
  const ir::Stmt step =
      ir::For::make(k, H, ir::imm(extent), ir::ForKind::serial,
                    store(a, {}, ir::combine(op, load(a, {}), function(ir::UnaryOp::abs, load(M, {i, k})))));
  return loop(i, H,
              ir::Alloc::make(a, block({store(a, {}, number(ir::identity(op))), step, store(y, {i}, load(a, {}))})));
}

/// The place of element [i,j] of `M` in its layout.
std::int64_t place_of(const ir::Layout& layout, std::int64_t at_i, std::int64_t at_j) {
  std::int64_t place = 0;
  for (const ir::Axis& axis : layout.axes) {
    const std::int64_t part = (axis.source ? at_j : at_i) / axis.divisor;
    place += (axis.modulus ? part % axis.modulus : part) * axis.stride;
  }
  return place;
}

/// `for b: for n: node = number(b, n): body(node)`.
template <class Body>
ir::Stmt level_by_level(const char* name, bool down, Body body) {
  const ir::Expr b = var(name), n = var(std::string("n_of_") + name), node = var(std::string("node_of_") + name);
  const ir::Expr batches = ir::call(ir::UfKind::num_batches, "num_batches"), batch = down ? batches - 1 - b : b;
  return ir::For::make(
      b, dims::all_batches, batches, ir::ForKind::serial,
      ir::For::make(n, dims::batch, ir::call(ir::UfKind::batch_length, "length", {batch}), ir::ForKind::serial,
                    ir::LetStmt::make(node, ir::call(ir::UfKind::batch_node, "batch", {batch, n}), body(node))));
}

}  // namespace

TEST_CASE("loops over levels are one only where no level needs states of the other loop's", "[schedule]") {
  const ir::Buffer g = buffer("g", {dims::node, H}, ir::Role::state);
  const auto writing = [](const ir::Buffer& to, const ir::Expr& index, auto value) {
    return [=](const ir::Expr& node) { return loop(index, H, store(to, {node, index}, value(node, index))); };
  };
  const auto one = [](auto&, auto&) { return number(1); };
  const auto of_node = [](auto& node, auto& at) { return load(h, {node, at}); };
  const auto of_child = [](auto& node, auto& at) { return load(h, {child_of(node), at}); };
  const auto with = [&](bool down, auto value) {
    return block({level_by_level("b", false, writing(h, i, one)), level_by_level("c", down, writing(g, j, value))});
  };
  CHECK_NOTHROW(merge_loops(with(true, one), "b", "c"));
  for (const bool down : {false, true})
    CHECK_THROWS_WITH(merge_loops(with(down, of_child), "b", "c"),
                      Contains("an iteration of 'c' needs others of 'b', through 'h'"));
  CHECK_THROWS_WITH(merge_loops(with(true, of_node), "b", "c"), Contains("needs others of 'b', through 'h'"));
  const auto over_all = [&](const char* name, auto body) {
    const ir::Expr n = var(name), node = var(std::string("node_") + name);
    return ir::For::make(n, dims::batch, ir::call(ir::UfKind::num_nodes, "num_nodes"), ir::ForKind::serial,
                         ir::LetStmt::make(node, ir::call(ir::UfKind::all_node, "all", {n}), body(node)));
  };
  const auto outputs = [&](auto value) {
    return block({over_all("n", writing(h, i, one)), over_all("m", writing(g, j, value))});
  };
  CHECK_NOTHROW(merge_loops(outputs(of_node), "n", "m"));
  CHECK_THROWS_WITH(merge_loops(outputs(of_child), "n", "m"), Contains("needs others of 'n', through 'h'"));
}

TEST_CASE("loops that both carry a dependence keep their order", "[schedule][loops][refusal]") {
  const ir::Stmt sums = loop(i, half, loop(j, half, store(y, {i + j}, load(M, {i, j}))));
  CHECK_THROWS_WITH(reorder_loops(sums, {"j", "i"}), Contains("'i' and 'j' depend on each other through 'y'"));
  const ir::Stmt apart = loop(i, half, loop(j, half, store(y, {i}, load(M, {i, j}))));
  CHECK_NOTHROW(reorder_loops(apart, {"j", "i"}));
}

TEST_CASE("iterations that depend on each other do not run side by side, in lanes or on several workers",
          "[schedule][loops][refusal]") {
  const ir::Stmt chain = loop(i, half, block({store(y, {i + 1}, one_more(load(y, {i}))), store(t, {i}, number(0))}));
  const char* reason = "iterations of 'i' depend on each other through 'y'";
  CHECK_THROWS_WITH(jam_loop(chain, "i"), Contains(reason));
  CHECK_THROWS_WITH(vectorize_loop(chain, "i"), Contains(reason));
  CHECK_THROWS_WITH(share_loop(chain, "i"), Contains(reason));
}

TEST_CASE("iterations over pieces are independent if the pieces do not overlap", "[schedule][loops][refusal]") {
  const auto pieces = [](std::int64_t of) {
    return loop(i, half, ir::For::make(j, H, ir::imm(of), ir::ForKind::serial, store(y, {i * 2 + j}, number(0))));
  };
  CHECK_NOTHROW(share_loop(pieces(2), "i"));
  CHECK_THROWS_WITH(share_loop(pieces(3), "i"), Contains("depend on each other through 'y'"));
}

TEST_CASE("iterations over what a quotient and its remainder number are independent", "[schedule][loops][refusal]") {
  const auto at = [](std::int64_t divisor, std::int64_t modulus) {
    return loop(i, half, store(z, {i / divisor, i % modulus}, load(M, {i, i})));
  };
  CHECK_NOTHROW(share_loop(at(2, 2), "i"));
  CHECK_THROWS_WITH(share_loop(at(2, 3), "i"), Contains("depend on each other through 'z'"));
  CHECK_THROWS_WITH(share_loop(loop(i, half, store(z, {i / 2, j % 2}, number(0))), "i"), Contains("through 'z'"));
  CHECK_THROWS_WITH(share_loop(loop(i, half, store(z, {i / 2, (i / 4) % 2}, number(0))), "i"), Contains("through 'z'"));
  const ir::Stmt nodes = for_nodes(i, loop(j, H, store(z, {i, j}, number(0))));
  CHECK_NOTHROW(share_loop(fuse_loops(nodes, "n_idx", "j"), "n_idx.j"));
}

TEST_CASE("a loop that carries the recursion is neither shared nor taken apart", "[schedule][loops][refusal]") {
  const ir::Stmt along = node_by_node([](const ir::Expr& node) {
    return block({loop(i, H, store(z, {node, i}, load(h, {child_of(node), i}))),
                  loop(j, H, store(h, {node, j}, load(z, {node, j})))});
  });
  CHECK_THROWS_WITH(share_loop(along, "n"), Contains("depend on each other through 'h'"));
  CHECK_THROWS_WITH(distribute_loop(along, "n"), Contains("needs an earlier one whole, through 'h'"));
  CHECK_NOTHROW(share_loop(along, "i"));
}

TEST_CASE("a vector's lanes have the same number of iterations inside", "[schedule][loops][refusal]") {
  const ir::Stmt triangle =
      loop(i, half, ir::For::make(j, H, i, ir::ForKind::serial, store(z, {i, j}, load(M, {i, j}))));
  CHECK_THROWS_WITH(vectorize_loop(triangle, "i"), Contains("a loop's extent inside loop 'i' differs by iteration"));
}

TEST_CASE("loops are not merged over what stands between them and needs the first", "[schedule][loops][refusal]") {
  const auto program = [](const ir::Buffer& between) {
    return block({loop(i, H, store(s, {i}, load(x, {i}))), loop(j, H, store(t, {j}, load(between, {turned(j)}))),
                  loop(k, H, store(y, {k}, load(t, {k})))});
  };
  CHECK_THROWS_WITH(merge_loops(program(s), "i", "k"), Contains("is needed by the second and needs the first"));
  CHECK_THAT(ir::print(merge_loops(program(x), "i", "k")), Contains("t[j] = x[7 - j]\nfor i = 0:8:  # hidden\n"));
}

TEST_CASE("a local buffer that two statements share gets an element for each iteration", "[schedule][loops]") {
  const ir::Buffer a = local("a");
  const ir::Stmt two =
      loop(i, H, ir::Alloc::make(a, block({store(a, {}, load(x, {i})), store(y, {i}, one_more(load(a, {})))})));
  const std::string text = ir::print(distribute_loop(two, "i"));
  CHECK_THAT(text, Contains("local a[i=8]") && Contains("a[i] = x[i]") && Contains("y[i.2] = a[i.2] + 1.0"));
}

TEST_CASE("partial reductions start with what their operation leaves alone", "[schedule][loops]") {
  const auto cleared = [](ir::ReduceOp op) { return ir::print(rfactor_loop(reduction(op, 8), "k", 4)); };
  CHECK_THAT(cleared(ir::ReduceOp::sum), Contains("a.p[k.p] = 0.0"));
  CHECK_THAT(cleared(ir::ReduceOp::prod), Contains("a.p[k.p] = 1.0"));
  CHECK_THAT(cleared(ir::ReduceOp::max), Contains("a.p[k.p] = -inf"));
}

TEST_CASE("partial reductions leave the iterations that fill no round to a rest", "[schedule][loops]") {
  const std::string text = ir::print(rfactor_loop(reduction(ir::ReduceOp::sum, 7), "k", 4));
  CHECK_THAT(text, Contains("for k.o = 0:1:") && Contains("for k.r = 0:3:") && Contains("M[i,4 + k.r]"));
}

TEST_CASE("tiles are loops over tiles with the loops inside a tile innermost", "[schedule][loops]") {
  const ir::Stmt whole = loop(i, H, loop(j, H, store(z, {i, j}, load(M, {i, j}))));
  std::vector<std::string> order;
  ir::visit_with(tile_loops(whole, "i", "j", 2, 4), [&](const ir::For& each) { order.push_back(name_of(each)); });
  CHECK(order == std::vector<std::string>{"i.o", "j.o", "i.i", "j.i"});
}

TEST_CASE("a temporary is not computed anew of what has changed meanwhile", "[schedule][loops][refusal]") {
  const auto program = [](const ir::Buffer& overwritten) {
    return block({loop(i, H, store(t, {i}, one_more(load(s, {i})))), loop(j, H, store(overwritten, {j}, number(0))),
                  loop(k, H, store(y, {k}, load(t, {k})))});
  };
  CHECK_THROWS_WITH(compute_inline(program(s), "t"), Contains("'s', which 't' is computed of, changes before its use"));
  CHECK_THROWS_WITH(compute_at(program(s), "t", "k"),
                    Contains("'s', which 't' is computed of, changes before its use"));
  CHECK_THAT(ir::print(compute_inline(program(buffer("u", {H})), "t")), Contains("y[k] = s[k] + 1.0"));
}

TEST_CASE("a temporary that is read elsewhere too is not moved into one loop", "[schedule][loops][refusal]") {
  const ir::Stmt twice = block({loop(i, H, store(t, {i}, load(x, {i}))), loop(j, H, store(y, {j}, load(t, {j}))),
                                loop(k, H, store(s, {k}, load(t, {k})))});
  CHECK_THROWS_WITH(compute_at(twice, "t", "k"), Contains("'t' is also read outside of loop 'k'"));
}

TEST_CASE("what a loop writes is not copied at its beginning", "[schedule][loops][refusal]") {
  const ir::Stmt own = loop(i, H, block({store(t, {i}, load(x, {i})), store(y, {i}, load(t, {i}))}));
  CHECK_THROWS_WITH(cache_read(own, "t", "i"), Contains("'t' is written in loop 'i'"));
}

TEST_CASE("each of several places that a loop reads has its entry of the copy", "[schedule][loops]") {
  const ir::Stmt three =
      loop(i, H, loop(j, H, store(y, {j}, load(M, {i, j}) + load(M, {ir::imm(0), j}) + load(M, {ir::imm(5), j}))));
  const std::string text = ir::print(cache_read(three, "M", "i"));
  CHECK_THAT(text, Contains("M_cache[0,hidden.c] = M[i,hidden.c]") &&
                       Contains("M_cache[1,hidden.c.2] = M[0,hidden.c.2]") &&
                       Contains("M_cache[2,hidden.c.3] = M[5,hidden.c.3]") &&
                       Contains("y[j] = M_cache[0,j] + M_cache[1,j] + M_cache[2,j]"));
}

TEST_CASE("a tensor of which a loop computes a part is not stored whole behind it", "[schedule][loops][refusal]") {
  const ir::Stmt parts =
      loop(i, half, ir::For::make(j, H, ir::imm(2), ir::ForKind::serial, store(y, {i * 2 + j}, load(x, {i * 2 + j}))));
  CHECK_THROWS_WITH(cache_write(parts, "y", "i"), Contains("dimension 'hidden' of 'y' is not stored whole"));
}

TEST_CASE("however axes are split, fused, padded and reordered, each element has a place of its own",
          "[schedule][loops]") {
  const Dim rows("rows", 12), columns("columns", 10);
  const ir::Buffer W = buffer("W", {rows, columns}, ir::Role::weight);
  ir::Stmt body = loop(i, rows, loop(j, columns, store(z, {i, j}, load(W, {i, j}))));
  const auto places = [&] {
    const ir::Layout layout = buffer_named(body, "W")->layout;
    std::set<std::int64_t> taken;
    for (std::int64_t a = 0; a < rows.extent(); ++a)
      for (std::int64_t b = 0; b < columns.extent(); ++b) {
        const std::int64_t place = place_of(layout, a, b);
        CHECK((place >= 0 && place < layout.fixed_size));
        taken.insert(place);
      }
    return taken.size();
  };
  body = layout_split(body, "W", 0, 4);  // rows / 4, rows % 4, columns
  CHECK(places() == 120);
  body = layout_split(body, "W", 0, 2);  // rows / 8, rows / 4 % 2, rows % 4, columns
  CHECK(places() == 120);
  body = layout_split(body, "W", 2, 2);  // rows / 8, rows / 4 % 2, rows / 2 % 2, rows % 2, columns
  CHECK(places() == 120);
  body = layout_fuse(body, "W", 2);  // rows / 8, rows / 4 % 2, rows % 4, columns
  CHECK(places() == 120);
  body = layout_pad(body, "W", 3, 4);
  CHECK(places() == 120);
  CHECK(buffer_named(body, "W")->layout.fixed_size == 2 * 2 * 4 * 12);
  body = layout_reorder(body, "W", {3, 1, 0, 2});
  CHECK(places() == 120);
}

TEST_CASE("of a loop that workers share, each has a part, and all of them every iteration once", "[schedule][loops]") {
  for (const std::int64_t extent : {1, 7, 16, 18}) {
    const Dim D("d", extent);
    const ir::Buffer out = buffer("out", {D}, ir::Role::state);
    const ir::Stmt shared = share_iterations(loop(i, D, store(out, {i}, number(1)), ir::ForKind::parallel), 4);
    const ir::Program program{"shared", {out}, shared, ir::Level::scheduled};
    for (int workers = 1; workers <= 5; ++workers) {
      INFO(extent << " iterations, " << workers << " workers");
      ir::Storage storage;
      const auto race = ir::find_race(program, {}, storage, workers);
      CHECK((race ? ir::describe(*race, program) : "") == "");
      CHECK(storage[out] == std::vector<double>(std::size_t(extent), 1));
    }
  }
}
