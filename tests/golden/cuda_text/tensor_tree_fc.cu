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
    const int v31 = v30 * 16;
    const int v32 = v31 + v20;
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
          const float v92 = load(b0, v91);
          const long long v93 = (long long)v60;
          const int v94 = load_constant(b8, v93);
          const long long v95 = (long long)v94;
          const long long v96 = v95 * 16ll;
          const int v97 = mod_(thread, 4);
          const int v98 = v97 * 2;
          const long long v99 = v96 + (long long)v64 + (long long)v98 + (long long)1;
          const float v100 = load(b0, v99);
          const long long v101 = (long long)v60;
          const int v102 = load_constant(b8, v101);
          const long long v103 = (long long)v102;
          const long long v104 = v103 * 16ll;
          const int v105 = mod_(thread, 4);
          const int v106 = v105 * 2;
          const long long v107 = v104 + (long long)v64 + (long long)v106 + (long long)8;
          const float v108 = load(b0, v107);
          const long long v109 = (long long)v60;
          const int v110 = load_constant(b8, v109);
          const long long v111 = (long long)v110;
          const long long v112 = v111 * 16ll;
          const int v113 = mod_(thread, 4);
          const int v114 = v113 * 2;
          const long long v115 = v112 + (long long)v64 + (long long)v114 + (long long)9;
          const float v116 = load(b0, v115);
          mma_bf16(a51, load_chip_fragment(b1, v84), v92, v100, v108, v116);
        }
        const int v117 = mod_(thread, 32);
        const int v118 = div_(v117, 4);
        const int v119 = v49 + v118;
        const int v120 = v41 - 1;
        const int v121 = min_(v119, v120);
        const int v122 = i38 + 1;
        const long long v123 = (long long)v122;
        const int v124 = load_constant(b7, v123);
        const int v125 = v124 + v121;
        UNROLL("unroll 16")
        for (int i126 = 0; i126 < 1; ++i126) {
          const int v127 = div_(0, 16);
          const int v128 = v127 * 512;
          const int v129 = v128 + 256;
          const int v130 = i126 * 16;
          const int v131 = div_(v130, 16);
          const int v132 = v131 * 256;
          const int v133 = v129 + v132;
          const int v134 = mod_(0, 8);
          const int v135 = v134 * 32;
          const int v136 = v133 + v135;
          const int v137 = div_(v130, 2);
          const int v138 = mod_(v137, 4);
          const int v139 = v138 * 8;
          const int v140 = v136 + v139;
          const int v141 = div_(v130, 8);
          const int v142 = mod_(v141, 2);
          const int v143 = v142 * 4;
          const int v144 = v140 + v143;
          const int v145 = div_(0, 8);
          const int v146 = mod_(v145, 2);
          const int v147 = v146 * 2;
          const int v148 = v144 + v147;
          const int v149 = mod_(v130, 2);
          const int v150 = v148 + v149;
          const long long v151 = (long long)v125;
          const int v152 = load_constant(b9, v151);
          const long long v153 = (long long)v152;
          const long long v154 = v153 * 16ll;
          const int v155 = mod_(thread, 4);
          const int v156 = v155 * 2;
          const long long v157 = v154 + (long long)v130 + (long long)v156;
          const float v158 = load(b0, v157);
          const long long v159 = (long long)v125;
          const int v160 = load_constant(b9, v159);
          const long long v161 = (long long)v160;
          const long long v162 = v161 * 16ll;
          const int v163 = mod_(thread, 4);
          const int v164 = v163 * 2;
          const long long v165 = v162 + (long long)v130 + (long long)v164 + (long long)1;
          const float v166 = load(b0, v165);
          const long long v167 = (long long)v125;
          const int v168 = load_constant(b9, v167);
          const long long v169 = (long long)v168;
          const long long v170 = v169 * 16ll;
          const int v171 = mod_(thread, 4);
          const int v172 = v171 * 2;
          const long long v173 = v170 + (long long)v130 + (long long)v172 + (long long)8;
          const float v174 = load(b0, v173);
          const long long v175 = (long long)v125;
          const int v176 = load_constant(b9, v175);
          const long long v177 = (long long)v176;
          const long long v178 = v177 * 16ll;
          const int v179 = mod_(thread, 4);
          const int v180 = v179 * 2;
          const long long v181 = v178 + (long long)v130 + (long long)v180 + (long long)9;
          const float v182 = load(b0, v181);
          mma_bf16(a51, load_chip_fragment(b1, v150), v158, v166, v174, v182);
        }
        UNROLL("unroll")
        for (int i183 = 0; i183 < 4; ++i183) {
          const int v184 = mod_(thread, 32);
          const int v185 = div_(v184, 4);
          const int v186 = div_(i183, 2);
          const int v187 = v186 * 8;
          const int v188 = v185 + v187;
          const int v189 = 0 + v188;
          const int v190 = mod_(thread, 4);
          const int v191 = v190 * 2;
          const int v192 = mod_(i183, 2);
          const int v193 = v191 + v192;
          const int v194 = v49 + v193;
          const bool v195 = v194 < v41;
          const bool v196 = v189 < 16;
          const bool v197 = v195 && v196;
          if (v197) {
            const int v198 = i38 + 1;
            const long long v199 = (long long)v198;
            const int v200 = load_constant(b7, v199);
            const int v201 = v200 + v194;
            float a202;
            const float v203 = a51[i183];
            a202 = v203;
            const long long v204 = (long long)v201;
            const long long v205 = v204 * 16ll;
            const long long v206 = v205 + (long long)v189;
            const float v207 = a202;
            const float v208 = load_constant(b10, v189);
            const float v209 = v207 + v208;
            const float v210 = relu_(v209);
            store(b0, v206, v210);
          }
        }
      }
    }
    sync_block();
  }
}
