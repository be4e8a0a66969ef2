// Runs the interpreter's bytecode over buffers of any element type, and stops at barriers, so that several workers can
// take turns in one thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "cortex/base/half.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/base/vectors.hpp"
#include "cortex/ir/bytecode.hpp"

namespace cortex::ir::vm {

/// What an element of a double array holds that nothing was stored to: a NaN that no arithmetic gives.
inline constexpr std::uint64_t unset_bits = 0x7ff8'dead'beef'0bad;
inline const double unset = std::bit_cast<double>(unset_bits);
inline bool is_unset(double value) { return std::bit_cast<std::uint64_t>(value) == unset_bits; }

/// The memory of a buffer. An index list is an offset by `stride`; with `extent`, each index is checked.
struct Binding {
  DType dtype = DType::f64;
  void* data = nullptr;
  Vector<std::int64_t> extent, stride;
  std::int64_t stored_rows = -1;  // stores to the outermost index are below it; -1: below its extent
  bool writable = true;
  bool tracked = false;       // doubles: reading `unset` is an error
  std::int64_t past_end = 0;  // so many elements past the end may be read, and give what cannot be used as an index
};

/// An array of the linearizer for the children of one container: see structure::Csr.
struct EdgeArrays {
  const std::int32_t* begin = nullptr;
  const std::int32_t* child = nullptr;
  std::int32_t num_edges = 0, max_batch_edges = 0;
};

/// How the inner nodes group into subtrees: see structure::Subtrees.
struct SubtreeArrays {
  std::int32_t num_groups = 0;
  const std::int32_t* group_begin = nullptr;
  const std::int32_t* group_node = nullptr;
  const std::int32_t* inner_begin = nullptr;
  const std::int32_t* inner_child = nullptr;
};

/// The numbers and arrays that uninterpreted functions read. `child`, `edges` and `field` are those of one call's
/// accessor.
struct CallContext {
  std::int32_t num_nodes = 0, num_internal = 0, num_batches = 0;
  const std::int32_t* batch_begin = nullptr;
  const std::int32_t* batch_length = nullptr;
  const std::int32_t* part_begin = nullptr;
  const std::int32_t* part_length = nullptr;
  const std::int32_t* part_offset = nullptr;
  const std::int32_t* part_list = nullptr;
  const std::int32_t* root = nullptr;
  std::int32_t num_parts = 1, num_roots = 0;
  const SubtreeArrays* subtrees = nullptr;
  const std::int32_t* child = nullptr;
  EdgeArrays edges;
  const std::int32_t* field = nullptr;
  std::int32_t field_stride = 1;
  bool known = false;  // false: there is no structure, only the worker's number
};

/// Nobody watches what a machine reads and writes, and that costs nothing. An observer has `touch(worker, access,
/// offset, write)`, which is called for each element.
struct Unobserved {
  static constexpr bool watches = false;
};

class Machine {
 public:
  Machine(const Bytecode& code, Vector<Binding> bindings, Vector<CallContext> calls, int worker, int num_workers)
      : bytecode_(code),
        bindings_(std::move(bindings)),
        calls_(std::move(calls)),
        worker_(worker),
        num_workers_(num_workers),
        registers_(code.constants.size() + std::size_t(code.num_registers)),
        locals_(std::size_t(code.local_size), unset) {
    std::reverse_copy(code.constants.begin(), code.constants.end(), registers_.begin());
    bindings_.resize(code.buffers.size());
    for (std::size_t b = std::size_t(code.num_buffers); b < code.buffers.size(); ++b) bindings_[b] = local_binding(b);
    for (const Access& access : code.accesses)
      places_.push_back(place_of(access, bindings_[std::size_t(access.buffer)]));
  }

  Machine(const Machine&) = delete;  // bindings of local buffers point into its own memory
  Machine(Machine&&) = default;

  /// Runs to the next barrier (true) or to the end (false).
  bool run() {
    Unobserved nobody;
    return run(nobody);
  }
  template <class Observer>
  bool run(Observer& observer) {
    double* const r = registers_.data() + bytecode_.constants.size();
    const Instruction* const code = bytecode_.code.data();
    for (const Instruction* at = code + at_;;) {
      const Instruction& i = *at++;
      switch (i.op) {
        case Opcode::jump: at = code + i.c; break;
        case Opcode::jump_unless:
          if (r[i.a] == 0) at = code + i.c;
          break;
        case Opcode::jump_if:
          if (r[i.a] != 0) at = code + i.c;
          break;
        case Opcode::loop:
          if (!enter(i, r, 0, r[i.a])) at = code + i.c;
          break;
        case Opcode::share: {
          const auto pieces = std::int64_t(r[i.a]) / i.b;
          if (!enter(i, r, double(pieces * worker_ / num_workers_ * i.b),
                     double(pieces * (worker_ + 1) / num_workers_ * i.b)))
            at = code + i.c;
          break;
        }
        case Opcode::next:
          if (++r[i.dst] < r[i.dst + 1]) at = code + i.c;
          break;
        case Opcode::load: load(i, r, observer); break;
        case Opcode::store: store(i, r, observer); break;
        case Opcode::call: r[i.dst] = call(std::size_t(i.a), r); break;
        case Opcode::forget: {
          const Local& local = bytecode_.locals[std::size_t(i.a)];
          std::fill_n(locals_.begin() + local.begin, local.size, unset);
          break;
        }
        case Opcode::barrier: at_ = std::int32_t(at - code); return true;
        case Opcode::end: at_ = std::int32_t(at - code); return false;
        default: arithmetic(i, r);
      }
    }
  }

 private:
  [[noreturn, gnu::noinline]] void fail(const std::string& what) const {
    throw Error(Code::internal, "interpreter: program '" + bytecode_.program + "': " + what);
  }

  Binding local_binding(std::size_t number) {
    const BufferInfo& buffer = *bytecode_.buffers[number];
    const Local& local = bytecode_.locals[number - std::size_t(bytecode_.num_buffers)];
    Binding result;
    result.data = locals_.data() + local.begin;
    result.tracked = true;
    std::int64_t stride = buffer.lanes;
    for (const auto& dim : reversed(buffer.dims)) {
      result.extent.insert(result.extent.begin(), dim.extent());
      result.stride.insert(result.stride.begin(), stride);
      stride *= dim.extent();
    }
    return result;
  }

  /// Whether there is anything in it.
  static bool enter(const Instruction& i, double* r, double begin, double end) {
    r[i.dst] = begin;
    r[i.dst + 1] = end;
    return begin < end;
  }

  // ---- arithmetic ----

  template <class F>
  static void map(const Instruction& i, double* r, F f) {
    if (i.lanes == 1) return void(r[i.dst] = f(r[i.a]));
    for (int lane = 0; lane < i.lanes; ++lane) r[i.dst + lane] = f(r[i.a + lane]);
  }
  template <class F>
  static void zip(const Instruction& i, double* r, F f) {
    if (i.lanes == 1) return void(r[i.dst] = f(r[i.a], r[i.b]));
    for (int lane = 0; lane < i.lanes; ++lane) r[i.dst + lane] = f(r[i.a + lane], r[i.b + lane]);
  }

  /// IEEE 754-2019 minimum and maximum: NaN if either is, and -0 below 0.
  static double least(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
  }
  static double greatest(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
    return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
  }
  /// a * 2^b for integral b; NaN and infinite b go their way.
  static double scaled(double a, double b) { return std::abs(b) < 5000 ? std::ldexp(a, int(b)) : a * std::exp2(b); }
  /// The significand in [2/3, 4/3) and the exponent of a positive number.
  static std::pair<double, double> taken_apart(double a) {
    int exponent = 0;
    const double significand = std::frexp(a, &exponent);
    return 3 * significand >= 2 ? std::pair{significand, double(exponent)}
                                : std::pair{2 * significand, double(exponent - 1)};
  }
  /// Integers in doubles: division is exact below 2^52, and a divisor of 0 counts as 1, as in generated code.
  static double quotient(double a, double b) { return std::trunc(a / (b == 0 ? 1 : b)); }

  void arithmetic(const Instruction& i, double* r) const {
    switch (i.op) {
      case Opcode::add: return zip(i, r, [](double a, double b) { return a + b; });
      case Opcode::sub: return zip(i, r, [](double a, double b) { return a - b; });
      case Opcode::mul: return zip(i, r, [](double a, double b) { return a * b; });
      case Opcode::div: return zip(i, r, [](double a, double b) { return a / b; });
      case Opcode::remainder: return zip(i, r, [](double a, double b) { return std::fmod(a, b); });
      case Opcode::int_div: return zip(i, r, quotient);
      case Opcode::int_mod: return zip(i, r, [](double a, double b) { return a - (b == 0 ? 1 : b) * quotient(a, b); });
      case Opcode::min: return zip(i, r, least);
      case Opcode::max: return zip(i, r, greatest);
      case Opcode::eq: return zip(i, r, [](double a, double b) { return double(a == b); });
      case Opcode::ne: return zip(i, r, [](double a, double b) { return double(a != b); });
      case Opcode::lt: return zip(i, r, [](double a, double b) { return double(a < b); });
      case Opcode::le: return zip(i, r, [](double a, double b) { return double(a <= b); });
      case Opcode::gt: return zip(i, r, [](double a, double b) { return double(a > b); });
      case Opcode::ge: return zip(i, r, [](double a, double b) { return double(a >= b); });
      case Opcode::both: return zip(i, r, [](double a, double b) { return double(a != 0 && b != 0); });
      case Opcode::either: return zip(i, r, [](double a, double b) { return double(a != 0 || b != 0); });
      case Opcode::ldexp: return zip(i, r, scaled);
      case Opcode::pow: return zip(i, r, [](double a, double b) { return std::pow(a, b); });
      case Opcode::neg: return map(i, r, [](double a) { return -a; });
      case Opcode::abs: return map(i, r, [](double a) { return std::abs(a); });
      case Opcode::exp: return map(i, r, [](double a) { return std::exp(a); });
      case Opcode::log: return map(i, r, [](double a) { return std::log(a); });
      case Opcode::sqrt: return map(i, r, [](double a) { return std::sqrt(a); });
      case Opcode::tanh: return map(i, r, [](double a) { return std::tanh(a); });
      case Opcode::sigmoid: return map(i, r, [](double a) { return 1 / (1 + std::exp(-a)); });
      case Opcode::relu: return map(i, r, [](double a) { return a < 0 ? 0 : a; });
      case Opcode::round: return map(i, r, [](double a) { return std::nearbyint(a); });
      case Opcode::negate: return map(i, r, [](double a) { return double(a == 0); });
      case Opcode::floor: return map(i, r, [](double a) { return std::floor(a); });
      case Opcode::erf: return map(i, r, [](double a) { return std::erf(a); });
      case Opcode::sin: return map(i, r, [](double a) { return std::sin(a); });
      case Opcode::cos: return map(i, r, [](double a) { return std::cos(a); });
      case Opcode::log1p: return map(i, r, [](double a) { return std::log1p(a); });
      case Opcode::expm1: return map(i, r, [](double a) { return std::expm1(a); });
      case Opcode::exponent: return map(i, r, [](double a) { return taken_apart(a).second; });
      case Opcode::significand: return map(i, r, [](double a) { return taken_apart(a).first; });
      case Opcode::truncate: return map(i, r, [](double a) { return std::trunc(a); });
      case Opcode::to_bf16: return map(i, r, [](double a) { return double(from_bf16(to_bf16(float(a)))); });
      case Opcode::to_f16: return map(i, r, [](double a) { return double(from_f16(to_f16(float(a)))); });
      case Opcode::to_tf32: return map(i, r, [](double a) { return double(round_tf32(float(a))); });
      case Opcode::to_bool: return map(i, r, [](double a) { return double(a != 0); });
      case Opcode::copy: return map(i, r, [](double a) { return a; });
      case Opcode::broadcast: std::fill_n(r + i.dst, i.lanes, double(r[i.a])); return;
      case Opcode::fma:
        for (int lane = 0; lane < i.lanes; ++lane)
          r[i.dst + lane] = std::fma(r[i.a + lane], r[i.b + lane], r[i.c + lane]);
        return;
      case Opcode::blend:
        for (int lane = 0; lane < i.lanes; ++lane) r[i.dst + lane] = r[i.a + lane] != 0 ? r[i.b + lane] : r[i.c + lane];
        return;
      case Opcode::ramp:
        for (int lane = 0; lane < i.lanes; ++lane) r[i.dst + lane] = r[i.a] + lane;
        return;
      default: fail("an instruction of an unknown kind");
    }
  }

  // ---- memory ----

  /// An access with what its binding says: what is asked for each element lies side by side.
  struct Place {
    static constexpr std::size_t most_indices = 4;
    struct Index {
      std::int32_t at = 0, next_lane = 0;  // registers
      double extent = 0;                   // below which it is
      std::int64_t stride = 0;
    };
    Index indices[most_indices];
    int count = -1;             // of these; -1: they say nothing
    double* doubles = nullptr;  // of elements that are such, and of which none is a vector
    bool tracked = false;
  };

  static Place place_of(const Access& access, const Binding& binding) {
    Place place;
    const std::size_t count = access.indices.size();
    if (count != binding.stride.size() || count > Place::most_indices) return place;
    place.count = int(count);
    if (binding.dtype == DType::f64 && access.element_lanes == 1 && (binding.writable || !access.stores))
      place.doubles = static_cast<double*>(binding.data);
    place.tracked = binding.tracked;
    for (std::size_t d = 0; d < count; ++d) {
      const bool limited = access.stores && d == 0 && binding.stored_rows >= 0;
      const double extent = binding.extent.empty() ? std::numeric_limits<double>::infinity()
                            : limited              ? double(binding.stored_rows)
                                                   : double(binding.extent[d]);
      const Access::Index& index = access.indices[d];
      place.indices[d] = {index.at, index.vector, extent, binding.stride[d]};
    }
    return place;
  }

  /// The offset in a lane by what the place says; -1 where that does not suffice, or an index is wrong.
  static std::int64_t simple_offset(const Place& place, const double* r, int lane) {
    std::int64_t offset = 0;
    for (int d = 0; d < place.count; ++d) {
      const Place::Index& x = place.indices[d];
      const double index = r[x.at + x.next_lane * lane];
      if (!(index >= 0 && index < x.extent)) [[unlikely]]
        return -1;
      offset += std::int64_t(index) * x.stride;
    }
    return place.count < 0 ? -1 : offset;
  }
  /// An element in place, where it is the only one and a double; else null.
  static double* element_at(const Instruction& i, const Place& place, const double* r) {
    if (i.lanes != 1 || !place.doubles) return nullptr;
    const std::int64_t offset = simple_offset(place, r, 0);
    return offset < 0 ? nullptr : place.doubles + offset;
  }
  /// As `offset_of`, which says what is wrong.
  std::int64_t offset_in(const Place& place, const Access& access, const Binding& binding, const double* r, int lane,
                         bool storing) const {
    const std::int64_t offset = simple_offset(place, r, lane);
    return offset < 0 ? offset_of(access, binding, r, lane, storing) : offset;
  }

  static double index_of(const Access::Index& index, const double* r, int lane) {
    return r[index.at + (index.vector ? lane : 0)];
  }

  /// The element's offset in its binding; -1: past the end, where reading is allowed and gives nothing.
  [[gnu::noinline]] std::int64_t offset_of(const Access& access, const Binding& binding, const double* r, int lane,
                                           bool storing) const {
    const std::size_t count = access.indices.size();
    const bool linear = count == 1 && binding.stride.size() != 1;  // a flat index into a local buffer
    if (count != binding.stride.size() && !linear) wrong_count(access, binding);
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < count; ++d) {
      const double index = index_of(access.indices[d], r, lane);
      if (!binding.extent.empty() || linear) {
        std::int64_t extent = linear ? size_of(binding) : binding.extent[d];
        if (storing && d == 0 && binding.stored_rows >= 0) extent = binding.stored_rows;
        if (!(index >= 0 && index < double(extent))) [[unlikely]] {
          if (!storing && index >= 0 && index < double(extent + binding.past_end)) return -1;
          outside(access, binding, r, lane, storing);
        }
      }
      offset += std::int64_t(index) * (linear ? access.element_lanes : binding.stride[d]);
    }
    return offset;
  }

  /// Elements of a dense binding.
  static std::int64_t size_of(const Binding& binding) {
    std::int64_t size = 1;
    for (const std::int64_t extent : binding.extent) size *= extent;
    return size;
  }

  template <class Observer>
  void load(const Instruction& i, double* r, Observer& observer) {
    if constexpr (!Observer::watches) {  // what most instructions are
      const Place& place = places_[std::size_t(i.a)];
      const double* const element = element_at(i, place, r);
      if (element && !(place.tracked && is_unset(*element))) return void(r[i.dst] = *element);
    }
    const Access& access = bytecode_.accesses[std::size_t(i.a)];
    const Binding& binding = bindings_[std::size_t(access.buffer)];
    std::int64_t offset = 0;
    for (int lane = 0; lane < i.lanes; ++lane) {
      if (access.element_lanes == 1 || lane == 0)
        offset = offset_in(places_[std::size_t(i.a)], access, binding, r, lane, false);
      else
        ++offset;
      if constexpr (Observer::watches)
        if (offset >= 0) observer.touch(worker_, i.a, offset, false);
      r[i.dst + lane] =
          offset < 0 ? double(std::numeric_limits<std::int32_t>::min()) : read(access, binding, offset, r, lane);
    }
  }

  template <class Observer>
  void store(const Instruction& i, const double* r, Observer& observer) {
    if constexpr (!Observer::watches) {
      double* const element = element_at(i, places_[std::size_t(i.a)], r);
      if (element) return void(*element = r[i.dst]);
    }
    const Access& access = bytecode_.accesses[std::size_t(i.a)];
    const Binding& binding = bindings_[std::size_t(access.buffer)];
    if (!binding.writable) fail("a store to '" + bytecode_.name_of(access.buffer) + "', which a call only reads");
    std::int64_t offset = 0;
    for (int lane = 0; lane < i.lanes; ++lane) {
      if (access.element_lanes == 1 || lane == 0)
        offset = offset_in(places_[std::size_t(i.a)], access, binding, r, lane, true);
      else
        ++offset;
      if constexpr (Observer::watches) observer.touch(worker_, i.a, offset, true);
      write(binding, offset, r[i.dst + (i.b ? 0 : lane)]);
    }
  }

  double read(const Access& access, const Binding& binding, std::int64_t offset, const double* r, int lane) const {
    switch (binding.dtype) {
      case DType::f64: {
        const double value = static_cast<const double*>(binding.data)[offset];
        if (binding.tracked && is_unset(value)) [[unlikely]]
          uninitialised(access, r, lane);
        return value;
      }
      case DType::f32: return double(static_cast<const float*>(binding.data)[offset]);
      case DType::i32: return static_cast<const std::int32_t*>(binding.data)[offset];
      case DType::i64: return double(static_cast<const std::int64_t*>(binding.data)[offset]);
      case DType::boolean: return static_cast<const std::uint8_t*>(binding.data)[offset];
      case DType::bf16: return double(from_bf16(static_cast<const std::uint16_t*>(binding.data)[offset]));
      case DType::f16: return double(from_f16(static_cast<const std::uint16_t*>(binding.data)[offset]));
      case DType::i8: return static_cast<const std::int8_t*>(binding.data)[offset];
      case DType::tf32: return double(static_cast<const float*>(binding.data)[offset]);
    }
    return 0;
  }

  void write(const Binding& binding, std::int64_t offset, double value) const {
    switch (binding.dtype) {
      case DType::f64: static_cast<double*>(binding.data)[offset] = value; return;
      case DType::f32: static_cast<float*>(binding.data)[offset] = float(value); return;
      case DType::i32: static_cast<std::int32_t*>(binding.data)[offset] = std::int32_t(value); return;
      case DType::i64: static_cast<std::int64_t*>(binding.data)[offset] = std::int64_t(value); return;
      case DType::boolean: static_cast<std::uint8_t*>(binding.data)[offset] = value != 0; return;
      case DType::bf16:
      case DType::f16:
      case DType::i8:
      case DType::tf32: fail("a store to elements that are only read");
    }
  }

  // ---- what goes wrong ----

  static std::string number(double value) {
    return value == std::trunc(value) && std::abs(value) < 1e15 ? std::to_string(std::int64_t(value))
                                                                : std::to_string(value);
  }
  std::string place(const Access& access, const double* r, int lane) const {
    std::string text = "'" + bytecode_.name_of(access.buffer) + "' [";
    for (std::size_t d = 0; d < access.indices.size(); ++d)
      text += (d ? "," : "") + number(index_of(access.indices[d], r, lane));
    return text + "]";
  }
  [[noreturn, gnu::noinline]] void outside(const Access& access, const Binding& binding, const double* r, int lane,
                                           bool storing) const {
    std::string extents;
    for (std::size_t d = 0; d < binding.extent.size(); ++d)
      extents += (d ? "," : "") + std::to_string(storing && d == 0 && binding.stored_rows >= 0 ? binding.stored_rows
                                                                                               : binding.extent[d]);
    fail((storing ? "a store to " : "a load from ") + place(access, r, lane) + ", which has extents [" + extents + "]");
  }
  [[noreturn, gnu::noinline]] void uninitialised(const Access& access, const double* r, int lane) const {
    fail("a load from " + place(access, r, lane) + ", to which nothing has been stored");
  }
  [[noreturn, gnu::noinline]] void wrong_count(const Access& access, const Binding& binding) const {
    fail("'" + bytecode_.name_of(access.buffer) + "' has " + std::to_string(binding.stride.size()) +
         " dimensions, but is read or written with " + std::to_string(access.indices.size()) + " indices");
  }

  // ---- uninterpreted functions ----

  [[noreturn, gnu::noinline]] void no_such(const Call& call, const double* r) const {
    std::string args;
    for (const std::int32_t arg : call.args) args += (args.empty() ? "" : ",") + number(r[arg]);
    fail("function '" + call.uf.name + "' has no value at (" + args + ")");
  }

  /// array[index], for an index in [0, extent).
  double at(const Call& call, const double* r, const std::int32_t* array, double index, std::int32_t extent) const {
    if (!array || !(index >= 0 && index < extent)) [[unlikely]]
      no_such(call, r);
    return array[std::int64_t(index)];
  }

  double child_at(const Call& call, const CallContext& x, const double* r, double node, double k) const {
    const double begin = at(call, r, x.edges.begin, node, x.num_nodes), end = x.edges.begin[std::int64_t(node) + 1];
    if (k < 0) no_such(call, r);
    return k < end - begin ? at(call, r, x.edges.child, begin + k, x.edges.num_edges) : x.num_nodes;
  }

  double call(std::size_t which, const double* r) const {
    using enum UfKind;
    const Call& call = bytecode_.calls[which];
    if (call.uf.kind == worker) return worker_;
    if (call.uf.kind == num_workers) return num_workers_;
    if (which >= calls_.size() || !calls_[which].known) fail("function '" + call.uf.name + "' has no meaning here");
    const CallContext& x = calls_[which];
    const double a = call.args.empty() ? 0 : r[call.args[0]], b = call.args.size() < 2 ? 0 : r[call.args[1]];
    const auto edge_begin = [&](double node) { return at(call, r, x.edges.begin, node, x.num_nodes + 1); };
    const auto batch = [&](double number, double n) {
      if (!(n >= 0 && n < at(call, r, x.batch_length, number, x.num_batches))) no_such(call, r);
      return x.batch_begin[std::int64_t(number)] + n;
    };
    switch (call.uf.kind) {
      case child: return at(call, r, x.child, a, x.num_nodes);
      case kth_child: return child_at(call, x, r, a, b);
      case num_children: return edge_begin(a + 1) - edge_begin(a);
      case field: {
        if (!(a >= 0 && a < x.num_nodes && b >= 0 && b < x.field_stride) || !x.field) no_such(call, r);
        return x.field[std::int64_t(a) * x.field_stride + std::int64_t(b)];
      }
      case is_leaf: return a >= x.num_internal;
      case num_nodes: return x.num_nodes;
      case num_leaves: return x.num_nodes - x.num_internal;
      case num_internal: return x.num_internal;
      case num_batches: return x.num_batches;
      case num_internal_batches: return std::max(x.num_batches - 1, 0);
      case all_node:
      case internal_node: return a;
      case leaf_node: return x.num_internal + a;
      case sequence_node: return x.num_nodes - 1 - a;
      case internal_sequence_node: return x.num_internal - 1 - a;
      case batch_node: return batch(a, b);
      case batch_length: return at(call, r, x.batch_length, a, x.num_batches);
      case internal_batch_node: return batch(a + 1, b);
      case internal_batch_length: return at(call, r, x.batch_length, a + 1, x.num_batches);
      case edge: return edge_begin(a) + b;
      case edge_child: return at(call, r, x.edges.child, a, x.edges.num_edges);
      case span_edges: return edge_begin(a + b) - edge_begin(a);
      case downward_node: return a;
      case num_roots: return x.num_roots;
      case root_node: return at(call, r, x.root, a, x.num_roots);
      case part_node: {  // an empty part also begins somewhere
        const double length = at(call, r, x.part_length, a, x.num_batches * x.num_parts);
        if (!(b >= 0 && b < std::max(length, 1.0))) no_such(call, r);
        return x.part_begin[std::int64_t(a)] + b;
      }
      case listed_length: return at(call, r, x.part_offset, a + b, x.num_parts + 1) - x.part_offset[std::int64_t(a)];
      case listed_node: {
        const double first = at(call, r, x.part_offset, a, x.num_parts + 1);
        return at(call, r, x.part_list, first + b, x.part_offset[x.num_parts]);
      }
      case num_ranges: return 1;  // of a whole call
      case range_node: return a == double(NodeRange::upper) ? x.num_internal + b : b;
      case range_length:
        return a == double(NodeRange::upper) ? 0 : a == double(NodeRange::lower) ? x.num_nodes : x.num_internal;
      case num_groups: return x.subtrees->num_groups;
      case group_length:
        return at(call, r, x.subtrees->group_begin, a + 1, x.subtrees->num_groups + 1) -
               x.subtrees->group_begin[std::int64_t(a)];
      case group_node: {
        const double first = at(call, r, x.subtrees->group_begin, a, x.subtrees->num_groups + 1);
        return at(call, r, x.subtrees->group_node, first + b, x.subtrees->group_begin[x.subtrees->num_groups]);
      }
      case num_inner:
        return at(call, r, x.subtrees->inner_begin, a + 1, x.num_internal + 1) -
               x.subtrees->inner_begin[std::int64_t(a)];
      case inner_child: {
        const double first = at(call, r, x.subtrees->inner_begin, a, x.num_internal + 1);
        return at(call, r, x.subtrees->inner_child, first + b, x.subtrees->inner_begin[x.num_internal]);
      }
      case part_length: return at(call, r, x.part_length, a, x.num_batches * x.num_parts);
      case worker:
      case num_workers:
      case thread: break;
    }
    fail("function '" + call.uf.name + "' is of an unknown kind");
  }

  const Bytecode& bytecode_;
  Vector<Binding> bindings_;
  Vector<Place> places_;  // [accesses]
  Vector<CallContext> calls_;
  int worker_, num_workers_;
  Vector<double> registers_;  // constants, last first, then the registers
  Vector<double> locals_;
  std::int32_t at_ = 0;
};

}  // namespace cortex::ir::vm
