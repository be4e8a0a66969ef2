// Loops and buffers by name: how a schedule says which of them it means. A program's names are those that its text has,
// and after each step of a schedule each is there once.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/mutate.hpp"
#include "cortex/ir/places.hpp"
#include "cortex/ir/print.hpp"

namespace cortex::schedule {

/// What a step of a schedule throws where it cannot do what it is asked; whoever runs the step says which it was.
[[noreturn]] inline void refuse(const std::string& why) { throw Error(Code::invalid_schedule, why); }

/// Copies of statements, in which all that is bound inside (variables, local buffers) is bound anew, under names with
/// `suffix`.
inline ir::Stmt copy_of(const ir::Stmt& stmt, const std::string& suffix) {
  PointerMap<ir::Expr> vars;
  PointerMap<ir::Buffer> buffers;
  const auto renamed = [&](const ir::Expr& var) {
    const ir::Expr fresh = ir::Var::make(var.as<ir::Var>()->name + suffix, var.type());
    vars.insert_or_assign(var.get(), fresh);
    return fresh;
  };
  const auto buffer = [&](const ir::Buffer& b) {
    const auto found = buffers.find(b.id());
    return found == buffers.end() ? b : found->second;
  };
  return ir::with_buffers(
      stmt, buffer,
      [&](auto&, const ir::Var& v) -> ir::Expr {
        const auto found = vars.find(&v);
        return found == vars.end() ? handle_of(v) : found->second;
      },
      [&](auto& self, const ir::For& loop) -> ir::Stmt {
        const ir::Expr extent = self(loop.extent), var = renamed(loop.var);
        return ir::For::make(var, loop.dim, extent, loop.loop, self(loop.body), loop.piece);
      },
      [&](auto& self, const ir::LetStmt& let) -> ir::Stmt {
        const ir::Expr value = self(let.value), var = renamed(let.var);
        return ir::LetStmt::make(var, value, self(let.body));
      },
      [&](auto& self, const ir::Alloc& alloc) -> ir::Stmt {
        ir::BufferInfo info = *alloc.buffer;
        info.name += suffix;
        buffers.insert_or_assign(alloc.buffer.id(), ir::Buffer(std::move(info)));
        return ir::Alloc::make(buffer(alloc.buffer), self(alloc.body));
      });
}

namespace detail {

/// Gives each variable and temporary of a program a name of its own: the first of a name keeps it, the second becomes
/// `i.2`, as the printer writes it.
class Naming {
 public:
  ir::Stmt run(const ir::Stmt& body) {
    // What a schedule cannot rename has its name first.
    ir::visit_with(
        body, [&](const ir::Load& load) { claim(load.buffer); }, [&](const ir::Store& store) { claim(store.buffer); });
    // Then the tensors of the whole program, as they are listed above its text.
    const auto list = [&](const ir::Buffer& buffer) {
      if (buffer->scope != ir::Scope::local) named(buffer);
    };
    ir::visit_with(
        body, [&](const ir::Load& load) { list(load.buffer); }, [&](const ir::Store& store) { list(store.buffer); });
    return stmt(body);
  }

 private:
  static bool is_temporary(const ir::Buffer& buffer) { return buffer->role == ir::Role::temp; }
  void claim(const ir::Buffer& buffer) {
    const bool known = contains(taken_, buffer->name);
    if (!is_temporary(buffer) && !known) taken_.push_back(buffer->name);
  }

  std::string unique(const std::string& name) {
    const auto free = [&](const std::string& candidate) { return !contains(taken_, candidate); };
    std::string result = name;
    for (int n = 2; !free(result); ++n) result = name + "." + std::to_string(n);
    taken_.push_back(result);
    return result;
  }

  ir::Buffer named(const ir::Buffer& buffer) {
    if (!is_temporary(buffer)) return buffer;
    const auto found = buffers_.find(buffer.id());
    if (found != buffers_.end()) return found->second;
    const std::string name = unique(buffer->name);
    ir::BufferInfo info = *buffer;
    info.name = name;
    return buffers_.emplace(buffer.id(), name == buffer->name ? buffer : ir::Buffer(std::move(info))).first->second;
  }

  /// A variable that two loops bind is another in each.
  ir::Expr bound(const ir::Expr& var) {
    const std::string name = unique(var.as<ir::Var>()->name);
    const bool first = !vars_.contains(var.get());
    const ir::Expr result = first && name == var.as<ir::Var>()->name ? var : ir::Var::make(name, var.type());
    vars_.insert_or_assign(var.get(), result);
    return result;
  }

  ir::Stmt stmt(const ir::Stmt& body) {
    return ir::with_buffers(
        body, [&](const ir::Buffer& buffer) { return named(buffer); },
        [&](auto&, const ir::Var& v) -> ir::Expr {
          const auto found = vars_.find(&v);
          return found == vars_.end() ? handle_of(v) : found->second;
        },
        [&](auto& self, const ir::For& loop) -> ir::Stmt {
          const ir::Expr var = bound(loop.var), extent = self(loop.extent);
          const ir::Stmt inner = self(loop.body);
          if (extent.same_as(loop.extent) && var.same_as(loop.var) && inner.same_as(loop.body)) return handle_of(loop);
          return ir::For::make(var, loop.dim, extent, loop.loop, inner, loop.piece);
        },
        [&](auto& self, const ir::LetStmt& let) -> ir::Stmt {
          const ir::Expr value = self(let.value), var = bound(let.var);
          const ir::Stmt inner = self(let.body);
          if (value.same_as(let.value) && var.same_as(let.var) && inner.same_as(let.body)) return handle_of(let);
          return ir::LetStmt::make(var, value, inner);
        },
        [&](auto& self, const ir::Let& let) -> ir::Expr {
          const ir::Expr value = self(let.value), var = bound(let.var), inner = self(let.body);
          if (value.same_as(let.value) && var.same_as(let.var) && inner.same_as(let.body)) return handle_of(let);
          return ir::Let::make(var, value, inner);
        },
        [&](auto& self, const ir::Alloc& alloc) -> ir::Stmt {
          buffers_.erase(alloc.buffer.id());  // one that another statement allocates too
          const ir::Buffer buffer = named(alloc.buffer);
          const ir::Stmt inner = self(alloc.body);
          if (buffer == alloc.buffer && inner.same_as(alloc.body)) return handle_of(alloc);
          return ir::Alloc::make(buffer, inner);
        });
  }

  Vector<std::string> taken_;
  PointerMap<ir::Expr> vars_;
  PointerMap<ir::Buffer> buffers_;
};

}  // namespace detail

/// The program with each loop, variable and temporary under a name of its own:
///
///   for i: a[i] = ..; for i: b[i] = a[i]   ->   for i: a[i] = ..; for i.2: b[i.2] = a[i.2]
inline ir::Stmt with_unique_names(const ir::Stmt& body) { return detail::Naming().run(body); }

inline const std::string& name_of(const ir::For& loop) { return loop.var.as<ir::Var>()->name; }

/// The loop `name`. A refusal lists those that there are.
inline const ir::For& loop_named(const ir::Stmt& body, std::string_view name) {
  const ir::For* found = nullptr;
  std::string others;
  ir::visit_with(body, [&](const ir::For& loop) {
    if (name_of(loop) == name) found = &loop;
    others += (others.empty() ? "" : ", ") + name_of(loop);
  });
  if (!found) refuse("there is no loop '" + std::string(name) + "'; the loops are " + others);
  return *found;
}

/// The buffer `name`.
inline ir::Buffer buffer_named(const ir::Stmt& body, std::string_view name) {
  ir::Buffer found;
  Vector<std::string> others;
  const auto look = [&](const ir::Buffer& buffer) {
    if (buffer->name == name) found = buffer;
    if (!contains(others, buffer->name)) others.push_back(buffer->name);
  };
  ir::visit_with(
      body, [&](const ir::Load& load) { look(load.buffer); }, [&](const ir::Store& store) { look(store.buffer); });
  if (found) return found;
  std::string list;
  for (const std::string& other : others) list += (list.empty() ? "" : ", ") + other;
  refuse("there is no tensor '" + std::string(name) + "'; the tensors are " + list);
}

/// `body` with `replacement` in place of `loop`.
inline ir::Stmt with_loop(const ir::Stmt& body, const ir::For& loop, const ir::Stmt& replacement) {
  return ir::mutate_with(body, [&](auto& self, const ir::For& each) -> ir::Stmt {
    return &each == &loop ? replacement : self.children(each);
  });
}

}  // namespace cortex::schedule
