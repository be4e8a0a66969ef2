// Random structures of Items, and where their nodes stand.
#pragma once

#include <deque>

#include "structure/support.hpp"

namespace structure_test {

/// The batch that each node of the last run stands in.
inline std::map<const void*, int> batches_of(const cs::Workspace& workspace) {
  const cs::Arrays& a = workspace.arrays();
  std::map<const void*, int> result;
  for (int b = 0; b < a.num_batches; ++b)
    for (int n = a.batch_begin[b]; n < a.batch_begin[b] + a.batch_length[b]; ++n) result[workspace.node(n)] = b;
  return result;
}

/// Random nodes with named children and containers, children before parents; shared ones with `graph`.
struct Items {
  std::deque<Item> all;
  std::vector<const Item*> roots;
  Items(unsigned seed, bool graph, int count) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return int(random() % unsigned(n)); };
    std::vector<const Item*> open;
    for (int i = 0; i < count; ++i) {
      Item& item = all.emplace_back();
      item.id = below(3);
      for (int kids = below(4); kids > 0 && !open.empty(); --kids) {
        const std::size_t at = below(2) ? open.size() - 1 : std::size_t(below(int(open.size())));
        const Item* const kid = open[at];
        if (item.left == kid || item.right == kid || std::count(item.kids.begin(), item.kids.end(), kid)) continue;
        (item.left ? item.right ? *item.kids.insert(item.kids.end(), nullptr) : item.right : item.left) = kid;
        if (!graph || below(2)) open.erase(open.begin() + std::ptrdiff_t(at));
      }
      open.push_back(&item);
    }
    roots = open;
  }
};

const inline std::vector<cs::FieldCheck> all_read(3);

}  // namespace structure_test
