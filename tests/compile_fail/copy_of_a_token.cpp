// expect: deleted
#include "cortex/models/tokens.hpp"
#include "prelude.hpp"

cortex::models::Token last(const cortex::models::Sequences& sequences) { return sequences[0].back(); }
