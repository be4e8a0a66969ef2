// The running example of the README in a user's project.
#include <cortex/cortex.hpp>
#include <cstdio>
#include <string>

std::string other();

int main() {
  std::puts(other().c_str());
  return 0;
}
