#define BLOCKS 2
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
  void* const* const table = launch.tables + block_number() * 29;
  float* const b0 = (float*)table[0];
  SHARED(chip);
  float* const b1 = (float*)(chip + 0);
  const float* const b2 = (const float*)table[2];
  float* const b3 = (float*)(chip + 512);
  const float* const b4 = (const float*)table[4];
  float* const b5 = (float*)(chip + 1024);
  const float* const b6 = (const float*)table[6];
  const int* const b7 = (const int*)table[7];
  float* const b8 = (float*)(chip + 1536);
  const float* const b9 = (const float*)table[9];
  const float* const b10 = (const float*)table[10];
  const int* const b11 = (const int*)table[11];
  const float* const b12 = (const float*)table[12];
  const float* const b13 = (const float*)table[13];
  const float* const b14 = (const float*)table[14];
  const float* const b15 = (const float*)table[15];
  float* const b16 = (float*)table[16];
  float* const b17 = (float*)table[17];
  float* const b18 = (float*)table[18];
  const int* const b19 = (const int*)table[19];
  const int* const b20 = (const int*)table[20];
  const int* const b21 = (const int*)table[21];
  const int* const b22 = (const int*)table[22];
  float* const b23 = (float*)(chip + 2816);
  float* const b24 = (float*)table[24];
  const float* const b25 = (const float*)table[25];
  float* const b26 = (float*)table[26];
  float* const b27 = (float*)(chip + 4096);
  float* const b28 = (float*)table[28];
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
  UNROLL("unroll 8")
  for (int i15 = 0; i15 < 4; ++i15) {
    const int v16 = i15 * 32;
    const int v17 = v16 + thread;
    const int v18 = worker * 8;
    const int v19 = mod_(v17, 8);
    const int v20 = v18 + v19;
    const int v21 = div_(v20, 32);
    const int v22 = v21 * 528;
    const int v23 = div_(v17, 8);
    const int v24 = mod_(v23, 16);
    const int v25 = v24 * 32;
    const int v26 = v22 + v25;
    const int v27 = mod_(v20, 32);
    const int v28 = v26 + v27;
    const float v29 = load_constant(b4, v28);
    store_chip(b3, v17, v29);
  }
  UNROLL("unroll 8")
  for (int i30 = 0; i30 < 4; ++i30) {
    const int v31 = i30 * 32;
    const int v32 = v31 + thread;
    const int v33 = worker * 8;
    const int v34 = mod_(v32, 8);
    const int v35 = v33 + v34;
    const int v36 = div_(v35, 32);
    const int v37 = v36 * 528;
    const int v38 = div_(v32, 8);
    const int v39 = mod_(v38, 16);
    const int v40 = v39 * 32;
    const int v41 = v37 + v40;
    const int v42 = mod_(v35, 32);
    const int v43 = v41 + v42;
    const float v44 = load_constant(b6, v43);
    store_chip(b5, v32, v44);
  }
  const int v45 = worker * 8;
  const int v46 = v45 + thread;
  const int v47 = worker + 1;
  const int v48 = v47 * 8;
  const bool v49 = v46 < v48;
  if (v49) {
    const long long v50 = (long long)0;
    const int v51 = load_constant(b7, v50);
    const long long v52 = (long long)v51;
    const long long v53 = v52 * 16ll;
    const long long v54 = v53 + (long long)v46;
    store(b0, v54, 0.0f);
    const long long v55 = (long long)0;
    const int v56 = load_constant(b7, v55);
    const long long v57 = (long long)1;
    const int v58 = load_constant(b7, v57);
    const int v59 = v58 + 8;
    const bool v60 = v56 < v59;
    if (v60) {
      const long long v61 = (long long)0;
      const int v62 = load_constant(b7, v61);
      const int v63 = mod_(v62, 8);
      const int v64 = v63 * 40;
      const int v65 = v64 + v46;
      store_mirrored(b8, v65, 0.0f);
    }
  }
  sync_block();
  const long long v66 = (long long)0;
  const int v67 = load_constant(b7, v66);
  const long long v68 = (long long)1;
  const int v69 = load_constant(b7, v68);
  const int v70 = v67 - v69;
  const int v71 = v70 + 15;
  const int v72 = div_(v71, 16);
  for (int i73 = 0; i73 < v72; ++i73) {
    const int v74 = i73 * 16;
    const int v75 = div_(thread, 8);
    const int v76 = v74 + v75;
    const int v77 = i73 * 16;
    const int v78 = v70 - v77;
    const int v79 = v78 + 3;
    const int v80 = div_(v79, 4);
    const bool v81 = v80 > 2;
    if (v81) {
      const int v82 = worker * 8;
      const int v83 = mod_(thread, 8);
      const int v84 = v82 + v83;
      const int v85 = v70 - 1;
      const int v86 = min_(v76, v85);
      const int v87 = v76 + 4;
      const int v88 = min_(v87, v85);
      const int v89 = v76 + 8;
      const int v90 = min_(v89, v85);
      const int v91 = v76 + 12;
      const int v92 = min_(v91, v85);
      const long long v93 = (long long)1;
      const int v94 = load_constant(b7, v93);
      const int v95 = v94 + v86;
      const long long v96 = (long long)1;
      const int v97 = load_constant(b7, v96);
      const int v98 = v97 + v88;
      const long long v99 = (long long)1;
      const int v100 = load_constant(b7, v99);
      const int v101 = v100 + v90;
      const long long v102 = (long long)1;
      const int v103 = load_constant(b7, v102);
      const int v104 = v103 + v92;
      float a105;
      float a106;
      float a107;
      float a108;
      float a109;
      float a110;
      float a111;
      float a112;
      a105 = 0.0f;
      a106 = 0.0f;
      a107 = 0.0f;
      a108 = 0.0f;
      a109 = 0.0f;
      a110 = 0.0f;
      a111 = 0.0f;
      a112 = 0.0f;
      UNROLL("unroll 16")
      for (int i113 = 0; i113 < 5; ++i113) {
        const int v114 = div_(v84, 32);
        const int v115 = v114 * 176;
        const int v116 = i113 * 32;
        const int v117 = v115 + v116;
        const int v118 = mod_(v84, 32);
        const int v119 = v117 + v118;
        const float v120 = load_constant(b9, v119);
        const long long v121 = (long long)v95;
        const int v122 = load_constant(b11, v121);
        const int v123 = mul_(v122, 16);
        const int v124 = add_(v123, i113);
        const float v125 = load_constant(b10, v124);
        const int v126 = div_(v84, 32);
        const int v127 = v126 * 176;
        const int v128 = i113 * 32;
        const int v129 = v127 + v128;
        const int v130 = mod_(v84, 32);
        const int v131 = v129 + v130;
        const float v132 = load_constant(b12, v131);
        const long long v133 = (long long)v98;
        const int v134 = load_constant(b11, v133);
        const int v135 = mul_(v134, 16);
        const int v136 = add_(v135, i113);
        const float v137 = load_constant(b10, v136);
        const long long v138 = (long long)v101;
        const int v139 = load_constant(b11, v138);
        const int v140 = mul_(v139, 16);
        const int v141 = add_(v140, i113);
        const float v142 = load_constant(b10, v141);
        const long long v143 = (long long)v104;
        const int v144 = load_constant(b11, v143);
        const int v145 = mul_(v144, 16);
        const int v146 = add_(v145, i113);
        const float v147 = load_constant(b10, v146);
        const float v148 = a105;
        const float v149 = fma_(v120, v125, v148);
        a105 = v149;
        const float v150 = a109;
        const float v151 = fma_(v132, v125, v150);
        a109 = v151;
        const float v152 = a106;
        const float v153 = fma_(v120, v137, v152);
        a106 = v153;
        const float v154 = a110;
        const float v155 = fma_(v132, v137, v154);
        a110 = v155;
        const float v156 = a107;
        const float v157 = fma_(v120, v142, v156);
        a107 = v157;
        const float v158 = a111;
        const float v159 = fma_(v132, v142, v158);
        a111 = v159;
        const float v160 = a108;
        const float v161 = fma_(v120, v147, v160);
        a108 = v161;
        const float v162 = a112;
        const float v163 = fma_(v132, v147, v162);
        a112 = v163;
      }
      const float v164 = a105;
      const float v165 = a106;
      const float v166 = a107;
      const float v167 = a108;
      const float v168 = a109;
      const float v169 = a110;
      const float v170 = a111;
      const float v171 = a112;
      const float v172 = load_constant(b13, v84);
      const float v173 = v164 + v172;
      const bool v174 = 32.0f < v173;
      const float v175 = v174 ? 32.0f : v173;
      const float v176 = fma_(v175, (-1.44269502f), (-0.5f));
      const float v177 = round_(v176);
      const bool v178 = v177 < 127.0f;
      const float v179 = v178 ? v177 : 127.0f;
      const float v180 = fma_(v179, 0.693145752f, v175);
      const float v181 = fma_(v179, 1.42860677e-06f, v180);
      const float v182 = fma_((-0.0116260564f), v181, 0.0391404852f);
      const float v183 = fma_(v182, v181, (-0.167507514f));
      const float v184 = fma_(v183, v181, 0.499881953f);
      const float v185 = fma_(v184, v181, (-1.00000513f));
      const float v186 = fma_(v185, v181, 1.0f);
      const float v187 = ldexp_(v186, v179);
      const float v188 = 1.0f + v187;
      const float v189 = 1.0f / v188;
      const float v190 = load_constant(b13, v84);
      const float v191 = v165 + v190;
      const bool v192 = 32.0f < v191;
      const float v193 = v192 ? 32.0f : v191;
      const float v194 = fma_(v193, (-1.44269502f), (-0.5f));
      const float v195 = round_(v194);
      const bool v196 = v195 < 127.0f;
      const float v197 = v196 ? v195 : 127.0f;
      const float v198 = fma_(v197, 0.693145752f, v193);
      const float v199 = fma_(v197, 1.42860677e-06f, v198);
      const float v200 = fma_((-0.0116260564f), v199, 0.0391404852f);
      const float v201 = fma_(v200, v199, (-0.167507514f));
      const float v202 = fma_(v201, v199, 0.499881953f);
      const float v203 = fma_(v202, v199, (-1.00000513f));
      const float v204 = fma_(v203, v199, 1.0f);
      const float v205 = ldexp_(v204, v197);
      const float v206 = 1.0f + v205;
      const float v207 = 1.0f / v206;
      const float v208 = load_constant(b13, v84);
      const float v209 = v166 + v208;
      const bool v210 = 32.0f < v209;
      const float v211 = v210 ? 32.0f : v209;
      const float v212 = fma_(v211, (-1.44269502f), (-0.5f));
      const float v213 = round_(v212);
      const bool v214 = v213 < 127.0f;
      const float v215 = v214 ? v213 : 127.0f;
      const float v216 = fma_(v215, 0.693145752f, v211);
      const float v217 = fma_(v215, 1.42860677e-06f, v216);
      const float v218 = fma_((-0.0116260564f), v217, 0.0391404852f);
      const float v219 = fma_(v218, v217, (-0.167507514f));
      const float v220 = fma_(v219, v217, 0.499881953f);
      const float v221 = fma_(v220, v217, (-1.00000513f));
      const float v222 = fma_(v221, v217, 1.0f);
      const float v223 = ldexp_(v222, v215);
      const float v224 = 1.0f + v223;
      const float v225 = 1.0f / v224;
      const float v226 = load_constant(b13, v84);
      const float v227 = v167 + v226;
      const bool v228 = 32.0f < v227;
      const float v229 = v228 ? 32.0f : v227;
      const float v230 = fma_(v229, (-1.44269502f), (-0.5f));
      const float v231 = round_(v230);
      const bool v232 = v231 < 127.0f;
      const float v233 = v232 ? v231 : 127.0f;
      const float v234 = fma_(v233, 0.693145752f, v229);
      const float v235 = fma_(v233, 1.42860677e-06f, v234);
      const float v236 = fma_((-0.0116260564f), v235, 0.0391404852f);
      const float v237 = fma_(v236, v235, (-0.167507514f));
      const float v238 = fma_(v237, v235, 0.499881953f);
      const float v239 = fma_(v238, v235, (-1.00000513f));
      const float v240 = fma_(v239, v235, 1.0f);
      const float v241 = ldexp_(v240, v233);
      const float v242 = 1.0f + v241;
      const float v243 = 1.0f / v242;
      const float v244 = load_constant(b14, v84);
      const float v245 = v168 + v244;
      const bool v246 = 8.5075531f < v245;
      const float v247 = v246 ? 8.5075531f : v245;
      const bool v248 = v247 < (-8.5075531f);
      const float v249 = v248 ? (-8.5075531f) : v247;
      const float v250 = v249 * v249;
      const float v251 = fma_(0.000115082272f, v250, 0.0298113171f);
      const float v252 = fma_(v251, v250, 1.0f);
      const float v253 = v249 * v252;
      const float v254 = fma_(1.24695214e-06f, v250, 0.00109541777f);
      const float v255 = fma_(v254, v250, 0.083333306f);
      const float v256 = fma_(v250, v255, v252);
      const float v257 = v253 * v256;
      const float v258 = v253 * 0.25f;
      const float v259 = v253 * v258;
      const float v260 = fma_(v256, v256, v259);
      const float v261 = v257 / v260;
      const float v262 = load_constant(b14, v84);
      const float v263 = v169 + v262;
      const bool v264 = 8.5075531f < v263;
      const float v265 = v264 ? 8.5075531f : v263;
      const bool v266 = v265 < (-8.5075531f);
      const float v267 = v266 ? (-8.5075531f) : v265;
      const float v268 = v267 * v267;
      const float v269 = fma_(0.000115082272f, v268, 0.0298113171f);
      const float v270 = fma_(v269, v268, 1.0f);
      const float v271 = v267 * v270;
      const float v272 = fma_(1.24695214e-06f, v268, 0.00109541777f);
      const float v273 = fma_(v272, v268, 0.083333306f);
      const float v274 = fma_(v268, v273, v270);
      const float v275 = v271 * v274;
      const float v276 = v271 * 0.25f;
      const float v277 = v271 * v276;
      const float v278 = fma_(v274, v274, v277);
      const float v279 = v275 / v278;
      const float v280 = load_constant(b14, v84);
      const float v281 = v170 + v280;
      const bool v282 = 8.5075531f < v281;
      const float v283 = v282 ? 8.5075531f : v281;
      const bool v284 = v283 < (-8.5075531f);
      const float v285 = v284 ? (-8.5075531f) : v283;
      const float v286 = v285 * v285;
      const float v287 = fma_(0.000115082272f, v286, 0.0298113171f);
      const float v288 = fma_(v287, v286, 1.0f);
      const float v289 = v285 * v288;
      const float v290 = fma_(1.24695214e-06f, v286, 0.00109541777f);
      const float v291 = fma_(v290, v286, 0.083333306f);
      const float v292 = fma_(v286, v291, v288);
      const float v293 = v289 * v292;
      const float v294 = v289 * 0.25f;
      const float v295 = v289 * v294;
      const float v296 = fma_(v292, v292, v295);
      const float v297 = v293 / v296;
      const float v298 = load_constant(b14, v84);
      const float v299 = v171 + v298;
      const bool v300 = 8.5075531f < v299;
      const float v301 = v300 ? 8.5075531f : v299;
      const bool v302 = v301 < (-8.5075531f);
      const float v303 = v302 ? (-8.5075531f) : v301;
      const float v304 = v303 * v303;
      const float v305 = fma_(0.000115082272f, v304, 0.0298113171f);
      const float v306 = fma_(v305, v304, 1.0f);
      const float v307 = v303 * v306;
      const float v308 = fma_(1.24695214e-06f, v304, 0.00109541777f);
      const float v309 = fma_(v308, v304, 0.083333306f);
      const float v310 = fma_(v304, v309, v306);
      const float v311 = v307 * v310;
      const float v312 = v307 * 0.25f;
      const float v313 = v307 * v312;
      const float v314 = fma_(v310, v310, v313);
      const float v315 = v311 / v314;
      const float v316 = 1.0f - v189;
      const float v317 = v316 * v261;
      const float v318 = 1.0f - v207;
      const float v319 = v318 * v279;
      const float v320 = 1.0f - v225;
      const float v321 = v320 * v297;
      const float v322 = 1.0f - v243;
      const float v323 = v322 * v315;
      const bool v324 = v76 < v70;
      if (v324) {
        const long long v325 = (long long)v95;
        const long long v326 = v325 * 16ll;
        const long long v327 = v326 + (long long)v84;
        store(b0, v327, v317);
      }
      const int v328 = v76 + 4;
      const bool v329 = v328 < v70;
      if (v329) {
        const long long v330 = (long long)v98;
        const long long v331 = v330 * 16ll;
        const long long v332 = v331 + (long long)v84;
        store(b0, v332, v319);
      }
      const int v333 = v76 + 8;
      const bool v334 = v333 < v70;
      if (v334) {
        const long long v335 = (long long)v101;
        const long long v336 = v335 * 16ll;
        const long long v337 = v336 + (long long)v84;
        store(b0, v337, v321);
      }
      const int v338 = v76 + 12;
      const bool v339 = v338 < v70;
      if (v339) {
        const long long v340 = (long long)v104;
        const long long v341 = v340 * 16ll;
        const long long v342 = v341 + (long long)v84;
        store(b0, v342, v323);
      }
      const long long v343 = (long long)1;
      const int v344 = load_constant(b7, v343);
      const int v345 = v344 + 8;
      const bool v346 = v95 < v345;
      if (v346) {
        const bool v347 = v76 < v70;
        if (v347) {
          const int v348 = mod_(v95, 8);
          const int v349 = v348 * 40;
          const int v350 = v349 + v84;
          store_mirrored(b8, v350, v317);
        }
      }
      const long long v351 = (long long)1;
      const int v352 = load_constant(b7, v351);
      const int v353 = v352 + 8;
      const bool v354 = v98 < v353;
      if (v354) {
        const int v355 = v76 + 4;
        const bool v356 = v355 < v70;
        if (v356) {
          const int v357 = mod_(v98, 8);
          const int v358 = v357 * 40;
          const int v359 = v358 + v84;
          store_mirrored(b8, v359, v319);
        }
      }
      const long long v360 = (long long)1;
      const int v361 = load_constant(b7, v360);
      const int v362 = v361 + 8;
      const bool v363 = v101 < v362;
      if (v363) {
        const int v364 = v76 + 8;
        const bool v365 = v364 < v70;
        if (v365) {
          const int v366 = mod_(v101, 8);
          const int v367 = v366 * 40;
          const int v368 = v367 + v84;
          store_mirrored(b8, v368, v321);
        }
      }
      const long long v369 = (long long)1;
      const int v370 = load_constant(b7, v369);
      const int v371 = v370 + 8;
      const bool v372 = v104 < v371;
      if (v372) {
        const int v373 = v76 + 12;
        const bool v374 = v373 < v70;
        if (v374) {
          const int v375 = mod_(v104, 8);
          const int v376 = v375 * 40;
          const int v377 = v376 + v84;
          store_mirrored(b8, v377, v323);
        }
      }
    }
    else {
      const bool v378 = v80 > 1;
      if (v378) {
        const int v379 = worker * 8;
        const int v380 = mod_(thread, 8);
        const int v381 = v379 + v380;
        const int v382 = v70 - 1;
        const int v383 = min_(v76, v382);
        const int v384 = v76 + 4;
        const int v385 = min_(v384, v382);
        const long long v386 = (long long)1;
        const int v387 = load_constant(b7, v386);
        const int v388 = v387 + v383;
        const long long v389 = (long long)1;
        const int v390 = load_constant(b7, v389);
        const int v391 = v390 + v385;
        float a392;
        float a393;
        float a394;
        float a395;
        a392 = 0.0f;
        a393 = 0.0f;
        a394 = 0.0f;
        a395 = 0.0f;
        UNROLL("unroll 16")
        for (int i396 = 0; i396 < 5; ++i396) {
          const int v397 = div_(v381, 32);
          const int v398 = v397 * 176;
          const int v399 = i396 * 32;
          const int v400 = v398 + v399;
          const int v401 = mod_(v381, 32);
          const int v402 = v400 + v401;
          const float v403 = load_constant(b9, v402);
          const long long v404 = (long long)v388;
          const int v405 = load_constant(b11, v404);
          const int v406 = mul_(v405, 16);
          const int v407 = add_(v406, i396);
          const float v408 = load_constant(b10, v407);
          const int v409 = div_(v381, 32);
          const int v410 = v409 * 176;
          const int v411 = i396 * 32;
          const int v412 = v410 + v411;
          const int v413 = mod_(v381, 32);
          const int v414 = v412 + v413;
          const float v415 = load_constant(b12, v414);
          const long long v416 = (long long)v391;
          const int v417 = load_constant(b11, v416);
          const int v418 = mul_(v417, 16);
          const int v419 = add_(v418, i396);
          const float v420 = load_constant(b10, v419);
          const float v421 = a392;
          const float v422 = fma_(v403, v408, v421);
          a392 = v422;
          const float v423 = a394;
          const float v424 = fma_(v415, v408, v423);
          a394 = v424;
          const float v425 = a393;
          const float v426 = fma_(v403, v420, v425);
          a393 = v426;
          const float v427 = a395;
          const float v428 = fma_(v415, v420, v427);
          a395 = v428;
        }
        const float v429 = a392;
        const float v430 = a393;
        const float v431 = a394;
        const float v432 = a395;
        const float v433 = load_constant(b13, v381);
        const float v434 = v429 + v433;
        const bool v435 = 32.0f < v434;
        const float v436 = v435 ? 32.0f : v434;
        const float v437 = fma_(v436, (-1.44269502f), (-0.5f));
        const float v438 = round_(v437);
        const bool v439 = v438 < 127.0f;
        const float v440 = v439 ? v438 : 127.0f;
        const float v441 = fma_(v440, 0.693145752f, v436);
        const float v442 = fma_(v440, 1.42860677e-06f, v441);
        const float v443 = fma_((-0.0116260564f), v442, 0.0391404852f);
        const float v444 = fma_(v443, v442, (-0.167507514f));
        const float v445 = fma_(v444, v442, 0.499881953f);
        const float v446 = fma_(v445, v442, (-1.00000513f));
        const float v447 = fma_(v446, v442, 1.0f);
        const float v448 = ldexp_(v447, v440);
        const float v449 = 1.0f + v448;
        const float v450 = 1.0f / v449;
        const float v451 = load_constant(b13, v381);
        const float v452 = v430 + v451;
        const bool v453 = 32.0f < v452;
        const float v454 = v453 ? 32.0f : v452;
        const float v455 = fma_(v454, (-1.44269502f), (-0.5f));
        const float v456 = round_(v455);
        const bool v457 = v456 < 127.0f;
        const float v458 = v457 ? v456 : 127.0f;
        const float v459 = fma_(v458, 0.693145752f, v454);
        const float v460 = fma_(v458, 1.42860677e-06f, v459);
        const float v461 = fma_((-0.0116260564f), v460, 0.0391404852f);
        const float v462 = fma_(v461, v460, (-0.167507514f));
        const float v463 = fma_(v462, v460, 0.499881953f);
        const float v464 = fma_(v463, v460, (-1.00000513f));
        const float v465 = fma_(v464, v460, 1.0f);
        const float v466 = ldexp_(v465, v458);
        const float v467 = 1.0f + v466;
        const float v468 = 1.0f / v467;
        const float v469 = load_constant(b14, v381);
        const float v470 = v431 + v469;
        const bool v471 = 8.5075531f < v470;
        const float v472 = v471 ? 8.5075531f : v470;
        const bool v473 = v472 < (-8.5075531f);
        const float v474 = v473 ? (-8.5075531f) : v472;
        const float v475 = v474 * v474;
        const float v476 = fma_(0.000115082272f, v475, 0.0298113171f);
        const float v477 = fma_(v476, v475, 1.0f);
        const float v478 = v474 * v477;
        const float v479 = fma_(1.24695214e-06f, v475, 0.00109541777f);
        const float v480 = fma_(v479, v475, 0.083333306f);
        const float v481 = fma_(v475, v480, v477);
        const float v482 = v478 * v481;
        const float v483 = v478 * 0.25f;
        const float v484 = v478 * v483;
        const float v485 = fma_(v481, v481, v484);
        const float v486 = v482 / v485;
        const float v487 = load_constant(b14, v381);
        const float v488 = v432 + v487;
        const bool v489 = 8.5075531f < v488;
        const float v490 = v489 ? 8.5075531f : v488;
        const bool v491 = v490 < (-8.5075531f);
        const float v492 = v491 ? (-8.5075531f) : v490;
        const float v493 = v492 * v492;
        const float v494 = fma_(0.000115082272f, v493, 0.0298113171f);
        const float v495 = fma_(v494, v493, 1.0f);
        const float v496 = v492 * v495;
        const float v497 = fma_(1.24695214e-06f, v493, 0.00109541777f);
        const float v498 = fma_(v497, v493, 0.083333306f);
        const float v499 = fma_(v493, v498, v495);
        const float v500 = v496 * v499;
        const float v501 = v496 * 0.25f;
        const float v502 = v496 * v501;
        const float v503 = fma_(v499, v499, v502);
        const float v504 = v500 / v503;
        const float v505 = 1.0f - v450;
        const float v506 = v505 * v486;
        const float v507 = 1.0f - v468;
        const float v508 = v507 * v504;
        const bool v509 = v76 < v70;
        if (v509) {
          const long long v510 = (long long)v388;
          const long long v511 = v510 * 16ll;
          const long long v512 = v511 + (long long)v381;
          store(b0, v512, v506);
        }
        const int v513 = v76 + 4;
        const bool v514 = v513 < v70;
        if (v514) {
          const long long v515 = (long long)v391;
          const long long v516 = v515 * 16ll;
          const long long v517 = v516 + (long long)v381;
          store(b0, v517, v508);
        }
        const long long v518 = (long long)1;
        const int v519 = load_constant(b7, v518);
        const int v520 = v519 + 8;
        const bool v521 = v388 < v520;
        if (v521) {
          const bool v522 = v76 < v70;
          if (v522) {
            const int v523 = mod_(v388, 8);
            const int v524 = v523 * 40;
            const int v525 = v524 + v381;
            store_mirrored(b8, v525, v506);
          }
        }
        const long long v526 = (long long)1;
        const int v527 = load_constant(b7, v526);
        const int v528 = v527 + 8;
        const bool v529 = v391 < v528;
        if (v529) {
          const int v530 = v76 + 4;
          const bool v531 = v530 < v70;
          if (v531) {
            const int v532 = mod_(v391, 8);
            const int v533 = v532 * 40;
            const int v534 = v533 + v381;
            store_mirrored(b8, v534, v508);
          }
        }
      }
      else {
        const bool v535 = v76 < v70;
        if (v535) {
          const int v536 = worker * 8;
          const int v537 = mod_(thread, 8);
          const int v538 = v536 + v537;
          const long long v539 = (long long)1;
          const int v540 = load_constant(b7, v539);
          const int v541 = v540 + v76;
          float a542;
          float a543;
          a542 = 0.0f;
          a543 = 0.0f;
          UNROLL("unroll 16")
          for (int i544 = 0; i544 < 5; ++i544) {
            const long long v545 = (long long)v541;
            const int v546 = load_constant(b11, v545);
            const int v547 = mul_(v546, 16);
            const int v548 = add_(v547, i544);
            const float v549 = load_constant(b10, v548);
            const int v550 = div_(v538, 32);
            const int v551 = v550 * 176;
            const int v552 = i544 * 32;
            const int v553 = v551 + v552;
            const int v554 = mod_(v538, 32);
            const int v555 = v553 + v554;
            const float v556 = load_constant(b9, v555);
            const float v557 = a542;
            const float v558 = fma_(v556, v549, v557);
            a542 = v558;
            const int v559 = div_(v538, 32);
            const int v560 = v559 * 176;
            const int v561 = i544 * 32;
            const int v562 = v560 + v561;
            const int v563 = mod_(v538, 32);
            const int v564 = v562 + v563;
            const float v565 = load_constant(b12, v564);
            const float v566 = a543;
            const float v567 = fma_(v565, v549, v566);
            a543 = v567;
          }
          const float v568 = a542;
          const float v569 = a543;
          const float v570 = load_constant(b13, v538);
          const float v571 = v568 + v570;
          const bool v572 = 32.0f < v571;
          const float v573 = v572 ? 32.0f : v571;
          const float v574 = fma_(v573, (-1.44269502f), (-0.5f));
          const float v575 = round_(v574);
          const bool v576 = v575 < 127.0f;
          const float v577 = v576 ? v575 : 127.0f;
          const float v578 = fma_(v577, 0.693145752f, v573);
          const float v579 = fma_(v577, 1.42860677e-06f, v578);
          const float v580 = fma_((-0.0116260564f), v579, 0.0391404852f);
          const float v581 = fma_(v580, v579, (-0.167507514f));
          const float v582 = fma_(v581, v579, 0.499881953f);
          const float v583 = fma_(v582, v579, (-1.00000513f));
          const float v584 = fma_(v583, v579, 1.0f);
          const float v585 = ldexp_(v584, v577);
          const float v586 = 1.0f + v585;
          const float v587 = 1.0f / v586;
          const float v588 = load_constant(b14, v538);
          const float v589 = v569 + v588;
          const bool v590 = 8.5075531f < v589;
          const float v591 = v590 ? 8.5075531f : v589;
          const bool v592 = v591 < (-8.5075531f);
          const float v593 = v592 ? (-8.5075531f) : v591;
          const float v594 = v593 * v593;
          const float v595 = fma_(0.000115082272f, v594, 0.0298113171f);
          const float v596 = fma_(v595, v594, 1.0f);
          const float v597 = v593 * v596;
          const float v598 = fma_(1.24695214e-06f, v594, 0.00109541777f);
          const float v599 = fma_(v598, v594, 0.083333306f);
          const float v600 = fma_(v594, v599, v596);
          const float v601 = v597 * v600;
          const float v602 = v597 * 0.25f;
          const float v603 = v597 * v602;
          const float v604 = fma_(v600, v600, v603);
          const float v605 = v601 / v604;
          const float v606 = 1.0f - v587;
          const float v607 = v606 * v605;
          const long long v608 = (long long)v541;
          const long long v609 = v608 * 16ll;
          const long long v610 = v609 + (long long)v538;
          store(b0, v610, v607);
          const long long v611 = (long long)1;
          const int v612 = load_constant(b7, v611);
          const int v613 = v612 + 8;
          const bool v614 = v541 < v613;
          if (v614) {
            const int v615 = mod_(v541, 8);
            const int v616 = v615 * 40;
            const int v617 = v616 + v538;
            store_mirrored(b8, v617, v607);
          }
        }
      }
    }
  }
  const long long v618 = (long long)1;
  const int v619 = load_constant(b7, v618);
  const int v620 = v619 + 15;
  const int v621 = div_(v620, 16);
  for (int i622 = 0; i622 < v621; ++i622) {
    const int v623 = i622 * 16;
    const int v624 = div_(thread, 8);
    const int v625 = v623 + v624;
    const int v626 = i622 * 16;
    const int v627 = v619 - v626;
    const int v628 = v627 + 3;
    const int v629 = div_(v628, 4);
    const bool v630 = v629 > 2;
    if (v630) {
      const int v631 = worker * 8;
      const int v632 = mod_(thread, 8);
      const int v633 = v631 + v632;
      const int v634 = v619 - 1;
      const int v635 = min_(v625, v634);
      const int v636 = v625 + 4;
      const int v637 = min_(v636, v634);
      const int v638 = v625 + 8;
      const int v639 = min_(v638, v634);
      const int v640 = v625 + 12;
      const int v641 = min_(v640, v634);
      float a642;
      float a643;
      float a644;
      float a645;
      float a646;
      float a647;
      float a648;
      float a649;
      float a650;
      float a651;
      float a652;
      float a653;
      a642 = 0.0f;
      a643 = 0.0f;
      a644 = 0.0f;
      a645 = 0.0f;
      a646 = 0.0f;
      a647 = 0.0f;
      a648 = 0.0f;
      a649 = 0.0f;
      a650 = 0.0f;
      a651 = 0.0f;
      a652 = 0.0f;
      a653 = 0.0f;
      UNROLL("unroll 16")
      for (int i654 = 0; i654 < 5; ++i654) {
        const int v655 = div_(v633, 32);
        const int v656 = v655 * 176;
        const int v657 = i654 * 32;
        const int v658 = v656 + v657;
        const int v659 = mod_(v633, 32);
        const int v660 = v658 + v659;
        const float v661 = load_constant(b15, v660);
        const long long v662 = (long long)v635;
        const int v663 = load_constant(b11, v662);
        const int v664 = mul_(v663, 16);
        const int v665 = add_(v664, i654);
        const float v666 = load_constant(b10, v665);
        const int v667 = div_(v633, 32);
        const int v668 = v667 * 176;
        const int v669 = i654 * 32;
        const int v670 = v668 + v669;
        const int v671 = mod_(v633, 32);
        const int v672 = v670 + v671;
        const float v673 = load_constant(b9, v672);
        const int v674 = div_(v633, 32);
        const int v675 = v674 * 176;
        const int v676 = i654 * 32;
        const int v677 = v675 + v676;
        const int v678 = mod_(v633, 32);
        const int v679 = v677 + v678;
        const float v680 = load_constant(b12, v679);
        const long long v681 = (long long)v637;
        const int v682 = load_constant(b11, v681);
        const int v683 = mul_(v682, 16);
        const int v684 = add_(v683, i654);
        const float v685 = load_constant(b10, v684);
        const long long v686 = (long long)v639;
        const int v687 = load_constant(b11, v686);
        const int v688 = mul_(v687, 16);
        const int v689 = add_(v688, i654);
        const float v690 = load_constant(b10, v689);
        const long long v691 = (long long)v641;
        const int v692 = load_constant(b11, v691);
        const int v693 = mul_(v692, 16);
        const int v694 = add_(v693, i654);
        const float v695 = load_constant(b10, v694);
        const float v696 = a642;
        const float v697 = fma_(v661, v666, v696);
        a642 = v697;
        const float v698 = a646;
        const float v699 = fma_(v673, v666, v698);
        a646 = v699;
        const float v700 = a650;
        const float v701 = fma_(v680, v666, v700);
        a650 = v701;
        const float v702 = a643;
        const float v703 = fma_(v661, v685, v702);
        a643 = v703;
        const float v704 = a647;
        const float v705 = fma_(v673, v685, v704);
        a647 = v705;
        const float v706 = a651;
        const float v707 = fma_(v680, v685, v706);
        a651 = v707;
        const float v708 = a644;
        const float v709 = fma_(v661, v690, v708);
        a644 = v709;
        const float v710 = a648;
        const float v711 = fma_(v673, v690, v710);
        a648 = v711;
        const float v712 = a652;
        const float v713 = fma_(v680, v690, v712);
        a652 = v713;
        const float v714 = a645;
        const float v715 = fma_(v661, v695, v714);
        a645 = v715;
        const float v716 = a649;
        const float v717 = fma_(v673, v695, v716);
        a649 = v717;
        const float v718 = a653;
        const float v719 = fma_(v680, v695, v718);
        a653 = v719;
      }
      const bool v720 = v625 < v619;
      if (v720) {
        const long long v721 = (long long)v635;
        const long long v722 = v721 * 16ll;
        const long long v723 = v722 + (long long)v633;
        const float v724 = a642;
        store(b16, v723, v724);
      }
      const int v725 = v625 + 4;
      const bool v726 = v725 < v619;
      if (v726) {
        const long long v727 = (long long)v637;
        const long long v728 = v727 * 16ll;
        const long long v729 = v728 + (long long)v633;
        const float v730 = a643;
        store(b16, v729, v730);
      }
      const int v731 = v625 + 8;
      const bool v732 = v731 < v619;
      if (v732) {
        const long long v733 = (long long)v639;
        const long long v734 = v733 * 16ll;
        const long long v735 = v734 + (long long)v633;
        const float v736 = a644;
        store(b16, v735, v736);
      }
      const int v737 = v625 + 12;
      const bool v738 = v737 < v619;
      if (v738) {
        const long long v739 = (long long)v641;
        const long long v740 = v739 * 16ll;
        const long long v741 = v740 + (long long)v633;
        const float v742 = a645;
        store(b16, v741, v742);
      }
      const bool v743 = v625 < v619;
      if (v743) {
        const long long v744 = (long long)v635;
        const long long v745 = v744 * 16ll;
        const long long v746 = v745 + (long long)v633;
        const float v747 = a646;
        store(b17, v746, v747);
      }
      const int v748 = v625 + 4;
      const bool v749 = v748 < v619;
      if (v749) {
        const long long v750 = (long long)v637;
        const long long v751 = v750 * 16ll;
        const long long v752 = v751 + (long long)v633;
        const float v753 = a647;
        store(b17, v752, v753);
      }
      const int v754 = v625 + 8;
      const bool v755 = v754 < v619;
      if (v755) {
        const long long v756 = (long long)v639;
        const long long v757 = v756 * 16ll;
        const long long v758 = v757 + (long long)v633;
        const float v759 = a648;
        store(b17, v758, v759);
      }
      const int v760 = v625 + 12;
      const bool v761 = v760 < v619;
      if (v761) {
        const long long v762 = (long long)v641;
        const long long v763 = v762 * 16ll;
        const long long v764 = v763 + (long long)v633;
        const float v765 = a649;
        store(b17, v764, v765);
      }
      const bool v766 = v625 < v619;
      if (v766) {
        const long long v767 = (long long)v635;
        const long long v768 = v767 * 16ll;
        const long long v769 = v768 + (long long)v633;
        const float v770 = a650;
        store(b18, v769, v770);
      }
      const int v771 = v625 + 4;
      const bool v772 = v771 < v619;
      if (v772) {
        const long long v773 = (long long)v637;
        const long long v774 = v773 * 16ll;
        const long long v775 = v774 + (long long)v633;
        const float v776 = a651;
        store(b18, v775, v776);
      }
      const int v777 = v625 + 8;
      const bool v778 = v777 < v619;
      if (v778) {
        const long long v779 = (long long)v639;
        const long long v780 = v779 * 16ll;
        const long long v781 = v780 + (long long)v633;
        const float v782 = a652;
        store(b18, v781, v782);
      }
      const int v783 = v625 + 12;
      const bool v784 = v783 < v619;
      if (v784) {
        const long long v785 = (long long)v641;
        const long long v786 = v785 * 16ll;
        const long long v787 = v786 + (long long)v633;
        const float v788 = a653;
        store(b18, v787, v788);
      }
    }
    else {
      const bool v789 = v629 > 1;
      if (v789) {
        const int v790 = worker * 8;
        const int v791 = mod_(thread, 8);
        const int v792 = v790 + v791;
        const int v793 = v619 - 1;
        const int v794 = min_(v625, v793);
        const int v795 = v625 + 4;
        const int v796 = min_(v795, v793);
        float a797;
        float a798;
        float a799;
        float a800;
        float a801;
        float a802;
        a797 = 0.0f;
        a798 = 0.0f;
        a799 = 0.0f;
        a800 = 0.0f;
        a801 = 0.0f;
        a802 = 0.0f;
        UNROLL("unroll 16")
        for (int i803 = 0; i803 < 5; ++i803) {
          const int v804 = div_(v792, 32);
          const int v805 = v804 * 176;
          const int v806 = i803 * 32;
          const int v807 = v805 + v806;
          const int v808 = mod_(v792, 32);
          const int v809 = v807 + v808;
          const float v810 = load_constant(b15, v809);
          const long long v811 = (long long)v794;
          const int v812 = load_constant(b11, v811);
          const int v813 = mul_(v812, 16);
          const int v814 = add_(v813, i803);
          const float v815 = load_constant(b10, v814);
          const int v816 = div_(v792, 32);
          const int v817 = v816 * 176;
          const int v818 = i803 * 32;
          const int v819 = v817 + v818;
          const int v820 = mod_(v792, 32);
          const int v821 = v819 + v820;
          const float v822 = load_constant(b9, v821);
          const int v823 = div_(v792, 32);
          const int v824 = v823 * 176;
          const int v825 = i803 * 32;
          const int v826 = v824 + v825;
          const int v827 = mod_(v792, 32);
          const int v828 = v826 + v827;
          const float v829 = load_constant(b12, v828);
          const long long v830 = (long long)v796;
          const int v831 = load_constant(b11, v830);
          const int v832 = mul_(v831, 16);
          const int v833 = add_(v832, i803);
          const float v834 = load_constant(b10, v833);
          const float v835 = a797;
          const float v836 = fma_(v810, v815, v835);
          a797 = v836;
          const float v837 = a799;
          const float v838 = fma_(v822, v815, v837);
          a799 = v838;
          const float v839 = a801;
          const float v840 = fma_(v829, v815, v839);
          a801 = v840;
          const float v841 = a798;
          const float v842 = fma_(v810, v834, v841);
          a798 = v842;
          const float v843 = a800;
          const float v844 = fma_(v822, v834, v843);
          a800 = v844;
          const float v845 = a802;
          const float v846 = fma_(v829, v834, v845);
          a802 = v846;
        }
        const bool v847 = v625 < v619;
        if (v847) {
          const long long v848 = (long long)v794;
          const long long v849 = v848 * 16ll;
          const long long v850 = v849 + (long long)v792;
          const float v851 = a797;
          store(b16, v850, v851);
        }
        const int v852 = v625 + 4;
        const bool v853 = v852 < v619;
        if (v853) {
          const long long v854 = (long long)v796;
          const long long v855 = v854 * 16ll;
          const long long v856 = v855 + (long long)v792;
          const float v857 = a798;
          store(b16, v856, v857);
        }
        const bool v858 = v625 < v619;
        if (v858) {
          const long long v859 = (long long)v794;
          const long long v860 = v859 * 16ll;
          const long long v861 = v860 + (long long)v792;
          const float v862 = a799;
          store(b17, v861, v862);
        }
        const int v863 = v625 + 4;
        const bool v864 = v863 < v619;
        if (v864) {
          const long long v865 = (long long)v796;
          const long long v866 = v865 * 16ll;
          const long long v867 = v866 + (long long)v792;
          const float v868 = a800;
          store(b17, v867, v868);
        }
        const bool v869 = v625 < v619;
        if (v869) {
          const long long v870 = (long long)v794;
          const long long v871 = v870 * 16ll;
          const long long v872 = v871 + (long long)v792;
          const float v873 = a801;
          store(b18, v872, v873);
        }
        const int v874 = v625 + 4;
        const bool v875 = v874 < v619;
        if (v875) {
          const long long v876 = (long long)v796;
          const long long v877 = v876 * 16ll;
          const long long v878 = v877 + (long long)v792;
          const float v879 = a802;
          store(b18, v878, v879);
        }
      }
      else {
        const bool v880 = v625 < v619;
        if (v880) {
          const int v881 = worker * 8;
          const int v882 = mod_(thread, 8);
          const int v883 = v881 + v882;
          float a884;
          float a885;
          float a886;
          a884 = 0.0f;
          a885 = 0.0f;
          a886 = 0.0f;
          UNROLL("unroll 16")
          for (int i887 = 0; i887 < 5; ++i887) {
            const long long v888 = (long long)v625;
            const int v889 = load_constant(b11, v888);
            const int v890 = mul_(v889, 16);
            const int v891 = add_(v890, i887);
            const float v892 = load_constant(b10, v891);
            const int v893 = div_(v883, 32);
            const int v894 = v893 * 176;
            const int v895 = i887 * 32;
            const int v896 = v894 + v895;
            const int v897 = mod_(v883, 32);
            const int v898 = v896 + v897;
            const float v899 = load_constant(b15, v898);
            const float v900 = a884;
            const float v901 = fma_(v899, v892, v900);
            a884 = v901;
            const int v902 = div_(v883, 32);
            const int v903 = v902 * 176;
            const int v904 = i887 * 32;
            const int v905 = v903 + v904;
            const int v906 = mod_(v883, 32);
            const int v907 = v905 + v906;
            const float v908 = load_constant(b9, v907);
            const float v909 = a885;
            const float v910 = fma_(v908, v892, v909);
            a885 = v910;
            const int v911 = div_(v883, 32);
            const int v912 = v911 * 176;
            const int v913 = i887 * 32;
            const int v914 = v912 + v913;
            const int v915 = mod_(v883, 32);
            const int v916 = v914 + v915;
            const float v917 = load_constant(b12, v916);
            const float v918 = a886;
            const float v919 = fma_(v917, v892, v918);
            a886 = v919;
          }
          const long long v920 = (long long)v625;
          const long long v921 = v920 * 16ll;
          const long long v922 = v921 + (long long)v883;
          const float v923 = a884;
          store(b16, v922, v923);
          const long long v924 = (long long)v625;
          const long long v925 = v924 * 16ll;
          const long long v926 = v925 + (long long)v883;
          const float v927 = a885;
          store(b17, v926, v927);
          const long long v928 = (long long)v625;
          const long long v929 = v928 * 16ll;
          const long long v930 = v929 + (long long)v883;
          const float v931 = a886;
          store(b18, v930, v931);
        }
      }
    }
  }
  sync_cluster();
  const long long v932 = (long long)2;
  const int v933 = load_constant(b7, v932);
  const int v934 = v933 - 1;
  const int v935 = max_(v934, 0);
  for (int i936 = 0; i936 < v935; ++i936) {
    const int v937 = i936 + 1;
    const long long v938 = (long long)v937;
    const int v939 = load_constant(b19, v938);
    const int v940 = div_(thread, 16);
    const int v941 = v939 - v940;
    const int v942 = v941 + 1;
    const int v943 = div_(v942, 2);
    for (int i944 = 0; i944 < v943; ++i944) {
      const int v945 = mod_(thread, 16);
      const int v946 = i936 + 1;
      const long long v947 = (long long)v946;
      const int v948 = load_constant(b20, v947);
      const int v949 = i944 * 2;
      const int v950 = v949 + v940;
      const int v951 = v948 + v950;
      float a952;
      a952 = 0.0f;
      const int v953 = v951 + 1;
      const long long v954 = (long long)v953;
      const int v955 = load_constant(b21, v954);
      const long long v956 = (long long)v951;
      const int v957 = load_constant(b21, v956);
      const int v958 = v955 - v957;
      for (int i959 = 0; i959 < v958; ++i959) {
        const float v960 = a952;
        const long long v961 = (long long)v951;
        const int v962 = load_constant(b21, v961);
        const int v963 = v962 + i959;
        const long long v964 = (long long)v963;
        const int v965 = load_constant(b22, v964);
        const int v966 = mod_(v965, 8);
        const int v967 = v966 * 40;
        const long long v969 = (long long)v951;
        const int v970 = load_constant(b21, v969);
        const int v971 = v970 + i959;
        const long long v972 = (long long)v971;
        const int v973 = load_constant(b22, v972);
        const int v974 = i936 + 1;
        const long long v975 = (long long)v974;
        const int v976 = load_constant(b20, v975);
        const int v977 = v976 + 8;
        const bool v978 = v973 < v977;
        const long long v979 = (long long)v951;
        const int v980 = load_constant(b21, v979);
        const int v981 = v980 + i959;
        const long long v982 = (long long)v981;
        const int v983 = load_constant(b22, v982);
        const long long v984 = (long long)v983;
        const long long v985 = v984 * 16ll;
        const float* const r968 = v978 ? b8 + v967 : b0 + v985;
        const float v986 = load_row(r968, v945);
        const float v987 = v960 + v986;
        a952 = v987;
      }
      const float v988 = a952;
      const bool v989 = v950 < 8;
      if (v989) {
        const int v990 = mod_(v950, 8);
        const int v991 = v990 * 40;
        const int v992 = v991 + v945;
        store_chip(b23, v992, v988);
      }
      else {
        const long long v993 = (long long)v950;
        const long long v994 = v993 * 16ll;
        const long long v995 = v994 + (long long)v945;
        store(b24, v995, v988);
      }
    }
    sync_block();
    const int v996 = i936 + 1;
    const long long v997 = (long long)v996;
    const int v998 = load_constant(b19, v997);
    const int v999 = v998 + 15;
    const int v1000 = div_(v999, 16);
    for (int i1001 = 0; i1001 < v1000; ++i1001) {
      const int v1002 = i1001 * 16;
      const int v1003 = div_(thread, 8);
      const int v1004 = v1002 + v1003;
      const int v1005 = i1001 * 16;
      const int v1006 = v998 - v1005;
      const int v1007 = v1006 + 3;
      const int v1008 = div_(v1007, 4);
      const bool v1009 = v1008 > 2;
      if (v1009) {
        const int v1010 = worker * 8;
        const int v1011 = mod_(thread, 8);
        const int v1012 = v1010 + v1011;
        const int v1013 = v998 - 1;
        const int v1014 = min_(v1004, v1013);
        const int v1015 = v1004 + 4;
        const int v1016 = min_(v1015, v1013);
        const int v1017 = v1004 + 8;
        const int v1018 = min_(v1017, v1013);
        const int v1019 = v1004 + 12;
        const int v1020 = min_(v1019, v1013);
        const int v1021 = i936 + 1;
        const long long v1022 = (long long)v1021;
        const int v1023 = load_constant(b20, v1022);
        const int v1024 = v1023 + v1014;
        const int v1025 = i936 + 1;
        const long long v1026 = (long long)v1025;
        const int v1027 = load_constant(b20, v1026);
        const int v1028 = v1027 + v1016;
        const int v1029 = i936 + 1;
        const long long v1030 = (long long)v1029;
        const int v1031 = load_constant(b20, v1030);
        const int v1032 = v1031 + v1018;
        const int v1033 = i936 + 1;
        const long long v1034 = (long long)v1033;
        const int v1035 = load_constant(b20, v1034);
        const int v1036 = v1035 + v1020;
        float a1037;
        float a1038;
        float a1039;
        float a1040;
        float a1041;
        float a1042;
        float a1043;
        float a1044;
        a1037 = 0.0f;
        a1038 = 0.0f;
        a1039 = 0.0f;
        a1040 = 0.0f;
        a1041 = 0.0f;
        a1042 = 0.0f;
        a1043 = 0.0f;
        a1044 = 0.0f;
        const int v1046 = mod_(v1014, 8);
        const int v1047 = v1046 * 40;
        const bool v1049 = v1014 < 8;
        const long long v1050 = (long long)v1014;
        const long long v1051 = v1050 * 16ll;
        const float* const r1048 = v1049 ? b23 + v1047 : b24 + v1051;
        const int v1052 = mod_(v1016, 8);
        const int v1053 = v1052 * 40;
        const bool v1055 = v1016 < 8;
        const long long v1056 = (long long)v1016;
        const long long v1057 = v1056 * 16ll;
        const float* const r1054 = v1055 ? b23 + v1053 : b24 + v1057;
        const int v1058 = mod_(v1018, 8);
        const int v1059 = v1058 * 40;
        const bool v1061 = v1018 < 8;
        const long long v1062 = (long long)v1018;
        const long long v1063 = v1062 * 16ll;
        const float* const r1060 = v1061 ? b23 + v1059 : b24 + v1063;
        const int v1064 = mod_(v1020, 8);
        const int v1065 = v1064 * 40;
        const bool v1067 = v1020 < 8;
        const long long v1068 = (long long)v1020;
        const long long v1069 = v1068 * 16ll;
        const float* const r1066 = v1067 ? b23 + v1065 : b24 + v1069;
        UNROLL("unroll 16")
        for (int i1045 = 0; i1045 < 16; ++i1045) {
          const int v1070 = i1045 * 8;
          const int v1071 = worker * 8;
          const int v1072 = v1012 - v1071;
          const int v1073 = v1070 + v1072;
          const float v1074 = load_chip(b1, v1073);
          const float v1075 = load_row(r1048, i1045);
          const int v1076 = i1045 * 8;
          const int v1077 = worker * 8;
          const int v1078 = v1012 - v1077;
          const int v1079 = v1076 + v1078;
          const float v1080 = load_chip(b3, v1079);
          const float v1081 = load_row(r1054, i1045);
          const float v1082 = load_row(r1060, i1045);
          const float v1083 = load_row(r1066, i1045);
          const float v1084 = a1037;
          const float v1085 = fma_(v1074, v1075, v1084);
          a1037 = v1085;
          const float v1086 = a1041;
          const float v1087 = fma_(v1080, v1075, v1086);
          a1041 = v1087;
          const float v1088 = a1038;
          const float v1089 = fma_(v1074, v1081, v1088);
          a1038 = v1089;
          const float v1090 = a1042;
          const float v1091 = fma_(v1080, v1081, v1090);
          a1042 = v1091;
          const float v1092 = a1039;
          const float v1093 = fma_(v1074, v1082, v1092);
          a1039 = v1093;
          const float v1094 = a1043;
          const float v1095 = fma_(v1080, v1082, v1094);
          a1043 = v1095;
          const float v1096 = a1040;
          const float v1097 = fma_(v1074, v1083, v1096);
          a1040 = v1097;
          const float v1098 = a1044;
          const float v1099 = fma_(v1080, v1083, v1098);
          a1044 = v1099;
        }
        const float v1100 = a1037;
        const float v1101 = a1038;
        const float v1102 = a1039;
        const float v1103 = a1040;
        const long long v1104 = (long long)v1024;
        const long long v1105 = v1104 * 16ll;
        const long long v1106 = v1105 + (long long)v1012;
        const float v1107 = load(b16, v1106);
        const float v1108 = v1107 + v1100;
        const float v1109 = load_constant(b25, v1012);
        const float v1110 = v1108 + v1109;
        const bool v1111 = 32.0f < v1110;
        const float v1112 = v1111 ? 32.0f : v1110;
        const float v1113 = fma_(v1112, (-1.44269502f), (-0.5f));
        const float v1114 = round_(v1113);
        const bool v1115 = v1114 < 127.0f;
        const float v1116 = v1115 ? v1114 : 127.0f;
        const float v1117 = fma_(v1116, 0.693145752f, v1112);
        const float v1118 = fma_(v1116, 1.42860677e-06f, v1117);
        const float v1119 = fma_((-0.0116260564f), v1118, 0.0391404852f);
        const float v1120 = fma_(v1119, v1118, (-0.167507514f));
        const float v1121 = fma_(v1120, v1118, 0.499881953f);
        const float v1122 = fma_(v1121, v1118, (-1.00000513f));
        const float v1123 = fma_(v1122, v1118, 1.0f);
        const float v1124 = ldexp_(v1123, v1116);
        const float v1125 = 1.0f + v1124;
        const float v1126 = 1.0f / v1125;
        const long long v1127 = (long long)v1028;
        const long long v1128 = v1127 * 16ll;
        const long long v1129 = v1128 + (long long)v1012;
        const float v1130 = load(b16, v1129);
        const float v1131 = v1130 + v1101;
        const float v1132 = load_constant(b25, v1012);
        const float v1133 = v1131 + v1132;
        const bool v1134 = 32.0f < v1133;
        const float v1135 = v1134 ? 32.0f : v1133;
        const float v1136 = fma_(v1135, (-1.44269502f), (-0.5f));
        const float v1137 = round_(v1136);
        const bool v1138 = v1137 < 127.0f;
        const float v1139 = v1138 ? v1137 : 127.0f;
        const float v1140 = fma_(v1139, 0.693145752f, v1135);
        const float v1141 = fma_(v1139, 1.42860677e-06f, v1140);
        const float v1142 = fma_((-0.0116260564f), v1141, 0.0391404852f);
        const float v1143 = fma_(v1142, v1141, (-0.167507514f));
        const float v1144 = fma_(v1143, v1141, 0.499881953f);
        const float v1145 = fma_(v1144, v1141, (-1.00000513f));
        const float v1146 = fma_(v1145, v1141, 1.0f);
        const float v1147 = ldexp_(v1146, v1139);
        const float v1148 = 1.0f + v1147;
        const float v1149 = 1.0f / v1148;
        const long long v1150 = (long long)v1032;
        const long long v1151 = v1150 * 16ll;
        const long long v1152 = v1151 + (long long)v1012;
        const float v1153 = load(b16, v1152);
        const float v1154 = v1153 + v1102;
        const float v1155 = load_constant(b25, v1012);
        const float v1156 = v1154 + v1155;
        const bool v1157 = 32.0f < v1156;
        const float v1158 = v1157 ? 32.0f : v1156;
        const float v1159 = fma_(v1158, (-1.44269502f), (-0.5f));
        const float v1160 = round_(v1159);
        const bool v1161 = v1160 < 127.0f;
        const float v1162 = v1161 ? v1160 : 127.0f;
        const float v1163 = fma_(v1162, 0.693145752f, v1158);
        const float v1164 = fma_(v1162, 1.42860677e-06f, v1163);
        const float v1165 = fma_((-0.0116260564f), v1164, 0.0391404852f);
        const float v1166 = fma_(v1165, v1164, (-0.167507514f));
        const float v1167 = fma_(v1166, v1164, 0.499881953f);
        const float v1168 = fma_(v1167, v1164, (-1.00000513f));
        const float v1169 = fma_(v1168, v1164, 1.0f);
        const float v1170 = ldexp_(v1169, v1162);
        const float v1171 = 1.0f + v1170;
        const float v1172 = 1.0f / v1171;
        const long long v1173 = (long long)v1036;
        const long long v1174 = v1173 * 16ll;
        const long long v1175 = v1174 + (long long)v1012;
        const float v1176 = load(b16, v1175);
        const float v1177 = v1176 + v1103;
        const float v1178 = load_constant(b25, v1012);
        const float v1179 = v1177 + v1178;
        const bool v1180 = 32.0f < v1179;
        const float v1181 = v1180 ? 32.0f : v1179;
        const float v1182 = fma_(v1181, (-1.44269502f), (-0.5f));
        const float v1183 = round_(v1182);
        const bool v1184 = v1183 < 127.0f;
        const float v1185 = v1184 ? v1183 : 127.0f;
        const float v1186 = fma_(v1185, 0.693145752f, v1181);
        const float v1187 = fma_(v1185, 1.42860677e-06f, v1186);
        const float v1188 = fma_((-0.0116260564f), v1187, 0.0391404852f);
        const float v1189 = fma_(v1188, v1187, (-0.167507514f));
        const float v1190 = fma_(v1189, v1187, 0.499881953f);
        const float v1191 = fma_(v1190, v1187, (-1.00000513f));
        const float v1192 = fma_(v1191, v1187, 1.0f);
        const float v1193 = ldexp_(v1192, v1185);
        const float v1194 = 1.0f + v1193;
        const float v1195 = 1.0f / v1194;
        const bool v1196 = v1004 < v998;
        if (v1196) {
          const long long v1197 = (long long)v1014;
          const long long v1198 = v1197 * 16ll;
          const long long v1199 = v1198 + (long long)v1012;
          const float v1200 = a1041;
          store(b26, v1199, v1200);
        }
        const int v1201 = v1004 + 4;
        const bool v1202 = v1201 < v998;
        if (v1202) {
          const long long v1203 = (long long)v1016;
          const long long v1204 = v1203 * 16ll;
          const long long v1205 = v1204 + (long long)v1012;
          const float v1206 = a1042;
          store(b26, v1205, v1206);
        }
        const int v1207 = v1004 + 8;
        const bool v1208 = v1207 < v998;
        if (v1208) {
          const long long v1209 = (long long)v1018;
          const long long v1210 = v1209 * 16ll;
          const long long v1211 = v1210 + (long long)v1012;
          const float v1212 = a1043;
          store(b26, v1211, v1212);
        }
        const int v1213 = v1004 + 12;
        const bool v1214 = v1213 < v998;
        if (v1214) {
          const long long v1215 = (long long)v1020;
          const long long v1216 = v1215 * 16ll;
          const long long v1217 = v1216 + (long long)v1012;
          const float v1218 = a1044;
          store(b26, v1217, v1218);
        }
        const float v1219 = load_row(r1048, v1012);
        const float v1220 = v1126 * v1219;
        const float v1221 = load_row(r1054, v1012);
        const float v1222 = v1149 * v1221;
        const float v1223 = load_row(r1060, v1012);
        const float v1224 = v1172 * v1223;
        const float v1225 = load_row(r1066, v1012);
        const float v1226 = v1195 * v1225;
        const bool v1227 = v1014 < 8;
        if (v1227) {
          const bool v1228 = v1004 < v998;
          if (v1228) {
            const int v1229 = mod_(v1014, 8);
            const int v1230 = v1229 * 40;
            const int v1231 = v1230 + v1012;
            store_mirrored(b27, v1231, v1220);
          }
        }
        else {
          const bool v1232 = v1004 < v998;
          if (v1232) {
            const long long v1233 = (long long)v1014;
            const long long v1234 = v1233 * 16ll;
            const long long v1235 = v1234 + (long long)v1012;
            store(b28, v1235, v1220);
          }
        }
        const bool v1236 = v1016 < 8;
        if (v1236) {
          const int v1237 = v1004 + 4;
          const bool v1238 = v1237 < v998;
          if (v1238) {
            const int v1239 = mod_(v1016, 8);
            const int v1240 = v1239 * 40;
            const int v1241 = v1240 + v1012;
            store_mirrored(b27, v1241, v1222);
          }
        }
        else {
          const int v1242 = v1004 + 4;
          const bool v1243 = v1242 < v998;
          if (v1243) {
            const long long v1244 = (long long)v1016;
            const long long v1245 = v1244 * 16ll;
            const long long v1246 = v1245 + (long long)v1012;
            store(b28, v1246, v1222);
          }
        }
        const bool v1247 = v1018 < 8;
        if (v1247) {
          const int v1248 = v1004 + 8;
          const bool v1249 = v1248 < v998;
          if (v1249) {
            const int v1250 = mod_(v1018, 8);
            const int v1251 = v1250 * 40;
            const int v1252 = v1251 + v1012;
            store_mirrored(b27, v1252, v1224);
          }
        }
        else {
          const int v1253 = v1004 + 8;
          const bool v1254 = v1253 < v998;
          if (v1254) {
            const long long v1255 = (long long)v1018;
            const long long v1256 = v1255 * 16ll;
            const long long v1257 = v1256 + (long long)v1012;
            store(b28, v1257, v1224);
          }
        }
        const bool v1258 = v1020 < 8;
        if (v1258) {
          const int v1259 = v1004 + 12;
          const bool v1260 = v1259 < v998;
          if (v1260) {
            const int v1261 = mod_(v1020, 8);
            const int v1262 = v1261 * 40;
            const int v1263 = v1262 + v1012;
            store_mirrored(b27, v1263, v1226);
          }
        }
        else {
          const int v1264 = v1004 + 12;
          const bool v1265 = v1264 < v998;
          if (v1265) {
            const long long v1266 = (long long)v1020;
            const long long v1267 = v1266 * 16ll;
            const long long v1268 = v1267 + (long long)v1012;
            store(b28, v1268, v1226);
          }
        }
      }
      else {
        const bool v1269 = v1008 > 1;
        if (v1269) {
          const int v1270 = worker * 8;
          const int v1271 = mod_(thread, 8);
          const int v1272 = v1270 + v1271;
          const int v1273 = v998 - 1;
          const int v1274 = min_(v1004, v1273);
          const int v1275 = v1004 + 4;
          const int v1276 = min_(v1275, v1273);
          const int v1277 = i936 + 1;
          const long long v1278 = (long long)v1277;
          const int v1279 = load_constant(b20, v1278);
          const int v1280 = v1279 + v1274;
          const int v1281 = i936 + 1;
          const long long v1282 = (long long)v1281;
          const int v1283 = load_constant(b20, v1282);
          const int v1284 = v1283 + v1276;
          float a1285;
          float a1286;
          float a1287;
          float a1288;
          a1285 = 0.0f;
          a1286 = 0.0f;
          a1287 = 0.0f;
          a1288 = 0.0f;
          const int v1290 = mod_(v1274, 8);
          const int v1291 = v1290 * 40;
          const bool v1293 = v1274 < 8;
          const long long v1294 = (long long)v1274;
          const long long v1295 = v1294 * 16ll;
          const float* const r1292 = v1293 ? b23 + v1291 : b24 + v1295;
          const int v1296 = mod_(v1276, 8);
          const int v1297 = v1296 * 40;
          const bool v1299 = v1276 < 8;
          const long long v1300 = (long long)v1276;
          const long long v1301 = v1300 * 16ll;
          const float* const r1298 = v1299 ? b23 + v1297 : b24 + v1301;
          UNROLL("unroll 16")
          for (int i1289 = 0; i1289 < 16; ++i1289) {
            const int v1302 = i1289 * 8;
            const int v1303 = worker * 8;
            const int v1304 = v1272 - v1303;
            const int v1305 = v1302 + v1304;
            const float v1306 = load_chip(b1, v1305);
            const float v1307 = load_row(r1292, i1289);
            const int v1308 = i1289 * 8;
            const int v1309 = worker * 8;
            const int v1310 = v1272 - v1309;
            const int v1311 = v1308 + v1310;
            const float v1312 = load_chip(b3, v1311);
            const float v1313 = load_row(r1298, i1289);
            const float v1314 = a1285;
            const float v1315 = fma_(v1306, v1307, v1314);
            a1285 = v1315;
            const float v1316 = a1287;
            const float v1317 = fma_(v1312, v1307, v1316);
            a1287 = v1317;
            const float v1318 = a1286;
            const float v1319 = fma_(v1306, v1313, v1318);
            a1286 = v1319;
            const float v1320 = a1288;
            const float v1321 = fma_(v1312, v1313, v1320);
            a1288 = v1321;
          }
          const float v1322 = a1285;
          const float v1323 = a1286;
          const long long v1324 = (long long)v1280;
          const long long v1325 = v1324 * 16ll;
          const long long v1326 = v1325 + (long long)v1272;
          const float v1327 = load(b16, v1326);
          const float v1328 = v1327 + v1322;
          const float v1329 = load_constant(b25, v1272);
          const float v1330 = v1328 + v1329;
          const bool v1331 = 32.0f < v1330;
          const float v1332 = v1331 ? 32.0f : v1330;
          const float v1333 = fma_(v1332, (-1.44269502f), (-0.5f));
          const float v1334 = round_(v1333);
          const bool v1335 = v1334 < 127.0f;
          const float v1336 = v1335 ? v1334 : 127.0f;
          const float v1337 = fma_(v1336, 0.693145752f, v1332);
          const float v1338 = fma_(v1336, 1.42860677e-06f, v1337);
          const float v1339 = fma_((-0.0116260564f), v1338, 0.0391404852f);
          const float v1340 = fma_(v1339, v1338, (-0.167507514f));
          const float v1341 = fma_(v1340, v1338, 0.499881953f);
          const float v1342 = fma_(v1341, v1338, (-1.00000513f));
          const float v1343 = fma_(v1342, v1338, 1.0f);
          const float v1344 = ldexp_(v1343, v1336);
          const float v1345 = 1.0f + v1344;
          const float v1346 = 1.0f / v1345;
          const long long v1347 = (long long)v1284;
          const long long v1348 = v1347 * 16ll;
          const long long v1349 = v1348 + (long long)v1272;
          const float v1350 = load(b16, v1349);
          const float v1351 = v1350 + v1323;
          const float v1352 = load_constant(b25, v1272);
          const float v1353 = v1351 + v1352;
          const bool v1354 = 32.0f < v1353;
          const float v1355 = v1354 ? 32.0f : v1353;
          const float v1356 = fma_(v1355, (-1.44269502f), (-0.5f));
          const float v1357 = round_(v1356);
          const bool v1358 = v1357 < 127.0f;
          const float v1359 = v1358 ? v1357 : 127.0f;
          const float v1360 = fma_(v1359, 0.693145752f, v1355);
          const float v1361 = fma_(v1359, 1.42860677e-06f, v1360);
          const float v1362 = fma_((-0.0116260564f), v1361, 0.0391404852f);
          const float v1363 = fma_(v1362, v1361, (-0.167507514f));
          const float v1364 = fma_(v1363, v1361, 0.499881953f);
          const float v1365 = fma_(v1364, v1361, (-1.00000513f));
          const float v1366 = fma_(v1365, v1361, 1.0f);
          const float v1367 = ldexp_(v1366, v1359);
          const float v1368 = 1.0f + v1367;
          const float v1369 = 1.0f / v1368;
          const bool v1370 = v1004 < v998;
          if (v1370) {
            const long long v1371 = (long long)v1274;
            const long long v1372 = v1371 * 16ll;
            const long long v1373 = v1372 + (long long)v1272;
            const float v1374 = a1287;
            store(b26, v1373, v1374);
          }
          const int v1375 = v1004 + 4;
          const bool v1376 = v1375 < v998;
          if (v1376) {
            const long long v1377 = (long long)v1276;
            const long long v1378 = v1377 * 16ll;
            const long long v1379 = v1378 + (long long)v1272;
            const float v1380 = a1288;
            store(b26, v1379, v1380);
          }
          const float v1381 = load_row(r1292, v1272);
          const float v1382 = v1346 * v1381;
          const float v1383 = load_row(r1298, v1272);
          const float v1384 = v1369 * v1383;
          const bool v1385 = v1274 < 8;
          if (v1385) {
            const bool v1386 = v1004 < v998;
            if (v1386) {
              const int v1387 = mod_(v1274, 8);
              const int v1388 = v1387 * 40;
              const int v1389 = v1388 + v1272;
              store_mirrored(b27, v1389, v1382);
            }
          }
          else {
            const bool v1390 = v1004 < v998;
            if (v1390) {
              const long long v1391 = (long long)v1274;
              const long long v1392 = v1391 * 16ll;
              const long long v1393 = v1392 + (long long)v1272;
              store(b28, v1393, v1382);
            }
          }
          const bool v1394 = v1276 < 8;
          if (v1394) {
            const int v1395 = v1004 + 4;
            const bool v1396 = v1395 < v998;
            if (v1396) {
              const int v1397 = mod_(v1276, 8);
              const int v1398 = v1397 * 40;
              const int v1399 = v1398 + v1272;
              store_mirrored(b27, v1399, v1384);
            }
          }
          else {
            const int v1400 = v1004 + 4;
            const bool v1401 = v1400 < v998;
            if (v1401) {
              const long long v1402 = (long long)v1276;
              const long long v1403 = v1402 * 16ll;
              const long long v1404 = v1403 + (long long)v1272;
              store(b28, v1404, v1384);
            }
          }
        }
        else {
          const bool v1405 = v1004 < v998;
          if (v1405) {
            const int v1406 = worker * 8;
            const int v1407 = mod_(thread, 8);
            const int v1408 = v1406 + v1407;
            const int v1409 = i936 + 1;
            const long long v1410 = (long long)v1409;
            const int v1411 = load_constant(b20, v1410);
            const int v1412 = v1411 + v1004;
            float a1413;
            float a1414;
            a1413 = 0.0f;
            a1414 = 0.0f;
            const int v1416 = mod_(v1004, 8);
            const int v1417 = v1416 * 40;
            const bool v1419 = v1004 < 8;
            const long long v1420 = (long long)v1004;
            const long long v1421 = v1420 * 16ll;
            const float* const r1418 = v1419 ? b23 + v1417 : b24 + v1421;
            UNROLL("unroll 16")
            for (int i1415 = 0; i1415 < 16; ++i1415) {
              const float v1422 = load_row(r1418, i1415);
              const int v1423 = i1415 * 8;
              const int v1424 = worker * 8;
              const int v1425 = v1408 - v1424;
              const int v1426 = v1423 + v1425;
              const float v1427 = load_chip(b1, v1426);
              const float v1428 = a1413;
              const float v1429 = fma_(v1427, v1422, v1428);
              a1413 = v1429;
              const int v1430 = i1415 * 8;
              const int v1431 = worker * 8;
              const int v1432 = v1408 - v1431;
              const int v1433 = v1430 + v1432;
              const float v1434 = load_chip(b3, v1433);
              const float v1435 = a1414;
              const float v1436 = fma_(v1434, v1422, v1435);
              a1414 = v1436;
            }
            const float v1437 = a1413;
            const long long v1438 = (long long)v1412;
            const long long v1439 = v1438 * 16ll;
            const long long v1440 = v1439 + (long long)v1408;
            const float v1441 = load(b16, v1440);
            const float v1442 = v1441 + v1437;
            const float v1443 = load_constant(b25, v1408);
            const float v1444 = v1442 + v1443;
            const bool v1445 = 32.0f < v1444;
            const float v1446 = v1445 ? 32.0f : v1444;
            const float v1447 = fma_(v1446, (-1.44269502f), (-0.5f));
            const float v1448 = round_(v1447);
            const bool v1449 = v1448 < 127.0f;
            const float v1450 = v1449 ? v1448 : 127.0f;
            const float v1451 = fma_(v1450, 0.693145752f, v1446);
            const float v1452 = fma_(v1450, 1.42860677e-06f, v1451);
            const float v1453 = fma_((-0.0116260564f), v1452, 0.0391404852f);
            const float v1454 = fma_(v1453, v1452, (-0.167507514f));
            const float v1455 = fma_(v1454, v1452, 0.499881953f);
            const float v1456 = fma_(v1455, v1452, (-1.00000513f));
            const float v1457 = fma_(v1456, v1452, 1.0f);
            const float v1458 = ldexp_(v1457, v1450);
            const float v1459 = 1.0f + v1458;
            const float v1460 = 1.0f / v1459;
            const long long v1461 = (long long)v1004;
            const long long v1462 = v1461 * 16ll;
            const long long v1463 = v1462 + (long long)v1408;
            const float v1464 = a1414;
            store(b26, v1463, v1464);
            const float v1465 = load_row(r1418, v1408);
            const float v1466 = v1460 * v1465;
            const bool v1467 = v1004 < 8;
            if (v1467) {
              const int v1468 = mod_(v1004, 8);
              const int v1469 = v1468 * 40;
              const int v1470 = v1469 + v1408;
              store_mirrored(b27, v1470, v1466);
            }
            else {
              const long long v1471 = (long long)v1004;
              const long long v1472 = v1471 * 16ll;
              const long long v1473 = v1472 + (long long)v1408;
              store(b28, v1473, v1466);
            }
          }
        }
      }
    }
    sync_cluster();
    const int v1474 = i936 + 1;
    const long long v1475 = (long long)v1474;
    const int v1476 = load_constant(b19, v1475);
    const int v1477 = v1476 + 15;
    const int v1478 = div_(v1477, 16);
    for (int i1479 = 0; i1479 < v1478; ++i1479) {
      const int v1480 = i1479 * 16;
      const int v1481 = div_(thread, 8);
      const int v1482 = v1480 + v1481;
      const int v1483 = i1479 * 16;
      const int v1484 = v1476 - v1483;
      const int v1485 = v1484 + 3;
      const int v1486 = div_(v1485, 4);
      const bool v1487 = v1486 > 2;
      if (v1487) {
        const int v1488 = worker * 8;
        const int v1489 = mod_(thread, 8);
        const int v1490 = v1488 + v1489;
        const int v1491 = v1476 - 1;
        const int v1492 = min_(v1482, v1491);
        const int v1493 = v1482 + 4;
        const int v1494 = min_(v1493, v1491);
        const int v1495 = v1482 + 8;
        const int v1496 = min_(v1495, v1491);
        const int v1497 = v1482 + 12;
        const int v1498 = min_(v1497, v1491);
        const int v1499 = i936 + 1;
        const long long v1500 = (long long)v1499;
        const int v1501 = load_constant(b20, v1500);
        const int v1502 = v1501 + v1492;
        const int v1503 = i936 + 1;
        const long long v1504 = (long long)v1503;
        const int v1505 = load_constant(b20, v1504);
        const int v1506 = v1505 + v1494;
        const int v1507 = i936 + 1;
        const long long v1508 = (long long)v1507;
        const int v1509 = load_constant(b20, v1508);
        const int v1510 = v1509 + v1496;
        const int v1511 = i936 + 1;
        const long long v1512 = (long long)v1511;
        const int v1513 = load_constant(b20, v1512);
        const int v1514 = v1513 + v1498;
        float a1515;
        float a1516;
        float a1517;
        float a1518;
        a1515 = 0.0f;
        a1516 = 0.0f;
        a1517 = 0.0f;
        a1518 = 0.0f;
        const int v1520 = mod_(v1492, 8);
        const int v1521 = v1520 * 40;
        const bool v1523 = v1492 < 8;
        const long long v1524 = (long long)v1492;
        const long long v1525 = v1524 * 16ll;
        const float* const r1522 = v1523 ? b27 + v1521 : b28 + v1525;
        const int v1526 = mod_(v1494, 8);
        const int v1527 = v1526 * 40;
        const bool v1529 = v1494 < 8;
        const long long v1530 = (long long)v1494;
        const long long v1531 = v1530 * 16ll;
        const float* const r1528 = v1529 ? b27 + v1527 : b28 + v1531;
        const int v1532 = mod_(v1496, 8);
        const int v1533 = v1532 * 40;
        const bool v1535 = v1496 < 8;
        const long long v1536 = (long long)v1496;
        const long long v1537 = v1536 * 16ll;
        const float* const r1534 = v1535 ? b27 + v1533 : b28 + v1537;
        const int v1538 = mod_(v1498, 8);
        const int v1539 = v1538 * 40;
        const bool v1541 = v1498 < 8;
        const long long v1542 = (long long)v1498;
        const long long v1543 = v1542 * 16ll;
        const float* const r1540 = v1541 ? b27 + v1539 : b28 + v1543;
        UNROLL("unroll 16")
        for (int i1519 = 0; i1519 < 16; ++i1519) {
          const int v1544 = i1519 * 8;
          const int v1545 = worker * 8;
          const int v1546 = v1490 - v1545;
          const int v1547 = v1544 + v1546;
          const float v1548 = load_chip(b5, v1547);
          const float v1549 = load_row(r1522, i1519);
          const float v1550 = a1515;
          const float v1551 = fma_(v1548, v1549, v1550);
          a1515 = v1551;
          const float v1552 = load_row(r1528, i1519);
          const float v1553 = a1516;
          const float v1554 = fma_(v1548, v1552, v1553);
          a1516 = v1554;
          const float v1555 = load_row(r1534, i1519);
          const float v1556 = a1517;
          const float v1557 = fma_(v1548, v1555, v1556);
          a1517 = v1557;
          const float v1558 = load_row(r1540, i1519);
          const float v1559 = a1518;
          const float v1560 = fma_(v1548, v1558, v1559);
          a1518 = v1560;
        }
        const float v1561 = a1515;
        const float v1562 = a1516;
        const float v1563 = a1517;
        const float v1564 = a1518;
        const long long v1565 = (long long)v1502;
        const long long v1566 = v1565 * 16ll;
        const long long v1567 = v1566 + (long long)v1490;
        const float v1568 = load(b17, v1567);
        const long long v1569 = (long long)v1492;
        const long long v1570 = v1569 * 16ll;
        const long long v1571 = v1570 + (long long)v1490;
        const float v1572 = load(b26, v1571);
        const float v1573 = v1568 + v1572;
        const float v1574 = load_constant(b13, v1490);
        const float v1575 = v1573 + v1574;
        const bool v1576 = 32.0f < v1575;
        const float v1577 = v1576 ? 32.0f : v1575;
        const float v1578 = fma_(v1577, (-1.44269502f), (-0.5f));
        const float v1579 = round_(v1578);
        const bool v1580 = v1579 < 127.0f;
        const float v1581 = v1580 ? v1579 : 127.0f;
        const float v1582 = fma_(v1581, 0.693145752f, v1577);
        const float v1583 = fma_(v1581, 1.42860677e-06f, v1582);
        const float v1584 = fma_((-0.0116260564f), v1583, 0.0391404852f);
        const float v1585 = fma_(v1584, v1583, (-0.167507514f));
        const float v1586 = fma_(v1585, v1583, 0.499881953f);
        const float v1587 = fma_(v1586, v1583, (-1.00000513f));
        const float v1588 = fma_(v1587, v1583, 1.0f);
        const float v1589 = ldexp_(v1588, v1581);
        const float v1590 = 1.0f + v1589;
        const float v1591 = 1.0f / v1590;
        const long long v1592 = (long long)v1506;
        const long long v1593 = v1592 * 16ll;
        const long long v1594 = v1593 + (long long)v1490;
        const float v1595 = load(b17, v1594);
        const long long v1596 = (long long)v1494;
        const long long v1597 = v1596 * 16ll;
        const long long v1598 = v1597 + (long long)v1490;
        const float v1599 = load(b26, v1598);
        const float v1600 = v1595 + v1599;
        const float v1601 = load_constant(b13, v1490);
        const float v1602 = v1600 + v1601;
        const bool v1603 = 32.0f < v1602;
        const float v1604 = v1603 ? 32.0f : v1602;
        const float v1605 = fma_(v1604, (-1.44269502f), (-0.5f));
        const float v1606 = round_(v1605);
        const bool v1607 = v1606 < 127.0f;
        const float v1608 = v1607 ? v1606 : 127.0f;
        const float v1609 = fma_(v1608, 0.693145752f, v1604);
        const float v1610 = fma_(v1608, 1.42860677e-06f, v1609);
        const float v1611 = fma_((-0.0116260564f), v1610, 0.0391404852f);
        const float v1612 = fma_(v1611, v1610, (-0.167507514f));
        const float v1613 = fma_(v1612, v1610, 0.499881953f);
        const float v1614 = fma_(v1613, v1610, (-1.00000513f));
        const float v1615 = fma_(v1614, v1610, 1.0f);
        const float v1616 = ldexp_(v1615, v1608);
        const float v1617 = 1.0f + v1616;
        const float v1618 = 1.0f / v1617;
        const long long v1619 = (long long)v1510;
        const long long v1620 = v1619 * 16ll;
        const long long v1621 = v1620 + (long long)v1490;
        const float v1622 = load(b17, v1621);
        const long long v1623 = (long long)v1496;
        const long long v1624 = v1623 * 16ll;
        const long long v1625 = v1624 + (long long)v1490;
        const float v1626 = load(b26, v1625);
        const float v1627 = v1622 + v1626;
        const float v1628 = load_constant(b13, v1490);
        const float v1629 = v1627 + v1628;
        const bool v1630 = 32.0f < v1629;
        const float v1631 = v1630 ? 32.0f : v1629;
        const float v1632 = fma_(v1631, (-1.44269502f), (-0.5f));
        const float v1633 = round_(v1632);
        const bool v1634 = v1633 < 127.0f;
        const float v1635 = v1634 ? v1633 : 127.0f;
        const float v1636 = fma_(v1635, 0.693145752f, v1631);
        const float v1637 = fma_(v1635, 1.42860677e-06f, v1636);
        const float v1638 = fma_((-0.0116260564f), v1637, 0.0391404852f);
        const float v1639 = fma_(v1638, v1637, (-0.167507514f));
        const float v1640 = fma_(v1639, v1637, 0.499881953f);
        const float v1641 = fma_(v1640, v1637, (-1.00000513f));
        const float v1642 = fma_(v1641, v1637, 1.0f);
        const float v1643 = ldexp_(v1642, v1635);
        const float v1644 = 1.0f + v1643;
        const float v1645 = 1.0f / v1644;
        const long long v1646 = (long long)v1514;
        const long long v1647 = v1646 * 16ll;
        const long long v1648 = v1647 + (long long)v1490;
        const float v1649 = load(b17, v1648);
        const long long v1650 = (long long)v1498;
        const long long v1651 = v1650 * 16ll;
        const long long v1652 = v1651 + (long long)v1490;
        const float v1653 = load(b26, v1652);
        const float v1654 = v1649 + v1653;
        const float v1655 = load_constant(b13, v1490);
        const float v1656 = v1654 + v1655;
        const bool v1657 = 32.0f < v1656;
        const float v1658 = v1657 ? 32.0f : v1656;
        const float v1659 = fma_(v1658, (-1.44269502f), (-0.5f));
        const float v1660 = round_(v1659);
        const bool v1661 = v1660 < 127.0f;
        const float v1662 = v1661 ? v1660 : 127.0f;
        const float v1663 = fma_(v1662, 0.693145752f, v1658);
        const float v1664 = fma_(v1662, 1.42860677e-06f, v1663);
        const float v1665 = fma_((-0.0116260564f), v1664, 0.0391404852f);
        const float v1666 = fma_(v1665, v1664, (-0.167507514f));
        const float v1667 = fma_(v1666, v1664, 0.499881953f);
        const float v1668 = fma_(v1667, v1664, (-1.00000513f));
        const float v1669 = fma_(v1668, v1664, 1.0f);
        const float v1670 = ldexp_(v1669, v1662);
        const float v1671 = 1.0f + v1670;
        const float v1672 = 1.0f / v1671;
        const long long v1673 = (long long)v1502;
        const long long v1674 = v1673 * 16ll;
        const long long v1675 = v1674 + (long long)v1490;
        const float v1676 = load(b18, v1675);
        const float v1677 = v1676 + v1561;
        const float v1678 = load_constant(b14, v1490);
        const float v1679 = v1677 + v1678;
        const bool v1680 = 8.5075531f < v1679;
        const float v1681 = v1680 ? 8.5075531f : v1679;
        const bool v1682 = v1681 < (-8.5075531f);
        const float v1683 = v1682 ? (-8.5075531f) : v1681;
        const float v1684 = v1683 * v1683;
        const float v1685 = fma_(0.000115082272f, v1684, 0.0298113171f);
        const float v1686 = fma_(v1685, v1684, 1.0f);
        const float v1687 = v1683 * v1686;
        const float v1688 = fma_(1.24695214e-06f, v1684, 0.00109541777f);
        const float v1689 = fma_(v1688, v1684, 0.083333306f);
        const float v1690 = fma_(v1684, v1689, v1686);
        const float v1691 = v1687 * v1690;
        const float v1692 = v1687 * 0.25f;
        const float v1693 = v1687 * v1692;
        const float v1694 = fma_(v1690, v1690, v1693);
        const float v1695 = v1691 / v1694;
        const long long v1696 = (long long)v1506;
        const long long v1697 = v1696 * 16ll;
        const long long v1698 = v1697 + (long long)v1490;
        const float v1699 = load(b18, v1698);
        const float v1700 = v1699 + v1562;
        const float v1701 = load_constant(b14, v1490);
        const float v1702 = v1700 + v1701;
        const bool v1703 = 8.5075531f < v1702;
        const float v1704 = v1703 ? 8.5075531f : v1702;
        const bool v1705 = v1704 < (-8.5075531f);
        const float v1706 = v1705 ? (-8.5075531f) : v1704;
        const float v1707 = v1706 * v1706;
        const float v1708 = fma_(0.000115082272f, v1707, 0.0298113171f);
        const float v1709 = fma_(v1708, v1707, 1.0f);
        const float v1710 = v1706 * v1709;
        const float v1711 = fma_(1.24695214e-06f, v1707, 0.00109541777f);
        const float v1712 = fma_(v1711, v1707, 0.083333306f);
        const float v1713 = fma_(v1707, v1712, v1709);
        const float v1714 = v1710 * v1713;
        const float v1715 = v1710 * 0.25f;
        const float v1716 = v1710 * v1715;
        const float v1717 = fma_(v1713, v1713, v1716);
        const float v1718 = v1714 / v1717;
        const long long v1719 = (long long)v1510;
        const long long v1720 = v1719 * 16ll;
        const long long v1721 = v1720 + (long long)v1490;
        const float v1722 = load(b18, v1721);
        const float v1723 = v1722 + v1563;
        const float v1724 = load_constant(b14, v1490);
        const float v1725 = v1723 + v1724;
        const bool v1726 = 8.5075531f < v1725;
        const float v1727 = v1726 ? 8.5075531f : v1725;
        const bool v1728 = v1727 < (-8.5075531f);
        const float v1729 = v1728 ? (-8.5075531f) : v1727;
        const float v1730 = v1729 * v1729;
        const float v1731 = fma_(0.000115082272f, v1730, 0.0298113171f);
        const float v1732 = fma_(v1731, v1730, 1.0f);
        const float v1733 = v1729 * v1732;
        const float v1734 = fma_(1.24695214e-06f, v1730, 0.00109541777f);
        const float v1735 = fma_(v1734, v1730, 0.083333306f);
        const float v1736 = fma_(v1730, v1735, v1732);
        const float v1737 = v1733 * v1736;
        const float v1738 = v1733 * 0.25f;
        const float v1739 = v1733 * v1738;
        const float v1740 = fma_(v1736, v1736, v1739);
        const float v1741 = v1737 / v1740;
        const long long v1742 = (long long)v1514;
        const long long v1743 = v1742 * 16ll;
        const long long v1744 = v1743 + (long long)v1490;
        const float v1745 = load(b18, v1744);
        const float v1746 = v1745 + v1564;
        const float v1747 = load_constant(b14, v1490);
        const float v1748 = v1746 + v1747;
        const bool v1749 = 8.5075531f < v1748;
        const float v1750 = v1749 ? 8.5075531f : v1748;
        const bool v1751 = v1750 < (-8.5075531f);
        const float v1752 = v1751 ? (-8.5075531f) : v1750;
        const float v1753 = v1752 * v1752;
        const float v1754 = fma_(0.000115082272f, v1753, 0.0298113171f);
        const float v1755 = fma_(v1754, v1753, 1.0f);
        const float v1756 = v1752 * v1755;
        const float v1757 = fma_(1.24695214e-06f, v1753, 0.00109541777f);
        const float v1758 = fma_(v1757, v1753, 0.083333306f);
        const float v1759 = fma_(v1753, v1758, v1755);
        const float v1760 = v1756 * v1759;
        const float v1761 = v1756 * 0.25f;
        const float v1762 = v1756 * v1761;
        const float v1763 = fma_(v1759, v1759, v1762);
        const float v1764 = v1760 / v1763;
        const int v1765 = mod_(v1492, 8);
        const int v1766 = v1765 * 40;
        const bool v1768 = v1492 < 8;
        const long long v1769 = (long long)v1492;
        const long long v1770 = v1769 * 16ll;
        const float* const r1767 = v1768 ? b23 + v1766 : b24 + v1770;
        const float v1771 = load_row(r1767, v1490);
        const float v1772 = v1591 * v1771;
        const float v1773 = 1.0f - v1591;
        const float v1774 = v1773 * v1695;
        const float v1775 = v1772 + v1774;
        const int v1776 = mod_(v1494, 8);
        const int v1777 = v1776 * 40;
        const bool v1779 = v1494 < 8;
        const long long v1780 = (long long)v1494;
        const long long v1781 = v1780 * 16ll;
        const float* const r1778 = v1779 ? b23 + v1777 : b24 + v1781;
        const float v1782 = load_row(r1778, v1490);
        const float v1783 = v1618 * v1782;
        const float v1784 = 1.0f - v1618;
        const float v1785 = v1784 * v1718;
        const float v1786 = v1783 + v1785;
        const int v1787 = mod_(v1496, 8);
        const int v1788 = v1787 * 40;
        const bool v1790 = v1496 < 8;
        const long long v1791 = (long long)v1496;
        const long long v1792 = v1791 * 16ll;
        const float* const r1789 = v1790 ? b23 + v1788 : b24 + v1792;
        const float v1793 = load_row(r1789, v1490);
        const float v1794 = v1645 * v1793;
        const float v1795 = 1.0f - v1645;
        const float v1796 = v1795 * v1741;
        const float v1797 = v1794 + v1796;
        const int v1798 = mod_(v1498, 8);
        const int v1799 = v1798 * 40;
        const bool v1801 = v1498 < 8;
        const long long v1802 = (long long)v1498;
        const long long v1803 = v1802 * 16ll;
        const float* const r1800 = v1801 ? b23 + v1799 : b24 + v1803;
        const float v1804 = load_row(r1800, v1490);
        const float v1805 = v1672 * v1804;
        const float v1806 = 1.0f - v1672;
        const float v1807 = v1806 * v1764;
        const float v1808 = v1805 + v1807;
        const bool v1809 = v1482 < v1476;
        if (v1809) {
          const long long v1810 = (long long)v1502;
          const long long v1811 = v1810 * 16ll;
          const long long v1812 = v1811 + (long long)v1490;
          store(b0, v1812, v1775);
        }
        const int v1813 = v1482 + 4;
        const bool v1814 = v1813 < v1476;
        if (v1814) {
          const long long v1815 = (long long)v1506;
          const long long v1816 = v1815 * 16ll;
          const long long v1817 = v1816 + (long long)v1490;
          store(b0, v1817, v1786);
        }
        const int v1818 = v1482 + 8;
        const bool v1819 = v1818 < v1476;
        if (v1819) {
          const long long v1820 = (long long)v1510;
          const long long v1821 = v1820 * 16ll;
          const long long v1822 = v1821 + (long long)v1490;
          store(b0, v1822, v1797);
        }
        const int v1823 = v1482 + 12;
        const bool v1824 = v1823 < v1476;
        if (v1824) {
          const long long v1825 = (long long)v1514;
          const long long v1826 = v1825 * 16ll;
          const long long v1827 = v1826 + (long long)v1490;
          store(b0, v1827, v1808);
        }
        const int v1828 = i936 + 1;
        const long long v1829 = (long long)v1828;
        const int v1830 = load_constant(b20, v1829);
        const int v1831 = v1830 + 8;
        const bool v1832 = v1502 < v1831;
        if (v1832) {
          const bool v1833 = v1482 < v1476;
          if (v1833) {
            const int v1834 = mod_(v1502, 8);
            const int v1835 = v1834 * 40;
            const int v1836 = v1835 + v1490;
            store_mirrored(b8, v1836, v1775);
          }
        }
        const int v1837 = i936 + 1;
        const long long v1838 = (long long)v1837;
        const int v1839 = load_constant(b20, v1838);
        const int v1840 = v1839 + 8;
        const bool v1841 = v1506 < v1840;
        if (v1841) {
          const int v1842 = v1482 + 4;
          const bool v1843 = v1842 < v1476;
          if (v1843) {
            const int v1844 = mod_(v1506, 8);
            const int v1845 = v1844 * 40;
            const int v1846 = v1845 + v1490;
            store_mirrored(b8, v1846, v1786);
          }
        }
        const int v1847 = i936 + 1;
        const long long v1848 = (long long)v1847;
        const int v1849 = load_constant(b20, v1848);
        const int v1850 = v1849 + 8;
        const bool v1851 = v1510 < v1850;
        if (v1851) {
          const int v1852 = v1482 + 8;
          const bool v1853 = v1852 < v1476;
          if (v1853) {
            const int v1854 = mod_(v1510, 8);
            const int v1855 = v1854 * 40;
            const int v1856 = v1855 + v1490;
            store_mirrored(b8, v1856, v1797);
          }
        }
        const int v1857 = i936 + 1;
        const long long v1858 = (long long)v1857;
        const int v1859 = load_constant(b20, v1858);
        const int v1860 = v1859 + 8;
        const bool v1861 = v1514 < v1860;
        if (v1861) {
          const int v1862 = v1482 + 12;
          const bool v1863 = v1862 < v1476;
          if (v1863) {
            const int v1864 = mod_(v1514, 8);
            const int v1865 = v1864 * 40;
            const int v1866 = v1865 + v1490;
            store_mirrored(b8, v1866, v1808);
          }
        }
      }
      else {
        const bool v1867 = v1486 > 1;
        if (v1867) {
          const int v1868 = worker * 8;
          const int v1869 = mod_(thread, 8);
          const int v1870 = v1868 + v1869;
          const int v1871 = v1476 - 1;
          const int v1872 = min_(v1482, v1871);
          const int v1873 = v1482 + 4;
          const int v1874 = min_(v1873, v1871);
          const int v1875 = i936 + 1;
          const long long v1876 = (long long)v1875;
          const int v1877 = load_constant(b20, v1876);
          const int v1878 = v1877 + v1872;
          const int v1879 = i936 + 1;
          const long long v1880 = (long long)v1879;
          const int v1881 = load_constant(b20, v1880);
          const int v1882 = v1881 + v1874;
          float a1883;
          float a1884;
          a1883 = 0.0f;
          a1884 = 0.0f;
          const int v1886 = mod_(v1872, 8);
          const int v1887 = v1886 * 40;
          const bool v1889 = v1872 < 8;
          const long long v1890 = (long long)v1872;
          const long long v1891 = v1890 * 16ll;
          const float* const r1888 = v1889 ? b27 + v1887 : b28 + v1891;
          const int v1892 = mod_(v1874, 8);
          const int v1893 = v1892 * 40;
          const bool v1895 = v1874 < 8;
          const long long v1896 = (long long)v1874;
          const long long v1897 = v1896 * 16ll;
          const float* const r1894 = v1895 ? b27 + v1893 : b28 + v1897;
          UNROLL("unroll 16")
          for (int i1885 = 0; i1885 < 16; ++i1885) {
            const int v1898 = i1885 * 8;
            const int v1899 = worker * 8;
            const int v1900 = v1870 - v1899;
            const int v1901 = v1898 + v1900;
            const float v1902 = load_chip(b5, v1901);
            const float v1903 = load_row(r1888, i1885);
            const float v1904 = a1883;
            const float v1905 = fma_(v1902, v1903, v1904);
            a1883 = v1905;
            const float v1906 = load_row(r1894, i1885);
            const float v1907 = a1884;
            const float v1908 = fma_(v1902, v1906, v1907);
            a1884 = v1908;
          }
          const float v1909 = a1883;
          const float v1910 = a1884;
          const long long v1911 = (long long)v1878;
          const long long v1912 = v1911 * 16ll;
          const long long v1913 = v1912 + (long long)v1870;
          const float v1914 = load(b17, v1913);
          const long long v1915 = (long long)v1872;
          const long long v1916 = v1915 * 16ll;
          const long long v1917 = v1916 + (long long)v1870;
          const float v1918 = load(b26, v1917);
          const float v1919 = v1914 + v1918;
          const float v1920 = load_constant(b13, v1870);
          const float v1921 = v1919 + v1920;
          const bool v1922 = 32.0f < v1921;
          const float v1923 = v1922 ? 32.0f : v1921;
          const float v1924 = fma_(v1923, (-1.44269502f), (-0.5f));
          const float v1925 = round_(v1924);
          const bool v1926 = v1925 < 127.0f;
          const float v1927 = v1926 ? v1925 : 127.0f;
          const float v1928 = fma_(v1927, 0.693145752f, v1923);
          const float v1929 = fma_(v1927, 1.42860677e-06f, v1928);
          const float v1930 = fma_((-0.0116260564f), v1929, 0.0391404852f);
          const float v1931 = fma_(v1930, v1929, (-0.167507514f));
          const float v1932 = fma_(v1931, v1929, 0.499881953f);
          const float v1933 = fma_(v1932, v1929, (-1.00000513f));
          const float v1934 = fma_(v1933, v1929, 1.0f);
          const float v1935 = ldexp_(v1934, v1927);
          const float v1936 = 1.0f + v1935;
          const float v1937 = 1.0f / v1936;
          const long long v1938 = (long long)v1882;
          const long long v1939 = v1938 * 16ll;
          const long long v1940 = v1939 + (long long)v1870;
          const float v1941 = load(b17, v1940);
          const long long v1942 = (long long)v1874;
          const long long v1943 = v1942 * 16ll;
          const long long v1944 = v1943 + (long long)v1870;
          const float v1945 = load(b26, v1944);
          const float v1946 = v1941 + v1945;
          const float v1947 = load_constant(b13, v1870);
          const float v1948 = v1946 + v1947;
          const bool v1949 = 32.0f < v1948;
          const float v1950 = v1949 ? 32.0f : v1948;
          const float v1951 = fma_(v1950, (-1.44269502f), (-0.5f));
          const float v1952 = round_(v1951);
          const bool v1953 = v1952 < 127.0f;
          const float v1954 = v1953 ? v1952 : 127.0f;
          const float v1955 = fma_(v1954, 0.693145752f, v1950);
          const float v1956 = fma_(v1954, 1.42860677e-06f, v1955);
          const float v1957 = fma_((-0.0116260564f), v1956, 0.0391404852f);
          const float v1958 = fma_(v1957, v1956, (-0.167507514f));
          const float v1959 = fma_(v1958, v1956, 0.499881953f);
          const float v1960 = fma_(v1959, v1956, (-1.00000513f));
          const float v1961 = fma_(v1960, v1956, 1.0f);
          const float v1962 = ldexp_(v1961, v1954);
          const float v1963 = 1.0f + v1962;
          const float v1964 = 1.0f / v1963;
          const long long v1965 = (long long)v1878;
          const long long v1966 = v1965 * 16ll;
          const long long v1967 = v1966 + (long long)v1870;
          const float v1968 = load(b18, v1967);
          const float v1969 = v1968 + v1909;
          const float v1970 = load_constant(b14, v1870);
          const float v1971 = v1969 + v1970;
          const bool v1972 = 8.5075531f < v1971;
          const float v1973 = v1972 ? 8.5075531f : v1971;
          const bool v1974 = v1973 < (-8.5075531f);
          const float v1975 = v1974 ? (-8.5075531f) : v1973;
          const float v1976 = v1975 * v1975;
          const float v1977 = fma_(0.000115082272f, v1976, 0.0298113171f);
          const float v1978 = fma_(v1977, v1976, 1.0f);
          const float v1979 = v1975 * v1978;
          const float v1980 = fma_(1.24695214e-06f, v1976, 0.00109541777f);
          const float v1981 = fma_(v1980, v1976, 0.083333306f);
          const float v1982 = fma_(v1976, v1981, v1978);
          const float v1983 = v1979 * v1982;
          const float v1984 = v1979 * 0.25f;
          const float v1985 = v1979 * v1984;
          const float v1986 = fma_(v1982, v1982, v1985);
          const float v1987 = v1983 / v1986;
          const long long v1988 = (long long)v1882;
          const long long v1989 = v1988 * 16ll;
          const long long v1990 = v1989 + (long long)v1870;
          const float v1991 = load(b18, v1990);
          const float v1992 = v1991 + v1910;
          const float v1993 = load_constant(b14, v1870);
          const float v1994 = v1992 + v1993;
          const bool v1995 = 8.5075531f < v1994;
          const float v1996 = v1995 ? 8.5075531f : v1994;
          const bool v1997 = v1996 < (-8.5075531f);
          const float v1998 = v1997 ? (-8.5075531f) : v1996;
          const float v1999 = v1998 * v1998;
          const float v2000 = fma_(0.000115082272f, v1999, 0.0298113171f);
          const float v2001 = fma_(v2000, v1999, 1.0f);
          const float v2002 = v1998 * v2001;
          const float v2003 = fma_(1.24695214e-06f, v1999, 0.00109541777f);
          const float v2004 = fma_(v2003, v1999, 0.083333306f);
          const float v2005 = fma_(v1999, v2004, v2001);
          const float v2006 = v2002 * v2005;
          const float v2007 = v2002 * 0.25f;
          const float v2008 = v2002 * v2007;
          const float v2009 = fma_(v2005, v2005, v2008);
          const float v2010 = v2006 / v2009;
          const int v2011 = mod_(v1872, 8);
          const int v2012 = v2011 * 40;
          const bool v2014 = v1872 < 8;
          const long long v2015 = (long long)v1872;
          const long long v2016 = v2015 * 16ll;
          const float* const r2013 = v2014 ? b23 + v2012 : b24 + v2016;
          const float v2017 = load_row(r2013, v1870);
          const float v2018 = v1937 * v2017;
          const float v2019 = 1.0f - v1937;
          const float v2020 = v2019 * v1987;
          const float v2021 = v2018 + v2020;
          const int v2022 = mod_(v1874, 8);
          const int v2023 = v2022 * 40;
          const bool v2025 = v1874 < 8;
          const long long v2026 = (long long)v1874;
          const long long v2027 = v2026 * 16ll;
          const float* const r2024 = v2025 ? b23 + v2023 : b24 + v2027;
          const float v2028 = load_row(r2024, v1870);
          const float v2029 = v1964 * v2028;
          const float v2030 = 1.0f - v1964;
          const float v2031 = v2030 * v2010;
          const float v2032 = v2029 + v2031;
          const bool v2033 = v1482 < v1476;
          if (v2033) {
            const long long v2034 = (long long)v1878;
            const long long v2035 = v2034 * 16ll;
            const long long v2036 = v2035 + (long long)v1870;
            store(b0, v2036, v2021);
          }
          const int v2037 = v1482 + 4;
          const bool v2038 = v2037 < v1476;
          if (v2038) {
            const long long v2039 = (long long)v1882;
            const long long v2040 = v2039 * 16ll;
            const long long v2041 = v2040 + (long long)v1870;
            store(b0, v2041, v2032);
          }
          const int v2042 = i936 + 1;
          const long long v2043 = (long long)v2042;
          const int v2044 = load_constant(b20, v2043);
          const int v2045 = v2044 + 8;
          const bool v2046 = v1878 < v2045;
          if (v2046) {
            const bool v2047 = v1482 < v1476;
            if (v2047) {
              const int v2048 = mod_(v1878, 8);
              const int v2049 = v2048 * 40;
              const int v2050 = v2049 + v1870;
              store_mirrored(b8, v2050, v2021);
            }
          }
          const int v2051 = i936 + 1;
          const long long v2052 = (long long)v2051;
          const int v2053 = load_constant(b20, v2052);
          const int v2054 = v2053 + 8;
          const bool v2055 = v1882 < v2054;
          if (v2055) {
            const int v2056 = v1482 + 4;
            const bool v2057 = v2056 < v1476;
            if (v2057) {
              const int v2058 = mod_(v1882, 8);
              const int v2059 = v2058 * 40;
              const int v2060 = v2059 + v1870;
              store_mirrored(b8, v2060, v2032);
            }
          }
        }
        else {
          const bool v2061 = v1482 < v1476;
          if (v2061) {
            const int v2062 = worker * 8;
            const int v2063 = mod_(thread, 8);
            const int v2064 = v2062 + v2063;
            const int v2065 = i936 + 1;
            const long long v2066 = (long long)v2065;
            const int v2067 = load_constant(b20, v2066);
            const int v2068 = v2067 + v1482;
            float a2069;
            a2069 = 0.0f;
            const int v2071 = mod_(v1482, 8);
            const int v2072 = v2071 * 40;
            const bool v2074 = v1482 < 8;
            const long long v2075 = (long long)v1482;
            const long long v2076 = v2075 * 16ll;
            const float* const r2073 = v2074 ? b27 + v2072 : b28 + v2076;
            UNROLL("unroll 16")
            for (int i2070 = 0; i2070 < 16; ++i2070) {
              const int v2077 = i2070 * 8;
              const int v2078 = worker * 8;
              const int v2079 = v2064 - v2078;
              const int v2080 = v2077 + v2079;
              const float v2081 = load_chip(b5, v2080);
              const float v2082 = load_row(r2073, i2070);
              const float v2083 = a2069;
              const float v2084 = fma_(v2081, v2082, v2083);
              a2069 = v2084;
            }
            const float v2085 = a2069;
            const long long v2086 = (long long)v2068;
            const long long v2087 = v2086 * 16ll;
            const long long v2088 = v2087 + (long long)v2064;
            const float v2089 = load(b17, v2088);
            const long long v2090 = (long long)v1482;
            const long long v2091 = v2090 * 16ll;
            const long long v2092 = v2091 + (long long)v2064;
            const float v2093 = load(b26, v2092);
            const float v2094 = v2089 + v2093;
            const float v2095 = load_constant(b13, v2064);
            const float v2096 = v2094 + v2095;
            const bool v2097 = 32.0f < v2096;
            const float v2098 = v2097 ? 32.0f : v2096;
            const float v2099 = fma_(v2098, (-1.44269502f), (-0.5f));
            const float v2100 = round_(v2099);
            const bool v2101 = v2100 < 127.0f;
            const float v2102 = v2101 ? v2100 : 127.0f;
            const float v2103 = fma_(v2102, 0.693145752f, v2098);
            const float v2104 = fma_(v2102, 1.42860677e-06f, v2103);
            const float v2105 = fma_((-0.0116260564f), v2104, 0.0391404852f);
            const float v2106 = fma_(v2105, v2104, (-0.167507514f));
            const float v2107 = fma_(v2106, v2104, 0.499881953f);
            const float v2108 = fma_(v2107, v2104, (-1.00000513f));
            const float v2109 = fma_(v2108, v2104, 1.0f);
            const float v2110 = ldexp_(v2109, v2102);
            const float v2111 = 1.0f + v2110;
            const float v2112 = 1.0f / v2111;
            const long long v2113 = (long long)v2068;
            const long long v2114 = v2113 * 16ll;
            const long long v2115 = v2114 + (long long)v2064;
            const float v2116 = load(b18, v2115);
            const float v2117 = v2116 + v2085;
            const float v2118 = load_constant(b14, v2064);
            const float v2119 = v2117 + v2118;
            const bool v2120 = 8.5075531f < v2119;
            const float v2121 = v2120 ? 8.5075531f : v2119;
            const bool v2122 = v2121 < (-8.5075531f);
            const float v2123 = v2122 ? (-8.5075531f) : v2121;
            const float v2124 = v2123 * v2123;
            const float v2125 = fma_(0.000115082272f, v2124, 0.0298113171f);
            const float v2126 = fma_(v2125, v2124, 1.0f);
            const float v2127 = v2123 * v2126;
            const float v2128 = fma_(1.24695214e-06f, v2124, 0.00109541777f);
            const float v2129 = fma_(v2128, v2124, 0.083333306f);
            const float v2130 = fma_(v2124, v2129, v2126);
            const float v2131 = v2127 * v2130;
            const float v2132 = v2127 * 0.25f;
            const float v2133 = v2127 * v2132;
            const float v2134 = fma_(v2130, v2130, v2133);
            const float v2135 = v2131 / v2134;
            const int v2136 = mod_(v1482, 8);
            const int v2137 = v2136 * 40;
            const bool v2139 = v1482 < 8;
            const long long v2140 = (long long)v1482;
            const long long v2141 = v2140 * 16ll;
            const float* const r2138 = v2139 ? b23 + v2137 : b24 + v2141;
            const float v2142 = load_row(r2138, v2064);
            const float v2143 = v2112 * v2142;
            const float v2144 = 1.0f - v2112;
            const float v2145 = v2144 * v2135;
            const float v2146 = v2143 + v2145;
            const long long v2147 = (long long)v2068;
            const long long v2148 = v2147 * 16ll;
            const long long v2149 = v2148 + (long long)v2064;
            store(b0, v2149, v2146);
            const int v2150 = i936 + 1;
            const long long v2151 = (long long)v2150;
            const int v2152 = load_constant(b20, v2151);
            const int v2153 = v2152 + 8;
            const bool v2154 = v2068 < v2153;
            if (v2154) {
              const int v2155 = mod_(v2068, 8);
              const int v2156 = v2155 * 40;
              const int v2157 = v2156 + v2064;
              store_mirrored(b8, v2157, v2146);
            }
          }
        }
      }
    }
    sync_cluster();
  }
  sync_cluster();
}
