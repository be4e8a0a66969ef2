// The passes that bring a program down to the machine: barriers, shared loads, arrays in place of functions, vectors,
// offsets.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/odd_models.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Schedule standard = Schedule::standard().tabulate_nothing().exact_activations();
const Schedule shared = standard.workers(2);
const Target small = machine(16, 8);  // tiles of at most two rows: short goldens

struct Small {
  Dim H{"hidden", 4};
  ir::Expr i = var("i"), j = var("j"), node = var("node");
  ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state), w = buffer("w", {H}, ir::Role::weight),
             W = buffer("W", {H, H}, ir::Role::weight);
  ir::Buffer a = buffer("a", {dims::node, H}), b = buffer("b", {dims::node, H});
};

/// The barriers of a program: outside of loops, in loops that carry the dependence, and deeper.
struct Barriers {
  int outside = 0, carried = 0, deeper = 0;
  friend bool operator==(const Barriers&, const Barriers&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Barriers& b) {
    return out << b.outside << " outside, " << b.carried << " carried, " << b.deeper << " deeper";
  }
};

void count_barriers(const ir::Stmt& s, bool carried, bool deeper, Barriers& found) {
  if (s.as<ir::Barrier>())
    ++(deeper ? found.deeper : carried ? found.carried : found.outside);
  else if (const auto* loop = s.as<ir::For>()) {
    const bool carries = loop->dim == dims::all_batches || loop->dim == dims::sequence;
    count_barriers(loop->body, carried || carries, deeper || !carries, found);
  } else if (const auto* block = s.as<ir::Block>()) {
    for (const ir::Stmt& part : block->stmts) count_barriers(part, carried, deeper, found);
  } else if (const auto* let = s.as<ir::LetStmt>()) {
    count_barriers(let->body, carried, deeper, found);
  } else {  // nothing else has barriers in it
    ir::visit_with(s, [&](const ir::Barrier&) { ++found.deeper; });
  }
}

Barriers barriers_of(const ir::Stmt& body) {
  Barriers found;
  count_barriers(body, false, false, found);
  return found;
}

/// Without barrier the pass would not be among those that changed the program: what is there at the end counts.
Barriers barriers_of(const ra::Graph& graph, const Schedule& schedule) {
  return barriers_of(passes_of(graph, schedule, machine(16)).back().program.body);
}

ir::Stmt row_of_a(const Small& p, const ir::Expr& value, ir::ForKind kind) {
  return for_nodes(p.node, loop(p.i, p.H, store(p.a, {p.node, p.i}, value), kind));
}

}  // namespace

// ---- insert_barriers ----

TEST_CASE("TreeGRU's two contractions are apart by a barrier, and so are its batches", "[pass][golden]") {
  check_golden("pass/insert_barriers/tree_gru.ilir", text_after("insert_barriers", tree_gru(8).graph(), shared));
}

TEST_CASE("one contraction a level takes one barrier a batch, and one behind what is computed ahead",
          "[pass][golden]") {
  check_golden("pass/insert_barriers/dependency_rnn.ilir",
               text_after("insert_barriers", dependency_rnn(8).graph(), shared));
}

TEST_CASE("unrolled, one barrier stands behind two levels, whose nodes are one worker's", "[pass][golden]") {
  check_golden("pass/insert_barriers/tree_gru_unrolled.ilir",
               text_after("insert_barriers", tree_gru(4).graph(), shared.unroll("tree_gru", 2)));
}

TEST_CASE("TreeLSTM takes one barrier a batch", "[pass]") {
  CHECK(barriers_of(tree_lstm(16).graph(), shared) == Barriers{1, 1, 0});
}

TEST_CASE("TreeGRU takes two barriers a batch", "[pass]") {
  CHECK(barriers_of(tree_gru(16).graph(), shared) == Barriers{1, 2, 0});
}

TEST_CASE("unrolled, TreeLSTM and TreeGRU take one barrier for several levels, however many contractions each has",
          "[pass]") {
  for (const int depth : {2, 3}) {
    CHECK(barriers_of(tree_lstm(16).graph(), shared.unroll("tree_lstm", depth)) == Barriers{1, 1, 0});
    CHECK(barriers_of(tree_gru(16).graph(), shared.unroll("tree_gru", depth)) == Barriers{1, 1, 0});
  }
}

TEST_CASE("a model without branch takes one barrier a batch, and one behind what is computed ahead", "[pass]") {
  CHECK(barriers_of(dependency_rnn(16).graph(), shared).carried == 1);
  CHECK(barriers_of(dependency_rnn(16).graph(), shared).deeper == 0);
}

TEST_CASE("elementwise work takes no barrier: each worker reads its own slice of the children's states", "[pass]") {
  CHECK(barriers_of(tree_rnn(16).graph(), shared) == Barriers{0, 0, 0});
}

TEST_CASE("node by node, a barrier stands between nodes and nowhere deeper", "[pass]") {
  const Schedule by_node = Schedule{}.exact_activations().workers(2);
  CHECK(barriers_of(tree_lstm(16).graph(), by_node).carried >= 1);
  CHECK(barriers_of(tree_lstm(16).graph(), by_node).deeper == 0);
}

TEST_CASE("one worker meets no barrier", "[pass]") {
  for (const auto& graph : {tree_lstm(8).graph(), tree_gru(8).graph()})
    CHECK(barriers_of(graph, standard) == Barriers{0, 0, 0});
}

TEST_CASE("a program in which nobody reads what others write stays as it is", "[pass]") {
  const Small p;
  const ir::Stmt s = row_of_a(p, load(p.w, {p.i}), ir::ForKind::parallel);
  CHECK(pass::insert_barriers(s).same_as(s));
  const ir::Stmt carried = ir::For::make(var("b_idx"), dims::all_batches,
                                         ir::call(ir::UfKind::num_batches, "num_batches"), ir::ForKind::serial, s);
  CHECK(pass::insert_barriers(carried).same_as(carried));
  const ir::Expr node = var("node"), i = var("i");
  const ir::Stmt two =
      block({s, for_nodes(node, loop(i, p.H, store(p.b, {node, i}, load(p.w, {i})), ir::ForKind::parallel))});
  CHECK(pass::insert_barriers(two).same_as(two));
}

TEST_CASE("reading another's slice takes a barrier, one's own none", "[pass]") {
  const Small p;
  const ir::Expr node = var("node"), i = var("i");
  const auto after = [&](const ir::Expr& index) {
    const ir::Stmt read =
        for_nodes(node, loop(i, p.H, store(p.h, {node, i}, load(p.a, {node, index})), ir::ForKind::parallel));
    return barriers_of(pass::insert_barriers(block({row_of_a(p, load(p.w, {p.i}), ir::ForKind::parallel), read})))
        .outside;
  };
  CHECK(after(i) == 0);
  CHECK(after(ir::imm(3) - i) == 1);
}

TEST_CASE("overwriting what others may still read takes a barrier", "[pass]") {
  const Small p;
  const ir::Stmt write = row_of_a(p, load(p.w, {p.i}), ir::ForKind::parallel);
  const ir::Expr node = var("node"), i = var("i");
  const ir::Stmt read =
      for_nodes(node, loop(i, p.H, store(p.h, {node, i}, load(p.a, {node, ir::imm(3) - i})), ir::ForKind::parallel));
  CHECK(barriers_of(pass::insert_barriers(block({read, write}))).outside == 1);
}

TEST_CASE("a loop whose iterations take turns with a temporary is apart from others that use it", "[pass]") {
  const Small p;
  const ir::Buffer z = buffer("z", {dims::batch, p.H});
  // Each node's z by all workers, read whole by all; `carried`: what the next node reads too, so that no turns help.
  const auto nodes = [&](bool carried) {
    const ir::Expr n = var("n_idx"), node = var("node"), i = var("i"), j = var("j"), none = ir::imm(0);
    const ir::Expr first = carried ? load(p.a, {none, ir::imm(3) - i}) : load(p.w, {i});
    const auto write = loop(i, p.H, store(z, {none, i}, first), ir::ForKind::parallel);
    const auto read =
        loop(j, p.H, store(carried ? p.a : p.h, {node, j}, load(z, {none, ir::imm(3) - j})), ir::ForKind::parallel);
    return ir::For::make(
        n, dims::sequence, ir::call(ir::UfKind::num_nodes, "num_nodes"), ir::ForKind::serial,
        ir::LetStmt::make(node, ir::call(ir::UfKind::all_node, "all_nodes", {n}), block({write, read})));
  };
  const auto of_batches = [&](bool carried) {
    return pass::insert_barriers(ir::For::make(var("b_idx"), dims::all_batches,
                                               ir::call(ir::UfKind::num_batches, "num_batches"), ir::ForKind::serial,
                                               block({nodes(false), nodes(carried)})));
  };
  const ir::Stmt turns = of_batches(false), one = of_batches(true);
  CHECK(barriers_of(turns) == Barriers{0, 4, 0});
  CHECK(barriers_of(one) == Barriers{0, 4, 0});
  CHECK(count(ir::print(turns), "z[0,n_idx % 2") == 2);
  CHECK(count(ir::print(turns), "z[0,n_idx.2 % 2") == 2);
  CHECK(count(ir::print(one), "z[0,n_idx % 2") == 2);
  CHECK(count(ir::print(one), "z[0,0,") == 2);
}

TEST_CASE("what is no nest is refused", "[pass][refusal]") {
  const Small p;
  const ir::Stmt alone =
      ir::If::make(ir::IntImm::make(1, DType::boolean), block({store(p.w, {p.i}, number(0)), ir::Barrier::make()}));
  CHECK_THROWS_WITH(pass::insert_barriers(alone), Catch::Contains("a statement outside of any nest"));
}

// ---- share_loads ----

TEST_CASE("a tile reads each state and each weight once", "[pass][golden]") {
  check_golden("pass/share_loads/dependency_rnn.ilir",
               text_after("share_loads", dependency_rnn(6).graph(), standard, small));
}

TEST_CASE("loads that differ are not shared", "[pass]") {
  const Small p;
  const ir::Stmt s = loop(p.i, p.H,
                          block({store(p.a, {ir::imm(0), p.i}, load(p.W, {ir::imm(0), p.i})),
                                 store(p.a, {ir::imm(1), p.i}, load(p.W, {ir::imm(1), p.i}))}));
  CHECK(pass::share_loads(s).same_as(s));
}

TEST_CASE("a load of what the loop stores to is not shared", "[pass]") {
  const Small p;
  const ir::Expr once = load(p.a, {ir::imm(0), ir::imm(0)});
  const ir::Stmt s = loop(p.i, p.H, block({store(p.a, {ir::imm(0), p.i}, once), store(p.b, {ir::imm(0), p.i}, once)}));
  CHECK(pass::share_loads(s).same_as(s));
}

TEST_CASE("a body that is not all stores is left alone, wherever the other statement stands", "[pass]") {
  const Small p;
  const ir::Expr twice = load(p.w, {p.i}) * load(p.w, {p.i});
  const ir::Stmt plain = store(p.a, {ir::imm(0), p.i}, twice),
                 nested = loop(p.j, p.H, store(p.b, {ir::imm(0), p.j}, twice));
  const ir::Stmt first = loop(p.i, p.H, block({nested, plain})), last = loop(p.i, p.H, block({plain, nested}));
  CHECK(pass::share_loads(first).same_as(first));
  CHECK(pass::share_loads(last).same_as(last));
}

// ---- resolve_structure ----

TEST_CASE("functions of the structure become arrays and arithmetic on numbers", "[pass][golden]") {
  check_golden("pass/resolve_structure/tree_rnn.ilir", text_after("resolve_structure", tree_rnn(4).graph(), standard));
  check_golden("pass/resolve_structure/third_child.ilir",
               text_after("resolve_structure", odd::indices(4), Schedule{}.exact_activations(), small));
}

TEST_CASE("without functions there is nothing to resolve", "[pass]") {
  const Small p;
  const ir::Stmt s = loop(p.i, p.H, store(p.b, {ir::imm(0), p.i}, load(p.w, {p.i})));
  CHECK(pass::resolve_structure(s, {}).same_as(s));
}

TEST_CASE("a position in one container is checked against another's count", "[pass]") {
  const Small p;
  const ir::Expr k = var("k");
  const auto resolved = [&](int container) {
    const ir::Expr kid = ir::call(ir::UfKind::kth_child, "kids", {p.node, k}, container);
    const ir::Expr count = ir::call(ir::UfKind::num_children, "num_children", {p.node}, 0);
    const ir::Stmt each = ir::For::make(k, dims::child, count, ir::ForKind::serial,
                                        store(p.a, {p.node, k}, load(p.h, {kid, ir::imm(0)})));
    return ir::print(pass::resolve_structure(for_nodes(p.node, each), {}));
  };
  CHECK(count(resolved(0), "select") == 0);
  CHECK(count(resolved(1), "select") == 2);
}

// ---- vectorize ----

TEST_CASE("a tile's lanes become vectors", "[pass][golden]") {
  check_golden("pass/vectorize/dependency_rnn.ilir",
               text_after("vectorize", dependency_rnn(6).graph(), standard, small));
}

TEST_CASE("without vectorized loops there is nothing to do", "[pass]") {
  const Small p;
  const ir::Stmt s = loop(p.i, p.H, store(p.b, {ir::imm(0), p.i}, load(p.w, {p.i})));
  CHECK(pass::vectorize(s).same_as(s));
}

TEST_CASE("lanes and what they begin at are one vector, in whichever order they are added", "[pass]") {
  const Small p;
  const ir::Stmt s = store(p.b, {ir::imm(0), p.i + p.j}, load(p.w, {p.j + p.i}));
  CHECK(ir::print(pass::vectorize(loop(p.j, p.H, loop(p.i, p.H, s, ir::ForKind::vectorized)))) ==
        "for j = 0:4:  # hidden\n  b[0,ramp(j,4)] = w[ramp(j,4)]\n");
}

TEST_CASE("what differs by lane where it must not is refused", "[pass][refusal]") {
  const Small p;
  const auto lanes = [&](const ir::Stmt& body) {
    return pass::vectorize(loop(p.i, p.H, body, ir::ForKind::vectorized));
  };
  const ir::Stmt plain = store(p.b, {ir::imm(0), p.i}, number(1));
  CHECK_THROWS_WITH(lanes(ir::For::make(p.j, p.H, p.i + 1, ir::ForKind::serial, plain)),
                    Catch::Contains("a loop's extent differs by lane"));
  CHECK_THROWS_WITH(lanes(ir::If::make(ir::binary(ir::BinaryOp::lt, p.i, ir::imm(2)), plain)),
                    Catch::Contains("a condition differs by lane"));
  CHECK_THROWS_WITH(lanes(store(p.b, {ir::imm(0), ir::imm(0)}, load(p.w, {p.i}))),
                    Catch::Contains("lanes that store to one element of 'b'"));
  CHECK_THROWS_WITH(lanes(store(p.b, {ir::call(ir::UfKind::all_node, "all_nodes", {p.i}), ir::imm(0)}, number(1))),
                    Catch::Contains("an argument of an uninterpreted function differs by lane"));
}

TEST_CASE("a vectorized loop of unknown extent or of one lane is refused", "[pass][refusal]") {
  const Small p;
  const ir::Stmt plain = store(p.b, {ir::imm(0), p.i}, number(1));
  const Dim one("one", 1);
  CHECK_THROWS_WITH(pass::vectorize(loop(p.i, one, plain, ir::ForKind::vectorized)),
                    Catch::Contains("a constant extent of at least 2"));
  CHECK_THROWS_WITH(pass::vectorize(ir::For::make(p.i, p.H, var("n"), ir::ForKind::vectorized, plain)),
                    Catch::Contains("a constant extent of at least 2"));
}

TEST_CASE("a value that differs by lane stays in its let", "[pass]") {
  const Small p;
  const ir::Expr x = ir::Var::make("x", {DType::f32, 1});
  const ir::Stmt body = ir::LetStmt::make(x, load(p.w, {p.i}), store(p.b, {ir::imm(0), p.i}, x * x));
  CHECK(ir::print(pass::vectorize(loop(p.i, p.H, body, ir::ForKind::vectorized))) ==
        "x = w[ramp(0,4)]\nb[0,ramp(0,4)] = x * x\n");
}

// ---- flatten_storage ----

TEST_CASE("every index list becomes one offset", "[pass][golden]") {
  check_golden("pass/flatten_storage/dependency_rnn.ilir",
               text_after("flatten_storage", dependency_rnn(6).graph(), standard, small));
  check_golden("pass/flatten_storage/matrix_state.ilir",
               text_after("flatten_storage", odd::matrix_state(4), Schedule{}.exact_activations()));
}

TEST_CASE("a vector lies in a panel if the panel has room for it", "[pass]") {
  ir::BufferInfo info{"W", DType::f32, {Dim("columns", 16)}, ir::Role::weight};
  info.layout = {{{0, 1, 4, 1}, {0, 4, 0, 8}}, 32, 0};  // panels of 4 columns, with room for 8
  const ir::Buffer W(std::move(info)), y = test::buffer("y", {Dim("columns", 16)}, ir::Role::state);
  const ir::Expr o = test::var("o");
  const auto is_one_vector = [&](int lanes) {
    const std::vector<ir::Expr> at{ir::Ramp::make(o * lanes, lanes)};
    const ir::Program flat = pass::flatten_storage(
        {"vectors", {y, W}, test::loop(o, Dim("o", 16 / lanes), test::store(y, at, test::load(W, at)))});
    bool ramp = false;
    ir::visit_with(flat.body, [&](const ir::Load& load) { ramp = load.indices[0].as<ir::Ramp>(); });
    return ramp;
  };
  CHECK(is_one_vector(4));
  CHECK(!is_one_vector(8));
}

TEST_CASE("offsets in a tensor have 64 bits where its rows, filled up to whole lines, need them", "[pass]") {
  const auto bits = [](std::int64_t rows) {
    const ir::Buffer W = buffer("W", {Dim("rows", rows), Dim("columns", 17)}, ir::Role::weight), y = buffer("y", {});
    const ir::Expr n = test::var("n");
    const ir::Stmt body = loop(n, Dim("rows", rows), store(y, {}, load(W, {n, ir::imm(1)})));
    const ir::Program flat = pass::flatten_storage({"handmade", {y, W}, body, ir::Level::scheduled});
    int size = 0;
    ir::visit_with(flat.body, [&](const ir::Load& l) { size = 8 * int(size_of(l.indices[0].dtype())); });
    return size;
  };
  CHECK(bits(50'000'000) == 32);
  CHECK(bits(100'000'000) == 64);
}

TEST_CASE("a tensor of no dimension has a layout", "[pass]") {
  const Small p;
  const ir::Buffer one = buffer("one", {});
  const ir::Program flat =
      pass::flatten_storage({"handmade", {one, p.w}, store(one, {}, load(p.w, {ir::imm(1)})), ir::Level::scheduled});
  CHECK_NOTHROW(ir::verify(flat, ir::Level::device));
  CHECK(flat.buffers[0]->layout.fixed_size == 1);
}

TEST_CASE("an extent that is known gets a size, an open one a row", "[pass]") {
  const Small p;
  const ir::Buffer open = buffer("open", {Dim("vocabulary"), p.H}, ir::Role::weight);
  const ir::Stmt body = block({store(p.a, {ir::imm(0), ir::imm(1)}, load(p.W, {ir::imm(2), ir::imm(3)})),
                               store(p.b, {ir::imm(0), ir::imm(1)}, load(open, {ir::imm(2), ir::imm(3)}))});
  const ir::Program flat = pass::flatten_storage({"handmade", {p.a, p.W, p.b, open}, body, ir::Level::scheduled});
  CHECK(flat.buffers[0]->layout.row_size == 16);  // rows of whole cache lines
  CHECK(flat.buffers[1]->layout.fixed_size == 64);
  CHECK(flat.buffers[3]->layout.row_size == 16);
}
