// A growing array with the part of std::vector's interface that the library needs. A compiler keeps a hundred types of
// things in a row, and std::vector is some fifty functions and traits for each of them: half of the time that
// `#include <cortex/cortex.hpp>` would take. This is one small class, an eighth as dear.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <new>
#include <utility>
#include <vector>

#include "cortex/base/error.hpp"

namespace cortex {

/// Elements side by side; as std::vector, but for these: iterators are pointers, elements have to move without
/// throwing, and bools are bools.
template <class T>
class Vector {
 public:
  using value_type = T;

  Vector() = default;
  explicit Vector(std::size_t size) : Vector() { resize(size); }
  Vector(std::size_t size, const T& value) : Vector() { resize(size, value); }
  Vector(std::initializer_list<T> elements) : Vector() { assign(elements.begin(), elements.end()); }
  template <class Iterator>
  requires requires(Iterator i) { *i; }
  Vector(Iterator first, Iterator last) : Vector() { assign(first, last); }
  template <class U>
  Vector(const std::vector<U>& elements) : Vector() {
    assign(elements.begin(), elements.end());
  }
  /// A template, so that only what converts instantiates std::vector<T>.
  template <class U>
  requires std::same_as<U, std::vector<T>>
  operator U() const {
    return U(begin(), end());
  }
  Vector(const Vector& other) : Vector() { assign(other.begin(), other.end()); }
  Vector(Vector&& other) noexcept { swap(other); }
  Vector& operator=(const Vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  Vector& operator=(Vector&& other) noexcept {
    Vector(std::move(other)).swap(*this);
    return *this;
  }
  ~Vector() {
    clear();
    ::operator delete(data_);
  }

  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  const T* begin() const { return data_; }
  T* end() { return data_ + size_; }
  const T* end() const { return data_ + size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& at(std::size_t i) { return check(i), data_[i]; }
  const T& at(std::size_t i) const { return check(i), data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void push_back(T element) {
    if (size_ == capacity_) reserve(capacity_ ? 2 * capacity_ : 4);
    ::new (static_cast<void*>(data_ + size_)) T(std::move(element));
    ++size_;
  }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    push_back(T(std::forward<Arguments>(arguments)...));
    return back();
  }
  void pop_back() { data_[--size_].~T(); }
  void clear() {
    while (size_ > 0) pop_back();
  }

  void reserve(std::size_t capacity) {
    static_assert(noexcept(T(std::move(*data_))) && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
    if (capacity <= capacity_) return;
    T* const to = static_cast<T*>(::operator new(capacity * sizeof(T)));
    for (std::size_t i = 0; i < size_; ++i) {
      ::new (static_cast<void*>(to + i)) T(std::move(data_[i]));
      data_[i].~T();
    }
    ::operator delete(data_);
    data_ = to;
    capacity_ = capacity;
  }
  void resize(std::size_t size) {
    while (size_ > size) pop_back();
    reserve(size);
    for (; size_ < size; ++size_) ::new (static_cast<void*>(data_ + size_)) T();
  }
  void resize(std::size_t size, T value) {
    while (size_ > size) pop_back();
    reserve(size);
    while (size_ < size) push_back(value);
  }
  void assign(std::size_t size, T value) {
    clear();
    resize(size, std::move(value));
  }
  /// The elements from `first` to `last`, which are none of this.
  template <class Iterator>
  requires requires(Iterator i) { *i; }
  void assign(Iterator first, Iterator last) {
    clear();
    if constexpr (requires { last - first; }) reserve(std::size_t(last - first));
    for (; first != last; ++first) push_back(*first);
  }

  T* insert(const T* at, T element) {
    std::size_t i = size_;
    const std::size_t position = std::size_t(at - data_);
    push_back(std::move(element));
    for (; i > position; --i) std::swap(data_[i], data_[i - 1]);
    return data_ + position;
  }
  /// The elements from `first` to `last`, which are none of this.
  template <class Iterator>
  void insert(const T* at, Iterator first, Iterator last) {
    for (std::size_t position = std::size_t(at - data_); first != last; ++first) insert(data_ + position++, *first);
  }
  T* erase(const T* at) { return erase(at, at + 1); }
  T* erase(const T* first, const T* last) {
    T* const gap = data_ + (first - data_);
    if (first == last) return gap;
    T* to = gap;
    for (T* from = data_ + (last - data_); from != end(); ++from) *to++ = std::move(*from);
    while (end() != to) pop_back();
    return gap;
  }
  void swap(Vector& other) noexcept {
    T* const data = data_;
    const std::size_t size = size_, capacity = capacity_;
    data_ = other.data_, size_ = other.size_, capacity_ = other.capacity_;
    other.data_ = data, other.size_ = size, other.capacity_ = capacity;
  }

  friend bool operator==(const Vector& a, const Vector& b) {
    if (a.size_ != b.size_) return false;
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  void check(std::size_t i) const {
    if (i >= size_) throw Error(Code::internal, "an index past the end of a vector");
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace cortex
