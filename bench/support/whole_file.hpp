// Files of results, which are whole at any time, whatever stops the program: what is new is written beside them first.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace bench {

class WholeFile {
 public:
  /// A file that is there, also by a link to it, or one that is still to be. Throws for what is no file.
  explicit WholeFile(const std::string& path) : path_(path) {
    if (!std::filesystem::exists(path_)) return;
    if (!std::filesystem::is_regular_file(path_)) throw std::runtime_error(path_ + " is not a file");
    path_ = std::filesystem::canonical(path_);  // of a link the file that it leads to, which is what is renamed
  }

  /// Throws where `write` could not, too.
  void try_writing() const {
    write_beside("");
    std::remove(beside().c_str());
  }
  void write(const std::string& text) const {
    write_beside(text);
    std::filesystem::rename(beside(), path_);
  }

 private:
  std::string beside() const { return path_ + "." + std::to_string(::getpid()); }
  void write_beside(const std::string& text) const {
    std::ofstream file(beside(), std::ios::binary);
    file << text;
    file.close();
    if (file) return;
    std::remove(beside().c_str());
    throw std::runtime_error(path_ + " cannot be written");
  }

  std::string path_;
};

}  // namespace bench
