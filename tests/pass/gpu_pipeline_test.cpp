// The passes that only a GPU's pipeline has: what each makes of a program, to the letter.
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "cortex/pass/loops.hpp"
#include "support/golden.hpp"
#include "support/gpu_passes.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/node_tables.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

TEST_CASE("zero_absent_rows makes of the running example what its golden file shows", "[pass][gpu]") {
  check_golden("pass/zero_absent_rows/tree_rnn.ilir",
               text_after("zero_absent_rows", tree_rnn(8).graph(), how(Group::block, 1)));
}

TEST_CASE("zero_absent_rows leaves a program alone that reads no children", "[pass][gpu]") {
  const ir::Program lowered = lower::lower(tree_rnn(8).graph(), Schedule::standard());
  const ir::Stmt leaves = schedule::stmts_of(lowered.body)[0];
  CHECK(pass::zero_absent_rows(leaves).same_as(leaves));
}

TEST_CASE("insert_thread_barriers makes of a TreeGRU what its golden file shows", "[pass][gpu]") {
  check_golden("pass/insert_thread_barriers/tree_gru.ilir",
               text_after("insert_thread_barriers", tree_gru(8).graph(), how(Group::block, 1)));
}

TEST_CASE("insert_thread_barriers does nothing twice", "[pass][gpu]") {
  const ir::Program once = after("insert_thread_barriers", tree_gru(8).graph(), how(Group::block, 1));
  CHECK(pass::insert_thread_barriers(once.body).same_as(once.body));
}

TEST_CASE("keep_weights makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/keep_weights/tree_gru.ilir",
               text_after("keep_weights", tree_gru(16).graph(), how(Group::cluster, 2)));
}

TEST_CASE("keep_weights leaves weights where they are if it is asked to", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::block, 1);
  wish.weights = GpuSchedule::Weights::streamed;
  CHECK(text_after("share_threads", tree_gru(16).graph(), wish).find("on chip") == std::string::npos);
}

TEST_CASE("keep_weights refuses weights that are to be resident and do not fit", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::block, 1);
  wish.weights = GpuSchedule::Weights::resident;
  CHECK_THAT(refusal(wish, tree_gru(256).graph()),
             Contains("weights are to stay in shared memory, but a slice of 'Ur_packed', 262144 bytes, does not fit"));
}

TEST_CASE("share_threads makes of the running example what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/share_threads/tree_rnn.ilir",
               text_after("share_threads", tree_rnn(40).graph(), how(Group::block, 1)));
}

TEST_CASE("share_threads makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/share_threads/tree_gru.ilir",
               text_after("share_threads", tree_gru(16).graph(), how(Group::cluster, 2)));
}

TEST_CASE("keep_registers makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::cluster, 2, 512);
  wish.weights = GpuSchedule::Weights::registers;
  check_golden("schedule/keep_registers/tree_gru.ilir", text_after("keep_registers", tree_gru(16).graph(), wish));
}

namespace {

/// `for b: for n: a = 0; for r: a += W[worker,r] * x[b,r] + W[3 - worker,r]; y[b,worker] = a`, with `columns` workers.
ir::Program sums_of_levels(int columns) {
  const Dim H("hidden", columns), R("input", 20), B("level", 3);
  const ir::Buffer W = buffer("W", {H, R}, ir::Role::weight), x = buffer("x", {B, R}, ir::Role::weight);
  const ir::Buffer y = buffer("y", {B, H}, ir::Role::state);
  const ir::Expr b = var("b"), i = var("i"), j = var("j"), worker = ir::call(ir::UfKind::worker, "worker");
  const ir::Stmt sum = sum_over(
      R,
      [&](const ir::Expr& r) {
        return load(W, {i, r}) * load(x, {b, r}) + load(W, {j, r});
      },
      [&](const ir::Expr& sum) {
        return store(y, {b, i}, sum);
      });
  const ir::Stmt level = ir::LetStmt::make(i, worker, ir::LetStmt::make(j, ir::imm(columns - 1) - i, sum));
  const ir::Stmt body = ir::For::make(b, dims::all_batches, ir::imm(3), ir::ForKind::serial, level);
  return {"sums", {y, W, x}, body, ir::Level::scheduled};
}

schedule::GpuShape with_registers(int count) {
  schedule::GpuShape shape;
  shape.weight_registers = count;
  return shape;
}

}  // namespace

TEST_CASE("elements in registers and the rest give the sums that memory gives", "[schedule][gpu]") {
  for (const int room : {16, 24, 100}) {
    ir::Program program = sums_of_levels(4);
    ir::Storage storage;
    for (int e = 0; e < 80; ++e) storage["W"].push_back(e % 7 - 3), storage["x"].push_back(e % 5 - 2);
    storage["x"].resize(60);
    ir::Storage kept = storage;
    ir::InterpretOptions four;
    four.workers = 4;
    ir::interpret(program, {}, storage, four);
    program.body = schedule::keep_registers(program.body, with_registers(room));
    ir::verify(program, ir::Level::scheduled);
    ir::interpret(program, {}, kept, four);
    CAPTURE(room, ir::print(program));
    CHECK(kept.at("y") == storage.at("y"));
    std::int64_t held = 0;
    ir::visit_with(program.body, [&](const ir::Alloc& alloc) {
      if (alloc.buffer->role == ir::Role::weight) held += alloc.buffer->dims[0].extent();
    });
    CHECK(held == (room == 100 ? 40 : room));
  }
}

TEST_CASE("keep_registers does nothing twice: what it has made it refuses, as there is nothing left",
          "[schedule][gpu][refusal]") {
  const ir::Stmt once = schedule::keep_registers(sums_of_levels(4).body, with_registers(100));
  CHECK_THROWS_WITH(schedule::keep_registers(once, with_registers(100)),
                    Contains("at no level a thread reads the same elements of a matrix"));
}

TEST_CASE("keep_registers refuses matrices of which registers hold next to nothing", "[schedule][gpu][refusal]") {
  CHECK_THROWS_WITH(schedule::keep_registers(sums_of_levels(4).body, with_registers(3)),
                    Contains("a thread has room for 3 elements beside what it works with, and of 2 matrices 'W' "
                             "would get 1 of 20; take fewer threads"));
}

TEST_CASE("what weights in registers do not go with is refused with the reason", "[schedule][gpu][refusal]") {
  GpuSchedule wish = how(Group::block, 1);
  wish.weights = GpuSchedule::Weights::registers;
  CHECK_THAT(refusal(wish, tree_gru(64).graph()),
             Contains("'Ur_packed' has more columns in a slice than a block has threads") &&
                 Contains("take more blocks or threads"));
  CHECK_THAT(refusal(wish, tree_gru(1).graph()),
             Contains("all threads read the same elements of 'Ur_packed', which has one column; keep the weights in "
                      "shared memory"));
  wish.threads = 1024;
  CHECK_THAT(refusal(wish, tree_gru(64).graph()),
             Contains("a thread of 1024 a block has 64, all for what it works with; take 512 threads or fewer"));
  wish = how(Group::block, 1);
  wish.weights = GpuSchedule::Weights::registers, wish.tensor_cores = GpuSchedule::TensorCores::bf16;
  CHECK_THAT(refusal(wish, tree_gru(64).graph()), Contains("weights in registers are for threads that multiply them"));
}

TEST_CASE("split_sums makes of a TreeFC what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/split_sums/tree_fc.ilir",
               text_after("split_sums", tree_fc(18).graph(), how(Group::cluster, 2, 32, 4)));
}

TEST_CASE("split_sums and lay_out_parts leave a program alone that sums no products", "[schedule][gpu]") {
  const ir::Program lowered = lower::lower(tree_rnn(8).graph(), Schedule::standard());
  const ir::Stmt leaves = schedule::stmts_of(lowered.body)[0];
  CHECK(schedule::split_sums(leaves, 4).same_as(leaves));
  CHECK(schedule::lay_out_parts(leaves, 4).same_as(leaves));
}

TEST_CASE("share_threads gives parts of sums to threads as its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/share_threads/parts_of_tree_fc.ilir",
               text_after("share_threads", tree_fc(18).graph(), how(Group::cluster, 2, 32, 4)));
}

TEST_CASE("sums in parts are the sums", "[schedule][gpu]") {
  const NodeTable table = [] {
    std::mt19937 random(3);
    return random_table(20, 2, 9, random, true);
  }();
  const Linear linear(table, 2);
  for (const int parts : {2, 8, 32}) {
    const ra::Graph graph = parts == 8 ? tree_lstm(19).graph() : tree_gru(16).graph();
    const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 9, 1));
    const pass::PipelineOptions options{.verify = true};
    const ir::Program lowered = lower::lower(graph, Schedule::standard());
    pass::Pipeline p(lowered, options);
    pass::make_nests(p, Schedule{}, 6);
    p.enter(ir::Level::scheduled);
    p.run("lay_out_parts", [&](const ir::Stmt& s) { return schedule::lay_out_parts(s, parts); });
    p.run("split_sums", [&](const ir::Stmt& s) { return schedule::split_sums(s, parts); });
    const ir::Program split = p.take();
    CAPTURE(parts);
    CHECK_THAT(ir::print(lowered), !Contains("_part["));
    CHECK_THAT(ir::print(split), Contains("_part["));
    CHECK(reference.difference(split) == "");
  }
}

TEST_CASE("each warp reads parts of sums as 128 neighbours, four for each thread", "[schedule][gpu]") {
  for (const int parts : {2, 4, 8, 16, 32}) {
    const Vector<Dim> dims{Dim("output", 24), Dim("k", 70)};
    const ir::Layout layout = schedule::part_layout(dims, 0, 1, parts);
    const auto at = [&](std::int64_t column, std::int64_t k) {
      std::int64_t offset = 0;
      for (const ir::Axis& axis : layout.axes) {
        const std::int64_t part = (axis.source ? k : column) / axis.divisor;
        offset += (axis.modulus ? part % axis.modulus : part) * axis.stride;
      }
      return offset;
    };
    std::set<std::int64_t> places;
    for (int column = 0; column < 24; ++column)
      for (int k = 0; k < 70; ++k) places.insert(at(column, k));
    CHECK(places.size() == 24 * 70);
    CHECK(*places.rbegin() < layout.fixed_size);
    for (int first = 0; first + 32 / parts <= 24; first += 32 / parts)
      for (int k = 0; k + 4 * parts <= 70; k += 4 * parts)
        for (int thread = 0; thread < 32; ++thread)
          for (int own = 0; own < 4; ++own) {
            CAPTURE(parts, first, k, thread, own);
            REQUIRE(at(first + thread / parts, k + thread % parts * 4 + own) - at(first, k) == 4 * thread + own);
          }
  }
}

namespace {

std::int64_t offset_of(const ir::Layout& layout, const std::vector<std::int64_t>& indices) {
  std::int64_t offset = 0;
  for (const ir::Axis& axis : layout.axes) {
    const std::int64_t part = indices[std::size_t(axis.source)] / axis.divisor;
    offset += (axis.modulus ? part % axis.modulus : part) * axis.stride;
  }
  return offset;
}

ir::BufferInfo laid_out(const ir::Layout& layout) {
  ir::BufferInfo info;
  info.name = "W", info.dims = {Dim("output", 40), Dim("k", 70)}, info.layout = layout;
  return info;
}

}  // namespace

TEST_CASE("the element at each place of parts and fragments lies there, and one some panels on as far behind it",
          "[schedule][gpu]") {
  const Vector<Dim> dims = laid_out({}).dims;
  Vector<ir::Layout> layouts{schedule::fragment_layout(dims, DType::bf16, 0, 1),
                             schedule::fragment_layout(dims, DType::tf32, 0, 1)};
  for (const int parts : {2, 4, 8, 16, 32}) layouts.push_back(schedule::part_layout(dims, 0, 1, parts));
  for (const ir::Layout& layout : layouts) {
    const ir::BufferInfo info = laid_out(layout);
    const int outputs = int(layout.axes.back().divisor);
    CAPTURE(outputs, layout.fixed_size);
    REQUIRE(schedule::fills_memory(info));
    int wrong = 0;
    for (std::int64_t place = 0; place < layout.fixed_size; ++place) {
      std::vector<std::int64_t> at;
      for (const ir::Expr& index : schedule::indices_at(info, ir::imm(place))) at.push_back(*ir::as_int(index));
      wrong += offset_of(layout, at) != place;
      at[0] += 2 * outputs;
      const ir::Expr shift = schedule::place_of_shift(layout, 0, ir::imm(2 * outputs));
      wrong += offset_of(layout, at) != place + *ir::as_int(shift);
    }
    CHECK(wrong == 0);
    if (outputs > 1) CHECK(!schedule::place_of_shift(layout, 0, ir::imm(outputs / 2)));
  }
}

TEST_CASE("indices that are those of a place are known to be, and others are not", "[schedule][gpu]") {
  const ir::BufferInfo info = laid_out(schedule::part_layout(laid_out({}).dims, 0, 1, 4));
  const ir::Expr p = ir::Var::make("p"), w = ir::Var::make("w"), four = ir::Ramp::make(p, 4);
  Vector<ir::Expr> indices = schedule::indices_at(info, p);
  CHECK(schedule::place_of(info, indices).same_as(p));
  CHECK(ir::equal(schedule::place_of(info, schedule::indices_at(info, four)), four));
  indices[0] = w * 8 + indices[0];  // 8 outputs: a panel, of 5 times 128 elements
  CHECK(ir::print(schedule::place_of(info, indices)) == "w * 640 + p");
  indices[0] = w * 4 + schedule::indices_at(info, p)[0];
  CHECK(!schedule::place_of(info, indices));
  indices[0] = schedule::indices_at(info, w)[0];
  CHECK(!schedule::place_of(info, indices));
  const ir::BufferInfo padded = laid_out(schedule::panel_layout(info.dims, 0, 8, DType::f32));
  CHECK(!schedule::fills_memory(padded));
  CHECK(!schedule::place_of(padded, schedule::indices_at(padded, p)));
}

TEST_CASE("tensor_products makes of a TreeGRU what its golden file shows", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::cluster, 2);
  wish.tensor_cores = GpuSchedule::TensorCores::bf16;
  check_golden("schedule/tensor_products/tree_gru.ilir", text_after("tensor_products", tree_gru(32).graph(), wish));
}

TEST_CASE("tensor_products leaves a program alone that sums no products", "[schedule][gpu]") {
  const ir::Program lowered = lower::lower(tree_rnn(8).graph(), Schedule::standard());
  const ir::Stmt leaves = schedule::stmts_of(lowered.body)[0];
  CHECK(schedule::tensor_products(leaves, DType::bf16).same_as(leaves));
}

TEST_CASE("share_threads makes tiles of products as its golden file shows", "[schedule][gpu]") {
  GpuSchedule wish = how(Group::cluster, 2, 64);
  wish.tensor_cores = GpuSchedule::TensorCores::tf32;
  check_golden("schedule/share_threads/tensor_tree_fc.ilir", text_after("share_threads", tree_fc(40).graph(), wish));
}

namespace {

/// Sums that are the first thread's, rows that each thread copies for itself before it does its columns, and nodes that
/// are one thread's each.
const char* const by_hand =
    "distribute_rows(); fuse_nests(); cache_read(s, n_idx.2.2); bind(i, thread); bind(i.3, thread); "
    "bind(n_idx.2.7, thread)";

ir::Program after_by_hand(const std::string& pass, const char* steps) {
  return after(pass, tree_gru(8).graph(), how(Group::block, 1), Loops::parse(steps));
}

}  // namespace

TEST_CASE("rest_for_first_thread makes of a TreeGRU by hand what its golden file shows", "[schedule][gpu]") {
  check_golden("schedule/rest_for_first_thread/tree_gru.ilir",
               ir::print(after_by_hand("rest_for_first_thread", by_hand)));
}

TEST_CASE("rest_for_first_thread leaves loops that threads share alone", "[schedule][gpu]") {
  const ir::Expr i = ir::Var::make("i");
  const ir::Buffer y = buffer("y", {Dim("hidden", 8)}, ir::Role::state);
  const ir::Stmt loop = ir::For::make(i, y->dims[0], ir::imm(8), ir::ForKind::threads, store(y, {i}, number(1)));
  const ir::Stmt two = ir::Block::make({loop, ir::Barrier::make(ir::Meeting::threads), loop});
  CHECK(schedule::rest_for_first_thread(loop).same_as(loop));
  CHECK(schedule::rest_for_first_thread(two).same_as(two));
  CHECK(pass::insert_thread_barriers_by_hand(two).same_as(two));
}

TEST_CASE("rest_for_first_thread refuses what writes what threads share beside what each has for itself",
          "[schedule][gpu][refusal]") {
  const ir::Expr i = ir::Var::make("i");
  const Dim H("hidden", 8);
  const ir::Buffer y = buffer("y", {H}, ir::Role::state), z = buffer("z", {H}, ir::Role::state), own = local("own");
  const ir::Stmt loop = ir::For::make(i, H, ir::imm(8), ir::ForKind::threads, store(y, {i}, load(own, {})));
  const ir::Stmt both = ir::If::make(ir::binary(ir::BinaryOp::lt, ir::imm(0), ir::imm(1)),
                                     ir::Block::make({store(own, {}, number(1)), store(z, {ir::imm(0)}, number(1))}));
  CHECK_THROWS_WITH(schedule::rest_for_first_thread(ir::Alloc::make(own, ir::Block::make({both, loop}))),
                    Contains("'z', which threads share, is written beside 'own', which each of them has for itself"));
}

TEST_CASE("barriers of threads by hand stand where their golden file shows", "[pass][gpu]") {
  check_golden("pass/insert_thread_barriers/by_hand.ilir", ir::print(after_by_hand("insert_thread_barriers", by_hand)));
}

TEST_CASE("a program in which nothing is bound has no barrier of threads", "[pass][gpu]") {
  CHECK_THAT(ir::print(after_by_hand("rest_for_first_thread", "")), Contains("if thread == 0:\n  for "));
  CHECK_THAT(ir::print(after_by_hand("flatten_storage", "")), !Contains("barrier"));
}

TEST_CASE("threads that share a loop have neighbouring iterations", "[schedule][gpu]") {
  check_golden("schedule/share_bound_loops/tree_gru.ilir", ir::print(after_by_hand("share_bound_loops", by_hand)));
}

TEST_CASE("share_bound_loops leaves a program alone in which no loop is bound", "[schedule][gpu]") {
  const ir::Stmt body = lower::lower(tree_rnn(8).graph(), Schedule::standard()).body;
  CHECK(schedule::share_bound_loops(body, 32).same_as(body));
}

TEST_CASE("blocks of a group need the barriers of a schedule by hand", "[pass][gpu][refusal]") {
  const auto refused = [](const char* steps) {
    try {
      after("flatten_storage", tree_rnn(8).graph(), how(Group::cluster, 2), Loops::parse(steps));
    } catch (const Error& error) {
      return error.message;
    }
    return std::string();
  };
  CHECK(refused("distribute_rows(); share_work()") ==
        "loop schedule: 2 blocks of a group need the step insert_barriers(), after parallel or share_work()");
  CHECK(refused("distribute_rows(); share_work(); insert_barriers()") == "");
}

TEST_CASE("a sum is divided where its terms show how", "[schedule]") {
  const ir::Expr t = ir::call(ir::UfKind::thread, "thread"), j = ir::Var::make("j");
  const ir::Expr index = j * 32 + t % 8 * 4 + 3;
  const schedule::DividedSum by_4(index, 4), by_32(index, 32);
  REQUIRE((by_4.quotient && by_32.quotient));
  CHECK(ir::print(by_4.quotient) == "j * 8 + thread % 8");
  CHECK(ir::print(by_4.rest) == "3");
  CHECK(ir::print(by_32.quotient) == "j");
  CHECK(ir::print(by_32.rest) == "thread % 8 * 4 + 3");
  CHECK(!schedule::DividedSum(index, 16).quotient);  // of t % 8 * 4 some are above it
  CHECK(!schedule::DividedSum(j * 32 + t, 32).quotient);
  CHECK(!schedule::DividedSum(j * 2 + 1, 4).quotient);
}
