// Fields: where they are read, what their rows look like, and the values that are refused.
#include "support.hpp"

using namespace structure_test;

namespace {

enum class Tag : std::uint8_t { none, noun, verb };
enum class Polarity : std::int8_t { negative = -1, neutral, positive };

struct Rich {
  bool flag = false;
  Tag tag = Tag::none;
  Polarity polarity = Polarity::neutral;
  std::int64_t wide = 0;
  std::uint64_t huge = 0;
  std::int16_t small = 0;
  double precise = 0;
  float plain[17] = {};
  std::array<std::int64_t, 2> pair{};
  const Rich* next = nullptr;
};

template <auto... Path>
cs::FieldArray read(cs::Workspace& workspace, const Rich& node, cs::FieldCheck check = {}) {
  using Set = cs::Accessors<cs::Child<&Rich::next>, cs::Field<Path...>>;
  return cs::Linearizer<Rich, Set>::run(workspace, cortex::sequence, std::array{check}, {&node}).field[0];
}

int calls = 0;
constexpr auto counted_id = [](const Word& word) { return ++calls, word.id; };
using Counted = cs::Field<counted_id>;
using CountedSet = cs::Accessors<Left, Right, Counted>;

}  // namespace

TEST_CASE("a field is not read where the check does not ask for it, and is 0 there", "[structure]") {
  const Word a{5, nullptr, nullptr}, b{6, nullptr, nullptr}, top{7, &a, &b};
  cs::Workspace workspace;
  auto values = [&](cs::Where where) {
    calls = 0;
    const cs::FieldCheck check{where, -1, nullptr};
    const cs::Arrays& arrays =
        cs::Linearizer<Word, CountedSet>::run(workspace, cortex::tree, std::array{check}, {&top});
    const int* data = static_cast<const int*>(arrays.field[0].data);
    return std::vector<int>(data, data + 3);
  };
  CHECK(values(cs::Where::all) == std::vector<int>{7, 5, 6});
  CHECK(calls == 3);
  CHECK(values(cs::Where::leaves) == std::vector<int>{0, 5, 6});
  CHECK(calls == 2);
  CHECK(values(cs::Where::internal) == std::vector<int>{7, 0, 0});
  CHECK(calls == 1);
  CHECK(values(cs::Where::nowhere) == std::vector<int>{0, 0, 0});
  CHECK(calls == 0);
}

TEST_CASE("a field is read where its guard holds, and is 0 elsewhere", "[structure]") {
  using Op = cs::KeyStep::Op;
  const Word a{5, nullptr, nullptr}, b{6, nullptr, nullptr}, top{7, &a, &b};
  cs::Workspace workspace;
  auto values = [&](cs::Where where, const cs::Key& guard) {
    calls = 0;
    const cs::FieldCheck check{where, -1, nullptr, 0, guard};
    const cs::Arrays& arrays =
        cs::Linearizer<Word, CountedSet>::run(workspace, cortex::tree, std::array{check}, {&top});
    const int* data = static_cast<const int*>(arrays.field[0].data);
    return std::vector<int>(data, data + 3);
  };
  CHECK(values(cs::Where::all, {{Op::is_root}}) == std::vector<int>{7, 0, 0});
  CHECK(calls == 1);
  CHECK(values(cs::Where::all, {{Op::is_leaf}}) == std::vector<int>{0, 5, 6});
  CHECK(values(cs::Where::leaves, {{Op::is_root}}) == std::vector<int>{0, 0, 0});
  CHECK(values(cs::Where::all, {{Op::num_parents}}) == std::vector<int>{0, 5, 6});
  CHECK(calls == 2);
  // It may ask the field itself.
  CHECK(values(cs::Where::all, {{Op::field}, {Op::constant, 6}, {Op::equal}}) == std::vector<int>{0, 0, 6});
}

TEST_CASE("a value outside the table is legal where the field is not read", "[structure]") {
  const Word a{5, nullptr, nullptr}, b{6, nullptr, nullptr}, top{-99, &a, &b};
  cs::Workspace workspace;
  const cs::FieldCheck check{cs::Where::leaves, 7, "Emb"};
  CHECK(WordLinearizer::run(workspace, cortex::tree, std::array{check}, {&top}).num_nodes == 3);
}

TEST_CASE("bool, enumerations and short integers become i32", "[structure]") {
  Rich node;
  node.flag = true;
  node.tag = Tag::verb;
  node.small = -5;
  cs::Workspace workspace;
  CHECK(*static_cast<const std::int32_t*>(read<&Rich::flag>(workspace, node).data) == 1);
  CHECK(*static_cast<const std::int32_t*>(read<&Rich::tag>(workspace, node).data) == 2);
  CHECK(*static_cast<const std::int32_t*>(read<&Rich::small>(workspace, node).data) == -5);
}

TEST_CASE("an enumeration may have negative values where there is no limit", "[structure]") {
  Rich node;
  node.polarity = Polarity::negative;
  cs::Workspace workspace;
  CHECK(*static_cast<const std::int32_t*>(read<&Rich::polarity>(workspace, node).data) == -1);
}

TEST_CASE("64-bit integers are taken if they fit 32 bits", "[structure]") {
  Rich node;
  cs::Workspace workspace;
  for (std::int64_t value : {std::int64_t(INT32_MIN), std::int64_t(INT32_MAX)}) {
    node.wide = value;
    CHECK(*static_cast<const std::int32_t*>(read<&Rich::wide>(workspace, node).data) == value);
  }
}

TEST_CASE("integers that do not fit 32 bits are refused", "[structure]") {
  Rich node;
  cs::Workspace workspace;
  for (std::int64_t value : {std::int64_t(INT32_MIN) - 1, std::int64_t(INT32_MAX) + 1, INT64_MIN, INT64_MAX}) {
    node.wide = value;
    check_says(error_of(Code::out_of_range, [&] { read<&Rich::wide>(workspace, node); }),
               {"'wide'", std::to_string(value).c_str(), "32 bits", "node 0", "root 0"});
  }
  node.huge = UINT64_MAX;
  check_says(error_of(Code::out_of_range, [&] { read<&Rich::huge>(workspace, node); }), {"18446744073709551615"});
  node.huge = std::uint64_t(1) << 31;
  check_says(error_of(Code::out_of_range,
                      [&] {
                        read<&Rich::huge>(workspace, node, {cs::Where::all, INT64_MAX, "Emb"});
                      }),
             {"32 bits"});
}

TEST_CASE("a value past its table names field, value, limit and table", "[structure]") {
  const Word a{5, nullptr, nullptr}, b{10, nullptr, nullptr}, top{1, &a, &b};
  cs::Workspace workspace;
  const cs::FieldCheck check{cs::Where::all, 10, "Emb"};
  check_says(error_of(Code::out_of_range,
                      [&] {
                        WordLinearizer::run(workspace, cortex::tree, std::array{check}, {&a, &top});
                      }),
             {"'id'", "is 10", "'Emb'", "10 rows", "0 to 9", "node 3", "root 1"});
}

TEST_CASE("a negative value is refused where there is a limit, and taken where there is none", "[structure]") {
  const Word a{-1, nullptr, nullptr};
  cs::Workspace workspace;
  const cs::FieldCheck check{cs::Where::all, 10, nullptr};
  check_says(
      error_of(Code::out_of_range, [&] { WordLinearizer::run(workspace, cortex::tree, std::array{check}, {&a}); }),
      {"'id'", "is -1", "10 rows"});
  const cs::Arrays& arrays = WordLinearizer::run(workspace, cortex::tree, any_id, {&a});
  CHECK(*static_cast<const int*>(arrays.field[0].data) == -1);
}

TEST_CASE("an empty table refuses every value", "[structure]") {
  const Word a{0, nullptr, nullptr};
  cs::Workspace workspace;
  const cs::FieldCheck check{cs::Where::all, 0, "Emb"};
  check_says(
      error_of(Code::out_of_range, [&] { WordLinearizer::run(workspace, cortex::tree, std::array{check}, {&a}); }),
      {"0 rows"});
}

TEST_CASE("vector fields have rows of a multiple of 16, filled up with zeros", "[structure]") {
  Rich node;
  for (int k = 0; k < 17; ++k) node.plain[k] = float(k + 1);
  cs::Workspace workspace;
  const cs::FieldArray array = read<&Rich::plain>(workspace, node);
  REQUIRE(array.stride == 32);
  for (int k = 0; k < 32; ++k) CHECK(static_cast<const float*>(array.data)[k] == (k < 17 ? float(k + 1) : 0.f));
}

TEST_CASE("rows of each node's own length have the length that is asked for, where they are read", "[structure]") {
  struct Node {
    std::vector<float> row;
    const Node* next;
  };
  using Set = cs::Accessors<cs::OptionalChild<&Node::next>, cs::Field<&Node::row>>;
  const auto run = [](cs::Workspace& workspace, const Node& node, cs::Where where, int components) {
    const cs::FieldCheck check{where, -1, nullptr, components};
    return cs::Linearizer<Node, Set>::run(workspace, cortex::sequence, std::array{check}, {&node}).field[0];
  };
  Node last{{1, 2, 3}, nullptr}, first{std::vector<float>(17, 4), &last};
  cs::Workspace workspace;
  const cs::FieldArray array = run(workspace, last, cs::Where::all, 3);
  REQUIRE(array.stride == 16);
  for (int k = 0; k < 16; ++k) CHECK(static_cast<const float*>(array.data)[k] == (k < 3 ? float(k + 1) : 0.f));
  const cs::FieldArray inner = run(workspace, first, cs::Where::internal, 17);
  REQUIRE(inner.stride == 32);
  for (int k = 0; k < 64; ++k) CHECK(static_cast<const float*>(inner.data)[k] == (k < 17 ? 4.f : 0.f));
  check_says(error_of(Code::invalid_structure, [&] { run(workspace, first, cs::Where::all, 17); }),
             {"'row'", "node 1", "has 3 numbers", "declares 17"});
  check_says(error_of(Code::invalid_structure, [&] { run(workspace, first, cs::Where::internal, 16); }),
             {"node 0", "has 17 numbers", "declares 16"});
  first.row.clear();
  check_says(error_of(Code::invalid_structure, [&] { run(workspace, first, cs::Where::internal, 17); }),
             {"has 0 numbers"});
}

TEST_CASE("vector fields of integers are checked element by element", "[structure]") {
  Rich node;
  node.pair = {3, 12};
  cs::Workspace workspace;
  CHECK(read<&Rich::pair>(workspace, node).stride == 16);
  check_says(error_of(Code::out_of_range,
                      [&] {
                        read<&Rich::pair>(workspace, node, {cs::Where::all, 12, "Emb"});
                      }),
             {"'pair'[1]", "is 12"});
}

TEST_CASE("double fields keep their precision", "[structure]") {
  Rich node;
  node.precise = 0.1;
  cs::Workspace workspace;
  CHECK(*static_cast<const double*>(read<&Rich::precise>(workspace, node).data) == 0.1);
}

TEST_CASE("every array begins on a 64-byte boundary", "[structure]") {
  const Item leaf, top{0, 0, {}, &leaf, nullptr, {}};
  const std::vector<cs::FieldCheck> checks(3);
  cs::Workspace workspace;
  const cs::Arrays& a = ItemLinearizer::run(workspace, cortex::tree, checks, std::array{&top});
  auto aligned = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 64 == 0; };
  CHECK(aligned(a.batch_begin));
  CHECK(aligned(a.batch_length));
  CHECK(aligned(a.root));
  for (int k = 0; k < 2; ++k) CHECK(aligned(a.child[k]));
  CHECK(aligned(a.children[0].begin));
  CHECK(aligned(a.children[0].child));
  for (int f = 0; f < 3; ++f) CHECK(aligned(a.field[f].data));
}

TEST_CASE("64 bytes can be read at the last row of a field", "[structure]") {
  std::vector<Word> words(1000);
  cs::Workspace workspace;
  for (std::size_t size = 0; size < words.size(); ++size) {  // address sanitizer watches
    const cs::Arrays& a = WordLinearizer::run(workspace, cortex::tree, any_id, std::span(words).first(size));
    char row[64];
    std::memcpy(row, static_cast<const int*>(a.field[0].data) + (size > 0 ? size - 1 : 0), 64);
    CHECK(row[0] == 0);
  }
}

TEST_CASE("a field behind a null pointer is refused, not followed", "[structure]") {
  struct Node {
    const Word* token;
    const Node* next;
  };
  using Set = cs::Accessors<cs::OptionalChild<&Node::next>, cs::Field<&Node::token, &Word::id>>;
  const Word word{4, nullptr, nullptr};
  const Node leaf{nullptr, nullptr}, top{&word, &leaf};
  cs::Workspace workspace;
  const cs::FieldCheck internal{cs::Where::internal, -1, nullptr}, all{};
  const cs::Arrays& a = cs::Linearizer<Node, Set>::run(workspace, cortex::sequence, std::array{internal}, {&top});
  CHECK(*static_cast<const int*>(a.field[0].data) == 4);
  auto run = [&] { cs::Linearizer<Node, Set>::run(workspace, cortex::sequence, std::array{all}, {&top}); };
  check_says(error_of(Code::invalid_structure, run), {"'id'", "null pointer", "node 1"});

  // A guard sees 0 behind a null pointer, and is asked all the same.
  using Op = cs::KeyStep::Op;
  const cs::Key not_zero{{Op::field}, {Op::constant, 0}, {Op::not_equal}};
  const cs::FieldCheck guarded{cs::Where::all, -1, nullptr, 0, not_zero};
  const cs::Arrays& b = cs::Linearizer<Node, Set>::run(workspace, cortex::sequence, std::array{guarded}, {&top});
  CHECK(static_cast<const int*>(b.field[0].data)[0] == 4);
  CHECK(static_cast<const int*>(b.field[0].data)[1] == 0);
}

TEST_CASE("the number of checks must be that of the fields", "[structure]") {
  const Word a;
  cs::Workspace workspace;
  error_of(Code::internal, [&] { WordLinearizer::run(workspace, cortex::tree, {}, {&a}); });
}
