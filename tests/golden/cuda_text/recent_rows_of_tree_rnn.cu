#define BLOCKS 2
#define THREADS 32
#define SPIN_LIMIT 0
#define PART_WORDS 22

// ---- the program ----
struct Launch {
  const u64* call;
  u64* words;
  volatile int* fault;
  int before, after, with_launch;
  Wide in[253];
};
KERNEL(cortex_kernel, THREADS) {
  const int thread = thread_number(), group = block_number() / BLOCKS, worker = block_number() % BLOCKS;
  SHARED(chip);
  bring_part(chip + 3072, launch.call, launch.with_launch ? launch.in : 0, group);
  sync_block();
  const u64* const head = (const u64*)(chip + 3072);
  const u64* const table = head + head_words;
  float* const b0 = (float*)load_chip(table, 0);
  float* const b1 = (float*)(chip + 0);
  const float* const b2 = (const float*)load_chip(table, 2);
  const int* const b3 = (const int*)load_chip(table, 3);
  float* const b4 = (float*)(chip + 512);
  const float* const b5 = (const float*)load_chip(table, 5);
  const float* const b6 = (const float*)load_chip(table, 6);
  const int* const b7 = (const int*)load_chip(table, 7);
  const float* const b8 = (const float*)load_chip(table, 8);
  float* const b9 = (float*)load_chip(table, 9);
  const int* const b10 = (const int*)load_chip(table, 10);
  const int* const b11 = (const int*)load_chip(table, 11);
  const int* const b12 = (const int*)load_chip(table, 12);
  const int* const b13 = (const int*)load_chip(table, 13);
  float* const b14 = (float*)(chip + 1792);
  float* const b15 = (float*)(load_chip(table, 15) + worker * load_chip(table, 16));
  const int bytes = launch.with_launch ? (int)load_row(head, 1) : (int)load_row(head, 3);
  const bool brought = launch.with_launch || (bytes && bytes <= 8016);
  if (brought) bring_arrays(chip + 3248, launch.call, launch.with_launch ? launch.in : 0, head, bytes);
  sync_block();
  const char* const structure = brought ? chip + 3248 : (const char*)b3;
  const int* const sb3 = (const int*)(structure + ((const char*)b3 - (const char*)b3));
  const int* const sb7 = (const int*)(structure + ((const char*)b7 - (const char*)b3));
  const int* const sb10 = (const int*)(structure + ((const char*)b10 - (const char*)b3));
  const int* const sb11 = (const int*)(structure + ((const char*)b11 - (const char*)b3));
  const int* const sb12 = (const int*)(structure + ((const char*)b12 - (const char*)b3));
  const int* const sb13 = (const int*)(structure + ((const char*)b13 - (const char*)b3));
  if (launch.before) {
    move_rows(rows_before(head, end_of(launch.call, head, launch.with_launch)), worker);
    sync_cluster();
  }
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
    const int v139 = div_(thread, 4);
    const int v140 = v138 - v139;
    const int v141 = v140 + 7;
    const int v142 = div_(v141, 8);
    for (int i143 = 0; i143 < v142; ++i143) {
      const int v144 = mod_(thread, 4);
      const int v145 = i135 + 1;
      const long long v146 = (long long)v145;
      const int v147 = load_row(sb11, v146);
      const int v148 = i143 * 8;
      const int v149 = v148 + v139;
      const int v150 = v147 + v149;
      float a151;
      float a152;
      float a153;
      float a154;
      a151 = 0.0f;
      a152 = 0.0f;
      a153 = 0.0f;
      a154 = 0.0f;
      const int v155 = v150 + 1;
      const long long v156 = (long long)v155;
      const int v157 = load_row(sb12, v156);
      const long long v158 = (long long)v150;
      const int v159 = load_row(sb12, v158);
      const int v160 = v157 - v159;
      for (int i161 = 0; i161 < v160; ++i161) {
        const float v162 = a151;
        const long long v163 = (long long)v150;
        const int v164 = load_row(sb12, v163);
        const int v165 = v164 + i161;
        const long long v166 = (long long)v165;
        const int v167 = load_row(sb13, v166);
        const int v168 = mod_(v167, 8);
        const int v169 = v168 * 40;
        const long long v171 = (long long)v150;
        const int v172 = load_row(sb12, v171);
        const int v173 = v172 + i161;
        const long long v174 = (long long)v173;
        const int v175 = load_row(sb13, v174);
        const int v176 = i135 + 1;
        const long long v177 = (long long)v176;
        const int v178 = load_row(sb11, v177);
        const int v179 = v178 + 8;
        const bool v180 = v175 < v179;
        const long long v181 = (long long)v150;
        const int v182 = load_row(sb12, v181);
        const int v183 = v182 + i161;
        const long long v184 = (long long)v183;
        const int v185 = load_row(sb13, v184);
        const long long v186 = (long long)v185;
        const long long v187 = v186 * 16ll;
        const float* const r170 = v180 ? b4 + v169 : b0 + v187;
        const int v188 = v144 * 4;
        const auto q189 = load_row_quad(r170, v188);
        const float v190 = q189.x;
        const float v191 = v162 + v190;
        a151 = v191;
        const float v192 = a152;
        const float v193 = q189.y;
        const float v194 = v192 + v193;
        a152 = v194;
        const float v195 = a153;
        const float v196 = q189.z;
        const float v197 = v195 + v196;
        a153 = v197;
        const float v198 = a154;
        const float v199 = q189.w;
        const float v200 = v198 + v199;
        a154 = v200;
      }
      const float v201 = a151;
      const float v202 = a152;
      const float v203 = a153;
      const float v204 = a154;
      const bool v205 = v149 < 8;
      if (v205) {
        const int v206 = mod_(v149, 8);
        const int v207 = v206 * 40;
        const int v208 = v144 * 4;
        const int v209 = v207 + v208;
        store_chip_quad(b14, v209, v201, v202, v203, v204);
      }
      else {
        const long long v210 = (long long)v149;
        const long long v211 = v210 * 16ll;
        const int v212 = v144 * 4;
        const long long v213 = v211 + (long long)v212;
        store_quad(b15, v213, v201, v202, v203, v204);
      }
    }
    sync_block();
    const int v214 = i135 + 1;
    const long long v215 = (long long)v214;
    const int v216 = load_row(sb10, v215);
    const int v217 = div_(thread, 8);
    const int v218 = v216 - v217;
    const int v219 = v218 + 3;
    const int v220 = div_(v219, 4);
    for (int i221 = 0; i221 < v220; ++i221) {
      const int v222 = worker * 8;
      const int v223 = mod_(thread, 8);
      const int v224 = v222 + v223;
      const int v225 = i135 + 1;
      const long long v226 = (long long)v225;
      const int v227 = load_row(sb11, v226);
      const int v228 = i221 * 4;
      const int v229 = v228 + v217;
      const int v230 = v227 + v229;
      float a231;
      a231 = 0.0f;
      const int v233 = mod_(v229, 8);
      const int v234 = v233 * 40;
      const bool v236 = v229 < 8;
      const long long v237 = (long long)v229;
      const long long v238 = v237 * 16ll;
      const float* const r235 = v236 ? b14 + v234 : b15 + v238;
      UNROLL("unroll 16")
      for (int i232 = 0; i232 < 16; ++i232) {
        const int v239 = i232 * 8;
        const int v240 = worker * 8;
        const int v241 = v224 - v240;
        const int v242 = v239 + v241;
        const float v243 = load_chip(b1, v242);
        const float v244 = load_row(r235, i232);
        const float v245 = a231;
        const float v246 = fma_(v243, v244, v245);
        a231 = v246;
      }
      const float v247 = a231;
      const long long v248 = (long long)v230;
      const long long v249 = v248 * 16ll;
      const long long v250 = v249 + (long long)v224;
      const float v251 = load(b9, v250);
      const float v252 = v251 + v247;
      const float v253 = load_constant(b8, v224);
      const float v254 = v252 + v253;
      const bool v255 = 8.5075531f < v254;
      const float v256 = v255 ? 8.5075531f : v254;
      const bool v257 = v256 < (-8.5075531f);
      const float v258 = v257 ? (-8.5075531f) : v256;
      const float v259 = v258 * v258;
      const float v260 = fma_(0.000115082272f, v259, 0.0298113171f);
      const float v261 = fma_(v260, v259, 1.0f);
      const float v262 = v258 * v261;
      const float v263 = fma_(1.24695214e-06f, v259, 0.00109541777f);
      const float v264 = fma_(v263, v259, 0.083333306f);
      const float v265 = fma_(v259, v264, v261);
      const float v266 = v262 * v265;
      const float v267 = v262 * 0.25f;
      const float v268 = v262 * v267;
      const float v269 = fma_(v265, v265, v268);
      const float v270 = ratio_(v266, v269);
      const long long v271 = (long long)v230;
      const long long v272 = v271 * 16ll;
      const long long v273 = v272 + (long long)v224;
      store(b0, v273, v270);
      const int v274 = i135 + 1;
      const long long v275 = (long long)v274;
      const int v276 = load_row(sb11, v275);
      const int v277 = v276 + 8;
      const bool v278 = v230 < v277;
      if (v278) {
        const int v279 = mod_(v230, 8);
        const int v280 = v279 * 40;
        const int v281 = v280 + v224;
        store_mirrored(b4, v281, v270);
      }
    }
    sync_cluster();
  }
  if (launch.after) {
    move_rows(rows_after(head, end_of(launch.call, head, launch.with_launch)), worker);
  }
  sync_cluster();
}
