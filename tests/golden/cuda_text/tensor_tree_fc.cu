#define BLOCKS 1
#define THREADS 32
#define SPIN_LIMIT 0
#define BUFFERS 12

// ---- the program ----
struct Launch {
  const u64* call;
  u64* words;
  volatile int* fault;
  int before, after;
};
KERNEL(cortex_kernel, THREADS) {
  const int thread = thread_number(), group = block_number() / BLOCKS, worker = block_number() % BLOCKS;
  const u64* const table = launch.call + table_of(group, worker);
  float* const b0 = (float*)load(table, 0);
  SHARED(chip);
  unsigned short* const b1 = (unsigned short*)(chip + 0);
  const unsigned short* const b2 = (const unsigned short*)load(table, 2);
  const int* const b3 = (const int*)load(table, 3);
  float* const b4 = (float*)(chip + 1024);
  const float* const b5 = (const float*)load(table, 5);
  const int* const b6 = (const int*)load(table, 6);
  const int* const b7 = (const int*)load(table, 7);
  const int* const b8 = (const int*)load(table, 8);
  const int* const b9 = (const int*)load(table, 9);
  const int* const b10 = (const int*)load(table, 10);
  const float* const b11 = (const float*)load(table, 11);
  if (launch.before) {
    move_rows(rows_before(launch.call, group), worker);
    sync_block();
  }
  char* const structure = chip + 11264;
  const int structure_bytes = load(b3, 6);
  const bool brought = structure_bytes && structure_bytes <= 8192;
  if (brought) bring_near(structure, b3, structure_bytes);
  sync_block();
  const int* const sb3 = brought ? (const int*)(structure + ((const char*)b3 - (const char*)b3)) : b3;
  const int* const sb6 = brought ? (const int*)(structure + ((const char*)b6 - (const char*)b3)) : b6;
  const int* const sb7 = brought ? (const int*)(structure + ((const char*)b7 - (const char*)b3)) : b7;
  const int* const sb8 = brought ? (const int*)(structure + ((const char*)b8 - (const char*)b3)) : b8;
  const int* const sb9 = brought ? (const int*)(structure + ((const char*)b9 - (const char*)b3)) : b9;
  const int* const sb10 = brought ? (const int*)(structure + ((const char*)b10 - (const char*)b3)) : b10;
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
    const int v6 = load_row(sb3, v5);
    const long long v7 = (long long)v6;
    const long long v8 = v7 * 16ll;
    const long long v9 = v8 + (long long)thread;
    store(b0, v9, 0.0f);
    const long long v10 = (long long)0;
    const int v11 = load_row(sb3, v10);
    const long long v12 = (long long)1;
    const int v13 = load_row(sb3, v12);
    const int v14 = v13 + 64;
    const bool v15 = v11 < v14;
    if (v15) {
      const long long v16 = (long long)0;
      const int v17 = load_row(sb3, v16);
      const int v18 = mod_(v17, 64);
      const int v19 = v18 * 40;
      const int v20 = v19 + thread;
      store_chip(b4, v20, 0.0f);
    }
  }
  sync_block();
  const long long v21 = (long long)0;
  const int v22 = load_row(sb3, v21);
  const long long v23 = (long long)1;
  const int v24 = load_row(sb3, v23);
  const int v25 = v22 - v24;
  const int v26 = div_(thread, 16);
  const int v27 = v25 - v26;
  const int v28 = v27 + 1;
  const int v29 = div_(v28, 2);
  for (int i30 = 0; i30 < v29; ++i30) {
    const int v31 = mod_(thread, 16);
    const long long v32 = (long long)1;
    const int v33 = load_row(sb3, v32);
    const int v34 = i30 * 2;
    const int v35 = v34 + v26;
    const int v36 = v33 + v35;
    const long long v37 = (long long)v36;
    const int v38 = load_row(sb6, v37);
    const int v39 = mul_(v38, 16);
    const int v40 = add_(v39, v31);
    const float v41 = load_constant(b5, v40);
    const long long v42 = (long long)v36;
    const long long v43 = v42 * 16ll;
    const long long v44 = v43 + (long long)v31;
    store(b0, v44, v41);
    const long long v45 = (long long)1;
    const int v46 = load_row(sb3, v45);
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
  const int v53 = load_row(sb3, v52);
  const int v54 = v53 - 1;
  const int v55 = max_(v54, 0);
  for (int i56 = 0; i56 < v55; ++i56) {
    const int v57 = i56 + 1;
    const long long v58 = (long long)v57;
    const int v59 = load_row(sb7, v58);
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
        const int v77 = load_row(sb8, v76);
        const int v78 = v77 + v74;
        const long long v80 = (long long)v78;
        const int v81 = load_row(sb9, v80);
        const int v82 = mod_(v81, 64);
        const int v83 = v82 * 40;
        const long long v85 = (long long)v78;
        const int v86 = load_row(sb9, v85);
        const int v87 = i56 + 1;
        const long long v88 = (long long)v87;
        const int v89 = load_row(sb8, v88);
        const int v90 = v89 + 64;
        const bool v91 = v86 < v90;
        const long long v92 = (long long)v78;
        const int v93 = load_row(sb9, v92);
        const long long v94 = (long long)v93;
        const long long v95 = v94 * 16ll;
        const float* const r84 = v91 ? b4 + v83 : b0 + v95;
        const long long v96 = (long long)v78;
        const int v97 = load_row(sb9, v96);
        const int v98 = i56 + 1;
        const long long v99 = (long long)v98;
        const int v100 = load_row(sb8, v99);
        const long long v101 = (long long)v78;
        const int v102 = load_row(sb9, v101);
        const long long v103 = (long long)v78;
        const int v104 = load_row(sb9, v103);
        const long long v105 = (long long)v78;
        const int v106 = load_row(sb9, v105);
        const int v107 = i56 + 1;
        const long long v108 = (long long)v107;
        const int v109 = load_row(sb8, v108);
        const long long v110 = (long long)v78;
        const int v111 = load_row(sb9, v110);
        const long long v112 = (long long)v78;
        const int v113 = load_row(sb9, v112);
        const long long v114 = (long long)v78;
        const int v115 = load_row(sb9, v114);
        const int v116 = i56 + 1;
        const long long v117 = (long long)v116;
        const int v118 = load_row(sb8, v117);
        const long long v119 = (long long)v78;
        const int v120 = load_row(sb9, v119);
        const long long v121 = (long long)v78;
        const int v122 = load_row(sb9, v121);
        UNROLL("unroll 16")
        for (int i79 = 0; i79 < 1; ++i79) {
          const int v123 = div_(0, 16);
          const int v124 = v123 * 512;
          const int v125 = i79 * 256;
          const int v126 = v124 + v125;
          const int v127 = mod_(0, 8);
          const int v128 = v127 * 32;
          const int v129 = v126 + v128;
          const int v130 = div_(0, 8);
          const int v131 = mod_(v130, 2);
          const int v132 = v131 * 2;
          const int v133 = v129 + v132;
          const int v134 = i79 * 16;
          const int v135 = mod_(thread, 4);
          const int v136 = v135 * 2;
          const int v137 = v134 + v136;
          const Pair v138 = load_row_pair(r84, v137);
          const int v139 = mod_(thread, 4);
          const int v140 = v139 * 2;
          const int v141 = v140 + 8;
          const int v142 = v134 + v141;
          const Pair v143 = load_row_pair(r84, v142);
          mma_bf16(a69, load_chip_fragment(b1, v133), v138.x, v138.y, v143.x, v143.y);
        }
        const int v144 = mod_(thread, 32);
        const int v145 = div_(v144, 4);
        const int v146 = v67 + v145;
        const int v147 = v59 - 1;
        const int v148 = min_(v146, v147);
        const int v149 = i56 + 1;
        const long long v150 = (long long)v149;
        const int v151 = load_row(sb8, v150);
        const int v152 = v151 + v148;
        const long long v154 = (long long)v152;
        const int v155 = load_row(sb10, v154);
        const int v156 = mod_(v155, 64);
        const int v157 = v156 * 40;
        const long long v159 = (long long)v152;
        const int v160 = load_row(sb10, v159);
        const int v161 = i56 + 1;
        const long long v162 = (long long)v161;
        const int v163 = load_row(sb8, v162);
        const int v164 = v163 + 64;
        const bool v165 = v160 < v164;
        const long long v166 = (long long)v152;
        const int v167 = load_row(sb10, v166);
        const long long v168 = (long long)v167;
        const long long v169 = v168 * 16ll;
        const float* const r158 = v165 ? b4 + v157 : b0 + v169;
        const long long v170 = (long long)v152;
        const int v171 = load_row(sb10, v170);
        const int v172 = i56 + 1;
        const long long v173 = (long long)v172;
        const int v174 = load_row(sb8, v173);
        const long long v175 = (long long)v152;
        const int v176 = load_row(sb10, v175);
        const long long v177 = (long long)v152;
        const int v178 = load_row(sb10, v177);
        const long long v179 = (long long)v152;
        const int v180 = load_row(sb10, v179);
        const int v181 = i56 + 1;
        const long long v182 = (long long)v181;
        const int v183 = load_row(sb8, v182);
        const long long v184 = (long long)v152;
        const int v185 = load_row(sb10, v184);
        const long long v186 = (long long)v152;
        const int v187 = load_row(sb10, v186);
        const long long v188 = (long long)v152;
        const int v189 = load_row(sb10, v188);
        const int v190 = i56 + 1;
        const long long v191 = (long long)v190;
        const int v192 = load_row(sb8, v191);
        const long long v193 = (long long)v152;
        const int v194 = load_row(sb10, v193);
        const long long v195 = (long long)v152;
        const int v196 = load_row(sb10, v195);
        UNROLL("unroll 16")
        for (int i153 = 0; i153 < 1; ++i153) {
          const int v197 = div_(0, 16);
          const int v198 = v197 * 512;
          const int v199 = v198 + 256;
          const int v200 = i153 * 256;
          const int v201 = v199 + v200;
          const int v202 = mod_(0, 8);
          const int v203 = v202 * 32;
          const int v204 = v201 + v203;
          const int v205 = div_(0, 8);
          const int v206 = mod_(v205, 2);
          const int v207 = v206 * 2;
          const int v208 = v204 + v207;
          const int v209 = i153 * 16;
          const int v210 = mod_(thread, 4);
          const int v211 = v210 * 2;
          const int v212 = v209 + v211;
          const Pair v213 = load_row_pair(r158, v212);
          const int v214 = mod_(thread, 4);
          const int v215 = v214 * 2;
          const int v216 = v215 + 8;
          const int v217 = v209 + v216;
          const Pair v218 = load_row_pair(r158, v217);
          mma_bf16(a69, load_chip_fragment(b1, v208), v213.x, v213.y, v218.x, v218.y);
        }
        UNROLL("unroll")
        for (int i219 = 0; i219 < 4; ++i219) {
          const int v220 = mod_(thread, 32);
          const int v221 = div_(v220, 4);
          const int v222 = div_(i219, 2);
          const int v223 = v222 * 8;
          const int v224 = v221 + v223;
          const int v225 = 0 + v224;
          const int v226 = mod_(thread, 4);
          const int v227 = v226 * 2;
          const int v228 = mod_(i219, 2);
          const int v229 = v227 + v228;
          const int v230 = v67 + v229;
          const bool v231 = v230 < v59;
          const bool v232 = v225 < 16;
          const bool v233 = v231 && v232;
          if (v233) {
            const int v234 = i56 + 1;
            const long long v235 = (long long)v234;
            const int v236 = load_row(sb8, v235);
            const int v237 = v236 + v230;
            float a238;
            const float v239 = a69[i219];
            a238 = v239;
            const float v240 = a238;
            const float v241 = load_constant(b11, v225);
            const float v242 = v240 + v241;
            const float v243 = relu_(v242);
            const long long v244 = (long long)v237;
            const long long v245 = v244 * 16ll;
            const long long v246 = v245 + (long long)v225;
            store(b0, v246, v243);
            const int v247 = i56 + 1;
            const long long v248 = (long long)v247;
            const int v249 = load_row(sb8, v248);
            const int v250 = v249 + 64;
            const bool v251 = v237 < v250;
            if (v251) {
              const int v252 = mod_(v237, 64);
              const int v253 = v252 * 40;
              const int v254 = v253 + v225;
              store_chip(b4, v254, v243);
            }
          }
        }
      }
    }
    sync_block();
  }
  if (launch.after) {
    move_rows(rows_after(launch.call, group), worker);
  }
}
