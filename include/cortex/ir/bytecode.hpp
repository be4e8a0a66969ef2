// The ILIR as a list of instructions over registers of doubles: what the interpreter runs.
//
//   for i = 0:n:            loop  r1 = 0 to r0, else 6       # r1 counts, r2 holds the end
//     y[i] = 2.0 * x[i]     load  r3 = x[r1]
//                           mul   r4 = 2.0 * r3
//                           store y[r1] = r4
//                           next  r1, 1
//
// Variables are resolved to registers once, so that running needs no look-up. An expression that a statement shares by
// handle is evaluated once. `select` by a scalar, and `and` and `or` of scalars, evaluate only the side that they need,
// as the recursive API means them: what a guard keeps from being read is not read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/build.hpp"
#include "cortex/ir/program.hpp"
#include "cortex/ir/tile_product.hpp"

namespace cortex::ir::vm {

enum class Opcode : std::uint8_t {
  add,
  sub,
  mul,
  div,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  both,
  either,
  ldexp,
  pow,
  remainder,  // dst = a op b
  int_div,
  int_mod,
  neg,
  abs,
  exp,
  log,
  sqrt,
  tanh,
  sigmoid,
  relu,
  round,
  negate,
  floor,
  erf,
  sin,
  cos,
  log1p,
  expm1,
  exponent,
  significand,
  truncate,
  to_bf16,
  to_f16,
  to_tf32,
  to_bool,  // dst = op(a)
  fma,
  blend,  // dst = op(a, b, c)
  copy,
  broadcast,
  ramp,  // dst = a; scalar a in each lane; a + lane
  load,
  store,  // dst = access a; access a = dst, a scalar in each lane if b is set
  call,   // dst = call a
  jump,
  jump_unless,
  jump_if,  // to instruction c; on register a
  loop,
  share,
  next,    // registers dst, dst + 1 = 0, a or the worker's part of it in pieces of b, to instruction c if empty; dst +=
           // 1, to c if below the end
  forget,  // local buffer a holds nothing yet
  barrier,
  end,
};

/// Registers are numbered from 0; negative numbers are constants. A vector lies in `lanes` registers side by side.
struct Instruction {
  Opcode op;
  std::uint16_t lanes = 1;
  std::int32_t dst = 0, a = 0, b = 0, c = 0;
};

/// Where an element of a buffer is read or written, and in which statement: in the innermost that it is a part of.
struct Access {
  struct Index {
    std::int32_t at;  // register
    bool vector;      // one register a lane
  };
  int buffer;
  int element_lanes;  // of a local buffer of vectors
  Vector<Index> indices;
  Stmt stmt;
  bool stores = false;
};

struct Call {
  Uf uf;
  Vector<std::int32_t> args;
};

/// Local buffers lie side by side in one array of doubles.
struct Local {
  std::int64_t begin, size;
};

struct Bytecode {
  std::string program;
  Vector<Instruction> code;
  Vector<Access> accesses;
  Vector<Call> calls;
  Vector<Buffer> buffers;    // the program's, then the local ones
  Vector<Local> locals;      // of the local ones
  Vector<double> constants;  // constant k is register -1 - k; vectors are made of scalars at run time
  std::int64_t local_size = 0;
  int num_buffers = 0;  // of the program
  int num_registers = 0;
  const std::string& name_of(int buffer) const { return buffers[std::size_t(buffer)]->name; }
};

/// Turns a program into bytecode. Throws `Error{internal}` for what no level allows: unbound variables, wrong index
/// counts.
class Compiler {
 public:
  explicit Compiler(const Program& program) {
    out_.program = program.name;
    for (const Buffer& buffer : program.buffers) declare(buffer);
    out_.num_buffers = int(program.buffers.size());
    stmt(program.body);
    put({Opcode::end});
  }

  Bytecode take() { return std::move(out_); }

 private:
  using Register = std::int32_t;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::internal, "interpreter: program '" + out_.program + "': " + what);
  }

  // ---- emission ----

  int put(Instruction instruction) {
    out_.code.push_back(instruction);
    return int(out_.code.size()) - 1;
  }
  int here() const { return int(out_.code.size()); }
  void land(int jump) { out_.code[std::size_t(jump)].c = here(); }

  Register fresh(int lanes) {
    const Register result = top_;
    top_ += lanes;
    out_.num_registers = std::max(out_.num_registers, top_);
    return result;
  }

  Register result(Opcode op, int lanes, Register a, Register b = 0, Register c = 0) {
    const Register dst = fresh(lanes);
    put({op, std::uint16_t(lanes), dst, a, b, c});
    return dst;
  }

  Register constant(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    std::size_t at = 0;
    while (at < out_.constants.size() && std::bit_cast<std::uint64_t>(out_.constants[at]) != bits) ++at;
    if (at == out_.constants.size()) out_.constants.push_back(value);
    return -1 - Register(at);
  }

  int declare(const Buffer& buffer) {
    const int number = int(out_.buffers.size());
    if (!numbers_.emplace(buffer.id(), number).second) fail("buffer '" + buffer->name + "' is declared twice");
    out_.buffers.push_back(buffer);
    return number;
  }

  // ---- what is known: expressions evaluated already, and variables ----

  void know(const ExprNode* e, Register at) {
    known_.insert_or_assign(e, at);
    order_.push_back(e);
  }

  void bind(const Expr& var, Register at) {
    if (known_.contains(var.get())) fail("variable '" + var.as<Var>()->name + "' is bound inside its own scope");
    know(var.get(), at);
  }

  /// Forgets what `body` comes to know; its registers are free again if nothing of it is used later.
  template <class F>
  void scoped(bool frees_registers, F body) {
    const std::size_t mark = order_.size();
    const Register top = top_;
    body();
    while (order_.size() > mark) known_.erase(order_.back()), order_.pop_back();
    if (frees_registers) top_ = top;
  }

  // ---- statements ----

  void stmt(const Stmt& s) {
    stmt_ = s;
    switch (s->kind) {
      case StmtKind::block:
        for (const Stmt& child : s.as<Block>()->stmts) stmt(child);
        return;
      case StmtKind::barrier: return void(put({Opcode::barrier}));
      case StmtKind::mma:
      case StmtKind::join:
        throw Error(Code::internal, "the interpreter has no warps, whose threads hold parts of a tile");
      case StmtKind::tile_product: return stmt(definition(*s.as<TileProduct>()));
      case StmtKind::tile_rows:
      case StmtKind::prefetch: return;
      case StmtKind::for_: return scoped(true, [&] { loop(*s.as<For>()); });
      case StmtKind::store: return scoped(true, [&] { store(*s.as<Store>()); });
      case StmtKind::if_: return scoped(true, [&] { branch(*s.as<If>()); });
      case StmtKind::alloc: return scoped(true, [&] { alloc(*s.as<Alloc>()); });
      case StmtKind::let:
        return scoped(true, [&] {
          const auto& n = *s.as<LetStmt>();
          Register value = 0;
          scoped(false, [&] { value = expr(n.value); });  // loads in it hold only until the next store
          bind(n.var, value);
          stmt(n.body);
        });
    }
  }

  void loop(const For& n) {
    Register extent = 0;
    scoped(false, [&] { extent = expr(n.extent); });
    const Register var = fresh(2);
    const bool shared = n.loop == ForKind::parallel;
    const int head = put({shared ? Opcode::share : Opcode::loop, 1, var, extent, Register(n.piece)});
    bind(n.var, var);
    stmt(n.body);
    put({Opcode::next, 1, var, 0, 0, head + 1});
    land(head);
  }

  void store(const Store& n) {
    const int lanes = access_lanes(n.buffer, n.indices);
    const int place = access(n.buffer, n.indices);
    out_.accesses[std::size_t(place)].stores = true;
    const Register value = expr(n.value);
    if (n.value.lanes() != 1 && n.value.lanes() != lanes)
      fail("a store of another number of lanes to '" + n.buffer->name + "'");
    put({Opcode::store, std::uint16_t(lanes), value, place, n.value.lanes() == 1});
  }

  void branch(const If& n) {
    Register condition = 0;
    scoped(false, [&] { condition = expr(n.condition); });
    const int skip = put({Opcode::jump_unless, 1, 0, condition});
    scoped(true, [&] { stmt(n.then_body); });
    if (!n.else_body) return land(skip);
    const int leave = put({Opcode::jump});
    land(skip);
    scoped(true, [&] { stmt(n.else_body); });
    land(leave);
  }

  void alloc(const Alloc& n) {
    std::int64_t size = n.buffer->lanes;
    for (const Dim& dim : n.buffer->dims) size *= dim.extent();
    if (size < 1) fail("local buffer '" + n.buffer->name + "' has no constant size");
    const int number = declare(n.buffer);
    const std::int64_t begin = local_top_;
    out_.locals.push_back({begin, size});
    local_top_ += size;
    out_.local_size = std::max(out_.local_size, local_top_);
    put({Opcode::forget, 1, 0, number - out_.num_buffers});
    stmt(n.body);
    local_top_ = begin;
    numbers_.erase(n.buffer.id());
  }

  // ---- expressions ----

  Register expr(const Expr& e) {
    if (const auto* imm = e.as<IntImm>()) return constant(double(imm->value));
    if (const auto* imm = e.as<FloatImm>()) return constant(imm->value);
    const auto found = known_.find(e.get());
    if (found != known_.end()) return found->second;
    const Register at = compute(e);
    know(e.get(), at);
    return at;
  }

  Register compute(const Expr& e) {
    switch (e->kind) {
      case ExprKind::var: fail("variable '" + e.as<Var>()->name + "' is used outside its scope");
      case ExprKind::unary: return unary(*e.as<Unary>());
      case ExprKind::binary: return binary(*e.as<Binary>());
      case ExprKind::fma: {
        const auto& n = *e.as<Fma>();
        const Register a = expr(n.a), b = expr(n.b), c = expr(n.c);
        return result(Opcode::fma, e.lanes(), a, b, c);
      }
      case ExprKind::select: return select(*e.as<Select>());
      case ExprKind::cast: return cast(*e.as<Cast>());
      case ExprKind::load: {
        const auto& n = *e.as<Load>();
        if (access_lanes(n.buffer, n.indices) != e.lanes())
          fail("a load of another number of lanes from '" + n.buffer->name + "'");
        const int place = access(n.buffer, n.indices);
        return result(Opcode::load, e.lanes(), place);
      }
      case ExprKind::uf_call: {
        Call call{e.as<UfCall>()->uf, {}};
        for (const Expr& arg : e.as<UfCall>()->args) call.args.push_back(expr(arg));
        out_.calls.push_back(std::move(call));
        return result(Opcode::call, 1, int(out_.calls.size()) - 1);
      }
      case ExprKind::reduce: return reduce(*e.as<Reduce>());
      case ExprKind::let: {
        const auto& n = *e.as<Let>();
        const Register value = expr(n.value);
        Register body = 0;
        scoped(false, [&] {
          bind(n.var, value);
          body = expr(n.body);
        });
        return body;
      }
      case ExprKind::ramp: return result(Opcode::ramp, e.lanes(), expr(e.as<Ramp>()->base));
      case ExprKind::broadcast: return result(Opcode::broadcast, e.lanes(), expr(e.as<Broadcast>()->value));
      case ExprKind::int_imm:
      case ExprKind::float_imm: break;
    }
    fail("an expression of an unknown kind");
  }

  Register unary(const Unary& n) {
    constexpr Opcode opcodes[] = {Opcode::neg,   Opcode::abs,      Opcode::exp,        Opcode::log,   Opcode::sqrt,
                                  Opcode::tanh,  Opcode::sigmoid,  Opcode::relu,       Opcode::round, Opcode::negate,
                                  Opcode::floor, Opcode::erf,      Opcode::sin,        Opcode::cos,   Opcode::log1p,
                                  Opcode::expm1, Opcode::exponent, Opcode::significand};
    return result(opcodes[std::size_t(n.op)], n.type.lanes, expr(n.a));
  }

  static Opcode opcode(BinaryOp op, bool integers) {
    switch (op) {
      case BinaryOp::add: return Opcode::add;
      case BinaryOp::sub: return Opcode::sub;
      case BinaryOp::mul: return Opcode::mul;
      case BinaryOp::div: return integers ? Opcode::int_div : Opcode::div;
      case BinaryOp::ratio: return Opcode::div;
      case BinaryOp::mod: return integers ? Opcode::int_mod : Opcode::remainder;
      case BinaryOp::min: return Opcode::min;
      case BinaryOp::max: return Opcode::max;
      case BinaryOp::eq: return Opcode::eq;
      case BinaryOp::ne: return Opcode::ne;
      case BinaryOp::lt: return Opcode::lt;
      case BinaryOp::le: return Opcode::le;
      case BinaryOp::gt: return Opcode::gt;
      case BinaryOp::ge: return Opcode::ge;
      case BinaryOp::logical_and: return Opcode::both;
      case BinaryOp::logical_or: return Opcode::either;
      case BinaryOp::ldexp: return Opcode::ldexp;
      case BinaryOp::pow: return Opcode::pow;
    }
    throw Error(Code::internal, "interpreter: a binary operator of an unknown kind");
  }

  Register binary(const Binary& n) {
    const bool logic = n.op == BinaryOp::logical_and || n.op == BinaryOp::logical_or;
    if (logic && n.type.lanes == 1) return shortcut(n);
    const Register a = expr(n.a), b = expr(n.b);
    return result(opcode(n.op, is_int(n.a.dtype())), n.type.lanes, a, b);
  }

  Register shortcut(const Binary& n) {
    const Register dst = fresh(1), a = expr(n.a);
    put({Opcode::copy, 1, dst, a});
    const int skip = put({n.op == BinaryOp::logical_and ? Opcode::jump_unless : Opcode::jump_if, 1, 0, a});
    scoped(true, [&] { put({Opcode::copy, 1, dst, expr(n.b)}); });
    land(skip);
    return dst;
  }

  Register select(const Select& n) {
    const auto* same = n.condition.as<Broadcast>();
    const Expr& test = same ? same->value : n.condition;
    const Register condition = expr(test);
    if (test.lanes() > 1) {
      const Register a = expr(n.then_value), b = expr(n.else_value);
      return result(Opcode::blend, n.type.lanes, condition, a, b);
    }
    const auto lanes = std::uint16_t(n.type.lanes);
    const Register dst = fresh(n.type.lanes);
    const int skip = put({Opcode::jump_unless, 1, 0, condition});
    scoped(true, [&] { put({Opcode::copy, lanes, dst, expr(n.then_value)}); });
    const int leave = put({Opcode::jump});
    land(skip);
    scoped(true, [&] { put({Opcode::copy, lanes, dst, expr(n.else_value)}); });
    land(leave);
    return dst;
  }

  /// Arithmetic is in double at every type, so that only casts to integers and booleans change a value, and those that
  /// round what tensor cores multiply.
  Register cast(const Cast& n) {
    const Register a = expr(n.a);
    if (n.type.dtype == DType::bf16) return result(Opcode::to_bf16, n.type.lanes, a);
    if (n.type.dtype == DType::f16) return result(Opcode::to_f16, n.type.lanes, a);
    if (n.type.dtype == DType::tf32) return result(Opcode::to_tf32, n.type.lanes, a);
    if (n.type.dtype == DType::boolean) return result(Opcode::to_bool, n.type.lanes, a);
    return is_int(n.type.dtype) && is_float(n.a.dtype()) ? result(Opcode::truncate, n.type.lanes, a) : a;
  }

  Register reduce(const Reduce& n) {
    const Register acc = fresh(n.type.lanes), extent = expr(n.axis.extent), var = fresh(2);
    const auto lanes = std::uint16_t(n.type.lanes);
    put({Opcode::broadcast, lanes, acc, constant(identity(n.op))});
    const int head = put({Opcode::loop, 1, var, extent});
    scoped(true, [&] {
      bind(n.axis.var, var);
      constexpr Opcode steps[] = {Opcode::add, Opcode::mul, Opcode::max, Opcode::min};
      put({steps[std::size_t(n.op)], lanes, acc, acc, expr(n.body)});
    });
    put({Opcode::next, 1, var, 0, 0, head + 1});
    land(head);
    return acc;
  }

  // ---- buffers ----

  static int access_lanes(const Buffer& buffer, const Vector<Expr>& indices) {
    int lanes = buffer->lanes;
    for (const Expr& index : indices) lanes = std::max(lanes, index.lanes());
    return lanes;
  }

  int access(const Buffer& buffer, const Vector<Expr>& indices) {
    const auto number = numbers_.find(buffer.id());
    if (number == numbers_.end()) fail("buffer '" + buffer->name + "' is neither the program's nor allocated here");
    Access place{number->second, buffer->lanes, {}, stmt_};
    const int lanes = access_lanes(buffer, indices);
    for (const Expr& index : indices) {
      if (index.lanes() != 1 && (index.lanes() != lanes || buffer->lanes > 1))
        fail("indices of '" + buffer->name + "' have different numbers of lanes");
      place.indices.push_back({expr(index), index.lanes() > 1});
    }
    out_.accesses.push_back(std::move(place));
    return int(out_.accesses.size()) - 1;
  }

  Bytecode out_;
  Stmt stmt_;  // whose expressions are being compiled
  Register top_ = 0;
  std::int64_t local_top_ = 0;
  PointerMap<int> numbers_;
  PointerMap<Register> known_;
  Vector<const ExprNode*> order_;
};

}  // namespace cortex::ir::vm
