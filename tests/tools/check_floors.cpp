// Checks the floors of the library: who may include whom. Usage: check_floors <directory that holds cortex/>
//
// A file includes only files on floors below its own, or of its own floor from folders above it in the list; within a
// folder anything goes but a cycle; what a folder has in `detail` is its own. LLVM and CUDA headers stand in jit/ only,
// Z3's in pass/prove_z3.hpp, macros in base/config.hpp, and nothing depends on NDEBUG: translation units that differ in
// it must agree on inline functions.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

// The list, top to bottom. Being later in it is exactly being allowed to include the earlier ones.
const std::vector<std::string> folders = {"base", "ir",      "ra",  "structure", "dsl",     "lower", "schedule",
                                          "pass", "codegen", "jit", "runtime",   "weights", "tune",  "models"};
constexpr int max_lines = 600;

int errors = 0;

void error(const std::string& file, int line, const std::string& what) {
  ++errors;
  std::cout << file << ':' << line << ": " << what << '\n';
}

/// The folder's place in the list; files directly in cortex/ (the umbrella) stand above all.
int rank(const std::string& file) {
  const fs::path path = fs::path(file).lexically_relative("cortex");
  if (std::distance(path.begin(), path.end()) == 1) return static_cast<int>(folders.size());
  const auto found = std::find(folders.begin(), folders.end(), path.begin()->string());
  return found == folders.end() ? -1 : static_cast<int>(found - folders.begin());
}

struct Include {
  std::string file;
  int line;
};
using Graph = std::map<std::string, std::vector<Include>>;

void check_vendor(const std::string& file, int line, const std::string& header) {
  static const std::regex vendor("(llvm|llvm-c|cuda|nvrtc|cooperative_groups|cublas|cudnn)[/._].*|cuda.*|nvrtc.*");
  if (std::regex_match(header, vendor) && file.rfind("cortex/jit/", 0) != 0) {
    error(file, line, "<" + header + ">: LLVM and CUDA headers are for jit/ only");
  }
  if (header.rfind("z3", 0) == 0 && file != "cortex/pass/prove_z3.hpp") {
    error(file, line, "<" + header + ">: Z3 is for pass/prove_z3.hpp only");
  }
}

/// What others need of a folder is no detail of it. Seen are names with the namespace of their folder.
void check_detail(const std::string& file, int number, const std::string& line) {
  static const std::regex use(R"((\w+)::detail::)");
  for (std::sregex_iterator at(line.begin(), line.end(), use), end; at != end; ++at) {
    const std::string space = (*at)[1];
    const std::string folder = space == "cortex" ? "base" : space == "tuning" ? "tune" : space;
    const bool known = std::find(folders.begin(), folders.end(), folder) != folders.end();
    if (known && file.rfind("cortex/" + folder + "/", 0) != 0)
      error(file, number, space + "::detail is for " + folder + "/ only");
  }
}

/// Reads one file: checks its lines and returns what it includes of the library.
std::vector<Include> read(const fs::path& root, const std::string& file) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)re");
  static const std::regex define(R"(^\s*#\s*define\b.*)");
  static const std::regex ndebug(R"(.*\bNDEBUG\b.*|^\s*assert\s*\(.*|.*<cassert>.*)");
  std::vector<Include> includes;
  std::ifstream in(root / file);
  std::string line;
  std::smatch match;
  int number = 0;
  bool once = false;
  while (std::getline(in, line)) {
    ++number;
    once = once || line == "#pragma once";
    if (std::regex_match(line, match, include)) {
      const std::string header = match[2];
      const bool ours = header.rfind("cortex/", 0) == 0;
      if (match[1] == "\"" && !ours) error(file, number, "\"" + header + "\": spell it \"cortex/...\"");
      if (match[1] == "<" && ours) error(file, number, "<" + header + ">: inside the library spell it \"cortex/...\"");
      if (ours) {
        includes.push_back({header, number});
      } else {
        check_vendor(file, number, header);
      }
    }
    if (std::regex_match(line, define) && file != "cortex/base/config.hpp") {
      error(file, number, "macros are for base/config.hpp only");
    }
    check_detail(file, number, line);
    if (std::regex_match(line, ndebug)) error(file, number, "no inline code depends on NDEBUG");
  }
  if (!once) error(file, 1, "no #pragma once");
  if (number > max_lines) {
    std::cout << file << ": warning: " << number << " lines; over " << max_lines << " ask whether it is one thing\n";
  }
  return includes;
}

void check_direction(const Graph& graph) {
  for (const auto& [file, includes] : graph) {
    if (rank(file) < 0) error(file, 1, "this folder is not in the list of floors");
    for (const Include& include : includes) {
      if (!graph.count(include.file)) {
        error(file, include.line, include.file + " does not exist");
      } else if (rank(include.file) > rank(file)) {
        error(file, include.line, include.file + " stands on a floor above");
      }
    }
  }
}

void check_cycles(const Graph& graph) {
  enum { unseen, open, done };
  std::map<std::string, int> state;
  std::vector<std::string> path;
  const std::function<void(const std::string&)> visit = [&](const std::string& file) {
    state[file] = open;
    path.push_back(file);
    const auto found = graph.find(file);
    if (found != graph.end()) {
      for (const Include& include : found->second) {
        if (state[include.file] == open) {
          std::string cycle;
          for (auto at = std::find(path.begin(), path.end(), include.file); at != path.end(); ++at)
            cycle += *at + " -> ";
          error(file, include.line, "cycle: " + cycle + include.file);
        } else if (state[include.file] == unseen) {
          visit(include.file);
        }
      }
    }
    path.pop_back();
    state[file] = done;
  };
  for (const auto& entry : graph) {
    if (state[entry.first] == unseen) visit(entry.first);
  }
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc != 2) return std::cerr << "usage: check_floors <directory that holds cortex/>\n", 2;
  const fs::path root = argv[1];
  Graph graph;
  for (const auto& entry : fs::recursive_directory_iterator(root / "cortex")) {
    if (!entry.is_regular_file()) continue;
    const std::string file = entry.path().lexically_relative(root).generic_string();
    if (entry.path().extension() != ".hpp") {
      error(file, 1, "only .hpp files stand here");
    } else {
      graph[file] = read(root, file);
    }
  }
  check_direction(graph);
  check_cycles(graph);
  std::cout << graph.size() << " files, " << errors << " errors\n";
  return errors == 0 ? 0 : 1;
}
