// Each operator and function of the lambdas becomes the expression that it means.
#include "dsl/support.hpp"

using namespace dsl_test;

namespace {

using cortex::cast;

TEST_CASE("arithmetic on data is left as written") {
  CHECK(Words{}.text([](auto, auto) { return cast<float>(1); }) == "1.0");
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    auto x = w.leaf(n, i);
    return (x + 1) * x - x / 2 + 0.5 * -x;
  }) == "(leaf[n,i] + 1.0) * leaf[n,i] - leaf[n,i] / 2.0 + 0.5 * -leaf[n,i]");
}

TEST_CASE("a sum grows in a loop of C++") {
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    auto sum = w.leaf(n, i) * 1.0;
    for (int layer = 2; layer < 4; ++layer) sum += w.leaf(n, i) * layer;
    sum -= 1;
    sum *= w.leaf(n, i);
    sum /= 2.0;
    return sum;
  }) == "(leaf[n,i] * 1.0 + leaf[n,i] * 2.0 + leaf[n,i] * 3.0 - 1.0) * leaf[n,i] / 2.0");
}

TEST_CASE("functions of data") {
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    auto x = w.leaf(n, i);
    return exp(x) + log(x) + sqrt(x) + tanh(x) + sigmoid(x) + relu(x) + abs(x);
  }) == "exp(leaf[n,i]) + log(leaf[n,i]) + sqrt(leaf[n,i]) + tanh(leaf[n,i]) + sigmoid(leaf[n,i]) + relu(leaf[n,i]) + "
        "abs(leaf[n,i])");
  Words v;
  CHECK(v.text([&](auto n, auto i) {
    auto x = v.leaf(n, i);
    return erf(x) + sin(x) + cos(x) + log1p(x) + expm1(x) + floor(x);
  }) == "erf(leaf[n,i]) + sin(leaf[n,i]) + cos(leaf[n,i]) + log1p(leaf[n,i]) + expm1(leaf[n,i]) + floor(leaf[n,i])");
}

TEST_CASE("functions made of others") {
  const auto text = [](auto f) {
    Words w;
    return w.text([&](auto n, auto i) { return f(w.leaf(n, i)); });
  };
  CHECK(text([](auto x) { return square(x) + rsqrt(x) + ceil(x); }) ==
        "leaf[n,i] * leaf[n,i] + 1.0 / sqrt(leaf[n,i]) + -floor(-leaf[n,i])");
  CHECK(text([](auto x) { return silu(x) + gelu(x) + softplus(x); }) ==
        "leaf[n,i] * sigmoid(leaf[n,i]) + leaf[n,i] * (0.5 * (1.0 + erf(leaf[n,i] * 0.707106769))) + "
        "(relu(leaf[n,i]) + log1p(exp(-abs(leaf[n,i]))))");
  CHECK(text([](auto x) { return leaky_relu(x, 0.25) + elu(x); }) ==
        "select(leaf[n,i] < 0.0,0.25 * leaf[n,i],leaf[n,i]) + "
        "select(leaf[n,i] < 0.0,1.0 * expm1(leaf[n,i]),leaf[n,i])");
}

TEST_CASE("a power by a number is made of products where it can be") {
  const auto text = [](auto f) {
    Words w;
    return w.text([&](auto n, auto i) { return f(w.leaf(n, i)); });
  };
  CHECK(text([](auto x) { return pow(x, 2) + pow(x, 3.0) + pow(x, 1); }) ==
        "leaf[n,i] * leaf[n,i] + leaf[n,i] * (leaf[n,i] * leaf[n,i]) + leaf[n,i]");
  CHECK(text([](auto x) { return pow(x, -2) + pow(x, 0) + pow(x, 0.5); }) ==
        "1.0 / (leaf[n,i] * leaf[n,i]) + 1.0 + sqrt(leaf[n,i])");
  CHECK(text([](auto x) { return pow(x, 1.5) + pow(x, 33) + pow(-2, x) + pow(x, x); }) ==
        "pow(leaf[n,i],1.5) + pow(leaf[n,i],33.0) + pow(-2.0,leaf[n,i]) + pow(leaf[n,i],leaf[n,i])");
  CHECK(refusal([] { Words().text([](auto n, auto) { return pow(age(n), weight(n)); }); }) ==
        "operator 'x': 'node_age' (f32) meets 'node_weight' (f64): f32 and f64 do not mix; convert one side with "
        "cast<float>(...) or cast<double>(...)");
}

TEST_CASE("max and min combine data with data, with numbers and with the structure") {
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    auto x = w.leaf(n, i);
    return max(x, x) + min(x, 0) + max(1.5, x) + min(word(n), x);
  }) == "max(leaf[n,i],leaf[n,i]) + min(leaf[n,i],0.0) + max(1.5,leaf[n,i]) + min(f32(id(n)),leaf[n,i])");
}

TEST_CASE("functions are found under using namespace std, and by their qualified names") {
  using namespace std;
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    auto x = w.leaf(n, i);
    return max(x, x) + min(x, x) + exp(x) + abs(x) +
           cortex::tanh(cortex::sum(w.H, [&](auto j) { return w.leaf(n, j); }));
  }) == "max(leaf[n,i],leaf[n,i]) + min(leaf[n,i],leaf[n,i]) + exp(leaf[n,i]) + abs(leaf[n,i]) + tanh(sum(r = 0:8, "
        "leaf[n,r]))");
}

TEST_CASE("comparisons and conditions choose values") {
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    auto x = w.leaf(n, i);
    auto between = x > 0 && x <= 1 && !(x == 0.5);
    return select(between || x != x, x, 0) + select(is_leaf(n), 1, x) + select(x < 2, 3, x) +
           select(x >= 0, word(n), x);
  }) == "select(leaf[n,i] > 0.0 and leaf[n,i] <= 1.0 and not(leaf[n,i] == 0.5) or leaf[n,i] != "
        "leaf[n,i],leaf[n,i],0.0) + "
        "select(is_leaf(n),1.0,leaf[n,i]) + select(leaf[n,i] < 2.0,3.0,leaf[n,i]) + select(leaf[n,i] >= "
        "0.0,f32(id(n)),leaf[n,i])");
}

TEST_CASE("two numbers of type float under a condition are data of f32") {
  Words w;
  CHECK(w.text([&](auto n, auto i) { return select(is_leaf(n), 0.5F, 2.0F) * select(w.leaf(n, i) > 0, 1.0F, 0.0F); }) ==
        "select(is_leaf(n),0.5,2.0) * select(leaf[n,i] > 0.0,1.0,0.0)");
}

TEST_CASE("integers of the structure are compared with enumerators") {
  enum class Kind : unsigned char { scan = 3, join = 250 };
  enum { sort = -1 };
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    auto x = w.leaf(n, i);
    return select(word(n) == Kind::scan || Kind::join == word(n), x, 1) +
           select(word(n) != sort && Kind::scan != word(n), x, 2);
  }) == "select(id(n) == 3 or id(n) == 250,leaf[n,i],1.0) + select(id(n) != -1 and id(n) != 3,leaf[n,i],2.0)");
}

TEST_CASE("integers of the structure stay integers among themselves and become data with data") {
  Words w;
  CHECK(w.text([&](auto n, auto i) { return w.leaf(n, i) * ((word(n) + 2 * i - 1) % 3) + i; }) ==
        "leaf[n,i] * f32((id(n) + 2 * i - 1) % 3) + f32(i)");
}

TEST_CASE("a structural choice between integers is an integer, and may be an index") {
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    return w.leaf(n, select(is_leaf(n), 0, i)) + w.leaf(n, min(i + 1, 7)) + w.leaf(n, select(is_leaf(n), 1, 2));
  }) == "leaf[n,select(is_leaf(n),0,i)] + leaf[n,min(i + 1,7)] + leaf[n,select(is_leaf(n),1,2)]");
}

TEST_CASE("cast makes data of numbers, integers, conditions and data of the other type") {
  Words w;
  CHECK(w.text([&](auto n, auto i) {
    return cast<float>(0.5) + cast<float>(i) + cast<float>(is_leaf(n)) + cast<float>(cast<double>(w.leaf(n, i)));
  }) == "0.5 + f32(i) + select(is_leaf(n),1.0,0.0) + f32(f64(leaf[n,i]))");
}

TEST_CASE("a number in f32 is rounded to f32, in f64 it is not") {
  Words w;
  auto x = w.m.compute("x", w.H, [&](auto n, auto i) { return w.leaf(n, i) * 0.1; });
  auto y = w.m.compute("y", w.H, [&](auto n, auto i) { return cast<double>(w.leaf(n, i)) * 0.1; });
  const auto factor = [&](const char* name) {
    return op(w.m.graph(), name).body.as<cortex::ir::Binary>()->b.as<cortex::ir::FloatImm>()->value;
  };
  CHECK(factor("x") == double(0.1F));
  CHECK(factor("y") == 0.1);
  CHECK(y.buffer()->dtype == cortex::DType::f64);
}

TEST_CASE("reductions over dimensions") {
  Words w;
  CHECK(w.text([&](auto n, auto) {
    auto f = [&](auto j) { return w.leaf(n, j); };
    return sum(w.H, f) + product(w.H, f) + maximum(w.H, f) + minimum(w.H, f);
  }) == "sum(r = 0:8, leaf[n,r]) + prod(r.2 = 0:8, leaf[n,r.2]) + max(r.3 = 0:8, leaf[n,r.3]) + min(r.4 = 0:8, "
        "leaf[n,r.4])");
}

TEST_CASE("a reduction over several dimensions nests") {
  Words w;
  const cortex::Dim K{"more", 2};
  CHECK(w.text([&](auto n, auto i) {
    return sum(w.H, w.E, K, [&](auto a, auto b, auto c) { return w.W(a, b) * w.leaf(n, i) * c; });
  }) == "sum(r = 0:8, sum(r.2 = 0:4, sum(r.3 = 0:2, W[r,r.2] * leaf[n,i] * f32(r.3))))");
}

TEST_CASE("reductions over children") {
  Nodes t;
  CHECK(t.text([&](auto n, auto i) {
    auto f = [&](auto k) { return t.h(k, i); };
    return sum(kids(n), f) / max(num_children(kids(n)), 1) + product(kids(n), f) + maximum(kids(n), f) +
           minimum(others(n), f);
  }) == "sum(k = 0:num_children(n), h[kids(n,k),i]) / f32(max(num_children(n),1)) + prod(k.2 = 0:num_children(n), "
        "h[kids(n,k.2),i]) + "
        "max(k.3 = 0:num_children(n), h[kids(n,k.3),i]) + min(k.4 = 0:num_children(n), h[others(n,k.4),i])");
  CHECK(t.m.graph().containers.size() == 2);
}

TEST_CASE("a reduction over children gives the child's structure and its position") {
  const cortex::Dim H{"hidden", 8}, K{"position", 3};
  cortex::Model<Node> m("m", cortex::tree.with_max_children(3));
  auto U = m.input<float>("U", K, H);
  auto h = m.placeholder<float>("h", H);
  m.compute("x", H, [&](auto n, auto i) {
    return sum(kids(n), [&](auto k, auto position) {
      return U(position, i) * h(k, i) * label(k) + select(is_leaf(k), num_children(kids(k)), U(0, i));
    });
  });
  CHECK(body(m.graph(), "x") ==
        "sum(k = 0:num_children(n), U[k,i] * h[kids(n,k),i] * f32(label(kids(n,k))) + "
        "select(is_leaf(kids(n,k)),f32(num_children(kids(n,k))),U[0,i]))");
}

TEST_CASE("the k-th child is named by an integer or by the structure") {
  Nodes t;
  CHECK(t.text([&](auto n, auto i) {
    return t.h(kids(n)[0], i) + t.h(kids(n)[max(label(n), 0)], i) + t.h(kids(n)[i], i);
  }) == "h[kids(n,0),i] + h[kids(n,max(label(n),0)),i] + h[kids(n,i),i]");
}

TEST_CASE("fields: integers are structure, numbers data, arrays are read by component or declared") {
  Words w;
  auto x = w.m.field("x", features, w.E);
  auto y = w.m.compute("y", w.E, [&](auto n, auto i) {
    return x(n, i) * age(n) + age(n) + w.Emb(ids(n)[2], 0) * ids(n)[min(i, 2)] * known(n);
  });
  CHECK(body(w.m.graph(), "y") ==
        "x[n,i] * node_age[n] + node_age[n] + Emb[ids(n,2),0] * f32(ids(n,min(i,2))) * f32(known(n))");
  CHECK(w.m.graph().fields.size() == 5);
  static_assert(std::is_same_v<decltype(y)::Set, SetOf<features, age, ids, known>>);
}

TEST_CASE("a scalar field is declared under a name of the user's, and then read by that operator too") {
  Words w;
  auto z = w.m.field("z", weight);
  auto y = w.m.compute("y", [&](auto n) { return z(n) + weight(n); });
  CHECK(body(w.m.graph(), "y") == "z[n] + z[n]");
  CHECK(y.buffer()->dtype == cortex::DType::f64);
}

TEST_CASE("sets hold each accessor once, through operators that operators read") {
  Words w;
  auto a = w.m.compute("a", w.H, [&](auto n, auto i) { return w.leaf(n, i) + w.h(left(n), i) * word(n); });
  auto b = w.m.compute("b", w.H, [&](auto n, auto i) { return a(n, i) + w.h(right(n), ids(n)[0] * 0 + i); });
  auto none = w.m.compute("none", w.H, [&](auto, auto i) { return w.W(i, 0); });
  static_assert(std::is_same_v<decltype(a)::Set, SetOf<word, left>>);
  static_assert(std::is_same_v<decltype(b)::Set, SetOf<word, left, right, ids>>);
  static_assert(std::is_same_v<decltype(none)::Set, SetOf<>>);
}

}  // namespace
