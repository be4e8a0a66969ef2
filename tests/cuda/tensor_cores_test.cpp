// Tensor cores in the emulation, where their products are made by PTX's definition: tiles are matrix products, models
// give what the interpreter gives for the program whose operands are rounded, and what the model lacks is named.
#include "cortex/base/half.hpp"
#include "cortex/explain.hpp"
#include "cortex/lower/lower.hpp"
#include "cortex/models/dag_rnn.hpp"
#include "cortex/models/lstm.hpp"
#include "cortex/models/mv_rnn.hpp"
#include "cortex/models/nary_tree_lstm.hpp"
#include "cortex/models/tree_fc.hpp"
#include "cortex/models/tree_gru.hpp"
#include "cortex/models/tree_lstm.hpp"
#include "cortex/pass/gpu_pipeline.hpp"
#include "cortex/runtime/compile_steps.hpp"
#include "cortex/runtime/interpret_kernel.hpp"
#include "cortex/runtime/partition.hpp"
#include "cortex/runtime/plan_checks.hpp"
#include "cortex/runtime/store_weight.hpp"
#include "cortex/schedule/tensor_products.hpp"
#include "cuda/check.hpp"
#include "support/golden.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

namespace {

using Where = GpuSchedule::Weights;
using enum GpuSchedule::TensorCores;

constexpr GpuSchedule::TensorCores all_types[] = {bf16, f16, tf32};

models::Sizes sizes(int D, int H) { return {.vocabulary = vocabulary, .input = D, .hidden = H}; }

Schedule with(GpuSchedule::TensorCores type, const Schedule& schedule) {
  GpuSchedule how = schedule.gpu;
  how.tensor_cores = type;
  return schedule.on_gpu(how);
}

/// A product at leaves, and another at inner nodes.
auto branching() {
  Dim V{"vocabulary"}, H{"hidden", 16};
  Model<Item> m("branching", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H), U = m.input<float>("U", H, H);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H, [&](auto n, auto i) { return sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto leaf =
      m.compute("leaf", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return W(i, j) * Emb(word(n), j); }); });
  auto rec = m.compute("rec", H, [&](auto n, auto i) { return sum(H, [&](auto j) { return U(i, j) * s(n, j); }); });
  return m.recursion_op(h, m.if_then_else([](auto n) { return is_leaf(n); }, leaf, rec));
}

/// Beside a sum over two dimensions one over the outer of them, whose loop they share.
auto one_sum_beside_two() {
  Dim V{"vocabulary"}, H{"hidden", 24}, S{"small", 5};
  Model<Item> m("one_sum_beside_two", cortex::tree);
  auto Emb = m.input<float>("Emb", V, H), W = m.input<float>("W", H, H);
  auto T = m.input<float>("T", H, H, S);
  auto h = m.placeholder<float>("h", H);
  auto s = m.compute("s", H,
                     [&](auto n, auto i) { return Emb(word(n), i) + sum(kids(n), [&](auto k) { return h(k, i); }); });
  auto one = m.compute("one", H, [&](auto n, auto i) { return sum(H, [&](auto r) { return W(i, r) * s(n, r); }); });
  auto two = m.compute("two", H,
                       [&](auto n, auto i) { return sum(H, S, [&](auto r, auto t) { return T(i, r, t) * s(n, r); }); });
  return m.recursion_op(h, m.compute("out", H, [&](auto n, auto i) { return tanh(one(n, i) + two(n, i)); }));
}

/// Whole numbers, few of them other than 0: sums at roots stay below 2^23, where the order of additions is the same to
/// all.
NamedNumbers whole_weights(const ra::Graph& graph) {
  NamedNumbers weights = random_weights(graph, 3);
  unsigned number = 0;
  for (auto& [name, values] : weights)
    for (auto& value : values) value = ++number % 5 ? 0 : double(int(number / 5 * 7 % 5) - 2);
  return weights;
}

/// `program` on the interpreter, with the operands of products rounded as the compiler's pass says.
template <class Program>
std::vector<float> interpreted_rounded(const Program& program, GpuSchedule::TensorCores type,
                                       const NamedNumbers& weights, const Items& items) {
  const ra::Graph& graph = program.graph();
  auto executable = std::make_shared<runtime::Executable>();
  executable->graph = graph;
  executable->schedule = schedule::with_tensor_cores(with(type, Schedule::standard()));
  executable->target = Target::interpreter();
  executable->lowered = lower::lower(graph, executable->schedule, lower::Ahead::apart);
  const pass::PipelineOptions options{.verify = true};
  pass::Pipeline p(executable->lowered, options);
  pass::make_nests(p, Schedule{}, 6);
  p.enter(ir::Level::scheduled);
  p.run("store_weights", [&](const ir::Stmt& s) { return schedule::store_weights(s, executable->schedule); });
  p.run("tensor_products", [&](const ir::Stmt& s) {
    return schedule::tensor_products(s, schedule::products_of(executable->schedule.gpu));
  });
  p.run("resolve_structure", [&](const ir::Stmt& s) {
    return pass::resolve_structure(s, executable->lowered.field_components, executable->lowered.chains);
  });
  p.run("approximate_activations", pass::approximate_activations);
  p.flatten();
  executable->program = p.take();
  executable->partition = runtime::partition_of(graph, ra::questions(graph, executable->schedule), executable->program);
  runtime::plan_checks(*executable);
  runtime::detail::describe_tensors(*executable);
  executable->code = std::make_shared<runtime::KernelInterpreter>(executable->program);
  executable->store = runtime::store_weight;
  executable->interpret = [](const void* code, const codegen::KernelArgs& args) {
    (*static_cast<const runtime::KernelInterpreter*>(code))(args);
  };
  using Model = decltype(compile(program, Schedule::standard()));
  Model model{std::shared_ptr<const runtime::Executable>(executable)};
  bind_all<float>(model, weights);
  const auto result = model(items.roots);
  std::vector<float> all;
  for (std::size_t r = 0; r < result.size(); ++r) all.insert(all.end(), result[r].begin(), result[r].end());
  return all;
}

template <class Program>
void check_model(const Program& program, Shape shape, GpuSchedule::TensorCores type,
                 const std::vector<Schedule>& ways = {on_gpu(Group::cluster, 2, Where::automatic, false, 64)}) {
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(shape, 4, 12, 5);
  const std::vector<float> right = interpreted_rounded(program, type, weights, items);
  std::vector<float> first;
  for (const Schedule& way : ways) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, 11};
    CAPTURE(program.name(), int(type));
    const std::vector<float> got = emulated(fake, program, with(type, way), weights, items);
    CHECK(fake.problem == "");
    CHECK(difference(got, right) <= 1);
    if (first.empty()) first = got;
    CHECK(got == first);
  }
}

/// A kernel of one warp over what `launch` points to, run in the emulation.
void run_warp(const std::string& launch, const std::string& body, const std::vector<void*>& pointers,
              const std::vector<std::size_t>& bytes) {
  std::string log;
  const auto kernel = HostKernel::compile(
      for_emulation("#define BLOCKS 1\n#define THREADS 32\n#define SPIN_LIMIT 0\n" +
                    std::string(codegen::cuda_device_prelude) + std::string(codegen::cuda_common_prelude) +
                    "struct Launch {" + launch + "};\nKERNEL(cortex_kernel, 32) {\n  const int t = thread_number();\n" +
                    body + "}\n"),
      log);
  INFO(log);
  REQUIRE(kernel);
  WatchedMemory memory;
  std::uint64_t at[3] = {};
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    memory.add(pointers[i], bytes[i]);
    memory.written_by_host(pointers[i], bytes[i]);
    at[i] = reinterpret_cast<std::uint64_t>(pointers[i]);
  }
  Emulation emulation(memory, {1, 32, 1, 0, -1}, {});
  CHECK(emulation.run([&] { kernel->entry({at[0], at[1], at[2]}); }) == "");
}

}  // namespace

TEST_CASE("tiles of weights as they are laid out, times a matrix, are the plain product", "[cuda]") {
  constexpr int outputs = 16, K = 32, rows = 8;
  std::vector<float> w(outputs * K), x(rows * K);  // whole numbers, which all types hold
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = float(int(i * 37 % 17) - 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i * 23 % 13) - 6);
  for (const DType type : {DType::bf16, DType::f16, DType::tf32}) {
    ir::BufferInfo info;
    info.name = "W", info.dtype = type, info.dims = {Dim("output", outputs), Dim("k", K)}, info.role = ir::Role::weight;
    info.layout = schedule::fragment_layout(info.dims, type, 0, 1);
    Vector<std::int64_t> extents{outputs, K};
    std::string fault;
    const Vector<std::byte> stored = runtime::store_weight(info, w.data(), extents, fault);
    const auto tiles = runtime::detail::packed(info, stored.data(), extents);
    std::vector<float> y(outputs * rows);
    const std::string name(to_string(type)), element(codegen::cuda_scalar(type));
    const std::string k = type == DType::tf32 ? "t % 4" : "t % 4 * 2", depth = type == DType::tf32 ? "8" : "16";
    std::string operands;
    for (const char* part : type == DType::tf32 ? std::vector{"0", "4"} : std::vector{"0", "1", "8", "9"})
      operands += ", launch.x[t / 4 * 32 + s + " + k + " + " + part + "]";
    run_warp(element + "* w; float* x; float* y;",
             "float sums[4] = {};\nfor (int s = 0; s < 32; s += " + depth + ") mma_" + name +
                 "(sums, load_fragment(launch.w, s * 16)" + operands +
                 ");\nfor (int e = 0; e < 4; ++e) launch.y[(t / 4 + e / 2 * 8) * 8 + t % 4 * 2 + e % 2] = sums[e];\n",
             {tiles->data(), x.data(), y.data()}, {tiles->size(), x.size() * 4, y.size() * 4});
    int wrong = 0;
    for (int i = 0; i < outputs; ++i)
      for (int n = 0; n < rows; ++n) {
        float sum = 0;
        for (int r = 0; r < K; ++r) sum += w[std::size_t(i * K + r)] * x[std::size_t(n * K + r)];
        wrong += y[std::size_t(i * rows + n)] != sum;
      }
    CAPTURE(name);
    CHECK(wrong == 0);
  }
}

TEST_CASE("the emulation rounds operands as the library does", "[cuda]") {
  std::vector<float> x(1 << 14);
  std::uint32_t bits = 1;
  for (float& value : x) value = std::bit_cast<float>(bits = bits * 1664525u + 1013904223u);
  for (const float special : {0.0f, -0.0f, 65504.0f, 65519.9f, 65520.0f, 6e-8f, 2.9e-8f, 3.4e38f, INFINITY, -INFINITY})
    x[std::size_t(bits = bits * 1664525u + 1013904223u) % x.size()] = special;
  std::vector<unsigned> y(3 * x.size());
  run_warp("float* x; unsigned* y; u64 none;",
           "for (int i = t; i < 16384; i += 32) launch.y[3 * i] = round_bf16(launch.x[i]), "
           "launch.y[3 * i + 1] = round_f16(launch.x[i]), launch.y[3 * i + 2] = round_tf32(launch.x[i]);\n",
           {x.data(), y.data()}, {x.size() * 4, y.size() * 4});
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool nan = std::isnan(x[i]);
    wrong += y[3 * i] != to_bf16(x[i]);
    wrong += nan ? !std::isnan(from_f16(std::uint16_t(y[3 * i + 1]))) : y[3 * i + 1] != to_f16(x[i]);
    wrong += y[3 * i + 2] != std::bit_cast<std::uint32_t>(round_tf32(x[i]));
  }
  CHECK(wrong == 0);
}

TEST_CASE("results of tensor cores do not depend on how a GPU shares the work", "[cuda]") {
  check_model(models::tree_gru<Item>(word, kids, sizes(16, 32)).program, Shape::ragged, bf16,
              {on_gpu(Group::block, 1, Where::streamed), on_gpu(Group::block, 1, Where::resident, false, 64),
               on_gpu(Group::cluster, 2, Where::resident), on_gpu(Group::cluster, 2, Where::streamed),
               on_gpu(Group::grid, 3, Where::automatic, true)});
}
TEST_CASE("chains of products of a tile are one sum, of the same bits however the work is shared", "[cuda]") {
  const auto tree_lstm = models::tree_lstm<Item>(word, kids, sizes(16, 48)).program;
  check_model(tree_lstm, Shape::ragged, bf16,
              {on_gpu(Group::block, 1, Where::streamed, false, 64, 2),
               on_gpu(Group::cluster, 2, Where::resident, false, 32, 2)});
  check_model(models::tree_gru<Item>(word, kids, sizes(5, 40)).program, Shape::ragged, tf32,
              {on_gpu(Group::block, 1, Where::streamed, false, 64, 4)});
}
TEST_CASE("tensor cores multiply numbers of each type", "[cuda]") {
  for (const auto type : all_types)
    check_model(models::tree_lstm<Item>(word, kids, sizes(16, 32)).program, Shape::ragged, type);
}
TEST_CASE("tensor cores pad sums and columns that are no whole tiles", "[cuda]") {
  for (const auto type : all_types)
    check_model(models::dag_rnn<Item>(word, kids, sizes(5, 24)).program, Shape::dag, type);
}
TEST_CASE("tensor cores make the products of sums over named children, edges and steps before", "[cuda]") {
  check_model(models::tree_fc<Item>(word, left, right, sizes(0, 24)).program, Shape::binary, bf16);
  check_model(models::nary_tree_lstm<Item>(word, by_position, sizes(5, 16)).program, Shape::positional, tf32);
  check_model(models::lstm<Item>(word, before, sizes(16, 16)).program, Shape::sequence, f16);
}

TEST_CASE("on tensor cores a sum over one dimension has all its terms beside a sum over two that shares its loop",
          "[cuda]") {
  const auto program = one_sum_beside_two();
  for (const int parts : {1, 2})
    for (const auto type : {tf32, f16})
      check_model(program, Shape::ragged, type, {on_gpu(Group::block, 1, Where::automatic, false, 64, parts)});
}

TEST_CASE("sums of whole numbers are exact on tensor cores", "[cuda]") {
  const auto program = branching();
  const NamedNumbers weights = whole_weights(program.graph());
  const Items items = forest(Shape::ragged, 4, 12, 5);
  for (const auto type : all_types) {
    FakeCuda fake;
    const std::vector<float> right = interpreted_rounded(program, type, weights, items);
    CHECK(emulated(fake, program, with(type, on_gpu(Group::block, 1)), weights, items) == right);
    CHECK(fake.problem == "");
  }
}

namespace {

/// Trees of three nodes: what is multiplied at a root is read from the table, and the same bits for all.
Items small_trees(int count) {
  Builder builder(Shape::binary, 5);
  for (int i = 0; i < count; ++i) {
    const Item *a = builder.add(), *b = builder.add();
    Item* root = builder.add();
    builder.join(root, {a, b, nullptr});
    builder.items.roots.push_back(root);
  }
  return std::move(builder.items);
}

/// PTX leaves the order and the rounding of an mma's additions open. Hardware shifts the K products and the sum to the
/// exponent of the largest of them and cuts off what is below 24 bits: each of the K + 1 terms loses less than 2^-23 of
/// the largest, and so does the result, where rounding would lose half of that. No term and no sum is larger than S,
/// the sum of all the products' magnitudes: a chain of n tiles is off by at most n (K + 2) 2^-23 S, and adding up
/// chains and a bias by another 2^-23 S each.
double allowance(GpuSchedule::TensorCores type, int terms, int other_additions) {
  const int depth = type == tf32 ? 8 : 16, tiles = (terms + depth - 1) / depth;
  return (tiles * (depth + 2) + other_additions) * 0x1p-23;
}

/// Sums of real numbers: `run(schedule)` gives the results, which are held to the interpreter's.
void check_real_sums(const std::function<std::vector<float>(
                         const decltype(models::tree_fc<Item>(word, left, right, models::Sizes{}).program)&,
                         const Schedule&, const NamedNumbers&, const Items&)>& run,
                     int trees) {
  constexpr int H = 48, additions = 4;  // two chains, two children, a bias
  const auto program = models::tree_fc<Item>(word, left, right, sizes(0, H)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  NamedNumbers magnitudes = weights;
  for (auto& [name, values] : magnitudes)
    for (auto& value : values) value = std::abs(value);
  const Items items = small_trees(trees);
  for (const auto type : all_types) {
    const std::vector<float> right = interpreted_rounded(program, type, weights, items);
    const std::vector<float> largest = interpreted_rounded(program, type, magnitudes, items);  // S, and above relu
    const std::vector<float> got =
        run(program, with(type, on_gpu(Group::block, 1, Where::automatic, false, 64, 2)), weights, items);
    REQUIRE(got.size() == right.size());
    double worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(double(got[i]) - right[i]) / double(largest[i]));
    CAPTURE(int(type), worst);
    CHECK(worst <= allowance(type, 2 * H, additions));
  }
}

}  // namespace

TEST_CASE("sums of real numbers on tensor cores are those of the interpreter but for what cutting off costs",
          "[cuda]") {
  check_real_sums(
      [](const auto& program, const Schedule& schedule, const NamedNumbers& weights, const Items& items) {
        FakeCuda fake;
        const std::vector<float> got = emulated(fake, program, schedule, weights, items);
        CHECK(fake.problem == "");
        return got;
      },
      9);
}

TEST_CASE("tensor cores of a device sum real numbers as the interpreter but for what cutting off costs",
          "[cuda][device]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty() || devices[0].gpu().sm < 80) skip("no GPU with tensor cores: " + devices.why());
  check_real_sums(
      [&](const auto& program, const Schedule& schedule, const NamedNumbers& weights, const Items& items) {
        auto model = cuda::compile(program, schedule, devices[0].gpu());
        bind_all<float>(model, weights);
        cuda::Result result = model.to(devices[0])(items.roots);
        return all_roots(result);
      },
      1000);
}

TEST_CASE("tensor cores of a device make the products of the interpreter", "[cuda][device]") {
  const cuda::Devices devices = cuda::devices();
  if (devices.empty() || devices[0].gpu().sm < 80) skip("no GPU with tensor cores: " + devices.why());
  const auto program = branching();
  const NamedNumbers weights = whole_weights(program.graph());
  const Items items = forest(Shape::ragged, 300, 8, 5);
  for (const auto type : all_types) {
    const std::vector<float> right = interpreted_rounded(program, type, weights, items);
    CHECK(*std::max_element(right.begin(), right.end()) < 0x1p23);
    for (const Schedule& way : {Schedule::standard(), on_gpu(Group::grid, 3), on_gpu(Group::block, 1)}) {
      cuda::CompileOptions options;
      options.spin_limit = patient_looks;  // of the grids
      auto model = cuda::compile(program, with(type, way), devices[0].gpu(), options);
      bind_all<float>(model, weights);
      cuda::Result result = model.to(devices[0])(items.roots);
      CHECK(all_roots(result) == right);
    }
  }
}

TEST_CASE("operands of tensor cores are rounded, and not f32 after all", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(16, 32)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  const Items items = forest(Shape::ragged, 4, 12, 5);
  const Schedule stored = Schedule::standard().store_weights(DType::bf16);
  CHECK(difference(interpreted_rounded(program, bf16, weights, items), interpreted(program, weights, items, stored)) >
        10);
}

TEST_CASE("a tree's results on tensor cores are the same bits alone and among others", "[cuda]") {
  const auto program = models::tree_lstm<Item>(word, kids, sizes(16, 32)).program;
  const NamedNumbers weights = random_weights(program.graph(), 3);
  Items items = forest(Shape::ragged, 7, 12, 5);
  FakeCuda fake;
  auto model = cuda::compile(program, with(bf16, on_gpu(Group::block, 1)), fake.gpu);
  bind_all<float>(model, weights);
  fake.gpu.multiprocessors = 1;
  const auto on = model.to(cuda::Device(fake.device()));
  cuda::Result together = on(items.roots);
  for (const std::size_t r : {std::size_t(0), std::size_t(6)}) {
    cuda::Result alone = on(*items.roots[r]);
    CHECK(alone.root(0) == together.root(r));
  }
  CHECK(fake.problem == "");
}

TEST_CASE("what tensor cores cannot do is refused with the reason", "[cuda]") {
  const auto refusal = [](const auto& program, const Schedule& schedule, int sm = 80) -> std::string {
    try {
      cuda::compile(program, schedule, Gpu::of(sm));
    } catch (const Error& error) {
      CHECK(error.code == Code::invalid_schedule);
      return error.message;
    }
    return "no error";
  };
  const Schedule on = with(bf16, Schedule::standard());
  const auto tree_gru = models::tree_gru<Item>(word, kids, sizes(16, 32)).program;
  CHECK(refusal(tree_gru, on) == "no error");
  CHECK_THAT(refusal(tree_gru, on, 75), Contains("compute capability 7.5 has no tensor cores for bf16 that add in f32; "
                                                 "8.0 and later have"));
  CHECK_THAT(refusal(tree_gru, on.store_weights(DType::i8)),
             Contains("tensor cores multiply bf16, but store_weights says i8: leave one of them out"));
  CHECK_THAT(refusal(tree_gru, on.store("U_r", DType::f16)),
             Contains("the sum 'r_sum") && Contains("reads 'U_r' as f16, and not as bf16; leave tensor_cores out"));
  CHECK(refusal(branching(), on) == "no error");
  CHECK_THAT(refusal(branching(), Schedule{}.dynamic_batch().on_gpu(on.gpu)),
             Contains("is computed for some nodes and not for others: give each side of the branch code of its own"));
  const auto dag_rnn = models::dag_rnn<Item>(word, kids, sizes(16, 16)).program;
  const auto tree_fc = models::tree_fc<Item>(word, left, right, sizes(0, 16)).program;
  for (const std::string& node_by_node :
       {refusal(dag_rnn, Schedule{}.on_gpu(on.gpu)), refusal(tree_fc, Schedule{}.specialize_leaves().on_gpu(on.gpu)),
        refusal(tree_fc, on.unroll(tree_fc, 2))})
    CHECK_THAT(node_by_node, Contains("is computed node by node; leave tensor_cores out"));
  CHECK_THAT(
      refusal(models::mv_rnn<Item>(word, left, right, sizes(0, 16)).program, on),
      Contains("tensor cores take all products of a model or none, but the sum 'M_left_v_right' has no factor that is "
               "a matrix of weights as bf16, the same at every node"));
  CHECK_THAT(refusal(models::tree_gru<Item, double>(word, kids, sizes(16, 32)).program, on),
             Contains("no sum of products of f32 with a matrix"));
}

TEST_CASE("tensor cores are not said to be there for weights on CPUs", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(16, 32)).program;
  CHECK_THROWS_WITH(interpreted(program, {}, {}, Schedule::standard().store_weights(DType::tf32)),
                    Contains("weights are stored as f32, bf16, f16 or i8, and not as tf32"));
}

TEST_CASE("CUDA text of a TreeFC on tensor cores is the golden one", "[cuda_text]") {
  const auto program = models::tree_fc<Item>(word, left, right, sizes(0, 16)).program;
  const auto model = cuda::compile(program, with(bf16, on_gpu(Group::block, 1)), Gpu::of(80));
  check_golden("cuda_text/tensor_tree_fc.cu", model.code().text.settings + model.code().text.kernel);
}

TEST_CASE("explain says what tensor cores multiply, and of which matrices", "[cuda]") {
  const auto program = models::tree_gru<Item>(word, kids, sizes(16, 32)).program;
  const std::string text = explain(cuda::compile(program, with(bf16, on_gpu(Group::block, 1)), Gpu::of(80)));
  CHECK_THAT(text,
             Contains("multiply bf16 and add in f32, in tiles of 16 columns and 8 nodes a warp: U_r, U_z, U_h, W_z, "
                      "W_h, W_r"));
  CHECK_THAT(text, Contains("those that sums of products read as bf16\n"));
}
