#include "support/lowering.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

#include "cortex/lower/lower.hpp"
#include "cortex/pass/pipeline.hpp"
#include "support/node_tables.hpp"

namespace cortex::test {

std::vector<Snapshot> passes_of(const ra::Graph& graph, const Schedule& schedule, const Target& target) {
  struct Snapshots final : pass::PassObserver {
    std::vector<Snapshot> all;
    void after(const char* pass, pass::Stage, const ir::Program& program) override { all.push_back({pass, program}); }
  } snapshots;
  pass::run_pipeline(lower::lower(graph, schedule), schedule, target, {true, &snapshots});
  return snapshots.all;
}

ir::Program program_after(const std::string& pass, const ra::Graph& graph, const Schedule& schedule,
                          const Target& target) {
  ir::Program found;
  for (Snapshot& s : passes_of(graph, schedule, target))
    if (s.pass == pass) found = std::move(s.program);
  INFO("pass " << pass);
  REQUIRE(bool(found.body));
  return found;
}

std::string text_after(const std::string& pass, const ra::Graph& graph, const Schedule& schedule,
                       const Target& target) {
  return ir::print(program_after(pass, graph, schedule, target));
}

ra::Weights weights_for(const ra::Graph& graph, int open, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  ra::Weights weights;
  for (const ra::Op& op : graph.ops) {
    if (op.kind != ra::OpKind::input) continue;
    ra::Tensor tensor;
    std::int64_t size = 1;
    for (const Dim& dim : op.dims) size *= tensor.shape.emplace_back(dim.kind() == DimKind::open ? open : dim.extent());
    const bool matrix = op.dims.size() > 1 && op.dims[0].kind() != DimKind::open;
    const double scale = matrix ? 1.5 / std::sqrt(double(tensor.shape.back())) : 1;
    for (std::int64_t i = 0; i < size; ++i) tensor.values.push_back(scale * uniform(random));
    weights.emplace(op.name(), std::move(tensor));
  }
  return weights;
}

Reference::Reference(const ra::Graph& graph, const ra::NodeView& view, ir::StructureEnv env,
                     std::vector<std::int32_t> number, ra::Weights weights)
    : graph(graph),
      view(view),
      weights(std::move(weights)),
      env(std::move(env)),
      number(std::move(number)),
      states(ra::interpret<double>(graph, view, this->weights)) {
  for (const auto& [name, tensor] : this->weights) bound[name] = tensor.values;
}

namespace {

/// Where a row of a tensor has the elements that are read with its dimensions in the order `dims`.
std::vector<std::size_t> row_in_order(const std::vector<std::int64_t>& shape, const Vector<int>& dims) {
  std::vector<std::size_t> at{0};
  for (std::size_t d = 1; d < dims.size(); ++d) {
    const auto own = shape.begin() + dims[d];
    const auto stride = std::accumulate(own + 1, shape.end(), std::size_t(1), std::multiplies<>());
    std::vector<std::size_t> longer;
    for (const std::size_t begin : at)
      for (std::size_t i = 0; i < std::size_t(*own); ++i) longer.push_back(begin + i * stride);
    at = std::move(longer);
  }
  return at;
}

}  // namespace

bool Reference::may_be(double value, std::size_t state, std::size_t node, std::size_t element) const {
  if (bounded.empty()) {
    const ra::Rounding in_doubles{.f32 = 0x1p-53, .any_order = true};
    bounded = ra::interpret<ra::Bounded>(graph, view, weights, ra::Arithmetic<ra::Bounded>(in_doubles));
  }
  return bounded[state][node][element].covers(value);
}

std::string Reference::difference(const ir::Program& program, const ir::InterpretOptions& options) const {
  ir::Storage storage = bound;
  try {
    ir::interpret(program, env, storage, options);
  } catch (const Error& error) {
    return error.message;
  }
  for (const ir::InPlace& rows : program.in_place) {  // as a result finds them
    const auto is_weight = [&](const ra::Op& op) {
      return op.kind == ra::OpKind::input && op.buffer->slot == rows.weight;
    };
    const ra::Tensor& weight = weights.at(std::find_if(graph.ops.begin(), graph.ops.end(), is_weight)->name());
    std::vector<double>& state = storage[program.buffers[std::size_t(rows.state)]->name];
    const std::vector<std::size_t> at = row_in_order(weight.shape, rows.dims);
    for (int node = 0; node < view.num_nodes(); ++node)
      for (std::size_t i = 0; view.is_leaf(node) && i < at.size(); ++i)
        state[std::size_t(number[std::size_t(node)]) * at.size() + i] =
            weight.values[std::size_t(view.field(rows.field, node, 0)) * at.size() + at[i]];
  }
  for (std::size_t s = 0; s < states.size(); ++s) {
    const std::string& name = graph.ops[std::size_t(graph.states[s].placeholder)].name();
    const std::vector<double>& got = storage.at(name);
    for (std::size_t node = 0; node < states[s].size(); ++node) {
      const std::vector<double>& expected = states[s][node];
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double value = got[std::size_t(number[node]) * expected.size() + i];
        if (!(std::abs(value - expected[i]) <= 1e-9 * (1 + std::abs(expected[i]))) && !may_be(value, s, node, i))
          return name + "[" + std::to_string(number[node]) + "," + std::to_string(i) + "] is " + std::to_string(value) +
                 " and not " + std::to_string(expected[i]);
      }
    }
  }
  return {};
}

Schedule with_leaf_branches(Schedule schedule, const ra::Graph& graph) {
  for (const ra::Op& op : graph.ops)
    if (op.kind == ra::OpKind::if_then_else && ra::detail::is_leaf_branch(op))
      schedule = schedule.specialize_if_else(op.name());
  return schedule;
}

std::string lowered_difference(const ra::Graph& graph) {
  std::mt19937 random(5);
  const NodeTable table = random_table(24, 3, 9, random);
  const Linear linear(table, 2);
  const Reference reference(graph, table, linear.arrays, linear.number, weights_for(graph, 9, 1));
  for (const Schedule& schedule : {Schedule::standard().exact_activations(), Schedule{}.exact_activations()})
    if (std::string found = reference.difference(lower::lower(graph, schedule)); !found.empty()) return found;
  return {};
}

std::string first_difference(const Reference& reference, const Schedule& schedule, const Target& target) {
  std::vector<Snapshot> passes;
  try {
    passes = passes_of(reference.graph, schedule, target);
  } catch (const Error& error) {
    return "no program: " + error.message;
  }
  const auto report = [&](const Snapshot& s, const std::string& what) {
    return "after " + s.pass + ": " + what + "\n" + ir::print(s.program);
  };
  bool shared = false;
  for (const Snapshot& s : passes) {
    for (const char* late : {"insert_barriers", "pack_weights", "tile_nests", "resolve_structure", "flatten_storage"})
      shared |= s.pass == late;
    if (const std::string d = reference.difference(s.program); !d.empty()) return report(s, d);
    if (schedule.max_workers < 2 || !shared) continue;
    for (const bool last_first : {false, true})
      if (const std::string d = reference.difference(s.program, {schedule.max_workers, last_first}); !d.empty())
        return report(s, std::to_string(schedule.max_workers) +
                             (last_first ? " workers, last first: " : " workers, first first: ") + d);
  }
  return {};
}

void check_every_schedule(const ra::Graph& graph, const ra::NodeView& view, const ir::StructureEnv& env,
                          const std::vector<std::int32_t>& number, int words, int first_target) {
  const Reference reference(graph, view, env, number, weights_for(graph, words, 1));
  int target = first_target;
  for (const bool batched : {false, true})
    for (const bool specialized : {false, true})
      for (const bool apart : {false, true})
        for (const int workers : {1, 3}) {
          Schedule schedule = Schedule{}.exact_activations().workers(workers);
          schedule.batched = batched, schedule.leaves_apart = apart;
          if (specialized) schedule = with_leaf_branches(std::move(schedule), graph);
          if (apart) schedule = schedule.tabulate();
          constexpr int bytes[] = {16, 32, 64};
          const Target on = machine(bytes[target % 3], target / 3 % 2 ? 16 : 32);
          ++target;
          INFO(graph.name << (batched ? ", batched" : "") << (specialized ? ", specialized" : "")
                          << (apart ? ", leaves apart" : "") << ", workers " << workers << ", vectors of "
                          << on.vector_bytes << " bytes, " << on.vector_registers << " registers");
          CHECK(first_difference(reference, schedule, on) == "");
        }
}

}  // namespace cortex::test
