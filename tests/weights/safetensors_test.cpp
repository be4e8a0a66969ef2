// Reading, writing and binding safetensors: what is right, and everything that is refused.
#include "cortex/weights/safetensors.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>

#include "cortex/cortex.hpp"
#include "support/models.hpp"

using namespace cortex;

namespace {

std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(CORTEX_TEST_DIR) / "fixtures" / "safetensors" / name;
}

std::vector<std::byte> bytes_of(const std::string& header, std::size_t data) {
  std::vector<std::byte> bytes(8 + header.size() + data);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

std::string refusal(std::vector<std::byte> bytes) {
  try {
    SafetensorsFile::from_bytes(std::move(bytes), "the file");
  } catch (const Error& error) {
    CHECK(error.code == Code::invalid_weights);
    CHECK(error.message.rfind("the file: ", 0) == 0);
    return error.message;
  }
  return "no error";
}
std::string refusal(const std::string& header, std::size_t data) { return refusal(bytes_of(header, data)); }

/// A file that is gone when the test is over.
struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("cortex_test_" + std::to_string(std::random_device()()));
  ~TemporaryFile() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("a file of the reference implementation is read, whatever its types", "[weights]") {
  const auto file = SafetensorsFile::open(fixture("dtypes.safetensors"));
  for (const std::string& name : file.names()) {
    const TensorView& t = file.tensor(name);
    INFO(name << " " << to_string(t.type));
    if (weights::is_floating(t.type))
      CHECK(file.read<double>(name).size() == std::size_t(t.size()));
    else
      CHECK(file.read<std::int64_t>(name).size() == std::size_t(t.size()));
  }
  CHECK(file.names().size() >= 10);
  CHECK_FALSE(file.metadata().empty());
  CHECK(SafetensorsFile::open(fixture("no_metadata.safetensors")).metadata().empty());
  CHECK(SafetensorsFile::open(fixture("no_tensors.safetensors")).names().empty());
}

TEST_CASE("all 65536 binary16 are read and written exactly", "[weights]") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = weights::from_f16(std::uint16_t(bits));
    const std::uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const double magnitude =
        exponent ? std::ldexp(1024.0 + fraction, int(exponent) - 25) : std::ldexp(double(fraction), -24);
    if (exponent < 31) CHECK(double(value) == (bits & 0x8000 ? -magnitude : magnitude));
    if (std::isnan(value))
      CHECK((exponent == 31 && fraction != 0));
    else
      CHECK(weights::to_f16(value) == bits);
  }
}

TEST_CASE("floats become the nearest binary16, ties to even", "[weights]") {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const float value = std::ldexp(float(random()) / 4294967296.0f - 0.5f, int(random() % 50) - 30);
    const std::uint16_t bits = weights::to_f16(value);
    const double got = weights::from_f16(bits), off = std::abs(got - double(value));
    if (std::abs(value) >= 65520) {
      CHECK(std::isinf(got));
      continue;
    }
    for (const int step : {-1, 1}) {
      const double other = weights::from_f16(std::uint16_t(bits + step));
      if (std::isfinite(other) && std::signbit(other) == std::signbit(got)) {
        const double other_off = std::abs(other - double(value));
        CHECK((off < other_off || (off == other_off && bits % 2 == 0)));
      }
    }
  }
  CHECK(weights::to_f16(65520) == 0x7C00);
  CHECK(weights::to_f16(65519.99f) == 0x7BFF);
  CHECK(weights::to_f16(-INFINITY) == 0xFC00);
  CHECK(std::isnan(weights::from_f16(weights::to_f16(NAN))));
}

TEST_CASE("bfloat16 is the upper half of a float, rounded to even", "[weights]") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = weights::from_bf16(std::uint16_t(bits));
    if (!std::isnan(value)) CHECK(weights::to_bf16(value) == bits);
  }
  CHECK(weights::to_bf16(std::bit_cast<float>(0x3F808000u)) == 0x3F80);  // a tie goes to the even one
  CHECK(weights::to_bf16(std::bit_cast<float>(0x3F818000u)) == 0x3F82);
  CHECK(weights::to_bf16(std::bit_cast<float>(0x3F808001u)) == 0x3F81);
  CHECK(std::isnan(weights::from_bf16(weights::to_bf16(NAN))));
}

TEST_CASE("what is written is read back bit for bit", "[weights]") {
  const TemporaryFile temporary;
  const std::vector<float> a{1, -0.0f, INFINITY, 3.25f, 1e-42f, -7}, b{0.5f, 2};
  write_safetensors(temporary.path,
                    {{"a", {2, 3}, a},
                     {"b", {2}, b, TensorType::F16},
                     {"none", {0, 4}, {}},
                     {"one", {}, std::span(b).first(1), TensorType::BF16}},
                    {{"made by", "a test"}});
  const auto file = SafetensorsFile::open(temporary.path);
  CHECK(std::memcmp(file.read<float>("a").data(), a.data(), a.size() * 4) == 0);
  CHECK(file.tensor("a").shape == std::vector<std::int64_t>{2, 3});
  CHECK(file.read<float>("b") == b);
  CHECK(file.read<float>("none").empty());
  CHECK(file.read<float>("one") == std::vector<float>{0.5f});
  CHECK(file.metadata().at("made by") == "a test");
}

TEST_CASE("what does not add up is refused, and the tensor named", "[weights][refusal]") {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  CHECK(refusal(entry("F32", "[2]", "[0,8]"), 8) == "no error");
  CHECK_THAT(refusal(std::vector<std::byte>(5)), Catch::Contains("5 bytes"));
  auto cut = bytes_of(entry("F32", "[2]", "[0,8]"), 8);
  cut.resize(30);
  CHECK_THAT(refusal(cut), Catch::Contains("cut off"));
  cut[7] = std::byte(0xFF);
  CHECK_THAT(refusal(cut), Catch::Contains("bytes long; the format allows"));
  CHECK_THAT(refusal("{\"t\":", 0), Catch::Contains("no valid JSON"));
  CHECK_THAT(refusal("[1]", 0), Catch::Contains("no JSON object"));
  CHECK_THAT(refusal("{\"t\":3}", 0), Catch::Contains("tensor 't': its entry is no JSON object"));
  CHECK_THAT(refusal("{\"t\":{\"dtype\":\"F32\",\"shape\":[]}}", 4),
             Catch::Contains("tensor 't': it has no 'data_offsets'"));
  CHECK_THAT(refusal("{\"a\":{},\"a\":{}}", 0), Catch::Contains("names 'a' twice"));
  CHECK_THAT(refusal(entry("F33", "[2]", "[0,8]"), 8), Catch::Contains("its dtype is 'F33'"));
  CHECK_THAT(refusal(entry("F32", "[3]", "[0,8]"), 8), Catch::Contains("take 8 bytes, but [3] of F32 takes 12"));
  CHECK_THAT(refusal(entry("F32", "[-2]", "[0,8]"), 8), Catch::Contains("-2, which is no count"));
  CHECK_THAT(refusal(entry("F32", "[2.0]", "[0,8]"), 8), Catch::Contains("2.0, which is no count"));
  CHECK_THAT(refusal(entry("F32", "2", "[0,8]"), 8), Catch::Contains("its shape is no list"));
  CHECK_THAT(refusal(entry("F32", "[4294967296,4294967296]", "[0,8]"), 8),
             Catch::Contains("more elements than can be counted"));
  CHECK_THAT(refusal(entry("F32", "[2]", "[0]"), 8), Catch::Contains("not two numbers"));
  CHECK_THAT(refusal(entry("F32", "[2]", "[8,0]"), 8), Catch::Contains("bytes 8 to 0"));
  CHECK_THAT(refusal(entry("F32", "[2]", "[4,12]"), 8), Catch::Contains("the file has 8 bytes"));
  CHECK_THAT(refusal(entry("F32", "[2]", "[4,12]"), 12), Catch::Contains("4 bytes before its elements"));
  CHECK_THAT(refusal(entry("F32", "[2]", "[0,8]"), 9), Catch::Contains("1 bytes at its end"));
  CHECK_THAT(refusal("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"U8\",\"shape\":"
                     "[4],\"data_offsets\":[2,6]}}",
                     6),
             Catch::Contains("tensor 'b': its elements overlap"));
  CHECK_THAT(refusal("{\"__metadata__\":{\"a\":1}}", 0), Catch::Contains("'a' is no text"));
}

TEST_CASE("a file that cannot be read says why", "[weights][refusal]") {
  CHECK_THROWS_WITH(SafetensorsFile::open("/no/such/file"), Catch::Contains("cannot be opened"));
  CHECK_THROWS_WITH(SafetensorsFile::open(CORTEX_TEST_DIR), Catch::Contains("is a folder"));
  CHECK_THROWS_WITH(write_safetensors("/no/such/folder/file", {}), Catch::Contains("cannot be written"));
  const float one = 1;
  const TemporaryFile temporary;
  CHECK_THROWS_WITH(write_safetensors(temporary.path, {{"t", {2}, {&one, 1}}}),
                    Catch::Contains("holds 2 elements, but 1 are given"));
  CHECK_THROWS_WITH(write_safetensors(temporary.path, {{"t", {1}, {&one, 1}}, {"t", {1}, {&one, 1}}}),
                    Catch::Contains("the name is taken"));
  CHECK_THROWS_WITH(write_safetensors(temporary.path, {{"t", {1}, {&one, 1}, TensorType::I32}}),
                    Catch::Contains("stored as I32"));
  CHECK_FALSE(std::filesystem::exists(temporary.path));
}

TEST_CASE("a file with any byte changed is read or refused, and nothing worse", "[weights]") {
  std::ifstream in(fixture("dtypes.safetensors"), std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> good(text.size());
  std::memcpy(good.data(), text.data(), text.size());
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < 4000; ++i) {
    auto bytes = good;
    for (int change = 1 + int(random() % 3); change > 0; --change)
      bytes[random() % (bytes.size() / 2)] = std::byte(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    try {
      const auto file = SafetensorsFile::from_bytes(std::move(bytes));
      for (const std::string& name : file.names()) CHECK(file.tensor(name).bytes.size() <= good.size());
    } catch (const Error& error) {
      refused += error.code == Code::invalid_weights;
    }
  }
  CHECK(refused > 1000);
}

TEST_CASE("a tensor is read as a type that holds it, and no other", "[weights][refusal]") {
  const auto file = SafetensorsFile::from_bytes(
      bytes_of("{\"i\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", 8), "the file");
  CHECK(file.read<std::int64_t>("i") == std::vector<std::int64_t>{0});
  CHECK_THROWS_WITH(file.read<float>("i"), Catch::Contains("holds I64"));
  CHECK_THROWS_WITH(file.read<std::int32_t>("i"), Catch::Contains("holds I64"));
  CHECK_THROWS_WITH(file.tensor("j"), Catch::Contains("it has no tensor 'j'; it has 'i'"));
}

TEST_CASE("a model is bound by name, with foreign names and split dimensions, all or nothing", "[weights]") {
  Dim V{"vocabulary"}, G{"gate", 2}, H{"hidden", 3};
  Model<test::Word> m("m", cortex::tree);
  auto Emb = m.input<float>("Emb", V, G, H);
  auto b = m.input<double>("b", H);
  auto h = m.placeholder<float>("h", H);
  auto body = m.compute("body", H, [&](auto n, auto i) {
    return Emb(test::word(n), 0, i) + Emb(test::word(n), 1, i) + cast<float>(b(i)) + h(test::left(n), i) +
           h(test::right(n), i);
  });
  CompileOptions options;
  options.target = Target::interpreter();
  auto model = compile(m.recursion_op(h, body), options);

  std::vector<float> table(24);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = float(i);
  const std::vector<float> bias{0.5f, 0.25f, 0.125f};
  const TemporaryFile good, wrong;
  write_safetensors(good.path, {{"encoder.table", {4, 6}, table}, {"b", {3}, bias, TensorType::F16}});
  bind(model, SafetensorsFile::open(good.path), {{"Emb", "encoder.table"}});
  const test::Word leaf{2, nullptr, nullptr};
  const auto result = model(leaf);
  CHECK(std::vector<float>(result[0].begin(), result[0].end()) == std::vector<float>{27.5f, 29.25f, 31.125f});

  CHECK_THROWS_WITH(bind(model, SafetensorsFile::open(good.path)), Catch::Contains("no tensor 'Emb'"));
  CHECK_THROWS_WITH(bind(model, SafetensorsFile::open(good.path), {{"Em", "b"}}), Catch::Contains("no input 'Em'"));
  write_safetensors(wrong.path, {{"Emb", {4, 2, 3}, table}, {"b", {1}, std::span(bias).first(1)}});
  CHECK_THROWS_WITH(bind(model, SafetensorsFile::open(wrong.path)),
                    Catch::Contains("tensor 'b' has shape [1], which does not fit input 'b' [hidden=3]"));
  write_safetensors(wrong.path, {{"Emb", {12, 2}, table}, {"b", {3}, bias}});
  CHECK_THROWS_WITH(bind(model, SafetensorsFile::open(wrong.path)), Catch::Contains("tensor 'Emb' has shape [12, 2]"));
  CHECK(model(leaf)[0][0] == 27.5f);  // as before
}
