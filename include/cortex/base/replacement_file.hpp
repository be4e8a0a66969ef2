// Files that are written whole or not at all.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/regular_file.hpp"

namespace cortex {

/// A new file beside `path` that takes its place by `commit`, and is gone without; beside what `path` leads to, if it
/// is a link, whether that is there or not. It may be read and written by whom the old one could be. Errors are of
/// `code` and begin with `source`, which names the file.
class ReplacementFile {
 public:
  ReplacementFile(std::string path, Code code, std::string source)
      : path_(std::move(path)), code_(code), source_(std::move(source)) {
    if (path_.find('\0') != std::string::npos) refuse("has a zero in its name");
    if (is_special_file(path_.c_str())) refuse("is no regular file: it would be replaced by one");
    follow_links();
    for (int number = 0; file_ < 0 && number < 1000; ++number) {  // another program may be writing the same file
      temporary_ = path_ + ".part" + std::to_string(number);
      file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST) break;
    }
    if (file_ < 0) fail(errno);
    struct stat old;
    if (::stat(path_.c_str(), &old) == 0) ::fchmod(file_, old.st_mode & 07777);
  }
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;
  ~ReplacementFile() {
    if (file_ >= 0) ::close(file_);
    if (!committed_) ::unlink(temporary_.c_str());
  }

  void write(const void* data, std::size_t count) {
    for (const auto* at = static_cast<const char*>(data); count > 0;) {
      const ssize_t written = ::write(file_, at, count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(errno);
      at += written, count -= std::size_t(written);
    }
  }

  void commit() {
    if (::fsync(file_) != 0) fail(errno);
    if (::close(std::exchange(file_, -1)) != 0) fail(errno);
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
    committed_ = true;
  }

 private:
  void follow_links() {
    char target[PATH_MAX];
    for (int links = 0;; ++links) {
      const ssize_t length = ::readlink(path_.c_str(), target, sizeof target);
      if (length < 0) return;        // it is no link, or not there
      if (links == 40) fail(ELOOP);  // as many as Linux follows
      if (std::size_t(length) == sizeof target) fail(ENAMETOOLONG);
      const std::string to(target, std::size_t(length));
      path_ = to.starts_with('/') ? to : path_.substr(0, path_.rfind('/') + 1) + to;
    }
  }
  [[noreturn]] void refuse(const std::string& what) const { throw Error(code_, source_ + ": " + what); }
  [[noreturn]] void fail(int error) const { refuse(std::string("cannot be written: ") + std::strerror(error)); }

  std::string path_;
  Code code_;
  std::string source_, temporary_;
  int file_ = -1;
  bool committed_ = false;
};

}  // namespace cortex
