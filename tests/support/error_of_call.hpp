// What a call was refused with.
#pragma once

#include <string>

#include "cortex/base/error.hpp"

namespace cortex::test {

/// The message of the error that `f` throws, behind its code.
template <class F>
std::string error_of_call(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return std::string(to_string(error.code)) + ": " + error.message;
  }
  return "no error";
}

}  // namespace cortex::test
