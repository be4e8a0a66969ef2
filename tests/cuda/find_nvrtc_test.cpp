// Which NVRTC is taken where there are several, and what is said where it does not fit the driver.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// A folder with empty files in it.
struct Folder {
  fs::path path;
  explicit Folder(std::initializer_list<const char*> files) {
    std::string name = (fs::temp_directory_path() / "cortex-nvrtc-XXXXXX").string();
    if (!::mkdtemp(name.data())) skip("no directory can be made");
    path = name;
    for (const char* const file : files) std::ofstream(path / file);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

/// Sets a variable of the environment for as long as it lives.
struct Variable {
  const char* const name;
  const std::string before;
  Variable(const char* name, const std::string& value)
      : name(name), before(std::getenv(name) ? std::getenv(name) : "") {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before.empty() ? ::unsetenv(name) : ::setenv(name, before.c_str(), 1); }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("the NVRTC of the driver's major version comes first, then older ones, newer ones last", "[cuda]") {
  const auto names = [](int major) { return Names(jit::nvrtc_names(major, {})); };
  CHECK(names(13) == Names{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"});
  CHECK(names(12) == Names{"libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so", "libnvrtc.so.13"});
  CHECK(names(11) == Names{"libnvrtc.so.11.2", "libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13"});
  CHECK(names(14)[0] == "libnvrtc.so.14");
  CHECK(names(0) == names(13));
}

TEST_CASE("NVRTC of an install is looked for there, a fitting version anywhere before another one", "[cuda]") {
  const Folder first({"libnvrtc.so.13"}), second({"libnvrtc.so.12", "libnvrtc.so"});
  const jit::NvrtcPlaces places{"", {first.path.string(), second.path.string()}};
  CHECK(Names(jit::nvrtc_names(12, places)) == Names{"libnvrtc.so.12", second / "libnvrtc.so.12", "libnvrtc.so.11.2",
                                                     "libnvrtc.so", second / "libnvrtc.so", "libnvrtc.so.13",
                                                     first / "libnvrtc.so.13"});
}

TEST_CASE("where it is said in which file or folder NVRTC is, it is looked for nowhere else", "[cuda]") {
  const Folder folder({"libnvrtc.so.13", "libnvrtc.so.12"}), other({"libnvrtc.so.12"});
  const Vector<std::string> installs{other.path.string()};
  CHECK(Names(jit::nvrtc_names(12, {folder.path.string(), installs})) ==
        Names{folder / "libnvrtc.so.12", folder / "libnvrtc.so.13"});
  CHECK(Names(jit::nvrtc_names(12, {folder / "libnvrtc.so.13", installs})) == Names{folder / "libnvrtc.so.13"});
}

TEST_CASE("the environment says where NVRTC is, and an error names what it says", "[cuda]") {
  const Variable home("CUDA_HOME", "/home/of/cuda"), path("CUDA_PATH", "/path/of/cuda"), chosen("CORTEX_NVRTC", "");
  const jit::NvrtcPlaces places = jit::NvrtcPlaces::of_environment();
  CHECK(places.chosen.empty());
  CHECK(Names(places.folders) == Names{"/home/of/cuda/lib64", "/path/of/cuda/lib64", "/usr/local/cuda/lib64"});
  const Folder empty({});
  for (const std::string& wrong : {empty.path.string(), empty / "libnvrtc.so.12"}) {
    const Variable nowhere("CORTEX_NVRTC", wrong);
    std::string why;
    CHECK(!jit::find_nvrtc(why, 12040));
    CHECK_THAT(why, Contains("CORTEX_NVRTC says that NVRTC is " + wrong + ": "));
  }
}

namespace {

/// One that says that it is of that version and compiles for these architectures, in descending order.
template <int version, int... architecture>
std::shared_ptr<jit::Nvrtc> saying() {
  jit::Nvrtc nvrtc{};
  nvrtc.Version = [](int* major, int* minor) { return *major = version, *minor = 8, 0; };
  nvrtc.GetNumSupportedArchs = [](int* count) { return *count = sizeof...(architecture), 0; };
  nvrtc.GetSupportedArchs = [](int* all) { return ((*all++ = architecture), ...), 0; };
  return std::make_shared<jit::Nvrtc>(nvrtc);
}

}  // namespace

TEST_CASE("an NVRTC that does not compile for a device any more is passed over for an older one", "[cuda]") {
  bool has_older = true;
  const auto open = [&](const std::string& name, std::string& why) -> std::shared_ptr<jit::Nvrtc> {
    if (name == "libnvrtc.so.13") return saying<13, 90, 80, 75>();
    if (name == "libnvrtc.so.12" && has_older) return saying<12, 90, 70, 50>();
    return why = "no " + name, nullptr;
  };
  std::string why;
  const auto major_for = [&](int sm) {
    int major = 0, minor = 0;
    if (const auto found = jit::choose_nvrtc({}, 13, sm, why, open)) found->Version(&major, &minor);
    return major;
  };
  CHECK(major_for(0) == 13);
  CHECK(major_for(75) == 13);
  CHECK(major_for(70) == 12);
  has_older = false;
  CHECK(major_for(70) == 0);
  CHECK_THAT(why, Contains("NVRTC of CUDA 13.8 does not compile for compute capability 7.0") && Contains("CUDA 12"));
}

TEST_CASE("a device gets code for its own architecture, or the newest that its driver can make its own", "[cuda]") {
  const auto known = saying<12, 120, 101, 100, 90>();
  CHECK(jit::architecture_for(*known, 90) == 90);
  CHECK(jit::architecture_for(*known, 101) == 101);
  CHECK(jit::architecture_for(*known, 103) == 100);  // and not what is 11.0 by now
  CHECK(jit::architecture_for(*known, 110) == 101);
  CHECK(jit::architecture_for(*known, 121) == 120);
  CHECK(jit::architecture_for(*known, 80) == 0);
}

TEST_CASE("code by one NVRTC is not taken for that of another with the same version", "[cuda]") {
  const auto nvrtc = [](const std::string& name) {
    std::string log;
    const auto library = HostKernel::compile(
        "extern \"C\" void* emulator = nullptr;\n"
        "extern \"C\" int cortex_kernel(int* major, int* minor) { return *major = 12, *minor = 4, 0; }  // " +
            name + "\n",
        log);
    INFO(log);
    REQUIRE(library);
    jit::Nvrtc result{};
    result.Version = reinterpret_cast<decltype(result.Version)>(reinterpret_cast<void*>(library->entry));
    return result;
  };
  const auto key = [](const jit::Nvrtc& by) { return jit::detail::key_of(by, {"--gpu-architecture=sm_90"}, "source"); };
  const jit::Nvrtc one = nvrtc("one"), other = nvrtc("other");
  CHECK(jit::version_of(one) == jit::version_of(other));
  CHECK(key(one) == key(one));
  CHECK(!(key(one) == key(other)));
}

TEST_CASE("a driver that refuses code is named with its version and NVRTC's, and with what to do", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  fake.driver_version = 12040;
  for (const std::string& said :
       {error_of_call([&] { model.to(cuda::Device(fake.device())); }), error_of_call([&] { on.resident(); })}) {
    CHECK_THAT(said,
               Contains("unavailable: CUDA_ERROR") &&
                   Contains("cuModuleLoadDataEx of code by NVRTC 13.0, with a driver of CUDA 12.4 on emulated GPU"));
    CHECK_THAT(said, Contains("cannot load code from an NVRTC newer than its own CUDA version") &&
                         Contains("CORTEX_NVRTC") && Contains("ptxas: as the test asked"));
  }
  fake.driver_version = 13010;
  on.resident();
}
