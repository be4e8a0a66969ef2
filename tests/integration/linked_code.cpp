// Machine code that is written to an object file, linked elsewhere, and found by the program that has it.
#include "cortex/jit/linked_code.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "cortex/explain.hpp"
#include "cortex/models/tree_gru.hpp"
#include "support/compile.hpp"
#include "support/error_of_call.hpp"
#include "weights/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Contains;

namespace {

struct Phrase {
  int word = 0;
  std::vector<const Phrase*> parts;
};

/// `hidden` makes another model of it, and other code.
auto gru(int hidden) {
  return models::tree_gru<Phrase>(field<&Phrase::word>, children<&Phrase::parts>,
                                  {.vocabulary = 3, .input = 8, .hidden = hidden});
}

const CompileOptions oldest = CompileOptions{}.on(Target::x86_64(2));

template <class Model>
std::vector<float> states_of(Model& model) {
  unsigned seed = 1;
  for (const runtime::WeightSpec& weight : model.executable().weights) {
    std::size_t count = 1;
    for (const Dim& dim : weight.dims) count *= std::size_t(dim.kind() == DimKind::open ? 3 : dim.extent());
    model.bind(weight.name, uniform(count, 0.5f, seed++));
  }
  const Phrase a{0, {}}, b{1, {}}, c{2, {&a, &b}}, d{0, {&c}}, e{1, {&d}};
  const auto result = model(e);
  return {result[0].begin(), result[0].end()};
}

/// A shared library of what `write_code` writes.
template <class Model>
std::string library_of(const Model& model, const TemporaryFolder& folder, const std::string& name) {
  const std::string object = (folder.path / (name + ".o")).string(),
                    library = (folder.path / ("lib" + name + ".so")).string();
  model.write_code(object);
  const std::string command = "c++ -shared '" + object + "' -o '" + library + "'";
  REQUIRE(std::system(command.c_str()) == 0);
  return library;
}

void need_x86_64() {
  if (!jit::has_level(*cpu_level("x86-64-v2"))) skip("no x86-64 of level 2");
}

}  // namespace

TEST_CASE("a model whose code the program has loaded is not compiled, and computes the same bits") {
  need_llvm();
  need_x86_64();
  const TemporaryFolder folder;
  const auto program = gru(24).program;
  auto compiled = compile(program, oldest);
  CHECK_FALSE(compiled.executable().is_linked);
  const std::vector<float> expected = states_of(compiled);
  CHECK_THAT(explain(compiled), Contains("to machine code") && !Contains("that the program has"));

  load_code(library_of(compiled, folder, "gru"));
  auto linked = compile(program, oldest);
  CHECK(linked.executable().is_linked);
  CHECK(linked.executable().kernel != compiled.executable().kernel);
  CHECK(states_of(linked) == expected);
  CHECK_THAT(explain(linked), Contains("to machine code that the program has"));

  // Any other code is another's: of a schedule, a level, a size, or of this machine alone
  CHECK_FALSE(compile(program, Schedule::standard().exact_activations(), oldest).executable().is_linked);
  CHECK_FALSE(compile(gru(32).program, oldest).executable().is_linked);
  CHECK_FALSE(compile(program).executable().is_linked);
  if (jit::has_level(*cpu_level("x86-64-v3")))
    CHECK_FALSE(compile(program, CompileOptions{}.on(Target::x86_64(3))).executable().is_linked);
}

TEST_CASE("one library may have the code of several models, and of a pool's threads") {
  need_llvm();
  need_x86_64();
  const TemporaryFolder folder;
  const Schedule two = Schedule::standard().workers(2);
  const CompileOptions helped = CompileOptions(oldest).with_workers(std::make_shared<Workers>(1));
  auto one = compile(gru(40).program, two, helped), other = compile(gru(48).program, two, helped);
  one.write_code((folder.path / "one.o").string());
  one.write_code((folder.path / "again.o").string());
  other.write_code((folder.path / "other.o").string());
  const std::string in = folder.path.string();
  REQUIRE(std::system(
              ("c++ -shared '" + in + "/one.o' '" + in + "/again.o' '" + in + "/other.o' -o '" + in + "/libboth.so'")
                  .c_str()) == 0);
  load_code(in + "/libboth.so");
  for (const int hidden : {40, 48}) {
    auto linked = compile(gru(hidden).program, two, helped);
    CHECK(linked.executable().is_linked);
    CHECK(states_of(linked) == states_of(hidden == 40 ? one : other));
  }
}

TEST_CASE("the code of what runs on one machine alone, or nowhere, is not written") {
  const TemporaryFolder folder;
  const std::string path = (folder.path / "code.o").string();
  auto interpreted = compile(gru(8).program, CompileOptions{}.on(Target::interpreter()));
  CHECK_THAT(error_of_call([&] { interpreted.write_code(path); }),
             Contains("invalid_argument") && Contains("the model is interpreted, and has no machine code"));
  need_llvm();
  auto here = compile(gru(8).program);
  CHECK_THAT(error_of_call([&] { here.write_code(path); }),
             Contains("invalid_argument") && Contains("compiled for this CPU") && Contains("Target::x86_64(3)"));
  CHECK_FALSE(std::ifstream(path).good());
}

TEST_CASE("an object file is written whole or not at all, and what cannot be written is named") {
  need_llvm();
  need_x86_64();
  const TemporaryFolder folder;
  const auto model = compile(gru(8).program, oldest);
  const std::string nowhere = (folder.path / "none" / "code.o").string();
  CHECK_THAT(error_of_call([&] { model.write_code(nowhere); }),
             Contains("invalid_argument: write_code: '" + nowhere + "': cannot be written: No such file or directory"));
  const std::string pipe = (folder.path / "pipe").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THAT(error_of_call([&] { model.write_code(pipe); }), Contains("is no regular file"));
  CHECK(error_of_call([&] { model.write_code(""); }) != "no error");
  CHECK_THAT(error_of_call([&] { model.write_code(nowhere + '\0' + "x"); }), Contains("has a zero in its name"));

  const std::string path = (folder.path / "code.o").string();
  std::ofstream(path) << std::string(1 << 20, 'x');  // a longer one
  model.write_code(path);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  CHECK(bytes.substr(0, 4) ==
        "\x7f"
        "ELF");
  CHECK(bytes.size() < (1 << 20));
}

TEST_CASE("a library that is none is refused in the loader's words") {
  const TemporaryFolder folder;
  const std::string path = (folder.path / "libnone.so").string();
  CHECK_THAT(error_of_call([&] { load_code(path); }), Contains("invalid_argument: load_code: " + path));
  CHECK_THAT(error_of_call([&] { load_code(""); }), Contains("invalid_argument: load_code: '' names no library"));
  std::ofstream(path) << "no library";
  CHECK_THAT(error_of_call([&] { load_code(path); }), Contains("load_code: " + path));
}

TEST_CASE("a level of x86-64 is 2, 3 or 4") {
  for (const int level : {-1, 0, 1, 5})
    CHECK_THAT(error_of_call([&] { Target::x86_64(level); }),
               Contains("invalid_argument: Target::x86_64: there is no level " + std::to_string(level)));
  CHECK(Target::x86_64(2).vector_bytes == 16);
  CHECK(Target::x86_64(3).vector_bytes == 32);
  CHECK(Target::x86_64(4).vector_bytes == 64);
  for (const int level : {2, 3, 4}) CHECK(Target::x86_64(level).level()->name == Target::x86_64(level).cpu);
  Target narrower = Target::x86_64(3);
  narrower.features += ",-fma";
  CHECK_FALSE(narrower.level());
  CHECK_FALSE(Target::interpreter().level());
}

TEST_CASE("a model whose code the program lacks is compiled, and without LLVM refused with what to do") {
  need_x86_64();
  if (built_with_llvm()) {
    CHECK_FALSE(compile(gru(16).program, oldest).executable().is_linked);
    return;
  }
  CHECK_THAT(error_of_call([&] { compile(gru(16).program, oldest); }),
             Contains("unavailable") && Contains("no code of model 'tree_gru' for x86-64-v2") &&
                 Contains("Functor::write_code") && Contains("load_code"));
  CHECK_THAT(error_of_call([&] { compile(gru(16).program); }), Contains("unavailable") && Contains("Target::x86_64()"));
}
