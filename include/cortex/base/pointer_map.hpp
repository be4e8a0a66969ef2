// What the compiler remembers of nodes, by their addresses. The table is one class for all values: std::unordered_map
// is a dozen classes for each type of value, which every translation unit would pay for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "cortex/base/vector.hpp"

namespace cortex {

namespace detail {

/// An entry of a map without its value.
struct PointerEntry {
  const void* first;
  PointerEntry* next = nullptr;  // in its chain
  explicit PointerEntry(const void* key) : first(key) {}
  virtual ~PointerEntry() = default;
};

/// Owns entries, in chains by their keys' hashes.
class PointerTable {
 public:
  PointerTable() = default;
  PointerTable(PointerTable&& other) noexcept : chains_(std::move(other.chains_)), size_(other.size_) {
    other.size_ = 0;
  }
  PointerTable& operator=(PointerTable&& other) noexcept {
    std::swap(chains_, other.chains_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~PointerTable() {
    for (PointerEntry* entry : chains_)
      while (entry) delete std::exchange(entry, entry->next);
  }

  PointerEntry* find(const void* key) const {
    if (size_ == 0) return nullptr;
    PointerEntry* entry = chains_[hash(key)];
    while (entry && entry->first != key) entry = entry->next;
    return entry;
  }
  /// Provides for one more entry.
  void make_room() {
    if (size_ == chains_.size()) grow();
  }
  /// Adds an entry for a key that has none, after `make_room`.
  void add(PointerEntry* entry) {
    entry->next = std::exchange(chains_[hash(entry->first)], entry);
    ++size_;
  }
  void erase(const void* key) {
    if (size_ == 0) return;
    PointerEntry** link = &chains_[hash(key)];
    while (*link && (*link)->first != key) link = &(*link)->next;
    if (!*link) return;
    delete std::exchange(*link, (*link)->next);
    --size_;
  }
  std::size_t size() const { return size_; }

 private:
  /// The chain of a key; nodes lie 16 bytes apart and often side by side.
  std::size_t hash(const void* key) const {
    return (reinterpret_cast<std::uintptr_t>(key) * 0x9E3779B97F4A7C15u >> 32) & (chains_.size() - 1);
  }
  void grow() {
    Vector<PointerEntry*> old(chains_.empty() ? 8 : 2 * chains_.size());
    old.swap(chains_);
    for (PointerEntry* entry : old) {
      while (entry) {
        PointerEntry* const next = entry->next;
        entry->next = std::exchange(chains_[hash(entry->first)], entry);
        entry = next;
      }
    }
  }

  Vector<PointerEntry*> chains_;  // a power of two of them
  std::size_t size_ = 0;
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
    if (Entry* const entry = find(key))
      entry->second = std::move(value);
    else
      add(key, std::move(value));
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
    table_.make_room();
    auto* const entry = new Entry(key, std::move(value));
    table_.add(entry);
    return entry;
  }

  detail::PointerTable table_;
};

/// Addresses.
class PointerSet {
 public:
  PointerSet() = default;
  PointerSet(std::initializer_list<const void*> keys) {
    for (const void* key : keys) insert(key);
  }

  /// Whether the key was not there yet.
  bool insert(const void* key) {
    if (contains(key)) return false;
    table_.make_room();
    table_.add(new detail::PointerEntry(key));
    return true;
  }
  void erase(const void* key) { table_.erase(key); }
  bool contains(const void* key) const { return table_.find(key) != nullptr; }
  bool empty() const { return table_.size() == 0; }

 private:
  detail::PointerTable table_;
};

}  // namespace cortex
