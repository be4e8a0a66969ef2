// The one header that users include.
#pragma once

#include "cortex/base/config.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/target.hpp"
#include "cortex/ra/schedule.hpp"
#if __has_include("cortex/structure/kind.hpp")
#include "cortex/structure/kind.hpp"
#endif
#if __has_include("cortex/dsl/dsl.hpp")
#include "cortex/dsl/dsl.hpp"
#endif
#if __has_include("cortex/runtime/functor.hpp")
#include "cortex/runtime/functor.hpp"
#endif
#if !CORTEX_COMPILED && __has_include("cortex/runtime/compile.hpp")
#include "cortex/runtime/compile.hpp"
#endif
