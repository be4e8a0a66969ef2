#include "cortex/base/vector.hpp"

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cortex/base/vectors.hpp"

using cortex::Vector;

namespace {

/// Counts the objects that live, and notices one that is used after its end.
struct Tracked {
  static inline int living = 0;
  std::string value;
  const Tracked* self = this;
  Tracked(std::string v = "new") : value(std::move(v)) { ++living; }
  Tracked(const Tracked& other) : value(other.value) { ++living; }
  Tracked(Tracked&& other) noexcept : value(std::move(other.value)) { ++living; }
  Tracked& operator=(const Tracked&) = delete;
  Tracked& operator=(Tracked&& other) noexcept {
    value = std::move(other.value);
    return *this;
  }
  ~Tracked() {
    CHECK(self == this);
    self = nullptr;
    --living;
  }
  bool operator==(const Tracked& other) const { return self == this && value == other.value; }
};

}  // namespace

TEST_CASE("a vector holds what std::vector holds after the same operations", "[vector]") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return std::size_t(random() % n); };
    std::vector<std::string> model;
    Vector<std::string> vector;
    for (int step = 0; step < 200; ++step) {
      const std::string word(below(30), char('a' + below(26)));
      const std::size_t size = model.size(), at = below(size + 1);
      switch (below(10)) {
        case 0: model.resize(at), vector.resize(at); break;
        case 1:
          if (size > 0) model.resize(size + 3, model[at / 2]), vector.resize(size + 3, vector[at / 2]);
          break;
        case 2: model.insert(model.begin() + long(at), word), vector.insert(vector.begin() + at, word); break;
        case 3:
          if (at < size) model.erase(model.begin() + long(at)), vector.erase(vector.begin() + at);
          break;
        case 4:
          model.erase(model.begin() + long(at / 2), model.begin() + long(at));
          vector.erase(vector.begin() + at / 2, vector.begin() + at);
          break;
        case 5:
          if (size > 0) model.push_back(model[0]), vector.push_back(vector[0]);
          break;
        case 6: model = std::vector<std::string>(model), vector = Vector<std::string>(vector); break;
        case 7: model.assign(at, word), vector.assign(at, word); break;
        default: model.emplace_back(word), vector.emplace_back(word);
      }
      REQUIRE(vector.size() == model.size());
      REQUIRE(vector == model);
      REQUIRE(std::vector<std::string>(vector) == model);
    }
  }
}

TEST_CASE("the elements of a vector are destroyed once each", "[vector]") {
  {
    Vector<Tracked> vector{{"a"}, {"b"}, {"c"}};
    const Vector<Tracked> copy = vector;
    Vector<Tracked> moved = std::move(vector);
    CHECK(vector.empty());
    CHECK(moved == copy);
    for (int i = 0; i < 100; ++i) moved.emplace_back(std::to_string(i));
    moved.insert(moved.begin() + 1, Tracked("between"));
    moved.erase(moved.begin() + 3, moved.begin() + 50);
    moved.resize(40);
    CHECK(moved[1].value == "between");
    CHECK(moved.back().value == "82");
    vector = moved;
    CHECK(vector == moved);
    vector = {};
    CHECK(Tracked::living == 43);
  }
  CHECK(Tracked::living == 0);
}

TEST_CASE("a vector that is assigned to keeps its memory", "[vector]") {
  const Vector<int> few{1, 2, 3};
  Vector<int> vector(100);
  const int* const data = vector.data();
  vector = few;
  CHECK(vector.data() == data);
  vector.clear();
  vector.push_back(4);
  vector.assign(5, vector[0]);
  CHECK(vector.data() == data);
  CHECK(vector == Vector<int>{4, 4, 4, 4, 4});
  vector = static_cast<const Vector<int>&>(vector);
  CHECK(vector == Vector<int>(5, 4));
}

TEST_CASE("what only moves can stand in a vector, and a vector in itself", "[vector]") {
  Vector<std::unique_ptr<int>> vector;
  for (int i = 0; i < 10; ++i) vector.push_back(std::make_unique<int>(i));
  vector.erase(vector.begin());
  CHECK(*vector.front() == 1);
  CHECK(*vector.back() == 9);

  struct Tree {
    Vector<Tree> children;
  };
  const Tree tree{{Tree{}, Tree{{Tree{}}}}};
  CHECK(tree.children[1].children.size() == 1);
}

TEST_CASE("an index past the end of a vector is refused by at", "[vector][refusal]") {
  const Vector<bool> vector{true};
  CHECK(vector.at(0));
  try {
    vector.at(1);
    FAIL("no error");
  } catch (const cortex::Error& error) {
    CHECK(error.code == cortex::Code::internal);
    CHECK(error.message == "an index past the end of a vector");
  }
}

TEST_CASE("the helpers over vectors take both classes", "[vector]") {
  Vector<int> ours{1, 2, 3, 4};
  std::vector<int> standard{1, 2, 3, 4}, backwards;
  for (const int i : cortex::reversed(ours)) backwards.push_back(i);
  for (const int i : cortex::reversed(standard)) backwards.push_back(i);
  CHECK(backwards == std::vector<int>{4, 3, 2, 1, 4, 3, 2, 1});
  CHECK(cortex::erase_where(ours, [](int i) { return i % 2 == 0; }));
  CHECK(!cortex::erase_where(standard, [](int i) { return i > 4; }));
  cortex::append(ours, Vector<int>(ours));
  CHECK(ours == Vector<int>{1, 3, 1, 3});
}
