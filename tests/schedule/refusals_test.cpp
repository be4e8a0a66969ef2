// Every sentence with which a primitive of loop schedules refuses what it cannot do, or what would change results.
#include <catch2/catch.hpp>

#include "support/small_loops.hpp"

using namespace cortex;
using namespace cortex::test;
using namespace cortex::test::small;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

struct Refused {
  ir::Stmt (*program)();
  const char* steps;
  const char* why;  // part of the sentence
};

/// That the last of the steps is refused, and names itself and the reason.
void check(const std::vector<Refused>& cases, const Target& target = {}) {
  for (const Refused& each : cases) {
    INFO(each.steps << "\n" << ir::print(each.program()));
    const std::string message = refusal(each.program(), each.steps, target);
    CHECK_THAT(message, StartsWith("loop schedule: " + to_string(Loops::parse(each.steps).steps().back()) + ": "));
    CHECK_THAT(message, Contains(each.why));
  }
}

// ---- What no model has so small ----

const Dim Long("long", 65), Wide("wide", 300), Half("half", 150);
const ir::Buffer g = buffer("g", {Long}, ir::Role::state), big = buffer("big", {Wide, Wide}, ir::Role::weight),
                 w = buffer("w", {Wide}, ir::Role::state), one = buffer("one", {}, ir::Role::state),
                 tall = buffer("tall", {Half, Wide}, ir::Role::weight),
                 halves = buffer("halves", {N, Half}, ir::Role::state);

ir::Stmt long_loop() {
  return over(Long, "i", [](auto& i) { return store(g, {i}, number(1)); });
}
/// Each iteration needs the one before.
ir::Stmt chain() {
  return over(N, "i", [](auto& i) {
    return over(H, "j", [&](auto& j) { return store(one, {}, load(one, {}) * number(0.5) + load(A, {i, j})); });
  });
}
/// Each row of all of `tall`, which is 176 KB.
ir::Stmt of_tall() {
  return over(N, "n", [](auto& n) {
    return over(Half, "i", [&](auto& i) {
      return sum_over(
          Wide,
          [&](auto& r) {
            return load(tall, {i, r}) * real(n);
          },
          [&](auto& sum) {
            return store(halves, {n, i}, sum);
          });
    });
  });
}
/// `for i: for j = 0:i + 1`.
ir::Stmt triangle() {
  return over(N, "i", [](auto& i) {
    const ir::Expr j = var("j");
    return ir::For::make(j, H, i + 1, ir::ForKind::serial, store(Y, {i, j}, load(A, {i, j})));
  });
}
ir::Stmt lower_half() {
  return over(H, "i", [](auto& i) { return ir::If::make(less(i, ir::imm(4)), store(y, {i}, load(x, {i}))); });
}
/// A barrier in a loop of constant extent.
ir::Stmt rows_apart() {
  return over(N, "i", [](auto& i) {
    return block({over(H, "j", [&](auto& j) { return store(Y, {i, j}, load(A, {i, j})); }), ir::Barrier::make()});
  });
}
/// Nothing that workers could own slices of.
ir::Stmt turned() {
  return over(H, "i", [](auto& i) { return store(y, {reversed(i)}, load(x, {i})); });
}
ir::Stmt rows_of_turned() {
  return over(N, "n", [](auto& n) {
    return over(H, "i", [&](auto& i) { return store(Y, {n, reversed(i)}, load(A, {n, i})); });
  });
}
/// What stands between two loops is needed by the second and needs the first.
ir::Stmt three_steps() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(x, {i})); }),
                store(number_of, {}, load(t, {ir::imm(0)})),
                over(H, "j", [](auto& j) { return store(y, {j}, load(number_of, {})); })});
}
ir::Stmt rows_and_columns() {
  return block({over(N, "i",
                     [](auto& i) {
                       return store(T, {i, ir::imm(0)}, number(1));
                     }),
                over(H, "j", [](auto& j) { return store(y, {j}, load(x, {j})); })});
}
ir::Stmt reads_others() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(x, {i})); }),
                over(H, "j", [](auto& j) { return store(y, {j}, load(t, {reversed(j)})); })});
}
/// One loop, of whose statements the second reads what other iterations write.
ir::Stmt reads_later() {
  return over(H, "i", [](auto& i) {
    return block({store(t, {i}, load(x, {i})), store(y, {i}, load(t, {ir::imm(0)}))});
  });
}
/// An accumulator of each of unknown many nodes.
ir::Stmt sums_of_nodes() {
  return small::nodes([](auto& node) {
    return sum_over(
        H, [&](auto& r) { return load(x, {r}); },
        [&](auto& sum) {
          return store(h, {node, ir::imm(0)}, sum * real(node));
        });
  });
}
ir::Stmt sum_of_sums() {
  const ir::Buffer a = local("a"), b = local("b");
  return ir::Alloc::make(
      a,
      ir::Alloc::make(
          b,
          block(
              {store(a, {}, number(0)), store(b, {}, number(0)),
               over(H, "r",
                    [&](auto& r) {
                      return block({store(a, {}, load(a, {}) + load(x, {r})), store(b, {}, load(b, {}) + load(a, {}))});
                    }),
               store(one, {}, load(b, {}))})));
}
ir::Stmt stored_twice() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(x, {i})); }),
                over(H, "j", [](auto& j) { return store(t, {j}, number(1)); }),
                over(H, "k", [](auto& k) { return store(y, {k}, load(t, {k})); })});
}
ir::Stmt never_stored() {
  return over(H, "i", [](auto& i) { return store(y, {i}, load(t, {i})); });
}
ir::Stmt never_read() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(x, {i})); }), chain()});
}
ir::Stmt stored_under(bool outside) {
  const ir::Expr positive = less(number(0), load(v, {ir::imm(0)}));
  const ir::Expr i = var("i");
  const ir::Stmt set = store(t, {i}, load(x, {i}));
  return block({outside ? ir::If::make(positive, loop(i, H, set)) : loop(i, H, ir::If::make(positive, set)),
                over(H, "k", [](auto& k) { return store(y, {k}, load(t, {k})); })});
}
ir::Stmt stored_under_condition() { return stored_under(false); }
ir::Stmt all_stored_under_condition() { return stored_under(true); }
ir::Stmt of_itself() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(t, {i}) * number(2)); }),
                over(H, "k", [](auto& k) { return store(y, {k}, load(t, {k})); })});
}
ir::Stmt read_first() {
  return block({over(H, "k", [](auto& k) { return store(y, {k}, load(t, {k})); }),
                over(H, "i", [](auto& i) { return store(t, {i}, load(x, {i})); })});
}
/// t of y, which changes before t is read.
ir::Stmt changes() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(y, {i})); }),
                over(H, "j", [](auto& j) { return store(y, {j}, number(1)); }),
                over(H, "k", [](auto& k) { return store(y2, {k}, load(t, {k})); })});
}
ir::Stmt t_turned() {
  return block({over(H, "i", [](auto& i) { return store(t, {reversed(i)}, load(x, {i})); }),
                over(H, "k", [](auto& k) { return store(y, {k}, load(t, {k})); })});
}
/// Rows of which the last one remains.
ir::Stmt last_row() {
  return block(
      {over(N, "n", [](auto& n) { return over(H, "i", [&](auto& i) {
                                    return store(t, {i}, load(A, {n, i}));
                                  }); }),
       over(H, "k", [](auto& k) { return store(y, {k}, load(t, {k})); })});
}
/// t at the position of a node, of the node.
ir::Stmt at_position() {
  const ir::Buffer at = buffer("at", {dims::node});
  const ir::Expr n = var("n_idx"), node = var("node");
  const ir::Expr all = ir::call(ir::UfKind::num_nodes, "num_nodes");
  const ir::Stmt set = ir::For::make(
      n, dims::batch, all, ir::ForKind::serial,
      ir::LetStmt::make(node, ir::call(ir::UfKind::all_node, "all_nodes", {n}), store(at, {n}, real(node))));
  return block({set, small::nodes([&](auto& other) {
                  return over(H, "i", [&](auto& i) { return store(h, {other, i}, load(at, {other})); });
                })});
}
/// t of the last row, computed together with all rows of Y.
ir::Stmt beside_rows() {
  return block({over(N, "n",
                     [](auto& n) {
                       return over(H, "i", [&](auto& i) {
                         return block({store(t, {i}, load(A, {n, i})), store(Y, {n, i}, load(x, {i}))});
                       });
                     }),
                over(H, "k", [](auto& k) { return store(y, {k}, load(t, {k})); })});
}
/// t of a sum that changes behind it.
ir::Stmt t_of_a_sum() {
  return block({over(H, "i",
                     [](auto& i) {
                       return dot(W, i, [&](auto& sum) { return block({store(t, {i}, sum), store(y, {i}, sum)}); });
                     }),
                over(H, "k", [](auto& k) { return store(y2, {k}, load(t, {k})); })});
}
/// All of s at every node.
ir::Stmt all_of_s() {
  return block({small::nodes([](auto& node) {
                  return over(H, "i", [&](auto& i) { return store(s, {node, i}, load(x, {i})); });
                }),
                batches([](auto& node) {
                  return over(H, "j", [&](auto& j) { return store(h, {node, j}, load(s, {node, j})); });
                })});
}
ir::Stmt of_big() {
  return over(Wide, "i", [](auto& i) {
    return sum_over(
        Wide,
        [&](auto& r) {
          return load(big, {i, r});
        },
        [&](auto& sum) { return store(w, {i}, sum); });
  });
}
ir::Stmt read_in_two_loops() {
  return block({over(H, "i", [](auto& i) { return store(t, {i}, load(x, {i})); }),
                over(H, "j", [](auto& j) { return store(y, {j}, load(t, {j})); }),
                over(H, "k", [](auto& k) { return store(y2, {k}, load(t, {k})); })});
}
/// Rows of T, each stored from its end, and read whole.
ir::Stmt turned_rows() {
  return block(
      {over(N, "n",
            [](auto& n) { return over(H, "i", [&](auto& i) {
                            return store(T, {n, reversed(i)}, load(A, {n, i}));
                          }); }),
       over(N, "m", [](auto& m) { return over(H, "j", [&](auto& j) {
                                    return store(Y, {m, j}, load(T, {m, j}));
                                  }); })});
}
ir::Stmt in_place() {
  return over(N, "n", [](auto& n) {
    return over(H, "i", [&](auto& i) { return store(Y, {n, i}, load(Y, {n, i}) * number(2)); });
  });
}
/// Q along its rows, and along its columns.
ir::Stmt both_ways() {
  return over(H, "i", [](auto& i) {
    return sum_over(
        H,
        [&](auto& r) {
          return load(Q, {i, r}) * load(Q, {r, i});
        },
        [&](auto& sum) { return store(y, {i}, sum); });
  });
}
ir::Stmt of_rows_of_emb() {
  return small::nodes([](auto& node) {
    return over(H, "i", [&](auto& i) {
      return store(h, {node, i}, load(Emb, {ir::call(ir::UfKind::field, "word", {node}, 0), i}));
    });
  });
}

}  // namespace

TEST_CASE("a name that a program does not have is refused with those that it has", "[schedule][loops][refusal]") {
  check({
      {matrix, "unroll(k)", "there is no loop 'k'; the loops are i, j"},
      {matrix, "compute_inline(z)", "there is no tensor 'z'; the tensors are Y, A, x"},
      {matrix, "cache_read(A, k)", "there is no loop 'k'"},
  });
}

TEST_CASE("what cannot be done to a loop is refused", "[schedule][loops][refusal]") {
  check({
      {scale, "vectorize(i); split(i, 2)", "loop 'i' is parallel or vectorized already"},
      {scale, "parallel(i); unroll(i)", "loop 'i' is parallel or vectorized already"},
      {scale, "split(i, 0)", "the factor is 0; it has to be from 1 to 65536"},
      {scale, "split(i, -4)", "the factor is -4"},
      {at_nodes, "split_guarded(n_idx, 65537)", "the factor is 65537"},
      {at_nodes, "split_cases(n_idx, 65)", "the factor is 65; it has to be from 1 to 64"},
      {of_children, "share_work(); insert_barriers(); split_cases(b_idx, 2)", "there is a barrier in loop 'b_idx'"},
      {of_children, "share_work(); insert_barriers(); split_guarded(b_idx, 2)", "there is a barrier in loop 'b_idx'"},
      {rows_apart, "jam(i)", "there is a barrier in loop 'i'"},
      {two_nests_a_node, "fuse(n_idx, i)", "loop 'i' is not all that loop 'n_idx' does"},
      {matrix, "fuse(j, i)", "loop 'i' is not all that loop 'j' does"},
      {of_children, "fuse(b_idx, n_idx.2)", "the extent of loop 'n_idx.2' is not constant"},
      {through_t, "reorder(i, j)", "the loops do not stand one directly in the other"},
      {matrix, "reorder(i, j, i)", "loop 'i' is named twice"},
      {chain, "reorder(j, i)", "iterations of 'i' and 'j' depend on each other through 'one'"},
      {of_edges, "reorder(k, n_idx)", "the extent of loop 'k' depends on 'node'"},
      {triangle, "reorder(j, i)", "the extent of loop 'j' depends on 'i'"},
      {matrix, "tile(i, j, 2, 3)", "the extent of loop 'j' is no multiple of 3; split it, and reorder what is left"},
      {at_nodes, "tile(i, n_idx, 2, 2)", "the extent of loop 'n_idx' is no multiple of 2"},
      {matrix, "tile(i, j, 2, 0)", "the factor is 0"},
      {matrix, "tile(i, j, 7, 2)", "loop 'i' has 6 iterations, fewer than 7"},
      {at_nodes, "unroll(n_idx)", "the extent of loop 'n_idx' is not constant; split it"},
      {long_loop, "unroll(i)", "loop 'i' has 65 iterations, more than 64; split it"},
      {long_loop, "jam(i)", "the extent of loop 'i' is no constant up to 64; split it"},
      {at_nodes, "jam(n_idx)", "the extent of loop 'n_idx' is no constant up to 64; split it"},
      {chain, "jam(i)", "iterations of 'i' depend on each other through 'one'"},
  });
}

TEST_CASE("a loop that cannot be vectorized is refused", "[schedule][loops][refusal]") {
  check({
      {matrix, "vectorize(i); vectorize(j)", "loop 'j' stands in loop 'i', which is vectorized"},
      {matrix, "vectorize(j); vectorize(i)", "loop 'j' inside is parallel or vectorized"},
      {matrix, "parallel(j); vectorize(i)", "loop 'j' inside is parallel or vectorized"},
      {long_loop, "vectorize(i)", "the extent of loop 'i' is no constant from 2 to 64; split it"},
      {at_nodes, "vectorize(n_idx)", "the extent of loop 'n_idx' is no constant from 2 to 64; split it"},
      {scale, "split(i, 1); vectorize(i.i)", "the extent of loop 'i.i' is no constant from 2 to 64; split it"},
      {product, "vectorize(r)", "iterations of 'r' depend on each other through 'acc'"},
      {triangle, "vectorize(i)", "a loop's extent inside loop 'i' differs by iteration"},
      {lower_half, "vectorize(i)", "a condition inside loop 'i' differs by iteration"},
      {at_nodes, "split(n_idx, 4); vectorize(n_idx.i)",
       "what is asked of the structure inside loop 'n_idx.i' differs by iteration"},
      {rows_apart, "vectorize(i)", "there is a barrier inside"},
  });
}

TEST_CASE("a loop that workers cannot share is refused", "[schedule][loops][refusal]") {
  check({
      {of_children, "parallel(b_idx)", "iterations of 'b_idx' depend on each other through 'h'"},
      {matrix, "parallel(i); parallel(j)", "loop 'j' stands in loop 'i', which is parallel"},
      {matrix, "parallel(j); parallel(i)", "loop 'j' inside is parallel already"},
      {matrix, "vectorize(i); parallel(j)", "loop 'j' stands in loop 'i', which is vectorized"},
      {turned, "share_work(); parallel(i)", "what loop 'i' does is the first worker's alone"},
      {rows_of_turned, "share_work(); parallel(n)", "what loop 'n' does is the first worker's alone"},
      {two_nests_a_node, "parallel(i); insert_barriers()",
       "loop 'i' shares only a part of what 'n_idx' does; distribute that first"},
      {product, "distribute(i); parallel(i.3); insert_barriers()",
       "loop 'i.3' shares only a part of what is done with a local buffer or a condition; distribute that first"},
      {product, "rfactor(r, 4); vectorize(r.p); parallel(i); tile_nests()",
       "a loop that workers share has vectors already: their slices would not be those of tiles"},
  });
}

TEST_CASE("a loop is not bound to groups, nor on a CPU to threads", "[schedule][loops][refusal]") {
  check({
      {matrix, "bind(i, group)", "groups share the roots of a call"},
      {matrix, "bind(j, thread)", "a worker of a CPU is one thread: bind(j, worker) shares the loop among workers"},
      {of_children, "bind(b_idx, worker)", "iterations of 'b_idx' depend on each other through 'h'"},
  });
  check({{matrix, "bind(i, group)", "how many blocks are one is GpuSchedule's group and blocks (on_gpu)"}},
        Target::cuda());
}

TEST_CASE("a loop that threads cannot share is refused", "[schedule][loops][refusal]") {
  check(
      {
          {of_children, "bind(b_idx, thread)", "iterations of 'b_idx' depend on each other through 'h'"},
          {product, "bind(r, thread)", "iterations of 'r' depend on each other through 'acc'"},
          {matrix, "bind(i, thread); bind(i, thread)", "loop 'i' is shared by threads already"},
          {matrix, "bind(i, thread); unroll(j); split(i, 2)", "loop 'i' is shared by threads already"},
          {matrix, "bind(i, block); bind(i, thread)", "loop 'i' is parallel or vectorized already"},
          {matrix, "bind(i, thread); bind(j, thread)", "loop 'j' stands in loop 'i', which is shared by threads"},
          {matrix, "bind(j, thread); bind(i, thread)", "loop 'j' stands in loop 'i', which is shared by threads"},
          {two_nests_a_node, "split(n_idx, 4); bind(n_idx.i, thread); bind(i, block)",
           "loop 'i', which is parallel, stands in loop 'n_idx.i', which is shared by threads and does more than one "
           "nest"},
          {product, "rfactor(r, 4); bind(r.p, thread)", "each thread has 'acc.p' for itself, and computes all of it"},
          {matrix, "bind(j, thread); cache_write(Y, i)",
           "each thread has 'Y_cache' for itself, and computes all of it"},
      },
      Target::cuda());
}

TEST_CASE("steps that make vectors are refused for a GPU", "[schedule][loops][refusal]") {
  check({{scale, "vectorize(i)", "a thread of a GPU has no vectors; bind(loop, thread) shares a loop among threads"},
         {product, "tile_nests()", "a thread of a GPU has no vectors"}},
        Target::cuda());
}

TEST_CASE("statements that cannot leave their loop, or come into another, are refused", "[schedule][loops][refusal]") {
  check({
      {three_steps, "merge(i, j)", "what stands between the loops is needed by the second and needs the first"},
      {rows_and_columns, "merge(i, j)", "loops 'i' and 'j' have different dimensions or extents"},
      {reads_others, "merge(i, j)", "an iteration of 'j' needs others of 'i', through 't'"},
      {through_t, "merge(j, i)", "loop 'j' stands after loop 'i'"},
      {matrix, "merge(i, j)", "loops 'i' and 'j' do not stand in one block"},
      {through_t, "parallel(j); merge(i, j)", "loop 'j' is parallel or vectorized already"},
      {sums_of_nodes, "distribute(n_idx)",
       "'acc' would have an element for each iteration of 'n_idx', whose extent is not constant; split it"},
      {reads_later, "distribute(i)", "a later iteration of 'i' needs an earlier one whole, through 't'"},
      {of_children, "share_work(); insert_barriers(); distribute(b_idx)", "there is a barrier in loop 'b_idx'"},
  });
}

TEST_CASE("a reduction that cannot be factored is refused", "[schedule][loops][refusal]") {
  check({
      {scale, "rfactor(i, 2)", "loop 'i' is no reduction into local accumulators"},
      {product, "rfactor(r, 65)", "the factor is 65; it has to be from 1 to 64"},
      {product, "rfactor(r, 0)", "the factor is 0"},
      {sum_of_sums, "rfactor(r, 2)", "loop 'r' reads an accumulator, 'a', in between"},
  });
}

TEST_CASE("a temporary that cannot be computed elsewhere is refused", "[schedule][loops][refusal]") {
  check({
      {matrix, "compute_inline(Y)", "'Y' is no temporary of the whole program"},
      {product, "compute_inline(acc)", "'acc' is no temporary of the whole program"},
      {stored_twice, "compute_inline(t)", "'t' is stored in several places"},
      {never_stored, "compute_inline(t)", "'t' is stored in no place"},
      {stored_under_condition, "compute_inline(t)", "'t' is stored under a condition"},
      {all_stored_under_condition, "compute_inline(t)", "'t' is stored under a condition"},
      {of_itself, "compute_inline(t)", "'t' is computed of itself"},
      {read_first, "compute_inline(t)", "'t' is read before it is computed"},
      {changes, "compute_inline(t)", "'y', which 't' is computed of, changes before its use"},
      {t_turned, "compute_inline(t)", "'t' is not stored at one loop's variable for each dimension"},
      {last_row, "compute_inline(t)", "'t' needs 'n', which its indices do not give"},
      {at_position, "compute_inline(at)", "'at' needs 'node', which its indices do not give"},
      {t_of_a_sum, "compute_inline(t)", "'acc', which 't' is computed of, changes before its use"},
      {beside_rows, "compute_inline(t)", "'t' is computed of 'n', which is unknown at its use"},
      {rows_of_t, "vectorize(i); compute_inline(T)", "loop 'i' is parallel or vectorized already"},
  });
  check({
      {never_read, "compute_at(t, j)", "'t' is not used in loop 'j'"},
      {read_in_two_loops, "compute_at(t, j)", "'t' is also read outside of loop 'j'"},
      {through_t, "split_guarded(j, 3); compute_at(t, j.i)", "'t' is read under a condition"},
      {turned_rows, "compute_at(T, m)", "'T' is not stored at one loop's variable for each dimension"},
      {all_of_s, "compute_at(s, b_idx)",
       "dimension 'd_node' of 's' has no constant extent, and is indexed in several ways"},
  });
}

TEST_CASE("a tensor of which no copy can be kept is refused", "[schedule][loops][refusal]") {
  check({
      {product, "cache_read(acc, i)", "'acc' is local already"},
      {in_place, "cache_read(Y, n)", "'Y' is written in loop 'n'"},
      {lower_half, "cache_read(x, i)", "'x' is read under a condition"},
      {of_edges, "cache_read(x, n_idx)", "'x' is read in loop 'k', which may have no iterations"},
      {both_ways, "cache_read(Q, i)", "'Q' is read along different dimensions"},
      {matrix, "cache_read(Y, i)", "'Y' is not read in loop 'i'"},
      {of_big, "split(i, 300); cache_read(big, i.o)", "the part of 'big' has 90000 elements, more than 65536"},
  });
  check({
      {product, "cache_write(acc, i)", "'acc' is local already"},
      {matrix, "cache_write(A, i)", "'A' is not written in loop 'i'"},
      {in_place, "cache_write(Y, n)", "'Y' is read in loop 'n' too"},
      {lower_half, "split(i, 8); cache_write(y, i.o)", "'y' is stored under a condition"},
      {matrix, "split(j, 3); cache_write(Y, i)", "dimension 'hidden' of 'Y' is not stored whole"},
  });
}

TEST_CASE("local buffers that together do not fit a thread's stack are refused", "[schedule][loops][refusal]") {
  const char* why = "local buffers such as 'tall_cache' take 1054 KB of a thread's stack, more than 1024";
  check({
      {of_tall, "cache_read(tall, n); jam(n)", why},
      {of_tall, "cache_read(tall, n); unroll(n)", why},
      {of_tall, "cache_read(tall, n); vectorize(n)", why},
      {of_tall, "split(n, 5); cache_read(tall, n.i); jam(n.i); cache_read(tall, n.r)", why},
  });
  // One after the other, and five at once.
  CHECK(refusal(of_tall(), "cache_read(tall, n); parallel(n)") == "");
  CHECK(refusal(of_tall(), "split(n, 5); cache_read(tall, n.i); jam(n.i)") == "");
  CHECK(refusal(of_tall(), "split(n, 5); cache_read(tall, n.i); vectorize(n.i)") == "");
}

TEST_CASE("a layout that a tensor cannot have is refused", "[schedule][loops][refusal]") {
  check({
      {of_rows_of_emb, "layout_reorder(Emb, 1, 0)",
       "the axis of 'vocabulary' has no constant extent and has to stay outermost"},
      {matrix, "layout_pad(Y, 1, 16)", "'Y' is neither a weight nor a temporary: states lie as results are read"},
      {product, "layout_pad(acc, 0, 16)", "'acc' is neither a weight nor a temporary"},
      {product, "layout_pad(W, 2, 16)", "'W' has no axis 2; it has 2"},
      {product, "layout_pad(W, -1, 16)", "'W' has no axis -1; it has 2"},
      {product, "layout_fuse(W, 1)", "axis 1 of 'W' is the innermost, with none inside it"},
      {product, "layout_fuse(W, 2)", "'W' has no axis 2; it has 2"},
      {product, "layout_fuse(W, 9223372036854775807)", "'W' has no axis 9223372036854775807; it has 2"},
      {product, "layout_split(W, 0, 1)", "the factor is 1; it has to be from 2 to 65536"},
      {of_rows_of_emb, "layout_split(Emb, 0, 4)", "axis 0 has no constant extent"},
      {product, "layout_split(W, 0, 4); layout_split(W, 1, 3)", "axis 1 has 4 places, which 3 does not divide"},
      {product, "layout_reorder(W, 0, 0)", "axis 0 is named twice"},
      {product, "layout_reorder(W, 1)", "'W' has 2 axes, and 1 are named"},
      {product, "layout_pad(W, 1, 5); layout_fuse(W, 0)", "axes 0 and 1 have no room between them already"},
      {product, "layout_pad(W, 1, 0)", "the factor is 0; it has to be from 1 to 65536"},
      {of_rows_of_emb, "layout_pad(Emb, 0, 4)", "axis 0 has no constant extent"},
      {product, "layout_pad(W, 0, 32768); layout_pad(W, 1, 65536)",
       "the layout has 2147483648 elements, more than 2147483647"},
  });
}

TEST_CASE("a step on whole nests is refused where they are taken apart", "[schedule][loops][refusal]") {
  for (const char* steps : {"split_cases(n_idx, 4); share_work()", "split_cases(n_idx, 4); pack_weights()",
                            "split_cases(n_idx, 4); insert_barriers()"})
    check({{at_nodes, steps,
            "a statement outside of any nest: what works on whole nests comes before what takes them apart"}});
}
