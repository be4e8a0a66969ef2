// A locale that writes 0,5 for a half.
#pragma once

#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/skip.hpp"

namespace cortex::test {

/// The program's locale while it lives. Skips where the system has none with a decimal comma and cannot make one.
class CommaLocale {
 public:
  CommaLocale() {
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
      if (std::setlocale(LC_ALL, name)) return;
    ::setenv("LOCPATH", folder_.c_str(), 1);
    std::filesystem::create_directories(folder_);
    const std::string made = (folder_ / "de_DE.UTF-8").string();
    const bool known = std::system(("localedef -i de_DE -f UTF-8 '" + made + "' > /dev/null 2>&1").c_str()) == 0;
    if (known && std::setlocale(LC_ALL, "de_DE.UTF-8")) return;
    leave();
    skip("no locale with a decimal comma is here, nor localedef with what it makes one of");
  }
  ~CommaLocale() { leave(); }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  void leave() {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("cortex_locale_" + std::to_string(::getpid()));
};

}  // namespace cortex::test
