// Compiled code that is kept in files: found again, never trusted if it is not what it seems, and no reason to fail.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "kernels.hpp"
#include "support/skip.hpp"

using namespace cortex;
using namespace cortex::test;
using jit::CodeCache;
using jit::fingerprint;
namespace fs = std::filesystem;

namespace {

/// A directory that is gone afterwards.
struct Directory {
  fs::path path;
  Directory() {
    std::string name = (fs::temp_directory_path() / "cortex-cache-XXXXXX").string();
    if (!::mkdtemp(name.data())) skip("no directory can be made");
    path = name;
  }
  ~Directory() {
    cache_code_in("");
    std::error_code ignored;
    fs::permissions(path, fs::perms::owner_all, ignored);
    fs::remove_all(path, ignored);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(path)) all.push_back(entry.path());
    return all;
  }
};

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
void overwrite(const fs::path& file, const std::string& bytes) { std::ofstream(file, std::ios::binary) << bytes; }

/// Keeps something else than code in a file of a cache's, under the same key.
void spoil(const fs::path& file) {
  const std::string name = file.filename().string();
  const auto half = [&](std::size_t at) { return std::stoull(name.substr(at, 16), nullptr, 16); };
  CodeCache(file.parent_path().string()).keep({half(0), half(16)}, "no object at all");
}

/// A function that stores `value` where the first word of its argument points to.
std::string storing(int value) {
  return "define void @kernel(ptr %args) {\n  %to = load ptr, ptr %args\n  store i32 " + std::to_string(value) +
         ", ptr %to\n  ret void\n}\n";
}
int stored_by(const jit::Compiled& compiled) {
  int value = 0;
  int* to = &value;
  compiled.kernel(reinterpret_cast<const codegen::KernelArgs*>(&to));
  return value;
}
jit::Compiled made(int value) { return jit::compile_llvm(storing(value), "kernel", jit::host_target()); }

std::string refusal(const std::string& directory) {
  try {
    cache_code_in(directory);
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_argument);
    return error.message;
  }
  return "accepted";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what was compiled once is loaded the next time, and does the same", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  const auto first = made(7), again = made(7), other = made(8);
  CHECK(!first.from_cache);
  CHECK(again.from_cache);
  CHECK(!other.from_cache);
  CHECK(stored_by(first) == 7);
  CHECK(stored_by(again) == 7);
  CHECK(stored_by(other) == 8);
  CHECK(directory.files().size() == 2);
}

TEST_CASE("code for other machines is other code", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  made(7);
  Target plain = jit::host_target();
  plain.features = "";
  plain.cpu = "generic";
  CHECK(!jit::compile_llvm(storing(7), "kernel", plain).from_cache);
}

TEST_CASE("without a directory nothing is kept", "[cache]") {
  cache_code_in("");
  made(7);
  CHECK(!made(7).from_cache);
}

TEST_CASE("kept code that was changed is compiled anew and replaced", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  made(7);
  const fs::path file = directory.files().at(0);
  const std::string good = contents(file);
  std::string flipped = good, longer = good + "x";
  flipped[good.size() / 2] = char(flipped[good.size() / 2] ^ 1);
  for (const std::string& bad : {flipped, longer, good.substr(0, good.size() - 1), good.substr(0, 20), std::string()}) {
    overwrite(file, bad);
    const auto compiled = made(7);
    CHECK(!compiled.from_cache);
    CHECK(stored_by(compiled) == 7);
    CHECK(contents(file) == good);
    CHECK(made(7).from_cache);
  }
}

TEST_CASE("code of another key is not taken for this one's", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  made(7);
  const fs::path of_seven = directory.files().at(0);
  made(8);
  for (const fs::path& file : directory.files())
    if (file != of_seven) fs::copy_file(of_seven, file, fs::copy_options::overwrite_existing);
  const auto compiled = made(8);
  CHECK(!compiled.from_cache);
  CHECK(stored_by(compiled) == 8);
}

TEST_CASE("kept code that does not link is compiled anew", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  made(7);
  spoil(directory.files().at(0));
  const auto compiled = made(7);
  CHECK(!compiled.from_cache);
  CHECK(stored_by(compiled) == 7);
}

TEST_CASE("of a long kernel each part is kept, and what is lost of them is compiled anew", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  const std::string text = many_functions();
  const auto make = [&] { return jit::compile_llvm(text, "kernel", jit::host_target()); };
  CHECK(stored_by(make()) == sum_of_many);
  const std::vector<fs::path> files = directory.files();
  CHECK(files.size() >= 3);
  const auto again = make();
  CHECK(again.from_cache);
  CHECK(stored_by(again) == sum_of_many);
  fs::remove(files.at(1));
  const auto mixed = make();
  CHECK(!mixed.from_cache);
  CHECK(stored_by(mixed) == sum_of_many);
  CHECK(directory.files().size() == files.size());
  spoil(files.at(1));
  CHECK(stored_by(make()) == sum_of_many);
  CHECK(make().from_cache);
}

TEST_CASE("a directory that cannot hold code is refused by name", "[cache]") {
  const Directory directory;
  const fs::path file = directory.path / "file";
  overwrite(file, "");
  CHECK(has(refusal(file.string()), "compiled code cannot be kept in '" + file.string() + "': it is no directory"));
  CHECK(has(refusal((directory.path / "a" / "b").string()), "it cannot be made: No such file or directory"));
  const fs::path shared = directory.path / "shared";
  fs::create_directory(shared);
  fs::permissions(shared, fs::perms::all);
  CHECK(has(refusal(shared.string()), "can be written to by others"));
  CHECK(refusal((directory.path / "fresh").string()) == "accepted");
  CHECK((fs::status(directory.path / "fresh").permissions() & fs::perms::all) == fs::perms::owner_all);
}

TEST_CASE("a directory that cannot be looked at, or whose name ends too soon, is refused", "[cache]") {
  const Directory directory;
  const std::string link = (directory.path / "link").string();
  fs::create_symlink(directory.path / "nowhere", link);
  CHECK(refusal(link) ==
        "compiled code cannot be kept in '" + link + "': it cannot be looked at: No such file or directory");
  const std::string path = (directory.path / "a").string() + '\0' + "b";
  CHECK(refusal(path).ends_with("it has a zero in its name"));
  CHECK_FALSE(fs::exists(directory.path / "a"));
}

TEST_CASE("a file that others can have written is not run", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  made(7);
  REQUIRE(directory.files().size() == 1);
  CHECK(made(7).from_cache);
  fs::permissions(directory.files()[0], fs::perms::group_write, fs::perm_options::add);
  CHECK(!made(7).from_cache);  // and kept anew
  CHECK(made(7).from_cache);
  if (::geteuid() != 0) return;
  REQUIRE(::chown(directory.files()[0].c_str(), 65534, 65534) == 0);
  CHECK(!made(7).from_cache);
}

TEST_CASE("files may be read by those who may read their directory", "[cache]") {
  const Directory directory;
  for (const fs::perms others :
       {fs::perms::none, fs::perms::group_read, fs::perms::group_read | fs::perms::others_read}) {
    const fs::path path = directory.path / std::to_string(int(others));
    fs::create_directory(path);
    fs::permissions(path, fs::perms::owner_all | others);
    cache_code_in(path.string());
    made(7);
    const fs::path file = fs::directory_iterator(path)->path();
    CHECK((fs::status(file).permissions() & fs::perms::all) ==
          (fs::perms::owner_read | fs::perms::owner_write | others));
  }
}

TEST_CASE("a directory that is gone, or full of other things, makes nothing fail", "[cache]") {
  const Directory directory;
  const fs::path inner = directory.path / "inner";
  cache_code_in(inner.string());
  fs::remove_all(inner);
  CHECK(stored_by(made(7)) == 7);
  CHECK(!made(7).from_cache);
  fs::create_directory(inner);
  overwrite(inner / "notes.txt", "not code");
  fs::create_directory(inner / "folder.code");
  CHECK(stored_by(made(7)) == 7);
  CHECK(made(7).from_cache);
  CHECK(contents(inner / "notes.txt") == "not code");
}

TEST_CASE("code larger than files of the process may be is not kept, and makes nothing fail", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{100, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const int stored = stored_by(made(7));
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(stored == 7);
  CHECK(directory.files().empty());
  made(7);
  CHECK(made(7).from_cache);
}

TEST_CASE("what was used longest ago makes room", "[cache]") {
  const Directory directory;
  CodeCache cache(directory.path.string());
  cache.most_bytes = 1100;  // three with their heads
  const std::string code(300, 'c');
  const auto key = [](int i) { return fingerprint("code " + std::to_string(i)); };
  for (int i = 0; i < 3; ++i) {
    cache.keep(key(i), code);
    std::this_thread::sleep_for(std::chrono::milliseconds(15));  // the clock of files may be as coarse
  }
  CHECK(cache.find(key(0)));  // which makes number 1 the oldest
  std::this_thread::sleep_for(std::chrono::milliseconds(15));
  cache.keep(key(3), code);
  CHECK(cache.find(key(0)));
  CHECK(!cache.find(key(1)));
  CHECK(cache.find(key(3)) == code);
}

TEST_CASE("other people's files make no room", "[cache]") {
  const Directory directory;
  CodeCache cache(directory.path.string());
  cache.most_bytes = 400;
  const fs::path thesis = directory.path / "my_thesis.code", digits = directory.path / "0123.code";
  for (const fs::path& path : {thesis, digits}) overwrite(path, std::string(300, 't'));
  for (int i = 0; i < 3; ++i) cache.keep(fingerprint("code " + std::to_string(i)), std::string(300, 'c'));
  CHECK(cache.find(fingerprint("code 2")));
  CHECK(fs::exists(thesis));
  CHECK(fs::exists(digits));
}

TEST_CASE("what a killed process left unfinished is in nobody's way, and goes when it is old", "[cache]") {
  const Directory directory;
  const CodeCache cache(directory.path.string());
  const auto key = fingerprint("a key");
  cache.keep(key, "code");
  const fs::path file = directory.files().at(0);
  fs::remove(file);
  const auto left = [&](const std::string& name, std::chrono::minutes ago) {
    const fs::path path = directory.path / name;
    overwrite(path, "half");
    fs::last_write_time(path, fs::file_time_type::clock::now() - ago);
    return path;
  };
  // By the number of this process, as one in another container may have left them.
  const std::string name = file.filename().string() + ".", own = name + std::to_string(::getpid()) + ".";
  for (int i = 0; i < 1000; ++i) left(own + std::to_string(i), std::chrono::minutes(50));
  const fs::path old = left(name + "aaaaaa", std::chrono::minutes(70));
  const fs::path ahead = left(name + "bbbbbb", -std::chrono::hours(48));
  const fs::path notes = left("notes.code.txt", std::chrono::hours(48));
  cache.keep(key, "code");
  CHECK(cache.find(key) == "code");
  CHECK(!fs::exists(old));
  CHECK(!fs::exists(ahead));
  CHECK(fs::exists(directory.path / (own + "0")));  // may still be written
  CHECK(fs::exists(notes));
}

TEST_CASE("a file dated in the future goes first, and what was just kept stays", "[cache]") {
  const Directory directory;
  CodeCache cache(directory.path.string());
  cache.most_bytes = 800;  // two with their heads
  const std::string code(300, 'c');
  const auto key = [](int i) { return fingerprint("code " + std::to_string(i)); };
  cache.keep(key(0), code);
  cache.keep(key(1), code);
  for (const fs::path& file : directory.files())
    fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::hours(1000));
  for (int i = 2; i < 5; ++i) {
    cache.keep(key(i), code);
    CHECK(cache.find(key(i)) == code);
  }
  CHECK(!cache.find(key(0)));
  CHECK(!cache.find(key(1)));
  cache.keep(key(5), std::string(801, 'c'));  // larger than all of the cache may be
  CHECK(!cache.find(key(5)));
  CHECK(cache.find(key(4)));
}

TEST_CASE("files that were never kept code are not read", "[cache]") {
  const Directory directory;
  CodeCache cache(directory.path.string());
  const auto key = fingerprint("a key");
  cache.keep(key, "code");
  const fs::path file = directory.files().at(0);
  fs::resize_file(file, std::uintmax_t(1) << 42);  // sparse, and more than memory holds
  CHECK(!cache.find(key));
  cache.most_bytes = 3;  // of code of 4
  CHECK(!cache.find(key));
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);  // whose opening waits for a writer
  CHECK(!cache.find(key));
  cache.most_bytes = 1000;
  cache.keep(key, "code");
  CHECK(cache.find(key) == "code");
}

TEST_CASE("a relative path means the directory that it names when it is given", "[cache]") {
  const Directory directory;
  const fs::path before = fs::current_path(), other = directory.path / "other";
  fs::create_directories(other / "cache");
  fs::permissions(other / "cache", fs::perms::all);  // which would not be trusted
  fs::current_path(directory.path);
  cache_code_in("cache");
  fs::current_path(other);
  made(7);
  fs::current_path(before);
  CHECK(fs::is_empty(other / "cache"));
  CHECK(!fs::is_empty(directory.path / "cache"));
}

TEST_CASE("a CORTEX_CACHE that cannot be used makes nothing fail, and is told once", "[cache]") {
  const Directory directory;
  const fs::path told = directory.path / "told";
  const std::string bad = (directory.path / "a" / "b").string();
  ::setenv("CORTEX_CACHE", bad.c_str(), 1);
  const auto forget = [] {
    const Lock lock(jit::detail::shared_cache().mutex);
    jit::detail::shared_cache().cache.reset();
  };
  forget();
  const int to = ::open(told.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), before = ::dup(2);
  ::dup2(to, 2);
  std::string thrown;
  try {
    made(7), made(7);
  } catch (const Error& error) {
    thrown = error.message;
  }
  ::dup2(before, 2);
  ::close(to), ::close(before);
  ::unsetenv("CORTEX_CACHE");
  CHECK(thrown == "");
  CHECK(contents(told) == "cortex: CORTEX_CACHE is not used: compiled code cannot be kept in '" + bad +
                              "': it cannot be made: No such file or directory\n");
  CHECK(!jit::code_cache().is_on());
}

TEST_CASE("threads that compile the same at the same time all get it", "[cache]") {
  const Directory directory;
  cache_code_in(directory.path.string());
  std::vector<int> got(8);
  std::vector<std::thread> threads;
  for (int& value : got) threads.emplace_back([&value] { value = stored_by(made(7)); });
  for (std::thread& thread : threads) thread.join();
  CHECK(got == std::vector<int>(8, 7));
  CHECK(directory.files().size() == 1);
  CHECK(made(7).from_cache);
}

TEST_CASE("fingerprints tell texts apart that differ in one character or in length", "[cache]") {
  const std::string text(100, 'a');
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = 'b';
    CHECK(!(fingerprint(other) == fingerprint(text)));
    CHECK(!(fingerprint(text.substr(0, at)) == fingerprint(text)));
  }
  CHECK(!(fingerprint(std::string(8, '\0')) == fingerprint(std::string(16, '\0'))));
  CHECK(fingerprint(text) == fingerprint(text));
}
