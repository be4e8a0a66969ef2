// Compiled code kept in files: what was compiled once on a machine is loaded when a program starts again.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/mutex.hpp"
#include "cortex/base/vector.hpp"

namespace cortex::jit {

/// 128 bits of a text, for names and checks of files; no defence against someone who wants two texts to be alike.
struct Fingerprint {
  std::uint64_t a = 0, b = 0;
  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

/// Its 32 digits.
inline std::string to_string(const Fingerprint& print) {
  std::string digits;
  for (const std::uint64_t half : {print.a, print.b})
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[half >> shift & 15];
  return digits;
}

inline Fingerprint fingerprint(std::string_view text) {
  const auto mixed = [](std::uint64_t x, std::uint64_t by) {
    x = (x ^ (x >> 32)) * by;
    return x ^ (x >> 29);
  };
  constexpr std::uint64_t odd_a = 0x9e3779b97f4a7c15, odd_b = 0xd6e8feb86659fd93;
  Fingerprint print{text.size() * odd_a, ~text.size() * odd_b};
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min<std::size_t>(8, text.size() - at));
    print.a = mixed(print.a ^ word, odd_a);
    print.b = mixed(print.b + word, odd_b);
  }
  return {mixed(print.a, odd_b), mixed(print.b, odd_a)};
}

/// Files in one directory, each the code of one key: the compiler with its version and options, and the whole text that
/// was compiled. What is broken, or of another key, is as good as not there, and what cannot be written is not kept: a
/// cache makes nothing fail. Any number of threads and processes may use a directory at the same time.
class CodeCache {
 public:
  /// The directory that a relative path names now is meant for good, since only that one is checked; "" is none. Throws
  /// `Error{invalid_argument}` for a directory that is not there and cannot be made, and for one that others can write
  /// to, since its files are run.
  explicit CodeCache(std::string directory) : directory_(std::move(directory)) {
    if (directory_.empty()) return;
    if (directory_.find('\0') != directory_.npos) refuse("has a zero in its name");
    if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST)
      refuse(std::string("cannot be made: ") + std::strerror(errno));
    char resolved[PATH_MAX];
    struct stat about {};
    if (!::realpath(directory_.c_str(), resolved) || ::stat(resolved, &about) != 0)
      refuse(std::string("cannot be looked at: ") + std::strerror(errno));
    if (!S_ISDIR(about.st_mode)) refuse("is no directory");
    if (!is_own(about)) refuse("belongs to another user, whose code would be run");
    if (!is_trusted(about)) refuse("can be written to by others, whose code would be run");
    directory_ = resolved;
  }

  bool is_on() const { return !directory_.empty(); }

  /// The code that was kept under a key; nothing if there is none.
  std::optional<std::string> find(const Fingerprint& key) const {
    if (!is_on()) return {};
    std::optional<std::string> file = read(path_of(key));
    if (!file || file->size() < sizeof(Head)) return {};
    Head head;
    std::memcpy(&head, file->data(), sizeof head);
    const std::string_view code = std::string_view(*file).substr(sizeof head);
    if (head.magic != Head().magic || head.key != key || head.size != code.size() || head.code != fingerprint(code))
      return {};
    ::utimensat(AT_FDCWD, path_of(key).c_str(), nullptr, 0);  // used now: the last to be removed
    file->erase(0, sizeof head);
    return file;
  }

  /// Keeps code under a key, and removes what was used longest ago while all of it is larger than `most_bytes`. Code
  /// that is larger by itself is not kept.
  void keep(const Fingerprint& key, std::string_view code) const {
    if (!is_on() || code.size() > most_bytes || sizeof(Head) + code.size() > largest_file()) return;
    Head head;
    head.key = key, head.code = fingerprint(code), head.size = code.size();
    const std::string path = path_of(key);
    // A free name, whatever a process that was killed has left: in containers all have the same number.
    std::string unfinished = path + ".XXXXXX";
    const int file = ::mkostemp(unfinished.data(), O_CLOEXEC);
    if (file < 0) return;
    // For whom the directory is: what root has filled, others read.
    struct stat about {};
    if (::stat(directory_.c_str(), &about) == 0)
      ::fchmod(file, S_IRUSR | S_IWUSR | (about.st_mode & (S_IRGRP | S_IROTH)));
    const bool written = write(file, {reinterpret_cast<const char*>(&head), sizeof head}) && write(file, code);
    if (::close(file) != 0 || !written || ::rename(unfinished.c_str(), path.c_str()) != 0)
      ::unlink(unfinished.c_str());
    else
      make_room(path);
  }

  std::uint64_t most_bytes = std::uint64_t(256) << 20;

 private:
  struct Head {
    std::uint64_t magic = 0x31302d7865747263;  // "crtex-01"
    Fingerprint key, code;
    std::uint64_t size = 0;
  };
  static constexpr std::string_view ending = ".code", unfinished_part = ".code.";
  static constexpr std::size_t key_digits = 32;

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::invalid_argument, "compiled code cannot be kept in '" + directory_ + "': it " + why);
  }

  std::string path_of(const Fingerprint& key) const { return directory_ + "/" + to_string(key) + std::string(ending); }

  /// How many bytes this process may write to a file (`ulimit -f`): for more the system would end it.
  static std::uint64_t largest_file() {
    rlimit limit{};
    return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 ? std::uint64_t(limit.rlim_cur) : UINT64_MAX;
  }

  static bool is_own(const struct stat& about) { return about.st_uid == ::geteuid() || about.st_uid == 0; }
  /// Whether nobody but this user and root can have put there what is to be run.
  static bool is_trusted(const struct stat& about) { return is_own(about) && !(about.st_mode & (S_IWGRP | S_IWOTH)); }

  /// All of a regular file that `keep` may have written; others may be endless, or larger than memory. The directory
  /// that was checked may have been replaced since, by whom its parent belongs to: each file is checked itself.
  std::optional<std::string> read(const std::string& path) const {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe would wait for a writer
    if (file < 0) return {};
    struct stat about {};
    std::string bytes;
    bool whole = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode) && is_trusted(about) &&
                 std::uint64_t(about.st_size) <= most_bytes + sizeof(Head);
    if (whole) bytes.resize(std::size_t(about.st_size));
    for (std::size_t at = 0; whole && at < bytes.size();) {
      const ssize_t count = ::read(file, bytes.data() + at, bytes.size() - at);
      whole = count > 0 || (count < 0 && errno == EINTR);
      if (count > 0) at += std::size_t(count);
    }
    ::close(file);
    if (!whole) return {};
    return bytes;
  }

  static bool write(int file, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(file, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) return false;
      if (count > 0) bytes.remove_prefix(std::size_t(count));
    }
    return true;
  }

  /// Removes what was used longest ago, but not the file at `kept`, and what was never finished.
  void make_room(const std::string& kept) const {
    struct Kept {
      std::string path;
      std::uint64_t bytes;
      std::int64_t used;  // seconds
      std::int64_t used_ns;
    };
    Vector<Kept> all;
    std::uint64_t total = 0;
    const std::int64_t now = std::time(nullptr);
    DIR* const directory = ::opendir(directory_.c_str());
    if (!directory) return;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string_view name = entry->d_name;
      if (name.find_first_not_of("0123456789abcdef") != key_digits) continue;  // somebody else's
      const bool finished = name.substr(key_digits) == ending, unfinished = name.find(unfinished_part) == key_digits;
      if (!finished && !unfinished) continue;
      const std::string path = directory_ + "/" + entry->d_name;
      struct stat about {};
      if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
      // No use lies ahead, but for clocks that differ a little: such a file would never be the oldest.
      const bool ahead = about.st_mtim.tv_sec > now + 60;
      const std::int64_t used = ahead ? 0 : std::int64_t(about.st_mtim.tv_sec);
      if (unfinished) {
        if (used < now - 3600) ::unlink(path.c_str());  // nobody writes for an hour
        continue;
      }
      total += std::uint64_t(about.st_size);
      if (path != kept) all.push_back({path, std::uint64_t(about.st_size), used, std::int64_t(about.st_mtim.tv_nsec)});
    }
    ::closedir(directory);
    while (total > most_bytes && !all.empty()) {
      std::size_t oldest = 0;
      for (std::size_t i = 1; i < all.size(); ++i)
        if (std::pair(all[i].used, all[i].used_ns) < std::pair(all[oldest].used, all[oldest].used_ns)) oldest = i;
      ::unlink(all[oldest].path.c_str());
      total -= all[oldest].bytes;
      all[oldest] = std::move(all.back());
      all.pop_back();
    }
  }

  std::string directory_;
};

namespace detail {

struct SharedCache {
  Mutex mutex;
  std::optional<CodeCache> cache;  // nothing: not asked for yet
};
inline SharedCache& shared_cache() {
  static SharedCache shared;
  return shared;
}

}  // namespace detail

/// The cache of this process: where `cache_code_in` says, else where the environment's CORTEX_CACHE does, else none. A
/// CORTEX_CACHE that is refused is none too, which stderr is told once: whoever compiles may not have set it.
inline CodeCache code_cache() {
  detail::SharedCache& shared = detail::shared_cache();
  const Lock lock(shared.mutex);
  if (!shared.cache) {
    const char* const asked = std::getenv("CORTEX_CACHE");
    try {
      shared.cache.emplace(asked ? asked : "");
    } catch (const Error& error) {
      std::fprintf(stderr, "cortex: CORTEX_CACHE is not used: %s\n", error.message.c_str());
      shared.cache.emplace("");
    }
  }
  return *shared.cache;
}

}  // namespace cortex::jit

namespace cortex {

/// From now on this process keeps the code of models, for CPUs and GPUs, in `directory`, and takes from there what was
/// compiled before, by this version of the compiler from the same text for the same machine: a model is then ready in
/// a fraction of the time. "" is none, which is the default unless the environment has CORTEX_CACHE; of a relative
/// path, the directory is meant that it names now. Throws `Error{invalid_argument}` for a directory that cannot be
/// made, or that others can write to; a CORTEX_CACHE that names such a one is not used, and stderr is told so.
inline void cache_code_in(std::string directory) {
  jit::CodeCache cache(std::move(directory));
  jit::detail::SharedCache& shared = jit::detail::shared_cache();
  const Lock lock(shared.mutex);
  shared.cache = std::move(cache);
}

}  // namespace cortex
