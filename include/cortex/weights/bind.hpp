// A model's weights bound from a file, by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cortex/base/dim.hpp"
#include "cortex/base/error.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/runtime/executable.hpp"
#include "cortex/runtime/weights.hpp"
#include "cortex/weights/safetensors_file.hpp"

namespace cortex {

/// Names of a model's inputs, and the names that their tensors have in a file where those differ.
using TensorNames = std::map<std::string, std::string>;

/// Whether a file may hold tensors that no input of the model asks for.
enum class UnusedTensors : bool { allowed, refused };

namespace weights {

/// The extents that a tensor of `shape` has in the dimensions `dims`; none if it does not fit. It fits if its
/// dimensions become those of `dims` by splitting some, [4 * H, D] for [4, H, D], and joining others, [2, H, D] for [2
/// * H, D]: elements lie in row-major order, so both leave every element where it is, and there is one way to do it.
/// Regrouping the same number of elements, [4, 6] for [6, 4], does not fit. An open dimension is as long as the
/// tensor's first.
inline std::optional<std::vector<std::int64_t>> fitted(const Vector<Dim>& dims,
                                                       const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> extents;
  for (const Dim& dim : dims)
    extents.push_back(dim.kind() != DimKind::open ? dim.extent() : shape.empty() ? 1 : shape[0]);

  // Dimensions of one element may stand anywhere. Between them, groups of dimensions correspond: one to one or more.
  std::vector<std::int64_t> wanted, given;
  for (const std::int64_t extent : extents)
    if (extent != 1) wanted.push_back(extent);
  for (const std::int64_t extent : shape)
    if (extent != 1) given.push_back(extent);
  std::size_t w = 0, g = 0;
  while (w < wanted.size() && g < given.size()) {
    const std::size_t first_w = w, first_g = g;
    std::int64_t wanted_product = wanted[w++], given_product = given[g++];
    while (wanted_product != given_product) {
      const bool more_wanted = wanted_product < given_product;
      if (more_wanted ? w == wanted.size() : g == given.size()) return std::nullopt;
      std::int64_t& product = more_wanted ? wanted_product : given_product;
      if (__builtin_mul_overflow(product, more_wanted ? wanted[w++] : given[g++], &product)) return std::nullopt;
    }
    if (w - first_w > 1 && g - first_g > 1) return std::nullopt;
  }
  if (w != wanted.size() || g != given.size()) return std::nullopt;
  return extents;
}

/// What of a file is bound to the inputs of one model, and all that stands in the way.
class Binding {
 public:
  Binding(const runtime::Executable& executable, const SafetensorsFile& file, const TensorNames& names)
      : inputs_(executable.weights), file_(file) {
    const std::string model = "model " + in_quotes(executable.graph.name);
    for (const runtime::WeightSpec& input : inputs_) known_.push_back(input.name);
    for (const auto& [input, tensor] : names)
      if (!contains(known_, input))
        problems_.push_back(model + " has no input " + in_quotes(input) + " to bind tensor " + in_quotes(tensor) +
                            " to; " + near_names(input, known_));
    for (const runtime::WeightSpec& input : inputs_) {
      const auto other = names.find(input.name);
      tensors_.push_back(other == names.end() ? input.name : other->second);
      extents_.push_back(extents_of(input, tensors_.back()));
    }
    check_open_dimensions();
  }

  void refuse_unused() {
    const std::set<std::string> used(tensors_.begin(), tensors_.end());
    for (const std::string& name : file_.names())
      if (!used.count(name))
        problems_.push_back("tensor " + in_quotes(name) + " is taken by no input" + why_unused(name));
  }

  std::string why_unused(const std::string& tensor) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].name == tensor) return ": input " + in_quotes(tensor) + " was given " + in_quotes(tensors_[i]);
    return "; of the model's inputs, " + near_names(tensor, known_);
  }

  /// Throws what stands in the way, a line for each.
  void check() const {
    std::string all;
    for (const std::string& problem : problems_) all += (all.empty() ? "" : "\n  ") + problem;
    if (!all.empty()) refuse(file_.source(), all);
  }

  /// All tensors together, or none: values may still not be what the elements hold in which a schedule stores them.
  template <class Model>
  void bind(Model& model) {
    model.bind_together([&] {
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (file_.contains(tensors_[i])) bind(model, i);  // else no result depends on it
      check();
    });
  }

 private:
  template <class Model>
  void bind(Model& model, std::size_t i) {
    const std::span<const std::int64_t> extents(extents_[i]);
    try {
      if (inputs_[i].dtype == DType::f64)
        model.bind(inputs_[i].name, file_.read<double>(tensors_[i]), extents);
      else
        model.bind(inputs_[i].name, file_.read<float>(tensors_[i]), extents);
    } catch (const Error& error) {
      if (error.code != Code::invalid_weights) throw;
      problems_.push_back("tensor " + in_quotes(tensors_[i]) + ": " + error.message);
    }
  }

  /// What `tensor` is in the dimensions of `input`; empty where there is a problem.
  std::vector<std::int64_t> extents_of(const runtime::WeightSpec& input, const std::string& name) {
    const std::string wanted = "input " + in_quotes(input.name) + " " + runtime::shape_text(input.dims);
    if (!file_.contains(name) && !input.read) return {};
    if (!file_.contains(name)) {
      problems_.push_back("it has no tensor " + in_quotes(name) + " for " + wanted + "; " +
                          near_names(name, file_.names()));
      return {};
    }
    const TensorView& tensor = file_.tensor(name);
    const std::string given = "tensor " + in_quotes(name);
    if (!is_floating(tensor.type))
      problems_.push_back(given + " holds " + std::string(to_string(tensor.type)) + ", but " + wanted +
                          " takes floating-point numbers");
    const std::optional<std::vector<std::int64_t>> extents = fitted(input.dims, tensor.shape);
    if (extents && tensor.size() > 0) return *extents;
    problems_.push_back(given + " has shape " + text_of(tensor.shape) + ", which " +
                        (extents ? "leaves no elements for " : "does not fit ") + wanted);
    return {};
  }

  /// Inputs with the same open dimension must get as many rows.
  void check_open_dimensions() {
    for (std::size_t b = 0; b < inputs_.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        if (!inputs_[a].read || !inputs_[b].read || extents_[a].empty() || extents_[b].empty()) continue;
        if (inputs_[a].dims[0] != inputs_[b].dims[0]) continue;
        if (extents_[a][0] == extents_[b][0]) continue;
        problems_.push_back("dimension " + in_quotes(inputs_[b].dims[0].name()) + " has " +
                            std::to_string(extents_[a][0]) + " elements in tensor " + in_quotes(tensors_[a]) + " and " +
                            std::to_string(extents_[b][0]) + " in " + in_quotes(tensors_[b]));
        break;
      }
    }
  }

  const Vector<runtime::WeightSpec>& inputs_;
  const SafetensorsFile& file_;
  std::vector<std::string> known_;                  // [inputs] their names
  std::vector<std::string> tensors_;                // [inputs] the names of their tensors
  std::vector<std::vector<std::int64_t>> extents_;  // [inputs]
  std::vector<std::string> problems_;
};

/// A compiled model: `Functor`, `cuda::Model`.
template <class Model>
concept HasExecutable = requires(Model& model, const std::vector<float>& values, std::span<const std::int64_t> shape) {
  { model.executable() } -> std::convertible_to<const runtime::Executable&>;
  model.bind(std::string(), values, shape);
  model.bind_together([] {});
};

}  // namespace weights

/// Binds every input of `model` to the tensor of its name in `file`, or of the name that `names` has for it, converted
/// to the input's type (F64 to f32 rounds). A tensor's dimensions may be those of the input split or joined: [4 * H, D]
/// fits [4, H, D], since elements lie in row-major order and stay where they are. Several inputs may share a tensor.
///
/// All or nothing: throws `Error{invalid_weights}` before any is bound, with all that is wrong: inputs whose tensor is
/// missing (with names that are near; one that no result depends on may be missing), of integers, or of another shape;
/// open dimensions that disagree; values that the type does not hold as which a schedule stores an input, which are
/// looked at where all else is right; names in `names` that the model does not have; with `UnusedTensors::refused` also
/// tensors that no input asks for. The same if memory runs out. Calls on other threads have either the old weights or
/// the new ones, never some of each: a server may bind anew while it serves.
template <weights::HasExecutable Model>
void bind(Model& model, const SafetensorsFile& file, const TensorNames& names = {},
          UnusedTensors unused = UnusedTensors::allowed) {
  weights::Binding binding(model.executable(), file, names);
  if (unused == UnusedTensors::refused) binding.refuse_unused();
  binding.check();
  binding.bind(model);
}

/// `bind`, whose error is returned.
template <weights::HasExecutable Model>
Result<Done> try_bind(Model& model, const SafetensorsFile& file, const TensorNames& names = {},
                      UnusedTensors unused = UnusedTensors::allowed) {
  return attempt([&] { return bind(model, file, names, unused), Done(); });
}

}  // namespace cortex
