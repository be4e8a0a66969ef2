// Node types and helpers that the tests of structure/ share: a recursive oracle and a matcher for errors.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cortex/structure/linearizer.hpp"

namespace structure_test {

namespace cs = cortex::structure;
using cortex::Code;

/// The binary node of most tests.
struct Word {
  int id = 0;
  const Word* left = nullptr;
  const Word* right = nullptr;
};
using Left = cs::Child<&Word::left>;
using Right = cs::Child<&Word::right>;
using Id = cs::Field<&Word::id>;
using WordSet = cs::Accessors<Left, Right, Id>;
using WordLinearizer = cs::Linearizer<Word, WordSet>;
inline const std::vector<cs::FieldCheck> any_id{{cs::Where::all, -1, nullptr}};

/// A node with every kind of accessor.
struct Item {
  int id = 0;
  float weight = 0;
  std::array<float, 3> vector{};
  const Item* left = nullptr;
  const Item* right = nullptr;
  std::vector<const Item*> kids;
};
using ItemSet = cs::Accessors<cs::OptionalChild<&Item::left>, cs::Field<&Item::id>, cs::Children<&Item::kids>,
                              cs::OptionalChild<&Item::right>, cs::Field<&Item::weight>, cs::Field<&Item::vector>>;
using ItemLinearizer = cs::Linearizer<Item, ItemSet>;

/// A node with a container alone.
struct Kids {
  std::vector<const Kids*> kids;
};
using KidsLinearizer = cs::Linearizer<Kids, cs::Accessors<cs::Children<&Kids::kids>>>;

inline std::vector<const Item*> children_of(const Item& item) {
  std::vector<const Item*> all;
  if (item.left) all.push_back(item.left);
  if (item.right) all.push_back(item.right);
  all.insert(all.end(), item.kids.begin(), item.kids.end());
  return all;
}

/// Heights of everything reachable, as the definition says them.
struct Oracle {
  std::map<const Item*, int> height;
  int visit(const Item& item) {
    if (auto known = height.find(&item); known != height.end()) return known->second;
    int own = 0;
    for (const Item* child : children_of(item)) own = std::max(own, visit(*child) + 1);
    return height[&item] = own;
  }
};

/// Holds one run over Items, fields read everywhere, against the oracle.
inline void check_against_oracle(const cs::Workspace& workspace, const std::vector<const Item*>& roots) {
  const cs::Arrays& a = workspace.arrays();
  Oracle oracle;
  for (const Item* root : roots) oracle.visit(*root);
  REQUIRE(a.num_nodes == int(oracle.height.size()));
  REQUIRE(a.num_roots == int(roots.size()));
  for (std::size_t r = 0; r < roots.size(); ++r) REQUIRE(a.root[r] == workspace.find(roots[r]));

  std::set<int> numbers;
  std::map<int, int> length;
  int leaves = 0, edges = 0;
  for (const auto& [item, height] : oracle.height) {
    const int n = workspace.find(item);
    REQUIRE((n >= 0 && n < a.num_nodes));
    REQUIRE(numbers.insert(n).second);
    ++length[height];
    leaves += height == 0;
    edges += int(item->kids.size());
    REQUIRE((height == 0) == (n >= a.num_internal));
    REQUIRE(height < a.num_batches);
    REQUIRE((n >= a.batch_begin[height] && n < a.batch_begin[height] + a.batch_length[height]));
    for (const Item* child : children_of(*item)) REQUIRE(workspace.find(child) > n);
    REQUIRE(a.child[0][n] == (item->left ? workspace.find(item->left) : a.num_nodes));
    REQUIRE(a.child[1][n] == (item->right ? workspace.find(item->right) : a.num_nodes));
    const cs::Csr& csr = a.children[0];
    REQUIRE(csr.begin[n + 1] - csr.begin[n] == int(item->kids.size()));
    for (std::size_t k = 0; k < item->kids.size(); ++k)
      REQUIRE(csr.child[std::size_t(csr.begin[n]) + k] == workspace.find(item->kids[k]));
    REQUIRE(static_cast<const int*>(a.field[0].data)[n] == item->id);
    REQUIRE(static_cast<const float*>(a.field[1].data)[n] == item->weight);
    for (int k = 0; k < 16; ++k)
      REQUIRE(static_cast<const float*>(a.field[2].data)[n * 16 + k] == (k < 3 ? item->vector[std::size_t(k)] : 0.f));
  }
  REQUIRE(a.num_internal == a.num_nodes - leaves);
  REQUIRE(a.num_batches == int(length.size()));
  int widest = 0, widest_internal = 0, widest_edges = 0;
  for (int b = 0; b < a.num_batches; ++b) {
    REQUIRE(a.batch_length[b] == length[b]);
    if (b > 0) REQUIRE(a.batch_begin[b] + a.batch_length[b] == a.batch_begin[b - 1]);
    widest = std::max(widest, a.batch_length[b]);
    if (b > 0) widest_internal = std::max(widest_internal, a.batch_length[b]);
    widest_edges = std::max(widest_edges, a.children[0].begin[a.batch_begin[b] + a.batch_length[b]] -
                                              a.children[0].begin[a.batch_begin[b]]);
  }
  REQUIRE(a.max_batch == widest);
  REQUIRE(a.max_internal_batch == widest_internal);
  REQUIRE(a.children[0].begin[0] == 0);
  REQUIRE(a.children[0].num_edges == edges);
  REQUIRE(a.children[0].begin[a.num_nodes] == edges);
  REQUIRE(a.children[0].max_batch_edges == widest_edges);
}

/// Runs `work`, which must throw cortex::Error of that code, and returns its message.
template <class Work>
std::string error_of(Code code, Work&& work) {
  try {
    work();
  } catch (const cortex::Error& error) {
    CHECK(error.code == code);
    return error.message;
  }
  FAIL("no error was thrown");
  return {};
}

inline void check_says(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) CHECK_THAT(message, Catch::Matchers::Contains(part));
}

}  // namespace structure_test
