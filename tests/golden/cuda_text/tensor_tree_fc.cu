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
  void* const* const table = launch.tables + block_number() * 12;
  float* const b0 = (float*)table[0];
  SHARED(chip);
  unsigned short* const b1 = (unsigned short*)(chip + 0);
  const unsigned short* const b2 = (const unsigned short*)table[2];
  const int* const b3 = (const int*)table[3];
  float* const b4 = (float*)(chip + 1024);
  const float* const b5 = (const float*)table[5];
  const int* const b6 = (const int*)table[6];
  const int* const b7 = (const int*)table[7];
  const int* const b8 = (const int*)table[8];
  const int* const b9 = (const int*)table[9];
  const int* const b10 = (const int*)table[10];
  const float* const b11 = (const float*)table[11];
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
    const long long v10 = (long long)0;
    const int v11 = load_constant(b3, v10);
    const long long v12 = (long long)1;
    const int v13 = load_constant(b3, v12);
    const int v14 = v13 + 64;
    const bool v15 = v11 < v14;
    if (v15) {
      const long long v16 = (long long)0;
      const int v17 = load_constant(b3, v16);
      const int v18 = mod_(v17, 64);
      const int v19 = v18 * 40;
      const int v20 = v19 + thread;
      store_chip(b4, v20, 0.0f);
    }
  }
  sync_block();
  const long long v21 = (long long)0;
  const int v22 = load_constant(b3, v21);
  const long long v23 = (long long)1;
  const int v24 = load_constant(b3, v23);
  const int v25 = v22 - v24;
  const int v26 = div_(thread, 16);
  const int v27 = v25 - v26;
  const int v28 = v27 + 1;
  const int v29 = div_(v28, 2);
  for (int i30 = 0; i30 < v29; ++i30) {
    const int v31 = mod_(thread, 16);
    const long long v32 = (long long)1;
    const int v33 = load_constant(b3, v32);
    const int v34 = i30 * 2;
    const int v35 = v34 + v26;
    const int v36 = v33 + v35;
    const long long v37 = (long long)v36;
    const int v38 = load_constant(b6, v37);
    const int v39 = mul_(v38, 16);
    const int v40 = add_(v39, v31);
    const float v41 = load_constant(b5, v40);
    const long long v42 = (long long)v36;
    const long long v43 = v42 * 16ll;
    const long long v44 = v43 + (long long)v31;
    store(b0, v44, v41);
    const long long v45 = (long long)1;
    const int v46 = load_constant(b3, v45);
    const int v47 = v46 + 64;
    const bool v48 = v36 < v47;
    if (v48) {
      const int v49 = mod_(v36, 64);
      const int v50 = v49 * 40;
      const int v51 = v50 + v31;
      store_chip(b4, v51, v41);
    }
  }
  sync_block();
  const long long v52 = (long long)2;
  const int v53 = load_constant(b3, v52);
  const int v54 = v53 - 1;
  const int v55 = max_(v54, 0);
  for (int i56 = 0; i56 < v55; ++i56) {
    const int v57 = i56 + 1;
    const long long v58 = (long long)v57;
    const int v59 = load_constant(b7, v58);
    const int v60 = v59 + 7;
    const int v61 = div_(v60, 8);
    const int v62 = div_(thread, 32);
    const int v63 = v61 - v62;
    for (int i64 = 0; i64 < v63; ++i64) {
      const int v65 = div_(thread, 32);
      const int v66 = i64 + v65;
      const int v67 = v66 * 8;
      const bool v68 = 0 < 16;
      if (v68) {
        sync_warp();
        float a69[4];
        a69[0] = 0.0f;
        a69[1] = 0.0f;
        a69[2] = 0.0f;
        a69[3] = 0.0f;
        const int v70 = mod_(thread, 32);
        const int v71 = div_(v70, 4);
        const int v72 = v67 + v71;
        const int v73 = v59 - 1;
        const int v74 = min_(v72, v73);
        const int v75 = i56 + 1;
        const long long v76 = (long long)v75;
        const int v77 = load_constant(b8, v76);
        const int v78 = v77 + v74;
        const long long v80 = (long long)v78;
        const int v81 = load_constant(b9, v80);
        const int v82 = mod_(v81, 64);
        const int v83 = v82 * 40;
        const long long v85 = (long long)v78;
        const int v86 = load_constant(b9, v85);
        const int v87 = i56 + 1;
        const long long v88 = (long long)v87;
        const int v89 = load_constant(b8, v88);
        const int v90 = v89 + 64;
        const bool v91 = v86 < v90;
        const long long v92 = (long long)v78;
        const int v93 = load_constant(b9, v92);
        const long long v94 = (long long)v93;
        const long long v95 = v94 * 16ll;
        const float* const r84 = v91 ? b4 + v83 : b0 + v95;
        UNROLL("unroll 16")
        for (int i79 = 0; i79 < 1; ++i79) {
          const int v96 = div_(0, 16);
          const int v97 = v96 * 512;
          const int v98 = i79 * 16;
          const int v99 = div_(v98, 16);
          const int v100 = v99 * 256;
          const int v101 = v97 + v100;
          const int v102 = mod_(0, 8);
          const int v103 = v102 * 32;
          const int v104 = v101 + v103;
          const int v105 = div_(v98, 2);
          const int v106 = mod_(v105, 4);
          const int v107 = v106 * 8;
          const int v108 = v104 + v107;
          const int v109 = div_(v98, 8);
          const int v110 = mod_(v109, 2);
          const int v111 = v110 * 4;
          const int v112 = v108 + v111;
          const int v113 = div_(0, 8);
          const int v114 = mod_(v113, 2);
          const int v115 = v114 * 2;
          const int v116 = v112 + v115;
          const int v117 = mod_(v98, 2);
          const int v118 = v116 + v117;
          const int v119 = mod_(thread, 4);
          const int v120 = v119 * 2;
          const int v121 = v98 + v120;
          const Pair v122 = load_row_pair(r84, v121);
          const int v123 = mod_(thread, 4);
          const int v124 = v123 * 2;
          const int v125 = v124 + 8;
          const int v126 = v98 + v125;
          const Pair v127 = load_row_pair(r84, v126);
          mma_bf16(a69, load_chip_fragment(b1, v118), v122.x, v122.y, v127.x, v127.y);
        }
        const int v128 = mod_(thread, 32);
        const int v129 = div_(v128, 4);
        const int v130 = v67 + v129;
        const int v131 = v59 - 1;
        const int v132 = min_(v130, v131);
        const int v133 = i56 + 1;
        const long long v134 = (long long)v133;
        const int v135 = load_constant(b8, v134);
        const int v136 = v135 + v132;
        const long long v138 = (long long)v136;
        const int v139 = load_constant(b10, v138);
        const int v140 = mod_(v139, 64);
        const int v141 = v140 * 40;
        const long long v143 = (long long)v136;
        const int v144 = load_constant(b10, v143);
        const int v145 = i56 + 1;
        const long long v146 = (long long)v145;
        const int v147 = load_constant(b8, v146);
        const int v148 = v147 + 64;
        const bool v149 = v144 < v148;
        const long long v150 = (long long)v136;
        const int v151 = load_constant(b10, v150);
        const long long v152 = (long long)v151;
        const long long v153 = v152 * 16ll;
        const float* const r142 = v149 ? b4 + v141 : b0 + v153;
        UNROLL("unroll 16")
        for (int i137 = 0; i137 < 1; ++i137) {
          const int v154 = div_(0, 16);
          const int v155 = v154 * 512;
          const int v156 = v155 + 256;
          const int v157 = i137 * 16;
          const int v158 = div_(v157, 16);
          const int v159 = v158 * 256;
          const int v160 = v156 + v159;
          const int v161 = mod_(0, 8);
          const int v162 = v161 * 32;
          const int v163 = v160 + v162;
          const int v164 = div_(v157, 2);
          const int v165 = mod_(v164, 4);
          const int v166 = v165 * 8;
          const int v167 = v163 + v166;
          const int v168 = div_(v157, 8);
          const int v169 = mod_(v168, 2);
          const int v170 = v169 * 4;
          const int v171 = v167 + v170;
          const int v172 = div_(0, 8);
          const int v173 = mod_(v172, 2);
          const int v174 = v173 * 2;
          const int v175 = v171 + v174;
          const int v176 = mod_(v157, 2);
          const int v177 = v175 + v176;
          const int v178 = mod_(thread, 4);
          const int v179 = v178 * 2;
          const int v180 = v157 + v179;
          const Pair v181 = load_row_pair(r142, v180);
          const int v182 = mod_(thread, 4);
          const int v183 = v182 * 2;
          const int v184 = v183 + 8;
          const int v185 = v157 + v184;
          const Pair v186 = load_row_pair(r142, v185);
          mma_bf16(a69, load_chip_fragment(b1, v177), v181.x, v181.y, v186.x, v186.y);
        }
        UNROLL("unroll")
        for (int i187 = 0; i187 < 4; ++i187) {
          const int v188 = mod_(thread, 32);
          const int v189 = div_(v188, 4);
          const int v190 = div_(i187, 2);
          const int v191 = v190 * 8;
          const int v192 = v189 + v191;
          const int v193 = 0 + v192;
          const int v194 = mod_(thread, 4);
          const int v195 = v194 * 2;
          const int v196 = mod_(i187, 2);
          const int v197 = v195 + v196;
          const int v198 = v67 + v197;
          const bool v199 = v198 < v59;
          const bool v200 = v193 < 16;
          const bool v201 = v199 && v200;
          if (v201) {
            const int v202 = i56 + 1;
            const long long v203 = (long long)v202;
            const int v204 = load_constant(b8, v203);
            const int v205 = v204 + v198;
            float a206;
            const float v207 = a69[i187];
            a206 = v207;
            const float v208 = a206;
            const float v209 = load_constant(b11, v193);
            const float v210 = v208 + v209;
            const float v211 = relu_(v210);
            const long long v212 = (long long)v205;
            const long long v213 = v212 * 16ll;
            const long long v214 = v213 + (long long)v193;
            store(b0, v214, v211);
            const int v215 = i56 + 1;
            const long long v216 = (long long)v215;
            const int v217 = load_constant(b8, v216);
            const int v218 = v217 + 64;
            const bool v219 = v205 < v218;
            if (v219) {
              const int v220 = mod_(v205, 64);
              const int v221 = v220 * 40;
              const int v222 = v221 + v193;
              store_chip(b4, v222, v211);
            }
          }
        }
      }
    }
    sync_block();
  }
}
