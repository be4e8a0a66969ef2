// What nothing reads goes: temporaries that are read nowhere, and single stores that no load sees.
#include "cortex/pass/remove_dead.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <tuple>

#include "support/golden.hpp"
#include "support/gru_models.hpp"
#include "support/handmade.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"
#include "support/odd_models.hpp"
#include "support/races.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

const Schedule standard = Schedule::standard().tabulate_nothing().exact_activations();

const Dim H("hidden", 4);
const ir::Buffer h = buffer("h", {dims::node, H}, ir::Role::state);
const ir::Buffer t = buffer("t", {dims::batch, H}), at_node = buffer("t", {dims::node, H});

ir::Expr call(ir::UfKind kind, std::vector<ir::Expr> args = {}) { return ir::call(kind, "f", std::move(args)); }
ir::Expr turned(const ir::Expr& i) { return ir::imm(H.extent() - 1) - i; }

/// `for n = 0:extent: node = number(n): body(n, node)`.
template <class Body>
ir::Stmt rows(const ir::Expr& extent, ir::UfKind number, std::vector<ir::Expr> of, Body body) {
  const ir::Expr n = var("n_idx"), node = var("node");
  of.push_back(n);
  return ir::For::make(n, dims::batch, extent, ir::ForKind::serial,
                       ir::LetStmt::make(node, call(number, of), body(n, node)));
}
template <class Body>
ir::Stmt leaves(Body body) {
  return rows(call(ir::UfKind::num_leaves), ir::UfKind::leaf_node, {}, body);
}
template <class Body>
ir::Stmt inner(const ir::Expr& b, Body body) {
  return rows(call(ir::UfKind::internal_batch_length, {b}), ir::UfKind::internal_batch_node, {b}, body);
}
template <class Body>
ir::Stmt batches(Body body) {
  const ir::Expr b = var("b_idx");
  return ir::For::make(b, dims::all_batches, call(ir::UfKind::num_internal_batches), ir::ForKind::serial, body(b));
}

/// A nest over all of a row: to[row,i] = value(row, node, i).
template <class Value>
auto writing(const ir::Buffer& to, Value value) {
  return [=](const ir::Expr& n, const ir::Expr& node) {
    const ir::Expr i = var("i");
    return loop(i, H, store(to, {to->dims[0] == dims::node ? node : n, i}, value(n, node, i)));
  };
}
const auto one = [](auto&, auto&, auto&) { return number(1); };
const auto of_t = [](auto& n, auto&, auto& i) { return load(t, {n, turned(i)}); };
const auto of_node = [](auto&, auto& node, auto& i) { return load(at_node, {node, turned(i)}); };

/// The same nest under a condition on its node.
template <class Body>
auto where(ir::UfKind kind, Body body) {
  return [=](const ir::Expr& n, const ir::Expr& node) { return ir::If::make(call(kind, {node}), body(n, node)); };
}

int count_stores(const ir::Stmt& s) {
  int found = 0;
  ir::visit_with(s, [&](const ir::Store&) { ++found; });
  return found;
}
bool stays(const ir::Stmt& s) { return count_stores(pass::remove_dead(s)) == count_stores(s); }

/// Whether `s` becomes `left`, of which nothing is dead but variables.
bool becomes(const ir::Stmt& s, const ir::Stmt& left) {
  return stays(left) && ir::equal(pass::remove_dead(s), pass::remove_dead(left));
}

/// Counts, for each store to a temporary, what is written and how much of it is ever read.
class ReadCounter {
 public:
  static constexpr bool watches = true;
  struct Count {
    ir::Stmt store;
    long written = 0, read = 0;
  };

  ReadCounter(const ir::detail::LogicalRun& run, std::map<int, Count>& counts) : code_(run.code()), counts_(counts) {}

  void touch(int worker, int access, std::int64_t offset, bool write) {
    const auto& at = code_.accesses[std::size_t(access)];
    if (at.buffer >= code_.num_buffers || code_.buffers[std::size_t(at.buffer)]->role != ir::Role::temp) return;
    const bool own = code_.buffers[std::size_t(at.buffer)]->scope == ir::Scope::worker;
    int& last = last_.emplace(std::tuple(at.buffer, own ? worker : 0, offset), -1).first->second;
    if (write)
      last = access, counts_[access].store = at.stmt, ++counts_[access].written;
    else if (last >= 0)
      ++counts_[last].read;
  }
  bool barrier() { return true; }

 private:
  const ir::vm::Bytecode& code_;
  std::map<int, Count>& counts_;
  std::map<std::tuple<int, int, std::int64_t>, int> last_;  // of an element: which access wrote it
};

/// The stores of a model's program of which nothing is read in any of some calls.
std::vector<std::string> dead_stores(const ra::Graph& graph, const Schedule& schedule) {
  ir::Program last;
  for (const Snapshot& s : passes_of(graph, schedule.exact_activations(), machine(16)))
    if (s.program.level == ir::Level::loops) last = s.program;
  std::map<int, ReadCounter::Count> counts;
  const Calls calls(graph, schedule, 1, 8);
  for (const ir::StructureEnv& env : calls.envs) {
    ir::Storage storage = calls.weights;
    const ir::InterpretOptions options;
    ir::detail::LogicalRun run(last, env, storage, options);
    ReadCounter counter(run, counts);
    run.run(counter);
  }
  std::vector<std::string> dead;
  for (const auto& [access, count] : counts)
    if (count.written > 0 && count.read == 0)
      dead.push_back(graph.name + ": " + ir::print(count.store) + "in\n" + ir::print(last));
  return dead;
}

}  // namespace

TEST_CASE("temporaries that nothing reads are gone, with their loops", "[pass][golden]") {
  check_golden("pass/remove_dead/tree_rnn.ilir", text_after("remove_dead", tree_rnn(8).graph(), standard));
}

TEST_CASE("results are not dead", "[pass]") { CHECK(stays(leaves(writing(h, one)))); }

TEST_CASE("an accumulator that only feeds itself is dead, with its loop, its let and its condition", "[pass]") {
  const ir::Buffer w = buffer("w", {H}, ir::Role::weight);
  const ir::Stmt sum = sum_over(
      H, [&](auto& r) { return load(w, {r}); }, [&](auto&) { return block({}); });
  const ir::Expr node = var("node");
  const ir::Stmt dead = for_nodes(node, ir::If::make(call(ir::UfKind::is_leaf, {node}), sum));
  const ir::Stmt s = leaves(writing(h, one));
  CHECK(becomes(block({dead, s}), s));
}

TEST_CASE("what leaves store is dead where each inner level overwrites it before it reads", "[pass][golden]") {
  check_golden("pass/remove_dead/two_state_gru.ilir", text_after("remove_dead", two_state_gru(6).graph(), standard));
}

TEST_CASE("of a branch whose first side is dead the other stays, under the opposite condition", "[pass]") {
  const auto leaf = [](auto& node) { return call(ir::UfKind::is_leaf, {node}); };
  const auto branch = [&](auto& n, auto& node) {
    return ir::If::make(leaf(node), writing(t, one)(n, node), writing(h, one)(n, node));
  };
  const auto opposite = [&](auto& n, auto& node) {
    return ir::If::make(ir::negation(leaf(node)), writing(h, one)(n, node));
  };
  CHECK(becomes(leaves(branch), leaves(opposite)));
  const auto of_negation = [&](auto& n, auto& node) {
    return ir::If::make(ir::negation(leaf(node)), writing(t, one)(n, node), writing(h, one)(n, node));
  };
  CHECK(becomes(leaves(of_negation), leaves(where(ir::UfKind::is_leaf, writing(h, one)))));
}

TEST_CASE("a store is dead if a later one comes before all reads", "[pass]") {
  const ir::Stmt levels = batches([](auto& b) {
    return block({inner(b, writing(t, one)), inner(b, writing(h, of_t))});
  });
  CHECK(becomes(block({leaves(writing(t, one)), levels}), levels));
}

TEST_CASE("a store behind all reads is dead", "[pass]") {
  const ir::Stmt used = block({leaves(writing(t, one)), leaves(writing(h, of_t))});
  CHECK(becomes(block({used, leaves(writing(t, one))}), used));
}

TEST_CASE("what is stored at leaves is dead if inner nodes alone read", "[pass]") {
  const ir::Stmt ahead = rows(call(ir::UfKind::num_internal), ir::UfKind::internal_node, {}, writing(at_node, one));
  const ir::Stmt levels = batches([](auto& b) { return inner(b, writing(h, of_node)); });
  CHECK(becomes(block({ahead, leaves(writing(at_node, one)), levels}), block({ahead, levels})));
}

TEST_CASE("a store stays if the one in between is of less than what is read", "[pass]") {
  const auto with = [](const ir::Stmt& between, const ir::Stmt& reader) {
    return block({leaves(writing(t, one)), between, reader});
  };
  const auto leaf = ir::UfKind::is_leaf;
  const ir::Stmt read = leaves(writing(h, of_t));
  CHECK(stays(with(leaves(where(leaf, writing(t, one))), read)));
  CHECK_FALSE(stays(with(leaves(where(leaf, writing(t, one))), leaves(where(leaf, writing(h, of_t))))));
  const auto both = [&](auto& n, auto& node) {
    const ir::Expr low = ir::binary(ir::BinaryOp::lt, node, ir::imm(3));
    return ir::If::make(ir::Binary::make(ir::BinaryOp::logical_and, call(leaf, {node}), low), writing(t, one)(n, node));
  };
  CHECK(stays(with(leaves(both), leaves(where(leaf, writing(h, of_t))))));
  CHECK(stays(with(rows(call(ir::UfKind::num_roots), ir::UfKind::leaf_node, {}, writing(t, one)), read)));
  const ir::Expr j = var("j");
  const Dim part("part", 3);
  CHECK(stays(with(leaves([&](auto& n, auto&) { return loop(j, part, store(t, {n, j}, number(1))); }), read)));
  const auto to_first = [&](auto&, auto&) { return loop(j, H, store(t, {ir::imm(0), j}, number(1))); };
  CHECK(stays(with(leaves(to_first), read)));
}

TEST_CASE("what the next iteration may read stays", "[pass]") {
  CHECK(stays(block({leaves(writing(t, one)), batches([](auto& b) {
                       return block({inner(b, writing(h, of_t)), inner(b, writing(t, one))});
                     })})));
}

TEST_CASE("a worker that stores its own slice alone, to its own copy, overwrites no more than that", "[pass]") {
  ir::BufferInfo info = *t;
  info.scope = ir::Scope::worker;
  const ir::Buffer own{std::move(info)};
  const auto program = [&](ir::ForKind kind) {
    const ir::Expr i = var("i");
    const auto slice = [&](auto& n, auto&) { return loop(i, H, store(own, {n, i}, number(1)), kind); };
    const auto read = [&](auto& n, auto&, auto& k) { return load(own, {n, turned(k)}); };
    return block({leaves(writing(own, one)), leaves(slice), leaves(writing(h, read))});
  };
  CHECK(stays(program(ir::ForKind::parallel)));
  CHECK_FALSE(stays(program(ir::ForKind::serial)));
}

TEST_CASE("every store of a cell's program is read in some call", "[pass]") {
  const std::vector<ra::Graph> cells{tree_rnn(3).graph(),       tree_lstm(3).graph(),
                                     dependency_rnn(3).graph(), child_sum_gru(3).graph(),
                                     two_state_gru(3).graph(),  common_initial_state(3).graph(),
                                     odd::conditions(3),        odd::degrees(3)};
  for (const ra::Graph& cell : cells)
    for (const bool batched : {false, true}) {
      Schedule plain;
      plain.batched = batched;
      for (const Schedule& s : {plain, plain.specialize_leaves(), plain.specialize_if_else()})
        CHECK(dead_stores(cell, s) == std::vector<std::string>());
    }
}
