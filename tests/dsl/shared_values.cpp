// Lambdas that use their own values again and again, and expressions too large to compile.
#include "dsl/support.hpp"

using namespace dsl_test;

namespace {

using Catch::Contains;

/// `steps` of e = e * sigmoid(e).
template <class Value>
Value swish(Value e, int steps) {
  for (int k = 0; k < steps; ++k) e = e * sigmoid(e);
  return e;
}

bool has(const Words& w, const std::string& name) { return w.m.graph().find(name) >= 0; }

}  // namespace

TEST_CASE("a value that a lambda uses a few times stays where it is") {
  Words w;
  w.m.compute("x", w.H, [&](auto n, auto i) { return swish(w.leaf(n, i), 4); });
  CHECK(!has(w, "x.value1"));
}

TEST_CASE("values that are used again and again become operators of the dimensions that they depend on") {
  Words w;
  const auto U = w.m.input<float>("U", w.H, w.H);
  const std::size_t ops = w.m.graph().ops.size();
  w.m.compute("x", w.H, [&](auto n, auto i) { return swish(w.leaf(n, i), 40); });
  CHECK(w.m.graph().ops.size() == ops + 40);
  CHECK(body(w.m.graph(), "x.value1") == "leaf[n,i] * sigmoid(leaf[n,i])");
  CHECK(body(w.m.graph(), "x.value39") == "x.value38[n,i] * sigmoid(x.value38[n,i])");
  CHECK(body(w.m.graph(), "x") == "x.value39[n,i] * sigmoid(x.value39[n,i])");

  w.m.compute("product", w.H,
              [&](auto n, auto i) { return sum(w.H, [&](auto j) { return U(i, j) * swish(w.h(left(n), j), 20); }); });
  CHECK(op(w.m.graph(), "product.value19").dims == cortex::Vector<cortex::Dim>{w.H});
  CHECK(body(w.m.graph(), "product") ==
        "sum(r = 0:8, U[i,r] * (product.value19[n,r] * sigmoid(product.value19[n,r])))");

  // The product itself is used again and again; the weights that it reads at i and k stay in it.
  w.m.compute("gate", w.H,
              [&](auto n, auto i) { return swish(sum(w.H, [&](auto j) { return U(i, j) * w.leaf(n, j); }), 20); });
  CHECK(body(w.m.graph(), "gate.value1") == "sum(r = 0:8, U[i,r] * leaf[n,r])");

  // What depends on no index has none.
  w.m.compute("row", w.H,
              [&](auto n, auto i) { return w.leaf(n, i) * swish(sum(w.H, [&](auto j) { return w.leaf(n, j); }), 20); });
  CHECK(op(w.m.graph(), "row.value20").dims.empty());
}

TEST_CASE("values of each child are no operators, and too many copies of them are refused") {
  Nodes w;
  const auto text = [&](int steps) {
    return refusal([&] {
      w.m.compute("x" + std::to_string(steps), w.H,
                  [&](auto n, auto i) { return sum(kids(n), [&](auto c) { return swish(w.h(c, i), steps); }); });
    });
  };
  CHECK(text(9) == "");
  const auto s = w.m.placeholder<float>("s");
  const std::size_t ops = w.m.graph().ops.size();
  CHECK(refusal([&] {
          w.m.compute("y", [&](auto n) { return sum(kids(n), [&](auto c) { return swish(s(c), 9); }); });
        }) == "");
  CHECK(w.m.graph().ops.size() == ops + 1);
  CHECK_THAT(text(60), Contains("operator 'x60' has more than 50000 operations when every value stands written out "
                                "where it is used; give those that are used again names with compute"));
  CHECK(w.m.graph().ops.size() == ops + 1);
}

TEST_CASE("what decides a branch may not be of any size either") {
  Words w;
  const auto text = [&](int steps) {
    return refusal([&] {
      w.m.if_then_else(
          "x" + std::to_string(steps),
          [&](auto n) {
            auto e = min(word(n), 3);
            for (int k = 0; k < steps; ++k) e = min(e + e, 5);
            return e > 3;
          },
          w.leaf, w.leaf);
    });
  };
  CHECK(text(8) == "");
  CHECK_THAT(text(60), Contains("operator 'x60' has more than 2000 operations"));
}

TEST_CASE("an expression may be thousands of operations deep, and no more") {
  Words w;
  const auto text = [&](int terms) {
    return refusal([&] {
      w.m.compute("x" + std::to_string(terms), w.H, [&](auto n, auto i) {
        auto e = w.leaf(n, i) + 1;
        for (int k = 0; k < terms; ++k) e = e + w.leaf(n, i);
        return e;
      });
    });
  };
  CHECK(text(3900) == "");
  CHECK_THAT(text(1000000), Contains("operator 'x1000000': an expression of more than 4000 operations inside one "
                                     "another; give parts of it names with compute, or add up with sum"));
}

TEST_CASE("operators may stand on one another a thousand times, and are named where they are too many") {
  const auto text = [&](int count) {
    Words w;
    auto last = w.leaf;
    for (int k = 0; k < count; ++k) {
      auto next = w.m.compute("x" + std::to_string(k), w.H, [&](auto n, auto i) { return last(n, i) + 1; });
      last = next;
    }
    return refusal([&] { w.m.recursion_op(w.h, last); });
  };
  CHECK(text(1000) == "");
  CHECK_THAT(text(5000), Contains("operator 'x1998' of model 'words': with the operators that it reads, more than 4000 "
                                  "operations stand inside one another"));
}
