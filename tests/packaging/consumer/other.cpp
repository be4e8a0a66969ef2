// A second translation unit of the user's project.
#include <cortex/cortex.hpp>
#include <string>

std::string other() { return std::string(cortex::to_string(cortex::Code::internal)); }
