// Tensors that are read and written elsewhere: in another layout, in a part of them, in one of several copies.
#pragma once

#include <utility>

#include "cortex/base/pointer_map.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ir/mutate.hpp"

namespace cortex::ir {

/// What a load reads or a store writes; none without a buffer.
struct Place {
  Buffer buffer{};
  Vector<Expr> indices{};
};

/// `stmt` with each place that is read or written moved to `elsewhere(buffer, indices)`, a `Place`: it stays where that
/// is none. The indices are rewritten already; `others` are further rules of the same walk.
template <class Elsewhere, class... Fs>
Stmt with_places(const Stmt& stmt, const Elsewhere& elsewhere, Fs... others) {
  return mutate_with(
      stmt,
      [&](auto& self, const Load& load) -> Expr {
        const Expr inner = self.children(load);
        Place to = elsewhere(load.buffer, inner.template as<Load>()->indices);
        return to.buffer ? Load::make(to.buffer, std::move(to.indices)) : inner;
      },
      [&](auto& self, const Store& store) -> Stmt {
        const Stmt inner = self.children(store);
        const auto* s = inner.template as<Store>();
        Place to = elsewhere(store.buffer, s->indices);
        return to.buffer ? Store::make(to.buffer, std::move(to.indices), s->value) : inner;
      },
      others...);
}

/// `stmt` with `home(buffer)` in place of each buffer that is read or written.
template <class Home, class... Fs>
Stmt with_buffers(const Stmt& stmt, const Home& home, Fs... others) {
  return with_places(
      stmt,
      [&](const Buffer& buffer, const Vector<Expr>& indices) -> Place {
        Buffer to = home(buffer);
        if (to == buffer) return {};
        return Place{std::move(to), indices};
      },
      [&](auto&, const Join& join) -> Stmt {
        const Buffer sum = home(join.sum), terms = home(join.terms);
        return sum == join.sum && terms == join.terms ? handle_of(join) : Join::make(sum, terms, join.threads);
      },
      others...);
}

inline Stmt with_buffers(const Stmt& stmt, const PointerMap<Buffer>& homes) {
  return with_buffers(stmt, [&](const Buffer& buffer) {
    const auto home = homes.find(buffer.id());
    return home == homes.end() ? buffer : home->second;
  });
}

inline Stmt with_buffer(const Stmt& stmt, const Buffer& from, const Buffer& to) {
  return with_buffers(stmt, [&](const Buffer& buffer) { return buffer == from ? to : buffer; });
}

}  // namespace cortex::ir
