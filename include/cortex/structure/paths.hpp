// Paths: how an accessor reaches a value from a node. A step is a member pointer, a getter's member function pointer,
// a captureless lambda, or the position in an array of fixed size; pointers on the way are followed.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cortex/structure/links.hpp"

namespace cortex::structure {

template <auto Step, class T>
concept StepsByMember = std::is_member_object_pointer_v<decltype(Step)> && requires(const T& object) {
  object.*Step;
};
template <auto Step, class T>
concept StepsByGetter = std::is_member_function_pointer_v<decltype(Step)> && requires(const T& object) {
  (object.*Step)();
};
template <auto Step, class T>
concept StepsByCall = std::is_class_v<decltype(Step)> && requires(const T& object) {
  Step(object);
};

/// How many elements an array has whose type says so; 0 for anything else.
template <class T>
inline constexpr std::size_t array_size = 0;
template <class T, std::size_t N>
inline constexpr std::size_t array_size<T[N]> = N;
template <class T, std::size_t N>
inline constexpr std::size_t array_size<std::array<T, N>> = N;

template <auto Step, class T>
concept StepsByPosition = std::is_integral_v<decltype(Step)> && Step >= 0 && std::size_t(Step) < array_size<T>;

/// A step that can be taken from an object of type T itself.
template <auto Step, class T>
concept StepsDirectly =
    StepsByMember<Step, T> || StepsByGetter<Step, T> || StepsByCall<Step, T> || StepsByPosition<Step, T>;

template <class T>
concept ObjectPointer = PointerLike<T> && requires(const T& pointer) {
  *to_raw(pointer);
};

/// A step from a T, or from what a T points to.
template <auto Step, class T>
concept StepsFrom = StepsDirectly<Step, T> ||(ObjectPointer<T>&& requires(const T& pointer) {
  requires StepsDirectly<Step, std::remove_cvref_t<decltype(*to_raw(pointer))>>;
});

template <auto Step, class T>
requires StepsFrom<Step, T>
constexpr decltype(auto) take_step(const T& from) {
  if constexpr (!StepsDirectly<Step, T>)
    return take_step<Step>(*to_raw(from));
  else if constexpr (StepsByMember<Step, T>)
    return (from.*Step);  // the parentheses make it a reference
  else if constexpr (StepsByGetter<Step, T>)
    return (from.*Step)();
  else if constexpr (StepsByPosition<Step, T>)
    return (from[std::size_t(Step)]);
  else
    return Step(from);
}

template <class T, auto... Steps>
inline constexpr bool is_path = true;
template <class T, auto First, auto... Rest>
inline constexpr bool is_path<T, First, Rest...> = [] {
  if constexpr (StepsFrom<First, T>)
    return is_path<std::remove_cvref_t<decltype(take_step<First>(std::declval<const T&>()))>, Rest...>;
  else
    return false;
}();

/// A sequence of steps that can be taken from a T one after the other.
template <class T, auto... Steps>
concept Path = (sizeof...(Steps) > 0) && is_path<T, Steps...>;

/// The value at the end of a path: a reference where it lies in the user's data, a copy where a step on the way yields
/// a temporary.
template <auto First, auto... Rest, class T>
requires Path<T, First, Rest...>
constexpr decltype(auto) walk_path(const T& from) {
  if constexpr (sizeof...(Rest) == 0) {
    return take_step<First>(from);
  } else {
    using Next = decltype(take_step<First>(from));
    if constexpr (std::is_lvalue_reference_v<Next> || std::is_pointer_v<Next>)
      return walk_path<Rest...>(take_step<First>(from));
    else
      return std::decay_t<decltype(walk_path<Rest...>(take_step<First>(from)))>(
          walk_path<Rest...>(take_step<First>(from)));
  }
}

/// Whether no pointer before the last step is null, so that `walk_path` may be called.
template <auto First, auto... Rest, class T>
requires Path<T, First, Rest...>
constexpr bool path_is_open(const T& from) {
  if constexpr (!StepsDirectly<First, T>) {
    const auto* target = to_raw(from);
    return target != nullptr && path_is_open<First, Rest...>(*target);
  } else if constexpr (sizeof...(Rest) == 0) {
    return true;
  } else {
    return path_is_open<Rest...>(take_step<First>(from));
  }
}

namespace spelling {

template <auto Value>
constexpr const char* signature() {
  return __PRETTY_FUNCTION__;  // "... [with auto Value = &Word::left]" with g++, "... [Value = &Word::left]" with clang
}

constexpr bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0;
}

/// The last identifier of a signature: for a member pointer, the member's name.
constexpr std::string_view last_name(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0 && !is_name_char(text[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_name_char(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

}  // namespace spelling

/// The name of one step: what the step itself says by a static name(), else the member's name, else (a lambda) empty.
template <auto Step>
constexpr std::string_view step_name() {
  using T = std::remove_cvref_t<decltype(Step)>;
  if constexpr (requires {
                  { T::name() } -> std::convertible_to<std::string_view>;
                })
    return T::name();
  else if constexpr (std::is_member_pointer_v<T>)
    return spelling::last_name(spelling::signature<Step>());
  else
    return {};
}

namespace detail {

/// "kids[2]" for the path <&Node::kids, 2>.
template <auto... Path>
struct NameWithPositions {
  std::array<char, ((step_name<Path>().size() + 16) + ...)> text{};
  std::size_t size = 0;

  constexpr NameWithPositions() { (step<Path>(), ...); }
  constexpr void append(std::string_view part) {
    for (const char c : part) text[size++] = c;
  }
  template <auto Step>
  constexpr void step() {
    if constexpr (!std::is_integral_v<decltype(Step)>) {
      size = 0;
      append(step_name<Step>().empty() ? std::string_view("child") : step_name<Step>());
    } else {
      char digits[12] = {};
      std::size_t count = 0;
      for (auto rest = std::size_t(Step); count == 0 || rest > 0; rest /= 10) digits[count++] = char('0' + rest % 10);
      append("[");
      while (count > 0) text[size++] = digits[--count];
      append("]");
    }
  }
};
template <auto... Path>
inline constexpr NameWithPositions<Path...> name_with_positions{};

}  // namespace detail

/// The name of a path's last member, with the positions after it; empty for a lambda.
template <auto... Path>
constexpr std::string_view path_name() {
  std::string_view last;
  ((last = step_name<Path>()), ...);
  if constexpr ((std::is_integral_v<decltype(Path)> || ...))
    last = {detail::name_with_positions<Path...>.text.data(), detail::name_with_positions<Path...>.size};
  return last;
}

}  // namespace cortex::structure
