// Structures that are refused: each by its code and what the message says.
#include <forward_list>

#include "support.hpp"

using namespace structure_test;

namespace {

std::string word_error(const cortex::Structure& structure, std::vector<const Word*> roots) {
  cs::Workspace workspace;
  return error_of(Code::invalid_structure, [&] { WordLinearizer::run(workspace, structure, any_id, roots); });
}

std::string kids_error(const cortex::Structure& structure, std::vector<const Kids*> roots) {
  cs::Workspace workspace;
  return error_of(Code::invalid_structure, [&] { KidsLinearizer::run(workspace, structure, {}, roots); });
}

}  // namespace

TEST_CASE("a node that is its own child is a cycle in every kind", "[structure]") {
  Kids self;
  self.kids = {&self};
  for (const cortex::Structure& structure : {cortex::sequence, cortex::tree, cortex::dag})
    check_says(kids_error(structure, {&self}), {"cycle", "node 0", "root 0", "its own child", "'kids'"});
}

TEST_CASE("an error about a node holds the node", "[structure]") {
  const auto node_of = [](auto&& run) -> const void* {
    try {
      run();
    } catch (const cortex::Error& error) {
      return error.node;
    }
    FAIL("nothing is wrong");
    return nullptr;
  };
  cs::Workspace workspace;
  Kids self, other, null{{nullptr}};
  self.kids = {&self};
  const Kids shared, a{{&shared}}, b{{&shared}};
  const auto kids = [&](std::vector<const Kids*> roots) {
    return node_of([&] { KidsLinearizer::run(workspace, cortex::tree, {}, roots); });
  };
  CHECK(kids({&other, &self}) == &self);
  CHECK(kids({&other, &null}) == &null);
  CHECK(kids({&a, &b}) == &shared);
  CHECK(kids({nullptr}) == nullptr);
  const Word leaf{1}, half{0, &leaf, nullptr}, top{0, &leaf, &half};
  const std::vector<const Word*> words{&top};
  CHECK(node_of([&] { WordLinearizer::run(workspace, cortex::dag, any_id, words); }) == &half);
}

TEST_CASE("a longer cycle below the root is found in every kind, with its length", "[structure]") {
  Kids a, b, c, other;
  a.kids = {&b};
  b.kids = {&c};
  c.kids = {&b};
  for (const cortex::Structure& structure : {cortex::sequence, cortex::tree, cortex::dag})
    check_says(kids_error(structure, {&other, &a}), {"cycle", "node 2", "root 1", "2 links away", "'kids'"});
}

TEST_CASE("a cycle through all nodes of a root is found", "[structure]") {
  std::vector<Kids> ring(1000);
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i].kids = {&ring[(i + 1) % ring.size()]};
  check_says(kids_error(cortex::dag, {&ring[0]}), {"cycle", "node 0", "1000 links away"});
}

TEST_CASE("a cycle is told apart from the nodes that hang below it", "[structure]") {
  Kids top, a, b, below, lower;
  lower.kids = {};
  below.kids = {&lower};
  a.kids = {&b, &below};
  b.kids = {&below, &a};
  top.kids = {&a, &lower};
  check_says(kids_error(cortex::dag, {&top}), {"cycle", "2 links away", "node 1 "});
}

TEST_CASE("a child of two parents is refused in a tree and in a sequence, and legal in a DAG", "[structure]") {
  const Kids shared, a{{&shared}}, b{{&shared}};
  for (const cortex::Structure& structure : {cortex::sequence, cortex::tree})
    check_says(kids_error(structure, {&a, &b}),
               {"shared child", "node 2", "node 0", "node 1", "root 1", "'kids'", "cortex::dag"});
  cs::Workspace workspace;
  CHECK(KidsLinearizer::run(workspace, cortex::dag, {}, std::array{&a, &b}).num_nodes == 3);
}

TEST_CASE("a child twice in one container is shared", "[structure]") {
  const Kids leaf, top{{&leaf, &leaf}};
  check_says(kids_error(cortex::tree, {&top}), {"shared child", "twice a child of node 0"});
}

TEST_CASE("a list of children that goes round is refused, and does not take all memory", "[structure]") {
  struct Sibling {
    const Sibling *first = nullptr, *next = nullptr;
    struct Iterator {
      const Sibling* at;
      const Sibling* operator*() const { return at; }
      Iterator& operator++() {
        at = at->next;
        return *this;
      }
      bool operator==(const Iterator&) const = default;
    };
    struct Range {
      const Sibling* front;
      Iterator begin() const { return {front}; }
      Iterator end() const { return {nullptr}; }
    };
    Range kids() const { return {first}; }
  };
  using Linearizer = cs::Linearizer<Sibling, cs::Accessors<cs::Children<&Sibling::kids>>>;
  Sibling a, b, root;
  root.first = &a, a.next = &b, b.next = &a;
  const std::vector<const Sibling*> roots{&root};
  const auto error = [&](const cortex::Structure& structure) {
    cs::Workspace workspace(1 << 20);  // so that a list without end fails otherwise
    return error_of(Code::invalid_structure, [&] { Linearizer::run(workspace, structure, {}, roots); });
  };
  check_says(error(cortex::tree), {"shared", "node 1"});
  check_says(error(cortex::dag.with_max_children(8)), {"children", "8", "node 0"});
  const auto in_graph = [&] {
    cs::Workspace any;
    Linearizer::run(any, cortex::dag, {}, roots);
  };
  check_says(error_of(Code::invalid_structure, in_graph), {"'kids'", "node 0", "goes round"});
  b.next = nullptr;
  cs::Workspace workspace;
  Linearizer::run(workspace, cortex::tree, {}, roots);
  CHECK(workspace.arrays().num_nodes == 3);
}

TEST_CASE("a list that goes round is refused in a graph where its iterators cannot be compared or kept, too",
          "[structure]") {
  struct Sibling {
    const Sibling *first = nullptr, *next = nullptr;
    struct End {};
    struct Iterator {
      const Sibling& owner;  // so that one cannot be assigned to another
      const Sibling* at;
      const Sibling* operator*() const { return at; }
      Iterator& operator++() {
        at = at->next;
        return *this;
      }
      bool operator!=(End) const { return at != nullptr; }
    };
    struct Range {
      const Sibling& owner;
      Iterator begin() const { return {owner, owner.first}; }
      End end() const { return {}; }
    };
    Range kids() const { return {*this}; }
  };
  using Linearizer = cs::Linearizer<Sibling, cs::Accessors<cs::Children<&Sibling::kids>>>;
  Sibling a, b, root;
  root.first = &a, a.next = &b, b.next = &a;
  const auto run = [&](cs::Workspace& workspace) {
    Linearizer::run(workspace, cortex::dag, {}, std::array{static_cast<const Sibling*>(&root)});
  };
  cs::Workspace workspace;
  check_says(error_of(Code::invalid_structure, [&] { run(workspace); }), {"'kids'", "node 0", "goes round"});
  b.next = nullptr;
  run(workspace);
  CHECK(workspace.arrays().num_nodes == 3);
}

TEST_CASE("a long list of a few children, over and over, has an end in a graph", "[structure]") {
  struct Hub {
    std::forward_list<const Hub*> kids;
  };
  using Linearizer = cs::Linearizer<Hub, cs::Accessors<cs::Children<&Hub::kids>>>;
  const Hub a, b;
  Hub top;
  for (int i = 0; i < 3000000; ++i) top.kids.push_front(i == 5 ? &b : &a);
  cs::Workspace workspace;
  Linearizer::run(workspace, cortex::dag, {}, std::array{static_cast<const Hub*>(&top)});
  CHECK(workspace.arrays().num_nodes == 3);
}

TEST_CASE("one child as left and right is shared", "[structure]") {
  const Word leaf, top{0, &leaf, &leaf};
  check_says(word_error(cortex::tree, {&top}), {"shared child", "twice", "'left'", "'right'", "declared for a tree"});
}

TEST_CASE("a child twice in a container is shared even if a named child shows it too", "[structure]") {
  using Set = cs::Accessors<cs::OptionalChild<&Item::left>, cs::Children<&Item::kids>>;
  Item leaf, top;
  top.left = &leaf;
  top.kids = {&leaf};
  cs::Workspace workspace;
  CHECK(cs::Linearizer<Item, Set>::run(workspace, cortex::tree, {}, std::array{&top}).num_nodes == 2);
  top.kids = {&leaf, &leaf};
  auto run = [&] { cs::Linearizer<Item, Set>::run(workspace, cortex::tree, {}, std::array{&top}); };
  check_says(error_of(Code::invalid_structure, run), {"shared child", "by 'kids' and by 'kids'"});
}

TEST_CASE("a root that is a child of two parents is shared", "[structure]") {
  const Kids shared, a{{&shared}}, b{{&shared}};
  check_says(kids_error(cortex::tree, {&shared, &a, &b}), {"shared child", "node 0 of the walk"});
}

TEST_CASE("a node with two children is refused in a sequence", "[structure]") {
  const Kids a, b, top{{&a, &b}};
  check_says(kids_error(cortex::sequence, {&top}), {"node 0", "2 children", "'kids'", "sequence", "at most one"});
}

TEST_CASE("in a sequence a named child and a container that show one node count as one child", "[structure]") {
  using Set = cs::Accessors<cs::OptionalChild<&Item::left>, cs::Children<&Item::kids>>;
  Item leaf, other, top;
  top.left = &leaf;
  top.kids = {&leaf};
  cs::Workspace workspace;
  CHECK(cs::Linearizer<Item, Set>::run(workspace, cortex::sequence, {}, std::array{&top}).num_nodes == 2);
  top.kids = {&other};
  auto run = [&] { cs::Linearizer<Item, Set>::run(workspace, cortex::sequence, {}, std::array{&top}); };
  check_says(error_of(Code::invalid_structure, run), {"2 children", "'left'", "'kids'"});
}

TEST_CASE("a node that lacks a named child but has another is refused", "[structure]") {
  const Word leaf, top{0, &leaf, nullptr};
  check_says(word_error(cortex::tree, {&leaf, &top}),
             {"node 1", "root 1", "no 'right'", "a leaf has neither", "optional_child"});
  const Word other{0, nullptr, &leaf};
  check_says(word_error(cortex::dag, {&other}), {"no 'left'"});
}

TEST_CASE("a null element of a container is refused", "[structure]") {
  const Kids leaf, top{{&leaf, nullptr}};
  check_says(kids_error(cortex::tree, {&top}),
             {"element 1", "'kids'", "null", "node 0", "root 0", "cortex::optional_child<&Node::kids, 0>",
              "cortex::children<first, second>"});
}

TEST_CASE("more children than declared are refused, as many are not", "[structure]") {
  const Kids a, b, c, two{{&a, &b}}, top{{&two, &c}};
  cs::Workspace workspace;
  CHECK(KidsLinearizer::run(workspace, cortex::tree.with_max_children(2), {}, std::array{&top}).num_nodes == 5);
  check_says(kids_error(cortex::tree.with_max_children(1), {&top}),
             {"node 0", "2 children", "at most 1", "with_max_children"});
}

TEST_CASE("children that are not all counted, since there are too many, are said to be at least as many",
          "[structure]") {
  const std::vector<Kids> many(100000);
  Kids top;
  for (const Kids& kid : many) top.kids.push_back(&kid);
  check_says(kids_error(cortex::tree.with_max_children(100), {&top}), {"has at least ", "at most 100"});
  top.kids.resize(101);
  check_says(kids_error(cortex::tree.with_max_children(100), {&top}), {"has 101 children", "at most 100"});
}

TEST_CASE("children are counted over all accessors together", "[structure]") {
  using Set = cs::Accessors<cs::OptionalChild<&Item::left>, cs::Children<&Item::kids>>;
  Item a, b, c, top;
  top.left = &a;
  top.kids = {&b, &c};
  cs::Workspace workspace;
  auto run = [&](int bound) {
    cs::Linearizer<Item, Set>::run(workspace, cortex::tree.with_max_children(bound), {}, std::array{&top});
  };
  run(3);
  check_says(error_of(Code::invalid_structure, [&] { run(2); }), {"3 children", "'left', 'kids'"});
}

TEST_CASE("a container's repeated entries count as children of a DAG's node", "[structure]") {
  const Kids leaf, top{{&leaf, &leaf, &leaf}};
  check_says(kids_error(cortex::dag.with_max_children(2), {&top}), {"3 children"});
}

TEST_CASE("a null root is refused by its index", "[structure]") {
  const Word a;
  check_says(word_error(cortex::tree, {&a, nullptr}), {"root 1 is null"});
}

TEST_CASE("a bound of less than one child is refused", "[structure]") {
  check_says(error_of(Code::invalid_argument, [] { return cortex::tree.with_max_children(0); }),
             {"with_max_children: the bound is 0; the least is 1, and cortex::tree by itself has none"});
  error_of(Code::invalid_argument, [] { return cortex::tree.with_max_children(-1); });
}

TEST_CASE("more nodes than the workspace takes are refused, as many are not", "[structure]") {
  std::vector<Kids> leaves(99);
  Kids top;
  for (const Kids& leaf : leaves) top.kids.push_back(&leaf);
  cs::Workspace exact(100), narrow(99);
  CHECK(KidsLinearizer::run(exact, cortex::tree, {}, std::array{&top}).num_nodes == 100);
  check_says(error_of(Code::out_of_range, [&] { KidsLinearizer::run(narrow, cortex::tree, {}, std::array{&top}); }),
             {"more than 99 nodes", "fewer roots"});
  check_says(error_of(Code::out_of_range,
                      [&] { KidsLinearizer::run(narrow, cortex::tree, {}, std::vector<const Kids*>(100, &top)); }),
             {"more than 99 nodes"});
}

TEST_CASE("a binary tree of exactly as many nodes as the workspace takes is numbered", "[structure]") {
  std::vector<Word> words(255);
  for (std::size_t i = 0; i < 127; ++i) words[i].left = &words[2 * i + 1], words[i].right = &words[2 * i + 2];
  cs::Workspace exact(255), narrow(254);
  CHECK(WordLinearizer::run(exact, cortex::tree, any_id, {&words[0]}).num_nodes == 255);
  error_of(Code::out_of_range, [&] { WordLinearizer::run(narrow, cortex::tree, any_id, {&words[0]}); });
}

TEST_CASE("an array's places may be empty where each is a child of its own", "[structure]") {
  struct Gaps {
    std::array<const Gaps*, 3> kids{};
    const Gaps* more[2] = {};
    int id = 0;
  };
  using First = cs::OptionalChild<&Gaps::kids, 0>;
  using Third = cs::OptionalChild<&Gaps::kids, 2>;
  using Last = cs::Child<&Gaps::more, 1>;
  static_assert(cs::AccessorOf<Third, Gaps> && cs::AccessorOf<Last, Gaps>);
  static_assert(!cs::AccessorOf<cs::OptionalChild<&Gaps::kids, 3>, Gaps>);  // past the end
  static_assert(!cs::AccessorOf<cs::OptionalChild<&Gaps::kids, -1>, Gaps>);
  static_assert(!cs::AccessorOf<cs::OptionalChild<&Kids::kids, 0>, Kids>);  // a vector's size is not known
  static_assert(Third::name() == "kids[2]" && Last::name() == "more[1]");
  Gaps a, b, top;
  top.kids[2] = &a, top.more[1] = &b;
  cs::Workspace workspace;
  using Linearizer = cs::Linearizer<Gaps, cs::Accessors<First, Third, Last>>;
  const cs::Arrays& arrays = Linearizer::run(workspace, cortex::tree, {}, std::array{&top});
  CHECK(arrays.num_nodes == 3);
  CHECK(arrays.child[0][0] == 3);  // none
  CHECK(workspace.node(arrays.child[1][0]) == &a);
  CHECK(workspace.node(arrays.child[2][0]) == &b);
  top.more[1] = nullptr;
  check_says(error_of(Code::invalid_structure, [&] { Linearizer::run(workspace, cortex::tree, {}, std::array{&top}); }),
             {"'more[1]'"});
}
