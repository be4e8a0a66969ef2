#include "cortex/codegen/llvm_modules.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <string>

using cortex::Vector;
using cortex::codegen::llvm_modules;

namespace {

const std::string heading = "; program p\n; %b0 x f32 weight\n\n";
const std::string rest =
    "declare float @llvm.fma.f32(float, float, float)\n\nattributes #0 = { nounwind }\n\n!0 = !{}\n";

std::string function(const std::string& signature, int lines) {
  std::string text = "define " + signature + " {\nentry:\n";
  for (int i = 0; i < lines; ++i) text += "  %v" + std::to_string(i) + " = add i32 0, 0\n";
  return text + "  ret void\n}\n\n";
}

/// A kernel of tiles of these many lines, which call nothing, and of a main function that calls them.
std::string kernel(const Vector<int>& tiles) {
  std::string text = heading, calls;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const std::string name = "@k." + std::to_string(t);
    text += function("internal void " + name + "(ptr noundef %args, i64 %p1) #2", tiles[t]);
    calls += "  call void " + name + "(ptr %args, i64 0) nounwind\n";
  }
  return text + "define void @k(ptr noundef %args) #0 {\nentry:\n" + calls + "  ret void\n}\n\n" + rest;
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a short kernel is one module, the text as it is", "[llvm_modules]") {
  const std::string text = kernel({10, 10, 10});
  CHECK(llvm_modules(text, text.size()) == Vector<std::string>{text});
  CHECK(llvm_modules(text, text.size() / 2 + 1) == Vector<std::string>{text});
  CHECK(llvm_modules(text, text.size() / 2).size() == 2);
  CHECK(llvm_modules("", 1) == Vector<std::string>{""});
  CHECK(llvm_modules("no function", 1) == Vector<std::string>{"no function"});
}

TEST_CASE("each function is defined in one module, and declared in the others", "[llvm_modules]") {
  const std::string text = kernel({40, 10, 30, 20, 10});
  const Vector<std::string> modules = llvm_modules(text, text.size() / 3);
  REQUIRE(modules.size() == 3);
  std::map<std::string, int> defined;
  for (const std::string& module : modules) {
    CHECK(module.starts_with(heading));
    CHECK(module.ends_with(rest));
    CHECK(count(module, "internal") == 0);
    CHECK(count(module, "define ") + count(module, "declare ") == 7);  // and LLVM's own
    for (const std::string name : {"@k.0", "@k.1", "@k.2", "@k.3", "@k.4", "@k"}) {
      const std::string signature =
          name == "@k" ? "void @k(ptr noundef %args) #0" : "hidden void " + name + "(ptr noundef %args, i64 %p1) #2";
      const int here = count(module, "define " + signature + " {\nentry:\n");
      CHECK(here + count(module, "declare " + signature + "\n") == 1);
      defined[name] += here;
    }
  }
  CHECK(defined.size() == 6);
  for (const auto& [name, times] : defined) CHECK(times == 1);
}

TEST_CASE("a function moves as a whole", "[llvm_modules]") {
  const std::string text = kernel({40, 10, 30});
  std::string all;
  for (const std::string& module : llvm_modules(text, text.size() / 3)) all += module;
  for (const int lines : {40, 10, 30}) {
    const std::string tile = function("", lines);
    CHECK(count(all, tile.substr(tile.find("entry:"))) == 1);
  }
}

TEST_CASE("modules are about as long as each other, and never more than functions", "[llvm_modules]") {
  const std::string text = kernel({90, 80, 70, 60, 50, 40, 30, 20, 10, 100});
  const Vector<std::string> modules = llvm_modules(text, text.size() / 4);
  REQUIRE(modules.size() == 4);
  for (const std::string& a : modules)
    for (const std::string& b : modules) CHECK(double(a.size()) < 1.3 * double(b.size()));
  CHECK(llvm_modules(text, 1).size() == 11);
  CHECK(llvm_modules(text, text.size() / 4) == modules);
}
