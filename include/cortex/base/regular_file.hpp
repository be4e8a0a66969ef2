// Whether a path leads to something that is no file to read or write as a whole.
#pragma once

#include <sys/stat.h>

namespace cortex {

/// Whether there is something at `path` that is neither a regular file nor a folder, which the system refuses by
/// itself: a pipe, whose opening waits for its other end, a device, which may give bytes without end, or a socket. To
/// be asked before it is opened, or replaced.
inline bool is_special_file(const char* path) {
  struct stat status;
  return ::stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace cortex
