// Register tiles that a schedule asks for: refused where they have no meaning, told by explain.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <vector>

#include "cortex/base/config.hpp"
#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
#include "runtime/hand_made.hpp"
#include "support/compile.hpp"
#include "support/models.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

auto interpreted(const Schedule& schedule) {
  CompileOptions options;
  options.target = Target::interpreter();
  return compile(tree_rnn(4), schedule, options);
}

}  // namespace

TEST_CASE("tiles that no machine has are refused", "[schedule][refusal]") {
  CHECK_THROWS_WITH(interpreted(Schedule{}.tile_rows(25)),
                    "tile_rows: 25 were asked for; give a number from 1 to 24, or 0 to leave it to the compiler");
  CHECK_THROWS_WITH(interpreted(Schedule{}.tile_vectors(-1)), Contains("tile_vectors: -1 were asked for"));
  CHECK_THROWS_WITH(interpreted(Schedule{}.tile_gates(17)), Contains("tile_gates: 17 were asked for"));
  CHECK_THROWS_WITH(interpreted(Schedule{}.tile_rows(2).loops(Loops{})), Contains("with loops() there are none"));
  CHECK_THROWS_WITH(interpreted(Schedule{}.fuse_nothing().loops(Loops{})),
                    Contains("fuse_nothing() is about the compiler's own loops"));
  CHECK_THROWS_WITH(
      interpreted(Schedule{}.alternate_sweeps().loops(Loops{})),
      Contains("alternate_sweeps and sweep_forward shape the compiler's own tiles; with loops() there are none"));
  CHECK(interpreted(Schedule{}.tile_rows(24).tile_vectors(8).tile_gates(0)).executable().schedule.tiling.rows == 24);
}

TEST_CASE("explain tells the tiles that were asked for", "[schedule][explain]") {
  CHECK_THAT(explain(interpreted(Schedule::standard().tile_rows(3).tile_gates(1))),
             Contains("tiles      at most 3 rows, at most 1 gates side by side"));
  CHECK_THAT(explain(interpreted(Schedule::standard().sweep_forward())),
             Contains("tiles      all sweeps over weights forward"));
  CompileOptions options;
  options.target = Target::interpreter();
  CHECK_THAT(
      explain(compile(tree_fc(40), Schedule::standard().alternate_sweeps(), options)),
      Contains("sweeps     every other one over a worker's weights goes backwards\n") && !Contains("\n  tiles  "));
  CHECK_THAT(explain(compile(tree_fc(40), Schedule::standard(), options)), !Contains("\n  sweeps  "));
  CHECK_THAT(explain(interpreted(Schedule::standard())), !Contains("\n  tiles  "));
}

TEST_CASE("tiles that fit the slices of all of a schedule's workers fit those of fewer, too", "[schedule][equality]") {
  std::deque<Word> nodes;
  int id = 0;
  std::vector<const Word*> roots;
  for (const int depth : {3, 1, 4}) roots.push_back(tree_of_depth(nodes, depth, id));
  for (const int hidden : {32, 50, 64, 96, 112, 160})  // in lines of 16
    for (const int workers : {2, 3, 4, 6}) {
      if (CORTEX_ADDRESS_SANITIZER && hidden > 64) continue;  // half a minute
      const std::size_t H = std::size_t(hidden);
      const auto program = tree_fc(hidden);
      const auto first_call = [&](const std::shared_ptr<Workers>& pool) {  // in memory that no other has written
        auto model = compile(program, Schedule::standard().workers(workers).groups(1),
                             CompileOptions{}.on(Target::interpreter()).with_workers(pool));
        model.bind("Emb", uniform(64 * H, 1, 1));
        model.bind("Wl", uniform(H * H, 0.2F, 2)).bind("Wr", uniform(H * H, 0.2F, 3));
        std::vector<float> out(roots.size() * H);
        model(roots, out);
        return out;
      };
      const std::vector<float> alone = first_call(nullptr);
      for (int helpers = 1; helpers < workers; ++helpers) {
        INFO("hidden " << hidden << ", " << helpers + 1 << " of " << workers << " workers");
        CHECK(first_call(std::make_shared<Workers>(helpers)) == alone);
      }
    }
}

TEST_CASE("tiles of slices that are all whole ones have no code for a rest", "[schedule]") {
  const auto length = [](int hidden, int workers) {
    return compile(tree_fc(hidden), Schedule::standard().workers(workers), CompileOptions{}.on(Target::interpreter()))
        .print("tiled")
        .size();
  };
  CHECK(3 * length(64, 2) < 2 * length(64, 3));
  CHECK(3 * length(64, 2) < 4 * length(64, 1));
}

TEST_CASE("matrices that products sweep over lie on pages that are chosen, and a table's rows on any", "[runtime]") {
  need_llvm();
  if (CORTEX_ADDRESS_SANITIZER) skip("AddressSanitizer is to see each block by itself");
  runtime::HugePages& pages = runtime::HugePages::of_process();
  auto model = compile_here(tree_fc(256), Schedule::standard().tabulate_nothing());
  std::byte* const any = pages.take(65536);
  const std::size_t before = pages.count();
  model.bind("Emb", uniform(100 * 256, 1, 1));
  CHECK(pages.count() == before);
  model.bind("Wl", uniform(256 * 256, 1, 2)).bind("Wr", uniform(256 * 256, 1, 3));
  CHECK(pages.count() == before + 1);
  pages.give_back(any, 65536);
}
