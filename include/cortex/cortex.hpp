// The one header that users include.
#pragma once

#include "cortex/base/config.hpp"
#include "cortex/base/dim.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/target.hpp"
#include "cortex/dsl/model.hpp"
#include "cortex/jit/code_cache.hpp"
#include "cortex/jit/linked_code.hpp"
#include "cortex/ra/schedule.hpp"
#include "cortex/runtime/functor.hpp"
#include "cortex/structure/accessors.hpp"
#include "cortex/structure/kind.hpp"
