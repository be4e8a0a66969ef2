// Each fact that proofs take from the linearizer, held against the linearizer on random structures: a fact that is
// false anywhere gives a form that is negative.
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <random>

#include "cortex/pass/scope.hpp"
#include "cortex/runtime/counts.hpp"
#include "cortex/structure/linearizer.hpp"
#include "support/random_models.hpp"

using namespace cortex;
using pass::Linear;
using pass::Symbol;

namespace {

using K = ir::UfKind;

ir::Expr count(K kind) { return ir::call(kind, "count"); }

/// What a program sees of a piece of a call.
struct Piece {
  structure::Arrays arrays;
  runtime::Counts counts;
  Piece(const structure::Arrays& call, std::int32_t piece) : arrays(call), counts(runtime::counts_of(call, piece)) {
    const std::ptrdiff_t batch = call.piece_batch[piece];
    arrays.batch_begin += batch, arrays.batch_length += batch, arrays.root += call.piece_root[piece];
    if (arrays.part_begin) arrays.part_begin += batch * call.num_parts, arrays.part_length += batch * call.num_parts;
    if (arrays.part_offset) arrays.part_offset += std::ptrdiff_t(piece) * (call.num_parts + 1);
  }
  std::int32_t counted(ir::Count count) const { return counts[std::size_t(count)]; }
};

/// A place inside some loops, whose facts are evaluated for all iterations of the loops.
class Place {
 public:
  Place(const Piece& piece, pass::KnownNodes known)
      : piece_(piece), arrays_(piece.arrays), known_(known), scope_(std::move(known)) {}

  ir::Expr loop(const ir::Expr& extent) {
    const ir::Expr var = ir::Var::make("v" + std::to_string(loops_.size()));
    const Linear range = scope_.linear(extent);
    scope_.enter_loop(var, extent);
    loops_.push_back({scope_.linear(var).terms.at(0).atom, range});
    return var;
  }
  /// The atoms of an expression take part.
  Linear use(const ir::Expr& e) { return scope_.linear(e); }
  pass::Scope& scope() { return scope_; }

  /// How many facts there are; each is checked at every iteration of the loops.
  int check() {
    const int atoms = scope_.atoms().size();
    std::vector<Linear> facts;
    for (int atom = 0; atom < atoms; ++atom)
      for (Linear& fact : scope_.facts_of(atom, true)) facts.push_back(std::move(fact));
    for (int atom = 0; atom < atoms; ++atom) bounds_.push_back(scope_.interval(Linear::of(atom)));
    values_.assign(std::size_t(scope_.atoms().size()), 0);
    run(0, facts);
    return int(facts.size());
  }

  int evaluations = 0;

 private:
  struct Loop {
    int atom;
    Linear extent;
  };

  void run(std::size_t depth, const std::vector<Linear>& facts) {
    if (depth < loops_.size()) {
      const std::int64_t extent = value(loops_[depth].extent);
      for (std::int64_t i = 0; i < extent; ++i) {
        values_[std::size_t(loops_[depth].atom)] = i;
        run(depth + 1, facts);
      }
      return;
    }
    for (const Linear& fact : facts) {
      ++evaluations;
      if (const std::int64_t v = value(fact); v < 0) {
        INFO(scope_.atoms().text(fact) << " >= 0");
        CHECK(v >= 0);
      }
    }
    for (std::size_t atom = 0; atom < bounds_.size(); ++atom) {
      const std::int64_t v = of_atom(int(atom));
      INFO(scope_.atoms().text(Linear::of(int(atom))));
      if (v < bounds_[atom].low || v > bounds_[atom].high) CHECK(false);
    }
  }

  std::int64_t value(const Linear& form) const {
    std::int64_t sum = form.constant;
    for (const Linear::Term& term : form.terms) sum += term.by * of_atom(term.atom);
    return sum;
  }

  std::int64_t of_atom(int number) const {
    const pass::Atom& atom = const_cast<pass::Scope&>(scope_).atoms()[number];
    const auto arg = [&](std::size_t i) { return value(atom.args[i]); };
    const auto csr = [&]() -> const structure::Csr& { return arrays_.children[atom.accessor]; };
    const structure::Subtrees& sub = arrays_.subtrees;
    switch (atom.symbol) {
      case Symbol::num_nodes: return piece_.counted(ir::Count::nodes);
      case Symbol::num_internal: return piece_.counted(ir::Count::internal);
      case Symbol::num_leaves: return piece_.counted(ir::Count::leaves);
      case Symbol::num_batches: return piece_.counted(ir::Count::batches);
      case Symbol::num_roots: return piece_.counted(ir::Count::roots);
      case Symbol::num_groups: return piece_.counted(ir::Count::groups);
      case Symbol::child_step: return piece_.counted(ir::Count::child_step);
      case Symbol::num_ranges: return piece_.counted(ir::Count::ranges);
      case Symbol::range_begin: return of_range(ir::Count::range_begin, arg(0));
      case Symbol::range_length: return of_range(ir::Count::range_length, arg(0));
      case Symbol::max_batch: return arrays_.max_batch;
      case Symbol::max_batch_edges: return csr().max_batch_edges;
      case Symbol::batch_begin: return arrays_.batch_begin[arg(0)];
      case Symbol::batch_length: return arrays_.batch_length[arg(0)];
      case Symbol::part_begin: return arrays_.part_begin[arg(0)];
      case Symbol::part_length: return arrays_.part_length[arg(0)];
      case Symbol::part_offset: return arrays_.part_offset[arg(0)];
      case Symbol::part_list: return arrays_.part_list[arg(0)];
      case Symbol::root: return arrays_.root[arg(0)];
      case Symbol::group_begin: return sub.group_begin[arg(0)];
      case Symbol::group_node: return sub.group_node[arg(0)];
      case Symbol::inner_begin: return sub.inner_begin[arg(0)];
      case Symbol::inner_child: return sub.inner_child[arg(0)];
      case Symbol::child: return arrays_.child[atom.accessor][arg(0)];
      case Symbol::kth_child: {
        const std::int64_t begin = csr().begin[arg(0)], k = arg(1);
        return k < csr().begin[arg(0) + 1] - begin ? csr().child[begin + k] : arrays_.num_nodes;
      }
      case Symbol::edge_begin: return csr().begin[arg(0)];
      case Symbol::edge_child: return csr().child[arg(0)];
      case Symbol::field: return static_cast<const std::int32_t*>(arrays_.field[atom.accessor].data)[arg(0)];
      case Symbol::variable: return values_[std::size_t(number)];
      default:
        throw std::logic_error("no structure has the atom " +
                               const_cast<pass::Scope&>(scope_).atoms().text(Linear::of(number)));
    }
  }

  std::int64_t of_range(ir::Count first, std::int64_t range) const {
    return piece_.counts.at(std::size_t(std::int64_t(first) + range));
  }

  const Piece& piece_;
  const structure::Arrays& arrays_;
  pass::KnownNodes known_;
  pass::Scope scope_;
  std::vector<Loop> loops_;
  std::vector<pass::Interval> bounds_;
  std::vector<std::int64_t> values_;
};

struct Tally {
  int facts = 0, evaluations = 0;
};

/// Every array of a piece at every index, in the loops in which programs read them.
void check_piece(const Piece& piece, const pass::KnownNodes& known, int named, int containers, bool subtrees,
                 Tally& tally) {
  const structure::Arrays& arrays = piece.arrays;
  const auto at = [&](auto fill) {
    Place place(piece, known);
    fill(place);
    tally.facts += place.check();
    tally.evaluations += place.evaluations;
  };
  const auto edge_begin = [](const ir::Expr& node, int c) { return ir::call(K::edge, "edge", {node, ir::imm(0)}, c); };
  const ir::Expr nodes = count(K::num_nodes), internal = count(K::num_internal);

  at([&](Place& p) {
    for (const K kind : {K::num_nodes, K::num_leaves, K::num_internal, K::num_batches, K::num_roots})
      p.use(count(kind));
    if (subtrees) p.use(count(K::num_groups));
  });
  const auto batch = [&](Place& p, const ir::Expr& b) {
    p.use(ir::call(K::batch_length, "length", {b}));
    p.use(ir::call(K::batch_node, "node", {b, ir::imm(0)}));
  };
  at([&](Place& p) { batch(p, p.loop(count(K::num_batches))); });
  at([&](Place& p) { batch(p, p.loop(count(K::num_internal_batches)) + 1); });
  at([&](Place& p) { batch(p, ir::imm(0)); });
  const auto part = [&](Place& p, const ir::Expr& number) {
    p.use(ir::call(K::part_length, "length", {number}));
    p.use(ir::call(K::part_node, "node", {number, ir::imm(0)}));
  };
  if (arrays.part_begin)
    for (int v = 0; v < known.parts; ++v) {
      at([&](Place& p) { part(p, ir::imm(v)); });
      at([&](Place& p) { part(p, p.loop(count(K::num_batches)) * known.parts + std::int64_t(v)); });
      at([&](Place& p) { part(p, (p.loop(count(K::num_internal_batches)) + 1) * known.parts + std::int64_t(v)); });
    }
  for (int first = 0; arrays.part_offset && first < known.parts; ++first)
    for (int parts = 1; parts <= known.parts - first; ++parts)
      at([&](Place& p) {
        const ir::Expr n = p.loop(ir::call(K::listed_length, "length", {ir::imm(first), ir::imm(parts)}));
        p.use(ir::call(K::field, "field", {ir::call(K::listed_node, "node", {ir::imm(first), n})}, 0));
      });
  at([&](Place& p) { p.use(ir::call(K::root_node, "root", {p.loop(count(K::num_roots))})); });
  if (subtrees) {
    at([&](Place& p) {
      const ir::Expr g = p.loop(count(K::num_groups));
      p.use(ir::call(K::group_node, "top", {g, p.loop(ir::call(K::group_length, "length", {g}))}));
    });
    at([&](Place& p) {
      const ir::Expr n = p.loop(internal);
      p.use(ir::call(K::inner_child, "inner", {n, p.loop(ir::call(K::num_inner, "count", {n}))}));
    });
  }
  const auto in_range = [](Place& p, const ir::Expr& range) {
    return ir::call(K::range_node, "node", {range, p.loop(ir::call(K::range_length, "length", {range}))});
  };
  std::vector<std::function<ir::Expr(Place&)>> some_nodes{
      [&](Place& p) { return in_range(p, ir::imm(std::int64_t(ir::NodeRange::inner))); },
      [&](Place& p) { return in_range(p, p.loop(count(K::num_ranges))); }};
  if (arrays.num_pieces == 1)  // else no loop is over all nodes of the call (pass/divide_nests.hpp)
    for (const ir::Expr& range : {nodes, internal}) some_nodes.push_back([range](Place& p) { return p.loop(range); });
  for (const auto& node : some_nodes) {
    for (int a = 0; a < named; ++a) at([&](Place& p) { p.use(ir::call(K::child, "child", {node(p)}, a)); });
    at([&](Place& p) { p.use(ir::call(K::field, "field", {node(p)}, 0)); });
  }
  for (int c = 0; c < containers; ++c) {
    const auto kids = [&](const ir::Expr& n) { return ir::call(K::num_children, "count", {n}, c); };
    for (const auto& node : some_nodes) {
      at([&](Place& p) {
        const ir::Expr n = node(p), k = p.loop(kids(n));
        p.use(edge_begin(nodes, c));
        p.use(ir::call(K::kth_child, "kid", {n, k}, c));
        p.scope().atoms().form(Symbol::max_batch_edges, c);
      });
      at([&](Place& p) { p.use(ir::call(K::kth_child, "kid", {node(p), ir::imm(1)}, c)); });
    }
    at([&](Place& p) { p.use(ir::call(K::edge_child, "kid", {p.loop(edge_begin(nodes, c))}, c)); });
    const auto span = [&](Place& p, const ir::Expr& first, const ir::Expr& length) {
      const ir::Expr row = p.loop(length);
      p.use(edge_begin(first, c)), p.use(edge_begin(first + length, c));
      p.use(edge_begin(first + row, c)), p.use(edge_begin(first + row + 1, c));
      p.scope().atoms().form(Symbol::max_batch_edges, c);
    };
    at([&](Place& p) {
      const ir::Expr b = p.loop(count(K::num_batches));
      span(p, ir::call(K::batch_node, "node", {b, ir::imm(0)}), ir::call(K::batch_length, "length", {b}));
    });
    at([&](Place& p) { span(p, ir::call(K::leaf_node, "leaf", {ir::imm(0)}), count(K::num_leaves)); });
    at([&](Place& p) {
      const ir::Expr range = p.loop(count(K::num_ranges));
      span(p, ir::call(K::range_node, "node", {range, ir::imm(0)}), ir::call(K::range_length, "length", {range}));
    });
    if (arrays.part_begin)
      at([&](Place& p) {
        const ir::Expr b = p.loop(count(K::num_batches)) * known.parts + p.loop(ir::imm(known.parts));
        span(p, ir::call(K::part_node, "node", {b, ir::imm(0)}), ir::call(K::part_length, "length", {b}));
      });
  }
}

void check_all(const structure::Arrays& arrays, const pass::KnownNodes& known, int named, int containers, bool subtrees,
               Tally& tally) {
  for (std::int32_t piece = 0; piece < arrays.num_pieces; ++piece)
    check_piece(Piece(arrays, piece), known, named, containers, subtrees, tally);
}

/// A node that links to all its children by accessors that are not optional.
struct Pair {
  int id = 0;
  const Pair* left = nullptr;
  const Pair* right = nullptr;
};
struct Step {
  int id = 0;
  const Step* next = nullptr;
};

}  // namespace

TEST_CASE("what proofs know of the linearizer holds for random trees, graphs and sequences", "[pass]") {
  Tally tally;
  int pieces = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    test::Random random(seed);
    const auto kind = structure::Kind(seed % 3);
    const test::Forest forest = test::random_forest(random, ra::StructureKind(int(kind)), 9);
    structure::Workspace workspace;
    structure::Partition partition;
    structure::Selector by_word;
    by_word.key = {{structure::KeyStep::Op::field, 0, 0, 0}};
    by_word.values = {0, 1, 2};
    partition.selectors = {by_word};
    partition.parts = by_word.answers();
    const bool inner = seed % 2;
    partition.listed = inner ? structure::Where::internal : structure::Where::all;
    const bool parts = random.chance(0.5), subtrees = kind != structure::Kind::dag && random.chance(0.5);
    if (parts) workspace.set_partition(&partition);
    if (subtrees) workspace.set_subtree_depth(1 + random.below(4));
    workspace.fill_levels(1 + random.below(4));
    workspace.set_pieces(random.below(6));
    pass::KnownNodes known;
    known.parts = parts ? partition.parts : 1;
    known.listed = inner ? ir::Listed::inner_nodes : ir::Listed::all_nodes;
    known.required = {false, false};
    known.field_limit = {test::num_words};
    if (kind == structure::Kind::sequence) known.most_children = {1};
    const std::vector<structure::FieldCheck> checks(2, {structure::Where::all, -1, nullptr});
    const structure::Arrays& arrays =
        structure::Linearizer<test::Vertex, test::VertexSet>::run(workspace, Structure{kind}, checks, forest.roots);
    INFO("seed " << seed);
    check_all(arrays, known, 2, 3, subtrees, tally);
    pieces += arrays.num_pieces;
  }
  CHECK(pieces > 80);
  CHECK(tally.facts > 20000);
  CHECK(tally.evaluations > 200000);
}

TEST_CASE("an inner node has every child that is not optional", "[pass]") {
  using Set =
      structure::Accessors<structure::Child<&Pair::left>, structure::Child<&Pair::right>, structure::Field<&Pair::id>>;
  Tally tally;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::deque<Pair> all(1);
    for (std::size_t n = 0; n < all.size() && all.size() < 15; ++n) {
      if (n > 0 && random() % 3 == 0) continue;
      all.emplace_back(), all.emplace_back();
      all[n].left = &all[all.size() - 2], all[n].right = &all[all.size() - 1];
    }
    structure::Workspace workspace;
    workspace.set_pieces(3);
    const std::vector<structure::FieldCheck> checks(1);
    pass::KnownNodes known;
    known.required = {true, true};
    std::vector<const Pair*> roots{&all[0]};
    if (seed % 2 && all[0].left) roots = {all[0].left, all[0].right};  // two trees
    check_all(structure::Linearizer<Pair, Set>::run(workspace, cortex::tree, checks, roots), known, 2, 0, false, tally);
  }
  CHECK(tally.facts > 1000);
}

TEST_CASE("sequences of one length have one step from a node to its child", "[pass]") {
  using Set = structure::Accessors<structure::Child<&Step::next>, structure::Field<&Step::id>>;
  Tally tally;
  for (int length = 1; length < 6; ++length)
    for (int other = 1; other < 4; ++other) {
      std::deque<Step> all;
      std::vector<const Step*> roots;
      for (const int steps : {length, length + (other == 3)})
        for (int s = 0; s < steps; ++s) {
          all.emplace_back();
          if (s == 0)
            roots.push_back(&all.back());
          else
            all[all.size() - 2].next = &all.back();
        }
      if (other == 1) roots.pop_back();
      structure::Workspace workspace;
      workspace.set_pieces(other == 2 ? length : 0);
      const std::vector<structure::FieldCheck> checks(1);
      pass::KnownNodes known;
      known.required = {true};
      const auto& arrays = structure::Linearizer<Step, Set>::run(workspace, cortex::sequence, checks, roots);
      check_all(arrays, known, 1, 0, false, tally);
    }
  CHECK(tally.facts > 500);
}
