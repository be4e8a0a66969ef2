// The run time of GPUs on a driver without a GPU: streams, events, memory, errors, several devices, captured calls.
#include "cortex/explain.hpp"
#include "cuda/bound.hpp"

using namespace cortex;
using namespace cortex::test;
using Catch::Matchers::Contains;

TEST_CASE("a machine without a GPU has no devices and says why", "[cuda]") {
  std::string why;
  if (jit::find_cuda_driver(why)) skip("this machine has an NVIDIA driver");
  CHECK(cuda::devices().empty());
  CHECK_THAT(cuda::devices().why(), Contains("no NVIDIA driver is installed") && Contains("libcuda.so.1"));
  CHECK_THAT(error_of_call([] { cuda::devices()[0]; }),
             Contains("unavailable: GPU 0 is asked for, but there are 0: no NVIDIA driver"));
}

TEST_CASE("a context is refused where there is no driver", "[cuda]") {
  std::string why;
  if (jit::find_cuda_driver(why)) skip("this machine has an NVIDIA driver");
  CHECK_THAT(error_of_call([] { cuda::device_of(nullptr); }), Contains("unavailable: no NVIDIA driver is installed"));
}

TEST_CASE("a model runs in the caller's context", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto device = std::make_shared<const runtime::CudaDevice>(FakeCuda::driver(), FakeCuda::nvrtc(), 0, stream(77));
  cuda::Result result = model.to(cuda::Device(device))(b.items.roots);
  CHECK(fake.last_context == stream(77));
  CHECK(difference(all_roots(result), b.right) <= 1);
}

TEST_CASE("a model for a GPU is compiled without one", "[cuda]") {
  CHECK_THAT(Bound().compile().source(), Contains("KERNEL(cortex_kernel, THREADS)"));
}

TEST_CASE("the seam for CPUs points to the header for GPUs", "[cuda]") {
  CHECK_THAT(error_of_call([] {
               CompileOptions options;
               options.target = Target::cuda();
               compile(tree_rnn_program(), options);
             }),
             Contains("cortex/cuda.hpp"));
}

TEST_CASE("decisions that GPUs do not follow are refused", "[cuda]") {
  const auto refusal = [](const Schedule& schedule) {
    return error_of_call([&] { cuda::compile(tree_rnn_program(), schedule, Gpu::of(90)); });
  };
  const Schedule standard = Schedule::standard();
  CHECK_THAT(refusal(standard.tabulate(0)), Contains("invalid_schedule: tabulate: tables of at most 0 MB"));
  CHECK_THAT(refusal(standard.store("Wx", DType::f16)), Contains("store: model 'tree_rnn' has no input 'Wx'"));
  CHECK_THAT(refusal(standard.tile_rows(4)), Contains("the shape of register tiles is for CPUs"));
  CHECK(refusal(standard) == "no error");
}

TEST_CASE("a choice that is none of those there are is refused", "[cuda]") {
  const auto words = [](const std::string& decision) {
    return Contains("invalid_schedule: " + decision + ": there is no choice of the number 77");
  };
  const auto on_gpu = [](const Schedule& schedule) {
    return error_of_call([&] { cuda::compile(tree_rnn_program(), schedule, Gpu::of(90)); });
  };
  const auto on_cpu = [](const Schedule& schedule) {
    return error_of_call([&] { compile(tree_rnn_program(), schedule, CompileOptions{}.on(Target::interpreter())); });
  };
  Schedule shares = Schedule::standard(), sorts = shares, tabulates = shares, sweeps = shares;
  shares.sharing = Sharing(77), sorts.sorting = Sorting(77), tabulates.tabulating = Tabulating(77);
  sweeps.tiling.sweeps = Tiling::Sweeps(77);  // GPUs take no shape of tiles at all
  CHECK_THAT(on_gpu(shares), words("share_subtrees"));
  CHECK_THAT(on_cpu(shares), words("share_subtrees"));
  CHECK_THAT(on_gpu(sorts), words("sort_by_matrix"));
  CHECK_THAT(on_cpu(sorts), words("sort_by_matrix"));
  CHECK_THAT(on_gpu(tabulates), words("tabulate"));
  CHECK_THAT(on_cpu(tabulates), words("tabulate"));
  CHECK_THAT(on_cpu(sweeps), words("alternate_sweeps"));
}

TEST_CASE("equal subtrees of a group are computed once where the schedule says so", "[cuda]") {
  const auto program = tree_rnn_program();
  const NamedNumbers weights = random_weights(program.graph(), 3);
  Items items = forest(Shape::ragged, 4, 12, 5);
  const std::vector<const Item*> once(items.roots.begin(), items.roots.end());
  items.roots.insert(items.roots.end(), once.begin(), once.end());
  FakeCuda fake;
  fake.gpu.multiprocessors = 2;
  const auto run = [&](const Schedule& schedule) {
    auto model = cuda::compile(program, schedule, fake.gpu);
    bind_all<float>(model, weights);
    return model.to(cuda::Device(fake.device()))(items.roots);
  };
  const Schedule schedule = on_gpu(Group::cluster, 2);
  cuda::Result each = run(schedule), shared = run(schedule.share_subtrees());
  CHECK(each.num_computed() == each.num_nodes());
  CHECK(shared.num_nodes() == each.num_nodes());
  CHECK(shared.num_computed() < each.num_computed());
  CHECK(shared.roots() == each.roots());
  CHECK(fake.problem == "");
}

TEST_CASE("a call on a stream goes on while the caller does, and its event tells when it is done", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  cuda::Result result = on.run(b.items.roots, stream(1));
  CHECK(!result.ready());
  result.wait();
  CHECK(result.ready());
  CHECK(difference(all_roots(result), b.right) <= 1);
}

TEST_CASE("calls in flight keep their memory and their weights", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  cuda::Result first = on.run(b.items.roots, stream(1));
  NamedNumbers zero = b.weights;
  for (auto& [name, values] : zero) std::fill(values.begin(), values.end(), 0.0);
  bind_all<float>(model, zero);
  cuda::Result second = on.run(b.items.roots, stream(2));
  CHECK(difference(all_roots(first), b.right) <= 1);
  CHECK(all_roots(second) == std::vector<float>(b.right.size(), 0.0f));
}

TEST_CASE("a call is one transfer and one launch, and allocates nothing once it has been made", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  on(b.items.roots);
  const int allocations = fake.allocations, uploads = fake.uploads, launches = fake.launches;
  cuda::Result again = on(b.items.roots);
  CHECK(fake.allocations == allocations);
  CHECK(fake.uploads == uploads + 1);
  CHECK(fake.launches == launches + 1);
  CHECK(difference(all_roots(again), b.right) <= 1);
}

TEST_CASE("a small call comes with its launch, and a larger one in a transfer", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  on(b.items.roots);
  const Items chain = forest(Shape::sequence, 1, 700, 9);  // whose arrays have no room in shared memory either
  const std::vector<float> of_chain = interpreted(b.program, b.weights, chain);
  for (const bool small : {true, false, true}) {
    const Item* const root = small ? b.items.roots[1] : chain.roots[0];
    on(root);
    const int uploads = fake.uploads, launches = fake.launches;
    cuda::Result result = on(root);
    CHECK(fake.uploads == uploads + !small);
    CHECK(fake.launches == launches + 1);
    CHECK((result.counters().bytes_up < 4096) == small);
    const std::vector<float> of_tree(b.right.begin() + 16, b.right.begin() + 32);
    CHECK(difference(all_roots(result), small ? of_tree : of_chain) <= 1);
  }
  CHECK(fake.problem == "");
}

TEST_CASE("what a call has brought with its launch is there where its results are gathered later", "[cuda]") {
  const Bound b{16, 3, 3};
  FakeCuda fake;
  fake.gpu.multiprocessors = 3;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  const std::size_t count = b.right.size();
  const std::uint64_t out = fake.users_memory(0, count * sizeof(float));
  const auto written = [&] {
    fake.users_wait(0, stream(3));
    return std::vector<float>(reinterpret_cast<const float*>(out), reinterpret_cast<const float*>(out) + count);
  };
  on(b.items.roots);
  const int uploads = fake.uploads;
  cuda::Result result = on.run(b.items.roots, stream(3));
  CHECK(fake.uploads == uploads);
  result.roots_into(reinterpret_cast<float*>(out), count, stream(3));
  CHECK(difference(written(), b.right) <= 1);
  cuda::Result prepared = on.prepare(b.items.roots);
  std::memset(reinterpret_cast<void*>(out), 0, count * sizeof(float));
  fake.begin_capture(stream(3));
  prepared.launch(stream(3));
  prepared.roots_into(reinterpret_cast<float*>(out), count, stream(3));
  fake.end_capture();
  fake.replay();
  CHECK(difference(written(), b.right) <= 1);
  CHECK(fake.problem == "");
}

TEST_CASE("a kernel that was compiled before is taken from the cache", "[cuda]") {
  std::string directory = (std::filesystem::temp_directory_path() / "cortex-cache-XXXXXX").string();
  if (!::mkdtemp(directory.data())) skip("no directory can be made");
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  cache_code_in(directory);
  for (int turn = 0; turn < 2; ++turn) {
    cuda::Result result = model.to(cuda::Device(fake.device()))(b.items.roots);
    CHECK(difference(all_roots(result), b.right) <= 1);
    CHECK(fake.compilations == 1);
  }
  cache_code_in("");
  std::filesystem::remove_all(directory);
}

TEST_CASE("a call counts what it sends and launches, and is timed on request", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  runtime::CudaCompileOptions options;
  for (const bool timings : {false, true}) {
    options.timings = timings;
    auto model = cuda::compile(b.program, on_gpu(Group::block, 1), Gpu::of(90), options);
    bind_all<float>(model, b.weights);
    const auto on = model.to(cuda::Device(fake.device()));
    cuda::Result result = on(b.items.roots);
    const std::size_t sent = fake.last_upload;
    CHECK(result.counters().launches == 1);
    CHECK(result.counters().bytes_up == sent);
    CHECK(result.counters().device_bytes > sent + b.items.all.size() * 16 * sizeof(float));
    const std::size_t landed = b.items.roots.size() * 16 * sizeof(float);
    CHECK(result.counters().bytes_down == landed);
    result.root(0);
    result.node(b.items.roots[0]);
    result.launch(nullptr);
    result.record(nullptr);
    CHECK(result.counters().launches == 2);
    CHECK(result.counters().bytes_down == 2 * landed + 16 * sizeof(float));
    CHECK((result.counters().linearize_ns > 0) == timings);
    CHECK(result.counters().copy_ns == (timings ? 250000 : 0));
    CHECK(result.counters().kernel_ns == (timings ? 2000000 : 0));
  }
}

TEST_CASE("rows that lie near each other come back in one transfer", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  fake.gpu.multiprocessors = 1;  // all trees to one group
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  std::vector<const Item*> roots(b.items.roots.begin(), b.items.roots.end());
  roots.push_back(roots[1]);  // also one that comes twice
  cuda::Result result = on.run(roots, nullptr);
  const auto all = result.roots();
  CHECK(fake.downloads == 1);
  for (std::size_t r = 0; r < roots.size(); ++r)
    CHECK(std::equal(all.begin() + std::ptrdiff_t(r * 16), all.begin() + std::ptrdiff_t((r + 1) * 16),
                     result.root(r).begin()));
  const Items chain = forest(Shape::sequence, 1, 2000, 9);
  cuda::Result ends = on.run(std::vector<const Item*>{chain.roots[0], &chain.all.front()}, nullptr);
  CHECK(ends.root(1) == ends.node(&chain.all.front()));
  fake.downloads = 0;
  CHECK(ends.roots().size() == 2 * 16);
  CHECK(fake.downloads == 2);  // 64 bytes a node
}

TEST_CASE("roots of many groups, which lie apart, are gathered by a kernel", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  const Items chains = forest(Shape::sequence, 4, 2000, 9);  // 64 bytes a node
  for (int call = 0; call < 2; ++call) {
    cuda::Result result = on.run(chains.roots, nullptr);
    fake.downloads = 0;
    const int launches = fake.launches;
    const auto all = result.roots();
    CHECK(fake.downloads == 0);
    CHECK(fake.launches == launches + 1);
    CHECK(result.counters().bytes_down == 4 * 16 * sizeof(float));
    for (std::size_t r = 0; r < 4; ++r)
      CHECK(std::equal(all.begin() + std::ptrdiff_t(r * 16), all.begin() + std::ptrdiff_t((r + 1) * 16),
                       result.root(r).begin()));
  }
}

TEST_CASE("the kernel of a call that waits writes the first state of its roots to the host", "[cuda]") {
  const Bound b;
  for (const Schedule& way : {on_gpu(Group::block, 1), on_gpu(Group::cluster, 2), on_gpu(Group::grid, 3)}) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 6;
    fake.order = {Interleaving::random, 13};
    auto model = cuda::compile(b.program, way, fake.gpu);
    bind_all<float>(model, b.weights);
    const auto on = model.to(cuda::Device(fake.device()));
    cuda::Result result = on(b.items.roots);
    const auto all = result.roots();
    const auto second = result.root(1);
    CHECK(fake.launches == 1);
    CHECK(fake.downloads == 0);
    CHECK(fake.problem == "");
    CHECK(difference(all, b.right) <= 1);
    CHECK(std::equal(second.begin(), second.end(), all.begin() + 16));
    cuda::Result left = on.run(b.items.roots, nullptr);
    left.wait();
    CHECK(left.counters().bytes_down == 0);
    CHECK(left.roots() == all);
    CHECK(result.node(b.items.roots[1]) == second);  // on the device as well
  }
}

TEST_CASE("roots that land on the host are those of the last launch", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  cuda::Result result = on(b.items.roots);
  const auto all = result.roots();
  result.launch(nullptr);  // which nobody waits for but who asks for results
  CHECK(result.root(1) == std::vector<float>(all.begin() + 16, all.begin() + 32));
  CHECK(result.ready());
}

TEST_CASE("results have addresses on the device", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  cuda::Result result = model.to(cuda::Device(fake.device()))(b.items.roots);
  const auto* row = reinterpret_cast<const float*>(result.device_pointer(2));  // the emulation's memory is the host's
  CHECK(std::vector<float>(row, row + 16) == result.root(2));
}

TEST_CASE("one model runs on two devices", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  fake.devices = 2;
  auto model = b.compile();
  const cuda::Devices devices(fake.devices_of());
  REQUIRE(devices.size() == 2);
  CHECK(devices[1].name() == "emulated GPU 1");
  for (const cuda::Device& device : devices) {
    cuda::Result result = model.to(device)(b.items.roots);
    CHECK(difference(all_roots(result), b.right) <= 1);
  }
}

TEST_CASE("a device that is not used has no context, and one that refuses it takes no other away", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  fake.devices = 3;
  fake.refusing = 1;
  const int before = fake.alive();
  const cuda::Devices devices(fake.devices_of());
  REQUIRE(devices.size() == 3);
  CHECK(devices[1].gpu().multiprocessors == fake.gpu.multiprocessors);
  CHECK(fake.alive() == before);
  auto model = b.compile();
  CHECK_THAT(error_of_call([&] { model.to(devices[1]); }),
             Contains("unavailable") && Contains("in cuDevicePrimaryCtxRetain on emulated GPU 1"));
  cuda::Result result = model.to(devices[2])(b.items.roots);
  CHECK(difference(all_roots(result), b.right) <= 1);
  CHECK(fake.last_context == devices[2].shared()->context());
}

TEST_CASE("a device gets its context also where a thread without one has no mode of captures", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  fake.modes_without_context = false;
  auto model = b.compile();
  cuda::Result result = model.to(cuda::Device(fake.device()))(b.items.roots);
  CHECK(difference(all_roots(result), b.right) <= 1);
}

TEST_CASE("weights that are missing are named before anything is sent", "[cuda]") {
  FakeCuda fake;
  const auto on = cuda::compile(tree_rnn_program(), on_gpu(Group::block, 1), fake.gpu).to(cuda::Device(fake.device()));
  const Bound b;
  CHECK_THAT(error_of_call([&] { on(b.items.roots); }), Contains("invalid_weights") && Contains("'Emb'"));
  CHECK(fake.launches == 0);
}

TEST_CASE("a schedule's groups bound those of a call on a GPU", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  const cuda::Device device(fake.device());
  CHECK(b.compile().to(device).most_groups() > 2);
  auto model = b.compile(on_gpu(Group::block, 1).groups(2));
  const auto on = model.to(device);
  CHECK(on.most_groups() == 2);
  CHECK(on.resident().most_groups() <= 2);
  cuda::Result result = on(b.items.roots);
  CHECK(difference(all_roots(result), b.right) <= 1);
}

TEST_CASE("a device that does not answer leaves the others", "[cuda]") {
  FakeCuda fake;
  fake.devices = 3;
  fake.nameless = 1;
  const cuda::Devices devices(runtime::cuda_devices(fake.driver()));
  REQUIRE(devices.size() == 2);
  CHECK(devices[1].name() == "emulated GPU 2");
  CHECK_THAT(devices.why(), Contains("device 1: ") && Contains("cuDeviceGetName"));
}

TEST_CASE("a root that is null is named by its own number", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  std::vector<const Item*> roots(b.items.roots);
  roots[3] = nullptr;
  CHECK_THAT(error_of_call([&] { on(roots); }), Contains("invalid_structure") && Contains("3"));
}

TEST_CASE("try_call returns the error", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  const auto on = model.to(cuda::Device(fake.device()));
  CHECK(on.try_call(b.items.roots).has_value());
  CHECK(on.try_call(std::vector<const Item*>{nullptr}).error().code == Code::invalid_structure);
}

TEST_CASE("a call without roots launches nothing", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  auto model = b.compile();
  CHECK(model.to(cuda::Device(fake.device()))(std::vector<const Item*>()).num_roots() == 0);
  CHECK(fake.launches == 0);
}

TEST_CASE("clusters and grids are launched as such", "[cuda]") {
  using A = jit::cuda::LaunchAttribute;
  const Bound b;
  FakeCuda fake;
  auto cluster = b.compile(on_gpu(Group::cluster, 2));
  cluster.to(cuda::Device(fake.device()))(b.items.roots);
  REQUIRE(fake.attributes.size() == 1);
  CHECK(fake.attributes[0].id == A::cluster_dimension);
  CHECK(fake.attributes[0].cluster[0] == 2);
  auto grid = b.compile(on_gpu(Group::grid, 2));
  grid.to(cuda::Device(fake.device()))(b.items.roots);
  REQUIRE(fake.attributes.size() == 1);
  CHECK(fake.attributes[0].id == A::cooperative);
  CHECK(fake.attributes[0].cooperative_value == 1);
}

TEST_CASE("blocks that could not all run at once are refused before a launch", "[cuda]") {
  const Bound b;
  const std::pair<Group, bool> ways[] = {{Group::grid, false}, {Group::grid, true}, {Group::cluster, false}};
  for (const auto& [group, lock_based] : ways) {
    auto model = b.compile(on_gpu(group, 4, GpuSchedule::Weights::streamed, lock_based));
    FakeCuda fake;
    fake.gpu.multiprocessors = 1;  // with room for two such blocks of a grid, and for no cluster
    const cuda::Device device(fake.device());
    CHECK_THAT(error_of_call([&] { model.to(device); }),
               Contains("unavailable: a group of 4 blocks of 32 threads") &&
                   Contains("does not run at once on emulated GPU 0, so its blocks could never meet"));
    CHECK(fake.launches == 0);
    fake.gpu.multiprocessors = 4;
    cuda::Result result = model.to(cuda::Device(fake.device()))(b.items.roots);
    CHECK(difference(all_roots(result), b.right) <= 1);
  }
}

TEST_CASE("weights that a block's shared memory has no room for are refused before a launch", "[cuda]") {
  const Bound b;
  auto model = b.compile(on_gpu(Group::grid, 2));
  FakeCuda fake;
  fake.gpu.shared_bytes = 0;
  CHECK_THAT(error_of_call([&] { model.to(cuda::Device(fake.device())); }),
             Contains("unavailable") && Contains("bytes of weights and recent rows in the shared memory of a block") &&
                 Contains("emulated GPU 0 has 0"));
  CHECK(fake.launches == 0);
}

TEST_CASE("a device without cooperative launches takes no blocks that meet in memory, and no kernels that stay",
          "[cuda]") {
  const Bound b;
  FakeCuda fake;
  fake.cooperates = false;
  const cuda::Device device(fake.device());
  const auto refusal = [&](const auto& what) {
    const std::string said = error_of_call(what);
    CHECK(fake.launches == 0);
    return said;
  };
  for (const bool lock_based : {false, true}) {
    auto grid = b.compile(on_gpu(Group::grid, 2, GpuSchedule::Weights::streamed, lock_based));
    CHECK_THAT(refusal([&] { grid.to(device); }),
               Contains("unavailable: emulated GPU 0 has no cooperative launches") && Contains("GpuSchedule::group"));
  }
  for (const Group group : {Group::block, Group::cluster}) {
    auto model = b.compile(on_gpu(group, group == Group::block ? 1 : 2));
    const auto on = model.to(device);
    CHECK_THAT(refusal([&] { on.resident(); }), Contains("no kernels that stay") && Contains("without resident()"));
    cuda::Result result = on(b.items.roots);
    CHECK(difference(all_roots(result), b.right) <= 1);
    fake.launches = 0;
  }
}

TEST_CASE("a barrier in a debug build tells which block is missing, and does not hang", "[cuda]") {
  const Bound b;
  for (const bool lock_based : {false, true}) {
    FakeCuda fake;
    fake.gpu.multiprocessors = 3;
    fake.missing_block = 2;
    auto model = b.compile(on_gpu(Group::grid, 3, GpuSchedule::Weights::streamed, lock_based), fake.gpu, 200);
    const auto on = model.to(cuda::Device(fake.device()));
    CHECK_THAT(error_of_call([&] { on(b.items.roots); }),
               Contains("a barrier was given up: of group 0 block 2 did not arrive"));
    fake.missing_block = -1;
    fake.problem.clear();
    cuda::Result result = on(b.items.roots);
    CHECK(fake.problem == "");
    CHECK(difference(all_roots(result), b.right) <= 1);
  }
}

TEST_CASE("what NVRTC refuses comes with its words and the source", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  fake.change = [](const std::string& source) { return source + "\nthis is no C++\n"; };
  auto model = b.compile();
  CHECK_THAT(error_of_call([&] { model.to(cuda::Device(fake.device())); }),
             Contains("compile_failed: NVRTC refused a kernel") && Contains("error:") &&
                 Contains("--- the source ---") && Contains("KERNEL(cortex_kernel, THREADS)"));
}

TEST_CASE("a model with clusters does not go to a device without them", "[cuda]") {
  const Bound b;
  FakeCuda fake;
  fake.gpu = Gpu::of(80);
  auto model = b.compile(on_gpu(Group::cluster, 2), Gpu::of(90));
  CHECK_THAT(error_of_call([&] { model.to(cuda::Device(fake.device())); }),
             Contains("compiled for compute capability 9.0 does not run on emulated GPU 0"));
}

TEST_CASE("explain says how a GPU shares a call and which weights stay on chip", "[cuda]") {
  GpuSchedule how;
  how.group = Group::cluster, how.blocks = 2;
  const auto model = cuda::compile(tree_rnn_program(), Schedule::standard().on_gpu(how), Gpu::of(90));
  const std::string text = explain(model);
  CHECK_THAT(text, Contains("each is a cluster of 2 blocks, which meet at the hardware's barrier"));
  CHECK_THAT(
      text,
      Contains(
          "256 a block, 2 of a warp with a column of the output, each with a part of its sums, for up to 8 nodes"));
  CHECK_THAT(text, Contains("of weights stay in each block's shared memory for the time of a call: U"));
  CHECK_THAT(text, Contains("are copied to each block's shared memory, if they are no more than 8 192 B"));
  CHECK_THAT(text, Contains("from the L2 cache, as they are read: W"));
  CHECK_THAT(text, Contains("a GPU of compute capability 9.0 with 132 multiprocessors"));
}
