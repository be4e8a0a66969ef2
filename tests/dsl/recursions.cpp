// Recursions of a model: each reads what is computed before it, and calls read of the nodes what all of them need.
#include "dsl/support.hpp"

using namespace dsl_test;

namespace {

using Catch::Contains;
using cortex::Model;

/// Two states that each read the other at the children.
struct Pair {
  cortex::Dim H{"hidden", 8};
  Model<Word> m{"pair", cortex::tree};
  cortex::Placeholder<Word, float, 1> h = m.placeholder<float>("h", H), c = m.placeholder<float>("c", H);
  cortex::Op<Word, 1, SetOf<left>> of_c = m.compute("of_c", H, [this](auto n, auto i) { return 1 + c(left(n), i); });
  cortex::Op<Word, 1, SetOf<left>> of_h = m.compute("of_h", H, [this](auto n, auto i) { return 1 + h(left(n), i); });
};

constexpr auto above = cortex::parents<left, right>;

}  // namespace

TEST_CASE("parents name the links of a model one by one, or as a container of them", "[dsl][recursions]") {
  const auto names = [](auto parents, auto... links) {
    return cortex::structure::parents_name_links<cortex::structure::Accessors<decltype(links)..., decltype(parents)>>;
  };
  constexpr auto left_or_none = cortex::optional_child<&Word::left>;
  constexpr auto both = cortex::children<&Word::left, &Word::right>;
  CHECK(names(cortex::parents<left, right>, left, right, word));
  CHECK_FALSE(names(cortex::parents<left>, left, right));
  CHECK(names(cortex::parents<left_or_none>, left_or_none, left));
  CHECK(names(cortex::parents<left>, left, left_or_none));
  CHECK(names(cortex::parents<both>, both, left, left_or_none));
  CHECK(names(cortex::parents<left, right>, left, right, both));
  CHECK_FALSE(names(cortex::parents<left>, left, both));
}

TEST_CASE("states that need each other are joined in one recursion", "[dsl][recursions]") {
  Pair both;
  CHECK(refusal([&] { both.m.recursion_op(both.h, both.of_c, both.c, both.of_h); }) == "");

  Pair apart;
  CHECK_THAT(refusal([&] { apart.m.recursion(apart.h, apart.of_c); }),
             Contains("model 'pair': what computes 'h' reads placeholder 'c', which no recursion so far computes; join "
                      "'c' to its body before, or both at once"));
  CHECK(apart.m.graph().states.empty());  // nothing is left half-done
  const auto [h, c] = apart.m.recursion(apart.h, apart.of_c, apart.c, apart.of_h);
  CHECK(refusal([&] { apart.m.program(h, c); }) == "");
}

TEST_CASE("a recursion reads what an earlier one computes, and no later one's", "[dsl][recursions]") {
  const auto joined = [](bool first_first) {
    Pair w;  // h is made of c, and c of itself alone
    const auto own = w.m.compute("own", w.H, [&](auto n, auto i) { return 1 + w.c(left(n), i); });
    return refusal([&] {
      if (first_first) w.m.recursion(w.c, own), w.m.recursion(w.h, w.of_c);
      if (!first_first) w.m.recursion(w.h, w.of_c), w.m.recursion(w.c, own);
    });
  };
  CHECK(joined(true) == "");
  CHECK_THAT(joined(false), Contains("what computes 'h' reads placeholder 'c'"));
}

TEST_CASE("an output and a readout come after the recursions that they read", "[dsl][recursions]") {
  Pair w;
  const auto own = w.m.compute("own", w.H, [&](auto n, auto i) { return 1 + w.c(left(n), i); });
  CHECK_THAT(refusal([&] { w.m.output<float>("early", w.H, [&](auto n, auto i) { return 10 * w.c(left(n), i); }); }),
             Contains("what computes 'early' reads placeholder 'c'"));
  CHECK_THAT(refusal([&] { w.m.output<float>("early", w.H, [&](auto n, auto i) { return 10 * own(n, i); }); }),
             Contains("what computes 'early' reads placeholder 'c'"));
  CHECK_THAT(refusal([&] { w.m.readout<float>("early", w.H, [&](auto n, auto i) { return 10 * own(n, i); }); }),
             Contains("what computes 'early' reads placeholder 'c'"));
  w.m.recursion(w.c, own);
  CHECK(refusal([&] { w.m.output<float>("late", w.H, [&](auto n, auto i) { return 10 * own(n, i); }); }) == "");
}

TEST_CASE("a recursion up and one down cannot read each other", "[dsl][recursions]") {
  Pair w;
  const auto up = w.m.compute(
      "up", w.H, [&](auto n, auto i) { return w.h(left(n), i) + sum(above(n), [&](auto p) { return w.c(p, i); }); });
  CHECK_THAT(refusal([&] { w.m.recursion(w.h, up); }), Contains("what computes 'h' reads placeholder 'c'"));
}

TEST_CASE("what a program reads of the nodes follows from its results, or is refused", "[dsl][recursions]") {
  const auto made = [](bool listed) {
    Words w;
    const auto below = w.m.compute("below", w.H, [&](auto n, auto i) { return w.h(left(n), i); });
    const auto body = w.m.compute("body", w.H, [&](auto n, auto i) { return below(n, i) + w.Emb(word(n), i); });
    const auto h = w.m.recursion(w.h, body);
    const auto out = w.m.output<float>("out", w.H, [&](auto n, auto i) { return 2 * below(n, i); });
    return refusal([&] {
      if (listed) w.m.program(out, h);
      if (!listed) w.m.program(out);
    });
  };
  CHECK(made(true) == "");
  CHECK_THAT(made(false),
             Contains("operator 'body' of model 'words' reads 'id' of the nodes, and the results listed do "
                      "not say so"));
}

TEST_CASE("what branches ask of the nodes, and their data, is read, or the program refused", "[dsl][recursions]") {
  const auto made = [](const auto& body_of) {
    Words w;
    const auto below = w.m.compute("below", w.H, [&](auto n, auto i) { return w.h(left(n), i); });
    w.m.recursion(w.h, body_of(w, below));
    const auto out = w.m.output<float>("out", w.H, [&](auto n, auto i) { return 2 * below(n, i); });
    return refusal([&] { w.m.program(out); });
  };
  CHECK(made([](Words&, const auto& below) { return below; }) == "");
  CHECK_THAT(made([](Words& w, const auto& below) {
               return w.m.if_then_else(
                   "body", [](auto n) { return known(n); }, below, below);
             }),
             Contains("operator 'body' of model 'words' reads 'known' of the nodes"));
  CHECK_THAT(made([](Words& w, const auto& below) {
               return w.m.compute("body", w.H, [&](auto n, auto i) { return age(n) * below(n, i); });
             }),
             Contains("reads 'age' of the nodes"));
  CHECK_THAT(made([](Words& w, const auto& below) {
               return w.m.compute("body", w.H, [&](auto n, auto i) { return below(n, i) + w.h(perhaps(n), i); });
             }),
             Contains("operator 'body' of model 'words' reads 'right' of the nodes"));
}
