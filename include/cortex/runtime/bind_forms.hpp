// The forms in which users have the values of a weight, for models on CPUs and on GPUs.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/names.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/runtime/weights.hpp"

namespace cortex::runtime {

/// Numbers side by side in memory: a std::vector, a std::array, a span.
template <class T>
concept WeightRange = requires(const T& values) {
  std::span(values);
  requires std::is_arithmetic_v<typename decltype(std::span(values))::value_type>;
};

template <class T>
struct AreRows : std::false_type {};
template <std::ranges::forward_range T>
struct AreRows<T>
    : std::bool_constant<WeightRange<std::ranges::range_value_t<T>> || AreRows<std::ranges::range_value_t<T>>::value> {
};
/// A tensor as rows of their own, such as a vector of vectors, of any rank from 2.
template <class T>
concept WeightRows = !WeightRange<T> && AreRows<const T>::value;

/// The extents of a weight in a container of integers.
template <class T>
concept ShapeRange = std::ranges::forward_range<const T> && std::integral<std::ranges::range_value_t<const T>>;

namespace detail {

/// Rows of rows, one after the other in one array.
template <class T>
class FlatRows {
 public:
  /// `weight` is what messages call the weight.
  template <class Rows>
  FlatRows(const std::string& weight, const Rows& rows) : weight_(weight) {
    add(rows, 0);
  }

  const Vector<T>& values() const { return values_; }
  std::span<const std::int64_t> shape() const { return shape_; }

 private:
  template <class Rows>
  void add(const Rows& rows, std::size_t depth) {
    if constexpr (WeightRange<Rows>) {
      const std::span row(rows);
      expect(depth, row.size());
      for (const T& value : row) values_.push_back(value);
    } else {
      expect(depth, std::size_t(std::ranges::distance(rows)));
      for (const auto& row : rows) add(row, depth + 1);
    }
  }
  void expect(std::size_t depth, std::size_t size) {
    if (depth == shape_.size()) shape_.push_back(std::int64_t(size));
    if (shape_[depth] != std::int64_t(size))
      throw Error(Code::invalid_weights, weight_ + " was given rows of " + std::to_string(shape_[depth]) + " and of " +
                                             std::to_string(size) + " elements; all have to be of one length");
  }

  const std::string& weight_;
  Vector<T> values_;
  Vector<std::int64_t> shape_;
};

template <class Rows>
auto element_of(const Rows& rows) {
  if constexpr (WeightRange<Rows>)
    return typename decltype(std::span(rows))::value_type();
  else
    return element_of(*std::ranges::begin(rows));
}

}  // namespace detail

/// `bind` and `try_bind` of `Model`, which has `bind_values(name, dtype, values, count, shape)` for them, where `name`
/// is text, and `graph()`.
template <class Model>
class BindForms {
 public:
  /// Binds the weight called `name`, which is copied: `model.bind("Emb", values)`, with the shape to be sure of it,
  /// `model.bind("Emb", values, {10000, 256})`. Without a shape an open dimension has as many elements as there are
  /// values for. Values are of the input's element type, row-major: a container of them, a pointer and their number, in braces, or
  /// rows, as in a vector of vectors. `name` may be the input's handle. Throws `Error{invalid_weights}` for an unknown
  /// name, a handle of another model (a name goes with any), for another type or shape, and for rows that differ in
  /// length. Calls in flight keep the weights that they started with; later ones have the new. Once all weights are
  /// there, binding one that tables follow from makes these anew (`Schedule::tabulate`), before it is published. On
  /// GPUs, devices get the weights with the next call.
  template <class Name, class Values>
  Model& bind(const Name& name, const Values& values, std::initializer_list<std::int64_t> shape = {}) {
    return bind(name, values, std::span<const std::int64_t>(shape.begin(), shape.size()));
  }
  template <class Name, class Values, ShapeRange Shape>
  Model& bind(const Name& name, const Values& values, const Shape& shape) {
    Vector<std::int64_t> extents;
    for (const auto extent : shape) extents.push_back(std::int64_t(extent));
    return bind(name, values, std::span<const std::int64_t>(extents));
  }
  template <class Name, class Values>
  Model& bind(const Name& name, const Values& values, std::span<const std::int64_t> shape) {
    static_assert(WeightRange<Values> || WeightRows<Values>,
                  "the values of a weight are bound from a container of floats or doubles side by side, from rows of "
                  "these, or from a pointer and their number");
    if constexpr (WeightRange<Values>) {
      const std::span all(values);
      return bind(name, all.data(), all.size(), shape);
    } else if constexpr (WeightRows<Values>) {
      using T = decltype(detail::element_of(values));
      const std::string weight = "weight " + in_quotes(name_of_weight(self().graph(), name));
      const detail::FlatRows<T> flat(weight, values);
      return bind(name, flat.values().data(), flat.values().size(), shape.empty() ? flat.shape() : shape);
    }
  }
  template <class Name>
  Model& bind(const Name& name, std::initializer_list<float> values, std::initializer_list<std::int64_t> shape = {}) {
    return bind(name, values.begin(), values.size(), shape);
  }
  template <class Name, class T>
  Model& bind(const Name& name, const T* values, std::size_t count, std::initializer_list<std::int64_t> shape = {}) {
    return bind(name, values, count, std::span<const std::int64_t>(shape.begin(), shape.size()));
  }
  template <class Name, class T>
  Model& bind(const Name& name, const T* values, std::size_t count, std::span<const std::int64_t> shape) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                  "weights are bound from float or double values: convert them first");
    self().bind_values(name_of_weight(self().graph(), name), dtype_of<T>, values, count, shape);
    return self();
  }

  /// `bind` in any of these forms without braced values, whose error is returned.
  template <class Name, class... Arguments>
  Result<Done> try_bind(const Name& name, Arguments&&... arguments) {
    return attempt([&] { return bind(name, std::forward<Arguments>(arguments)...), Done(); });
  }
  template <class Name, class Values>
  Result<Done> try_bind(const Name& name, const Values& values, std::initializer_list<std::int64_t> shape) {
    return attempt([&] { return bind(name, values, shape), Done(); });
  }

 private:
  friend Model;
  BindForms() = default;
  Model& self() { return static_cast<Model&>(*this); }
};

}  // namespace cortex::runtime
