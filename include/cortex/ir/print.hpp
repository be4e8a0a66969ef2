// The IR as text, in the notation of the paper's Listing 2: one statement a line, loops half-open, the named dimension
// of a loop at the end of its line.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/program.hpp"

namespace cortex::ir {

/// The operator's sign, or the name of its function.
inline std::string_view spelling(BinaryOp op) {
  constexpr std::string_view names[] = {
      "+", "-", "*", "/", "%", "min", "max", "==", "!=", "<", "<=", ">", ">=", "and", "or", "ldexp", "ratio", "pow"};
  return names[std::size_t(op)];
}

inline std::string_view spelling(UnaryOp op) {
  constexpr std::string_view names[] = {"-",       "abs",  "exp",   "log",   "sqrt",     "tanh",
                                        "sigmoid", "relu", "round", "not",   "floor",    "erf",
                                        "sin",     "cos",  "log1p", "expm1", "exponent", "significand"};
  return names[std::size_t(op)];
}

inline std::string_view spelling(ReduceOp op) {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min"};
  return names[std::size_t(op)];
}

namespace detail {

/// A text that grows. Streams of the standard library would take longer to include than all of this file.
class Text {
 public:
  Text& operator<<(std::string_view part) {
    text_ += part;
    return *this;
  }
  Text& operator<<(char c) {
    text_ += c;
    return *this;
  }
  Text& operator<<(std::integral auto number) {
    text_ += std::to_string(number);
    return *this;
  }
  std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

}  // namespace detail

/// Prints expressions and statements. Variables and buffers of one name are told apart by a number from the second
/// on, in order of first appearance, so the text is the same each time. What two statements bind is another in each.
class Printer {
 public:
  std::string text(const Expr& e) {
    expr(e, 0);
    return take();
  }

  std::string text(const Stmt& s, int indent = 0) {
    stmt(s, indent);
    return take();
  }

  std::string text(const Program& program) {
    out_ << "program " << program.name << "\n";
    for (const Buffer& buffer : program.buffers) {
      out_ << "  ";
      declaration(buffer);
      out_ << "\n";
    }
    stmt(program.body, 0);
    return take();
  }

 private:
  std::string take() { return out_.take(); }

  const std::string& unique(const void* id, const std::string& name) {
    auto [it, fresh] = names_.emplace(id, {});
    if (fresh) {
      auto same = std::find_if(seen_.begin(), seen_.end(), [&](const auto& seen) { return seen.first == name; });
      if (same == seen_.end()) same = seen_.insert(same, {name, 0});
      const int count = ++same->second;
      it->second = count == 1 ? name : name + "." + std::to_string(count);
    }
    return it->second;
  }

  /// The name of what a statement binds here.
  const std::string& bound(const void* id, const std::string& name) {
    if (!bound_.insert(id)) names_.erase(id);
    return unique(id, name);
  }
  const std::string& bound(const Expr& var) { return bound(var.get(), var.as<Var>()->name); }

  void declaration(const Buffer& buffer) {
    out_ << unique(buffer.id(), buffer->name) << "[";
    for (std::size_t d = 0; d < buffer->dims.size(); ++d) {
      out_ << (d ? "," : "") << buffer->dims[d].name();
      if (buffer->dims[d].extent() > 0) out_ << "=" << buffer->dims[d].extent();
    }
    out_ << "] " << to_string(buffer->dtype);
    constexpr std::string_view roles[] = {"weight", "field", "state", "temp", "index"};
    out_ << " " << roles[std::size_t(buffer->role)];
    if (buffer->scope == Scope::worker) out_ << " per worker";
    if (buffer->scope == Scope::chip) out_ << " on chip";
    if (buffer->scope == Scope::spread) out_ << " on chips, " << buffer->share << " elements each";
    if (buffer->scope == Scope::recent) out_ << " of recent rows on chip";
    if (buffer->scope == Scope::mirrored) out_ << " of recent rows on chip of all";
    if (buffer->transposed) out_ << " transposed";
    if (buffer->packed_from) out_ << " packed from " << buffer->packed_from->name;
    if (buffer->stored_in) out_ << " in " << unique(buffer->stored_in.id(), buffer->stored_in->name);
  }

  void list(const Vector<Expr>& items, char open, char close) {
    out_ << open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out_ << ",";
      expr(items[i], 0);
    }
    out_ << close;
  }

  void function(std::string_view name, std::initializer_list<Expr> args) {
    out_ << name;
    list(Vector<Expr>(args), '(', ')');
  }

  static int precedence(BinaryOp op) {
    switch (op) {
      case BinaryOp::logical_or: return 1;
      case BinaryOp::logical_and: return 2;
      case BinaryOp::add:
      case BinaryOp::sub: return 4;
      case BinaryOp::mul:
      case BinaryOp::div:
      case BinaryOp::mod: return 5;
      default: return 3;
    }
  }

  void expr(const Expr& e, int outer) {
    switch (e->kind) {
      case ExprKind::int_imm: {
        const auto value = e.as<IntImm>()->value;
        if (e.dtype() == DType::boolean)
          out_ << (value ? "true" : "false");
        else
          out_ << value;
        break;
      }
      case ExprKind::float_imm: number(e.as<FloatImm>()->value); break;
      case ExprKind::var: out_ << unique(e.get(), e.as<Var>()->name); break;
      case ExprKind::unary: unary(*e.as<Unary>()); break;
      case ExprKind::binary: binary(*e.as<Binary>(), outer); break;
      case ExprKind::fma: function("fma", {e.as<Fma>()->a, e.as<Fma>()->b, e.as<Fma>()->c}); break;
      case ExprKind::select:
        function("select", {e.as<Select>()->condition, e.as<Select>()->then_value, e.as<Select>()->else_value});
        break;
      case ExprKind::cast: function(to_string(e.dtype()), {e.as<Cast>()->a}); break;
      case ExprKind::load:
        out_ << unique(e.as<Load>()->buffer.id(), e.as<Load>()->buffer->name);
        if (!e.as<Load>()->indices.empty()) list(e.as<Load>()->indices, '[', ']');
        break;
      case ExprKind::uf_call:
        out_ << e.as<UfCall>()->uf.name;
        if (!e.as<UfCall>()->args.empty()) list(e.as<UfCall>()->args, '(', ')');
        break;
      case ExprKind::reduce: reduce(*e.as<Reduce>()); break;
      case ExprKind::let: let(*e.as<Let>()); break;
      case ExprKind::ramp:
        out_ << "ramp(";
        expr(e.as<Ramp>()->base, 0);
        out_ << "," << e.lanes() << ")";
        break;
      case ExprKind::broadcast:
        out_ << "x" << e.lanes() << "(";
        expr(e.as<Broadcast>()->value, 0);
        out_ << ")";
        break;
    }
  }

  void number(double value) {
    char digits[32];  // as "%.9g", but with a point in any locale
    const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 9).ptr;
    const std::string_view text(digits, std::size_t(end - digits));
    out_ << text;
    if (text.find_first_of(".en") == std::string_view::npos) out_ << ".0";
  }

  void unary(const Unary& n) {
    if (n.op == UnaryOp::neg) {
      out_ << "-";
      expr(n.a, 6);
      return;
    }
    out_ << spelling(n.op) << (n.exact ? "_exact" : "") << "(";
    expr(n.a, 0);
    out_ << ")";
  }

  void binary(const Binary& n, int outer) {
    if (n.op == BinaryOp::min || n.op == BinaryOp::max || n.op >= BinaryOp::ldexp)
      return function(spelling(n.op), {n.a, n.b});
    const int own = precedence(n.op);
    if (own < outer) out_ << "(";
    expr(n.a, own);
    out_ << " " << spelling(n.op) << " ";
    expr(n.b, own + 1);
    if (own < outer) out_ << ")";
  }

  void reduce(const Reduce& n) {
    out_ << spelling(n.op) << "(" << unique(n.axis.var.get(), n.axis.var.as<Var>()->name) << " = 0:";
    expr(n.axis.extent, 0);
    out_ << ", ";
    expr(n.body, 0);
    out_ << ")";
  }

  void let(const Let& n) {
    out_ << "(let " << unique(n.var.get(), n.var.as<Var>()->name) << " = ";
    expr(n.value, 0);
    out_ << " in ";
    expr(n.body, 0);
    out_ << ")";
  }

  void stmt(const Stmt& s, int indent) {
    const std::string pad(std::size_t(indent) * 2, ' ');
    switch (s->kind) {
      case StmtKind::for_: loop(*s.as<For>(), pad, indent); break;
      case StmtKind::let: {
        const auto& n = *s.as<LetStmt>();
        out_ << pad << bound(n.var) << " = ";
        expr(n.value, 0);
        out_ << "\n";
        stmt(n.body, indent);
        break;
      }
      case StmtKind::store: {
        const auto& n = *s.as<Store>();
        out_ << pad << unique(n.buffer.id(), n.buffer->name);
        if (!n.indices.empty()) list(n.indices, '[', ']');
        out_ << " = ";
        expr(n.value, 0);
        out_ << "\n";
        break;
      }
      case StmtKind::if_: branch(*s.as<If>(), pad, indent, "if "); break;
      case StmtKind::block:
        for (const Stmt& child : s.as<Block>()->stmts) stmt(child, indent);
        break;
      case StmtKind::alloc: {
        out_ << pad << "local ";
        bound(s.as<Alloc>()->buffer.id(), s.as<Alloc>()->buffer->name);
        declaration(s.as<Alloc>()->buffer);
        if (s.as<Alloc>()->buffer->lanes > 1) out_ << " x" << s.as<Alloc>()->buffer->lanes;
        out_ << "\n";
        stmt(s.as<Alloc>()->body, indent);
        break;
      }
      case StmtKind::mma: {
        const auto& n = *s.as<Mma>();
        out_ << pad << unique(n.sum.id(), n.sum->name) << " += mma(";
        expr(n.weights, 0);
        for (const Expr& x : n.x) out_ << ",", expr(x, 0);
        out_ << ")\n";
        break;
      }
      case StmtKind::tile_rows:
        out_ << pad << "tiles of ";
        expr(s.as<TileRows>()->rows, 0);
        out_ << " rows\n";
        break;
      case StmtKind::tile_product: tile_product(*s.as<TileProduct>(), pad); break;
      case StmtKind::join: {
        const auto& n = *s.as<Join>();
        out_ << pad << unique(n.sum.id(), n.sum->name) << " = join(" << unique(n.terms.id(), n.terms->name) << " of "
             << n.threads << " threads)\n";
        break;
      }
      case StmtKind::barrier: {
        constexpr std::string_view among[] = {"barrier\n", "barrier of threads\n", "barrier of a warp\n"};
        out_ << pad << among[std::size_t(s.as<Barrier>()->among)];
        break;
      }
      case StmtKind::prefetch:
        out_ << pad << "prefetch ";
        expr(s.as<Prefetch>()->place, 0);
        out_ << "\n";
        break;
    }
  }

  void tile_product(const TileProduct& n, const std::string& pad) {
    out_ << pad << unique(n.sums.id(), n.sums->name) << (n.shape.more ? " += " : " = ") << "tiles(";
    for (const Expr& weights : n.weights) expr(weights, 0), out_ << ",";
    expr(n.x, 0);
    out_ << "; " << n.shape.steps << " x " << TileProduct::depth << " of ";
    expr(n.rows, 0);
    out_ << " rows)\n";
  }

  void branch(const If& n, const std::string& pad, int indent, const char* keyword) {
    out_ << pad << keyword;
    expr(n.condition, 0);
    out_ << ":\n";
    stmt(n.then_body, indent + 1);
    if (!n.else_body) return;
    if (const auto* next = n.else_body.as<If>()) return branch(*next, pad, indent, "elif ");
    out_ << pad << "else:\n";
    stmt(n.else_body, indent + 1);
  }

  void loop(const For& n, const std::string& pad, int indent) {
    constexpr std::string_view kinds[] = {"for ",          "parallel for ", "vectorized for ",
                                          "unrolled for ", "threads for ",  "parts for "};
    out_ << pad << kinds[std::size_t(n.loop)] << bound(n.var) << " = 0:";
    expr(n.extent, 0);
    out_ << ":  # " << n.dim.name();
    if (n.piece > 1) out_ << " in pieces of " << n.piece;
    out_ << "\n";
    stmt(n.body, indent + 1);
  }

  detail::Text out_;
  PointerMap<std::string> names_;
  PointerSet bound_;
  Vector<std::pair<std::string, int>> seen_;  // how many bear a name
};

inline std::string print(const Expr& e) { return Printer().text(e); }
inline std::string print(const Stmt& s) { return Printer().text(s); }
inline std::string print(const Program& p) { return Printer().text(p); }

}  // namespace cortex::ir
