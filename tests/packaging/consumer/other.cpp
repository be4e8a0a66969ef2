// A second translation unit of the user's project, which uses the library too.
#include <cortex/cortex.hpp>

int other() { return int(cortex::Schedule::standard().batched); }
