// Reading and writing safetensors: what is right, and everything that is refused.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cfenv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "weights/support.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Contains;

namespace {

std::string refusal(std::vector<std::byte> bytes) {
  return refused_by("the file", [&] { SafetensorsFile::from_bytes(std::move(bytes), "the file"); });
}
std::string refusal(const std::string& header, std::size_t data) { return refusal(bytes_of(header, data)); }

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}
std::string tensor_t(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"t\":" + entry(dtype, shape, offsets) + "}";
}

/// Every finite value of a 16-bit format is the nearest to all floats up to the midpoints, which go to the even one.
template <class From, class To>
int wrongly_rounded(std::uint16_t infinity, From from, To to) {
  int wrong = 0;
  for (std::uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const std::uint16_t next = std::uint16_t(bits + 1);
    const float middle = float((double(from(bits)) + double(from(next))) / 2);
    for (const std::uint16_t sign : {0x0000, 0x8000}) {
      const auto of = [&](float value) { return to(sign ? -value : value); };
      wrong += of(middle) != (sign | (bits % 2 ? next : bits));
      wrong += of(std::nextafter(middle, 0.0f)) != (sign | bits);
      wrong += of(std::nextafter(middle, INFINITY)) != (sign | next);
    }
  }
  return wrong;
}

/// Every pattern is read, and written as it was; NaN stays NaN, of the same sign.
template <class From, class To>
int changed(From from, To to) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = from(std::uint16_t(bits));
    const std::uint16_t back = to(value);
    wrong += std::isnan(value) ? !std::isnan(from(back)) || (back ^ bits) & 0x8000 : back != bits;
  }
  return wrong;
}

}  // namespace

// ---- the 16-bit formats ----

TEST_CASE("all 65536 binary16 have the value that their definition says", "[weights]") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = from_f16(std::uint16_t(bits));
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                             : exponent     ? std::ldexp(1024.0 + fraction, exponent - 25)
                                            : std::ldexp(double(fraction), -24);
    wrong += std::signbit(value) != bool(bits & 0x8000);
    wrong += std::isnan(magnitude) ? !std::isnan(value) : std::abs(value) != magnitude;
  }
  CHECK(wrong == 0);
}

TEST_CASE("all 65536 patterns of both 16-bit formats are read and written back", "[weights]") {
  CHECK(changed(from_f16, to_f16) == 0);
  CHECK(changed(from_bf16, to_bf16) == 0);
}

TEST_CASE("floats become the nearest 16-bit value, ties to even", "[weights]") {
  CHECK(wrongly_rounded(0x7C00, from_f16, to_f16) == 0);
  CHECK(wrongly_rounded(0x7F80, from_bf16, to_bf16) == 0);
}

TEST_CASE("floats beyond the range of a 16-bit format become infinity", "[weights]") {
  CHECK(to_f16(65519.996f) == 0x7BFF);
  CHECK(to_f16(65520) == 0x7C00);
  CHECK(to_f16(-INFINITY) == 0xFC00);
  CHECK(to_f16(0x1p-25f) == 0);
  CHECK(to_f16(std::nextafter(0x1p-25f, 1.0f)) == 1);
  CHECK(to_bf16(std::bit_cast<float>(0x7F7F7FFFu)) == 0x7F7F);
  CHECK(to_bf16(std::numeric_limits<float>::max()) == 0x7F80);
}

// ---- reading ----

TEST_CASE("a file of the reference implementation is read, whatever its types", "[weights]") {
  const auto file = SafetensorsFile::open(fixtures / "dtypes.safetensors");
  const std::vector<double> common{0.0, -0.0, 1.0, -2.5, 0.15625, INFINITY, -INFINITY, 0x1p-14};
  const auto all = [&](std::initializer_list<double> more) {
    auto values = common;
    values.insert(values.end(), more);
    return values;
  };
  CHECK(file.read<double>("f64") == all({1e300, 0.1}));
  CHECK(file.read<double>("f32") == common);
  CHECK(file.read<double>("f16") == all({65504, 0x1p-24}));
  CHECK(file.read<double>("bf16") == all({0x1p127, 0x1p-126}));
  CHECK(std::signbit(file.read<float>("f16")[1]));
  CHECK(file.read<float>("f64")[9] == 0.1f);
  CHECK(file.read<std::int64_t>("i64") == std::vector<std::int64_t>{0, -1, INT64_MAX, INT64_MIN});
  CHECK(file.read<std::int32_t>("i32") == std::vector<std::int32_t>{0, -1, INT32_MAX, INT32_MIN, 7, 42});
  CHECK(file.read<std::int64_t>("i32")[3] == INT32_MIN);
  CHECK(file.read<std::uint8_t>("u8") == std::vector<std::uint8_t>{0, 1, 127, 128, 255});
  CHECK(file.read<int>("bool") == std::vector<int>{1, 0, 1});
  CHECK(file.read<float>("scalar") == std::vector<float>{3.5f});
  CHECK(file.tensor("scalar").shape.empty());
  CHECK(file.tensor("empty").shape == std::vector<std::int64_t>{0, 3});
  CHECK(file.read<float>("empty").empty());
  CHECK(file.tensor("i32").shape == std::vector<std::int64_t>{2, 1, 3});
  CHECK(file.names().size() == 10);
  CHECK(file.metadata().at("note") == "quotes \" and \\ and \xc3\xa9 and a\nnew line");
}

TEST_CASE("files of the reference implementation may lack metadata, and tensors", "[weights]") {
  CHECK(SafetensorsFile::open(fixtures / "no_metadata.safetensors").metadata().empty());
  CHECK(SafetensorsFile::open(fixtures / "no_tensors.safetensors").names().empty());
}

TEST_CASE("a tensor is read as a type that holds it, and no other", "[weights][refusal]") {
  const auto file = SafetensorsFile::open(fixtures / "dtypes.safetensors");
  const std::string source = file.source();
  CHECK_THAT(refused_by(source, [&] { file.read<float>("i64"); }),
             Contains("'i64' holds I64, which cannot be read as F32"));
  CHECK_THAT(refused_by(source, [&] { file.read<std::int64_t>("f64"); }), Contains("cannot be read as I64"));
  CHECK_THAT(refused_by(source, [&] { file.read<std::int32_t>("i64"); }), Contains("cannot be read as I32"));
  CHECK_THAT(refused_by(source, [&] { file.read<std::uint64_t>("i32"); }), Contains("cannot be read as U64"));
  CHECK_THAT(refused_by(source, [&] { file.read<std::int8_t>("u8"); }), Contains("cannot be read as I8"));
  CHECK(file.read<std::int16_t>("u8")[4] == 255);
}

TEST_CASE("a name that the file does not have is answered with those near it", "[weights][refusal]") {
  const auto file = SafetensorsFile::open(fixtures / "dtypes.safetensors");
  const auto answer = [&](const std::string& name) { return refused_by(file.source(), [&] { file.tensor(name); }); };
  CHECK_THAT(answer("scaler"), Contains("no tensor 'scaler'; did you mean 'scalar'?"));
  CHECK_THAT(answer("encoder.F32.weight"), Contains("did you mean 'f32'?"));
  CHECK_THAT(answer("hidden_to_hidden"), Contains("it has 'bf16', 'bool', 'empty', 'f16', 'f32' and 5 more"));
}

// ---- what is no safetensors file ----

TEST_CASE("a file whose header is cut off or too long is refused", "[weights][refusal]") {
  CHECK(refusal(tensor_t("F32", "[2]", "[0,8]"), 8) == "no error");
  CHECK_THAT(refusal(std::vector<std::byte>(0)), Contains("it has 0 bytes"));
  CHECK_THAT(refusal(std::vector<std::byte>(7)), Contains("it has 7 bytes"));
  auto cut = bytes_of(tensor_t("F32", "[2]", "[0,8]"), 8);
  cut.resize(30);
  CHECK_THAT(refusal(cut), Contains("cut off"));
  cut[7] = std::byte(0xFF);
  CHECK_THAT(refusal(cut), Contains("bytes long, and the format allows"));
}

TEST_CASE("a header that is not one JSON object is refused", "[weights][refusal]") {
  const std::string good = tensor_t("F32", "[]", "[0,4]");
  CHECK(refusal(good + "   ", 4) == "no error");
  CHECK_THAT(refusal("", 0), Contains("no JSON object"));
  CHECK_THAT(refusal("[1]", 0), Contains("no JSON object"));
  CHECK_THAT(refusal(" " + good, 4), Contains("does not begin with '{'"));
  CHECK_THAT(refusal("\xEF\xBB\xBF" + good, 4), Contains("does not begin with '{'"));
  CHECK_THAT(refusal("{\"t\":", 0), Contains("no valid JSON"));
  CHECK_THAT(refusal(good + "{}", 4), Contains("no valid JSON"));
  CHECK_THAT(refusal("{\"\xFF\":{}}", 0), Contains("no valid JSON"));
  CHECK_THAT(refusal("{\"t\":1e999}", 0), Contains("no valid JSON"));
  CHECK_THAT(refusal(good + std::string("\0{", 2), 4), Contains("null character"));
}

TEST_CASE("a file may have very many tensors", "[weights]") {
  constexpr int count = 20000;  // each of which is to be read without a look at all others
  std::string header = "{";
  for (int t = 0; t < count; ++t)
    header += (t ? ",\"" : "\"") + std::to_string(t) + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[" +
              std::to_string(t) + "," + std::to_string(t + 1) + "]}";
  const auto file = SafetensorsFile::from_bytes(bytes_of(header + "}", count));
  for (const char* name : {"0", "19999"}) CHECK(file.tensor(name).shape == std::vector<std::int64_t>{1});
  CHECK(refused_by(file.source(), [&] { file.tensor("20000"); }) != "no error");
}

TEST_CASE("a header that nests as deep as it is long is refused, and takes no stack", "[weights][refusal]") {
  const std::string open(1000000, '['), close(1000000, ']');
  CHECK_THAT(refusal(tensor_t("F32", open + close, "[0,4]"), 4), Contains("nests deeper"));
  CHECK_THAT(refusal(tensor_t("F32", "[[1]]", "[0,4]"), 4), Contains("nests deeper"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK_THAT(refusal(objects, 0), Contains("tensor 'a': its entry has 'a'"));
  CHECK_THAT(refusal(tensor_t("F32", "{\"shape\":[]}", "[0,4]"), 4), Contains("its shape is no list"));
  CHECK_THAT(refusal(tensor_t("F32", "[{}]", "[0,4]"), 4), Contains("nests deeper"));
}

TEST_CASE("a name that is used twice is refused, at any level", "[weights][refusal]") {
  const std::string e = entry("U8", "[0]", "[0,0]");
  CHECK_THAT(refusal("{\"a\":" + e + ",\"b\":" + e + ",\"a\":" + e + "}", 0), Contains("names 'a' twice"));
  CHECK_THAT(refusal("{\"a\":" + e + ",\"\\u0061\":" + e + "}", 0), Contains("names 'a' twice"));
  CHECK_THAT(refusal("{\"__metadata__\":{},\"__metadata__\":{}}", 0), Contains("'__metadata__' twice"));
  CHECK_THAT(refusal("{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0), Contains("'k' twice"));
  CHECK_THAT(refusal("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0), Contains("'dtype' twice"));
}

TEST_CASE("metadata that are not texts are refused", "[weights][refusal]") {
  CHECK_THAT(refusal("{\"__metadata__\":{\"a\":1}}", 0), Contains("__metadata__: 'a' is no text"));
  CHECK_THAT(refusal("{\"__metadata__\":\"a\"}", 0), Contains("__metadata__ is no JSON object"));
}

TEST_CASE("an entry that lacks something or has what is unknown is refused, and the tensor named",
          "[weights][refusal]") {
  const auto of = [](const std::string& text) { return refusal("{\"t\":" + text + "}", 4); };
  CHECK_THAT(of("3"), Contains("tensor 't': its entry is no JSON object"));
  CHECK_THAT(of("{\"dtype\":\"F32\",\"shape\":[]}"), Contains("tensor 't': it has no 'data_offsets'"));
  CHECK_THAT(of("{\"dtype\":\"F32\",\"data_offsets\":[0,4]}"), Contains("tensor 't': it has no 'shape'"));
  CHECK_THAT(of("{\"shape\":[],\"data_offsets\":[0,4]}"), Contains("tensor 't': it has no 'dtype'"));
  CHECK_THAT(of("{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"x\":1}"), Contains("its entry has 'x'"));
  CHECK_THAT(of(entry("F33", "[]", "[0,4]")), Contains("tensor 't': its dtype is 'F33'"));
  CHECK_THAT(of("{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,4]}"), Contains("its dtype is no text"));
}

TEST_CASE("a shape that is none is refused, and the tensor named", "[weights][refusal]") {
  const auto of = [](const std::string& shape) { return refusal(tensor_t("F32", shape, "[0,8]"), 8); };
  CHECK_THAT(of("2"), Contains("tensor 't': its shape is no list"));
  CHECK_THAT(of("[-2]"), Contains("tensor 't': its shape holds -2, which is no count"));
  CHECK_THAT(of("[2.0]"), Contains("2.0, which is no count"));
  CHECK_THAT(of("[\"2\"]"), Contains("a string, which is no count"));
  CHECK_THAT(of("[18446744073709551617]"), Contains("which is no count"));
  CHECK_THAT(of("[9223372036854775808]"), Contains("9223372036854775808, which is no count"));
  CHECK_THAT(of("[4294967296,4294967296]"), Contains("more elements than can be counted"));
  CHECK_THAT(of("[3]"), Contains("take 8 bytes, but [3] of F32 takes 12"));
}

TEST_CASE("elements that are not where the file has them are refused, and the tensor named", "[weights][refusal]") {
  const auto of = [](const std::string& offsets, std::size_t data) {
    return refusal(tensor_t("F32", "[2]", offsets), data);
  };
  CHECK_THAT(of("[0]", 8), Contains("tensor 't': its data_offsets are not two numbers"));
  CHECK_THAT(of("[8,0]", 8), Contains("tensor 't': its elements are said to lie at bytes 8 to 0"));
  CHECK_THAT(of("[-8,0]", 8), Contains("data_offsets holds -8"));
  CHECK_THAT(of("[4,12]", 8), Contains("the file has 8 bytes of elements"));
  CHECK_THAT(of("[4,12]", 12), Contains("tensor 't': 4 bytes before its elements belong to no tensor"));
  CHECK_THAT(of("[0,8]", 9), Contains("1 bytes at its end belong to no tensor"));
  CHECK_THAT(refusal("{}", 1), Contains("1 bytes at its end belong to no tensor"));
  const auto two = [](const std::string& b) {
    return refusal("{\"a\":" + entry("U8", "[4]", "[0,4]") + ",\"b\":" + b + "}", 7);
  };
  CHECK_THAT(two(entry("U8", "[5]", "[2,7]")), Contains("tensor 'b': its elements overlap"));
  CHECK_THAT(two(entry("U8", "[2]", "[5,7]")), Contains("tensor 'b': 1 bytes before"));
  CHECK(two(entry("U8", "[3]", "[4,7]")) == "no error");
}

TEST_CASE("elements need not be aligned", "[weights]") {
  auto bytes = bytes_of("{\"a\":" + entry("U8", "[1]", "[0,1]") + ",\"b\":" + entry("F64", "[1]", "[1,9]") + "}", 9);
  const double value = 0.1;
  std::memcpy(&bytes[bytes.size() - 8], &value, 8);
  const auto file = SafetensorsFile::from_bytes(bytes);
  CHECK(file.read<double>("b")[0] == 0.1);
  CHECK(file.read<float>("b")[0] == 0.1f);
}

TEST_CASE("a file with bytes changed is read or refused, and nothing worse", "[weights]") {
  const auto good = contents(fixtures / "dtypes.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, good.data(), 8);
  std::mt19937 random(7);
  const std::string likely = "0123456789[]{}\",:-.eE\\ \0";  // such bytes get further into the reader
  int refused = 0, read = 0;
  const auto attempt_with = [&](std::vector<std::byte> bytes) {
    auto file = SafetensorsFile::try_from_bytes(std::move(bytes));
    if (!file) return refused += file.error().code == Code::invalid_weights, void();
    ++read;
    for (const std::string& name : file->names()) {
      const TensorView& tensor = file->tensor(name);
      if (weights::is_floating(tensor.type))
        CHECK(file->read<float>(name).size() == std::size_t(tensor.size()));
      else if (tensor.type != TensorType::U64)
        CHECK(file->read<std::int64_t>(name).size() == std::size_t(tensor.size()));
    }
  };
  int attempts = 0;
  for (std::size_t at = 0; at < 8 + header; ++at) {  // each byte of the header
    for (int i = 0; i < 6; ++i, ++attempts) {
      auto bytes = good;
      bytes[at] = i < 3 ? std::byte(random()) : std::byte(likely[random() % likely.size()]);
      attempt_with(std::move(bytes));
    }
  }
  for (int i = 0; i < 2000; ++i, ++attempts) {  // several, and the file cut off
    auto bytes = good;
    for (int change = 1 + int(random() % 4); change > 0; --change)
      bytes[8 + random() % header] = std::byte(likely[random() % likely.size()]);
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    attempt_with(std::move(bytes));
  }
  CHECK(refused + read == attempts);
  CHECK(refused > 3000);
  CHECK(read > 100);
}

TEST_CASE("a file that cannot be read says why", "[weights][refusal]") {
  CHECK_THAT(refused_by("'/no/such/file'", [] { SafetensorsFile::open("/no/such/file"); }),
             Contains("cannot be opened: No such file"));
  CHECK_THROWS_WITH(SafetensorsFile::open(CORTEX_TEST_DIR), Contains("is a folder"));
  CHECK_THROWS_WITH(SafetensorsFile::open("/dev/null"), Contains("is no regular file"));
  const std::filesystem::path pipe =
      std::filesystem::temp_directory_path() / ("cortex_pipe" + std::to_string(::getpid()));
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(write_safetensors(pipe, {}), Contains("is no regular file"));
  CHECK(std::filesystem::is_fifo(pipe));
  std::filesystem::remove(pipe);
  CHECK(SafetensorsFile::try_open("/no/such/file").error().code == Code::invalid_weights);
}

// ---- writing ----

TEST_CASE("what is written is read back bit for bit, whatever its type", "[weights]") {
  const TemporaryFolder folder;
  const std::vector<float> f{1, -0.0f, INFINITY, 3.25f, 1e-42f, std::bit_cast<float>(0x7FC12345u)};
  const std::vector<double> d{0.1, 1e300};
  const std::vector<std::int8_t> i8{-128, 127, 0};
  const std::vector<std::uint64_t> u64{UINT64_MAX};
  const std::vector<std::int64_t> i64{INT64_MIN};
  const bool yes_no[] = {true, false};
  write_safetensors(folder / "a",
                    {{"i8", {3}, i8},
                     {"f", {2, 3}, f},
                     {"d", {2, 1}, d},
                     {"u64", {1}, u64},
                     {"i64", {}, i64},
                     {"bool", {2}, yes_no},
                     {"none", {0, 4}, {}}},
                    {{"made by", "a \"test\""}});
  const auto file = SafetensorsFile::open(folder / "a");
  CHECK(std::memcmp(file.read<float>("f").data(), f.data(), f.size() * sizeof(float)) == 0);
  CHECK(file.tensor("f").shape == std::vector<std::int64_t>{2, 3});
  CHECK(file.read<double>("d") == d);
  CHECK(file.read<std::int8_t>("i8") == i8);
  CHECK(file.read<std::uint64_t>("u64") == u64);
  CHECK(file.read<std::int64_t>("i64") == i64);
  CHECK(file.tensor("bool").type == TensorType::BOOL);
  CHECK(file.read<int>("bool") == std::vector<int>{1, 0});
  CHECK(file.read<float>("none").empty());
  CHECK(file.metadata().at("made by") == "a \"test\"");
  for (const std::string& name : file.names())  // aligned in the file, and so in memory
    CHECK(reinterpret_cast<std::uintptr_t>(file.tensor(name).bytes.data()) % size_of(file.tensor(name).type) == 0);
}

TEST_CASE("floats are stored as 16-bit values where that is asked for", "[weights]") {
  const TemporaryFolder folder;
  const std::vector<float> values{0.5f, 1.0f + 0x1p-20f};
  write_safetensors(folder / "a", {{"h", {2}, values, TensorType::F16}, {"b", {2}, values, TensorType::BF16}});
  const auto file = SafetensorsFile::open(folder / "a");
  CHECK(file.tensor("h").type == TensorType::F16);
  CHECK(file.tensor("b").type == TensorType::BF16);
  CHECK(file.read<float>("h") == std::vector<float>{0.5f, 1.0f});
  CHECK(file.read<float>("b") == std::vector<float>{0.5f, 1.0f});
}

TEST_CASE("numbers are rounded to the nearest, whatever the thread does otherwise", "[weights]") {
  const TemporaryFolder folder;
  const std::vector<double> doubles{1e-40, 0.1};  // the first one is subnormal as a float
  const std::vector<float> floats{3e-6f, 0.1f};   // and subnormal in binary16
  const auto bits_of_all = [&] {
    write_safetensors(folder / "a", {{"d", {2}, doubles}, {"h", {2}, floats, TensorType::F16}});
    const auto file = SafetensorsFile::open(folder / "a");
    std::vector<std::uint32_t> bits(3);
    std::memcpy(bits.data(), file.read<float>("d").data(), 8);
    std::memcpy(&bits[2], file.tensor("h").bytes.data(), 4);
    return bits;
  };
  const auto usual = bits_of_all();
  CHECK(usual == std::vector<std::uint32_t>{0x000116C2, 0x3DCCCCCD, 0x2E660032});
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const auto otherwise = bits_of_all();
    std::fesetround(FE_TONEAREST);
    CHECK(otherwise == usual);
  }
#if defined(__x86_64__)
  const unsigned settings = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(settings | 0x8040);  // without subnormals, as -ffast-math has it
  const auto without = bits_of_all();
  __builtin_ia32_ldmxcsr(settings);
  CHECK(without == usual);
#endif
}

TEST_CASE("a temporary is kept until it is written, and copies share it", "[weights]") {
  const TemporaryFolder folder;
  std::vector<TensorToWrite> tensors;
  for (int t = 0; t < 3; ++t)
    tensors.push_back({"W" + std::to_string(t), {1000}, std::vector<float>(1000, float(t + 1))});
  const std::vector<TensorToWrite> copies = tensors;
  tensors.clear();
  write_safetensors(folder / "a", copies);
  const auto file = SafetensorsFile::open(folder / "a");
  for (int t = 0; t < 3; ++t)
    CHECK(file.read<float>("W" + std::to_string(t)) == std::vector<float>(1000, float(t + 1)));
}

TEST_CASE("a link leads to the file that is written, which keeps its permissions", "[weights]") {
  const TemporaryFolder folder;
  const std::vector<float> one{1}, two{2};
  write_safetensors(folder / "real", {{"t", {1}, one}});
  const auto private_to_owner = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(folder / "real", private_to_owner);
  std::filesystem::create_symlink("real", folder / "link");
  write_safetensors(folder / "link", {{"t", {1}, two}});
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::status(folder / "real").permissions() == private_to_owner);
  CHECK(SafetensorsFile::open(folder / "real").read<float>("t") == two);
  CHECK(folder.files() == 2);
}

TEST_CASE("links are followed to a file that is not there yet, and no further than to themselves", "[weights]") {
  const TemporaryFolder folder;
  const std::vector<float> one{1};
  std::filesystem::create_directory(folder / "new");
  std::filesystem::create_symlink("new/real", folder / "link");
  std::filesystem::create_symlink("link", folder / "link of a link");
  write_safetensors(folder / "link of a link", {{"t", {1}, one}});
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(std::filesystem::is_symlink(folder / "link of a link"));
  CHECK(SafetensorsFile::open(folder / "new" / "real").read<float>("t") == one);

  std::filesystem::create_symlink("self", folder / "self");
  CHECK_THROWS_WITH(write_safetensors(folder / "self", {{"t", {1}, one}}), Contains("symbolic links"));
  CHECK(folder.files() == 4);
}

TEST_CASE("tensors of a file are written to another as they are, and twice gives the same bytes", "[weights]") {
  const TemporaryFolder folder;
  const auto file = SafetensorsFile::open(fixtures / "dtypes.safetensors");
  std::vector<TensorToWrite> tensors;
  for (const std::string& name : file.names()) tensors.push_back({name, file.tensor(name).shape, file.tensor(name)});
  write_safetensors(folder / "a", tensors, file.metadata());
  write_safetensors(folder / "b", tensors, file.metadata());
  const auto copy = SafetensorsFile::open(folder / "a");
  CHECK(copy.names() == file.names());
  CHECK(copy.metadata() == file.metadata());
  for (const std::string& name : file.names()) {
    const TensorView &was = file.tensor(name), &is = copy.tensor(name);
    INFO(name);
    CHECK((is.type == was.type && is.shape == was.shape));
    CHECK(std::equal(is.bytes.begin(), is.bytes.end(), was.bytes.begin(), was.bytes.end()));
  }
  CHECK(contents(folder / "a") == contents(folder / "b"));
}

TEST_CASE("what cannot be written is refused, and the old file stays", "[weights][refusal]") {
  const TemporaryFolder folder;
  const std::vector<float> one{1};
  const std::vector<double> precise{1};
  write_safetensors(folder / "a", {{"old", {1}, one}});
  const auto old = contents(folder / "a");
  const auto of = [&](const std::vector<TensorToWrite>& tensors) {
    return refused_by("'" + (folder / "a").string() + "'", [&] { write_safetensors(folder / "a", tensors); });
  };
  CHECK_THAT(of({{"t", {2}, one}}), Contains("tensor 't' cannot be written: its shape [2] holds 2 elements, but 1"));
  CHECK_THAT(of({{"t", {-1}, one}}), Contains("its shape [-1] is none"));
  CHECK_THAT(of({{"t", {INT64_MAX, 2}, one}}), Contains("is none"));
  CHECK_THAT(of({{"t", {1}, one}, {"t", {1}, one}}), Contains("tensor 't' cannot be written: the name is taken"));
  CHECK_THAT(of({{"__metadata__", {1}, one}}), Contains("the name is taken"));
  CHECK_THAT(of({{"t", {1}, one, TensorType::I32}}), Contains("F32 is not stored as I32"));
  CHECK_THAT(of({{"t", {1}, precise, TensorType::F16}}), Contains("F64 is not stored as F16"));
  CHECK_THAT(of({{"\xFF", {1}, one}}), Contains("no valid UTF-8"));
  CHECK(contents(folder / "a") == old);
  CHECK(folder.files() == 1);
}

TEST_CASE("a path that cannot be written says why", "[weights][refusal]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(write_safetensors("/no/such/folder/file", {}), Contains("cannot be written: No such file"));
  std::filesystem::create_directory(folder / "a");
  CHECK_THROWS_WITH(write_safetensors(folder / "a", {}), Contains("cannot be written: Is a directory"));
  CHECK(try_write_safetensors(folder / "a", {}).error().code == Code::invalid_weights);
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that does not fit on the disk leaves the old one as it was", "[weights][refusal]") {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {});
  const auto old = contents(folder / "a");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::vector<float> many(4096);
  const auto written = try_write_safetensors(folder / "a", {{"t", {4096}, many}});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE(!written);
  CHECK_THAT(written.error().message, Contains("cannot be written: File too large"));
  CHECK(contents(folder / "a") == old);
  CHECK(folder.files() == 1);
}

TEST_CASE("a name of megabytes is near none, and messages show its beginning", "[weights][refusal]") {
  const std::string name(std::size_t(40) << 20, 'x');
  const auto bytes = bytes_of("{\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4);
  const SafetensorsFile file = SafetensorsFile::from_bytes(bytes, "long");
  const std::string message = refused_by(file.source(), [&] { file.tensor(std::string(100, 'x')); });
  CHECK_THAT(message, Catch::Contains("it has '" + std::string(200, 'x') + "...' of 41943040 bytes"));
  CHECK(message.size() < 1000);
  CHECK(near_names(name, std::vector<std::string>{"a", "b"}) == "it has 'a', 'b'");
  // Characters of UTF-8 stay whole.
  CHECK(in_quotes("a\u00e4\u00e4", 4) == "'a\u00e4...' of 5 bytes");
  CHECK(in_quotes("a\u00e4\u00e4", 5) == "'a\u00e4\u00e4'");
}
