// Loops over vectors, of either class, that the standard library has, but makes every translation unit pay dearly for:
// std::reverse_iterator and inserted ranges are dozens of classes for each type of element.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace cortex {

/// What a loop over `reversed(vector)` goes through.
template <class T>
struct Reversed {
  struct Iterator {
    T* behind;
    T& operator*() const { return behind[-1]; }
    Iterator& operator++() { return --behind, *this; }
    bool operator!=(const Iterator& other) const { return behind != other.behind; }
  };
  T *first, *last;
  Iterator begin() const { return {last}; }
  Iterator end() const { return {first}; }
};

/// The elements of a vector from the last to the first: `for (const Stmt& s : reversed(stmts))`.
template <class Elements>
Reversed<const typename Elements::value_type> reversed(const Elements& vector) {
  return {vector.data(), vector.data() + vector.size()};
}

/// Whether `element` is among the elements.
template <class Elements, class T>
bool contains(const Elements& elements, const T& element) {
  for (const auto& each : elements)
    if (each == element) return true;
  return false;
}

/// Whether `holds` is true for at least one element.
template <class Elements, class Predicate>
bool any_of(const Elements& elements, const Predicate& holds) {
  for (const auto& each : elements)
    if (holds(each)) return true;
  return false;
}

/// Whether `holds` is true for every element; it is where there are none.
template <class Elements, class Predicate>
bool all_of(const Elements& elements, const Predicate& holds) {
  for (const auto& each : elements)
    if (!holds(each)) return false;
  return true;
}

/// Adds the elements of another vector at the end.
template <class Elements>
void append(Elements& to, const Elements& elements) {
  for (const auto& element : elements) to.push_back(element);
}

/// Takes out the elements for which `drop` is true; whether there were any.
template <class Elements, class Drop>
bool erase_where(Elements& vector, const Drop& drop) {
  std::size_t kept = 0;
  for (auto& element : vector) {
    if (drop(std::as_const(element))) continue;
    if (&element != &vector[kept]) vector[kept] = std::move(element);
    ++kept;
  }
  const bool any = kept < vector.size();
  while (vector.size() > kept) vector.pop_back();
  return any;
}

}  // namespace cortex
