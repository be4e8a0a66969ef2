// Reductions over dimensions and over the children of a node (paper section 3, R3 and R4).
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "cortex/dsl/node.hpp"

namespace cortex::dsl {

namespace detail {

/// The sentences of what is no body of a reduction or an operator.
template <class T>
constexpr bool valid_body() {
  static_assert(!std::is_void_v<T>, "the lambda gives no value: is a return missing?");
  static_assert(valid_scalar<T>());
  static_assert(is_data<T> || is_tensor<T> || is_node<T> || is_children<T> || std::is_void_v<T>,
                "the lambda gives computed data: make it of a number or of an integer of the structure with "
                "cast<float>(...) or cast<double>(...)");
  return true;
}

inline ir::Expr reduced(ir::ReduceOp op, const ir::Expr& var, const Dim& dim, ir::Expr extent, const ir::Expr& body) {
  return ir::Reduce::make(op, {var, dim, std::move(extent)}, number(body));
}

/// The variable of a reduction over `dim`, whose extent must be known.
inline ir::Expr axis(const Dim& dim) {
  if (dim.kind() == DimKind::open) fail("a reduction over '" + dim.name() + "', which has no extent: give the Dim one");
  if (dim.kind() != DimKind::dense) fail("a reduction over '" + dim.name() + "', a dimension of the compiler's own");
  if (dim.extent() < 1)
    fail("dimension '" + dim.name() + "' has extent " + std::to_string(dim.extent()) + "; the least is 1");
  if (dim.extent() > INT32_MAX)
    fail("a reduction over '" + dim.name() + "', whose extent is " + std::to_string(dim.extent()) +
         "; the most is 2147483647");
  return ir::Var::make("r");
}

template <class F>
auto over(ir::ReduceOp op, const Dim& dim, F&& body) {
  constexpr bool fits = std::is_invocable_v<F&, Structural<>>;
  static_assert(fits, "the lambda of a reduction takes one index variable per dimension");
  if constexpr (fits) {
    using Result = std::remove_cvref_t<std::invoke_result_t<F&, Structural<>>>;
    static_assert(valid_body<Result>());
    const ir::Expr var = axis(dim);
    if constexpr (is_data<Result>)
      return Result{reduced(op, var, dim, ir::imm(dim.extent()), body(Structural<>{var}).expr)};
    else
      return Data<>{};
  } else {
    return Data<>{};
  }
}

template <class F>
auto over(ir::ReduceOp op, const Dim& a, const Dim& b, F&& body) {
  return over(op, a, [&](auto i) { return over(op, b, [&](auto j) { return body(i, j); }); });
}
template <class F>
auto over(ir::ReduceOp op, const Dim& a, const Dim& b, const Dim& c, F&& body) {
  return over(op, a, [&](auto i) {
    return over(op, b, [&](auto j) { return over(op, c, [&](auto k) { return body(i, j, k); }); });
  });
}

/// Over children: the lambda takes the child, or the child and its position.
template <class Owner, class A, class Set, class F>
auto over(ir::ReduceOp op, const ChildRange<Owner, A, Set>& children, F&& body) {
  static_assert(
      Owner::steps == 0,
      "(P.2) recursive calls come first: a reduction over the children of another node; a node reads its own alone, and "
      "of a child or a parent what that has made a state of");
  using Child = typename ChildRange<Owner, A, Set>::Child;
  const ir::Expr var = ir::Var::make("k");
  const Child child(children.child(var), children.state());
  const auto reduce = [&](const auto&... position) {
    using Result = std::remove_cvref_t<std::invoke_result_t<F&, Child, decltype(position)...>>;
    static_assert(valid_body<Result>());
    if constexpr (is_data<Result>)
      return Data<Join<Set, SetOf<Result>>>{
          reduced(op, var, dims::child, children.count(), body(child, position...).expr)};
    else
      return Data<>{};
  };
  constexpr bool with_position = std::is_invocable_v<F&, Child, Structural<Set>>;
  constexpr bool fits = with_position || std::is_invocable_v<F&, Child>;
  static_assert(fits, "the lambda of a reduction over children takes the child, or the child and its position");
  if constexpr (with_position)
    return reduce(Structural<Set>{var});
  else if constexpr (fits)
    return reduce();
  else
    return Data<>{};
}

/// A node stands where a range is expected: refused in words.
template <class Ref, class F>
requires is_node<Ref> Data<> over(ir::ReduceOp, const Ref&, F&&) {
  static_assert(!is_node<Ref>,
                "a reduction runs over a dimension or over a container of children, such as kids(n), not over a node; "
                "the state of one child is read without one, as in h(left(n), i)");
  return {};
}

template <class T>
inline constexpr bool is_range = std::is_same_v<T, Dim> || is_children<T> || is_node<T>;

}  // namespace detail

/// The sum over one to three dimensions, or over the children of a node, of what the lambda gives:
/// `sum(H, [&](auto j) { return U(i, j) * s(n, j); })`, `sum(kids(n), [&](auto k) { return h(k, i); })`,
/// `sum(kids(n), [&](auto k, auto position) { ... })`. Over no children it is 0. Data; a sum of products is accumulated
/// with fused multiply-adds. Throws `Error{invalid_model}` for a dimension without extent.
template <class Range, class... Rest>
requires detail::is_range<Range>
auto sum(const Range& range, Rest&&... rest) {
  return detail::over(ir::ReduceOp::sum, range, std::forward<Rest>(rest)...);
}

/// The product, as `sum`; over no children it is 1.
template <class Range, class... Rest>
requires detail::is_range<Range>
auto product(const Range& range, Rest&&... rest) {
  return detail::over(ir::ReduceOp::prod, range, std::forward<Rest>(rest)...);
}

/// The greatest value, as `sum`; over no children it is minus infinity. NaN if any value is NaN.
template <class Range, class... Rest>
requires detail::is_range<Range>
auto maximum(const Range& range, Rest&&... rest) {
  return detail::over(ir::ReduceOp::max, range, std::forward<Rest>(rest)...);
}

/// The least value, as `sum`; over no children it is infinity. NaN if any value is NaN.
template <class Range, class... Rest>
requires detail::is_range<Range>
auto minimum(const Range& range, Rest&&... rest) {
  return detail::over(ir::ReduceOp::min, range, std::forward<Rest>(rest)...);
}

/// The mean over the children of a node, as `sum`; over no children it is 0.
template <class Range, class F>
requires is_children<Range>
auto mean(const Range& range, F&& body) { return sum(range, std::forward<F>(body)) / max(num_children(range), 1); }

/// The mean over a dimension: `mean(H, [&](auto j) { return h(n, j); })`.
template <class F>
auto mean(const Dim& dim, F&& body) {
  return sum(dim, std::forward<F>(body)) / dim.extent();
}

}  // namespace cortex::dsl

namespace cortex {
using dsl::mean, dsl::maximum, dsl::minimum, dsl::product, dsl::sum;
}  // namespace cortex
