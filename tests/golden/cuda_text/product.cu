#define BLOCKS 4
#define THREADS 64
#define SPIN_LIMIT 0
#define PART_WORDS 8
#define BARRIER_WORDS 8

// ---- the program ----
struct Launch {
  const u64* call;
  u64* words;
  volatile int* fault;
  int before, after, with_launch;
  Wide in[1];
};
KERNEL(cortex_kernel, THREADS) {
  const int thread = thread_number(), group = block_number() / BLOCKS, worker = block_number() % BLOCKS;
  const u64* const head = launch.call + part_of(group);
  const u64* const table = head + head_words;
  const float* const b0 = (const float*)load(table, 0);
  const int* const b1 = (const int*)load(table, 1);
  float* const b2 = (float*)load(table, 2);
  SHARED(chip);
  float* const b3 = (float*)(chip + 0);
  Group own = {launch.words + group * 8, launch.fault, group, first_turn(launch.words + group * 8, worker)};
  if (launch.before) {
    move_rows(rows_before(head, end_of(launch.call, head, false)), worker);
    sync_grid(own, worker);
  }
  const int v0 = worker * 64;
  const int v1 = v0 + thread;
  const float v2 = load_constant(b0, v1);
  store_chip(b3, thread, v2);
  sync_block();
  const int v3 = load_constant(b1, 0);
  for (int i4 = 0; i4 < v3; ++i4) {
    float a5;
    a5 = 0.0f;
    const int v7 = load_constant(b1, i4);
    UNROLL("unroll 16")
    for (int i6 = 0; i6 < 64; ++i6) {
      const int v8 = v7 * 64;
      const int v9 = v8 + i6;
      const float v10 = load(b2, v9);
      const float v11 = load_chip(b3, i6);
      const float v12 = a5;
      const float v13 = fma_(v10, v11, v12);
      a5 = v13;
    }
    const int v14 = i4 * 64;
    const int v15 = v14 + thread;
    const float v16 = a5;
    const float v17 = relu_(v16);
    store(b2, v15, v17);
    sync_grid(own, worker);
  }
  if (launch.after) {
    sync_grid(own, worker);
    move_rows(rows_after(head, end_of(launch.call, head, false)), worker);
  }
}
