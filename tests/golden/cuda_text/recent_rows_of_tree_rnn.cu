#define BLOCKS 2
#define THREADS 32
#define SPIN_LIMIT 0
#define BUFFERS 16

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
  float* const b1 = (float*)(chip + 0);
  const float* const b2 = (const float*)load(table, 2);
  const int* const b3 = (const int*)load(table, 3);
  float* const b4 = (float*)(chip + 512);
  const float* const b5 = (const float*)load(table, 5);
  const float* const b6 = (const float*)load(table, 6);
  const int* const b7 = (const int*)load(table, 7);
  const float* const b8 = (const float*)load(table, 8);
  float* const b9 = (float*)load(table, 9);
  const int* const b10 = (const int*)load(table, 10);
  const int* const b11 = (const int*)load(table, 11);
  const int* const b12 = (const int*)load(table, 12);
  const int* const b13 = (const int*)load(table, 13);
  float* const b14 = (float*)(chip + 1792);
  float* const b15 = (float*)load(table, 15);
  if (launch.before) {
    move_rows(rows_before(launch.call, group), worker);
    sync_cluster();
  }
  char* const structure = chip + 3072;
  const int structure_bytes = load(b3, 6);
  const bool brought = structure_bytes && structure_bytes <= 8192;
  if (brought) bring_near(structure, b3, structure_bytes);
  sync_block();
  const int* const sb3 = brought ? (const int*)(structure + ((const char*)b3 - (const char*)b3)) : b3;
  const int* const sb7 = brought ? (const int*)(structure + ((const char*)b7 - (const char*)b3)) : b7;
  const int* const sb10 = brought ? (const int*)(structure + ((const char*)b10 - (const char*)b3)) : b10;
  const int* const sb11 = brought ? (const int*)(structure + ((const char*)b11 - (const char*)b3)) : b11;
  const int* const sb12 = brought ? (const int*)(structure + ((const char*)b12 - (const char*)b3)) : b12;
  const int* const sb13 = brought ? (const int*)(structure + ((const char*)b13 - (const char*)b3)) : b13;
  sync_cluster();
  UNROLL("unroll 8")
  for (int i0 = 0; i0 < 4; ++i0) {
    const int v1 = i0 * 32;
    const int v2 = v1 + thread;
    const int v3 = worker * 8;
    const int v4 = mod_(v2, 8);
    const int v5 = v3 + v4;
    const int v6 = div_(v5, 32);
    const int v7 = v6 * 528;
    const int v8 = div_(v2, 8);
    const int v9 = mod_(v8, 16);
    const int v10 = v9 * 32;
    const int v11 = v7 + v10;
    const int v12 = mod_(v5, 32);
    const int v13 = v11 + v12;
    const float v14 = load_constant(b2, v13);
    store_chip(b1, v2, v14);
  }
  const int v15 = worker * 8;
  const int v16 = v15 + thread;
  const int v17 = worker + 1;
  const int v18 = v17 * 8;
  const bool v19 = v16 < v18;
  if (v19) {
    const long long v20 = (long long)0;
    const int v21 = load_row(sb3, v20);
    const long long v22 = (long long)v21;
    const long long v23 = v22 * 16ll;
    const long long v24 = v23 + (long long)v16;
    store(b0, v24, 0.0f);
    const long long v25 = (long long)0;
    const int v26 = load_row(sb3, v25);
    const long long v27 = (long long)1;
    const int v28 = load_row(sb3, v27);
    const int v29 = v28 + 8;
    const bool v30 = v26 < v29;
    if (v30) {
      const long long v31 = (long long)0;
      const int v32 = load_row(sb3, v31);
      const int v33 = mod_(v32, 8);
      const int v34 = v33 * 40;
      const int v35 = v34 + v16;
      store_mirrored(b4, v35, 0.0f);
    }
  }
  sync_block();
  const long long v36 = (long long)0;
  const int v37 = load_row(sb3, v36);
  const long long v38 = (long long)1;
  const int v39 = load_row(sb3, v38);
  const int v40 = v37 - v39;
  const int v41 = div_(thread, 8);
  const int v42 = v40 - v41;
  const int v43 = v42 + 3;
  const int v44 = div_(v43, 4);
  for (int i45 = 0; i45 < v44; ++i45) {
    const int v46 = worker * 8;
    const int v47 = mod_(thread, 8);
    const int v48 = v46 + v47;
    const long long v49 = (long long)1;
    const int v50 = load_row(sb3, v49);
    const int v51 = i45 * 4;
    const int v52 = v51 + v41;
    const int v53 = v50 + v52;
    float a54;
    a54 = 0.0f;
    const long long v56 = (long long)v53;
    const int v57 = load_row(sb7, v56);
    UNROLL("unroll 16")
    for (int i55 = 0; i55 < 5; ++i55) {
      const int v58 = div_(v48, 32);
      const int v59 = v58 * 176;
      const int v60 = i55 * 32;
      const int v61 = v59 + v60;
      const int v62 = mod_(v48, 32);
      const int v63 = v61 + v62;
      const float v64 = load_constant(b5, v63);
      const int v65 = mul_(v57, 16);
      const int v66 = add_(v65, i55);
      const float v67 = load_constant(b6, v66);
      const float v68 = a54;
      const float v69 = fma_(v64, v67, v68);
      a54 = v69;
    }
    const float v70 = a54;
    const float v71 = load_constant(b8, v48);
    const float v72 = v70 + v71;
    const bool v73 = 8.5075531f < v72;
    const float v74 = v73 ? 8.5075531f : v72;
    const bool v75 = v74 < (-8.5075531f);
    const float v76 = v75 ? (-8.5075531f) : v74;
    const float v77 = v76 * v76;
    const float v78 = fma_(0.000115082272f, v77, 0.0298113171f);
    const float v79 = fma_(v78, v77, 1.0f);
    const float v80 = v76 * v79;
    const float v81 = fma_(1.24695214e-06f, v77, 0.00109541777f);
    const float v82 = fma_(v81, v77, 0.083333306f);
    const float v83 = fma_(v77, v82, v79);
    const float v84 = v80 * v83;
    const float v85 = v80 * 0.25f;
    const float v86 = v80 * v85;
    const float v87 = fma_(v83, v83, v86);
    const float v88 = ratio_(v84, v87);
    const long long v89 = (long long)v53;
    const long long v90 = v89 * 16ll;
    const long long v91 = v90 + (long long)v48;
    store(b0, v91, v88);
    const long long v92 = (long long)1;
    const int v93 = load_row(sb3, v92);
    const int v94 = v93 + 8;
    const bool v95 = v53 < v94;
    if (v95) {
      const int v96 = mod_(v53, 8);
      const int v97 = v96 * 40;
      const int v98 = v97 + v48;
      store_mirrored(b4, v98, v88);
    }
  }
  const long long v99 = (long long)1;
  const int v100 = load_row(sb3, v99);
  const int v101 = div_(thread, 8);
  const int v102 = v100 - v101;
  const int v103 = v102 + 3;
  const int v104 = div_(v103, 4);
  for (int i105 = 0; i105 < v104; ++i105) {
    const int v106 = worker * 8;
    const int v107 = mod_(thread, 8);
    const int v108 = v106 + v107;
    const int v109 = i105 * 4;
    const int v110 = v109 + v101;
    float a111;
    a111 = 0.0f;
    const long long v113 = (long long)v110;
    const int v114 = load_row(sb7, v113);
    UNROLL("unroll 16")
    for (int i112 = 0; i112 < 5; ++i112) {
      const int v115 = div_(v108, 32);
      const int v116 = v115 * 176;
      const int v117 = i112 * 32;
      const int v118 = v116 + v117;
      const int v119 = mod_(v108, 32);
      const int v120 = v118 + v119;
      const float v121 = load_constant(b5, v120);
      const int v122 = mul_(v114, 16);
      const int v123 = add_(v122, i112);
      const float v124 = load_constant(b6, v123);
      const float v125 = a111;
      const float v126 = fma_(v121, v124, v125);
      a111 = v126;
    }
    const long long v127 = (long long)v110;
    const long long v128 = v127 * 16ll;
    const long long v129 = v128 + (long long)v108;
    const float v130 = a111;
    store(b9, v129, v130);
  }
  sync_cluster();
  const long long v131 = (long long)2;
  const int v132 = load_row(sb3, v131);
  const int v133 = v132 - 1;
  const int v134 = max_(v133, 0);
  for (int i135 = 0; i135 < v134; ++i135) {
    const int v136 = i135 + 1;
    const long long v137 = (long long)v136;
    const int v138 = load_row(sb10, v137);
    const int v139 = div_(thread, 16);
    const int v140 = v138 - v139;
    const int v141 = v140 + 1;
    const int v142 = div_(v141, 2);
    for (int i143 = 0; i143 < v142; ++i143) {
      const int v144 = mod_(thread, 16);
      const int v145 = i135 + 1;
      const long long v146 = (long long)v145;
      const int v147 = load_row(sb11, v146);
      const int v148 = i143 * 2;
      const int v149 = v148 + v139;
      const int v150 = v147 + v149;
      float a151;
      a151 = 0.0f;
      const int v152 = v150 + 1;
      const long long v153 = (long long)v152;
      const int v154 = load_row(sb12, v153);
      const long long v155 = (long long)v150;
      const int v156 = load_row(sb12, v155);
      const int v157 = v154 - v156;
      for (int i158 = 0; i158 < v157; ++i158) {
        const float v159 = a151;
        const long long v160 = (long long)v150;
        const int v161 = load_row(sb12, v160);
        const int v162 = v161 + i158;
        const long long v163 = (long long)v162;
        const int v164 = load_row(sb13, v163);
        const int v165 = mod_(v164, 8);
        const int v166 = v165 * 40;
        const long long v168 = (long long)v150;
        const int v169 = load_row(sb12, v168);
        const int v170 = v169 + i158;
        const long long v171 = (long long)v170;
        const int v172 = load_row(sb13, v171);
        const int v173 = i135 + 1;
        const long long v174 = (long long)v173;
        const int v175 = load_row(sb11, v174);
        const int v176 = v175 + 8;
        const bool v177 = v172 < v176;
        const long long v178 = (long long)v150;
        const int v179 = load_row(sb12, v178);
        const int v180 = v179 + i158;
        const long long v181 = (long long)v180;
        const int v182 = load_row(sb13, v181);
        const long long v183 = (long long)v182;
        const long long v184 = v183 * 16ll;
        const float* const r167 = v177 ? b4 + v166 : b0 + v184;
        const float v185 = load_row(r167, v144);
        const float v186 = v159 + v185;
        a151 = v186;
      }
      const float v187 = a151;
      const bool v188 = v149 < 8;
      if (v188) {
        const int v189 = mod_(v149, 8);
        const int v190 = v189 * 40;
        const int v191 = v190 + v144;
        store_chip(b14, v191, v187);
      }
      else {
        const long long v192 = (long long)v149;
        const long long v193 = v192 * 16ll;
        const long long v194 = v193 + (long long)v144;
        store(b15, v194, v187);
      }
    }
    sync_block();
    const int v195 = i135 + 1;
    const long long v196 = (long long)v195;
    const int v197 = load_row(sb10, v196);
    const int v198 = div_(thread, 8);
    const int v199 = v197 - v198;
    const int v200 = v199 + 3;
    const int v201 = div_(v200, 4);
    for (int i202 = 0; i202 < v201; ++i202) {
      const int v203 = worker * 8;
      const int v204 = mod_(thread, 8);
      const int v205 = v203 + v204;
      const int v206 = i135 + 1;
      const long long v207 = (long long)v206;
      const int v208 = load_row(sb11, v207);
      const int v209 = i202 * 4;
      const int v210 = v209 + v198;
      const int v211 = v208 + v210;
      float a212;
      a212 = 0.0f;
      const int v214 = mod_(v210, 8);
      const int v215 = v214 * 40;
      const bool v217 = v210 < 8;
      const long long v218 = (long long)v210;
      const long long v219 = v218 * 16ll;
      const float* const r216 = v217 ? b14 + v215 : b15 + v219;
      UNROLL("unroll 16")
      for (int i213 = 0; i213 < 16; ++i213) {
        const int v220 = i213 * 8;
        const int v221 = worker * 8;
        const int v222 = v205 - v221;
        const int v223 = v220 + v222;
        const float v224 = load_chip(b1, v223);
        const float v225 = load_row(r216, i213);
        const float v226 = a212;
        const float v227 = fma_(v224, v225, v226);
        a212 = v227;
      }
      const float v228 = a212;
      const long long v229 = (long long)v211;
      const long long v230 = v229 * 16ll;
      const long long v231 = v230 + (long long)v205;
      const float v232 = load(b9, v231);
      const float v233 = v232 + v228;
      const float v234 = load_constant(b8, v205);
      const float v235 = v233 + v234;
      const bool v236 = 8.5075531f < v235;
      const float v237 = v236 ? 8.5075531f : v235;
      const bool v238 = v237 < (-8.5075531f);
      const float v239 = v238 ? (-8.5075531f) : v237;
      const float v240 = v239 * v239;
      const float v241 = fma_(0.000115082272f, v240, 0.0298113171f);
      const float v242 = fma_(v241, v240, 1.0f);
      const float v243 = v239 * v242;
      const float v244 = fma_(1.24695214e-06f, v240, 0.00109541777f);
      const float v245 = fma_(v244, v240, 0.083333306f);
      const float v246 = fma_(v240, v245, v242);
      const float v247 = v243 * v246;
      const float v248 = v243 * 0.25f;
      const float v249 = v243 * v248;
      const float v250 = fma_(v246, v246, v249);
      const float v251 = ratio_(v247, v250);
      const long long v252 = (long long)v211;
      const long long v253 = v252 * 16ll;
      const long long v254 = v253 + (long long)v205;
      store(b0, v254, v251);
      const int v255 = i135 + 1;
      const long long v256 = (long long)v255;
      const int v257 = load_row(sb11, v256);
      const int v258 = v257 + 8;
      const bool v259 = v211 < v258;
      if (v259) {
        const int v260 = mod_(v211, 8);
        const int v261 = v260 * 40;
        const int v262 = v261 + v205;
        store_mirrored(b4, v262, v251);
      }
    }
    sync_cluster();
  }
  if (launch.after) {
    move_rows(rows_after(launch.call, group), worker);
  }
  sync_cluster();
}
