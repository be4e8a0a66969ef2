// Weights stored in two bytes or one: what the pass makes of small programs, and that all that follows agrees with it.
#include "cortex/schedule/store_weights.hpp"

#include <catch2/catch.hpp>

#include "cortex/pass/flatten_storage.hpp"
#include "cortex/pass/share_loads.hpp"
#include "cortex/pass/vectorize.hpp"
#include "support/golden.hpp"
#include "support/small_loops.hpp"

using namespace cortex;
using namespace cortex::test;
using namespace cortex::test::small;

namespace {

ir::Program stored(const ir::Stmt& body, const Schedule& schedule) {
  return program_of(schedule::store_weights(body, schedule));
}

/// Two columns of a weight at a time: sums run over its first dimension here, and over its second there.
ir::Stmt both_ways() {
  const auto sum = [](const ir::Buffer& y, bool transposed) {
    return over(H, "i", [&](auto& i) {
      return sum_over(
          H,
          [&](auto& r) {
            return load(Q, transposed ? std::vector{r, i} : std::vector{i, r}) * load(x, {r});
          },
          [&](auto& total) { return store(y, {i}, total); });
    });
  };
  return block({sum(y, false), sum(y2, true)});
}

/// Terms that are no multiples of the weight.
ir::Stmt no_product() {
  return over(H, "i", [](auto& i) {
    return sum_over(
        K,
        [&](auto& r) {
          return tanh(load(W, {i, r})) * load(v, {r});
        },
        [&](auto& total) { return store(y, {i}, total); });
  });
}

/// One accumulator for all elements.
ir::Stmt accumulator_outside() {
  const ir::Buffer acc = local("acc");
  return ir::Alloc::make(
      acc, over(H, "i", [&](auto& i) {
        return block({store(acc, {}, number(0)),
                      over(K, "r",
                           [&](auto& r) {
                             return store(acc, {}, ir::Fma::make(load(W, {i, r}), load(v, {r}), load(acc, {})));
                           }),
                      store(y, {i}, load(acc, {}))});
      }));
}

}  // namespace

TEST_CASE("a stored weight is widened where it is read, and scales multiply the finished sum", "[schedule][golden]") {
  const Schedule s;
  check_golden("schedule/store_weights/product_bf16.ilir", ir::print(stored(product(), s.store_weights(DType::bf16))));
  check_golden("schedule/store_weights/product_i8.ilir", ir::print(stored(product(), s.store_weights(DType::i8))));
  check_golden("schedule/store_weights/no_product_i8.ilir",
               ir::print(stored(no_product(), s.store_weights(DType::i8))));
  check_golden("schedule/store_weights/accumulator_outside_i8.ilir",
               ir::print(stored(accumulator_outside(), s.store_weights(DType::i8))));
  check_golden("schedule/store_weights/two_factors_i8.ilir",
               ir::print(stored(product(), s.store_weights(DType::i8).store("v", DType::i8))));
}

TEST_CASE("a weight that is summed over along each dimension has one scale", "[schedule][golden]") {
  check_golden("schedule/store_weights/both_ways_i8.ilir",
               ir::print(stored(both_ways(), Schedule{}.store_weights(DType::i8))));
}

TEST_CASE("nothing is stored otherwise unless the schedule says so", "[schedule][noop]") {
  CHECK(schedule::store_weights(product(), {}).as<ir::For>() != nullptr);
  const ir::Stmt body = product();
  CHECK(schedule::store_weights(body, Schedule{}).same_as(body));
  CHECK(schedule::store_weights(body, Schedule{}.store_weights(DType::i8).store("W", DType::f32)).same_as(body));
  CHECK(schedule::store_weights(body, Schedule{}.store("U", DType::bf16)).same_as(body));
  const ir::Stmt sum = matrix();  // no sum reads a weight here
  CHECK(schedule::store_weights(sum, Schedule{}.store_weights(DType::bf16)).same_as(sum));
}

TEST_CASE("packed, tiled, vectorized and flat programs read the same stored elements", "[schedule][equality]") {
  for (const auto program : {product, both_ways, no_product, two_products, rows_of_t})
    for (const DType type : {DType::bf16, DType::f16, DType::i8}) {
      const ir::Program loops = stored(program(), Schedule{}.store_weights(type));
      INFO(ir::print(loops));
      ir::verify(loops, ir::Level::scheduled);
      ir::Program tiled = program_of(schedule::tile_nests(schedule::pack_weights(loops.body, {}), {}));
      tiled.body = pass::share_loads(tiled.body);
      CHECK(difference(loops, tiled) == "");
      tiled.body = pass::vectorize(tiled.body);
      const ir::Program flat = pass::flatten_storage(tiled);
      ir::verify(flat, ir::Level::device);
      CHECK(difference(loops, flat) == "");
    }
}

TEST_CASE("the rows that share a tile share a weight's widened elements", "[schedule]") {
  const ir::Program loops = stored(of_children(), Schedule{}.store_weights(DType::bf16));
  const ir::Stmt tiled = schedule::tile_nests(schedule::pack_weights(loops.body, {}), {});
  const auto widened = [](const ir::Stmt& body) {
    int most = 0;
    ir::visit_with(body, [&](const ir::For& loop) {
      if (!loop.body.as<ir::Block>() && !loop.body.as<ir::LetStmt>()) return;
      int here = 0;
      ir::visit_with(
          loop.body, [&](const ir::For&) { return false; },
          [&](const ir::Cast& cast) { here += is_narrow(cast.a.dtype()); });
      most = std::max(most, here);
    });
    return most;
  };
  CHECK(widened(tiled) > 4);
  CHECK(widened(pass::share_loads(tiled)) <= 4);
}
