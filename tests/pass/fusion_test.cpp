// The passes that make few, large nests of many small ones, and temporaries no larger than need be.
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "cortex/cortex.hpp"
#include "cortex/loops.hpp"
#include "support/golden.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/odd_models.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Schedule batched = Schedule{}.dynamic_batch().exact_activations();
const Schedule standard = Schedule::standard().tabulate_nothing().exact_activations();

struct Small {
  Dim H{"hidden", 4};
  ir::Expr i = var("i"), j = var("j"), node = var("node");
  ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state), w = buffer("w", {H}, ir::Role::weight),
             W = buffer("W", {H, H}, ir::Role::weight);
  ir::Buffer a = buffer("a", {dims::node, H}), b = buffer("b", {dims::node, H});

  /// A nest that none of these passes can do anything for.
  ir::Stmt nest() const { return for_nodes(node, loop(i, H, store(h, {node, i}, load(w, {i})))); }
};

int count_of(const ir::Stmt& stmt, const std::string& part) { return count(ir::print(stmt), part); }

}  // namespace

// ---- whether to fuse ----

TEST_CASE("a schedule that fuses nothing leaves each operator its loops and its values in memory", "[pass]") {
  const auto stored = [](const Schedule& schedule, const char* last) {
    std::set<std::string> names, passes;
    for (const Snapshot& s : passes_of(tree_gru(8).graph(), schedule, machine(16))) {
      passes.insert(s.pass);
      if (s.pass != last) continue;
      ir::visit_with(s.program.body, [&](const ir::Store& store) { names.insert(store.buffer->name); });
    }
    CHECK(passes.count("fuse_nests") == (schedule.fuses ? 1 : 0));
    return names;
  };
  const std::set<std::string> fused = stored(standard, "forward_stores"),
                              apart = stored(standard.fuse_nothing(), "index_densely");
  for (const char* op : {"s", "r", "z", "candidate"}) {
    CAPTURE(op);
    CHECK(apart.count(op) == 1);
  }
  CHECK(fused.count("candidate") == 0);
}

// ---- inline_temporaries ----

TEST_CASE("gathers of children's states are inlined where they are read", "[pass][golden]") {
  check_golden("pass/inline_temporaries/tree_rnn.ilir",
               text_after("inline_temporaries", tree_rnn(8).graph(), standard));
}

TEST_CASE("without temporaries there is nothing to inline", "[pass]") {
  const ir::Stmt s = Small().nest();
  CHECK(pass::inline_temporaries(s).same_as(s));
}

TEST_CASE("a function is not inlined into a loop over a further dimension", "[pass]") {
  const Small p;
  const ir::Stmt first =
      for_nodes(p.node, loop(p.i, p.H, store(p.a, {p.node, p.i}, function(ir::UnaryOp::tanh, load(p.w, {p.i})))));
  const ir::Expr node = var("node"), i = var("i");
  const ir::Stmt second = for_nodes(node, loop(i, p.H,
                                               sum_over(
                                                   p.H,
                                                   [&](auto& r) {
                                                     return load(p.W, {i, r}) * load(p.a, {node, r});
                                                   },
                                                   [&](auto& sum) {
                                                     return store(p.h, {node, i}, sum);
                                                   })));
  const ir::Stmt s = block({first, second});
  CHECK(pass::inline_temporaries(s).same_as(s));
}

TEST_CASE("a copy of a function is not inlined so that the function is computed once per read", "[pass]") {
  const Small p;
  const auto at = [&](const ir::Buffer& b) { return load(b, {p.node, p.i}); };
  const ir::Stmt s =
      for_nodes(p.node, block({loop(p.i, p.H, store(p.a, {p.node, p.i}, function(ir::UnaryOp::tanh, load(p.w, {p.i})))),
                               loop(p.i, p.H, store(p.b, {p.node, p.i}, at(p.a))),
                               loop(p.i, p.H, store(p.h, {p.node, p.i}, at(p.b) * at(p.b)))}));
  CHECK(count_of(pass::remove_dead(pass::inline_temporaries(s)), "tanh(") == 1);
}

TEST_CASE("copies of copies whose index has its variable twice do not grow without end", "[pass]") {
  Dim H{"hidden", 64};
  Model<Word> m("spread", cortex::tree);
  auto Emb = m.input<float>("Emb", Dim{"vocabulary"}, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto x = m.compute("x", H, [&](auto n, auto i) { return h(left(n), i) + h(right(n), i); });
  for (int copy = 0; copy < 24; ++copy)
    x = m.compute("x" + std::to_string(copy), H,
                  [&, before = x](auto n, auto i) { return before(n, i / 2 + min(max(i - 32, 0), 31)); });
  const auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, x);
  CHECK(text_after("inline_temporaries", m.recursion_op(h, body).graph(), standard).size() < 100'000);
}

TEST_CASE("what is computed once for all leaves is not computed again at each leaf", "[pass]") {
  const std::string text = text_after("remove_dead", common_initial_state(8).graph(), standard);
  CHECK(text.find("tanh(") < text.find("leaf_batch(n_idx)"));
}

// ---- distribute_rows ----

TEST_CASE("each nest of a batch gets its own loop over nodes, and each side of a branch its own condition",
          "[pass][golden]") {
  check_golden("pass/distribute_rows/tree_rnn.ilir", text_after("distribute_rows", tree_rnn(8).graph(), batched));
}

TEST_CASE("a nest alone in its loop over nodes stays", "[pass]") {
  const ir::Stmt s = Small().nest();
  CHECK(pass::distribute_rows(s).same_as(s));
}

// ---- fuse_edges ----

TEST_CASE("TreeLSTM's forget gates run over the edges of a batch", "[pass][golden]") {
  check_golden("pass/fuse_edges/tree_lstm.ilir", text_after("fuse_edges", tree_lstm(8).graph(), standard));
}

TEST_CASE("without work per child there are no edges to fuse", "[pass]") {
  const ir::Stmt s = Small().nest();
  CHECK(pass::fuse_edges(s).same_as(s));
}

TEST_CASE("work per child that needs its parent stays a loop over children", "[pass]") {
  const Small p;
  const ir::Buffer e = buffer("e", {dims::edge, p.H});
  const ir::Expr k = var("k");
  const auto of_container = [&](int which) {
    return load(p.h, {ir::call(ir::UfKind::kth_child, "kids", {p.node, k}, which), p.i});
  };
  const auto nest = [&](const ir::Expr& value) {
    const ir::Stmt each = loop(p.i, p.H, store(e, {ir::call(ir::UfKind::edge, "edge", {p.node, k}, 0), p.i}, value));
    return for_nodes(p.node,
                     ir::For::make(k, dims::child, ir::call(ir::UfKind::num_children, "num_children", {p.node}, 0),
                                   ir::ForKind::serial, each));
  };
  const ir::Stmt alone = nest(of_container(0)), parent = nest(of_container(0) + load(p.a, {p.node, p.i})),
                 other = nest(of_container(1));
  const ir::Stmt position = nest(of_container(0) + ir::Cast::make(DType::f32, k));
  CHECK(count_of(pass::fuse_edges(alone), "d_batch_edge") == 1);
  CHECK(pass::fuse_edges(parent).same_as(parent));
  CHECK(pass::fuse_edges(other).same_as(other));
  CHECK(pass::fuse_edges(position).same_as(position));
}

// ---- fuse_nests ----

TEST_CASE("TreeGRU's gates share one pass over k, and its epilogue follows them", "[pass][golden]") {
  check_golden("pass/fuse_nests/tree_gru.ilir", text_after("fuse_nests", tree_gru(8).graph(), standard));
}

TEST_CASE("a nest whose sums run in lanes does not join one whose outputs do", "[pass]") {
  // Columns of s in vectors, and the sums of b, of a field's elements and not of a matrix, in lanes.
  struct Row {
    std::array<float, 33> x;
    std::vector<const Row*> kids;
  };
  const Dim H{"hidden", 9}, J{"row", 33};
  Model<Row> m("rows", cortex::tree);
  auto x = m.field("x", field<&Row::x>, J);
  auto h = m.placeholder<float>("h", H);
  auto s =
      m.compute("s", H, [&](auto n, auto i) { return sum(children<&Row::kids>(n), [&](auto k) { return h(k, i); }); });
  auto b = m.compute("b", H, [&](auto n, auto i) { return sum(J, [&](auto j) { return (1 + s(n, i)) * x(n, j); }); });
  const ra::Graph graph = m.recursion_op(h, b).graph();
  const Schedule by_hand = Schedule{}.loops(Loops::parse("distribute_rows(); tile_nests(); fuse_nests()"));
  for (const Snapshot& each : passes_of(graph, by_hand, machine(64)))
    ir::visit_with(each.program.body, [&](const ir::For& loop) {
      if (loop.loop != ir::ForKind::vectorized) return;
      ir::visit_with(loop.body, [&](const ir::For& inner) { CHECK(inner.loop != ir::ForKind::vectorized); });
    });
}

TEST_CASE("each case of a switch has its sums and what becomes of them in one nest", "[pass][golden]") {
  struct Plan {
    int kind;
    const Plan *left, *right;
  };
  const Dim H{"hidden", 8};
  Model<Plan> m("plan", cortex::tree);
  auto h = m.placeholder<float>("h", H);
  const auto cell = [&](const std::string& name) {
    auto W = m.input<float>("W_" + name, H, H);
    return m.compute(name, H, [&](auto n, auto i) {
      return tanh(sum(H, [&](auto j) { return W(i, j) * h(child<&Plan::left>(n), j); }));
    });
  };
  auto initial = m.input<float>("initial", H);
  auto leaf = m.compute("leaf", H, [&](auto, auto i) { return initial(i); });
  auto scan = cell("scan"), join = cell("join"), sort = cell("sort");
  auto inner = m.switch_(
      "inner", [](auto n) { return field<&Plan::kind>(n); }, when(0, scan), when(1, join), when(2, sort));
  auto body = m.if_then_else(
      "body", [](auto n) { return is_leaf(n); }, leaf, inner);
  check_golden("pass/fuse_nests/switch.ilir", text_after("fuse_nests", m.recursion_op(h, body).graph(), standard));
}

TEST_CASE("states of two parts of a batch do not meet; of one part, of two batches, and temporaries may", "[pass]") {
  const Small p;
  const ir::Buffer c = buffer("c", {dims::node, p.H}, ir::Role::state);
  const ir::Expr b = var("b_idx"), other = var("b_idx");
  const auto nest = [&](const ir::Expr& part, const ir::Buffer& from, const ir::Buffer& to, bool of_children = false) {
    const ir::Expr n = var("n_idx"), node = var("node"), i = var("i");
    const ir::Expr row = of_children ? ir::call(ir::UfKind::child, "left", {node}, 0) : node;
    const ir::Stmt element = loop(i, p.H, store(to, {node, i}, load(from, {row, i})));
    return *schedule::parse_nest(
        ir::For::make(n, dims::batch, ir::call(ir::UfKind::part_length, "part_sizes", {part}), ir::ForKind::serial,
                      ir::LetStmt::make(node, ir::call(ir::UfKind::part_node, "parts", {part, n}), element)));
  };
  const auto dependence = [](const schedule::Nest& first, const schedule::Nest& second) {
    return schedule::dependence(schedule::accesses_of(first.inner), schedule::accesses_of(second.inner), false,
                                schedule::rows_apart(first, second));
  };
  const auto depends = [&](const ir::Expr& part_of_first, const ir::Expr& part_of_second, const ir::Buffer& on) {
    return dependence(nest(part_of_first, p.b, on), nest(part_of_second, on, p.h)) != schedule::Dependence::none;
  };
  const ir::Expr first = (b + 1) * 3;
  CHECK_FALSE(depends(first, first + 1, c));
  CHECK_FALSE(depends(first + 2, first + 1, c));
  CHECK_FALSE(depends(ir::imm(0), ir::imm(1), c));
  CHECK(depends(first + 1, first + 1, c));
  CHECK(depends(ir::imm(1), ir::imm(1), c));
  CHECK(depends(first, (other + 1) * 3 + 1, c));
  CHECK(depends(first + 1, (b + 2) * 3 + 2, c));
  CHECK(depends(first, first + 1, p.a));

  // Rows of the one may be the other's children, or any that it names in another way.
  CHECK(dependence(nest(first, p.b, c), nest(first + 1, c, p.h, true)) == schedule::Dependence::whole);
}

TEST_CASE("one nest has nothing to be fused with", "[pass]") {
  const ir::Stmt s = Small().nest();
  CHECK(pass::fuse_nests(s, 3).same_as(s));
}

TEST_CASE("no more reductions are fused than registers hold", "[pass]") {
  const ir::Program lowered = lower::lower(tree_lstm(8).graph(), standard);
  const ir::Stmt apart = pass::distribute_rows(lowered.body);
  CHECK(count_of(pass::fuse_nests(apart, 3), "for r") == 3);  // leaves, inner nodes, and per child
  CHECK(count_of(pass::fuse_nests(apart, 1), "for r") == 7);
}

TEST_CASE("a nest that reads whole what another computes comes after it, whatever else it could be fused with",
          "[pass]") {
  const Small p;
  const auto pointwise = [&](const ir::Buffer& to, const ir::Expr& value) {
    return for_nodes(p.node, loop(p.i, p.H, store(to, {p.node, p.i}, value)));
  };
  const ir::Expr last = ir::imm(p.H.extent() - 1);
  const ir::Stmt first = pointwise(p.a, load(p.w, {p.i})), second = pointwise(p.b, load(p.a, {p.node, last - p.i})),
                 third = pointwise(p.a, load(p.b, {p.node, p.i}));
  const ir::Stmt s = block({first, second, third});
  CHECK(ir::equal(pass::fuse_nests(block({first, second}), 3), block({first, second})));
  CHECK(count_of(pass::fuse_nests(s, 3), "for n_idx") == 3);  // the third overwrites what the second reads whole
}

TEST_CASE("a reduction that overwrites what another one reads comes after it", "[pass]") {
  const Small p;
  const auto reduction = [&](const ir::Buffer& to, auto factor) {
    return for_nodes(p.node, loop(p.i, p.H,
                                  sum_over(
                                      p.H, [&](const ir::Expr& r) { return load(p.w, {r}) * factor(r); },
                                      [&](const ir::Expr& sum) {
                                        return store(to, {p.node, p.i}, sum);
                                      })));
  };
  const auto of_weights = [&](const ir::Expr& r) { return load(p.W, {p.i, r}); };
  const auto of_a = [&](const ir::Expr&) { return load(p.a, {p.node, p.i}); };
  const ir::Stmt s = block({reduction(p.a, of_weights), reduction(p.b, of_a), reduction(p.a, of_weights)});
  const std::string fused = ir::print(pass::fuse_nests(s, 3));
  CAPTURE(fused);
  CHECK(count(fused, "for n_idx") == 1);
  const std::size_t read = fused.find("b[node,i] = "), first = fused.find("a[node,i] = ");
  CHECK(first < read);
  CHECK((fused.rfind("a[node,i] = ") > read && read != fused.npos));
}

TEST_CASE("loops that are taken apart by hand stay behind what they read", "[pass][loops]") {
  struct Node {
    float value;
    std::vector<const Node*> kids;
  };
  constexpr auto kids = children<&Node::kids>;
  constexpr auto value = field<&Node::value>;
  Dim H{"hidden", 4};
  Model<Node> m("shares", cortex::tree);
  auto h = m.placeholder<float>("h", H);
  auto body =
      m.compute("body", H, [&](auto n, auto i) { return value(n) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto state = m.recursion(h, body);
  auto total = m.readout<float>("total", [&](auto r) { return sum(nodes(r), [&](auto n) { return state(n, 0); }); });
  auto share = m.readout<float>("share", H, [&](auto r, auto i) {
    return sum(nodes(r), [&](auto n) { return state(n, i) / total(r); }) + state(r, i);
  });
  const auto program = m.program(share, total);
  const Node a{1, {}}, b{2, {}}, root{3, {&a, &b}};  // states of 1, 2 and 6: 9 in all, of which the shares are 1
  CompileOptions options;
  options.target = Target::interpreter();
  for (const char* steps :
       {"fuse_nests()", "distribute(i.3)", "distribute(i.3); fuse_nests()", "unroll(i.3); fuse_nests()"}) {
    CAPTURE(steps);
    const auto model = compile(program, Schedule{}.loops(Loops::parse(steps)), options);
    const auto result = model(root);
    for (int i = 0; i < 4; ++i) CHECK(result[0][std::size_t(i)] == Approx(7));
  }
}

// ---- index_densely ----

TEST_CASE("temporaries of one batch have a row per node of a batch", "[pass][golden]") {
  check_golden("pass/index_densely/tree_gru.ilir", text_after("index_densely", tree_gru(8).graph(), standard));
}

TEST_CASE("without temporaries there is nothing to index densely", "[pass]") {
  const ir::Stmt s = Small().nest();
  CHECK(pass::index_densely(s).same_as(s));
}

TEST_CASE("a temporary over all nodes keeps a row per node: they are more than any batch", "[pass]") {
  const Small p;
  const ir::Stmt s = for_nodes(
      p.node,
      loop(p.i, p.H,
           block({store(p.a, {p.node, p.i}, load(p.w, {p.i})), store(p.h, {p.node, p.i}, load(p.a, {p.node, p.i}))})));
  CHECK(pass::index_densely(s).same_as(s));
}

TEST_CASE("what is computed ahead of the recursion keeps a row per node", "[pass]") {
  const std::string text = text_after("index_densely", dependency_rnn(8).graph(), batched);
  CHECK(count(text, "wx[node,") == 1);
  CHECK(count(text, "us[n_idx") + count(text, "s[n_idx") > 0);
}

// ---- forward_stores ----

TEST_CASE("sums reach the epilogue in variables", "[pass][golden]") {
  check_golden("pass/forward_stores/tree_gru.ilir", text_after("forward_stores", tree_gru(8).graph(), standard));
}

TEST_CASE("what is not read again is not kept", "[pass]") {
  const ir::Stmt s = Small().nest();
  CHECK(pass::forward_stores(s).same_as(s));
}

TEST_CASE("a value is not forwarded over a store to the same buffer", "[pass][equality]") {
  const Small p;
  const auto to = [&](const ir::Expr& i, double value) { return store(p.a, {p.node, i}, number(value)); };
  const ir::Stmt read = store(p.h, {p.node, p.i}, load(p.a, {p.node, p.i}));
  const auto result = [&](const ir::Stmt& rewrite) {
    const ir::Stmt body = pass::forward_stores(for_nodes(p.node, loop(p.i, p.H, block({to(p.i, 1), rewrite, read}))));
    ir::StructureEnv one_node;
    one_node.num_nodes = 1;
    ir::Storage storage;
    ir::interpret({"handmade", {p.h, p.a}, body}, one_node, storage);
    return storage["h"];
  };
  CHECK(result(to(p.i, 2)) == std::vector<double>{2, 2, 2, 2, 0, 0, 0, 0});         // the same element
  CHECK(result(to(ir::imm(0), 2)) == std::vector<double>{2, 1, 1, 1, 0, 0, 0, 0});  // sometimes the same
}
