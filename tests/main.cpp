// The main program of every test executable: Catch2's own, with skipped tests and a list of the cases for CTest.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/skip.hpp"

namespace {

constexpr int skipped_exit_code = 77;  // SKIP_RETURN_CODE of each test in CTest

int skipped = 0;

#if defined(CATCH_VERSION_MAJOR) && CATCH_VERSION_MAJOR >= 3
const std::string& name_of(const Catch::TestCaseHandle& test) { return test.getTestCaseInfo().name; }
std::string tags_of(const Catch::TestCaseHandle& test) {
  std::string tags;
  for (const Catch::Tag& tag : test.getTestCaseInfo().tags) tags += ";" + static_cast<std::string>(tag.original);
  return tags;
}
#else
const std::string& name_of(const Catch::TestCase& test) { return test.name; }
std::string tags_of(const Catch::TestCase& test) {
  std::string tags;
  for (const std::string& tag : test.tags) tags += ";" + tag;
  return tags;
}
#endif

/// The test specification of Catch2 that means this one name: the characters of its little language escaped, and
/// those of its options.
std::string exactly(const std::string& name) {
  std::string spec;
  for (char c : name) {
    if (std::strchr("\\,[]\"~-", c)) spec += '\\';
    spec += c;
  }
  return spec;
}

/// Writes `add_test` for each test case: each counts, times out and is skipped by itself, with its tags as labels.
void write_ctest(const Catch::Config& config, const char* program, const std::string& file, const std::string& prefix,
                 const std::string& labels, int timeout) {
  std::ostringstream out;
  for (const auto& test : Catch::getAllTestCasesSorted(config)) {
    const std::string tags = tags_of(test);
    if (tags.find(";.") != std::string::npos) continue;  // hidden: run by hand only
    const std::string name = "[==[" + prefix + name_of(test) + "]==]";
    const bool slow = (tags + ";").find(";slow;") != std::string::npos;
    out << "add_test(" << name << " [==[" << program << "]==] [==[" << exactly(name_of(test)) << "]==])\n"
        << "set_tests_properties(" << name << " PROPERTIES SKIP_RETURN_CODE " << skipped_exit_code << " TIMEOUT "
        << (slow ? 5 * timeout : timeout) << " LABELS [==[" << labels << tags << "]==])\n";
  }
  std::ofstream(file) << out.str();  // last: where Catch2 refuses a name there is no list, and CTest says not-built
}

}  // namespace

namespace cortex::test {

void skip(const std::string& reason) {
  ++skipped;
  std::cout << "SKIPPED: " << static_cast<std::string>(Catch::getResultCapture().getCurrentTestName()) << ": " << reason
            << std::endl;
  throw Catch::TestFailureException{};  // what a failed REQUIRE throws once it has reported: ends the case, reports
                                        // nothing
}

std::filesystem::path sst_directory() {
  const char* set = std::getenv("CORTEX_SST");
  const std::filesystem::path directory =
      set ? std::filesystem::path(set) : tests_directory() / "../../shared/data/sst";
  if (!std::filesystem::exists(directory / "train.txt")) {
    skip("no Stanford Sentiment Treebank in " + (set ? directory.string() : "../shared/data/sst") +
         "; set CORTEX_SST to the directory of train.txt, dev.txt and test.txt");
  }
  return std::filesystem::canonical(directory);
}

}  // namespace cortex::test

int main(int argc, char* argv[]) {
#ifdef __GLIBC__
  // Memory that is given back is asked for again at once, by the next run of the interpreter: a tenth of its time.
  mallopt(M_TRIM_THRESHOLD, 1 << 30), mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
  Catch::Session session;
  // --write-ctest FILE PREFIX LABELS TIMEOUT: called by the build after the executable is linked.
  if (argc == 6 && std::strcmp(argv[1], "--write-ctest") == 0) {
    write_ctest(session.config(), argv[0], argv[2], argv[3], argv[4], std::atoi(argv[5]));
    return 0;
  }
  const int failed = session.run(argc, argv);
  return failed == 0 && skipped > 0 ? skipped_exit_code : failed;
}
