// Code in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace cortex::test {

/// What `f()`, a number from 0 to 255, returns in a child process of this one; -1 if the child has not come to that
/// within ten seconds.
template <class F>
int in_child(F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(10);
    ::_exit(f());
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace cortex::test
