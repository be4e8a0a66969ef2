// A function that is only called while it is passed: a parameter that takes any lambda. Costs a fraction of
// std::function to compile, and allocates nothing.
#pragma once

#include <memory>
#include <type_traits>

namespace cortex {

template <class Signature>
class FunctionRef;

/// Refers to a lambda that has to outlive this.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
 public:
  template <class F>
  requires(!std::is_same_v<F, FunctionRef>) FunctionRef(const F& lambda)
      : lambda_(&lambda), call_([](const void* f, Arguments... arguments) -> Result {
          return (*static_cast<const F*>(f))(static_cast<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(lambda_, static_cast<Arguments>(arguments)...); }

 private:
  const void* lambda_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace cortex
