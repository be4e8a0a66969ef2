// Accessors by name, for structs adapted with Boost.Hana.
#include "cortex/structure/hana_struct.hpp"

#include "support.hpp"

struct HanaNode {
  int token;
  const HanaNode* first;
  const HanaNode* second;
  std::vector<const HanaNode*> rest;
};
BOOST_HANA_ADAPT_STRUCT(HanaNode, token, first, second, rest);

using namespace structure_test;

namespace {
template <auto& accessor>
using TypeOf = std::remove_cvref_t<decltype(accessor)>;
}

TEST_CASE("an accessor by name is named so and has the kind asked for", "[structure]") {
  CHECK(cortex::child_named<HanaNode, "first">.name() == "first");
  CHECK(cortex::field_named<HanaNode, "token">.name() == "token");
  static_assert(cortex::optional_child_named<HanaNode, "second">.kind == cs::AccessorKind::optional_child);
  static_assert(cortex::children_named<HanaNode, "rest">.kind == cs::AccessorKind::children);
  CHECK(cortex::children_named<HanaNode, "first", "rest">.name() == "first_rest");
}

TEST_CASE("accessors by name fit the struct that they were made for", "[structure]") {
  static_assert(cs::AccessorOf<TypeOf<cortex::child_named<HanaNode, "first">>, HanaNode>);
  static_assert(!cs::AccessorOf<TypeOf<cortex::child_named<HanaNode, "first">>, Word>);
  static_assert(!cs::AccessorOf<TypeOf<cortex::field_named<HanaNode, "first">>, HanaNode>);
}

TEST_CASE("a member that the struct lacks has no position", "[structure]") {
  static_assert(cs::hana_position<HanaNode>("rest") == 3);
  static_assert(cs::hana_position<HanaNode>("lst") == -1);
  static_assert(cs::hana_position<Word>("left") == -1);
}

TEST_CASE("a struct is linearized through accessors by name", "[structure]") {
  using Set =
      cs::Accessors<TypeOf<cortex::child_named<HanaNode, "first">>,
                    TypeOf<cortex::optional_child_named<HanaNode, "second">>,
                    TypeOf<cortex::children_named<HanaNode, "rest">>, TypeOf<cortex::field_named<HanaNode, "token">>>;
  const HanaNode a{7, nullptr, nullptr, {}}, b{8, nullptr, nullptr, {}}, top{9, &a, nullptr, {&b}};
  cs::Workspace workspace;
  const cs::Arrays& arrays = cs::Linearizer<HanaNode, Set>::run(workspace, cortex::tree, any_id, {&top});
  CHECK(arrays.num_nodes == 3);
  CHECK(arrays.child[0][0] == 1);
  CHECK(arrays.child[1][0] == 3);
  CHECK(static_cast<const int*>(arrays.field[0].data)[2] == 8);
}

TEST_CASE("errors speak of Hana members by their names", "[structure]") {
  using Set =
      cs::Accessors<TypeOf<cortex::child_named<HanaNode, "first">>, TypeOf<cortex::child_named<HanaNode, "second">>>;
  const HanaNode a{}, top{0, &a, nullptr, {}};
  cs::Workspace workspace;
  auto run = [&] { cs::Linearizer<HanaNode, Set>::run(workspace, cortex::tree, {}, {&top}); };
  check_says(error_of(Code::invalid_structure, run), {"no 'second'"});
}
