// Calling a model: the forms of roots, results, errors.
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>

#include "runtime/hand_made.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

SumFunctor bound_functor(const CompileOptions& options = {}) {
  return functor(sum_executable(), options).bind("Emb", embedding(8));
}

/// ((0 1) 2)
struct Phrase {
  Word a{0}, b{1}, c{2}, ab{-1, &a, &b}, all{-1, &ab, &c};
};

/// A node whose links are indices, and one whose field throws.
struct Item {
  int id;
  int left = -1, right = -1;
};
using ItemSet =
    structure::Accessors<structure::Child<&Item::left>, structure::Child<&Item::right>, structure::Field<&Item::id>>;

runtime::Executable item_executable() {
  return sum_executable<structure::Child<&Item::left>, structure::Child<&Item::right>, structure::Field<&Item::id>>();
}

struct Moody {
  int id = 0;
  const Moody* left = nullptr;
  const Moody* right = nullptr;
  int word() const {
    if (id == 3) throw std::runtime_error("not in the mood");
    return id;
  }
};
using MoodySet = structure::Accessors<structure::Child<&Moody::left>, structure::Child<&Moody::right>,
                                      structure::Field<&Moody::word>>;

runtime::Executable moody_executable() {
  return sum_executable<structure::Child<&Moody::left>, structure::Child<&Moody::right>,
                        structure::Field<&Moody::word>>();
}

}  // namespace

TEST_CASE("roots are nodes, pointers, or ranges of either", "[runtime]") {
  const auto m = bound_functor();
  const Phrase p;
  const float expected = 1 + 2 + 3;
  CHECK(m(p.all)[0][0] == expected);
  CHECK(m(&p.all)[0][0] == expected);
  CHECK(m(std::make_shared<Word>(p.all))[0][0] == expected);
  CHECK(m(std::make_unique<Word>(p.all))[0][0] == expected);
  CHECK(m(std::vector<const Word*>{&p.c, &p.all})[1][0] == expected);
  CHECK(m({&p.c, &p.all})[1][0] == expected);
  CHECK(m({p.c, p.all})[1][0] == expected);
  CHECK(m({p.c, p.all}).node(&p.ab)[0] == 3);  // the nodes themselves, and no copies
  CHECK(m({std::make_shared<Word>(p.c), std::make_shared<Word>(p.all)})[1][0] == expected);
  CHECK(m.try_call({p.all}).value()[0][0] == expected);
  CHECK(error_of(Code::invalid_argument, [&] {
          m({&p.all, nullptr});
        }) == error_of(Code::invalid_argument, [&] {
          m(std::vector<const Word*>{&p.all, nullptr});
        }));
  const std::vector<std::shared_ptr<const Word>> shared{std::make_shared<const Word>(p.ab),
                                                        std::make_shared<const Word>(p.all)};
  CHECK(m(std::span(shared).subspan(1))[0][0] == expected);
  const std::vector<Word> values{p.a, p.all};
  CHECK(m(values)[1][0] == expected);
}

TEST_CASE("nodes in an arena are named by index or by address", "[runtime]") {
  const Functor<Item, ItemSet> m(std::make_shared<const runtime::Executable>(item_executable()));
  Functor<Item, ItemSet> handle = m;
  handle.bind("Emb", embedding(8));
  const std::vector<Item> items{{0}, {1}, {-1, 0, 1}};
  CHECK(m(arena(items), 2)[0][0] == 3);
  CHECK(m(arena(items), {2, 0})[1][0] == 1);
  CHECK(m(arena(items), std::vector<unsigned>{2u})[0][0] == 3);
  CHECK(m(arena(items), &items[2])[0][0] == 3);
  CHECK(m(arena(items), std::vector<int>{0, 2}).node(&items[2])[0] == 3);
  std::vector<float> out(8);
  CHECK(m(arena(items), 2, out) == 1);
  CHECK(out[7] == 3 + 14);
  CHECK_THAT(error_of(Code::out_of_range, [&] { m(arena(items), 3); }), Contains("3"));
}

TEST_CASE("a functor's type need not say what its model reads", "[runtime]") {
  struct Adder {
    AnyFunctor<Word> model;
  };
  const SumFunctor known = bound_functor();
  const Adder adder{known};
  const AnyFunctor<Word>& m = adder.model;
  const Phrase p;
  CHECK(m(p.all)[0][0] == 6);
  CHECK(m(std::make_unique<Word>(p.all))[0][0] == 6);
  CHECK(m(std::vector<const Word*>{&p.c, &p.all})[1][0] == 6);
  CHECK(m({&p.c, &p.all})[1][0] == 6);
  CHECK(m(std::vector<Word>{p.a, p.all})[1][0] == 6);
  std::vector<float> out(16);
  CHECK(m(std::vector<const Word*>{&p.all, &p.a}, out) == 2);
  CHECK(out[0] == 6);
  CHECK(m.number(p.all).num_nodes() == 5);
  CHECK_THAT(error_of(Code::invalid_structure, [&] { m(static_cast<const Word*>(nullptr)); }),
             Contains("root 0 is null"));
  AnyFunctor<Word> copy = m;  // a handle to the same model
  copy.bind("Emb", std::vector<float>(64, 2));
  CHECK(known(p.a)[0][0] == 2);
  copy.use(std::make_shared<Workers>(1));
  CHECK(copy(p.all)[0][0] == 6);
}

TEST_CASE("an AnyFunctor asks for the arena that links index when it is called", "[runtime]") {
  AnyFunctor<Item> m = Functor<Item, ItemSet>(std::make_shared<const runtime::Executable>(item_executable()));
  m.bind("Emb", embedding(8));
  const std::vector<Item> items{{0}, {1}, {-1, 0, 1}};
  CHECK(m(arena(items), {2, 0})[1][0] == 1);
  CHECK(m(arena(items), &items[2])[0][0] == 3);
  CHECK(error_of(Code::invalid_argument, [&] { m(items[2]); }) ==
        "children are indices here: call with the arena that they index, model(cortex::arena(nodes), roots)");
}

TEST_CASE("a result gives states by root, by node, by position and by name", "[runtime]") {
  const auto m = bound_functor();
  const Phrase p;
  const auto r = m({&p.all, &p.b, &p.all});
  CHECK(r.size() == 3);
  CHECK(r.num_nodes() == 5);
  CHECK(r[0].size() == 8);
  CHECK(r[0][7] == 6 + 21);
  CHECK(r[1][0] == 2);
  CHECK(r[2].data() == r[0].data());
  CHECK(r.root(1, "h")[0] == 2);
  CHECK(r.node(&p.ab)[0] == 3);
  CHECK(r.node<float>(&p.ab, "h")[1] == 5);
  std::vector<float> copy(8);
  r.copy_root(0, "h", std::span(copy));
  CHECK(copy[7] == 27);
  r.copy_node(&p.c, "h", std::span(copy));
  CHECK(copy[0] == 3);
}

TEST_CASE("a result refuses what the call did not have", "[runtime]") {
  const auto m = bound_functor();
  const Phrase p;
  const auto r = m(p.all);
  const Word stranger;
  const auto refused = [](auto f) { return error_of(Code::invalid_argument, f); };
  CHECK_THAT(refused([&] { r[1]; }), Contains("root 1 is asked for, but the call had 1 roots"));
  CHECK_THAT(refused([&] { r.node(&stranger); }), Contains("not in the call"));
  CHECK_THAT(refused([&] { r.root(0, "c"); }), Contains("model 'sum' has no state 'c'; its states are 'h'"));
  CHECK_THAT(refused([&] { r.root<double>(0, "h"); }),
             Contains("state 'h' holds f32 elements, but is asked for as f64"));
  std::vector<float> small(7);
  CHECK_THAT(refused([&] { r.copy_root(0, "h", std::span(small)); }),
             Contains("room for 8 elements of state 'h', but the span has 7"));
  const decltype(m(p.all)) none;
  CHECK(none.empty());
  CHECK_THAT(refused([&] { none[0]; }), Contains("0 roots"));
  CHECK_THAT(refused([&] { none.node(&p.a); }), Contains("not in the call"));
}

TEST_CASE("nodes that were numbered alone have no states, even where memory of an earlier call is used", "[runtime]") {
  const auto m = bound_functor();
  const Phrase p;
  for (const bool called : {false, true}) {
    if (called) CHECK(m(p.all)[0][0] == 6);
    const auto r = m.number(p.all);
    CHECK(r.size() == 1);
    std::vector<float> out(8);
    const auto refused = [](auto f) {
      CHECK_THAT(error_of(Code::invalid_argument, f),
                 Contains("state 'h' is asked for, but nodes were numbered alone"));
    };
    refused([&] { r[0]; });
    refused([&] { r.root(0, "h"); });
    refused([&] { r.node(&p.a); });
    refused([&] { r.copy_root(0, "h", std::span(out)); });
  }
  CHECK(m(p.all)[0][0] == 6);
}

TEST_CASE("a state is named by its placeholder, whose type it has", "[runtime]") {
  const Dim V{"vocabulary"}, H{"hidden", 8};
  const auto declare = [&] {
    Model<Word> model("sum", cortex::tree);
    const auto emb = model.input<float>("Emb", V, H);
    const auto h = model.placeholder<float>("h", H);
    const auto leaf = model.compute("leaf", H, [&](auto n, auto i) { return emb(word(n), i); });
    const auto rec = model.compute("rec", H, [&](auto n, auto i) { return h(left(n), i) + h(right(n), i); });
    const auto body = model.if_then_else([](auto n) { return is_leaf(n); }, leaf, rec);
    return std::tuple(model.recursion_op(h, body), h, emb);
  };
  const auto [program, h, emb] = declare();
  const auto [other_program, other_h, other_emb] = declare();
  runtime::Executable e = sum_executable();
  e.graph = program.graph();  // its fields and children come in an order of its own
  using Set = std::remove_cvref_t<decltype(program)>::Set;
  Functor<Word, Set> m(std::make_shared<const runtime::Executable>(e));
  m.bind(emb, embedding(8));
  const Phrase p;
  const auto r = m({&p.b, &p.all});
  CHECK(r.root(1, h)[0] == 6);
  CHECK(r.node(&p.c, h)[0] == 3);
  std::vector<float> copy(8);
  r.copy_root(1, h, copy);
  CHECK(copy[0] == 6);
  CHECK_THAT(error_of(Code::invalid_argument, [&, &other = other_h] { r.root(1, other); }),
             Contains("state 'h' belongs to another model than 'sum', which has one of that name"));
}

TEST_CASE("a state of several dimensions with padded rows is copied, not viewed", "[runtime]") {
  runtime::Executable e = sum_executable();
  const Dim A{"a", 2}, B{"b", 3};
  ir::BufferInfo info = *buffer("M", DType::f64, {dims::node, A, B}, ir::Role::state);
  info.layout = ir::Layout{{{0, 1, 0, 8}, {1, 1, 0, 4}, {2, 1, 0, 1}}, 0, 8};
  e.program.buffers.push_back(ir::Buffer(info));
  e.states.push_back({"M", DType::f64, {A, B}, 6});
  e.kernel = [](const codegen::KernelArgs* args) {
    sum_kernel(args);
    for (int i = 0; i < 8; ++i) static_cast<double*>(args->buffers[6])[i] = i;
  };
  auto m = functor(e).bind("Emb", embedding(8));
  const Word leaf{0};
  const auto r = m(leaf);
  CHECK_THAT(error_of(Code::invalid_argument, [&] { r.root<double>(0, "M"); }), Contains("use copy_root or copy_node"));
  std::vector<double> dense(6);
  r.copy_root(0, "M", std::span(dense));
  CHECK(dense == std::vector<double>{0, 1, 2, 4, 5, 6});
}

TEST_CASE("a call can write to the caller's span", "[runtime]") {
  const auto m = bound_functor();
  const Phrase p;
  const std::vector<const Word*> roots{&p.all, &p.a};
  std::vector<float> out(17, -1);
  CHECK(m(roots, out) == 2);
  CHECK(out[0] == 6);
  CHECK(out[8] == 1);
  CHECK(out[16] == -1);
  CHECK(m(p.b, std::span(out).first(8)) == 1);
  CHECK(out[0] == 2);
  CHECK(m({&p.b, &p.all}, out) == 2);
  CHECK(out[0] + out[8] == 8);
  std::array<float, 8> array;
  float plain[8];
  CHECK(m(p.b, array) + m(&p.c, plain) == 2);
  CHECK(array[0] + plain[0] == 5);
}

TEST_CASE("an output span that does not fit is refused before any work", "[runtime]") {
  auto m = functor(sum_executable());  // nothing is bound: a call that began would say so
  const Phrase p;
  std::vector<float> small(15);
  std::vector<double> wrong(16);
  const std::vector<const Word*> roots{&p.all, &p.a};
  CHECK_THAT(error_of(Code::invalid_argument, [&] { m(roots, small); }),
             Contains("room for 16 elements of state 'h', but the span has 15"));
  CHECK_THAT(error_of(Code::invalid_argument, [&] { m(roots, wrong); }),
             Contains("holds f32 elements, but is asked for as f64"));
}

TEST_CASE("no roots give no results", "[runtime]") {
  const auto m = bound_functor();
  const auto r = m(std::vector<const Word*>{});
  CHECK(r.empty());
  CHECK(r.num_nodes() == 0);
  std::vector<float> out;
  CHECK(m(std::vector<const Word*>{}, out) == 0);
}

TEST_CASE("an error leaves the model as it was", "[runtime]") {
  const auto m = bound_functor();
  const Phrase p;
  CHECK_THAT(error_of(Code::invalid_structure, [&] { m(static_cast<const Word*>(nullptr)); }),
             Contains("root 0 is null"));
  const Word unknown{8};
  CHECK_THAT(error_of(Code::out_of_range, [&] { m(unknown); }),
             Contains("'id'") && Contains("'Emb'") && Contains("8 rows"));
  const auto tried = m.try_call(unknown);
  CHECK(tried.error().code == Code::out_of_range);
  CHECK(m.try_call(p.all).value()[0][0] == 6);
  const auto moved = *m.try_call(p.all);
  CHECK(moved[0][0] == 6);
}

TEST_CASE("what the user's nodes throw passes through, and the model works on", "[runtime]") {
  Functor<Moody, MoodySet> m(std::make_shared<const runtime::Executable>(moody_executable()));
  m.bind("Emb", embedding(8));
  Moody good{1}, bad{3};
  for (int i = 0; i < 3; ++i) {
    CHECK_THROWS_AS(m(bad), std::runtime_error);
    CHECK(m(good)[0][0] == 2);
  }
}

TEST_CASE("the limit of a field follows the weights", "[runtime]") {
  auto m = functor(sum_executable());
  m.bind("Emb", embedding(2));
  const Word second{1}, third{2};
  CHECK(m(second)[0][0] == 2);
  CHECK_FALSE(m.try_call(third));
  m.bind("Emb", embedding(3));
  CHECK(m(third)[0][0] == 3);
  m.bind("Emb", embedding(1));
  CHECK_FALSE(m.try_call(second));
}

TEST_CASE("a workers' pool shares the columns of a call", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.schedule = Schedule{}.workers(3);
  CompileOptions options;
  options.workers = std::make_shared<Workers>(2);
  auto m = functor(e, options).bind("Emb", embedding(8));
  const Phrase p;
  for (int i = 0; i < 50; ++i) {
    const auto r = m(p.all);
    REQUIRE((r[0][0] == 6 && r[0][3] == 15 && r[0][7] == 27));
  }
  m.use(nullptr);
  CHECK(options.workers.use_count() == 1);
  CHECK(m(p.all)[0][7] == 27);
}

TEST_CASE("each worker has its own copy of a buffer of worker scope", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.schedule = Schedule{}.workers(2);
  ir::BufferInfo info = *buffer("t", DType::f32, {dims::batch, Dim{"hidden", 8}}, ir::Role::temp);
  info.scope = ir::Scope::worker;
  e.program.buffers.push_back(ir::Buffer(info));
  e.kernel = [](const codegen::KernelArgs* args) {
    float* const own = static_cast<float*>(args->buffers[6]);
    own[0] = float(args->worker + 1);
    args->barrier(args->barrier_context);
    if (args->worker == 0) static_cast<float*>(args->buffers[state_h])[0] = own[0] * 10 + float(args->num_workers);
  };
  CompileOptions options;
  options.workers = std::make_shared<Workers>(1);
  auto m = functor(e, options).bind("Emb", embedding(8));
  const Word leaf{0};
  CHECK(m(leaf)[0][0] == 12);
}

TEST_CASE("timings are taken when they are asked for", "[runtime]") {
  CompileOptions options;
  const Phrase p;
  CHECK(bound_functor(options)(p.all).linearize_ns() == 0);
  options.timings = true;
  const auto m = bound_functor(options);
  const auto r = m(p.all);
  CHECK(r.linearize_ns() > 0);
  CHECK(r.execute_ns() > 0);
}

TEST_CASE("numbering alone is timed by itself", "[runtime]") {
  CompileOptions options;
  const Phrase p;
  CHECK(bound_functor(options).number(p.all).linearize_ns() == 0);
  options.timings = true;
  const auto m = bound_functor(options);
  CHECK(m(p.all).execute_ns() > 0);
  const auto numbered = m.number(p.all);  // in that call's memory
  CHECK(numbered.linearize_ns() > 0);
  CHECK(numbered.execute_ns() == 0);
}

TEST_CASE("a model without machine code is interpreted", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.kernel = nullptr;
  const Word leaf{0};
  CHECK_THAT(error_of(Code::internal, [&] { functor(e).bind("Emb", embedding(1))(leaf); }),
             Contains("neither machine code nor an interpreter"));
  e.interpret = [](const void*, const codegen::KernelArgs& args) {
    sum_kernel(&args);
    static_cast<float*>(args.buffers[state_h])[0] += 100;
  };
  CHECK(functor(e).bind("Emb", embedding(1))(leaf)[0][0] == 101);
}

TEST_CASE("the texts of a model are printed by name", "[runtime]") {
  runtime::Executable e = sum_executable();
  e.program.body = ir::Block::make({});
  e.lowered = e.scheduled = e.tiled = e.program;
  e.lowered.name = "I", e.scheduled.name = "S", e.tiled.name = "T", e.llvm_text = "L";
  const auto m = functor(e);
  CHECK_THAT(m.print("ra"), Contains(e.graph.name));
  CHECK_THAT(m.print("ilir"), StartsWith("program I"));
  CHECK_THAT(m.print("scheduled"), StartsWith("program S"));
  CHECK_THAT(m.print("tiled"), StartsWith("program T"));
  CHECK(m.print("llvm") == "L");
  CHECK_THAT(error_of(Code::invalid_argument, [&] { m.print("asm"); }), Contains("'scheduled', 'tiled' and 'llvm'"));
}

TEST_CASE("options of compiling chain, and leave what they were made from as it was", "[runtime]") {
  const auto pool = std::make_shared<Workers>(1);
  const CompileOptions none;
  const CompileOptions all = none.on(Target::interpreter()).with_workers(pool).with_timings();
  CHECK((all.target && all.target->backend == Backend::interpreter && all.workers == pool && all.timings));
  CHECK((!none.target && !none.workers && !none.timings));
}

TEST_CASE("a range of roots that gives others the second time is refused, and nothing is written",
          "[runtime][refusal]") {
  struct Draining {
    std::vector<const Word*> roots;
    mutable int passes = 0;
    const Word* const* begin() const { return ++passes, roots.data(); }
    const Word* const* end() const { return roots.data() + (passes > 1 ? 1 : roots.size()); }
  };
  const auto m = bound_functor();
  const Phrase p;
  std::vector<float> out(3 * 8, -1.0f);
  const Draining draining{{&p.all, &p.ab, &p.c}};
  CHECK_THAT(error_of(Code::invalid_argument, [&] { m(draining, out); }),
             Contains("gave 3 of them when they were counted and then 1"));
  CHECK(out == std::vector<float>(3 * 8, -1.0f));
}

TEST_CASE("memory that is used up is an error like others for those who ask for results", "[runtime]") {
  const auto tried = attempt([]() -> int { throw std::bad_alloc(); });
  REQUIRE_FALSE(tried);
  CHECK(tried.error().code == Code::out_of_memory);
  CHECK_THAT(tried.error().message, Contains("free memory, or do less at a time"));
}

TEST_CASE("what gives no value can be attempted, too", "[runtime]") {
  int done = 0;
  const Result<Done> well = attempt([&] { ++done; });
  CHECK(well);
  const Result<Done> badly = attempt([&] { throw Error(Code::invalid_argument, "no"); });
  REQUIRE_FALSE(badly);
  CHECK(badly.error().message == "no");
  CHECK(done == 1);
}
