// Random models for differential tests, reproducible from a seed.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cortex/ir/build.hpp"
#include "cortex/ra/recursions.hpp"
#include "support/random_forests.hpp"

namespace cortex::test {

/// Weights by name, row-major.
using WeightValues = std::map<std::string, std::vector<float>>;

/// Operators, and the weights that they read.
struct GraphCase {
  ra::Graph graph;
  WeightValues weights;

  ra::Op& add(ra::OpKind kind, std::string name, std::vector<Dim> dims, DType dtype = DType::f32) {
    ir::BufferInfo info;
    info.name = std::move(name);
    info.dtype = dtype;
    info.role = kind == ra::OpKind::input         ? ir::Role::weight
                : kind == ra::OpKind::placeholder ? ir::Role::state
                : kind == ra::OpKind::field       ? ir::Role::field
                                                  : ir::Role::temp;
    if (kind == ra::OpKind::input) info.slot = int(weights.size());
    if (kind == ra::OpKind::field) info.slot = 1;  // the feature, which is the only one of numbers
    info.dims = dims;
    if (kind != ra::OpKind::input) info.dims.insert(info.dims.begin(), dims::node);
    ra::Op op;
    op.kind = kind;
    op.buffer = ir::Buffer(std::move(info));
    op.dims = std::move(dims);
    graph.ops.push_back(std::move(op));
    return graph.ops.back();
  }

  /// A weight of random values up to `scale`; an open dimension has a row for each word.
  ir::Buffer add_input(Random& random, std::vector<Dim> dims, double scale, DType dtype = DType::f32) {
    std::size_t size = 1;
    for (const Dim& d : dims) size *= std::size_t(d.kind() == DimKind::open ? num_words : d.extent());
    const ir::Buffer buffer =
        add(ra::OpKind::input, "w" + std::to_string(weights.size()), std::move(dims), dtype).buffer;
    std::vector<float>& values = weights[buffer->name];
    for (std::size_t i = 0; i < size; ++i) values.push_back(float(random.uniform(-scale, scale)));
    return buffer;
  }

  /// Leaves some of the states out of the results, which stand first then, but none of a recursion that no result
  /// needs.
  void list_results(Random& random) {
    const auto recursions = std::size_t(ra::num_recursions(graph));
    std::vector<bool> needed(recursions), listed;
    for (const ra::State& state : graph.states) {
      listed.push_back(random.chance(0.5));
      if (listed.back()) needed[std::size_t(state.recursion)] = true;
    }
    for (std::size_t r = recursions; r-- > 0;) {
      for (std::size_t s = 0; s < listed.size(); ++s)
        if (!needed[r] && graph.states[s].recursion == int(r)) listed[s] = needed[r] = true;
      const auto reads = ra::operators_needed(graph, int(r));
      for (const ra::State& state : graph.states)
        if (reads[std::size_t(state.placeholder)]) needed[std::size_t(state.recursion)] = true;
    }
    decltype(graph.states) results, others;
    for (std::size_t s = 0; s < listed.size(); ++s) (listed[s] ? results : others).push_back(graph.states[s]);
    graph.results = int(results.size());
    graph.states = std::move(results);
    for (const ra::State& state : others) graph.states.push_back(state);
  }

  /// `bind(name, values)` for each weight, of its own type.
  template <class Bind>
  void each_weight(Bind bind) const {
    for (const ra::Op& op : graph.ops) {
      if (op.kind != ra::OpKind::input) continue;
      const std::vector<float>& values = weights.at(op.name());
      if (op.buffer->dtype == DType::f32)
        bind(op.name(), values);
      else
        bind(op.name(), std::vector<double>(values.begin(), values.end()));
    }
  }
};

/// A graph without operators over vertices: children 0 and 1 are `first` and `second`, containers 0, 1 and 2 the kids,
/// the parents and, of a root, all nodes, field 0 is the word and 1 the feature.
inline GraphCase graph_of_vertices(const std::string& name, std::uint64_t seed) {
  // The accessors, registered as a user's lambdas would.
  Model<Vertex> all(name, cortex::dag);
  Dim V{"vocabulary"}, F{"feature", 6}, one{"one", 1};
  auto table = all.input<float>("table", V);
  all.compute("word", one,
              [&](auto n, auto) { return table(cortex::field<&Vertex::word>(n)); });  // field 0 is the word
  auto feature = all.field("x", cortex::field<&Vertex::feature>, F);
  auto h = all.placeholder<float>("h", one);
  auto body = all.compute("body", one, [&](auto n, auto i) {
    return h(cortex::optional_child<&Vertex::first>(n), i) + h(cortex::optional_child<&Vertex::second>(n), i) +
           table(cortex::field<&Vertex::word>(n)) +
           sum(cortex::children<&Vertex::kids>(n), [&](auto k) { return h(k, i); }) +
           sum(F, [&](auto f) { return feature(n, f); });
  });
  const ra::Graph made = all.recursion_op(h, body).graph();
  GraphCase result;
  result.graph.children_named = made.children_named;
  result.graph.containers = made.containers;
  result.graph.containers.push_back({"parents",
                                     dsl::accessor_key<structure::Parents<cortex::children<&Vertex::kids>>>(), false,
                                     DType::i32, 1, ra::Relation::parents});
  result.graph.containers.push_back(
      {"nodes", dsl::accessor_key<structure::Members>(), false, DType::i32, 1, ra::Relation::members});
  result.graph.fields = made.fields;
  result.graph.name = name + "_" + std::to_string(seed);
  return result;
}

/// How much of the grammar a random model draws from.
enum class Grammar : std::uint8_t {
  one_recursion,  // up, with a branch on leaves or on a field, or none
  whole,  // further recursions that go up, down or nowhere, readouts, switches, branches on any of the structure
};

/// Makes one random model: one or two vector states, with or without a branch on leaves, of operators drawn from the
/// grammar of the recursive API: contractions, folds over children, named children, embeddings, features, elementwise
/// functions.
class RandomModel : public GraphCase {
 public:
  explicit RandomModel(std::uint64_t seed, Grammar grammar = Grammar::one_recursion)
      : GraphCase(graph_of_vertices("random", seed)),
        random_(seed),
        matrices_(~seed),
        together_(seed + 1000000),
        below_(~seed ^ 1),
        weighed_(~seed ^ 2),
        grammar_(grammar) {
    if (grammar_ == Grammar::one_recursion) graph.containers.resize(1);
    const ra::StructureKind kinds[] = {ra::StructureKind::sequence, ra::StructureKind::tree, ra::StructureKind::dag};
    graph.structure = kinds[random_.below(3)];
    const int extents[] = {1, 2, 3, 5, 8, 15, 16, 17, 24, 32, 33, 40};
    H_ = Dim("hidden", extents[random_.below(12)]);
    E_ = Dim("inner", extents[random_.below(8)]);
    build();
    for (int more = grammar_ == Grammar::whole ? random_.below(3) : 0; more > 0; --more) build_more();
  }

 private:
  using Term = std::function<ir::Expr(const ir::Expr& node, const ir::Expr& i)>;
  struct Tensor {
    ir::Buffer buffer;
    Dim dim;
  };

  // ---- adding operators ----

  ir::Buffer input(std::vector<Dim> dims, double scale) { return add_input(random_, std::move(dims), scale); }

  ir::Buffer compute(const Dim& dim, const Term& value) {
    const ir::Expr node = ir::Var::make("n"), i = ir::Var::make("i");
    const ir::Expr body = value(node, i);  // may add inputs, which stand before
    ra::Op& op = add(ra::OpKind::compute, "op" + std::to_string(graph.ops.size()), {dim});
    op.node = node;
    op.index_vars = {i};
    op.body = body;
    op.at_roots = direction_ == ra::Direction::roots;
    return op.buffer;
  }

  // ---- terms: a value at [node, i] of one dimension ----

  static ir::Expr number(double v) { return ir::FloatImm::make(v, DType::f32); }
  static ir::Expr apply(ir::UnaryOp op, ir::Expr a) { return ir::Unary::make(op, std::move(a)); }
  static ir::Expr word_of(const ir::Expr& node) { return ir::call(ir::UfKind::field, "word", {node}, 0); }

  ir::Expr child_of(const ir::Expr& node, int which) const {
    return ir::call(ir::UfKind::child, which ? "second" : "first", {node}, which);
  }

  /// A leaf of an expression: bias, embedding, earlier operator or, where it is allowed, a child's state.
  Term term(const Dim& dim, bool recursive) {
    if (!completed_.empty() && random_.chance(0.4)) return completed(dim);
    const int pick = random_.below(recursive ? 6 : 3);
    if (pick == 0) return [b = input({dim}, 1)](const ir::Expr&, const ir::Expr& i) { return ir::Load::make(b, {i}); };
    if (pick == 1) {
      const Dim V{"vocabulary"};
      return [b = input({V, dim}, 1)](const ir::Expr& n, const ir::Expr& i) {
        return ir::Load::make(b, {word_of(n), i});
      };
    }
    if (pick == 2) return earlier(dim);
    return child_state(dim);
  }

  Term earlier(const Dim& dim) {
    std::vector<ir::Buffer> fitting;
    for (const Tensor& t : here_)
      if (t.dim == dim) fitting.push_back(t.buffer);
    if (fitting.empty()) return [](const ir::Expr&, const ir::Expr&) { return number(0.5); };
    return [b = fitting[std::size_t(random_.below(int(fitting.size())))]](const ir::Expr& n, const ir::Expr& i) {
      return ir::Load::make(b, {n, i});
    };
  }

  /// A child's state, a fold of the children's, or the k-th child's.
  Term child_state(const Dim& dim) {
    std::vector<ir::Buffer> fitting;
    for (const Tensor& t : states_)
      if (t.dim == dim) fitting.push_back(t.buffer);
    if (fitting.empty()) return term(dim, false);
    const ir::Buffer state = fitting[std::size_t(random_.below(int(fitting.size())))];
    if (direction_ == ra::Direction::down) return parents_state(state);
    const int which = random_.below(4);
    if (which < 2)
      return [=, this](const ir::Expr& n, const ir::Expr& i) { return ir::Load::make(state, {child_of(n, which), i}); };
    if (which == 2) {
      const int k = random_.below(3);
      return [=](const ir::Expr& n, const ir::Expr& i) {
        return ir::Load::make(state, {ir::call(ir::UfKind::kth_child, "kids", {n, ir::imm(k)}, 0), i});
      };
    }
    if (matrices_.chance(0.5)) return product_by_tag(dim, state);
    if (matrices_.chance(0.3)) return product_by_word(dim, state);
    if (below_.chance(0.4)) return product_by_childs_tag(dim, state);
    if (weighed_.chance(0.4)) return weighed_products(dim, state);
    const bool nested = random_.chance(0.4);
    const ir::Buffer matrix = nested ? input({dim, dim}, 1 / std::sqrt(double(dim.extent()))) : ir::Buffer();
    return [=](const ir::Expr& n, const ir::Expr& i) {
      const ir::Expr k = ir::Var::make("k"), kid = ir::call(ir::UfKind::kth_child, "kids", {n, k}, 0);
      ir::Expr each = ir::Load::make(state, {kid, i});
      if (nested) {
        const ir::Expr j = ir::Var::make("j");
        const ir::Expr product = ir::Load::make(matrix, {i, j}) * ir::Load::make(state, {kid, j});
        each =
            apply(ir::UnaryOp::sigmoid, ir::Reduce::make(ir::ReduceOp::sum, {j, dim, ir::imm(dim.extent())}, product)) *
            each;
      }
      return ir::Reduce::make(ir::ReduceOp::sum,
                              {k, dims::child, ir::call(ir::UfKind::num_children, "kids_count", {n}, 0)}, each);
    };
  }

  /// The products of the children's states with the matrices of their words.
  Term product_by_word(const Dim& dim, const ir::Buffer& state) {
    const ir::Buffer matrices =
        add_input(matrices_, {Dim("vocabulary"), dim, dim}, 1 / std::sqrt(double(dim.extent())));
    return [=](const ir::Expr& n, const ir::Expr& i) {
      const ir::Expr k = ir::Var::make("k"), j = ir::Var::make("j");
      const ir::Expr kid = ir::call(ir::UfKind::kth_child, "kids", {n, k}, 0);
      const ir::Expr product = ir::Load::make(matrices, {word_of(kid), i, j}) * ir::Load::make(state, {kid, j});
      return ir::Reduce::make(ir::ReduceOp::sum,
                              {k, dims::child, ir::call(ir::UfKind::num_children, "kids_count", {n}, 0)},
                              ir::Reduce::make(ir::ReduceOp::sum, {j, dim, ir::imm(dim.extent())}, product));
    };
  }

  /// The product of the sum of the children's states with the matrix of the node's own tag, of which there are few; and
  /// now and then what a matrix that all nodes have in common makes of that, times one of the tag's again.
  Term product_by_tag(const Dim& dim, const ir::Buffer& state) {
    const int tags = 2 + matrices_.below(3);
    const auto chosen = [&] {
      return add_input(matrices_, {Dim("tags", tags), dim, dim}, 1 / std::sqrt(double(dim.extent())));
    };
    const auto times = [=](const ir::Buffer& matrix, bool by_tag, const Term& term) -> Term {
      return [=](const ir::Expr& n, const ir::Expr& i) {
        const ir::Expr j = ir::Var::make("j"), tag = word_of(n) % std::int64_t(tags);
        const Vector<ir::Expr> indices = by_tag ? Vector<ir::Expr>{tag, i, j} : Vector<ir::Expr>{i, j};
        return ir::Reduce::make(ir::ReduceOp::sum, {j, dim, ir::imm(dim.extent())},
                                ir::Load::make(matrix, indices) * term(n, j));
      };
    };
    const Term first = times(chosen(), true, fold(state, 0, ir::ReduceOp::sum));
    if (matrices_.chance(0.5)) return first;
    const auto operator_of = [&](const Term& term) -> Term {
      const ir::Buffer made = compute(dim, term);
      return [=](const ir::Expr& n, const ir::Expr& i) { return ir::Load::make(made, {n, i}); };
    };
    const Term kept = operator_of(first);
    const ir::Buffer common = add_input(matrices_, {dim, dim}, 1 / std::sqrt(double(dim.extent())));
    const Term last = times(chosen(), true, operator_of(times(common, false, kept)));
    return [=](const ir::Expr& n, const ir::Expr& i) { return last(n, i) * kept(n, i); };
  }

  /// The products of the children's states with the matrices of their tags, or a function of each times its state.
  Term product_by_childs_tag(const Dim& dim, const ir::Buffer& state) {
    const int tags = 2 + below_.below(3);
    const bool plain = below_.chance(0.5);
    const ir::Buffer matrices = add_input(below_, {Dim("tags", tags), dim, dim}, 1 / std::sqrt(double(dim.extent())));
    return [=](const ir::Expr& n, const ir::Expr& i) {
      const ir::Expr k = ir::Var::make("k"), j = ir::Var::make("j");
      const ir::Expr kid = ir::call(ir::UfKind::kth_child, "kids", {n, k}, 0), tag = word_of(kid) % std::int64_t(tags);
      const ir::Expr product =
          ir::Reduce::make(ir::ReduceOp::sum, {j, dim, ir::imm(dim.extent())},
                           ir::Load::make(matrices, {tag, i, j}) * ir::Load::make(state, {kid, j}));
      const ir::Expr each = plain ? product : apply(ir::UnaryOp::sigmoid, product) * ir::Load::make(state, {kid, i});
      return ir::Reduce::make(ir::ReduceOp::sum,
                              {k, dims::child, ir::call(ir::UfKind::num_children, "kids_count", {n}, 0)}, each);
    };
  }

  /// The products of the children's states with two matrices that the children's words weigh, or weighed products.
  Term weighed_products(const Dim& dim, const ir::Buffer& state) {
    const bool of_matrices = weighed_.chance(0.5), differ = weighed_.chance(0.5);
    const double scale = 1 / std::sqrt(double(dim.extent()));
    const ir::Buffer a = add_input(weighed_, {dim, dim}, scale), b = add_input(weighed_, {dim, dim}, scale);
    return [=](const ir::Expr& n, const ir::Expr& i) {
      const ir::Expr k = ir::Var::make("k"), kid = ir::call(ir::UfKind::kth_child, "kids", {n, k}, 0);
      const auto weight = [&](const ir::Expr& of, int most) {
        return ir::Cast::make(DType::f32, word_of(of) % std::int64_t(most)) * ir::constant(0.25, {DType::f32, 1});
      };
      const ir::Expr of_child = weight(kid, 4), of_node = weight(n, 5);
      const auto weighed = [&](const ir::Expr& x, const ir::Expr& y) {
        return differ ? of_child * x - of_node * y : of_child * x + of_node * y;
      };
      const auto sum = [&](auto product) {
        const ir::Expr j = ir::Var::make("j");
        return ir::Reduce::make(ir::ReduceOp::sum, {j, dim, ir::imm(dim.extent())}, product(j));
      };
      const auto times = [&](const ir::Buffer& matrix) {
        return sum([&](auto& j) { return ir::Load::make(matrix, {i, j}) * ir::Load::make(state, {kid, j}); });
      };
      const ir::Expr each = of_matrices ? sum([&](auto& j) {
        return weighed(ir::Load::make(a, {i, j}), ir::Load::make(b, {i, j})) * ir::Load::make(state, {kid, j});
      })
                                        : weighed(times(a), times(b));
      return ir::Reduce::make(ir::ReduceOp::sum,
                              {k, dims::child, ir::call(ir::UfKind::num_children, "kids_count", {n}, 0)}, each);
    };
  }

  /// A state of the parent, or a fold of the parents'.
  Term parents_state(const ir::Buffer& state) {
    if (random_.chance(0.3) && graph.structure != ra::StructureKind::dag)  // a DAG's parents have no order
      return [=](const ir::Expr& n, const ir::Expr& i) {
        return ir::Load::make(state, {ir::call(ir::UfKind::kth_child, "parents", {n, ir::imm(0)}, 1), i});
      };
    return fold(state, 1, ir::ReduceOp::sum);
  }

  /// What an earlier recursion has computed: at the node itself, at children, or in a readout at all nodes.
  Term completed(const Dim& dim) {
    std::vector<ir::Buffer> fitting;
    for (const Tensor& t : completed_)
      if (t.dim == dim) fitting.push_back(t.buffer);
    if (fitting.empty()) return [](const ir::Expr&, const ir::Expr&) { return number(0.25); };
    const ir::Buffer state = fitting[std::size_t(random_.below(int(fitting.size())))];
    if (direction_ == ra::Direction::roots && random_.chance(0.7))
      return fold(state, 2, random_.chance(0.5) ? ir::ReduceOp::sum : ir::ReduceOp::max);
    if (random_.chance(0.2)) return fold(state, 0, ir::ReduceOp::sum);
    return [=](const ir::Expr& n, const ir::Expr& i) { return ir::Load::make(state, {n, i}); };
  }

  static Term fold(const ir::Buffer& state, int container, ir::ReduceOp op) {
    return [=](const ir::Expr& n, const ir::Expr& i) {
      const ir::Expr k = ir::Var::make("k");
      return ir::Reduce::make(op, {k, dims::child, ir::call(ir::UfKind::num_children, "count", {n}, container)},
                              ir::Load::make(state, {ir::call(ir::UfKind::kth_child, "of", {n, k}, container), i}));
    };
  }

  /// Two terms put together, of both dimensions, in an operator of its own or where it is read.
  std::pair<Dim, Term> both_terms(bool recursive) {
    const bool turned = together_.chance(0.5);
    const Dim first = turned ? E_ : H_, second = turned ? H_ : E_;
    const Term x = term(first, recursive), y = term(second, recursive);
    const std::int64_t cut = first.extent();
    const Term term = [=](const ir::Expr& n, const ir::Expr& i) {
      using enum ir::BinaryOp;
      const ir::Expr a = x(n, ir::binary(min, i, ir::imm(cut - 1))), b = y(n, ir::binary(max, i - cut, ir::imm(0)));
      return turned ? ir::Select::make(ir::binary(lt, i, ir::imm(cut)), a, b)
                    : ir::Select::make(ir::binary(le, ir::imm(cut), i), b, a);
    };
    const Dim all("both", cut + second.extent());
    if (together_.chance(0.5)) return {all, term};
    const ir::Buffer made = compute(all, term);
    return {all, [=](const ir::Expr& n, const ir::Expr& i) { return ir::Load::make(made, {n, i}); }};
  }

  /// A matrix times a term of the other or the same dimension, or of both.
  Term contraction(const Dim& dim, bool recursive) {
    if (together_.chance(0.2)) {
      const auto [from, x] = both_terms(recursive);
      return product_with(input({dim, from}, 1 / std::sqrt(double(from.extent()))), false, from, x);
    }
    const Dim from = random_.chance(0.7) ? dim : other(dim);
    const Term x = term(from, recursive);
    const bool transposed = random_.chance(0.3);
    const ir::Buffer m =
        input(transposed ? std::vector{from, dim} : std::vector{dim, from}, 1 / std::sqrt(double(from.extent())));
    return product_with(m, transposed, from, x);
  }
  static Term product_with(const ir::Buffer& m, bool transposed, const Dim& from, const Term& x) {
    return [=](const ir::Expr& n, const ir::Expr& i) {
      const ir::Expr j = ir::Var::make("j");
      const ir::Expr w = transposed ? ir::Load::make(m, {j, i}) : ir::Load::make(m, {i, j});
      return ir::Reduce::make(ir::ReduceOp::sum, {j, from, ir::imm(from.extent())}, w * x(n, j));
    };
  }

  Dim other(const Dim& dim) const { return dim == H_ ? E_ : H_; }

  Term expression(const Dim& dim, bool recursive, int depth) {
    if (depth == 0) return random_.chance(0.45) ? contraction(dim, recursive) : term(dim, recursive);
    const Term a = expression(dim, recursive, depth - 1);
    if (random_.chance(0.4)) {
      using enum ir::UnaryOp;
      const ir::UnaryOp ops[] = {tanh, sigmoid, relu, abs, neg, erf, sin, cos, log1p, expm1};
      const ir::UnaryOp op = ops[random_.below(10)];
      return [=](const ir::Expr& n, const ir::Expr& i) {
        const ir::Expr x = a(n, i);  // log1p of what is above -1, expm1 of what is not large
        return apply(op, op == log1p ? apply(abs, x) : op == expm1 ? apply(tanh, x) : x);
      };
    }
    const Term b = expression(dim, recursive, random_.below(depth));
    const int pick = random_.below(8);
    return [=](const ir::Expr& n, const ir::Expr& i) -> ir::Expr {
      const ir::Expr x = a(n, i), y = b(n, i);
      switch (pick) {
        case 0: return x + y;
        case 1: return x - y;
        case 2: return x * y;
        case 3: return ir::binary(ir::BinaryOp::max, x, y);
        case 4: return ir::binary(ir::BinaryOp::min, x, y);
        case 5: return x / (number(1.5) + apply(ir::UnaryOp::abs, y));
        case 6:
          return ir::binary(ir::BinaryOp::pow, number(0.5) + apply(ir::UnaryOp::abs, x), apply(ir::UnaryOp::tanh, y));
        default: return ir::Select::make(ir::binary(ir::BinaryOp::lt, x, y), y * number(0.5), x);
      }
    };
  }

  // ---- bodies ----

  /// Some operators on the way, and one that keeps its values small.
  ir::Buffer body(const Dim& dim, bool recursive) {
    for (int extra = random_.below(3); extra > 0; --extra) {
      const Dim at = random_.chance(0.6) ? dim : other(dim);
      const Term t = expression(at, recursive, random_.below(2));
      here_.push_back(
          {compute(at, [=](const ir::Expr& n, const ir::Expr& i) { return apply(ir::UnaryOp::tanh, t(n, i)); }), at});
    }
    const Term t = expression(dim, recursive, 1 + random_.below(2));
    const ir::UnaryOp last = random_.chance(0.5) ? ir::UnaryOp::tanh : ir::UnaryOp::sigmoid;
    const ir::Buffer result = compute(dim, [=](const ir::Expr& n, const ir::Expr& i) { return apply(last, t(n, i)); });
    here_.push_back({result, dim});
    return result;
  }

  ir::Buffer branch(const Dim& dim, const ir::Buffer& a, const ir::Buffer& b, bool on_leaves) {
    const int then_op = graph.find(a), else_op = graph.find(b);
    ra::Op& op = add(ra::OpKind::if_then_else, "branch" + std::to_string(graph.ops.size()), {dim});
    op.node = ir::Var::make("n");
    op.condition = on_leaves                    ? ir::call(ir::UfKind::is_leaf, "is_leaf", {op.node})
                   : grammar_ == Grammar::whole ? condition(op.node)
                                                : ir::binary(ir::BinaryOp::eq, word_of(op.node) % 2, ir::imm(0));
    op.then_op = then_op;
    op.else_op = else_op;
    return op.buffer;
  }

  /// Something of the structure.
  ir::Expr condition(const ir::Expr& node) {
    const auto kids = [&] { return ir::call(ir::UfKind::num_children, "num_children", {node}, 0); };
    switch (random_.below(6)) {
      case 0: return ir::binary(ir::BinaryOp::eq, kids(), ir::imm(1 + random_.below(2)));
      case 1: return ir::binary(ir::BinaryOp::gt, kids(), ir::imm(random_.below(2)));
      case 2:
        return ir::binary(ir::BinaryOp::eq, ir::call(ir::UfKind::num_children, "num_parents", {node}, 1), ir::imm(0));
      case 3: {
        const ir::Expr inner =
            ir::Unary::make(ir::UnaryOp::logical_not, ir::call(ir::UfKind::is_leaf, "is_leaf", {node}));
        return ir::Binary::make(ir::BinaryOp::logical_and, inner,
                                ir::binary(ir::BinaryOp::lt, word_of(node), ir::imm(num_words / 2)));
      }
      default: return ir::binary(ir::BinaryOp::eq, word_of(node) % 2, ir::imm(0));
    }
  }

  /// A switch on the word's remainder by 3, each case with a body of its own.
  ir::Buffer switch_of(const Dim& dim) {
    const bool total = random_.chance(0.5);
    std::vector<ir::Buffer> bodies;
    for (int c = 0; c < 3; ++c) bodies.push_back(body(dim, true));
    ir::Buffer rest = bodies[2];
    for (int c = total ? 1 : 2; c-- > 0;) {
      const int then_op = graph.find(bodies[std::size_t(c)]), else_op = graph.find(rest);
      ra::Op& op = add(ra::OpKind::if_then_else, "switch" + std::to_string(graph.ops.size()), {dim});
      op.node = ir::Var::make("n");
      const ir::Expr key = word_of(op.node) % 3;
      op.condition = ir::binary(ir::BinaryOp::eq, key, ir::imm(c));
      op.then_op = then_op;
      op.else_op = else_op;
      op.case_number = c;
      if (c == 0 && !total) op.key = key, op.cases = {0, 1, 2};
      rest = op.buffer;
    }
    return rest;
  }

  /// One more recursion after those that the graph has.
  void build_more() {
    const int recursion = ra::num_recursions(graph);
    constexpr ra::Direction ways[] = {ra::Direction::up, ra::Direction::down, ra::Direction::down, ra::Direction::none,
                                      ra::Direction::roots};
    completed_.insert(completed_.end(), states_.begin(), states_.end());
    direction_ = ways[random_.below(5)];
    if (direction_ == ra::Direction::roots) {  // nothing but other readouts reads a readout
      readouts_ = true;
    } else if (readouts_) {
      direction_ = ra::Direction::roots;
    }
    const Dim dim = random_.chance(0.6) ? H_ : E_;
    const ir::Buffer state = add(ra::OpKind::placeholder, "more" + std::to_string(recursion), {dim}).buffer;
    const int placeholder = graph.find(state);
    states_ = {{state, dim}};
    if (random_.chance(0.5)) here_.clear();
    const bool recursive = direction_ == ra::Direction::up || direction_ == ra::Direction::down;
    ir::Buffer result = body(dim, recursive);
    if (recursive && random_.chance(0.3))
      result = switch_of(dim);
    else if (recursive && random_.chance(0.5))
      result = branch(dim, body(dim, false), result, random_.chance(0.3));
    graph.states.push_back({placeholder, graph.find(result), recursion});
    if (direction_ == ra::Direction::roots) states_.clear();  // has no value at other nodes
  }

  void build() {
    const int count = 1 + random_.below(2);
    std::vector<int> placeholders;
    for (int s = 0; s < count; ++s) {
      const Dim dim = s == 0 || random_.chance(0.6) ? H_ : E_;
      const ra::Op& op = add(ra::OpKind::placeholder, "state" + std::to_string(s), {dim});
      states_.push_back({op.buffer, dim});
      placeholders.push_back(graph.find(op.buffer));
    }
    const int shape = random_.below(4);  // 0, 1: a branch on leaves; 2: on a field; 3: none
    std::vector<ir::Buffer> leaf_bodies;
    if (shape < 3)
      for (const Tensor& state : states_) leaf_bodies.push_back(body(state.dim, false));
    if (shape < 3) here_.clear();  // each side has its own operators
    for (int s = 0; s < count; ++s) {
      ir::Buffer result = body(states_[std::size_t(s)].dim, true);
      if (grammar_ == Grammar::whole && random_.chance(0.25)) result = switch_of(states_[std::size_t(s)].dim);
      if (shape < 3) result = branch(states_[std::size_t(s)].dim, leaf_bodies[std::size_t(s)], result, shape < 2);
      graph.states.push_back({placeholders[std::size_t(s)], graph.find(result)});
    }
  }

  Random random_;
  Random matrices_, together_, below_,
      weighed_;  // of their own, so that what stands around them is the same without them
  Grammar grammar_;
  Dim H_{"hidden", 1}, E_{"inner", 1};
  std::vector<Tensor> states_, here_, completed_;
  ra::Direction direction_ = ra::Direction::up;
  bool readouts_ = false;
};

}  // namespace cortex::test
