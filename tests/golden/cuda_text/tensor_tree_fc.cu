#define BLOCKS 1
#define THREADS 32
#define SPIN_LIMIT 0

// ---- the program ----
struct Launch {
  void* const* tables;
  u64* words;
  volatile int* fault;
};
KERNEL(cortex_kernel, THREADS) {
  const int thread = thread_number(), group = block_number() / BLOCKS, worker = block_number() % BLOCKS;
  void* const* const table = launch.tables + block_number() * 11;
  float* const b0 = (float*)table[0];
  SHARED(chip);
  unsigned short* const b1 = (unsigned short*)(chip + 0);
  const unsigned short* const b2 = (const unsigned short*)table[2];
  const int* const b3 = (const int*)table[3];
  const float* const b4 = (const float*)table[4];
  const int* const b5 = (const int*)table[5];
  const int* const b6 = (const int*)table[6];
  const int* const b7 = (const int*)table[7];
  const int* const b8 = (const int*)table[8];
  const int* const b9 = (const int*)table[9];
  const float* const b10 = (const float*)table[10];
  UNROLL("unroll 8")
  for (int i0 = 0; i0 < 2; ++i0) {
    const int v1 = i0 * 32;
    const int v2 = v1 + thread;
    const int v3 = v2 * 8;
    store_chip_piece(b1, v3, load_piece(b2, v3));
  }
  const bool v4 = thread < 16;
  if (v4) {
    const long long v5 = (long long)0;
    const int v6 = load_constant(b3, v5);
    const long long v7 = (long long)v6;
    const long long v8 = v7 * 16ll;
    const long long v9 = v8 + (long long)thread;
    store(b0, v9, 0.0f);
  }
  const long long v10 = (long long)0;
  const int v11 = load_constant(b3, v10);
  const long long v12 = (long long)1;
  const int v13 = load_constant(b3, v12);
  const int v14 = v11 - v13;
  const int v15 = div_(thread, 16);
  const int v16 = v14 - v15;
  const int v17 = v16 + 1;
  const int v18 = div_(v17, 2);
  for (int i19 = 0; i19 < v18; ++i19) {
    const int v20 = mod_(thread, 16);
    const long long v21 = (long long)1;
    const int v22 = load_constant(b3, v21);
    const int v23 = i19 * 2;
    const int v24 = v23 + v15;
    const int v25 = v22 + v24;
    const long long v26 = (long long)v25;
    const long long v27 = v26 * 16ll;
    const long long v28 = v27 + (long long)v20;
    const long long v29 = (long long)v25;
    const int v30 = load_constant(b5, v29);
    const int v31 = mul_(v30, 16);
    const int v32 = add_(v31, v20);
    const float v33 = load_constant(b4, v32);
    store(b0, v28, v33);
  }
  sync_block();
  const long long v34 = (long long)2;
  const int v35 = load_constant(b3, v34);
  const int v36 = v35 - 1;
  const int v37 = max_(v36, 0);
  for (int i38 = 0; i38 < v37; ++i38) {
    const int v39 = i38 + 1;
    const long long v40 = (long long)v39;
    const int v41 = load_constant(b6, v40);
    const int v42 = v41 + 7;
    const int v43 = div_(v42, 8);
    const int v44 = div_(thread, 32);
    const int v45 = v43 - v44;
    for (int i46 = 0; i46 < v45; ++i46) {
      const int v47 = div_(thread, 32);
      const int v48 = i46 + v47;
      const int v49 = v48 * 8;
      const bool v50 = 0 < 16;
      if (v50) {
        sync_warp();
        float a51[4];
        a51[0] = 0.0f;
        a51[1] = 0.0f;
        a51[2] = 0.0f;
        a51[3] = 0.0f;
        const int v52 = mod_(thread, 32);
        const int v53 = div_(v52, 4);
        const int v54 = v49 + v53;
        const int v55 = v41 - 1;
        const int v56 = min_(v54, v55);
        const int v57 = i38 + 1;
        const long long v58 = (long long)v57;
        const int v59 = load_constant(b7, v58);
        const int v60 = v59 + v56;
        UNROLL("unroll 16")
        for (int i61 = 0; i61 < 1; ++i61) {
          const int v62 = div_(0, 16);
          const int v63 = v62 * 512;
          const int v64 = i61 * 16;
          const int v65 = div_(v64, 16);
          const int v66 = v65 * 256;
          const int v67 = v63 + v66;
          const int v68 = mod_(0, 8);
          const int v69 = v68 * 32;
          const int v70 = v67 + v69;
          const int v71 = div_(v64, 2);
          const int v72 = mod_(v71, 4);
          const int v73 = v72 * 8;
          const int v74 = v70 + v73;
          const int v75 = div_(v64, 8);
          const int v76 = mod_(v75, 2);
          const int v77 = v76 * 4;
          const int v78 = v74 + v77;
          const int v79 = div_(0, 8);
          const int v80 = mod_(v79, 2);
          const int v81 = v80 * 2;
          const int v82 = v78 + v81;
          const int v83 = mod_(v64, 2);
          const int v84 = v82 + v83;
          const long long v85 = (long long)v60;
          const int v86 = load_constant(b8, v85);
          const long long v87 = (long long)v86;
          const long long v88 = v87 * 16ll;
          const int v89 = mod_(thread, 4);
          const int v90 = v89 * 2;
          const long long v91 = v88 + (long long)v64 + (long long)v90;
          const Pair v92 = load_pair(b0, v91);
          const long long v93 = (long long)v60;
          const int v94 = load_constant(b8, v93);
          const long long v95 = (long long)v94;
          const long long v96 = v95 * 16ll;
          const int v97 = mod_(thread, 4);
          const int v98 = v97 * 2;
          const long long v99 = v96 + (long long)v64 + (long long)v98 + (long long)8;
          const Pair v100 = load_pair(b0, v99);
          mma_bf16(a51, load_chip_fragment(b1, v84), v92.x, v92.y, v100.x, v100.y);
        }
        const int v101 = mod_(thread, 32);
        const int v102 = div_(v101, 4);
        const int v103 = v49 + v102;
        const int v104 = v41 - 1;
        const int v105 = min_(v103, v104);
        const int v106 = i38 + 1;
        const long long v107 = (long long)v106;
        const int v108 = load_constant(b7, v107);
        const int v109 = v108 + v105;
        UNROLL("unroll 16")
        for (int i110 = 0; i110 < 1; ++i110) {
          const int v111 = div_(0, 16);
          const int v112 = v111 * 512;
          const int v113 = v112 + 256;
          const int v114 = i110 * 16;
          const int v115 = div_(v114, 16);
          const int v116 = v115 * 256;
          const int v117 = v113 + v116;
          const int v118 = mod_(0, 8);
          const int v119 = v118 * 32;
          const int v120 = v117 + v119;
          const int v121 = div_(v114, 2);
          const int v122 = mod_(v121, 4);
          const int v123 = v122 * 8;
          const int v124 = v120 + v123;
          const int v125 = div_(v114, 8);
          const int v126 = mod_(v125, 2);
          const int v127 = v126 * 4;
          const int v128 = v124 + v127;
          const int v129 = div_(0, 8);
          const int v130 = mod_(v129, 2);
          const int v131 = v130 * 2;
          const int v132 = v128 + v131;
          const int v133 = mod_(v114, 2);
          const int v134 = v132 + v133;
          const long long v135 = (long long)v109;
          const int v136 = load_constant(b9, v135);
          const long long v137 = (long long)v136;
          const long long v138 = v137 * 16ll;
          const int v139 = mod_(thread, 4);
          const int v140 = v139 * 2;
          const long long v141 = v138 + (long long)v114 + (long long)v140;
          const Pair v142 = load_pair(b0, v141);
          const long long v143 = (long long)v109;
          const int v144 = load_constant(b9, v143);
          const long long v145 = (long long)v144;
          const long long v146 = v145 * 16ll;
          const int v147 = mod_(thread, 4);
          const int v148 = v147 * 2;
          const long long v149 = v146 + (long long)v114 + (long long)v148 + (long long)8;
          const Pair v150 = load_pair(b0, v149);
          mma_bf16(a51, load_chip_fragment(b1, v134), v142.x, v142.y, v150.x, v150.y);
        }
        UNROLL("unroll")
        for (int i151 = 0; i151 < 4; ++i151) {
          const int v152 = mod_(thread, 32);
          const int v153 = div_(v152, 4);
          const int v154 = div_(i151, 2);
          const int v155 = v154 * 8;
          const int v156 = v153 + v155;
          const int v157 = 0 + v156;
          const int v158 = mod_(thread, 4);
          const int v159 = v158 * 2;
          const int v160 = mod_(i151, 2);
          const int v161 = v159 + v160;
          const int v162 = v49 + v161;
          const bool v163 = v162 < v41;
          const bool v164 = v157 < 16;
          const bool v165 = v163 && v164;
          if (v165) {
            const int v166 = i38 + 1;
            const long long v167 = (long long)v166;
            const int v168 = load_constant(b7, v167);
            const int v169 = v168 + v162;
            float a170;
            const float v171 = a51[i151];
            a170 = v171;
            const long long v172 = (long long)v169;
            const long long v173 = v172 * 16ll;
            const long long v174 = v173 + (long long)v157;
            const float v175 = a170;
            const float v176 = load_constant(b10, v157);
            const float v177 = v175 + v176;
            const float v178 = relu_(v177);
            store(b0, v174, v178);
          }
        }
      }
    }
    sync_block();
  }
}
