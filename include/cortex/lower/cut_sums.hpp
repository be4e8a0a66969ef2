// A reduction over what is put together of several tensors becomes as many reductions, as whoever writes them apart has
// them: nothing is copied, and what does not depend on the recursion leaves it.
//
//   sum(j, W[i,j] * select(j < 64, x[n,min(j,63)], h[n,max(j - 64,0)]))     (j to 128)
//     ->
//   sum(j, W[i,j] * x[n,j]) + sum(j, W[i,j + 64] * h[n,j])                  (j to 64)
//
// So does one that reads an operator whose body is such a select. Before versions are made of a graph: what is zero at
// leaves then leaves the sum there.
#pragma once

#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/ir/cuts.hpp"
#include "cortex/lower/definition.hpp"
#include "cortex/ra/graph.hpp"

namespace cortex::lower {

namespace detail {

class SumCutter {
 public:
  SumCutter(const ra::Graph& graph, const ra::Op& reader) : graph_(graph), reader_(reader) {}

  ir::Expr operator()(const ir::Expr& e) const {
    return ir::mutate_with(e, [&](auto& self, const ir::Reduce& reduce) -> ir::Expr {
      const ir::Expr& j = reduce.axis.var;
      const auto extent = ir::as_int(reduce.axis.extent);
      if (reduce.axis.dim.kind() != DimKind::dense || !extent) return self.children(reduce);
      const ir::Expr body = inlined(reduce.body, j, *extent);
      const Vector<std::int64_t> cuts = ir::cuts_of(body, j, *extent);
      if (cuts.size() <= 2 || cuts.size() > most_pieces + 1) return self.children(reduce);
      ir::Expr all;
      for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
        const ir::Expr var = ir::Var::make(j.as<ir::Var>()->name);
        const Dim dim = ir::piece_of(reduce.axis.dim, cuts[c], cuts[c + 1]);
        const ir::Expr piece = ir::between(body, j, var, cuts[c], cuts[c + 1]);
        const ir::Expr one = (*this)(ir::Reduce::make(reduce.op, {var, dim, ir::imm(dim.extent())}, piece));
        all = all ? ir::combine(reduce.op, all, one) : one;
      }
      return all;
    });
  }

 private:
  static constexpr std::size_t most_pieces = 8;

  /// `e` with the bodies of operators that it reads at `j` and that are cut along it.
  ir::Expr inlined(const ir::Expr& e, const ir::Expr& j, std::int64_t extent) const {
    return ir::mutate_with(e, [&](auto& self, const ir::Load& load) -> ir::Expr {
      const int found = graph_.find(load.buffer);
      if (found < 0) return self.children(load);
      const ra::Op& read = graph_.ops[std::size_t(found)];
      // One that holds a contraction is worth its memory.
      if (read.kind != ra::OpKind::compute || read.at_roots != reader_.at_roots ||
          !load.indices[0].same_as(reader_.node) || has_contraction(read.body))
        return self.children(load);
      ir::Substitution values{{read.node.get(), reader_.node}};
      for (std::size_t i = 0; i < read.index_vars.size(); ++i)
        values.emplace(read.index_vars[i].get(), load.indices[i + 1]);
      const ir::Expr body = ir::substitute(read.body, values);
      return ir::cuts_of(body, j, extent).size() > 2 ? body : self.children(load);
    });
  }

  const ra::Graph& graph_;
  const ra::Op& reader_;
};

}  // namespace detail

/// The same graph, with such reductions apart.
inline ra::Graph cut_sums(const ra::Graph& graph) {
  ra::Graph result = graph;
  for (ra::Op& op : result.ops)
    if (op.kind == ra::OpKind::compute) op.body = detail::SumCutter(graph, op)(op.body);
  return result;
}

}  // namespace cortex::lower
