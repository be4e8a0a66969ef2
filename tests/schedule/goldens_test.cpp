// Every primitive of loop schedules on a program of a few loops: the program before and after it, to the letter; that
// both compute the same; and that it gives the same program back where there is nothing to do.
#include <catch2/catch.hpp>
#include <set>

#include "cortex/pass/flatten_storage.hpp"
#include "cortex/pass/vectorize.hpp"
#include "support/golden.hpp"
#include "support/small_loops.hpp"

using namespace cortex;
using namespace cortex::test;
using namespace cortex::test::small;

namespace {

/// A program and steps; the last one is what the case is about.
struct Case {
  const char* name;  // of the golden
  ir::Stmt (*program)();
  const char* steps;
  int workers = 1;
  Backend backend = Backend::llvm;
};

const Case cases[] = {
    // One loop or a nest of them
    {"whole_tiles", scale, "split(i, 4)"},
    {"rest", scale, "split(i, 3)"},
    {"unknown_extent", at_nodes, "split(n_idx, 4)"},
    {"known_extent", scale, "split_cases(i, 3)"},
    {"unknown_extent", at_nodes, "split_cases(n_idx, 3)"},
    {"last_tile", scale, "split_guarded(i, 3)"},
    {"unknown_extent", at_nodes, "split_guarded(n_idx, 4)"},
    {"rest_of_rows", matrix, "tile(i, j, 4, 2)"},
    {"matrix", matrix, "fuse(i, j)"},
    {"behind_a_let", at_nodes, "fuse(n_idx, i)"},
    {"matrix", matrix, "reorder(j, i)"},
    {"around_a_let", at_nodes, "reorder(i, n_idx)"},
    {"accumulators", product, "split(i, 2); unroll(i.i)"},
    {"accumulators", product, "split(i, 2); jam(i.i)"},
    {"tile", scale, "split(i, 4); vectorize(i.i)"},
    {"rows", matrix, "parallel(i)", 3},
    {"nodes", at_nodes, "parallel(n_idx)", 3},
    {"rows", matrix, "bind(i, worker)", 3},
    {"rows_of_blocks", matrix, "bind(i, block)", 3},
    {"columns_of_threads", matrix, "bind(j, thread)", 1, Backend::cuda},
    {"rows_and_columns_of_threads", at_nodes, "fuse(n_idx, i); bind(n_idx.i, thread)", 1, Backend::cuda},
    {"blocks_and_threads", matrix, "bind(i, block); bind(j, thread)", 3, Backend::cuda},
    // Statements between loops
    {"elements", through_t, "merge(i, j)"},
    {"reductions", two_products, "merge(r, r.2)"},
    {"accumulator", product, "distribute(i)"},
    {"nodes", two_nests_a_node, "distribute(n_idx)"},
    {"rest", product, "rfactor(r, 4)"},
    {"no_rest", product, "rfactor(r, 5)"},
    // Temporaries and copies
    {"function", through_t, "compute_inline(t)"},
    {"row", rows_of_t, "compute_at(T, m)"},
    {"row", rows_of_t, "cache_read(T, m)"},
    {"children", of_children, "cache_read(h, n_idx.2)"},
    {"row", matrix, "cache_write(Y, i)"},
    // Where tensors lie
    {"weight", product, "layout_split(W, 0, 4)"},
    {"panels", product, "layout_split(W, 0, 4); layout_reorder(W, 0, 2, 1)"},
    {"halves", product, "layout_split(W, 0, 4); layout_fuse(W, 0)"},
    {"without_room", rows_of_t, "layout_pad(T, 1, 16); layout_fuse(T, 0)"},
    {"rows", product, "layout_pad(W, 1, 16)"},
    // What the compiler does by itself, to the whole program
    {"copy", copied, "inline_temporaries()"},
    {"copy", copied, "inline_temporaries(); remove_dead()"},
    {"two_nests", two_nests_a_node, "distribute_rows()"},
    {"work_of_children", of_edges, "fuse_edges()"},
    {"elements", through_t, "fuse_nests()"},
    {"gates", gates, "fuse_nests()"},
    {"batch", two_nests_a_batch, "index_densely()"},
    {"element", t_in_one_loop, "forward_stores()"},
    {"total", total_of_two, "chain_sums()"},
    {"two_sides", asked_often, "hoist_conditions()"},
    {"function", computed_often, "hoist_invariants()"},
    {"function", said_twice, "share_subexpressions()"},
    {"holds_always", guarded, "simplify_guards()"},
    {"own_copies", rows_of_t, "share_work()"},
    {"recursion", of_children, "share_work(); insert_barriers()", 3},
    {"rest_for_first_worker", rows_of_t, "parallel(j); insert_barriers()", 3},
    {"matrix", product, "pack_weights()"},
    {"vectors", product, "pack_weights(); tile_nests()"},
    {"rows_of_a_matrix", matrix_product, "tile_nests()"},
    {"lanes_of_a_number", norms, "tile_nests()"},
    {"gates", two_products, "merge(r, r.2); share_loads()"},
};

/// Steps that have nothing to do.
struct Nothing {
  ir::Stmt (*program)();
  const char* steps;
};

const Nothing nothing[] = {
    {matrix, "reorder(i, j)"},
    {scale, "distribute(i)"},
    {product, "layout_reorder(W, 0, 1)"},
    {product, "layout_split(W, 0, 4); layout_reorder(W, 0, 1, 2)"},
    {product, "layout_pad(W, 1, 16); layout_pad(W, 1, 16)"},
    {product, "layout_split(W, 0, 4); layout_pad(W, 2, 5)"},
    {scale, "inline_temporaries()"},
    {through_t, "remove_dead()"},
    {at_nodes, "distribute_rows()"},
    {at_nodes, "fuse_edges()"},
    {scale, "fuse_nests()"},
    {at_nodes, "index_densely()"},
    {through_t, "forward_stores()"},
    {two_products, "chain_sums()"},
    {scale, "hoist_conditions()"},
    {scale, "hoist_invariants()"},
    {scale, "share_subexpressions()"},
    {at_nodes, "split_guarded(n_idx, 4); simplify_guards()"},
    {of_children, "share_work(); share_work()"},
    {scale, "share_work(); insert_barriers()"},
    {scale, "pack_weights()"},
    {product, "tile_nests(); tile_nests()"},
    {norms, "tile_nests(); tile_nests()"},
    {two_products, "share_loads()"},
};

/// Primitives that always change a program, or refuse to.
const std::set<std::string> always_something = {
    "split",
    "split_cases",
    "split_guarded",
    "tile",
    "fuse",
    "unroll",  // their loops have other names, or are gone
    "jam",
    "vectorize",
    "parallel",
    "bind",
    "merge",
    "rfactor",  // what is so already is refused
    "compute_inline",
    "compute_at",
    "cache_read",
    "cache_write",  // a temporary less, or a copy more
    "layout_split",
    "layout_fuse",
};

struct Around {
  ir::Stmt before, after;
  LoopStep step;  // between them
};

Around around_last(const ir::Stmt& body, const char* steps, const Target& target = {}) {
  const Loops loops = Loops::parse(steps);
  const LoopStep last = loops.steps().back();
  Loops first(std::vector<LoopStep>(loops.steps().begin(), loops.steps().end() - 1));
  const ir::Stmt before = after(body, to_string(first), target);
  return {before, loops.apply(loops.size() - 1, before, target), last};
}

}  // namespace

TEST_CASE("what each primitive makes of a small program reads like this, and computes the same",
          "[schedule][loops][golden][equality]") {
  for (const Case& each : cases) {
    INFO(each.name << ": " << each.steps);
    const Around at =
        around_last(each.program(), each.steps, each.backend == Backend::cuda ? Target::cuda() : Target());
    const ir::Program before = program_of(at.before), made = program_of(at.after);
    check_golden("loops/" + at.step.primitive + "/" + each.name + ".ilir",
                 text_of(before) + "\n-> " + to_string(at.step) + "\n\n" + text_of(made));
    ir::verify(made, ir::Level::scheduled);
    const ir::Program written = program_of(after(each.program(), ""));
    CHECK(difference(written, made, each.workers) == "");
    if (at.step.primitive.rfind("layout_", 0) == 0) CHECK(difference(written, pass::flatten_storage(made)) == "");
  }
}

TEST_CASE("a loop that is bound to workers, or to blocks, is a parallel one", "[schedule][loops][equality]") {
  const ir::Stmt programs[] = {matrix(), product(), scale()};
  for (const ir::Stmt& program : programs)
    for (const Target& target : {Target(), Target::cuda()})
      for (const char* bound : {"bind(i, worker)", "bind(i, block)"})
        CHECK(ir::equal(after(program, bound, target), after(program, "parallel(i)", target)));
}

TEST_CASE("a primitive that has nothing to do gives the same program back", "[schedule][loops][noop]") {
  for (const Nothing& each : nothing) {
    INFO(each.steps);
    const Around at = around_last(each.program(), each.steps);
    INFO(ir::print(at.before) << "->\n" << ir::print(at.after));
    CHECK(at.after.same_as(at.before));
  }
}

TEST_CASE("no primitive is without a golden, nor without a case where it has nothing to do if there can be one",
          "[schedule][loops]") {
  std::set<std::string> goldens, idle;
  for (const Case& each : cases) goldens.insert(Loops::parse(each.steps).steps().back().primitive);
  for (const Nothing& each : nothing) idle.insert(Loops::parse(each.steps).steps().back().primitive);
  for (const pass::LoopPrimitive& primitive : pass::detail::loop_primitives) {
    const std::string name(primitive.name);
    INFO(name);
    CHECK(goldens.count(name) == 1);
    CHECK(idle.count(name) + always_something.count(name) == 1);
  }
}

TEST_CASE("vectors find their elements wherever a layout puts them", "[schedule][loops][equality]") {
  for (const char* steps : {
           "layout_split(W, 0, 4); split(i, 4); vectorize(i.i)",
           "layout_split(W, 0, 4); layout_reorder(W, 0, 2, 1); split(i, 4); vectorize(i.i)",
           "layout_split(W, 0, 2); layout_split(W, 0, 2); layout_reorder(W, 3, 1, 0, 2); split(i, 2); vectorize(i.i)",
           "layout_split(W, 0, 2); layout_reorder(W, 2, 1, 0); split(i, 4); vectorize(i.i)",
           "layout_split(W, 0, 3); layout_pad(W, 2, 16); split(i, 4); vectorize(i.i)",
           "pack_weights(); layout_split(W_packed, 0, 2); layout_reorder(W_packed, 1, 0, 2, 3); tile_nests()",
       }) {
    INFO(steps);
    ir::Program program = program_of(after(product(), steps));
    program.body = pass::vectorize(program.body);
    CHECK(difference(program_of(product()), pass::flatten_storage(program)) == "");
  }
}

TEST_CASE("a temporary whose layout is given by hand has no second copy, for which the layout has no room",
          "[schedule][loops][equality]") {
  const std::string rows = "distribute_rows(); index_densely(); ",
                    shared = "parallel(i); parallel(j); insert_barriers()";
  const ir::Program written = program_of(two_nests_a_batch());
  for (const char* layout : {"", "layout_pad(s, 1, 16); ", "layout_split(s, 1, 4); ",
                             "layout_split(s, 1, 4); layout_reorder(s, 0, 2, 1); "}) {
    INFO(layout);
    const ir::Program made = program_of(after(two_nests_a_batch(), rows + layout + shared));
    const bool by_hand = *layout != 0, two_copies = ir::print(made).find("turn=2") != std::string::npos;
    CHECK(two_copies == !by_hand);
    for (const ir::Program& program : {made, pass::flatten_storage(made)}) CHECK(difference(written, program, 3) == "");
  }
}
