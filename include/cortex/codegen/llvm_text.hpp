// ILIR at device level as LLVM IR text: one function that follows `KernelArgs`.
//
//   for i = 0:n:            head:  br i1 %guard, label %loop, label %done
//     out[i] = x[i]   ->    loop:  %i = phi i32 [ 0, %head ], [ %next, %latch ]
//                                  ... load, store ...
//
// The program must be flat: serial loops, one linear index a buffer, no uninterpreted function but the worker's number.
// The text needs no LLVM to be made, read or compared, names no target, and is the same each time.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/codegen/function_part.hpp"
#include "cortex/codegen/kernel_abi.hpp"
#include "cortex/codegen/llvm_memory.hpp"
#include "cortex/codegen/llvm_ops.hpp"
#include "cortex/codegen/memo.hpp"
#include "cortex/ir/equal.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::codegen {

struct LlvmTextOptions {
  std::string symbol;             // the function's name: letters, digits, '_' and '.'
  int vector_bytes = 16;          // the widest vector register that LLVM should use
  bool sanitize_address = false;  // the function is to be instrumented by AddressSanitizer
  bool converts_f16 = false;      // the machine has an instruction that makes an f32 of an f16
  Limits limits = Limits::by_llvm;
  bool is_weak = false;  // the linker may meet the same function in several objects
};

namespace detail {

class LlvmTextPrinter {
 public:
  LlvmTextPrinter(const ir::Program& program, const LlvmTextOptions& options)
      : program_(program), options_(options), memory_(program, ops_) {
    ops_.converts_f16 = options.converts_f16, ops_.limits = options.limits;
  }

  std::string text() {
    is_long_ = stores_in(program_.body) > most_stores;
    stmt(program_.body);
    const std::string main = memory_.allocations() + memory_.loads_of_pointers() + body();
    std::string result = heading();
    for (std::size_t f = 0; f < functions_.size(); ++f) {
      const Function& function = functions_[f];
      result += "define internal void " + name_of(f) + "(" + function.parameters;
      if (function.is_shared) result += LlvmMemory::parameters(function.buffers.size());
      result += ") #2 {\nentry:\n" + function.allocations;
      if (!function.is_shared) result += function.loads_of_pointers;
      add_calls(result, function.body);
    }
    result += std::string(options_.is_weak ? "define weak void @" : "define void @") + options_.symbol +
              "(ptr noundef %args) #0 {\nentry:\n";
    add_calls(result, main);
    for (const std::string& declaration : ops_.declarations) result += declaration + "\n";
    return result + attributes() + "\n" + memory_.metadata();
  }

 private:
  /// In stores. LLVM's time grows faster than functions do; models of one cell have 150 to 600.
  static constexpr int most_stores = 1000, most_of_part = 200, least_of_function = 12;

  /// What has been printed: values as they are, and integers as 64 bits.
  struct Known {
    Memo values, wide;
    void forget_loads() { values.forget_loads(), wide.forget_loads(); }
  };

  // --- Functions ----------------------------------------------------------------------------------------------------

  /// A function of the kernel's beside its main one. One that is called with several buffers in the same role, as by
  /// two cases of a switch, is given their addresses; others load them.
  struct Function {
    std::string parameters, allocations, loads_of_pointers, body;
    Vector<int> buffers;  // that it touches, in the order of its own numbers for them
    bool is_shared = false;
  };

  std::string name_of(std::size_t function) const { return "@" + options_.symbol + "." + std::to_string(function); }

  /// What follows the pointers of the function whose statements have been printed.
  std::string body() const {
    std::string text = field("barrier", "ptr", offsetof(KernelArgs, barrier));
    text.reserve(ops_.text.size() + 4096);
    text += field("context", "ptr", offsetof(KernelArgs, barrier_context));
    text += field("worker", "i32", offsetof(KernelArgs, worker));
    text += field("workers", "i32", offsetof(KernelArgs, num_workers));
    return (text += ops_.text) += "  ret void\n}\n\n";
  }

  // Calls are printed before it is known which functions are shared: between these stand the function's number and the
  // operands that one has if it is.
  static constexpr char begins = '\1', has = '\2', ends = '\3';

  void add_calls(std::string& text, std::string_view body) const {
    for (;;) {
      const std::size_t at = body.find(begins), middle = body.find(has), end = body.find(ends);
      text += body.substr(0, at);
      if (at == body.npos) return;
      const std::string number(body.substr(at + 1, middle - at - 1));
      if (functions_[std::size_t(std::stoi(number))].is_shared) text += body.substr(middle + 1, end - middle - 1);
      body.remove_prefix(end + 1);
    }
  }

  /// One field of KernelArgs, loaded into the name `name`.
  static std::string field(const std::string& name, const std::string& type, std::size_t offset) {
    return "  %at." + name + " = getelementptr inbounds i8, ptr %args, i64 " + std::to_string(offset) + "\n  %" + name +
           " = load " + type + ", ptr %at." + name + ", align " + (type == "ptr" ? "8" : "4") +
           ", !invariant.load !0\n";
  }

  static int stores_in(const ir::Stmt& s) {
    int stores = 0;
    ir::visit_with(s, [&](const ir::Store&) { return ++stores, false; });
    return stores;
  }

  /// Whether a statement with local buffers is to be a function of its own: a register tile with its epilogue. In one
  /// function with the loops around it, LLVM would hoist the epilogue's constants out of those, and have no registers
  /// left for the sums; and the time that LLVM takes grows faster than functions do.
  bool is_tile(const ir::Alloc& alloc) const {
    const ir::Stmt s = handle_of(alloc);
    bool loops = false;
    ir::visit_with(
        s, [&](const ir::For&) { loops = true; }, [](const ir::Store&) { return false; });
    return !in_tile_ && loops && stores_in(s) >= least_of_function;
  }

  /// Whether a loop is to be a function of its own because the kernel is long, for LLVM's time: the outermost loops
  /// that are not long themselves. Local buffers around them have functions already.
  bool is_part(const ir::For& loop) const {
    if (!is_long_ || in_function_) return false;
    const int stores = stores_in(handle_of(loop));
    return stores >= least_of_function && stores <= most_of_part;
  }

  /// Calls `s` as a function of what it needs from outside it.
  void call_function(const ir::Stmt& s) {
    const FunctionPart part = function_part(s);
    std::string arguments = "ptr %args";
    for (const ir::Expr& a : part.arguments) arguments += ", " + llvm_type(a.type()) + " " + expr(a).text;
    Function function = function_of(part);
    const Vector<int> buffers = function.buffers;
    const std::string text = function.parameters + function.allocations + function.body;
    const auto [found, is_new] = function_numbers_.try_emplace(text, functions_.size());
    const std::size_t number = found->second;
    if (is_new) functions_.push_back(std::move(function));
    functions_[number].is_shared |= functions_[number].buffers != buffers;
    ops_.line("call void ", name_of(number), "(", arguments, begins + std::to_string(number) + has,
              memory_.operands(buffers) + ends, ") nounwind");
  }

  /// The function that a part is. Equal ones have equal texts, but for their pointers: names begin anew in each.
  Function function_of(const FunctionPart& part) {
    LlvmOps::Function ops = ops_.enter();
    LlvmMemory::Frame frame = memory_.enter({});
    Function function{"ptr noundef %args", "", "", "", {}};
    Known known;
    for (const ir::Expr& v : part.parameters) {
      const std::string parameter = ops_.fresh("p");
      function.parameters += ", " + llvm_type(v.type()) + " " + parameter;
      known.values.add(v.get(), {parameter});
    }
    std::swap(known, known_);
    std::string block = std::exchange(block_, "%entry");
    const bool in_function = std::exchange(in_function_, true), in_tile = in_tile_;
    in_tile_ |= part.body->kind == ir::StmtKind::alloc;
    stmt(part.body);
    in_function_ = in_function, in_tile_ = in_tile;
    block_ = std::move(block);
    std::swap(known, known_);
    function.allocations = memory_.allocations(), function.loads_of_pointers = memory_.loads_of_pointers();
    function.body = body(), function.buffers = memory_.buffers();
    memory_.enter(std::move(frame));
    ops_.enter(std::move(ops));
    return function;
  }

  std::string heading() const {
    constexpr std::string_view roles[] = {"weight", "field", "state", "temp", "index"};
    std::string text = "; program " + sanitized(program_.name) + "\n";
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const ir::Buffer& buffer = program_.buffers[i];
      text += "; %b" + std::to_string(i) + " " + sanitized(buffer->name) + " ";
      text.append(to_string(buffer->dtype)).append(" ").append(roles[std::size_t(buffer->role)]).append("\n");
    }
    return text + "\n";
  }

  std::string attributes() const {
    std::string text = " nounwind \"probe-stack\"=\"inline-asm\"";  // a stack that is too small ends in its guard page
    if (options_.sanitize_address) text += " sanitize_address";
    if (options_.vector_bytes >= 32) {
      const std::string bits = std::to_string(options_.vector_bytes * 8);
      text += " \"prefer-vector-width\"=\"" + bits + "\" \"min-legal-vector-width\"=\"" + bits + "\"";
    }
    return "\nattributes #0 = {" + text + " }\nattributes #1 = { nounwind willreturn memory(none) }\n" +
           "attributes #2 = { noinline" + text + " }\n";
  }

  // --- Statements ---------------------------------------------------------------------------------------------------

  void stmt(const ir::Stmt& s) {
    switch (s->kind) {
      case ir::StmtKind::for_: return is_part(*s.as<ir::For>()) ? call_function(s) : loop(*s.as<ir::For>());
      case ir::StmtKind::let: return let(*s.as<ir::LetStmt>());
      case ir::StmtKind::store: return store(*s.as<ir::Store>());
      case ir::StmtKind::if_: return branch(*s.as<ir::If>());
      case ir::StmtKind::block:
        for (const ir::Stmt& child : s.as<ir::Block>()->stmts) stmt(child);
        return;
      case ir::StmtKind::alloc:
        if (is_tile(*s.as<ir::Alloc>())) return call_function(s);
        memory_.allocate(s.as<ir::Alloc>()->buffer);
        return stmt(s.as<ir::Alloc>()->body);
      case ir::StmtKind::tile_rows: return tile_rows(*s.as<ir::TileRows>());
      case ir::StmtKind::tile_product: return tile_product(*s.as<ir::TileProduct>());
      case ir::StmtKind::mma: refuse("a product of tensor cores");
      case ir::StmtKind::join: refuse("a sum over threads");
      case ir::StmtKind::barrier: return barrier();
      case ir::StmtKind::prefetch: return prefetch(*s.as<ir::Prefetch>());
    }
    refuse("a statement of an unknown kind");
  }

  void loop(const ir::For& n) {
    if (n.loop != ir::ForKind::serial) refuse("a loop over " + n.dim.name() + " that is not serial");
    const ir::Type type = n.var.type();
    if (type.lanes > 1 || !is_int(type.dtype)) refuse("a loop variable that is no integer");
    const std::string t = llvm_type(type), extent = ops_.cast(n.extent.type(), type.dtype, expr(n.extent).text);
    known_.forget_loads();
    const std::string head = block_, enter = label("loop"), latch = label("latch"), done = label("done");
    const std::string var = ops_.fresh("i"), next = ops_.fresh("i");
    condition(ops_.value("icmp slt ", t, " 0, ", extent), enter, done);
    start(enter);
    ops_.line(var, " = phi ", t, " [ 0, ", head, " ], [ ", next, ", ", latch, " ]");
    scoped([&] {
      known_.values.add(n.var.get(), {var});
      stmt(n.body);
    });
    jump(latch);
    start(latch);
    ops_.line(next, " = add nuw nsw ", t, " ", var, ", 1");
    condition(ops_.value("icmp slt ", t, " ", next, ", ", extent), enter, done);
    start(done);
  }

  void let(const ir::LetStmt& n) {
    const Operand value = expr(n.value);
    known_.forget_loads();
    scoped([&] {
      known_.values.add(n.var.get(), {value.text, true, value.of});
      stmt(n.body);
    });
  }

  void store(const ir::Store& n) {
    const ir::Expr index = index_of(n.buffer, n.indices);
    const std::string value = expr(n.value).text;
    memory_.store(n.buffer, index, offset(index).text, n.value.type(), value);
    known_.forget_loads();
  }

  void branch(const ir::If& n) {
    const std::string test = expr(n.condition).text;
    known_.forget_loads();
    const std::string then = label("then"), otherwise = n.else_body ? label("else") : "", done = label("done");
    condition(test, then, n.else_body ? otherwise : done);
    start(then);
    scoped([&] { stmt(n.then_body); });
    jump(done);
    if (n.else_body) {
      start(otherwise);
      scoped([&] { stmt(n.else_body); });
      jump(done);
    }
    start(done);
  }

  void barrier() {
    const std::string wait = label("wait"), done = label("done");
    condition(ops_.value("icmp sgt i32 %workers, 1"), wait, done);
    start(wait);
    ops_.line("call void %barrier(ptr %context) nounwind");
    jump(done);
    start(done);
  }

  /// Of what several lanes read, the first one's: they lie in its line. The last ones ask for what lies past the end.
  void prefetch(const ir::Prefetch& n) {
    constexpr auto anywhere = LlvmMemory::Bounds::anywhere;
    std::string at;
    if (const auto* load = n.place.as<ir::Load>()) {
      const ir::Expr index = LlvmMemory::offset_of(index_of(load->buffer, load->indices));
      if (index.lanes() > 1) return;
      at = memory_.address(load->buffer, wide(index).text, anywhere);
    } else {
      const auto& choice = *n.place.as<ir::Select>();
      const auto *a = choice.then_value.as<ir::Load>(), *b = choice.else_value.as<ir::Load>();
      if (a && b) at = either(choice.condition, *a, *b, anywhere);
    }
    if (at.empty()) return;
    ops_.declare("declare void @llvm.prefetch.p0(ptr nocapture readonly, i32 immarg, i32 immarg, i32 immarg)");
    ops_.line("call void @llvm.prefetch.p0(ptr ", at, ", i32 0, i32 3, i32 1)");
  }

  // --- Tiles of a matrix unit ---------------------------------------------------------------------------------------

  /// The unit's registers: those of sums and rows, 0 to 6, have as many rows as there are, that of weights has 16, of
  /// 64 bytes each.
  void tile_rows(const ir::TileRows& n) {
    if (ir::as_int(n.rows) == 0) {
      ops_.declare("declare void @llvm.x86.tilerelease()");
      return ops_.line("call void @llvm.x86.tilerelease()");
    }
    const std::string place = memory_.room(64), rows = ops_.cast(n.rows.type(), DType::i64, expr(n.rows).text);
    const std::string of_seven = ops_.value("mul i64 ", rows, ", ", std::to_string(0x01010101010101));
    const std::string all = ops_.value("or i64 ", of_seven, ", ", std::to_string(std::int64_t(16) << 56));
    const std::string columns = std::to_string(0x0040004000400040);
    const std::string words[] = {"1", "0", columns, columns, "0", "0", all, "0"};
    for (int i = 0; i < 8; ++i) ops_.line("store i64 ", words[i], ", ptr ", ops_.at(place, 8 * i), ", align 8");
    ops_.declare("declare void @llvm.x86.ldtilecfg(ptr)");
    ops_.line("call void @llvm.x86.ldtilecfg(ptr ", place, ")");
  }

  /// Register p holds the sums of panel p, 4 to 6 the pieces of the rows, and 7 weights, which are
  /// multiplied with all of them before the next: the unit takes as long to change weights as to multiply 16 rows.
  void tile_product(const ir::TileProduct& n) {
    constexpr int tile = ir::TileProduct::tile * 2;  // bytes
    const int panels = int(n.weights.size());
    const std::string sums = memory_.address(n.sums, "", LlvmMemory::Bounds::inside);
    const auto place_of = [&](const ir::Expr& e) {
      const auto& load = *e.as<ir::Load>();
      return memory_.address(load.buffer, wide(index_of(load.buffer, load.indices)).text, LlvmMemory::Bounds::inside);
    };
    const std::string x = place_of(n.x);
    Vector<std::string> weights;
    for (const ir::Expr& panel : n.weights) weights.push_back(place_of(panel));
    for (int p = 0; p < panels; ++p) n.shape.more ? ops_.load_tile(p, sums, p * tile) : ops_.zero_tile(p);
    const std::string head = block_, again = label("step"), done = label("done"), step = ops_.fresh("i"),
                      next = ops_.fresh("i");
    jump(again);
    start(again);
    ops_.line(step, " = phi i64 [ 0, ", head, " ], [ ", next, ", ", again, " ]");
    const auto stepped = [&](const std::string& from, int bytes) {
      return ops_.value("getelementptr i8, ptr ", from, ", i64 ",
                        ops_.value("mul nuw nsw i64 ", step, ", ", std::to_string(bytes)));
    };
    constexpr int pieces = ir::TileProduct::pieces, first = ir::TileProduct::most_panels, last = first + pieces;
    static_assert(last == 7, "the unit has eight registers, of which `tile_rows` gives the last 16 rows");
    const std::string rows = stepped(x, pieces * tile);
    for (int piece = 0; piece < pieces; ++piece) ops_.load_tile(first + piece, rows, piece * tile);
    for (int p = 0; p < panels; ++p) {
      ops_.load_tile(last, stepped(weights[std::size_t(p)], tile), 0);
      for (int piece = 0; piece < pieces; ++piece) ops_.multiply_tiles(p, first + piece, last);
    }
    ops_.line(next, " = add nuw nsw i64 ", step, ", 1");
    condition(ops_.value("icmp ult i64 ", next, ", ", std::to_string(n.shape.steps)), again, done);
    start(done);
    for (int p = 0; p < panels; ++p) ops_.store_tile(p, sums, p * tile);
    known_.forget_loads();
  }

  // --- Blocks -------------------------------------------------------------------------------------------------------

  /// A name for a block, with the sign that a reference to it has.
  std::string label(std::string_view stem) { return ops_.fresh(stem); }

  void start(const std::string& label) {
    block_ = label;
    ops_.text.append(label, 1).append(":\n");
  }

  void jump(const std::string& label) { ops_.line("br label ", label); }

  void condition(const std::string& test, const std::string& yes, const std::string& no) {
    ops_.line("br i1 ", test, ", label ", yes, ", label ", no);
  }

  template <class F>
  void scoped(F&& f) {
    const Memo::Mark values = known_.values.enter(), wide = known_.wide.enter();
    f();
    known_.values.leave(values), known_.wide.leave(wide);
  }

  // --- Expressions --------------------------------------------------------------------------------------------------

  /// What `e` evaluates to here.
  Operand expr(const ir::Expr& e) {
    if (const auto* imm = e.as<ir::IntImm>()) return {llvm_int(imm->value, e.dtype())};
    if (const auto* imm = e.as<ir::FloatImm>()) return {llvm_float(imm->value, e.dtype())};
    if (const Operand* known = known_.values.find(e.get())) return *known;
    Operand result = compute(e);
    known_.values.add(e.get(), result);
    return result;
  }

  Operand compute(const ir::Expr& e) {
    switch (e->kind) {
      case ir::ExprKind::var: refuse("variable " + e.as<ir::Var>()->name + " is used outside its scope");
      case ir::ExprKind::unary: {
        const Operand a = expr(e.as<ir::Unary>()->a);
        return {ops_.unary(e.as<ir::Unary>()->op, e.type(), a.text), a.fixed, a.of};
      }
      case ir::ExprKind::binary: {
        const auto& n = *e.as<ir::Binary>();
        const Operand a = expr(n.a), b = expr(n.b);
        const MadeOf of = made_of(n, a, b);
        return {ops_.binary(n.op, n.a.type(), a.text, b.text, of == MadeOf::anything), a.fixed && b.fixed, of};
      }
      case ir::ExprKind::fma: {
        const auto& n = *e.as<ir::Fma>();
        const Operand a = expr(n.a), b = expr(n.b), c = expr(n.c);
        return {ops_.fma(e.type(), a.text, b.text, c.text), a.fixed && b.fixed && c.fixed};
      }
      case ir::ExprKind::select: {
        const auto& n = *e.as<ir::Select>();
        const auto *then_load = n.then_value.as<ir::Load>(), *else_load = n.else_value.as<ir::Load>();
        if (then_load && else_load)
          if (const std::string at = either(n.condition, *then_load, *else_load, LlvmMemory::Bounds::inside);
              !at.empty())
            return {memory_.load_from(e.type(), at)};
        const Operand c = expr(n.condition), a = expr(n.then_value), b = expr(n.else_value);
        return {ops_.select(e.type(), c.text, a.text, b.text), c.fixed && a.fixed && b.fixed, std::max(a.of, b.of)};
      }
      case ir::ExprKind::cast: {
        const Operand a = expr(e.as<ir::Cast>()->a);
        return {ops_.cast(e.as<ir::Cast>()->a.type(), e.dtype(), a.text), a.fixed, a.of};
      }
      case ir::ExprKind::broadcast: {
        const Operand a = expr(e.as<ir::Broadcast>()->value);
        return {ops_.splat(a.text, e.type()), a.fixed, a.of};
      }
      case ir::ExprKind::ramp: {
        const Operand a = expr(e.as<ir::Ramp>()->base);
        return {ops_.ramp(a.text, e.type()), a.fixed, a.of};
      }
      case ir::ExprKind::load: return load(*e.as<ir::Load>());
      case ir::ExprKind::let: return let(*e.as<ir::Let>());
      case ir::ExprKind::uf_call: return call(*e.as<ir::UfCall>());
      case ir::ExprKind::reduce: refuse("a reduction that is not a loop yet");
      case ir::ExprKind::int_imm:
      case ir::ExprKind::float_imm: break;
    }
    refuse("an expression of an unknown kind");
  }

  Operand load(const ir::Load& n) {
    const ir::Expr index = index_of(n.buffer, n.indices);
    const Operand at = offset(index);
    return {memory_.load(n.buffer, n.type, index, at.text), at.fixed && is_invariant(n.buffer), made_of(n)};
  }

  /// The address that a choice of two loads reads from, so that one load is enough; nothing where that cannot be. What
  /// both indices add is added after the choice, so that all loads of two rows share one.
  std::string either(const ir::Expr& condition, const ir::Load& a, const ir::Load& b, LlvmMemory::Bounds bounds) {
    const auto* same = condition.as<ir::Broadcast>();
    const ir::Expr& test = same ? same->value : condition;
    const bool plain = a.buffer->scope != ir::Scope::local && b.buffer->scope != ir::Scope::local && a.type == b.type &&
                       a.indices.size() == 1 && b.indices.size() == 1 && test.lanes() == 1;
    if (!plain || a.indices[0]->kind == ir::ExprKind::broadcast) return {};
    const ir::Expr &at_a = LlvmMemory::offset_of(a.indices[0]), &at_b = LlvmMemory::offset_of(b.indices[0]);
    const auto is_gather = [](const ir::Expr& index) { return index.lanes() > 1 && !index.as<ir::Ramp>(); };
    if (is_gather(a.indices[0]) || is_gather(b.indices[0])) return {};
    Vector<ir::Expr> own_a = terms_of(at_a), own_b = terms_of(at_b), common;
    erase_where(own_a, [&](const ir::Expr& term) {
      const auto other =
          std::find_if(own_b.begin(), own_b.end(), [&](const ir::Expr& t) { return same_but_width(t, term); });
      if (other == own_b.end()) return false;
      common.push_back(term.dtype() == DType::i64 ? term : *other);
      own_b.erase(other);
      return true;
    });
    const std::string c = expr(test).text, row_a = memory_.address(a.buffer, sum(own_a), bounds),
                      row_b = memory_.address(b.buffer, sum(own_b), bounds);
    const std::string row = ops_.value("select i1 ", c, ", ptr ", row_a, ", ptr ", row_b);
    return memory_.address_from(a.type, row, sum(common), bounds);
  }

  static Vector<ir::Expr> terms_of(const ir::Expr& e) {
    const auto* add = e.as<ir::Binary>();
    if (!add || add->op != ir::BinaryOp::add) return {e};
    Vector<ir::Expr> terms = terms_of(add->a);
    append(terms, terms_of(add->b));
    return terms;
  }

  /// Whether two integers are the same but for the width that they are computed in.
  static bool same_but_width(const ir::Expr& a, const ir::Expr& b) {
    if (const auto* cast = a.as<ir::Cast>()) return same_but_width(cast->a, b);
    if (const auto* cast = b.as<ir::Cast>()) return same_but_width(a, cast->a);
    const auto *x = a.as<ir::Binary>(), *y = b.as<ir::Binary>();
    if (x && y) return x->op == y->op && same_but_width(x->a, y->a) && same_but_width(x->b, y->b);
    if (a.as<ir::IntImm>() && b.as<ir::IntImm>()) return ir::as_int(a) == ir::as_int(b);
    return ir::equal(a, b);
  }

  /// The terms' sum, of 64 bits.
  std::string sum(const Vector<ir::Expr>& terms) {
    std::string total;
    for (const ir::Expr& term : terms) {
      const std::string value = wide(term).text;
      total = total.empty() ? value : ops_.value("add nsw i64 ", total, ", ", value);
    }
    return total;
  }

  Operand let(const ir::Let& n) {
    const Operand value = expr(n.value);
    Operand result;
    scoped([&] {
      known_.values.add(n.var.get(), value);
      result = expr(n.body);
    });
    return {result.text, result.fixed && value.fixed, result.of};
  }

  Operand call(const ir::UfCall& n) {
    if (n.uf.kind == ir::UfKind::worker) return {"%worker"};
    if (n.uf.kind == ir::UfKind::num_workers) return {"%workers"};
    refuse("uninterpreted function " + n.uf.name + " has no meaning yet");
  }

  /// The only index of an access; none for a local buffer without dimensions.
  ir::Expr index_of(const ir::Buffer& buffer, const Vector<ir::Expr>& indices) {
    if (indices.size() == 1) return indices.front();
    if (indices.empty() && buffer->scope == ir::Scope::local && buffer->dims.empty()) return {};
    refuse("buffer " + buffer->name + " is not flat: it has " + std::to_string(indices.size()) + " indices");
  }

  Operand offset(const ir::Expr& index) {
    if (!index) return {};
    const ir::Expr& at = LlvmMemory::offset_of(index);
    return at.lanes() == 1 ? wide(at) : expr(at);
  }

  /// An integer as 64 bits. Sums and products are made of wide operands: of narrow ones LLVM widens the result, and
  /// where it has rearranged them first it no longer knows that it may widen the operands, so that a constant which
  /// addresses could hold costs two instructions in each iteration.
  Operand wide(const ir::Expr& e) {
    if (e.dtype() == DType::i64 || e.as<ir::IntImm>()) return expr(e);
    if (const Operand* known = known_.wide.find(e.get())) return *known;
    const auto* n = e.as<ir::Binary>();
    Operand result;
    if (n && (n->op == ir::BinaryOp::add || n->op == ir::BinaryOp::sub || n->op == ir::BinaryOp::mul)) {
      const Operand a = wide(n->a), b = wide(n->b);
      const MadeOf of = std::max(a.of, b.of);
      result = {ops_.binary(n->op, {DType::i64, 1}, a.text, b.text, of == MadeOf::anything), a.fixed && b.fixed, of};
    } else {
      const Operand narrow = expr(e);
      result = {ops_.cast(e.type(), DType::i64, narrow.text), narrow.fixed, narrow.of};
    }
    known_.wide.add(e.get(), result);
    return result;
  }

  [[noreturn]] static void refuse(const std::string& what) { throw Error(Code::internal, "LLVM text: " + what); }

  const ir::Program& program_;
  const LlvmTextOptions& options_;
  LlvmOps ops_;
  LlvmMemory memory_;
  Known known_;
  std::string block_ = "%entry";
  Vector<Function> functions_;
  std::map<std::string, std::size_t> function_numbers_;  // by all but the loads of pointers
  bool is_long_ = false, in_function_ = false, in_tile_ = false;
};

}  // namespace detail

/// The program as a function `void @symbol(ptr)`. Throws Code::internal if the program is not one of device level.
inline std::string llvm_text(const ir::Program& program, const LlvmTextOptions& options) {
  if (program.level != ir::Level::device || !program.body)
    throw Error(Code::internal, "LLVM text: program " + program.name + " is not at device level");
  if (!is_symbol(options.symbol))
    throw Error(Code::internal, "LLVM text: '" + sanitized(options.symbol) + "' cannot name a function");
  return detail::LlvmTextPrinter(program, options).text();
}

}  // namespace cortex::codegen
