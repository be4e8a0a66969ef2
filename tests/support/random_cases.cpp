#include "support/random_cases.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace cortex::test {

namespace {

const ra::Op& tensor(const GraphCase& model, const std::string& name) {
  for (const ra::Op& op : model.graph.ops)
    if (op.name() == name) return op;
  throw std::logic_error(name + " is no tensor of the model");
}

/// Whether a call says what a state is at a vertex: of a root anything, of others not what it keeps for none.
bool is_told(const GraphCase& model, std::size_t state, const Forest& forest, const Vertex* vertex) {
  const ir::Buffer& rows = model.graph.ops[std::size_t(model.graph.states[state].placeholder)].buffer;
  const bool kept = model.graph.results < 0 || int(state) < model.graph.results || !ir::has_large_rows(*rows);
  return kept || std::count(forest.roots.begin(), forest.roots.end(), vertex);
}

/// The values of a state at a vertex, of whatever type it is.
std::vector<double> values_of(const GraphCase& model, const RandomFunctor::Output& output, const Vertex* vertex,
                              const std::string& state) {
  const ra::Op& op = tensor(model, state);
  std::size_t size = 1;
  for (const Dim& dim : op.dims) size *= std::size_t(dim.extent());
  const auto copy = [&]<class T>(T) {
    std::vector<T> values(size);
    output.copy_node(vertex, state, values);
    return std::vector<double>(values.begin(), values.end());
  };
  return op.buffer->dtype == DType::f32 ? copy(float()) : copy(double());
}

}  // namespace

RandomFunctor compile_model(const GraphCase& model, const Schedule& schedule, const Target& target) {
  return bound(model, runtime::compile_graph(model.graph, schedule, target));
}

RandomFunctor bound(const GraphCase& model, std::shared_ptr<const runtime::Executable> executable) {
  RandomFunctor functor(std::move(executable));
  functor.bind_together(
      [&] { model.each_weight([&](const std::string& name, const auto& values) { functor.bind(name, values); }); });
  return functor;
}

bool same_bits(const GraphCase& model, const RandomFunctor& a, const RandomFunctor& b, const Forest& forest) {
  return same_bits(model, a(forest.roots), b(forest.roots), forest);
}

bool same_bits(const GraphCase& model, const RandomFunctor::Output& x, const RandomFunctor::Output& y,
               const Forest& forest) {
  bool same = x.size() == y.size() && x.num_nodes() == y.num_nodes();
  for (std::size_t s = 0; s < model.graph.states.size(); ++s) {
    const ra::State& state = model.graph.states[s];
    if (model.graph.ops[std::size_t(state.body)].at_roots) continue;
    const std::string& name = model.graph.ops[std::size_t(state.placeholder)].name();
    for (const auto& vertex : forest.all) {
      if (!is_told(model, s, forest, vertex.get())) continue;
      const auto p = values_of(model, x, vertex.get(), name), q = values_of(model, y, vertex.get(), name);
      same &= p.size() == q.size() && std::memcmp(p.data(), q.data(), p.size() * sizeof(double)) == 0;
    }
  }
  return same;
}

std::optional<std::string> mismatch(const GraphCase& model, const RandomFunctor& functor, const Forest& forest) {
  const ForestView view(forest);
  const auto expected = ra::interpret<ra::Bounded>(model.graph, view, interpreter_weights(model));
  const auto result = functor(forest.roots);
  for (std::size_t s = 0; s < model.graph.states.size(); ++s) {
    const ra::State& state = model.graph.states[s];
    const std::string& name = model.graph.ops[std::size_t(state.placeholder)].name();
    for (int n = 0; n < view.num_nodes(); ++n) {
      const auto& right = expected[s][std::size_t(n)];
      if (right.empty()) continue;  // a readout has no value away from the roots
      if (!is_told(model, s, forest, view.nodes[std::size_t(n)])) continue;
      const auto values = values_of(model, result, view.nodes[std::size_t(n)], name);
      for (std::size_t i = 0; i < right.size(); ++i) {
        if (right[i].covers(values[i])) continue;
        std::ostringstream out;
        out.precision(9);
        out << name << "[" << n << "," << i << "] = " << values[i] << ", but the equations give " << right[i].value
            << " within " << right[i].error;
        return out.str();
      }
    }
  }
  return {};
}

std::string smallest_failure(const GraphCase& model, const RandomFunctor& functor, std::uint64_t seed) {
  for (int most = 1; most < 40; ++most)
    for (std::uint64_t attempt = 0; attempt < 20; ++attempt) {
      Random random(seed * 1000 + attempt);
      const Forest forest = random_forest(random, model.graph, most);
      if (const auto wrong = mismatch(model, functor, forest)) return describe(forest) + *wrong;
    }
  return "no smaller forest goes wrong";
}

}  // namespace cortex::test
