// Folds over children: their positions, the children beside, folds inside folds.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "support/compile.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

struct Node {
  float value;
  std::vector<const Node*> kids;
};
constexpr auto kids = cortex::children<&Node::kids>;

}  // namespace

TEST_CASE("a weight may be indexed by the position of the child", "[folds]") {
  Dim H("hidden", 20), K("position", 3);
  Model<Node> m("positions", cortex::tree.with_max_children(3));
  auto U = m.input<float>("U", K, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return cortex::field<&Node::value>(n) +
           sum(kids(n), [&](auto k, auto position) { return U(position, i) * h(k, i); });
  });
  auto model = compile_here(m.recursion_op(h, body));
  std::vector<float> u(60);
  for (std::size_t i = 0; i < 60; ++i) u[i] = float(i / 20 + 1);
  model.bind("U", u);
  const Node x{2, {}}, y{3, {}}, z{5, {}}, root{1, {&x, &y, &z}};
  CHECK(model(root)[0][19] == 1 + 2 + 2 * 3 + 3 * 5);
}

TEST_CASE("each child may have a matrix of its own, by its position, and what no child has is not read", "[folds]") {
  constexpr int extent = 21;
  for (const int most : {1, 2, 3, 5}) {
    Dim H("hidden", extent), K("position", most);
    Model<Node> m("positions", cortex::dag.with_max_children(most));
    auto U = m.input<float>("U", K, H, H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return tanh(cortex::field<&Node::value>(n) + sum(kids(n), [&](auto k, auto position) {
                    return sum(H, [&](auto j) { return U(position, i, j) * h(k, j); });
                  }));
    });
    const auto program = m.recursion_op(h, body);
    std::vector<float> u = uniform(std::size_t(most * extent * extent), 0.2f, 3);
    const Node a{0.2f, {}}, b{-0.3f, {}}, c{0.7f, {&a}}, d{0.5f, {&b, &c}}, e{0.1f, {&d, &a, &c}},
        all{0.4f, {&a, &c, &d, &b, &e}};
    const Node& root = most == 1 ? c : most == 2 ? d : most == 3 ? e : all;
    const std::function<std::vector<double>(const Node&)> expected = [&](const Node& n) {
      std::vector<double> result(extent, double(n.value));
      for (std::size_t k = 0; k < n.kids.size(); ++k) {
        const std::vector<double> of_kid = expected(*n.kids[k]);
        for (std::size_t i = 0; i < extent; ++i)
          for (std::size_t j = 0; j < extent; ++j) result[i] += double(u[(k * extent + i) * extent + j]) * of_kid[j];
      }
      for (double& x : result) x = std::tanh(x);
      return result;
    };
    const std::vector<double> right = expected(root);
    for (const Schedule& schedule : {Schedule(), Schedule::standard(), Schedule::standard().workers(2)})
      for (const Target& target : {best_target(), Target::interpreter()}) {
        auto model = compile(program, schedule, CompileOptions{}.on(target));
        model.bind("U", u);
        const auto result = model(root);
        for (std::size_t i = 0; i < extent; ++i) CHECK(double(result[0][i]) == Approx(right[i]).epsilon(1e-4));
        std::vector<float> infinite = u;  // where this node has no child
        for (std::size_t i = std::size_t(most - 1) * extent * extent; i < infinite.size(); ++i) infinite[i] = INFINITY;
        model.bind("U", infinite);
        CHECK((most == 1 || std::isfinite(model(c)[0][extent - 1])));
      }
  }
}

TEST_CASE("a fold reads the children beside its own, which the first and the last lack", "[folds]") {
  const Node a{0.2f, {}}, b{0.3f, {}}, c{0.7f, {}}, d{0.5f, {&a, &b, &c}}, e{0.1f, {&a}}, root{0.4f, {&d, &e, &b}};
  const std::function<double(const Node&)> expected = [&](const Node& n) {
    double result = double(n.value);
    for (std::size_t k = 0; k < n.kids.size(); ++k) {
      const double before = k ? expected(*n.kids[k - 1]) : 0;
      const double behind = k + 2 < n.kids.size() ? expected(*n.kids[k + 2]) : 0;
      result += expected(*n.kids[k]) * before + 0.25 * behind;
    }
    return result;
  };
  for (const Structure& structure : {cortex::dag, cortex::dag.with_max_children(4)}) {
    Dim H("hidden", 20);
    Model<Node> m("beside", structure);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return cortex::field<&Node::value>(n) + sum(kids(n), [&](auto k, auto position) {
               return h(k, i) * h(kids(n)[position - 1], i) + 0.25f * h(kids(n)[position + 2], i);
             });
    });
    const auto program = m.recursion_op(h, body);
    for (const Schedule& schedule : {Schedule(), Schedule::standard(), Schedule::standard().workers(2)})
      for (const Target& target : {best_target(), Target::interpreter()}) {
        const auto model = compile(program, schedule, CompileOptions{}.on(target));
        CHECK(model(root)[0][19] == Approx(expected(root)).epsilon(1e-5));
      }
  }
}

namespace {

struct Many {
  int id = 0;
  std::vector<const Many*> in;
};
constexpr auto in = cortex::children<&Many::in>;

}  // namespace

TEST_CASE("folds over children stand inside one another, as attention does", "[folds]") {
  constexpr int extent = 5;
  Dim H{"hidden", extent}, V{"vocabulary"};
  const auto model_of = [&](auto fold) {
    Model<Many> m("attention", tree);
    auto Emb = m.input<float>("Emb", V, H);
    auto U = m.input<float>("U", H, H);
    auto h = m.placeholder<float>("h", H);
    auto body =
        m.compute("body", H, [&](auto n, auto i) { return Emb(cortex::field<&Many::id>(n), i) + fold(n, i, h, U); });
    return m.recursion_op(h, body);
  };
  // What is asked of a child stands behind the fold inside of it.
  const auto attention = model_of([&](auto n, auto i, auto& h, auto& U) {
    return sum(in(n), [&](auto k) {
      return exp(h(k, i)) / sum(in(n), [&](auto j) { return exp(h(j, i)); }) *
             tanh(sum(H, [&](auto r) { return U(i, r) * h(k, r); }));
    });
  });
  const auto pairs = model_of([&](auto n, auto i, auto& h, auto&) {
    return sum(in(n), [&](auto k) { return tanh(sum(in(n), [&](auto j) { return h(k, i) * h(j, 0); })); });
  });
  const std::vector<float> emb = uniform(3 * extent, 1, 1), u = uniform(extent * extent, 1, 2);
  const Many a{0, {}}, b{1, {}}, top{2, {&a, &b}};
  const auto at = [&](int child, int i) { return double(emb[std::size_t(child * extent + i)]); };
  for (const Schedule& schedule : {Schedule(), Schedule::standard(), Schedule().dynamic_batch()}) {
    auto attends = compile_here(attention, schedule), multiplies = compile_here(pairs, schedule);
    attends.bind("Emb", emb).bind("U", u), multiplies.bind("Emb", emb).bind("U", u);
    const auto attended = attends(top), multiplied = multiplies(top);
    for (int i = 0; i < extent; ++i) {
      double over = 0, sum = at(2, i), of_pairs = at(2, i);
      for (int k = 0; k < 2; ++k) over += std::exp(at(k, i));
      for (int k = 0; k < 2; ++k) {
        double product = 0;
        for (int r = 0; r < extent; ++r) product += double(u[std::size_t(i * extent + r)]) * at(k, r);
        sum += std::exp(at(k, i)) / over * std::tanh(product);
        of_pairs += std::tanh(at(k, i) * (at(0, 0) + at(1, 0)));
      }
      CHECK(attended[0][std::size_t(i)] == Approx(sum).epsilon(1e-5));
      CHECK(multiplied[0][std::size_t(i)] == Approx(of_pairs).epsilon(1e-5));
    }
  }
  // A score of each pair: of any number of children it is refused, and of few see below.
  const auto scores = model_of([&](auto n, auto i, auto& h, auto&) {
    return sum(in(n), [&](auto k) {
      return h(k, i) / sum(in(n), [&](auto j) { return exp(sum(H, [&](auto r) { return h(k, r) * h(j, r); })); });
    });
  });
  CHECK_THROWS_WITH(
      compile_here(scores, Schedule()),
      Catch::Contains("operator 'body' of model 'attention': a reduction inside two folds over children or "
                      "members reads both nodes"));
}

TEST_CASE("children attend to one another by scores of pairs, where there are few of them", "[folds]") {
  constexpr int extent = 5;
  Dim H{"hidden", extent}, V{"vocabulary"};
  const auto program_for = [&](int most) {
    Model<Many> m("attention", cortex::tree.with_max_children(most));
    auto Emb = m.input<float>("Emb", V, H);
    auto Q = m.input<float>("Q", H, H);
    auto h = m.placeholder<float>("h", H);
    // Softmax over j of (Q h_k) . h_j, less the greatest of them; what each child takes of the others is added up.
    auto taken = m.compute("taken", H, [&](auto n, auto i) {
      return sum(in(n), [&](auto k) {
        const auto score = [&](auto j) {
          return sum(H, [&](auto r) { return sum(H, [&](auto q) { return Q(r, q) * h(k, q); }) * h(j, r); });
        };
        const auto most_of_all = maximum(in(n), [&](auto j) { return score(j); });
        return sum(in(n), [&](auto j) { return exp(score(j) - most_of_all) * h(j, i); }) /
               sum(in(n), [&](auto j) { return exp(score(j) - most_of_all); });
      });
    });
    auto body = m.compute("body", H, [&](auto n, auto i) { return Emb(cortex::field<&Many::id>(n), i) + taken(n, i); });
    return m.recursion_op(h, body);
  };
  const std::vector<float> emb = uniform(6 * extent, 1, 1), q = uniform(extent * extent, 1, 2);
  const Many a{0, {}}, b{1, {}}, c{2, {}}, d{3, {&a, &b, &c}}, e{4, {}}, top{5, {&d, &e}};
  const std::function<std::vector<double>(const Many&)> expected = [&](const Many& n) {
    std::vector<std::vector<double>> kids;
    for (const Many* kid : n.in) kids.push_back(expected(*kid));
    std::vector<double> result(emb.begin() + n.id * extent, emb.begin() + (n.id + 1) * extent);
    for (const auto& k : kids) {
      std::vector<double> weights;
      double all = 0;
      for (const auto& j : kids) {
        double score = 0;
        for (std::size_t r = 0; r < extent; ++r)
          for (std::size_t p = 0; p < extent; ++p) score += double(q[r * extent + p]) * k[p] * j[r];
        weights.push_back(std::exp(score)), all += weights.back();
      }
      for (std::size_t j = 0; j < kids.size(); ++j)
        for (std::size_t i = 0; i < extent; ++i) result[i] += weights[j] / all * kids[j][i];
    }
    return result;
  };
  const std::vector<double> right = expected(top);
  for (const int most : {3, 8})
    for (const Schedule& schedule : {Schedule(), Schedule::standard(), Schedule::standard().workers(2)})
      for (const Target& target : {best_target(), Target::interpreter()}) {
        auto model = compile(program_for(most), schedule, CompileOptions{}.on(target));
        model.bind("Emb", emb).bind("Q", q);
        const auto result = model(top);
        for (std::size_t i = 0; i < extent; ++i) CHECK(double(result[0][i]) == Approx(right[i]).epsilon(1e-4));
      }
  CHECK_THROWS_WITH(compile_here(program_for(9), Schedule()), Catch::Contains("with_max_children(8)"));

  // Of all nodes under a root there may be any number.
  Model<Many> m("members", cortex::tree.with_max_children(2));
  auto Emb = m.input<float>("Emb", V, H);
  auto h = m.placeholder<float>("h", H);
  auto own = m.compute("own", H, [&](auto n, auto i) {
    return Emb(cortex::field<&Many::id>(n), i) + sum(in(n), [&](auto k) { return h(k, i); });
  });
  auto state = m.recursion(h, own);
  auto all = m.readout<float>("all", H, [&](auto r, auto i) {
    return sum(cortex::nodes(r), [&](auto k) {
      return state(k, i) * sum(cortex::nodes(r),
                               [&](auto j) { return exp(sum(H, [&](auto q) { return state(k, q) * state(j, q); })); });
    });
  });
  CHECK_THROWS_WITH(compile_here(m.program(all), Schedule()),
                    Catch::Contains("operator 'all_body' of model 'members'"));
}

TEST_CASE("a sum over pairs of children has its factors in any order", "[folds]") {
  constexpr int extent = 5;
  Dim H{"hidden", extent}, V{"vocabulary"};
  const std::vector<float> emb = uniform(3 * extent, 1, 1), u = uniform(extent * extent, 1, 2);
  const auto value = [&](auto product) {
    Model<Many> m("pairs", tree);
    auto Emb = m.input<float>("Emb", V, H);
    auto U = m.input<float>("U", H, H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return Emb(cortex::field<&Many::id>(n), i) + sum(in(n), [&](auto k) {
               return sum(in(n),
                          [&](auto j) { return sum(H, [&](auto r) { return product(U(i, r), h(k, r), h(j, r)); }); });
             });
    });
    auto model = compile_here(m.recursion_op(h, body));
    model.bind("Emb", emb).bind("U", u);
    const Many a{0, {}}, b{1, {}}, top{2, {&a, &b}};
    return model(top)[0][1];
  };
  double expected = double(emb[2 * extent + 1]);
  for (std::size_t r = 0; r < extent; ++r) {
    const double both = double(emb[r]) + double(emb[extent + r]);
    expected += double(u[extent + r]) * both * both;
  }
  CHECK(value([](auto w, auto a, auto b) { return w * a * b; }) == Approx(expected).epsilon(1e-5));
  CHECK(value([](auto w, auto a, auto b) { return a * b * w; }) == Approx(expected).epsilon(1e-5));
  CHECK(value([](auto w, auto a, auto b) { return a * w * b; }) == Approx(expected).epsilon(1e-5));
}
