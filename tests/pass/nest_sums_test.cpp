// Sums that only another sum reads are made inside of it.
#include <catch2/catch.hpp>

#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// A recursive neural tensor network: h = tanh(form), where `form_of(m, h, H)` gives a form of both children.
template <class FormOf>
ra::Graph tensor_network(int extent, FormOf form_of) {
  Dim V{"vocabulary"}, H{"hidden", extent};
  Model<Word> m("tensor_network", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto leaf = m.compute("leaf", H, [&](auto n, auto i) { return Emb(word(n), i); });
  auto inner = form_of(m, h, H);
  return m
      .recursion_op(h, m.if_then_else(
                           "body", [](auto n) { return is_leaf(n); }, leaf, inner))
      .graph();
}

constexpr auto bilinear = [](auto& m, auto& h, const Dim& H) {
  auto T = m.template input<float>("T", H, H, H);
  return m.compute("inner", H, [&](auto n, auto i) {
    return tanh(
        sum(H, [&](auto a) { return h(left(n), a) * sum(H, [&](auto b) { return T(i, a, b) * h(right(n), b); }); }));
  });
};
/// Of the left child, the right one, and the left one again.
constexpr auto trilinear = [](auto& m, auto& h, const Dim& H) {
  auto T = m.template input<float>("T", H, H, H, H);
  return m.compute("inner", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto a) {
      return h(left(n), a) * sum(H, [&](auto b) {
               return h(right(n), b) * sum(H, [&](auto c) { return T(i, a, b, c) * h(left(n), c); });
             });
    }));
  });
};
/// The elements of the matrix of sums are read twice.
constexpr auto read_twice = [](auto& m, auto& h, const Dim& H) {
  auto T = m.template input<float>("T", H, H, H);
  auto t = m.compute(
      "t", H, H, [&](auto n, auto i, auto a) { return sum(H, [&](auto b) { return T(i, a, b) * h(right(n), b); }); });
  return m.compute("inner", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto a) { return h(left(n), a) * t(n, i, a); }) +
                maximum(H, [&](auto a) { return t(n, i, a); }));
  });
};
/// They are read once for each output.
constexpr auto read_across = [](auto& m, auto& h, const Dim& H) {
  auto T = m.template input<float>("T", H, H, H), V = m.template input<float>("V", H, H, H);
  auto t = m.compute(
      "t", H, H, [&](auto n, auto a, auto c) { return sum(H, [&](auto b) { return T(a, c, b) * h(right(n), b); }); });
  return m.compute("inner", H, [&](auto n, auto i) {
    return tanh(h(left(n), i) +
                sum(H, [&](auto a) { return sum(H, [&](auto c) { return V(i, a, c) * t(n, a, c); }); }));
  });
};
/// Each element is read for two values of what is summed over.
constexpr auto read_by_halves = [](auto& m, auto& h, const Dim& H) {
  auto T = m.template input<float>("T", H, H, H);
  auto t = m.compute(
      "t", H, H, [&](auto n, auto i, auto a) { return sum(H, [&](auto b) { return T(i, a, b) * h(right(n), b); }); });
  return m.compute(
      "inner", H, [&](auto n, auto i) { return tanh(sum(H, [&](auto a) { return h(left(n), a) * t(n, i, a / 2); })); });
};

std::string nested(const ra::Graph& graph, const Schedule& schedule = Schedule::standard()) {
  return text_after("nest_sums", graph, schedule.exact_activations());
}
bool stays(const ra::Graph& graph, const Schedule& schedule = Schedule::standard()) {
  for (const Snapshot& s : passes_of(graph, schedule, machine(16)))
    if (s.pass == "nest_sums") return false;
  return true;
}

}  // namespace

TEST_CASE("a bilinear form for each output has no matrix of sums", "[pass][golden]") {
  check_golden("pass/nest_sums/bilinear.ilir", nested(tensor_network(8, bilinear)));
}

TEST_CASE("sums are nested as deep as they are written", "[pass]") {
  const std::string text = nested(tensor_network(4, trilinear));
  INFO(text);
  CHECK(count(text, "hidden=4,hidden=4] f32 temp") == 0);
  CHECK(count(text, "f32 temp") == 4);  // three accumulators, and what they give
}

TEST_CASE("sums that are read more than once stay, and those of a schedule that fuses nothing", "[pass]") {
  CHECK_FALSE(stays(tensor_network(8, bilinear)));
  CHECK(stays(tensor_network(8, bilinear), Schedule::standard().fuse_nothing()));
  CHECK_FALSE(stays(tensor_network(8, bilinear), Schedule::standard().store("T", DType::i8)));
  CHECK(stays(tensor_network(8, read_twice)));
  CHECK(stays(tensor_network(8, read_across)));
  CHECK(stays(tensor_network(8, read_by_halves)));
}

TEST_CASE("nested sums are right after every pass", "[pass][equality]") {
  std::mt19937 random(3);
  const NodeTable table = random_table(30, 2, 9, random, true);
  const Linear linear(table, 2);
  int target = 0;
  for (const int extent : {4, 16, 19})
    check_every_schedule(tensor_network(extent, bilinear), table, linear.arrays, linear.number, 9, target++);
  for (const int extent : {5, 8})
    check_every_schedule(tensor_network(extent, trilinear), table, linear.arrays, linear.number, 9, target++);
  check_every_schedule(tensor_network(16, read_twice), table, linear.arrays, linear.number, 9, target++);
}
