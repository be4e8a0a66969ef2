// What the compiler remembers of nodes, by their addresses. The table is one class for all values: std::unordered_map is a
// dozen classes for each type of value, which every translation unit would pay for.
#pragma once

#include <initializer_list>
#include <memory>
#include <unordered_map>
#include <utility>

namespace cortex {

namespace detail {

/// An entry of a map without its value.
struct PointerEntry {
  const void* first;
  explicit PointerEntry(const void* key) : first(key) {}
  virtual ~PointerEntry() = default;
};

class PointerTable {
 public:
  PointerEntry* find(const void* key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : found->second.get();
  }
  /// Adds an entry for a key that has none.
  void add(PointerEntry* entry) { entries_[entry->first].reset(entry); }
  void erase(const void* key) { entries_.erase(key); }
  std::size_t size() const { return entries_.size(); }

 private:
  std::unordered_map<const void*, std::unique_ptr<PointerEntry>> entries_;
};

}  // namespace detail

/// From addresses to values, with the part of std::unordered_map's interface that passes need. It has no iteration:
/// addresses differ from run to run, and compiled code must not.
template <class Value>
class PointerMap {
 public:
  struct Entry : detail::PointerEntry {
    Value second;
    Entry(const void* key, Value value) : PointerEntry(key), second(std::move(value)) {}
  };
  struct Pair {
    const void* key;
    Value value;
  };
  struct Emplaced {
    Entry* first;
    bool second;  // false: the key had an entry, which stays
  };

  PointerMap() = default;
  PointerMap(std::initializer_list<Pair> pairs) {
    for (const Pair& pair : pairs) emplace(pair.key, pair.value);
  }

  /// The entry of `key`, or `end()`; it stays where it is until it is erased.
  Entry* find(const void* key) { return static_cast<Entry*>(table_.find(key)); }
  const Entry* find(const void* key) const { return static_cast<const Entry*>(table_.find(key)); }
  static constexpr std::nullptr_t end() { return nullptr; }

  Emplaced emplace(const void* key, Value value) {
    Entry* const entry = find(key);
    return entry ? Emplaced{entry, false} : Emplaced{add(key, std::move(value)), true};
  }
  void insert_or_assign(const void* key, Value value) {
    if (Entry* const entry = find(key)) entry->second = std::move(value);
    else add(key, std::move(value));
  }
  Value& operator[](const void* key) {
    Entry* const entry = find(key);
    return (entry ? entry : add(key, Value()))->second;
  }
  void erase(const void* key) { table_.erase(key); }

  bool contains(const void* key) const { return table_.find(key) != nullptr; }
  std::size_t size() const { return table_.size(); }
  bool empty() const { return size() == 0; }

 private:
  Entry* add(const void* key, Value value) {
    auto* const entry = new Entry(key, std::move(value));
    table_.add(entry);
    return entry;
  }

  detail::PointerTable table_;
};

}  // namespace cortex
