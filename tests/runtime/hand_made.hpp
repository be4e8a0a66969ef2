// Executables made by hand, with kernels written in C++: what the runtime does is tested without the compiler.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cortex/runtime/functor.hpp"
#include "support/models.hpp"

namespace cortex::test {

using Left = std::remove_const_t<decltype(left)>;
using Right = std::remove_const_t<decltype(right)>;
using Id = std::remove_const_t<decltype(word)>;
// Another order than the graph's, so that pointers must be mapped.
using WordSet = structure::Accessors<Right, Id, Left>;
using SumFunctor = Functor<Word, WordSet, float>;

inline ir::Buffer buffer(std::string name, DType dtype, std::vector<Dim> dims, ir::Role role, int slot = -1) {
  ir::BufferInfo info;
  info.name = std::move(name);
  info.dtype = dtype;
  info.dims = std::move(dims);
  info.role = role;
  info.slot = slot;
  info.layout = runtime::layout_of(info);
  return ir::Buffer(std::move(info));
}

/// The buffers of the model "sum", by position.
enum SumBuffer { state_h, weight_emb, counts, child_left, child_right, field_id };

/// These, and the worker's columns.
struct SumArgs {
  static constexpr int width = 8, row = 16;
  explicit SumArgs(const codegen::KernelArgs* args)
      : sizes(static_cast<const std::int32_t*>(args->buffers[counts])),
        l(static_cast<const std::int32_t*>(args->buffers[child_left])),
        r(static_cast<const std::int32_t*>(args->buffers[child_right])),
        id(static_cast<const std::int32_t*>(args->buffers[field_id])),
        emb(static_cast<const float*>(args->buffers[weight_emb])),
        h(static_cast<float*>(args->buffers[state_h])),
        begin(width * args->worker / args->num_workers),
        end(width * (args->worker + 1) / args->num_workers) {}
  const std::int32_t *sizes, *l, *r, *id;
  const float* emb;
  float* h;
  std::int32_t begin, end;
};

/// h(leaf) = Emb[id], h(node) = h(left) + h(right), node by node.
inline void sum_kernel(const codegen::KernelArgs* args) {
  const auto [sizes, l, r, id, emb, h, begin, end] = SumArgs(args);
  constexpr int width = SumArgs::width, row = SumArgs::row;
  for (std::int32_t n = sizes[0] - 1; n >= 0; --n)
    for (std::int32_t i = begin; i < end; ++i)
      h[n * row + i] = n >= sizes[1] ? emb[id[n] * width + i] : h[l[n] * row + i] + h[r[n] * row + i];
}

/// An executable of the model "sum": [hidden 8] f32 states in rows of 16, Emb [vocabulary, hidden]. Over `Word`, unless
/// the accessors L, R and I of another node type's children and word are given.
template <class L = Left, class R = Right, class I = Id>
runtime::Executable sum_executable() {
  const Dim V{"vocabulary"}, H{"hidden", 8};
  runtime::Executable e;
  e.graph.name = "sum";
  e.graph.children_named = {{"left", dsl::accessor_key<L>()}, {"right", dsl::accessor_key<R>()}};
  e.graph.fields = {{"id", dsl::accessor_key<I>()}};
  ir::Buffer h = buffer("h", DType::f32, {dims::node, H}, ir::Role::state);
  ir::BufferInfo padded = *h;
  padded.layout.axes[0].stride = 16;
  padded.layout.row_size = 16;
  e.program.name = "sum";
  e.program.buffers = {ir::Buffer(padded),
                       buffer("Emb", DType::f32, {V, H}, ir::Role::weight, 0),
                       buffer("counts", DType::i32, {}, ir::Role::index, ir::slot_of::counts),
                       buffer("left", DType::i32, {dims::node}, ir::Role::index, ir::slot_of::child + 0),
                       buffer("right", DType::i32, {dims::node}, ir::Role::index, ir::slot_of::child + 1),
                       buffer("id", DType::i32, {dims::node}, ir::Role::index, ir::slot_of::field + 0)};
  e.kernel = &sum_kernel;
  e.weights = {{"Emb", DType::f32, {V, H}}};
  e.states = {{"h", DType::f32, {H}, state_h}};
  e.fields = {{structure::Where::leaves, 0, -1, "Emb"}};
  return e;
}

inline SumFunctor functor(runtime::Executable e, const CompileOptions& options = {}) {
  return SumFunctor(std::make_shared<const runtime::Executable>(std::move(e)), options);
}

/// Emb[v, i] = scale * (v + 1) + i.
inline std::vector<float> embedding(int vocabulary, float scale = 1) {
  std::vector<float> values;
  for (int v = 0; v < vocabulary; ++v)
    for (int i = 0; i < 8; ++i) values.push_back(scale * float(v + 1) + float(i));
  return values;
}

/// A complete tree with 2^depth leaves whose ids count from `first`; its nodes live in `nodes`.
inline const Word* tree_of_depth(std::deque<Word>& nodes, int depth, int& next_id) {
  if (depth == 0) return &nodes.emplace_back(Word{next_id++, nullptr, nullptr});
  const Word* const l = tree_of_depth(nodes, depth - 1, next_id);
  const Word* const r = tree_of_depth(nodes, depth - 1, next_id);
  return &nodes.emplace_back(Word{-1, l, r});
}

/// Runs `f` and gives the message of the `Error` of that code; empty if there was none, "wrong code" for another.
inline std::string error_of(Code code, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code == code ? error.message
                              : "wrong code " + std::string(to_string(error.code)) + ": " + error.message;
  }
  return {};
}

}  // namespace cortex::test
