// The latency of recursive models on a GPU, and what it is made of: numbering on the host, transfer, kernel, results.
//
//   gpu [--models treelstm,...] [--hidden 256,512] [--batch 1,10,64] [--systems cortex,...] [--ablation] [--rounds N]
//       [--json FILE] [--about FILE] [--export DIR] [--levels] [--compile 90] [--tune SECONDS]
//
// `bench/gpu` builds this and runs it, and PyTorch beside it. The systems are ways to share a call among the blocks of
// a device, with tables of what words decide, on tensor cores, with weights and results in the device's memory, with a
// kernel that stays there from call to call (one call of a round launches it), and with threads of the host that number
// nodes beside the caller; with --ablation also without parts of the compiler, unrolled and refactored (E5 to E7). Each
// runs over the same ten batches and is first held against recursion in double; then they alternate round by round. A
// time is of a whole call, from the roots to their first states on the host. Rows are written after each case, so what
// stops the program costs one. --export writes what was computed with, for peers in other languages: weights,
// structures and the states that are right. --compile needs no GPU: it compiles each system for one that need not be
// there. --tune looks for a faster schedule than the default, so long for each case, in place of all that.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cortex/cuda.hpp>
#include <cortex/runtime/workers.hpp>
#include <cortex/weights/safetensors.hpp>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/cortex_models.hpp"
#include "support/floor.hpp"
#include "support/gpu_tune.hpp"
#include "support/gpu_ways.hpp"
#include "support/json.hpp"
#include "support/recursion.hpp"
#include "support/shortcuts.hpp"
#include "support/system.hpp"

namespace {

using namespace bench;
using Group = cortex::GpuSchedule::Group;

struct Options {
  std::vector<std::string> models{"treefc", "dagrnn", "treegru", "treelstm", "mvrnn", "lstm", "gru"};
  std::vector<int> hidden;  // empty: 256 and 512, of MV-RNN 64 and 128
  std::vector<std::size_t> batch{1, 10, 64};
  std::vector<std::string> systems;
  std::string json, about, to;
  int rounds = 30;
  int capability = 0;  // compile for it, 10 times the compute capability, and do nothing else
  double tune = 0;     // seconds a case
  bool levels = false, ablation = false;

  std::vector<int> hidden_of(Model model) const { return hidden.empty() ? usual_hidden(model) : hidden; }
};

template <class Program>
auto compile_for(const cortex::Gpu& gpu, const Program& program, const Way& way, bool timings = false) {
  cortex::cuda::CompileOptions options;
  options.timings = timings;
  return cortex::cuda::compile(program, way.schedule(program.name()), gpu, options);
}

std::string shape_of(const cortex::runtime::CudaExecutable& code) {
  const char* const group = code.shape.group == Group::block     ? "block"
                            : code.shape.group == Group::cluster ? "cluster"
                                                                 : "grid";
  return std::string(group) + " of " + std::to_string(code.shape.blocks) + " x " + std::to_string(code.shape.threads) +
         " threads, " + std::to_string(code.text.chip_bytes / 1024) + " KB a block on chip";
}

/// Threads of the host, the same for all models.
std::shared_ptr<cortex::Workers> pool() {
  static const auto made = std::make_shared<cortex::Workers>(7);
  return made;
}

/// A model on the device, under one schedule.
class OnGpu {
 public:
  virtual ~OnGpu() = default;
  /// Writes the first state of each root.
  virtual void run(const Roots& roots, float* out) = 0;
  virtual cortex::cuda::Counters counters(const Roots& roots) = 0;
  virtual std::string shape() const = 0;
  virtual std::string shortcuts() const = 0;
  /// Leaves the device to others.
  virtual void rest() {}
};

template <class Program>
class Compiled : public OnGpu {
 public:
  Compiled(const Program& program, const Way& way, const cortex::cuda::Device& device, const Weights& weights)
      : way_(way),
        device_(device.shared()),
        model_(bound(compile_for(device.gpu(), program, way), weights)),
        timed_(bound(compile_for(device.gpu(), program, way, true), weights)),
        on_(model_.to(device)),
        timed_on_(timed_.to(device)) {
    if (way_.on_device) bind_on_device(weights);
    if (way_.helped) model_.use(pool()), timed_.use(pool());
  }

  void run(const Roots& roots, float* out) override {
    if (way_.on_device) return run_on_device(roots, out);
    if (way_.stays && !served_) served_.emplace(on_.resident());
    const auto states = served_ ? (*served_)(roots).roots() : on_(roots).roots();
    std::copy(states.begin(), states.end(), out);
  }
  cortex::cuda::Counters counters(const Roots& roots) override {
    if (way_.stays && !timed_served_) timed_served_.emplace(timed_on_.resident());
    auto result = timed_served_ ? (*timed_served_)(roots) : timed_on_(roots);
    result.roots();
    return result.counters();
  }
  void rest() override {
    if (served_) served_->stop();
    if (timed_served_) timed_served_->stop();
  }
  std::string shape() const override { return shape_of(model_.code()); }
  std::string shortcuts() const override { return shortcuts_of(model_.executable()); }

 private:
  template <class OneModel>
  static OneModel bound(OneModel model, const Weights& weights) {
    for (const auto& spec : model.executable().weights) model.bind(spec.name, weights(spec.name));
    return model;
  }

  /// Each weight anew, from memory of the device that is given back.
  void bind_on_device(const Weights& weights) {
    for (const auto& spec : model_.executable().weights) {
      const auto& values = weights(spec.name);
      std::vector<std::int64_t> shape;
      for (const cortex::Dim& dim : spec.dims) shape.push_back(dim.extent());
      const cortex::runtime::CudaBlock there(device_, values.size() * sizeof(float));
      device_->call("a copy", [&](const cortex::jit::CudaDriver& d) {
        const int failed = d.MemcpyHtoDAsync(there.at(), values.data(), there.size(), nullptr);
        return failed ? failed : d.StreamSynchronize(nullptr);
      });
      on_.bind_device(spec.name, there.at(), shape);
    }
  }
  void run_on_device(const Roots& roots, float* out) {
    std::size_t bytes = roots.size() * sizeof(float);
    for (const cortex::Dim& dim : model_.executable().states.front().dims) bytes *= std::size_t(dim.extent());
    if (results_.size() < bytes) results_ = cortex::runtime::CudaBlock(device_, bytes);
    on_.run(roots, nullptr).roots_into(results_.at(), bytes, nullptr);
    device_->call("a copy", [&](const cortex::jit::CudaDriver& d) {
      const int failed = d.MemcpyDtoHAsync(out, results_.at(), bytes, nullptr);
      return failed ? failed : d.StreamSynchronize(nullptr);
    });
  }

  using OneModel = decltype(cortex::cuda::compile(std::declval<Program>(), cortex::Gpu{}));
  const Way way_;
  const std::shared_ptr<const cortex::runtime::CudaDevice> device_;
  cortex::runtime::CudaBlock results_;
  OneModel model_, timed_;  // the same code, the latter reading clocks
  using OneOnDevice = decltype(std::declval<OneModel>().to(std::declval<cortex::cuda::Device>()));
  OneOnDevice on_, timed_on_;
  std::optional<decltype(std::declval<OneOnDevice>().resident())> served_, timed_served_;
};

/// A model compiled for each way to share its calls, but those that the device or the model refuses, which is said.
struct Systems {
  std::vector<std::pair<const Way*, std::unique_ptr<OnGpu>>> all;

  Systems() = default;
  Systems(const std::vector<Way>& ways, const cortex::cuda::Device& device, const Weights& weights) {
    with_program(weights, [&](const auto& program) {
      using Program = std::remove_cvref_t<decltype(program)>;
      // On all cores: that takes longer than all that is timed.
      std::vector<std::optional<cortex::Result<std::unique_ptr<OnGpu>>>> systems(ways.size());
      cortex::runtime::on_all_cores(int(ways.size()), [&](int w) {
        systems[std::size_t(w)].emplace(cortex::attempt([&]() -> std::unique_ptr<OnGpu> {
          return std::make_unique<Compiled<Program>>(program, ways[std::size_t(w)], device, weights);
        }));
      });
      for (std::size_t w = 0; w < ways.size(); ++w)
        if (*systems[w])
          all.emplace_back(&ways[w], std::move(systems[w]->value()));
        else
          std::printf("%s, hidden %zu: %s is left out: %s\n", name_of(weights.model), weights.hidden, ways[w].name,
                      systems[w]->error().message.c_str());
    });
  }
};

/// One way on one case.
struct Contender {
  std::string name;
  const Way* way;
  OnGpu* system;
  std::vector<double> times{};  // of all batches, in turn
  double error = 0, linearize_us = 0, copy_us = 0, kernel_us = 0;
  cortex::cuda::Counters counters{};  // of the last batch
  bool right = true, refused = false;

  double quantile(double q) {
    std::sort(times.begin(), times.end());
    return times[std::size_t(q * double(times.size() - 1))];
  }
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ptrdiff_t(values.size() / 2), values.end());
  return values[values.size() / 2];
}

class Case {
 public:
  Case(const Weights& weights, const Batches& batches)
      : weights_(weights),
        batches_(batches),
        out_(batches.roots[0].size() * weights.hidden),
        reference_(batches.roots.size()) {
    // On all cores: of sequences it takes minutes, in which the device would wait.
    cortex::runtime::on_all_cores(int(reference_.size()), [&](int b) {
      reference_[std::size_t(b)] = Recursion<double>(weights).first_states(batches.roots[std::size_t(b)]);
    });
  }

  void add(const Way& way, OnGpu& system) {
    Contender one{way.name, &way, &system};
    if (goes_on(one, [&] { check(one); })) contenders_.push_back(std::move(one));
  }

  void run(int rounds) {
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < contenders_.size(); ++i) {
        Contender& one = contenders_[(i + std::size_t(round)) % contenders_.size()];
        if (!one.refused) goes_on(one, [&] { time(one); });
      }
    for (Contender& one : contenders_)
      if (!one.refused) goes_on(one, [&] { take_apart(one, rounds); });
    std::erase_if(contenders_, [](const Contender& one) { return one.refused; });
  }

  std::vector<Contender>& contenders() { return contenders_; }
  const std::vector<std::vector<double>>& reference() const { return reference_; }

 private:
  /// What the device refuses is said, and the others go on; unless it is lost to them, too.
  template <class Do>
  bool goes_on(Contender& one, const Do& what) {
    try {
      what();
    } catch (const cortex::Error& error) {
      if (error.code == cortex::Code::device_lost) throw;
      std::printf("%s is left out: %s\n", one.name.c_str(), error.message.c_str());
      one.refused = true;
    }
    return !one.refused;
  }

  void time(Contender& one) {
    for (const Roots& roots : batches_.roots) {
      const double start = now_us();
      one.system->run(roots, out_.data());
      one.times.push_back(now_us() - start);
    }
    one.system->rest();
  }

  void check(Contender& one) {
    double size = 0;
    for (std::size_t b = 0; b < batches_.roots.size(); ++b) {
      std::fill(out_.begin(), out_.end(), NAN);
      one.system->run(batches_.roots[b], out_.data());
      for (std::size_t i = 0; i < out_.size(); ++i) {
        const double off = std::abs(double(out_[i]) - reference_[b][i]);
        size = std::max(size, std::abs(reference_[b][i]));
        if (std::isnan(off) || off > one.error) one.error = off;
      }
    }
    one.system->rest();
    one.right = one.error <= one.way->allowed(size, weights_.hidden);
  }

  void take_apart(Contender& one, int rounds) {
    std::vector<double> linearize, copy, kernel;
    for (int round = 0; round < rounds; ++round)
      for (const Roots& roots : batches_.roots) {
        one.counters = one.system->counters(roots);
        linearize.push_back(double(one.counters.linearize_ns) / 1e3);
        copy.push_back(double(one.counters.copy_ns) / 1e3), kernel.push_back(double(one.counters.kernel_ns) / 1e3);
      }
    one.system->rest();
    one.linearize_us = median(linearize), one.copy_us = median(copy), one.kernel_us = median(kernel);
  }

  const Weights& weights_;
  const Batches& batches_;
  std::vector<float> out_;
  std::vector<std::vector<double>> reference_;
  std::vector<Contender> contenders_;
};

/// Writes a case: the weights by their names, nodes as `nodes.*` with the batches one behind the other and children by
/// their place in the batch, and `states`, [batch, root, hidden].
void export_case(const std::filesystem::path& directory, const Weights& weights, const Batches& batches,
                 const std::vector<std::vector<double>>& reference) {
  std::vector<std::int32_t> word, left, right, begin{0}, roots;
  std::vector<float> states;
  for (const Node& node : batches.nodes) {
    word.push_back(node.word);
    left.push_back(node.left ? node.left->index : -1), right.push_back(node.right ? node.right->index : -1);
  }
  for (std::size_t b = 0; b < batches.roots.size(); ++b) {
    begin.push_back(begin.back() + std::int32_t(batches.counts[b]));
    for (const Node* root : batches.roots[b]) roots.push_back(root->index);
    states.insert(states.end(), reference[b].begin(), reference[b].end());
  }
  const std::int64_t count = std::int64_t(batches.roots.size()), size = std::int64_t(batches.roots[0].size());
  const auto flat = [](const auto& values) { return std::vector<std::int64_t>{std::int64_t(values.size())}; };
  std::vector<cortex::TensorToWrite> tensors{
      {"nodes.word", flat(word), word},    {"nodes.left", flat(left), left},
      {"nodes.right", flat(right), right}, {"nodes.begin", flat(begin), begin},
      {"roots", {count, size}, roots},     {"states", {count, size, std::int64_t(weights.hidden)}, states},
  };
  for (const auto& [name, values] : weights.values) tensors.push_back({name, flat(values), values});
  std::filesystem::create_directories(directory);
  const std::string name = std::string(name_of(weights.model)) + "-" + std::to_string(weights.hidden) + "-" +
                           std::to_string(batches.roots[0].size()) + ".safetensors";
  cortex::write_safetensors(directory / name, tensors);
}

std::vector<Json> rows_of(const Weights& weights, const Batches& batches, std::vector<Contender>& contenders) {
  double flops = 0, weight_bytes = 0;
  for (const Roots& roots : batches.roots)
    for (const Work& level : work_of(weights.model, weights.hidden, roots)) {
      flops += level.flops / double(batches.roots.size());
      weight_bytes += level.weight_bytes / double(batches.roots.size());
    }
  std::printf("  %-18s %9s %9s %9s %9s %9s %9s %9s %11s %9s\n", "system", "median us", "min us", "number", "copy",
              "kernel", "GFLOP/s", "KB up", "KB held", "error");
  std::vector<Json> rows;
  for (Contender& one : contenders) {
    std::printf("  %-18s %9.1f %9.1f %9.1f %9.1f %9.1f %9.0f %9.1f %11.0f %9.1e%s  %s\n", one.name.c_str(),
                one.quantile(0.5), one.quantile(0), one.linearize_us, one.copy_us, one.kernel_us,
                flops / one.kernel_us / 1e3, double(one.counters.bytes_up) / 1024,
                double(one.counters.device_bytes) / 1024, one.error, one.right ? "" : "  WRONG",
                one.system->shape().c_str());
    rows.push_back(Json::object({{"model", name_of(weights.model)},
                                 {"hidden", weights.hidden},
                                 {"batch", batches.roots[0].size()},
                                 {"system", one.name},
                                 {"median_us", one.quantile(0.5)},
                                 {"min_us", one.quantile(0)},
                                 {"runs", one.times.size()},
                                 {"max_abs_err", one.error},
                                 {"linearize_us", one.linearize_us},
                                 {"copy_us", one.copy_us},
                                 {"kernel_us", one.kernel_us},
                                 {"launches", one.counters.launches},
                                 {"bytes_up", one.counters.bytes_up},
                                 {"bytes_down", one.counters.bytes_down},
                                 {"device_bytes", one.counters.device_bytes},
                                 {"gflop", flops / 1e9},
                                 {"weight_bytes", weight_bytes},  // if every level reads them anew (E10)
                                 {"nodes", batches.mean_nodes()},
                                 {"shortcuts", one.system->shortcuts()}}));
  }
  std::fflush(stdout);
  return rows;
}

/// What a level costs however little it computes, by who meets there and how many: kernels over chains of a GRU of 32,
/// long ones less short ones.
std::vector<Json> time_levels(const cortex::cuda::Device& device) {
  std::vector<Way> ways{{"block", {.group = Group::block}}};
  for (const int blocks : {2, 4, 8, 16, 32}) {
    if (blocks <= 8) ways.push_back({"cluster", {.group = Group::cluster, .blocks = blocks}});
    ways.push_back({"grid", {.group = Group::grid, .blocks = blocks}});
    ways.push_back({"grid_flags", {.group = Group::grid, .lock_based = false, .blocks = blocks}});
  }
  std::printf("\na level of a chain, H = 32, in the kernel:\n");
  const Weights weights = random_weights(Model::gru, 32);
  Batches chains;
  for (const int length : {100, 1100}) {
    chains.begin_batch();
    const Node* node = nullptr;
    for (int i = 0; i < length; ++i) node = chains.add(i % vocabulary, node);
    chains.roots.back().push_back(node);
  }
  std::vector<Json> rows;
  for (const auto& [way, system] : Systems(ways, device, weights).all) try {
      std::vector<double> us[2];
      for (int round = 0; round < 20; ++round)
        for (std::size_t b = 0; b < 2; ++b) us[b].push_back(double(system->counters(chains.roots[b]).kernel_ns) / 1e3);
      system->rest();
      const double level_us = (median(us[1]) - median(us[0])) / 1000;
      std::printf("  %-11s %6.2f us  %s\n", way->name, level_us, system->shape().c_str());
      rows.push_back(
          Json::object({{"group", way->name}, {"blocks", std::max(way->gpu.blocks, 1)}, {"level_us", level_us}}));
    } catch (const cortex::Error& error) {
      std::printf("  %-11s of %d is left out: %s\n", way->name, way->gpu.blocks, error.message.c_str());
    }
  return rows;
}

/// What the numbers are of, and when they were measured.
Json::Fields describe(const cortex::runtime::CudaDevice& device) {
  const std::string driver = cortex::jit::version_of_driver(device.driver_version());
  char date[16];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  Json::Fields about{{"device", device.name()},
                     {"capability", device.gpu().sm},
                     {"multiprocessors", device.gpu().multiprocessors},
                     {"date", date}};
  using A = cortex::jit::cuda::DeviceAttribute;
  // What E10's roofline is of: each core a multiply-add a clock, and memory that brings two words a clock.
  const int sm = device.gpu().sm, cores = sm <= 80 ? 64 : 128;
  about.push_back({"peak_gflops", 2.0 * cores * device.gpu().multiprocessors * device.attribute(A::clock_khz) / 1e6});
  about.push_back(
      {"peak_gigabytes", 2.0 * device.attribute(A::memory_clock_khz) * device.attribute(A::memory_bus_bits) / 8 / 1e6});
  about.push_back({"l2_bytes", device.attribute(A::l2_bytes)});
  std::string text = device.name() + ", driver of CUDA " + driver;
  about.push_back({"driver", driver});
  if (auto nvrtc = cortex::attempt([&] { return &device.nvrtc(); })) {
    const std::string version = cortex::jit::version_of(**nvrtc);
    about.push_back({"nvrtc", version});
    text += ", NVRTC " + version + " of " +
            cortex::jit::DynamicLibrary::directory_of(reinterpret_cast<const void*>((*nvrtc)->Version));
  } else {
    text += ": " + nvrtc.error().message;
  }
  std::printf("%s\n", text.c_str());
  return about;
}

/// Compiles every model for each way, for a GPU that need not be there.
void compile_all(const Options& options, const std::vector<Way>& ways) {
  const cortex::Gpu gpu = cortex::Gpu::of(options.capability);
  for (const std::string& name : options.models)
    for (const int hidden : options.hidden_of(model_named(name)))
      for (const Way& way : ways) {
        const auto shape = cortex::attempt([&] {
          return with_program(model_named(name), hidden,
                              [&](const auto& program) { return shape_of(compile_for(gpu, program, way).code()); });
        });
        std::printf("%s, hidden %d, %s: %s\n", name.c_str(), hidden, way.name,
                    shape ? shape->c_str() : ("left out: " + shape.error().message).c_str());
      }
}

/// The rows so far and what they are of, in their files after each case: a kernel that hangs, or a machine that is
/// taken away, costs the case that runs.
class Results {
 public:
  explicit Results(const Options& options) : options_(options) {}

  void describe(Json::Fields fields) {
    for (auto& field : fields) about_.push_back(std::move(field));
    write();
  }
  void add(std::vector<Json> rows) {
    for (Json& row : rows) rows_.push_back(std::move(row));
    write();
  }

 private:
  void write() const {
    if (!options_.about.empty()) write_json(options_.about, Json::object(about_));
    if (!options_.json.empty()) write_json(options_.json, Json::lines(rows_));
  }

  const Options& options_;
  Json::Fields about_;
  std::vector<Json> rows_;
};

/// Times the systems over one case. Returns whether what they computed is right.
bool time_case(const Weights& weights, std::size_t size, const Systems& systems, const Options& options,
               Results& results) {
  const Batches batches = batches_for(weights.model, size);
  Case one(weights, batches);
  if (!options.to.empty()) export_case(options.to, weights, batches, one.reference());
  if (systems.all.empty()) return true;
  std::printf("\n%s, hidden %zu, batch %zu (%.1f nodes)\n", name_of(weights.model), weights.hidden, size,
              batches.mean_nodes());
  for (const auto& [way, code] : systems.all) one.add(*way, *code);
  one.run(options.rounds);
  results.add(rows_of(weights, batches, one.contenders()));
  return std::all_of(one.contenders().begin(), one.contenders().end(), [](const Contender& c) { return c.right; });
}

std::vector<Way> ways_of(const Options& options) {
  std::vector<Way> ways;
  for (const Way& way : all_ways())
    if (options.systems.empty()
            ? options.ablation || !way.ablation
            : std::find(options.systems.begin(), options.systems.end(), way.name) != options.systems.end())
      ways.push_back(way);
  return ways;
}

int run(const Options& options) {
  const std::vector<Way> ways = ways_of(options);
  if (options.capability) return compile_all(options, ways), 0;
  const cortex::cuda::Devices devices = cortex::cuda::devices();
  if (devices.empty()) std::printf("no GPU is timed: %s\n", devices.why().c_str());
  if (devices.empty() && (options.to.empty() || options.tune > 0)) return 0;
  Results results(options);
  results.describe(devices.empty() ? Json::Fields{} : describe(*devices[0].shared()));

  bool right = true;
  for (const std::string& name : options.models) {
    const Model model = model_named(name);
    for (const int hidden : options.hidden_of(model)) {
      const Weights weights = random_weights(model, hidden);
      if (options.tune > 0) {
        for (const std::size_t size : options.batch)
          results.add({tuned_on(devices[0], weights, batches_for(model, size), options.tune)});
        continue;
      }
      const Systems systems = devices.empty() ? Systems() : Systems(ways, devices[0], weights);
      for (const std::size_t size : options.batch) right = time_case(weights, size, systems, options, results) && right;
    }
  }
  if (options.levels && !devices.empty()) results.describe({{"levels", Json::lines(time_levels(devices[0]))}});
  if (!right) std::printf("\nWRONG: a system differs from recursion in double by more than rounding explains\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"The latency of recursive models on a GPU, and what it is made of."};
  std::vector<std::string> ways;
  for (const Way& way : all_ways()) ways.push_back(way.name);
  const std::vector<std::string> models(model_names.begin(), model_names.end());
  app.add_option("--models", options.models, "Models")->delimiter(',')->check(CLI::IsMember(models));
  app.add_option("--hidden", options.hidden, "Elements of a state; without it 256 and 512, of mvrnn 64 and 128")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("--batch", options.batch, "Roots of a call")->delimiter(',')->check(CLI::Range(1, 10000));
  app.add_option("--systems", options.systems, "Ways to share a call; without it all")
      ->delimiter(',')
      ->check(CLI::IsMember(ways));
  app.add_option("--rounds", options.rounds, "Rounds of ten batches")->check(CLI::Range(1, 1000000));
  app.add_option("--json", options.json, "Write the rows to this file");
  app.add_option("--about", options.about, "Write what machine the rows are of to this file, the date, and levels");
  app.add_flag("--ablation", options.ablation, "Also without parts of the compiler, unrolled and refactored");
  app.add_option("--compile", options.capability, "Only compile, for a GPU of this compute capability times 10")
      ->check(CLI::Range(70, 120));
  app.add_option("--tune", options.tune, "Only look for faster schedules than the default: seconds for each case")
      ->check(CLI::PositiveNumber);
  app.add_option("--export", options.to, "Write weights, structures and right states to files in this directory");
  app.add_flag("--levels", options.levels, "Also what a level costs by itself");
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 12);  // a line is told when it is known, into a log, too
  try {
    app.parse(argc, argv);
    return run(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "gpu: %s\n", error.what());
    return 2;
  }
}
