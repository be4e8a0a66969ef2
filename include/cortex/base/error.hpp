// Errors: a code for programs, a message for people, and the two ways to get them: thrown, or returned by the `try_`
// forms of the usual calls and by `attempt` for all others.
#pragma once

#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

// Constructors name their parameters after the members: users who compile with -Wshadow need not hear of it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"

namespace cortex {

enum class Code {
  invalid_model,      // the model's equations are wrong: a dimension that does not fit, a name used twice
  invalid_schedule,   // the schedule names something that is not there or asks for what would be wrong
  invalid_weights,    // wrong name, shape or dtype, or never bound
  invalid_structure,  // the user's nodes break the declared kind: a cycle, a shared child, a null child ...
  out_of_range,       // a field indexes past the end of a table
  invalid_argument,   // any other argument: an output span too small, a node that was not in the call
  unavailable,        // the machine or the build lacks what is asked for
  compile_failed,     // LLVM or NVRTC refused the code; the message holds its words and the text
  out_of_memory,      // the machine, or a device, has no room for a call; nothing else is lost
  device_lost,        // a device failed, and with it all that was on it
  internal,           // a defect of this library
};

/// The code's name as it is spelled in the enumeration.
inline std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid_model: return "invalid_model";
    case Code::invalid_schedule: return "invalid_schedule";
    case Code::invalid_weights: return "invalid_weights";
    case Code::invalid_structure: return "invalid_structure";
    case Code::out_of_range: return "out_of_range";
    case Code::invalid_argument: return "invalid_argument";
    case Code::unavailable: return "unavailable";
    case Code::compile_failed: return "compile_failed";
    case Code::out_of_memory: return "out_of_memory";
    case Code::device_lost: return "device_lost";
    case Code::internal: return "internal";
  }
  return "unknown";
}

/// What every failing function of the library throws. Where there is a `try_` form, that returns it (`try_compile`,
/// `try_bind`, `try_call` and those of weights' files); `attempt` makes one of any other call. The message says what is
/// wrong, where (names of operators and dimensions, number of the node), why, and what to do; a zero in a name of the
/// user's is shown as '?', as `what` would end there.
struct Error : std::exception {
  Code code;
  std::string message;
  const void* node = nullptr;  // the one of the user's nodes that the message is about, where it is about one

  Error(Code code, std::string message, const void* node = nullptr)
      : code(code), message(std::move(message)), node(node) {
    for (char& c : this->message)
      if (c == '\0') c = '?';
  }
  const char* what() const noexcept override { return message.c_str(); }
};

/// What to do where there is no memory for a call.
inline constexpr const char* call_with_less = "free memory, or call with fewer roots at a time";

/// Says that there is no memory for what a call needs, or what `advice` is for.
[[noreturn, gnu::cold, gnu::noinline]] inline void no_memory(double bytes, const char* advice = call_with_less) {
  char megabytes[32];
  std::snprintf(megabytes, sizeof megabytes, "%.4g", bytes / (1 << 20));
  throw Error(Code::out_of_memory,
              "the machine has no memory for " + std::string(megabytes) + " MB more: nothing is lost; " + advice);
}

/// A value or the error that stood in its way: what `try_` forms and `attempt` return.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const { return value_.has_value(); }
  bool has_value() const { return value_.has_value(); }

  /// The value; throws the error if there is none.
  T& value() & { return check(), *value_; }
  const T& value() const& { return check(), *value_; }
  T&& value() && { return check(), *std::move(value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// The error; only when there is no value.
  const Error& error() const { return *error_; }

 private:
  void check() const {
    if (error_) throw *error_;
  }
  // One of the two; std::variant would cost each user who includes this several milliseconds.
  std::optional<T> value_;
  std::optional<Error> error_;
};

/// The value of what succeeds without one.
struct Done {};

namespace detail {

/// A copy of an error; without its message, which is then as short as strings may be without memory of their own, where
/// there is none for it.
inline Error copy_of(const Error& error) {
  try {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(error.code, "out of memory", error.node);
  }
}

inline Error memory_used_up() {
  try {
    return Error(
        Code::out_of_memory,
        "the host's memory was used up in this call (std::bad_alloc): free memory, or do less at a time, such as "
        "calls with fewer roots");
  } catch (const std::bad_alloc&) {
    return Error(Code::out_of_memory, "out of memory");
  }
}

}  // namespace detail

/// Runs `make` and turns the `Error` it may throw into a returned one: `attempt([&] { return model.to(device); })`.
/// Where it gives no value, success is `Done`. `std::bad_alloc` becomes `Code::out_of_memory`; other exceptions (of the
/// user's own types) pass through.
template <class Make>
auto attempt(Make&& make) -> Result<std::conditional_t<std::is_void_v<decltype(make())>, Done, decltype(make())>> {
  try {
    if constexpr (std::is_void_v<decltype(make())>)
      return std::forward<Make>(make)(), Done();
    else
      return std::forward<Make>(make)();
  } catch (const Error& error) {
    return detail::copy_of(error);
  } catch (const std::bad_alloc&) {
    return detail::memory_used_up();
  }
}

}  // namespace cortex

#pragma GCC diagnostic pop
