// Random models of the whole grammar whose temporaries share memory, interpreted at device level by one to three
// workers in both orders, against the recursion as written.
#include <catch2/catch.hpp>

#include "support/lowering.hpp"
#include "support/random_cases.hpp"

using namespace cortex;
using namespace cortex::test;

namespace {

/// The arrays that the linearizer made for a call, by the graph's numbers of its accessors.
ir::StructureEnv env_of(const structure::Arrays& arrays, const runtime::AccessorOrder& order) {
  ir::StructureEnv env(arrays);
  env.child = [&arrays, &order](int a) { return arrays.child[order.child[std::size_t(a)]]; };
  env.edges = [&arrays, &order](int a) {
    const structure::Csr& csr = arrays.children[order.children[std::size_t(a)]];
    return ir::vm::EdgeArrays{csr.begin, csr.child, csr.num_edges, csr.max_batch_edges};
  };
  env.field = [&arrays, &order](int a) {
    const structure::FieldArray& field = arrays.field[order.field[std::size_t(a)]];
    return ir::FieldRows{field.data, field.stride};
  };
  return env;
}

bool shares(const runtime::Executable& executable) {
  bool found = false;
  for (const ir::Buffer& buffer : executable.scheduled.buffers) found |= bool(buffer->stored_in);
  return found;
}

/// What goes wrong in calls of the model with this schedule; "" if nothing does.
std::string difference(const RandomModel& model, const std::shared_ptr<const runtime::Executable>& executable,
                       std::uint64_t seed) {
  Random random(seed);
  const Forest forest = random_forest(random, model.graph, 12);
  const ForestView view(forest);
  const auto compiled =
      runtime::CompiledModel::make(executable, runtime::accessor_order<VertexSet>(model.graph), nullptr, false);
  for (const auto& [name, values] : model.weights) compiled->bind(name, DType::f32, values.data(), values.size(), {});
  const auto linearize = [&](runtime::Workspace& w, auto...) {
    structure::Linearizer<Vertex, VertexSet>::run(w.nodes, runtime::structure_of(model.graph), w.checks(),
                                                  forest.roots);
  };
  const runtime::Lease lease = compiled->call({linearize, linearize, linearize});
  std::vector<std::int32_t> number;
  for (const Vertex* vertex : view.nodes) number.push_back(lease->nodes.find(vertex));
  const Reference reference(model.graph, view, env_of(lease->arrays(), compiled->plan().order), number,
                            interpreter_weights(model));
  for (int workers = 1; workers <= executable->schedule.max_workers; ++workers)
    for (const bool last_first : {false, true})
      if (const auto wrong = reference.difference(executable->program, {workers, last_first}); !wrong.empty())
        return std::to_string(workers) + " workers: " + wrong + "\n" + ir::print(executable->scheduled);
  return {};
}

}  // namespace

TEST_CASE("random models whose temporaries share memory equal the recursion as written", "[differential][slow]") {
  int sharing = 0;
  for (std::uint64_t seed = 40000; sharing < 100; ++seed) {
    REQUIRE(seed < 42000);
    const RandomModel model(seed, Grammar::whole);
    for (const int workers : {1, 2, 3}) {
      Schedule schedule = (seed % 3 == 0 ? Schedule{}.specialize_leaves() : Schedule::standard()).exact_activations();
      schedule = schedule.workers(workers);
      const auto executable = runtime::compile_graph(model.graph, schedule, Target::interpreter());
      if (!shares(*executable)) continue;
      ++sharing;
      INFO("seed " << seed << ", " << workers << " workers");
      CHECK(difference(model, executable, seed) == "");
    }
  }
}
