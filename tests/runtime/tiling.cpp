// Register tiles that a schedule asks for: refused where they have no meaning, told by explain.
#include <catch2/catch.hpp>

#include "cortex/explain.hpp"
#include "cortex/loops.hpp"
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
