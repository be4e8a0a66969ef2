// ILIR at device level as CUDA C++: one source without includes, with one kernel that a launch runs once for each block
// of each group.
//
//   for i = 0:n:                 for (int i4 = 0; i4 < v3; ++i4) {
//     out[i] = x[i]       ->       const float v5 = load(b1, i4);
//   barrier                        store(b0, i4, v5);
//                                }
//                                sync_cluster();
//
// The program must be flat and without vectors but those that copy weights: serial loops, one linear index a buffer.
// Names are generated; users' names do not occur. The text needs no part of CUDA to be made, read or compared, and is
// the same each time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/codegen/cuda_entry.hpp"
#include "cortex/codegen/cuda_loops.hpp"
#include "cortex/codegen/cuda_neighbours.hpp"
#include "cortex/codegen/cuda_row_pointers.hpp"
#include "cortex/codegen/cuda_spelling.hpp"
#include "cortex/codegen/memo.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/schedule/split_fills.hpp"

namespace cortex::codegen {

namespace detail {

class CudaTextPrinter : CudaEntry {
 public:
  CudaTextPrinter(const ir::Program& program, const CudaTextOptions& options) : CudaEntry(program, options) {
    ir::visit_with(program.body, [&](const ir::Alloc& alloc) {
      if (alloc.buffer->role == ir::Role::weight) weights_in_registers_ += int(alloc.buffer->dims[0].extent());
    });
  }

  CudaText text() {
    heading();
    find_call();
    line("const u64* const table = head + head_words;");
    buffers([](const ir::Buffer&) { return true; }, "table", part_bytes_ ? "load_chip" : "load");
    barrier_words();
    bring_structure();
    line("if (launch.before) {");
    scoped([&] { line("move_rows(", rows("before"), ", worker);"), meet(ir::Meeting::workers); });
    // Nor may a block write to the memory of one that has not begun.
    if (mirrors_ && options_.barrier == CudaBarrier::cluster) line("sync_cluster();");
    stmt(program_.body);
    line("if (launch.after) {");
    scoped([&] { move_rows_after(program_.body); });
    // A block must not end while others of its cluster may still look for it.
    if (options_.barrier == CudaBarrier::cluster) line("sync_cluster();");
    CudaText result;
    result.barrier = options_.barrier;
    result.chip_bytes = chip_bytes_;
    result.with_launch = with_launch_;
    const auto define = [&](const char* name, std::int64_t value) { result.settings += cuda_define(name, value); };
    define("BLOCKS", options_.blocks);
    define("THREADS", options_.threads);
    define("SPIN_LIMIT", options_.spin_limit);
    define("PART_WORDS", std::int64_t(part_.words()));
    if (const int words = cuda_barrier_words(options_.barrier, options_.blocks)) define("BARRIER_WORDS", words);
    result.kernel =
        "\n// ---- the program ----\nstruct Launch {\n  const u64* call;\n  u64* words;\n  volatile int* fault;\n  "
        "int before, after, with_launch;\n  Wide in[" +
        std::to_string(result.with_launch ? cuda_most_with_launch / 16 : 1) + "];\n};\n" +
        std::string("KERNEL(cortex_kernel, THREADS) {\n") + text_ + "}\n";
    return result;
  }

  /// The kernel that takes calls from a mailbox: weights and what is filled with them stand before the loop over calls.
  std::string resident() {
    resident_ = true;
    const schedule::SplitFills split = schedule::split_fills(program_.body);
    const auto is_weight = [](const ir::Buffer& buffer) { return buffer->role == ir::Role::weight; };
    heading();
    buffers([&](const ir::Buffer& b) { return is_weight(b) || ir::is_on_chip(b->scope); }, "launch.weights", "load");
    barrier_words();
    for (const ir::Buffer& registers : split.registers) declare(registers);
    stmt(split.fills);
    line("begin_service(launch);");
    line("while (take_call(launch, group)) {");
    scoped([&] {
      line("if (worker == 0) open_letter(launch, group);");
      meet(ir::Meeting::workers);
      line("letter_is_open(launch);");
      line("const u64* const call = opened_letter(launch, group);");
      line("const u64* const head = call + part_of(group);");
      line("const u64* const table = head + head_words;");
      call_ = "call";
      line("if (", rows("before"), ".count) {");
      scoped([&] { line("move_rows(", rows("before"), ", worker);"), meet(ir::Meeting::workers); });
      buffers([&](const ir::Buffer& b) { return !is_weight(b) && !ir::is_on_chip(b->scope); }, "table", "load");
      bring_structure();
      stmt(split.rest);
      line("if (", rows("after"), ".count) {");
      scoped([&] { move_rows_after(split.rest); });
      line("end_call(launch);");
    });
    if (options_.barrier == CudaBarrier::cluster) line("sync_cluster();");
    return "\n// ---- the program ----\nKERNEL(cortex_resident, THREADS) {\n" + text_ + "}\n";
  }

 private:
  // --- The kernel ---------------------------------------------------------------------------------------------------

  /// Whether all of a group see what all have done, after a statement before which they do if `before`.
  bool have_met(const ir::Stmt& s, bool before) const {
    if (const auto* barrier = s.as<ir::Barrier>())
      return before || barrier->among == ir::Meeting::workers ||
             (barrier->among == ir::Meeting::threads && options_.blocks == 1);
    if (const auto* block = s.as<ir::Block>()) {
      for (const ir::Stmt& child : block->stmts) before = have_met(child, before);
      return before;
    }
    if (const auto* let = s.as<ir::LetStmt>()) return have_met(let->body, before);
    if (const auto* alloc = s.as<ir::Alloc>()) return have_met(alloc->body, before);
    if (const auto* loop = s.as<ir::For>()) return before && have_met(loop->body, false);  // it may not run
    return s.as<ir::Prefetch>() && before;
  }

  void move_rows_after(const ir::Stmt& program) {
    if (!have_met(program, true)) meet(ir::Meeting::workers);
    line("move_rows(", rows("after"), ", worker);");
  }

  std::string fresh(char stem) { return stem + std::to_string(next_++); }

  // --- Statements ---------------------------------------------------------------------------------------------------

  void stmt(const ir::Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::for_: return loop(*s.as<ir::For>());
      case ir::StmtKind::let: return let(*s.as<ir::LetStmt>());
      case ir::StmtKind::store: return store(*s.as<ir::Store>());
      case ir::StmtKind::if_: return branch(*s.as<ir::If>());
      case ir::StmtKind::block: return block(s.as<ir::Block>()->stmts);
      case ir::StmtKind::alloc: return alloc(*s.as<ir::Alloc>());
      case ir::StmtKind::mma: return mma(*s.as<ir::Mma>());
      case ir::StmtKind::join: return join(*s.as<ir::Join>());
      case ir::StmtKind::barrier: return meet(s.as<ir::Barrier>()->among);
      case ir::StmtKind::prefetch: return;  // other threads' work hides the wait
      case ir::StmtKind::tile_rows:
      case ir::StmtKind::tile_product: refuse_cuda("a product of a CPU's matrix unit");
    }
    refuse_cuda("a statement of an unknown kind");
  }

  /// A block of C++ text: what is computed in it is not known after it.
  template <class F>
  void scoped(F&& body) {
    memo_.forget_loads();
    const Memo::Mark mark = memo_.enter();
    const std::size_t known = rows_.size();
    const Vector<Quad> around = std::exchange(quads_, {});
    ++depth_;
    body();
    --depth_;
    quads_ = around;
    while (rows_.size() > known) rows_.pop_back();
    memo_.leave(mark);
    line("}");
  }
  void scoped(const ir::Stmt& body) {
    scoped([&] { quads_ = quads_of(body), stmt(body); });
  }

  void loop(const ir::For& n) {
    if (n.loop != ir::ForKind::serial) refuse_cuda("a loop over " + n.dim.name() + " that is not serial");
    const std::string extent = expr(n.extent).text, var = fresh('i'), type(cuda_scalar(n.var.dtype()));
    if (ir::as_int(n.extent).value_or(0) > 0) {
      for (const Row& row : rows_before(n)) pointer_to(row);
      for (const ir::Expr& index : indices_before(n)) expr(index);
    }
    if (indexes_registers(n))
      line("UNROLL(\"unroll\")");
    else if (is_contraction(n))
      line("UNROLL(\"unroll ", std::to_string(iterations_at_once(n)), "\")");
    else if (fills_chip(n))
      line("UNROLL(\"unroll 8\")");  // so many loads on their way at once
    line("for (", type, " ", var, " = 0; ", var, " < ", extent, "; ++", var, ") {");
    scoped([&] {
      memo_.add(n.var.get(), {var});
      quads_ = quads_of(n.body);
      stmt(n.body);
    });
  }

  /// So many that two thirds of the registers beside those for sums and pointers wait for loads from far away, each of
  /// which takes as long as hundreds of additions; fewer where some hold weights, and in a kernel that stays, which has
  /// more to keep.
  int iterations_at_once(const ir::For& n) const {
    const int registers = std::min(65536 / options_.threads, 255);
    const FarLoads far(n);
    int many = quads_in(n.body).empty() ? 16 : std::clamp((registers - 32) / 48, 1, 4);
    const int left = registers - (far.rows.size() == 1 ? 60 : 64);
    const int waiting = std::max(left * 2 / 3 / (resident_ ? 2 : 1) - weights_in_registers_, 8);
    while (many > 1 && many * far.elements > waiting) many /= 2;
    return many;
  }

  void let(const ir::LetStmt& n) {
    const Operand value = expr(n.value);
    memo_.forget_loads();
    const Memo::Mark mark = memo_.enter();
    const std::size_t known = rows_.size();
    memo_.add(n.var.get(), {value.text, true, value.of});
    stmt(n.body);
    while (rows_.size() > known) rows_.pop_back();
    memo_.leave(mark);
  }

  void alloc(const ir::Alloc& n) {
    declare(n.buffer);
    stmt(n.body);
  }
  void declare(const ir::Buffer& buffer) {
    std::int64_t count = 1;
    for (const Dim& dim : buffer->dims) count *= dim.extent();
    if (count < 1 || buffer->lanes > 1) refuse_cuda("local buffer " + buffer->name + " is no array of scalars");
    const std::string name = fresh('a');
    names_.insert_or_assign(buffer.id(), name);
    line(cuda_scalar(buffer->dtype), " ", name, buffer->dims.empty() ? ";" : "[" + std::to_string(count) + "];");
  }

  void block(const Vector<ir::Stmt>& stmts) {
    for (std::size_t i = 0; i < stmts.size(); ++i)
      if (i + 4 <= stmts.size() && are_quad(&stmts[i]) && !is_invariant(stmts[i].as<ir::Store>()->buffer))
        store_quad(&stmts[i]), i += 3;
      else
        stmt(stmts[i]);
  }
  void store_quad(const ir::Stmt* stmts) {
    const auto& first = *stmts[0].as<ir::Store>();
    std::string values;
    for (int i = 0; i < 4; ++i) values += ", " + expr(stmts[i].as<ir::Store>()->value).text;
    const std::string index = index_of(first.buffer, first.indices);
    line(how_to_store(*first.buffer), "_quad(", place(first.buffer, index), values, ");");
    memo_.forget_loads();
  }

  void store(const ir::Store& n) {
    if (n.value.lanes() > 1) return copy_piece(n);
    const std::string index = index_of(n.buffer, n.indices), value = expr(n.value).text;
    if (n.buffer->scope == ir::Scope::local)
      line(name_of(n.buffer), index.empty() ? "" : "[" + index + "]", " = ", value, ";");
    else if (is_invariant(n.buffer))
      refuse_cuda("a store to " + n.buffer->name + ", which a call only reads");
    else
      line(how_to_store(*n.buffer), "(", place(n.buffer, index), ", ", value, ");");
    memo_.forget_loads();
  }

  /// A pointer and an index: of what is spread, in the block that has it.
  std::string place(const ir::Buffer& buffer, const std::string& index) const {
    const std::string& name = name_of(buffer);
    if (buffer->scope != ir::Scope::spread) return name + ", " + index;
    const std::string share = std::to_string(buffer->share);
    return "in_block(" + name + ", " + index + " / " + share + "), " + index + " % " + share;
  }

  const char* how_to_store(const ir::BufferInfo& buffer) const {
    if (!ir::is_on_chip(buffer.scope)) return "store";
    return buffer.scope == ir::Scope::mirrored && options_.blocks > 1 ? "store_mirrored" : "store_chip";
  }

  /// The one use of vectors: 16 bytes of weights that go to shared memory as they are. Whoever wrote it knows that both
  /// places are multiples of 16 bytes.
  void copy_piece(const ir::Store& n) {
    const auto* from = n.value.as<ir::Load>();
    const auto first = [](const Vector<ir::Expr>& indices) {
      const auto* ramp = indices.size() == 1 ? indices.front().as<ir::Ramp>() : nullptr;
      return ramp ? ramp->base : ir::Expr();
    };
    const ir::Expr to = first(n.indices), at = from ? first(from->indices) : ir::Expr();
    const bool whole = n.value.lanes() * int(size_of(n.buffer->dtype)) == 16;
    if (!to || !at || !whole || !ir::keeps_weights(n.buffer->scope) || from->buffer->role != ir::Role::weight)
      refuse_cuda("a vector that is no piece of 16 bytes of weights on its way to shared memory");
    const std::string there = place(n.buffer, expr(to).text), source = expr(at).text;
    line("store_chip_piece(", there, ", load_piece(", name_of(from->buffer), ", ", source, "));");
  }

  /// Rounding is the hardware's: the casts of the operands are part of the product.
  void mma(const ir::Mma& n) {
    const auto& weights = *n.weights.as<ir::Load>();
    const std::string offset = index_of(weights.buffer, weights.indices);
    load_pairs(n.x);
    std::string x;
    for (const ir::Expr& e : n.x) x += ", " + expr(e.as<ir::Cast>()->a).text;
    const char* how = ir::keeps_weights(weights.buffer->scope) ? "load_chip_fragment(" : "load_fragment(";
    line("mma_", to_string(weights.buffer->dtype), "(", name_of(n.sum), ", ", how, place(weights.buffer, offset), ")",
         x, ");");
  }

  /// Loads those of a tile's operands that are neighbours two at a time.
  void load_pairs(const Vector<ir::Expr>& operands) {
    for (std::size_t i = 0; i + 1 < operands.size(); i += 2) {
      const ir::Expr &a = operands[i].as<ir::Cast>()->a, &b = operands[i + 1].as<ir::Cast>()->a;
      if (memo_.find(a.get()) || memo_.find(b.get()) || !are_pair(a, b)) continue;
      const auto* first = a.as<ir::Load>();
      const Operand both = first ? load(*first, "_pair") : in_row(Row(*a.as<ir::Select>()), "_pair");
      const std::string pair = fresh('v');
      line("const Pair ", pair, " = ", both.text, ";");
      memo_.add(a.get(), {pair + ".x", both.fixed});
      memo_.add(b.get(), {pair + ".y", both.fixed});
    }
  }

  void join(const ir::Join& n) {
    line(name_of(n.sum), " = join<", std::to_string(n.threads), ", ", std::to_string(n.terms->dims[0].extent()), ">(",
         name_of(n.terms), ");");
    memo_.forget_loads();
  }

  void branch(const ir::If& n) {
    line("if (", expr(n.condition).text, ") {");
    scoped(n.then_body);
    if (!n.else_body) return;
    line("else {");
    scoped(n.else_body);
  }

  void meet(ir::Meeting among) {
    if (among == ir::Meeting::warp) return line("sync_warp();");
    if (among == ir::Meeting::threads || options_.blocks == 1) return line("sync_block();");
    if (options_.barrier == CudaBarrier::none) refuse_cuda("blocks that never meet have a barrier");
    line(options_.barrier == CudaBarrier::cluster ? "sync_cluster();" : "sync_grid(own, worker);");
  }

  // --- Expressions --------------------------------------------------------------------------------------------------

  Operand expr(const ir::Expr& e) {
    if (const auto* imm = e.as<ir::IntImm>()) return {cuda_int(imm->value, e.dtype())};
    if (const auto* imm = e.as<ir::FloatImm>()) return {cuda_float(imm->value, e.dtype())};
    if (const Operand* known = memo_.find(e.get())) return *known;
    if (e.lanes() > 1) refuse_cuda("a vector");
    Operand result = compute(e);
    if (e->kind != ir::ExprKind::uf_call && e->kind != ir::ExprKind::let) {
      const std::string text = std::exchange(result.text, fresh('v'));
      line("const ", cuda_scalar(e.dtype()), " ", result.text, " = ", text, ";");
    }
    memo_.add(e.get(), result);
    return result;
  }

  Operand compute(const ir::Expr& e) {
    switch (e->kind) {
      case ir::ExprKind::var: refuse_cuda("variable " + e.as<ir::Var>()->name + " is used outside its scope");
      case ir::ExprKind::unary: {
        const Operand a = expr(e.as<ir::Unary>()->a);
        return {cuda_unary(e.as<ir::Unary>()->op, e.dtype(), a.text, a.of == MadeOf::anything), a.fixed, a.of};
      }
      case ir::ExprKind::binary: {
        const auto& n = *e.as<ir::Binary>();
        const auto* wide = n.op == ir::BinaryOp::add && e.dtype() == DType::i64 ? n.b.as<ir::Cast>() : nullptr;
        if (wide && wide->a.dtype() == DType::i32) return plus_widened(expr(n.a), wide->a);
        const Operand a = expr(n.a), b = expr(n.b);
        const MadeOf of = made_of(n, a, b);
        return {cuda_binary(n.op, n.a.dtype(), a.text, b.text, of), a.fixed && b.fixed, of};
      }
      case ir::ExprKind::fma: {
        const auto& n = *e.as<ir::Fma>();
        const Operand a = expr(n.a), b = expr(n.b), c = expr(n.c);
        return {"fma_(" + a.text + ", " + b.text + ", " + c.text + ")", a.fixed && b.fixed && c.fixed};
      }
      case ir::ExprKind::select: {
        const auto& n = *e.as<ir::Select>();
        if (Quad* quad = quad_with(e)) return element(*quad, e);
        if (ir::is_near_or_far(n)) return in_row(Row(n));
        const Operand c = expr(n.condition), a = expr(n.then_value), b = expr(n.else_value);
        return {c.text + " ? " + a.text + " : " + b.text, c.fixed && a.fixed && b.fixed, std::max(a.of, b.of)};
      }
      case ir::ExprKind::cast: {
        const ir::Expr& from = e.as<ir::Cast>()->a;
        const Operand a = expr(from);
        return {cuda_cast(e.dtype(), from.dtype(), a.text), a.fixed, a.of};
      }
      case ir::ExprKind::load:
        if (Quad* quad = quad_with(e)) return element(*quad, e);
        return load(*e.as<ir::Load>());
      case ir::ExprKind::let: {
        const auto& n = *e.as<ir::Let>();
        const Operand value = expr(n.value);
        const Memo::Mark mark = memo_.enter();
        memo_.add(n.var.get(), value);
        const Operand result = expr(n.body);
        memo_.leave(mark);
        return {result.text, result.fixed && value.fixed, result.of};
      }
      case ir::ExprKind::uf_call: {
        const ir::UfKind kind = e.as<ir::UfCall>()->uf.kind;
        if (kind == ir::UfKind::worker) return {"worker"};
        if (kind == ir::UfKind::num_workers) return {"BLOCKS"};
        if (kind == ir::UfKind::thread) return {"thread"};
        refuse_cuda("uninterpreted function " + e.as<ir::UfCall>()->uf.name + " has no meaning yet");
      }
      default: refuse_cuda("an expression that has no scalar meaning");
    }
  }

  /// Those for which a thread has registers: 64 of 1024 threads a block are too few.
  Vector<Quad> quads_of(const ir::Stmt& body) const {
    return options_.threads < 1024 ? quads_in(body) : Vector<Quad>();
  }

  Quad* quad_with(const ir::Expr& e) {
    for (Quad& quad : quads_)
      for (const ir::Expr& one : quad.elements)
        if (ir::equal(one, e)) return &quad;
    return nullptr;
  }

  /// One of four neighbours, all of which are loaded if they are not yet. Nothing is stored to their memory meanwhile.
  Operand element(Quad& quad, const ir::Expr& e) {
    if (quad.variable.empty()) {
      const auto* first = quad.elements[0].as<ir::Load>();
      const Operand all = first ? load(*first, "_quad") : in_row(Row(*quad.elements[0].as<ir::Select>()), "_quad");
      quad.variable = fresh('q');
      line("const auto ", quad.variable, " = ", all.text, ";");
    }
    int i = 0;
    while (!ir::equal(quad.elements[i], e)) ++i;
    return {quad.variable + "." + "xyzw"[i], false};
  }

  /// `a + (long long)(b + c)` as `a + (long long)b + (long long)c`: where a loop over c is copied out, c is then a
  /// constant of the instruction that loads, and not an addition before it.
  Operand plus_widened(Operand sum, const ir::Expr& e) {
    const auto* terms = e.as<ir::Binary>();
    if (terms && terms->op == ir::BinaryOp::add) return plus_widened(plus_widened(sum, terms->a), terms->b);
    const Operand term = expr(e);
    return {sum.text + " + " + cuda_cast(DType::i64, DType::i32, term.text), sum.fixed && term.fixed,
            std::max(sum.of, term.of)};
  }

  /// An element of a row that has a pointer. `many`: as below.
  Operand in_row(const Row& row, const char* many = "") {
    const std::string pointer = pointer_to(row);
    places_.push_back(row.place);
    return {std::string("load_row") + many + "(" + pointer + ", " + expr(row.place).text + ")", !row.memory};
  }

  /// The variable that points to a row, as long as the text is in its scope.
  std::string pointer_to(const Row& row) {
    for (const Row& known : rows_)
      if (known.is_row_of(row)) return known.pointer;
    const std::string near = expr(row.near).text, chip = name_of(row.chip), pointer = fresh('r');
    const std::string share = std::to_string(row.chip->share);
    std::string address = "in_block(" + chip + ", " + near + " / " + share + ") + " + near + " % " + share;
    if (row.memory) {
      const std::string is_near = expr(row.is_near).text, far = expr(row.far).text;
      address = is_near + " ? " + chip + " + " + near + " : " + name_of(row.memory) + " + " + far;
    }
    line("const ", cuda_scalar(row.chip->dtype), "* const ", pointer, " = ", address, ";");
    rows_.push_back(row);
    rows_.back().pointer = pointer;
    return pointer;
  }

  /// `many`: what comes after the name of a function that loads more than one element.
  Operand load(const ir::Load& n, const char* many = "") {
    if (n.buffer->scope == ir::Scope::spread) return in_row(Row(n), many);
    const std::string index = index_of(n.buffer, n.indices);
    const std::string& name = name_of(n.buffer);
    if (n.buffer->scope == ir::Scope::local)
      return {index.empty() ? name : name + "[" + index + "]", false, made_of(n)};
    const bool invariant = is_invariant(n.buffer);
    // What a kernel that stays writes between calls is no constant to the hardware, though it is one to a call.
    const bool constant = invariant && (!resident_ || n.buffer->role == ir::Role::weight);
    const char* how = structure_brought_ && is_structure(*n.buffer) ? "load_row"
                      : constant                                    ? "load_constant"
                      : ir::is_on_chip(n.buffer->scope)             ? "load_chip"
                                                                    : "load";
    return {std::string(how) + many + "(" + name + ", " + index + ")", invariant && index_fixed_, made_of(n)};
  }

  /// The only index of an access; none for a local buffer without dimensions.
  std::string index_of(const ir::Buffer& buffer, const Vector<ir::Expr>& indices) {
    index_fixed_ = true;
    if (indices.empty() && buffer->scope == ir::Scope::local && buffer->dims.empty()) return {};
    if (indices.size() != 1)
      refuse_cuda("buffer " + buffer->name + " is not flat: it has " + std::to_string(indices.size()) + " indices");
    const Operand index = expr(indices.front());
    index_fixed_ = index.fixed;
    return index.text;
  }

  bool resident_ = false;
  int weights_in_registers_ = 0;  // of a thread
  Memo memo_;
  Vector<Quad> quads_;       // of the statements around
  Vector<Row> rows_;         // which have pointers
  Vector<ir::Expr> places_;  // in rows: no part of the program, and `memo_` knows them by where they are
  int next_ = 0;
  bool index_fixed_ = true;
};

}  // namespace detail

/// The program as a kernel. Throws Code::internal if the program is not one of device level, or not for a GPU.
inline CudaText cuda_text(const ir::Program& program, const CudaTextOptions& options) {
  if (program.level != ir::Level::device || !program.body)
    refuse_cuda("program " + program.name + " is not at device level");
  CudaText text = detail::CudaTextPrinter(program, options).text();
  text.resident = detail::CudaTextPrinter(program, options).resident();
  return text;
}

}  // namespace cortex::codegen
