// Equal subtrees get one number: exactly those that are equal, whatever their hashes, and errors stay what they are.
#include <cmath>
#include <deque>
#include <limits>
#include <tuple>

#include "support.hpp"

using namespace structure_test;

namespace {

const std::vector<cs::FieldCheck> all_read(3);

/// Numbers of values by the definition: equal fields, bit for bit, and children of equal values.
struct Values {
  using Key = std::tuple<int, float, std::array<float, 3>, int, int, std::vector<int>>;
  std::map<const Item*, int> of;
  std::map<Key, int> known;

  int visit(const Item& item) {
    if (const auto found = of.find(&item); found != of.end()) return found->second;
    const int left = item.left ? visit(*item.left) : -1, right = item.right ? visit(*item.right) : -1;
    std::vector<int> kids;
    for (const Item* kid : item.kids) kids.push_back(visit(*kid));
    const Key key{item.id, item.weight, item.vector, left, right, kids};
    return of[&item] = known.try_emplace(key, int(known.size())).first->second;
  }
};

struct Items {
  std::deque<Item> all;
  std::vector<const Item*> roots;
};

/// Trees, or graphs, of few different nodes, so that many are equal.
Items random_items(unsigned seed, bool graph) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  Items items;
  std::vector<const Item*> open;  // without a parent yet
  for (int i = 0; i < 120; ++i) {
    Item& item = items.all.emplace_back();
    item.id = below(2), item.weight = float(below(2)), item.vector[std::size_t(below(3))] = 1;
    for (int kids = below(4); kids > 0 && !open.empty(); --kids) {
      const std::size_t at = std::size_t(below(int(open.size())));
      const Item* const kid = open[at];
      const int how = below(3);
      if (how == 0 && !item.left)
        item.left = kid;
      else if (how == 1 && !item.right)
        item.right = kid;
      else
        item.kids.push_back(kid);
      if (!graph || below(2)) open.erase(open.begin() + std::ptrdiff_t(at));
      if (std::set<const Item*>{item.left, item.right}.size() < 2 && item.left) item.right = nullptr;
    }
    open.push_back(&item);
  }
  items.roots = open;
  items.roots.push_back(open[0]);
  return items;
}

/// Numbers the items, equal ones alike as far as the hashes tell, and holds the arrays against them.
const cs::Arrays& numbered(cs::Workspace& workspace, const Items& items, cortex::Structure kind, Values& values) {
  const cs::Arrays& a = ItemLinearizer::run(workspace, kind, all_read, items.roots);
  for (const Item* root : items.roots) values.visit(*root);
  bool consistent = workspace.num_reached() == int(values.of.size());
  std::map<int, int> value_of;
  for (const auto& [item, value] : values.of) {
    const int n = workspace.find(item);
    consistent &= n >= 0 && n < a.num_nodes;
    consistent &= value_of.try_emplace(n, value).first->second == value;  // one number is never two values
    consistent &= a.child[0][n] == (item->left ? workspace.find(item->left) : a.num_nodes);
    consistent &= a.child[1][n] == (item->right ? workspace.find(item->right) : a.num_nodes);
    const cs::Csr& csr = a.children[0];
    consistent &= csr.begin[n + 1] - csr.begin[n] == int(item->kids.size());
    for (std::size_t k = 0; k < item->kids.size(); ++k)
      consistent &= csr.child[std::size_t(csr.begin[n]) + k] == workspace.find(item->kids[k]);
    consistent &= static_cast<const int*>(a.field[0].data)[n] == item->id;
    consistent &= static_cast<const float*>(a.field[1].data)[n] == item->weight;
    for (const Item* child : children_of(*item)) consistent &= workspace.find(child) > n;
    consistent &= (n >= a.num_internal) == children_of(*item).empty();
  }
  int in_batches = 0;
  for (int b = 0; b < a.num_batches; ++b) in_batches += a.batch_length[b];
  for (std::size_t r = 0; r < items.roots.size(); ++r) consistent &= a.root[r] == workspace.find(items.roots[r]);
  CHECK(consistent);
  CHECK(in_batches == a.num_nodes);
  CHECK(value_of.size() == std::size_t(a.num_nodes));
  return a;
}

cs::Workspace sharing(std::uint64_t hash_mask = ~std::uint64_t(0)) {
  cs::Workspace workspace;
  workspace.share_subtrees(true, hash_mask);
  return workspace;
}

/// The message of a run over words, with equal ones shared or not.
template <class Roots>
std::string refusal(bool shares, Code code, cortex::Structure kind, const std::vector<cs::FieldCheck>& checks,
                    const Roots& roots) {
  cs::Workspace workspace;
  workspace.share_subtrees(shares);
  return error_of(code, [&] { WordLinearizer::run(workspace, kind, checks, roots); });
}

}  // namespace

TEST_CASE("nodes of trees and graphs have one number exactly if they are equal", "[structure][sharing]") {
  cs::Workspace workspace = sharing();
  for (unsigned seed = 0; seed < 40; ++seed) {
    Values values;
    const bool graph = seed % 2;
    const Items items = random_items(seed, graph);
    const cs::Arrays& a = numbered(workspace, items, graph ? cortex::dag : cortex::tree, values);
    CHECK(a.num_nodes == int(values.known.size()));
    CHECK(a.num_nodes < workspace.num_reached());
  }
}

TEST_CASE("nodes whose hashes collide keep numbers of their own", "[structure][sharing]") {
  for (const std::uint64_t mask : {std::uint64_t(0), std::uint64_t(7) << 61, std::uint64_t(255)}) {
    cs::Workspace workspace = sharing(mask);
    for (unsigned seed = 0; seed < 20; ++seed) {
      Values values;
      const Items items = random_items(seed, seed % 2);
      const cs::Arrays& a = numbered(workspace, items, cortex::dag, values);
      CHECK(a.num_nodes >= int(values.known.size()));
      CHECK(a.num_nodes < workspace.num_reached());  // what is found before probing ends is shared still
    }
  }
}

TEST_CASE("without sharing every node has a number of its own", "[structure][sharing]") {
  const Word a{1}, b{1}, top{0, &a, &b};
  cs::Workspace workspace;
  CHECK(WordLinearizer::run(workspace, cortex::tree, any_id, {&top}).num_nodes == 3);
  workspace.share_subtrees(true);
  CHECK(WordLinearizer::run(workspace, cortex::tree, any_id, {&top}).num_nodes == 2);
  CHECK(workspace.find(&a) == workspace.find(&b));
  CHECK(workspace.num_reached() == 3);
  workspace.share_subtrees(false);
  CHECK(WordLinearizer::run(workspace, cortex::tree, any_id, {&top}).num_nodes == 3);
}

TEST_CASE("fields count where the model reads them, and nowhere else", "[structure][sharing]") {
  const Word a{1}, b{2}, left{3, &a}, right{4, &b};
  using Optional = cs::Accessors<cs::OptionalChild<&Word::left>, Id>;
  const auto values = [&](cs::Where where) {
    cs::Workspace workspace = sharing();
    const std::vector<cs::FieldCheck> checks{{where, -1, nullptr}};
    return cs::Linearizer<Word, Optional>::run(workspace, cortex::tree, checks, {&left, &right}).num_nodes;
  };
  CHECK(values(cs::Where::nowhere) == 2);
  CHECK(values(cs::Where::internal) == 3);
  CHECK(values(cs::Where::leaves) == 4);
  CHECK(values(cs::Where::all) == 4);
}

TEST_CASE("fields count at nodes at which their guards hold", "[structure][sharing]") {
  using Op = cs::KeyStep::Op;
  const Word a{1}, b{2}, c{2}, left{3, &a}, right{3, &b}, third{3, &c};
  using Optional = cs::Accessors<cs::OptionalChild<&Word::left>, Id>;
  const auto values = [&](const cs::Key& guard) {
    cs::Workspace workspace = sharing();
    const std::vector<cs::FieldCheck> checks{{cs::Where::all, -1, nullptr, 0, guard}};
    return cs::Linearizer<Word, Optional>::run(workspace, cortex::tree, checks, {&left, &right, &third}).num_nodes;
  };
  CHECK(values({}) == 4);
  CHECK(values({{Op::is_root}}) == 2);
  CHECK(values({{Op::constant, 0}}) == 2);
  // Read at one of them, and at the others not.
  CHECK(values({{Op::field}, {Op::constant, 1}, {Op::equal}}) == 4);
}

TEST_CASE("floating-point fields are compared by their bits", "[structure][sharing]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Item> items(6);
  items[0].weight = items[1].weight = nan;
  items[2].weight = std::copysign(nan, -1.0f);
  items[3].weight = 0.0f, items[4].weight = -0.0f, items[5].vector[2] = -0.0f;
  std::vector<const Item*> roots;
  for (const Item& item : items) roots.push_back(&item);
  cs::Workspace workspace = sharing();
  CHECK(ItemLinearizer::run(workspace, cortex::tree, all_read, roots).num_nodes == 5);
  CHECK(workspace.find(roots[0]) == workspace.find(roots[1]));
}

TEST_CASE("which child is absent, and how many there are, tells nodes apart", "[structure][sharing]") {
  const Item leaf, same;
  std::vector<Item> items(5);
  items[0].left = &leaf, items[1].right = &leaf, items[2].kids = {&leaf}, items[3].kids = {&leaf, &same};
  items[4].kids = {&same};
  std::vector<const Item*> roots;
  for (const Item& item : items) roots.push_back(&item);
  cs::Workspace workspace = sharing();
  CHECK(ItemLinearizer::run(workspace, cortex::dag, all_read, roots).num_nodes == 5);
  CHECK(workspace.find(&items[2]) == workspace.find(&items[4]));
}

TEST_CASE("bad input is refused in the same words, shared or not", "[structure][sharing]") {
  const std::vector<cs::FieldCheck> small{{cs::Where::leaves, 3, "Emb"}};
  Word bad{7}, again{7}, fine{1}, also{1};
  const Word two{0, &bad, &again}, one{0, &fine, &also}, top{0, &one, &two};
  Word loop{0, &fine, nullptr};
  loop.right = &loop;
  const Word shared{0, &fine, &fine}, half{0, &fine, nullptr}, twice{0, &shared, &one};
  const auto same = [&](Code code, const std::vector<const Word*>& roots, const char* part) {
    const std::string alone = refusal(false, code, cortex::tree, small, roots);
    CHECK_THAT(alone, Catch::Matchers::Contains(part));
    CHECK(alone == refusal(true, code, cortex::tree, small, roots));
  };
  same(Code::out_of_range, {&top}, "field 'id' of node 5");
  same(Code::out_of_range, {&again, &one, &bad}, "field 'id' of node 0");
  same(Code::invalid_structure, {&loop}, "a cycle");
  same(Code::invalid_structure, {&shared}, "a shared child");
  same(Code::invalid_structure, {&one, &one, &twice}, "a shared child");
  same(Code::invalid_structure, {&half}, "has no 'right'");
  same(Code::invalid_structure, {&one, nullptr}, "root 1 is null");
}

TEST_CASE("long chains that are equal become one", "[structure][sharing]") {
  constexpr int length = 300000;
  std::vector<Word> words(2 * length);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i].id = int(i) % length % 10;
    if (i % length > 0) words[i].left = &words[i - 1];
  }
  using Chain = cs::Linearizer<Word, cs::Accessors<cs::OptionalChild<&Word::left>, Id>>;
  cs::Workspace workspace = sharing();
  const cs::Arrays& a = Chain::run(workspace, cortex::sequence, any_id, {&words[length - 1], &words[2 * length - 1]});
  CHECK(a.num_nodes == length);
  CHECK(a.child_step == 1);
}
