// What a recursion has computed at all nodes, and recursions after it read as well, is computed once.
#include <catch2/catch.hpp>

#include "support/every_node.hpp"
#include "support/lowering.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

constexpr auto kids = cortex::children<&Vertex::kids>;
constexpr auto word = cortex::field<&Vertex::word>;
constexpr int hidden = 8;

/// h = a sum(h of the children) + x, y = h + l x, where x is `of(product, n, i)` of a product of the node's word.
template <class Of>
auto read_twice(Of of) {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("read_twice", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto W = m.input<float>("W", H, H);
  auto a = m.input<float>("a", H), l = m.input<float>("l", H);
  auto h_of = m.placeholder<float>("h", H);
  auto x = m.compute(
      "x", H, [&](auto n, auto i) { return of(sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }), n, i); });
  auto body = m.compute(
      "body", H, [&](auto n, auto i) { return a(i) * sum(kids(n), [&](auto k) { return h_of(k, i); }) + x(n, i); });
  auto h = m.recursion(h_of, body);
  return m.program(m.output<float>("y", H, [&](auto n, auto i) { return h(n, i) + l(i) * x(n, i); }), h);
}

/// x = W e + sum(U h of the children), h = tanh(x), y = sigmoid(x) + h: at leaves x is what goes ahead of inner nodes.
auto read_whole(Structure structure) {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("read_whole", structure);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto h_of = m.placeholder<float>("h", H);
  auto x = m.compute("x", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }) +
           sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return U(i, j) * h_of(k, j); }); });
  });
  auto h = m.recursion(h_of, m.compute("body", H, [&](auto n, auto i) { return tanh(x(n, i)); }));
  auto y = m.output<float>("y", H, [&](auto n, auto i) { return sigmoid(x(n, i)) + h(n, i); });
  auto z = m.output<float>("z", H, [&](auto n, auto i) {
    return y(n, i) + sum(H, [&](auto j) { return U(i, j) * x(n, j); }) + sum(kids(n), [&](auto k) { return y(k, i); });
  });
  return m.program(z, y);
}

template <class Program>
int products(const Program& program, const Schedule& schedule) {
  return count(ir::print(lower::lower(program.graph(), schedule)), "fma(W[");
}

template <class Program>
void check(const Program& program) {
  CHECK(products(program, Schedule::standard()) == 1);
  CHECK(products(program, Schedule{}.dynamic_batch()) == 1);
  check_at_every_node(program);
}

/// A tensor of `H` elements a node.
ir::Buffer tensor_of(const Dim& H, const char* name, ir::Role role) {
  ir::BufferInfo info;
  info.name = name, info.role = role;
  info.dims.push_back(dims::node), info.dims.push_back(H);
  return ir::Buffer(std::move(info));
}

}  // namespace

TEST_CASE("a product that a recursion and an output after it read is made once", "[lower]") {
  check(read_twice([](auto product, auto, auto) { return product; }));
  check(read_twice([](auto product, auto, auto) { return silu(product); }));
  check(read_twice([](auto product, auto n, auto) { return product * cast<float>(word(n)); }));
}

TEST_CASE("what a later recursion reads keeps its tensor, whatever else computes the same", "[lower][equality]") {
  for (const Structure structure : {cortex::tree, cortex::dag, cortex::sequence})
    for (const Schedule& schedule : {Schedule::standard(), Schedule::standard().tabulate_nothing().share_no_subtrees(),
                                     Schedule{}.dynamic_batch().specialize_leaves(), Schedule::standard().workers(2)})
      check_at_every_node(read_whole(structure), schedule);
}

TEST_CASE("what a recursion that is cut has of its own is not read later", "[lower][refactor][equality]") {
  Dim V("vocabulary"), H("hidden", hidden);
  Model<Vertex> m("cut", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto h_of = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h_of(k, i); }); });
  auto cut = m.compute("cut", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j); }); });
  auto x = m.compute(
      "x", H, [&](auto n, auto i) { return cut(n, i) + sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }); });
  auto h = m.recursion(h_of, m.compute("body", H, [&](auto n, auto i) { return tanh(x(n, i)); }));
  const auto program = m.program(m.output<float>("y", H, [&](auto n, auto i) { return x(n, i) + s(n, i) + h(n, i); }));
  check_at_every_node(program);
  for (const int workers : {1, 2}) check_at_every_node(program, Schedule::standard().workers(workers).refactor(cut));
}

TEST_CASE("an operator of which a later recursion needs more than there is, is computed anew as a whole", "[lower]") {
  const Dim H("hidden", hidden);
  const ir::Buffer h = tensor_of(H, "h", ir::Role::state), sides = tensor_of(H, "sides", ir::Role::temp);
  const ir::Expr node = ir::Var::make("node"), i = ir::Var::make("i");
  const auto side = [&](int of) {  // where the node's field has that value
    lower::Definition d;
    d.buffer = sides, d.node = node;
    d.indices.push_back({i, H});
    d.body = ir::Unary::make(ir::UnaryOp::tanh, ir::Load::make(h, {node, i}));
    d.guard = ir::binary(ir::BinaryOp::eq, ir::call(ir::UfKind::field, "kind", {node}, 0), ir::imm(of));
    return d;
  };
  const auto left_of = [&](const Vector<lower::Definition>& first, const Vector<lower::Definition>& second) {
    Vector<lower::Recursion> recursions;
    for (const auto& definitions : {first, second}) {
      recursions.emplace_back();
      recursions.back().versions.push_back({lower::Part::all, definitions, -1, 1, {}});
    }
    lower::drop_repeated(recursions, Schedule{});
    return recursions[1].versions[0].definitions.size();
  };
  CHECK(left_of({side(1), side(2)}, {side(1), side(2)}) == 0);
  CHECK(left_of({side(1), side(2)}, {side(2)}) == 0);
  CHECK(left_of({side(1)}, {side(1), side(2)}) == 2);
  CHECK(left_of({side(1)}, {side(3)}) == 1);
}

TEST_CASE("what is the same for all leaves has rows where a later recursion reads them", "[lower]") {
  const Dim H("hidden", hidden);
  const ir::Buffer h = tensor_of(H, "h", ir::Role::state), y = tensor_of(H, "y", ir::Role::state);
  const ir::Buffer zeros = tensor_of(H, "zeros", ir::Role::temp);
  const auto define = [&](const ir::Buffer& buffer, const ir::Expr& node, const ir::Expr& i, const ir::Expr& body) {
    lower::Definition d;
    d.buffer = buffer, d.node = node, d.body = body;
    d.indices.push_back({i, H});
    return d;
  };
  const auto rows_of = [&](bool read_later) {
    const ir::Expr node = ir::Var::make("node"), i = ir::Var::make("i");
    const ir::Expr zero = ir::Load::make(zeros, {node, i});
    Vector<lower::Recursion> recursions;
    recursions.push_back({ra::Direction::up, {h}, {}, 0});
    recursions[0].versions.push_back({lower::Part::leaves,
                                      {define(zeros, node, i, ir::FloatImm::make(0, DType::f32)),
                                       define(h, node, i, ir::Unary::make(ir::UnaryOp::tanh, zero))},
                                      -1,
                                      1,
                                      {}});
    recursions.push_back({ra::Direction::none, {y}, {}, 0});
    recursions[1].versions.push_back(
        {lower::Part::all, {define(y, node, i, read_later ? zero : ir::Load::make(h, {node, i}))}, -1, 1, {}});
    const lower::Placement placement = lower::hoist(std::move(recursions), lower::Ahead::at_once);
    int rows = 0;
    for (const lower::Version& version : placement.passes[0].recursion)
      for (const lower::Definition& d : version.definitions) rows += d.buffer == zeros;
    return rows;
  };
  CHECK(rows_of(true) == 1);
  CHECK(rows_of(false) == 0);
}
