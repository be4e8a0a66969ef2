// Batches that are sorted by the matrices that nodes choose: what of a body then has a loop for each matrix, and which
// models are worth it.
#include <catch2/catch.hpp>

#include "cortex/pass/loops.hpp"
#include "support/golden.hpp"
#include "support/lowering.hpp"
#include "support/models.hpp"

using namespace cortex;
using cortex::test::count;

namespace {

struct Item {
  int tag = 0, kind = 0;
  std::vector<const Item*> kids;
};
constexpr auto kids = cortex::children<&Item::kids>;
constexpr auto tag = cortex::field<&Item::tag>;
constexpr auto kind = cortex::field<&Item::kind>;

/// h = tanh(the sum over children k of U_t h_k), `choose` giving t by the node, the child and its position.
template <class Choose>
auto labelled(std::int64_t hidden, const Dim& tags, Choose choose, Structure structure = cortex::tree) {
  Dim H("hidden", hidden);
  Model<Item> m("labelled", structure);
  auto U = m.input<float>("U", tags, H, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(kids(n), [&](auto k, auto position) {
      return sum(H, [&](auto j) { return U(choose(n, k, position), i, j) * h(k, j); });
    }));
  });
  return m.recursion_op(h, body);
}

/// h = tanh(U_t s + b), s being the sum of the children's states; `choose` gives t at a node.
template <class Choose>
auto tagged(std::int64_t hidden, const Dim& tags, Choose choose, Structure structure = cortex::tree) {
  Dim H("hidden", hidden);
  Model<Item> m("tagged", structure);
  auto U = m.input<float>("U", tags, H, H);
  auto b = m.input<float>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return tanh(sum(H, [&](auto j) { return U(choose(n), i, j) * s(n, j); }) + b(i));
  });
  return m.recursion_op(h, body);
}

std::string lowered(const ra::Graph& graph, const Schedule& schedule) {
  return ir::print(lower::lower(graph, schedule).body);
}

const Schedule sorted = Schedule{}.dynamic_batch().specialize_leaves().sort_by_matrix();
const auto own_tag = [](auto n) { return tag(n); };
const auto childs_tag = [](auto, auto k, auto) { return tag(k); };

}  // namespace

TEST_CASE("each matrix has a loop over the nodes that chose it", "[lower][sort]") {
  const auto program = tagged(4, Dim("tags", 2), own_tag);
  check_golden("lower/sorted_by_matrix.ilir", ir::print(lower::lower(program.graph(), sorted)));
}

TEST_CASE("products that all nodes have in common stay whole", "[lower][sort]") {
  Dim H("hidden", 4), T("tags", 3);
  Model<Item> m("tagged", cortex::tree);
  auto U = m.input<float>("U", T, H, H), V = m.input<float>("V", T, H, H);
  auto W = m.input<float>("W", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto first =
      m.compute("first", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(tag(n), i, j) * s(n, j); }); });
  auto second = m.compute(
      "second", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return V(tag(n), i, j) * first(n, j); }); });
  auto common =
      m.compute("common", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * second(n, j); }); });
  auto body = m.compute("body", H, [&](auto n, auto i) { return tanh(common(n, i) + s(n, i)); });
  const auto program = m.recursion_op(h, body);
  const std::string text = lowered(program.graph(), sorted);
  CHECK(count(text, "part_sizes") == 3);  // of both products
  for (const char* matrix : {"U[0,", "U[1,", "U[2,", "V[0,", "V[1,", "V[2,"}) CHECK(count(text, matrix) == 1);
  CHECK(count(text, "W[") == 1);
}

TEST_CASE("cases of a switch are sorted by matrix, those that choose one", "[lower][sort]") {
  const auto text = [](bool at_all_nodes) {
    Dim H("hidden", 4), T("tags", 3);
    Model<Item> m("tagged", cortex::tree);
    auto U = m.input<float>("U", T, H, H);
    auto h = m.placeholder<float>("h", H);
    auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
    const auto product = [&](const char* name) {
      return m.compute(name, H,
                       [&](auto n, auto i) { return sum(H, [&](auto j) { return U(tag(n), i, j) * s(n, j); }); });
    };
    auto a = product("a");
    auto b = m.compute("b", H, [&](auto n, auto i) { return 2 * s(n, i); });
    auto cell = m.switch_(
        "cell", [](auto n) { return kind(n); }, when(0, a), when(1, b));
    auto body = at_all_nodes ? m.compute("body", H, [&](auto n, auto i) { return cell(n, i) + a(n, i); })
                             : m.compute("body", H, [&](auto n, auto i) { return cell(n, i) + s(n, i); });
    return lowered(m.recursion_op(h, body).graph(), Schedule::standard().sort_by_matrix());
  };
  for (int part = 1; part < 6; ++part)
    CHECK(count(text(true), "part_sizes((b_idx + 1) * 6 + " + std::to_string(part) + ")") == 1);
  // Elsewhere none chooses one, and all are of the first part.
  for (int part = 1; part < 6; ++part)
    CHECK(count(text(false), "part_sizes((b_idx + 1) * 6 + " + std::to_string(part) + ")") == (part < 4));
}

TEST_CASE("where no node chooses a matrix, a batch has one loop over its nodes", "[lower][sort]") {
  const std::string text = lowered(test::tree_lstm(4).graph(), sorted);
  CHECK(count(text, "for b_idx") == 1);
  CHECK(count(text.substr(text.find("for b_idx")), "for n_idx") == 1);
}

TEST_CASE("batches are sorted by default where matrices are large, and few", "[lower][sort]") {
  const auto parts = [](const auto& program, const Schedule& schedule = Schedule::standard()) {
    return lower::lower(program.graph(), schedule).parts;
  };
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag)) == 2);
  CHECK(parts(tagged(96, Dim("tags", 8), own_tag)) == 8);
  CHECK(parts(tagged(96, Dim("tags", 9), own_tag)) == 1);
  CHECK(parts(tagged(96, Dim("tags"), own_tag)) == 1);
  CHECK(parts(tagged(95, Dim("tags", 2), own_tag)) == 1);
  CHECK(parts(tagged(95, Dim("tags", 2), own_tag), Schedule::standard().sort_by_matrix()) == 2);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag), Schedule::standard().sort_by_no_matrix()) == 1);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag, cortex::dag)) == 2);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag, cortex::sequence)) == 1);
  CHECK(parts(tagged(96, Dim("tags", 2), own_tag), Schedule{}.sort_by_matrix()) == 1);  // no batches
}

TEST_CASE("products with what nodes bring along are sorted too, and not made ahead of the recursion", "[lower][sort]") {
  Dim V("vocabulary"), H("hidden", 4), T("tags", 2);
  Model<Item> m("tagged", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H);
  auto U = m.input<float>("U", T, H, H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return sum(H, [&](auto j) { return U(tag(n), i, j) * Emb(kind(n), j); }) +
           sum(kids(n), [&](auto k) { return h(k, i); });
  });
  const auto program = m.recursion_op(h, body);
  const std::string text = lowered(program.graph(), Schedule{sorted}.tabulate());
  CHECK(count(text, "for b_idx") == 1);
  CHECK(text.find("U[1,") > text.find("for b_idx"));
  CHECK(count(text, "U[1,") == 1);
  CHECK(count(text, "U[tag(") == 1);  // at leaves, which have tables
  const std::string without_tables = lowered(program.graph(), Schedule{sorted}.tabulate_nothing());
  CHECK(count(without_tables, "U[1,") == 2);
  CHECK(count(without_tables, "U[tag(") == 0);
}

TEST_CASE("nodes are sorted by what they say of themselves", "[lower][sort]") {
  const auto parts = [](const auto& choose) {
    return lower::lower(tagged(4, Dim("tags", 4), choose).graph(), sorted).parts;
  };
  CHECK(parts([](auto n) { return (tag(n) + kind(n)) % 4; }) == 4);
  CHECK(parts([](auto n) { return num_children(kids(n)) - 1; }) == 4);
  CHECK(parts([](auto) { return 3; }) == 1);
}

TEST_CASE("nodes are not sorted by a number that roots alone are asked for", "[lower][sort]") {
  Dim H("hidden", 4), T("tags", 2);
  const auto parts = [&](auto of_all) {
    Model<Item> m("tagged", cortex::tree);
    auto U = m.input<float>("U", T, H, H);
    auto h = m.placeholder<float>("h", H);
    auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }) + 1; });
    auto body = m.compute("body", H,
                          [&](auto n, auto i) { return sum(H, [&](auto j) { return U(of_all(n), i, j) * s(n, j); }); });
    auto all = m.recursion(h, body);
    auto top = m.readout<float>(
        "top", H, [&](auto r, auto i) { return sum(H, [&](auto j) { return U(tag(r), i, j) * all(r, j); }); });
    return lower::lower(m.program(top).graph(), sorted).parts;
  };
  CHECK(parts(own_tag) == 2);
  CHECK(parts([](auto) { return 1; }) == 1);
}

TEST_CASE("a product with a matrix that a child chooses is made at the child", "[lower][sort]") {
  const auto program = labelled(4, Dim("tags", 2), childs_tag);
  check_golden("lower/multiplied_below.ilir", ir::print(lower::lower(program.graph(), sorted)));
  CHECK(count(lowered(program.graph(), Schedule{sorted}.tabulate()), "U[tag(") == 0);  // a root may have no tag
}

TEST_CASE("products with the matrix of a child are the child's where all nodes can make them", "[lower][sort]") {
  const auto parts = [](const auto& choose, Structure structure = cortex::tree,
                        const Schedule& schedule = Schedule::standard(), std::int64_t hidden = 96) {
    return lower::lower(labelled(hidden, Dim("tags", 4), choose, structure).graph(), schedule).parts;
  };
  CHECK(parts(childs_tag) == 4);
  CHECK(parts(childs_tag, cortex::dag) == 4);
  CHECK(parts(childs_tag, cortex::dag, Schedule::standard(), 64) == 4);  // which several parents share
  CHECK(parts(childs_tag, cortex::dag, Schedule::standard(), 63) == 1);
  CHECK(parts(childs_tag, cortex::tree, Schedule::standard(), 64) == 1);
  CHECK(parts([](auto, auto k, auto) { return (tag(k) + kind(k)) % 4; }) == 4);
  CHECK(parts([](auto, auto k, auto) { return num_children(kids(k)); }) == 4);
  CHECK(parts([](auto n, auto, auto) { return tag(n); }) == 4);  // the node's own
  CHECK(parts([](auto n, auto k, auto) { return (tag(n) + tag(k)) % 4; }) == 1);
  CHECK(parts([](auto, auto k, auto position) { return (tag(k) + position) % 4; }) == 1);
  CHECK(parts([](auto, auto, auto position) { return position; }, cortex::tree.with_max_children(4)) == 1);
  CHECK(parts(childs_tag, cortex::tree, Schedule::standard().sort_by_no_matrix()) == 1);
  CHECK(parts(childs_tag, cortex::tree, Schedule::standard().unroll("h", 2)) == 1);
  CHECK(parts(childs_tag, cortex::tree, Schedule::standard().refactor("body").workers(2)) == 1);
  CHECK(parts(childs_tag, cortex::tree, Schedule{}.sort_by_matrix()) == 1);  // no batches
}

TEST_CASE("what a child has for its parents is made once", "[lower][sort]") {
  const auto text = [](auto of_children) {
    Dim H("hidden", 4), T("tags", 2);
    Model<Item> m("labelled", cortex::tree);
    auto U = m.input<float>("U", T, H, H);
    auto V = m.input<float>("V", T, H, H);
    auto h = m.placeholder<float>("h", H);
    const auto times = [=](const auto& matrix, auto k, auto i) {
      return sum(H, [&](auto j) { return matrix(tag(k), i, j) * h(k, j); });
    };
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return sum(kids(n), [&](auto k) { return tanh(times(U, k, i)); }) +
             maximum(kids(n), [&](auto k) { return of_children(times, U, V, k, i); });
    });
    return lowered(m.recursion_op(h, body).graph(), sorted);
  };
  // By leaves and by levels.
  const std::string one = text([](auto times, auto U, auto, auto k, auto i) { return times(U, k, i); });
  for (const char* matrix : {"U[0,", "U[1,"}) CHECK(count(one, matrix) == 2);
  CHECK(count(one, "U[tag(") == 0);
  const std::string two = text([](auto times, auto, auto V, auto k, auto i) { return times(V, k, i); });
  for (const char* matrix : {"U[0,", "U[1,", "V[0,", "V[1,"}) CHECK(count(two, matrix) == 2);
}

TEST_CASE("what a child is asked beside its matrix is asked at children alone", "[lower][sort]") {
  Dim H("hidden", 4), T("tags", 2), K("kinds", 3);
  const auto text = [&](auto factor) {
    Model<Item> m("labelled", cortex::tree);
    auto U = m.input<float>("U", T, H, H);
    auto g = m.input<float>("g", K, H), d = m.input<float>("d", T, H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return sum(kids(n), [&](auto k) {
        return sum(H, [&](auto j) { return U(tag(k), i, j) * factor(g, d, k, j) * h(k, j); });
      });
    });
    return lowered(m.recursion_op(h, body).graph(), sorted);
  };
  const auto at_children = [](const std::string& lowered) { return count(lowered, "h_sent") > 0; };
  CHECK(at_children(text([](auto, auto, auto, auto) { return 2.0F; })));
  CHECK_FALSE(at_children(text([](auto g, auto, auto k, auto j) { return g(kind(k), j); })));
  CHECK_FALSE(at_children(text([](auto, auto d, auto k, auto j) { return d(tag(k), j); })));
  CHECK_FALSE(at_children(text([](auto, auto, auto k, auto) { return cast<float>(kind(k)); })));
}

TEST_CASE("children make what they can be asked at any node, with the matrices of one size", "[lower][sort]") {
  Dim H("hidden", 4), T("tags", 2), K("kinds", 3), V("words", 5);
  const auto text = [&](auto term) {
    Model<Item> m("labelled", cortex::tree);
    auto U = m.input<float>("U", T, H, H), W = m.input<float>("W", K, H, H);
    auto E = m.input<float>("E", V, H);
    auto h = m.placeholder<float>("h", H);
    auto body = m.compute("body", H, [&](auto n, auto i) {
      return sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return term(U, W, E, h, k, i, j); }); }) +
             sum(H, [&](auto j) { return W(kind(n), i, j) * sum(kids(n), [&](auto k) { return h(k, j); }); });
    });
    return lowered(m.recursion_op(h, body).graph(), sorted);
  };
  const auto at_children = [](const std::string& lowered) { return count(lowered, "h_sent") > 0; };
  const std::string plain =
      text([](auto U, auto, auto, auto h, auto k, auto i, auto j) { return U(tag(k), i, j) * h(k, j); });
  CHECK(at_children(plain));
  CHECK(count(plain, "W[kind(") == 1);
  // Rows that are read around their end are copied for every node, which may have any tag.
  const std::string around =
      text([](auto U, auto, auto, auto h, auto k, auto i, auto j) { return U(tag(k), j, (i + j) % 4) * h(k, j); });
  CHECK_FALSE(at_children(around));
  CHECK(count(around, "part_sizes") == 3);  // by the node's own kind
  const std::string of_weights =
      text([](auto U, auto, auto E, auto, auto k, auto i, auto j) { return U(tag(k), i, j) * E(3, j); });
  CHECK_FALSE(at_children(of_weights));
  // An embedding is no state; and what nodes cannot be sorted by does not keep them from what they can.
  const std::string embedded =
      text([](auto U, auto, auto E, auto, auto k, auto i, auto j) { return U(tag(k), i, j) * E(kind(k), j); });
  CHECK_FALSE(at_children(embedded));
  CHECK(count(embedded, "part_sizes") == 3);
  // One number chooses among two matrices and among three.
  const std::string two_and_three = text(
      [](auto U, auto W, auto, auto h, auto k, auto i, auto j) { return U(tag(k), i, j) * W(tag(k), i, j) * h(k, j); });
  CHECK_FALSE(at_children(two_and_three));
  CHECK(count(two_and_three, "part_sizes") == 3);
}

TEST_CASE("a branch that not all nodes take keeps its products with children", "[lower][sort]") {
  Dim H("hidden", 96), T("tags", 2);
  const auto parts = [&](const Schedule& schedule) {
    Model<Item> m("labelled", cortex::tree);
    auto U = m.input<float>("U", T, H, H);
    auto h = m.placeholder<float>("h", H);
    auto labels = m.compute("labels", H, [&](auto n, auto i) {
      return sum(kids(n), [&](auto k) { return sum(H, [&](auto j) { return U(tag(k), i, j) * h(k, j); }); });
    });
    auto plain = m.compute("plain", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
    auto body = m.if_then_else(
        "body", [](auto n) { return kind(n) == 1; }, labels, plain);
    return lower::lower(m.recursion_op(h, body).graph(), schedule).parts;
  };
  CHECK(parts(sorted) == 1);
  CHECK(parts(Schedule::standard()) == 2);  // of kinds
}

TEST_CASE("products of each child are made at the child where it may have several parents", "[lower][below]") {
  Dim H("hidden", 4);
  // As in D-VAE: h = the sum over k of sigmoid(G h_k) (M h_k).
  const auto text = [&](Structure structure, const Schedule& schedule, auto term, auto other) {
    Model<Item> m("gated", structure);
    auto G = m.input<float>("G", H, H);
    auto M = m.input<float>("M", H, H);
    auto h = m.placeholder<float>("h", H);
    const auto times = [=](const auto& matrix, auto k, auto i) {
      return sum(H, [&](auto j) { return matrix(i, j) * h(k, j); });
    };
    auto gated = m.compute("gated", H, [&](auto n, auto i) {
      return sum(kids(n), [&](auto k) { return term(times(G, k, i), times(M, k, i), kind(k)); }) + 1;
    });
    auto plain = m.compute("plain", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
    return lowered(m.recursion_op(h, other(m, gated, plain)).graph(), schedule);
  };
  const auto alone = [](auto&, auto gated, auto) { return gated; };
  const auto branch = [](auto& m, auto gated, auto plain) {
    return m.if_then_else(
        "body", [](auto n) { return kind(n) == 1; }, gated, plain);
  };
  const auto gate = [](auto g, auto x, auto) { return sigmoid(g) * x; };
  const auto sum_of_both = [](auto g, auto, auto) { return g; };
  const auto at_children = [](const std::string& lowered) { return count(lowered, "h_sent[") > 0; };
  const Schedule schedule = Schedule{}.dynamic_batch().specialize_leaves();
  const std::string moved = text(cortex::dag, schedule, gate, alone);
  CHECK(count(moved, "G[") == 2);  // at leaves and at inner nodes
  CHECK(count(moved, "M[") == 2);
  CHECK(count(moved, "h_sent2[kids(") == 1);
  CHECK_FALSE(at_children(text(cortex::tree, schedule, gate, alone)));
  CHECK_FALSE(at_children(text(cortex::dag, schedule, sum_of_both, alone)));  // one product with the sum
  CHECK_FALSE(at_children(text(cortex::dag, schedule, gate, branch)));
  CHECK_FALSE(at_children(text(cortex::dag, schedule.specialize_if_else(), gate, branch)));
  CHECK_FALSE(at_children(text(cortex::dag, Schedule{}, gate, alone)));
  CHECK_FALSE(at_children(text(cortex::dag, schedule.loops(Loops{}), gate, alone)));  // which are the user's
  const auto in_both = [&](auto& m, auto gated, auto) {
    auto twice = m.compute("twice", H, [&](auto n, auto i) { return 2 * gated(n, i); });
    return m.if_then_else(
        "body", [](auto n) { return kind(n) == 1; }, gated, twice);
  };
  CHECK(at_children(text(cortex::dag, schedule.specialize_if_else(), gate, in_both)));
}

TEST_CASE("parents make in a DAG what each of their children would, and leaves do not", "[lower][below]") {
  Dim H("hidden", 4);
  constexpr auto up = cortex::parents<kids>;
  const auto text = [&](bool leaves_apart) {
    Model<Item> m("down", cortex::dag);
    auto G = m.input<float>("G", H, H);
    auto h = m.placeholder<float>("h", H);
    auto plain = m.compute("plain", H, [&](auto n, auto i) { return sum(up(n), [&](auto p) { return h(p, i); }); });
    auto inner = m.compute("inner", H, [&](auto n, auto i) {
      return sum(up(n), [&](auto p) { return tanh(sum(H, [&](auto j) { return G(i, j) * h(p, j); })); }) + 1;
    });
    auto body = m.if_then_else(
        "body", [](auto n) { return is_leaf(n); }, plain, inner);
    auto down = leaves_apart ? m.recursion(h, body) : m.recursion(h, inner);
    return lowered(m.program(down).graph(), Schedule{}.dynamic_batch().specialize_if_else());
  };
  for (const bool leaves_apart : {false, true}) {
    CHECK(count(text(leaves_apart), "h_sent[parents(") == 1);
    CHECK(count(text(leaves_apart), "G[") == 1);
  }
}

TEST_CASE("leaves are apart in outputs whose products may be of children", "[lower][below]") {
  Dim V("vocabulary"), H("hidden", 4);
  const auto text = [&](auto of_children, const Schedule& schedule = Schedule{}.dynamic_batch().specialize_leaves()) {
    Model<Item> m("outputs", cortex::tree);
    auto Emb = m.input<float>("Emb", V, H);
    auto B = m.input<float>("B", H, H);
    auto h = m.placeholder<float>("h", H);
    auto all = m.recursion(h, m.compute("body", H, [&](auto n, auto i) {
      return Emb(kind(n), i) + sum(kids(n), [&](auto k) { return h(k, i); });
    }));
    auto below = m.compute("below", H, [&](auto n, auto j) { return sum(kids(n), [&](auto k) { return all(k, j); }); });
    auto y = m.output<float>("y", H, [&](auto n, auto i) {
      return relu(sum(H, [&](auto j) {
        if constexpr (decltype(of_children)::value)
          return B(i, j) * below(n, j);
        else
          return B(i, j) * all(n, j);
      }));
    });
    return lowered(m.program(y).graph(), schedule);
  };
  CHECK(count(text(std::true_type()), "internal_nodes(") == 1);
  CHECK(count(text(std::true_type()), "B[") == 1);  // of no children it is zero
  CHECK(count(text(std::false_type()), "internal_nodes(") == 0);
  const Schedule by_hand = Schedule{}.dynamic_batch().specialize_leaves().loops(Loops{});
  CHECK(count(text(std::true_type(), by_hand), "internal_nodes(") == 0);
}
