// Links of every shape: raw and smart pointers, users' own pointer classes, containers, nodes by value, arena indices.
#include <deque>
#include <forward_list>
#include <list>
#include <span>
#include <stdexcept>
#include <vector>

#include "support.hpp"

using namespace structure_test;

namespace {

template <class Node, class... As, class Roots>
int count_nodes(const cortex::Structure& structure, const Roots& roots) {
  cs::Workspace workspace;
  return cs::Linearizer<Node, cs::Accessors<As...>>::run(workspace, structure, {}, roots).num_nodes;
}

/// A user's own pointer: operator-> alone, which counts its calls and throws when told to.
struct Handle;
struct Managed {
  std::vector<Handle> kids;
};
struct Handle {
  const Managed* target = nullptr;
  explicit operator bool() const { return target != nullptr; }
  const Managed* operator->() const {
    if (!target) throw std::logic_error("operator-> of a null Handle");
    if (broken) throw std::runtime_error("the handle is broken");
    return target;
  }
  static inline bool broken = false;
};

/// A container whose iteration throws half way.
struct Faulty {
  const std::vector<const struct FaultyNode*>* source = nullptr;
  struct Iterator {
    const struct FaultyNode* const* at;
    const struct FaultyNode* operator*() const {
      if (broken) throw std::runtime_error("the container is broken");
      return *at;
    }
    Iterator& operator++() { return ++at, *this; }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  Iterator begin() const { return {source ? source->data() : nullptr}; }
  Iterator end() const { return {source ? source->data() + source->size() : nullptr}; }
  static inline bool broken = false;
};
struct FaultyNode {
  Faulty kids;
};

}  // namespace

TEST_CASE("unique pointers are followed, in nodes and as roots", "[structure]") {
  struct Node {
    std::unique_ptr<Node> left, right;
  };
  std::vector<std::unique_ptr<Node>> roots;
  for (int i = 0; i < 3; ++i) {
    roots.push_back(std::make_unique<Node>());
    roots.back()->left = std::make_unique<Node>();
    roots.back()->right = std::make_unique<Node>();
  }
  CHECK(count_nodes<Node, cs::Child<&Node::left>, cs::Child<&Node::right>>(cortex::tree, roots) == 9);
}

TEST_CASE("shared pointers are followed, in containers and as roots", "[structure]") {
  struct Node {
    std::vector<std::shared_ptr<const Node>> kids;
  };
  auto leaf = std::make_shared<Node>(), a = std::make_shared<Node>(), b = std::make_shared<Node>();
  a->kids = {leaf};
  b->kids = {leaf};
  CHECK(count_nodes<Node, cs::Children<&Node::kids>>(cortex::dag, std::vector{a, b}) == 3);
  CHECK(leaf.use_count() == 3);
}

TEST_CASE("a class with operator-> is a pointer, and is not dereferenced when null", "[structure]") {
  Managed leaf, top;
  top.kids = {Handle{&leaf}};
  CHECK(count_nodes<Managed, cs::Children<&Managed::kids>>(cortex::tree, std::vector{Handle{&top}}) == 2);
  top.kids = {Handle{}};
  cs::Workspace workspace;
  using L = cs::Linearizer<Managed, cs::Accessors<cs::Children<&Managed::kids>>>;
  check_says(error_of(Code::invalid_structure, [&] { L::run(workspace, cortex::tree, {}, std::vector{Handle{&top}}); }),
             {"element 0"});
}

TEST_CASE("an exception of a user's pointer passes through and the workspace can be used again", "[structure]") {
  Managed leaf, top;
  top.kids = {Handle{&leaf}};
  const std::vector roots{Handle{&top}};
  using L = cs::Linearizer<Managed, cs::Accessors<cs::Children<&Managed::kids>>>;
  cs::Workspace workspace;
  for (int round = 0; round < 3; ++round) {
    Handle::broken = true;
    CHECK_THROWS_AS(L::run(workspace, cortex::tree, {}, roots), std::runtime_error);
    CHECK(workspace.arrays().num_nodes == 0);
    CHECK(workspace.find(&leaf) == -1);
    Handle::broken = false;
    CHECK(L::run(workspace, cortex::tree, {}, roots).num_nodes == 2);
  }
}

TEST_CASE("an exception of a user's container passes through and the workspace can be used again", "[structure]") {
  const FaultyNode leaf;
  const std::vector<const FaultyNode*> kids{&leaf};
  const FaultyNode top{{&kids}};
  using L = cs::Linearizer<FaultyNode, cs::Accessors<cs::Children<&FaultyNode::kids>>>;
  cs::Workspace workspace;
  Faulty::broken = true;
  CHECK_THROWS_AS(L::run(workspace, cortex::tree, {}, std::array{&top}), std::runtime_error);
  Faulty::broken = false;
  CHECK(L::run(workspace, cortex::tree, {}, std::array{&top}).num_nodes == 2);
  CHECK(workspace.find(&leaf) == 1);
}

TEST_CASE("spans, arrays and C arrays hold children", "[structure]") {
  struct Node {
    std::span<const Node* const> view;
    std::array<const Node*, 2> pair;
    const Node* plain[2];
  };
  // The leaves' arrays would hold nulls, which are no children that exist; so each accessor is tried on its own.
  struct Leaf {
    std::span<const Leaf* const> view;
  };
  const Leaf a, b;
  const std::vector<const Leaf*> kids{&a, &b};
  const Leaf top{kids};
  CHECK(count_nodes<Leaf, cs::Children<&Leaf::view>>(cortex::tree, std::array{&top}) == 3);

  static constexpr auto filled = [](const Node& node) { return std::span(node.pair).first(node.pair[0] ? 2 : 0); };
  static constexpr auto listed = [](const Node& node) { return std::span(node.plain).first(node.plain[0] ? 2 : 0); };
  Node x{}, y{}, parent{};
  parent.pair = {&x, &y};
  parent.plain[0] = &x, parent.plain[1] = &y;
  CHECK(count_nodes<Node, cs::Children<filled>>(cortex::tree, std::array{&parent}) == 3);
  CHECK(count_nodes<Node, cs::Children<listed>>(cortex::tree, std::array{&parent}) == 3);
  x.pair = y.pair = {&x, &y};
  cs::Workspace workspace;
  auto run = [&] {
    cs::Linearizer<Node, cs::Accessors<cs::Children<&Node::pair>>>::run(workspace, cortex::dag, {},
                                                                        std::array{&parent});
  };
  check_says(error_of(Code::invalid_structure, run), {"cycle", "'pair'"});
  auto plain = [&] {
    cs::Linearizer<Node, cs::Accessors<cs::Children<&Node::plain>>>::run(workspace, cortex::dag, {},
                                                                         std::array{&parent});
  };
  check_says(error_of(Code::invalid_structure, plain), {"element 0 of 'plain' is null"});
}

TEST_CASE("children that lie in a container by value are nodes where they lie", "[structure]") {
  struct Node {
    std::vector<Node> kids;
  };
  Node top;
  top.kids.resize(3);
  top.kids[1].kids.resize(2);
  cs::Workspace workspace;
  using L = cs::Linearizer<Node, cs::Accessors<cs::Children<&Node::kids>>>;
  CHECK(L::run(workspace, cortex::tree, {}, std::array{&top}).num_nodes == 6);
  CHECK(workspace.find(&top.kids[1]) == 1);
  CHECK(L::run(workspace, cortex::tree, {}, std::vector<Node>(4)).num_nodes == 4);
}

TEST_CASE("linked lists, deques and a range by value hold children", "[structure]") {
  struct Node {
    std::list<const Node*> list;
    std::forward_list<const Node*> forward;
    std::deque<const Node*> deque;
  };
  static constexpr auto by_value = [](const Node& node) {
    return std::vector<const Node*>(node.list.begin(), node.list.end());
  };
  Node a, b, top;
  top.list = {&a, &b};
  top.forward = {&a, &b};
  top.deque = {&a, &b};
  CHECK(count_nodes<Node, cs::Children<&Node::list>>(cortex::tree, std::list{&top}) == 3);
  CHECK(count_nodes<Node, cs::Children<&Node::forward>>(cortex::tree, std::forward_list{&top}) == 3);
  CHECK(count_nodes<Node, cs::Children<&Node::deque>>(cortex::tree, std::deque{&top}) == 3);
  CHECK(count_nodes<Node, cs::Children<by_value>>(cortex::tree, std::array{&top}) == 3);
}

TEST_CASE("a view that is given by value shows nodes that outlive it", "[structure]") {
  struct Node {
    std::vector<Node> own;
    std::span<const Node> kids() const { return own; }
  };
  Node top;
  top.own.resize(3);
  top.own[1].own.resize(2);
  cs::Workspace workspace;
  using L = cs::Linearizer<Node, cs::Accessors<cs::Children<&Node::kids>>>;
  CHECK(L::run(workspace, cortex::tree, {}, std::array{&top}).num_nodes == 6);
  CHECK(workspace.find(&top.own[1].own[0]) >= 0);
  CHECK(workspace.find(&top.own[2]) >= 0);
  // A container that is given by value is gone with its nodes.
  CHECK_FALSE(cs::LinkRangeTo<std::vector<Node>, Node>);
}

TEST_CASE("null members of a children accessor are absent", "[structure]") {
  const Word leaf, top{0, nullptr, &leaf};
  CHECK(count_nodes<Word, cs::Children<&Word::left, &Word::right>>(cortex::tree, std::array{&top}) == 2);
}

TEST_CASE("a children accessor concatenates members and containers in order", "[structure]") {
  const Item a, b, c, d;
  Item top;
  top.left = &a, top.kids = {&b, &c}, top.right = &d;
  cs::Workspace workspace;
  using All = cs::Children<&Item::left, &Item::kids, &Item::right>;
  const cs::Arrays& arrays =
      cs::Linearizer<Item, cs::Accessors<All>>::run(workspace, cortex::tree, {}, std::array{&top});
  REQUIRE(arrays.children[0].num_edges == 4);
  const std::array expected{&a, &b, &c, &d};
  for (std::size_t k = 0; k < 4; ++k) CHECK(arrays.children[0].child[k] == workspace.find(expected[k]));
}

TEST_CASE("paths lead through members and pointers, and a null pointer on the way means no child", "[structure]") {
  struct Node;
  struct Links {
    const Node* left;
    const Node* right;
  };
  struct Node {
    Links inner;
    const Links* outer;
  };
  const Node a{}, b{};
  const Links links{&a, &b};
  const Node near{{&a, &b}, nullptr}, far{{}, &links};
  CHECK(count_nodes<Node, cs::Child<&Node::inner, &Links::left>, cs::Child<&Node::inner, &Links::right>>(
            cortex::tree, std::array{&near}) == 3);
  CHECK(count_nodes<Node, cs::Child<&Node::outer, &Links::left>, cs::Child<&Node::outer, &Links::right>>(
            cortex::tree, std::array{&far}) == 3);
}

TEST_CASE("lambdas and getters are accessors", "[structure]") {
  struct Node {
    const Node* next;
    const Node* get_next() const { return next; }
  };
  static constexpr auto through = [](const Node& node) { return node.next; };
  const Node leaf{nullptr}, top{&leaf};
  CHECK(count_nodes<Node, cs::Child<through>>(cortex::sequence, std::array{&top}) == 2);
  CHECK(count_nodes<Node, cs::Child<&Node::get_next>>(cortex::sequence, std::array{&top}) == 2);
}

TEST_CASE("an optional child may be absent where another is present", "[structure]") {
  const Word leaf, top{0, nullptr, &leaf};
  cs::Workspace workspace;
  using Set = cs::Accessors<cs::OptionalChild<&Word::left>, cs::OptionalChild<&Word::right>>;
  const cs::Arrays& arrays = cs::Linearizer<Word, Set>::run(workspace, cortex::tree, {}, {&top});
  CHECK(arrays.child[0][0] == arrays.num_nodes);
  CHECK(arrays.child[1][0] == 1);
}

// ----------------------------------------------------------------------------------------------------------- arenas

namespace {

struct Signed {
  int left = -1, right = -1;
};
using SignedLinearizer = cs::Linearizer<Signed, cs::Accessors<cs::Child<&Signed::left>, cs::Child<&Signed::right>>>;

struct Unsigned {
  std::vector<std::uint32_t> kids;
  std::uint32_t next = UINT32_MAX;
};
using UnsignedLinearizer =
    cs::Linearizer<Unsigned, cs::Accessors<cs::Children<&Unsigned::kids>, cs::OptionalChild<&Unsigned::next>>>;

}  // namespace

TEST_CASE("indices into an arena are links, and negative ones are none", "[structure]") {
  const std::vector<Signed> nodes{{1, 2}, {}, {3, 4}, {-7, -1}, {}};
  cs::Workspace workspace;
  const cs::Arrays& arrays = SignedLinearizer::run(workspace, cortex::tree, {}, {0}, cortex::arena(nodes));
  CHECK(arrays.num_nodes == 5);
  CHECK(workspace.find(&nodes[0]) == 0);
  CHECK(workspace.find(&nodes[2]) == 1);
  CHECK(arrays.child[1][0] == 1);
}

TEST_CASE("the greatest unsigned index is none", "[structure]") {
  std::vector<Unsigned> nodes(3);
  nodes[0].kids = {1, 2};
  nodes[1].next = UINT32_MAX;
  cs::Workspace workspace;
  const std::vector<std::size_t> roots{0};
  CHECK(UnsignedLinearizer::run(workspace, cortex::tree, {}, roots, cortex::arena(nodes)).num_nodes == 3);
}

TEST_CASE("roots of an arena may be pointers", "[structure]") {
  const std::vector<Signed> nodes{{1, 2}, {}, {}};
  cs::Workspace workspace;
  CHECK(SignedLinearizer::run(workspace, cortex::tree, {}, std::array{&nodes[0]}, cortex::arena(nodes)).num_nodes == 3);
}

TEST_CASE("a root that stands outside of the arena is refused, and the workspace goes on", "[structure]") {
  const std::vector<Signed> nodes{{1, -1}, {}};
  const std::vector<Signed> others{{-1, 1}, {}};
  cs::Workspace workspace;
  const auto run = [&](const Signed* second) {
    return SignedLinearizer::run(workspace, cortex::tree, {}, std::array{nodes.data() + 1, second},
                                 cortex::arena(nodes))
        .num_nodes;
  };
  const auto run_listed = [&](const Signed* second) {  // as groups of a call do
    const std::array<const void*, 2> roots{nodes.data() + 1, second};
    return SignedLinearizer::run_listed(workspace, cortex::tree, {}, roots, cortex::arena(nodes)).num_nodes;
  };
  for (const Signed* root : {others.data(), nodes.data() + nodes.size()}) {
    check_says(error_of(Code::out_of_range, [&] { run(root); }),
               {"root 1 is a node outside of the arena", "holds 2 nodes"});
    check_says(error_of(Code::out_of_range, [&] { run_listed(root); }),
               {"root 1 is a node outside of the arena", "holds 2 nodes"});
  }
  CHECK(run_listed(nodes.data() + 1) == 1);
  CHECK(run(nodes.data() + 1) == 1);
}

TEST_CASE("an index past the arena is refused, in a named child, a container and the roots", "[structure]") {
  const std::vector<Signed> nodes{{1, 5}, {}};
  cs::Workspace workspace;
  check_says(error_of(Code::out_of_range,
                      [&] {
                        SignedLinearizer::run(workspace, cortex::tree, {}, {1, 0}, cortex::arena(nodes));
                      }),
             {"'right'", "index 5", "holds 2 nodes", "node 1", "root 1"});
  check_says(error_of(Code::out_of_range,
                      [&] {
                        SignedLinearizer::run(workspace, cortex::tree, {}, {1, 2}, cortex::arena(nodes));
                      }),
             {"root 1 is index 2", "holds 2 nodes"});
  std::vector<Unsigned> wide(2);
  wide[0].kids = {1, 4000000000u};
  auto run = [&] { UnsignedLinearizer::run(workspace, cortex::tree, {}, {0}, cortex::arena(wide)); };
  check_says(error_of(Code::out_of_range, run), {"'kids'", "index 4000000000"});
}

TEST_CASE("a root index that means none is a null root", "[structure]") {
  const std::vector<Signed> nodes(2);
  cs::Workspace workspace;
  auto run = [&] { SignedLinearizer::run(workspace, cortex::tree, {}, {0, -1}, cortex::arena(nodes)); };
  check_says(error_of(Code::invalid_structure, run), {"root 1 is null"});
}

TEST_CASE("an index that means none is a null element inside a container", "[structure]") {
  std::vector<Unsigned> nodes(2);
  nodes[0].kids = {1, UINT32_MAX};
  cs::Workspace workspace;
  auto run = [&] { UnsignedLinearizer::run(workspace, cortex::tree, {}, {0}, cortex::arena(nodes)); };
  check_says(error_of(Code::invalid_structure, run), {"element 1", "'kids'"});
}
