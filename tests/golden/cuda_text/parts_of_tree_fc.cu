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
  float* const b1 = (float*)(chip + 0);
  const float* const b2 = (const float*)table[2];
  const int* const b3 = (const int*)table[3];
  const float* const b4 = (const float*)table[4];
  const int* const b5 = (const int*)table[5];
  const int* const b6 = (const int*)table[6];
  const int* const b7 = (const int*)table[7];
  const int* const b8 = (const int*)table[8];
  const int* const b9 = (const int*)table[9];
  const float* const b10 = (const float*)table[10];
  const int v0 = 159 - thread;
  const int v1 = div_(v0, 32);
  for (int i2 = 0; i2 < v1; ++i2) {
    const int v3 = i2 * 32;
    const int v4 = v3 + thread;
    const int v5 = div_(v4, 4);
    const int v6 = mod_(v5, 8);
    const int v7 = div_(v6, 8);
    const int v8 = v7 * 128;
    const int v9 = div_(v4, 64);
    const int v10 = mod_(v9, 2);
    const int v11 = v10 * 64;
    const int v12 = v8 + v11;
    const int v13 = mod_(v4, 4);
    const int v14 = div_(v4, 32);
    const int v15 = mod_(v14, 2);
    const int v16 = v15 * 4;
    const int v17 = v13 + v16;
    const int v18 = div_(v17, 4);
    const int v19 = v18 * 32;
    const int v20 = v12 + v19;
    const int v21 = mod_(v6, 8);
    const int v22 = v21 * 4;
    const int v23 = v20 + v22;
    const int v24 = mod_(v17, 4);
    const int v25 = v23 + v24;
    const int v26 = div_(v6, 8);
    const int v27 = v26 * 128;
    const int v28 = v10 * 64;
    const int v29 = v27 + v28;
    const int v30 = div_(v17, 4);
    const int v31 = v30 * 32;
    const int v32 = v29 + v31;
    const int v33 = mod_(v6, 8);
    const int v34 = v33 * 4;
    const int v35 = v32 + v34;
    const int v36 = mod_(v17, 4);
    const int v37 = v35 + v36;
    const float v38 = load_constant(b2, v37);
    store_chip(b1, v25, v38);
  }
  const bool v39 = thread < 8;
  if (v39) {
    const long long v40 = (long long)0;
    const int v41 = load_constant(b3, v40);
    const long long v42 = (long long)v41;
    const long long v43 = v42 * 16ll;
    const long long v44 = v43 + (long long)thread;
    store(b0, v44, 0.0f);
  }
  const long long v45 = (long long)0;
  const int v46 = load_constant(b3, v45);
  const long long v47 = (long long)1;
  const int v48 = load_constant(b3, v47);
  const int v49 = v46 - v48;
  const int v50 = div_(thread, 8);
  const int v51 = v49 - v50;
  const int v52 = v51 + 3;
  const int v53 = div_(v52, 4);
  for (int i54 = 0; i54 < v53; ++i54) {
    const int v55 = mod_(thread, 8);
    const long long v56 = (long long)1;
    const int v57 = load_constant(b3, v56);
    const int v58 = i54 * 4;
    const int v59 = v58 + v50;
    const int v60 = v57 + v59;
    const long long v61 = (long long)v60;
    const long long v62 = v61 * 16ll;
    const long long v63 = v62 + (long long)v55;
    const long long v64 = (long long)v60;
    const int v65 = load_constant(b5, v64);
    const int v66 = v65 * 16;
    const int v67 = v66 + v55;
    const float v68 = load_constant(b4, v67);
    store(b0, v63, v68);
  }
  sync_block();
  const long long v69 = (long long)2;
  const int v70 = load_constant(b3, v69);
  const int v71 = v70 - 1;
  const int v72 = max_(v71, 0);
  for (int i73 = 0; i73 < v72; ++i73) {
    const int v74 = i73 + 1;
    const long long v75 = (long long)v74;
    const int v76 = load_constant(b6, v75);
    const int v77 = v76 + 3;
    const int v78 = div_(v77, 4);
    for (int i79 = 0; i79 < v78; ++i79) {
      const int v80 = i79 * 4;
      const int v81 = i79 * 4;
      const int v82 = v76 - v81;
      const bool v83 = v82 > 2;
      if (v83) {
        const int v84 = div_(thread, 4);
        float a85[4];
        float a86;
        const int v87 = v76 - 1;
        const int v88 = min_(v80, v87);
        const int v89 = v80 + 1;
        const int v90 = min_(v89, v87);
        const int v91 = v80 + 2;
        const int v92 = min_(v91, v87);
        const int v93 = v80 + 3;
        const int v94 = min_(v93, v87);
        const int v95 = i73 + 1;
        const long long v96 = (long long)v95;
        const int v97 = load_constant(b7, v96);
        const int v98 = v97 + v88;
        const int v99 = i73 + 1;
        const long long v100 = (long long)v99;
        const int v101 = load_constant(b7, v100);
        const int v102 = v101 + v90;
        const int v103 = i73 + 1;
        const long long v104 = (long long)v103;
        const int v105 = load_constant(b7, v104);
        const int v106 = v105 + v92;
        const int v107 = i73 + 1;
        const long long v108 = (long long)v107;
        const int v109 = load_constant(b7, v108);
        const int v110 = v109 + v94;
        a85[0] = 0.0f;
        a85[1] = 0.0f;
        a85[2] = 0.0f;
        a85[3] = 0.0f;
        UNROLL("unroll 16")
        for (int i111 = 0; i111 < 2; ++i111) {
          const int v112 = div_(v84, 8);
          const int v113 = v112 * 128;
          const int v114 = mod_(thread, 4);
          const int v115 = i111 * 4;
          const int v116 = v114 + v115;
          const int v117 = div_(v116, 4);
          const int v118 = v117 * 32;
          const int v119 = v113 + v118;
          const int v120 = mod_(v84, 8);
          const int v121 = v120 * 4;
          const int v122 = v119 + v121;
          const int v123 = mod_(v116, 4);
          const int v124 = v122 + v123;
          const float v125 = load_chip(b1, v124);
          const long long v126 = (long long)v98;
          const int v127 = load_constant(b8, v126);
          const long long v128 = (long long)v127;
          const long long v129 = v128 * 16ll;
          const long long v130 = v129 + (long long)v114 + (long long)v115;
          const float v131 = load(b0, v130);
          const float v132 = a85[0];
          const float v133 = fma_(v125, v131, v132);
          a85[0] = v133;
          const long long v134 = (long long)v102;
          const int v135 = load_constant(b8, v134);
          const long long v136 = (long long)v135;
          const long long v137 = v136 * 16ll;
          const long long v138 = v137 + (long long)v114 + (long long)v115;
          const float v139 = load(b0, v138);
          const float v140 = a85[1];
          const float v141 = fma_(v125, v139, v140);
          a85[1] = v141;
          const long long v142 = (long long)v106;
          const int v143 = load_constant(b8, v142);
          const long long v144 = (long long)v143;
          const long long v145 = v144 * 16ll;
          const long long v146 = v145 + (long long)v114 + (long long)v115;
          const float v147 = load(b0, v146);
          const float v148 = a85[2];
          const float v149 = fma_(v125, v147, v148);
          a85[2] = v149;
          const long long v150 = (long long)v110;
          const int v151 = load_constant(b8, v150);
          const long long v152 = (long long)v151;
          const long long v153 = v152 * 16ll;
          const long long v154 = v153 + (long long)v114 + (long long)v115;
          const float v155 = load(b0, v154);
          const float v156 = a85[3];
          const float v157 = fma_(v125, v155, v156);
          a85[3] = v157;
        }
        UNROLL("unroll 16")
        for (int i158 = 0; i158 < 2; ++i158) {
          const int v159 = div_(v84, 8);
          const int v160 = v159 * 128;
          const int v161 = v160 + 64;
          const int v162 = mod_(thread, 4);
          const int v163 = i158 * 4;
          const int v164 = v162 + v163;
          const int v165 = div_(v164, 4);
          const int v166 = v165 * 32;
          const int v167 = v161 + v166;
          const int v168 = mod_(v84, 8);
          const int v169 = v168 * 4;
          const int v170 = v167 + v169;
          const int v171 = mod_(v164, 4);
          const int v172 = v170 + v171;
          const float v173 = load_chip(b1, v172);
          const long long v174 = (long long)v98;
          const int v175 = load_constant(b9, v174);
          const long long v176 = (long long)v175;
          const long long v177 = v176 * 16ll;
          const long long v178 = v177 + (long long)v162 + (long long)v163;
          const float v179 = load(b0, v178);
          const float v180 = a85[0];
          const float v181 = fma_(v173, v179, v180);
          a85[0] = v181;
          const long long v182 = (long long)v102;
          const int v183 = load_constant(b9, v182);
          const long long v184 = (long long)v183;
          const long long v185 = v184 * 16ll;
          const long long v186 = v185 + (long long)v162 + (long long)v163;
          const float v187 = load(b0, v186);
          const float v188 = a85[1];
          const float v189 = fma_(v173, v187, v188);
          a85[1] = v189;
          const long long v190 = (long long)v106;
          const int v191 = load_constant(b9, v190);
          const long long v192 = (long long)v191;
          const long long v193 = v192 * 16ll;
          const long long v194 = v193 + (long long)v162 + (long long)v163;
          const float v195 = load(b0, v194);
          const float v196 = a85[2];
          const float v197 = fma_(v173, v195, v196);
          a85[2] = v197;
          const long long v198 = (long long)v110;
          const int v199 = load_constant(b9, v198);
          const long long v200 = (long long)v199;
          const long long v201 = v200 * 16ll;
          const long long v202 = v201 + (long long)v162 + (long long)v163;
          const float v203 = load(b0, v202);
          const float v204 = a85[3];
          const float v205 = fma_(v173, v203, v204);
          a85[3] = v205;
        }
        a86 = join<4, 4>(a85);
        const int v206 = mod_(thread, 4);
        const int v207 = v80 + v206;
        const bool v208 = v207 < v76;
        if (v208) {
          const int v209 = i73 + 1;
          const long long v210 = (long long)v209;
          const int v211 = load_constant(b7, v210);
          const int v212 = v211 + v207;
          const long long v213 = (long long)v212;
          const long long v214 = v213 * 16ll;
          const long long v215 = v214 + (long long)v84;
          const float v216 = a86;
          const float v217 = load_constant(b10, v84);
          const float v218 = v216 + v217;
          const float v219 = relu_(v218);
          store(b0, v215, v219);
        }
      }
      else {
        const bool v220 = v82 > 1;
        if (v220) {
          const int v221 = div_(thread, 4);
          float a222[2];
          float a223;
          const int v224 = v76 - 1;
          const int v225 = min_(v80, v224);
          const int v226 = v80 + 1;
          const int v227 = min_(v226, v224);
          const int v228 = i73 + 1;
          const long long v229 = (long long)v228;
          const int v230 = load_constant(b7, v229);
          const int v231 = v230 + v225;
          const int v232 = i73 + 1;
          const long long v233 = (long long)v232;
          const int v234 = load_constant(b7, v233);
          const int v235 = v234 + v227;
          a222[0] = 0.0f;
          a222[1] = 0.0f;
          UNROLL("unroll 16")
          for (int i236 = 0; i236 < 2; ++i236) {
            const int v237 = div_(v221, 8);
            const int v238 = v237 * 128;
            const int v239 = mod_(thread, 4);
            const int v240 = i236 * 4;
            const int v241 = v239 + v240;
            const int v242 = div_(v241, 4);
            const int v243 = v242 * 32;
            const int v244 = v238 + v243;
            const int v245 = mod_(v221, 8);
            const int v246 = v245 * 4;
            const int v247 = v244 + v246;
            const int v248 = mod_(v241, 4);
            const int v249 = v247 + v248;
            const float v250 = load_chip(b1, v249);
            const long long v251 = (long long)v231;
            const int v252 = load_constant(b8, v251);
            const long long v253 = (long long)v252;
            const long long v254 = v253 * 16ll;
            const long long v255 = v254 + (long long)v239 + (long long)v240;
            const float v256 = load(b0, v255);
            const float v257 = a222[0];
            const float v258 = fma_(v250, v256, v257);
            a222[0] = v258;
            const long long v259 = (long long)v235;
            const int v260 = load_constant(b8, v259);
            const long long v261 = (long long)v260;
            const long long v262 = v261 * 16ll;
            const long long v263 = v262 + (long long)v239 + (long long)v240;
            const float v264 = load(b0, v263);
            const float v265 = a222[1];
            const float v266 = fma_(v250, v264, v265);
            a222[1] = v266;
          }
          UNROLL("unroll 16")
          for (int i267 = 0; i267 < 2; ++i267) {
            const int v268 = div_(v221, 8);
            const int v269 = v268 * 128;
            const int v270 = v269 + 64;
            const int v271 = mod_(thread, 4);
            const int v272 = i267 * 4;
            const int v273 = v271 + v272;
            const int v274 = div_(v273, 4);
            const int v275 = v274 * 32;
            const int v276 = v270 + v275;
            const int v277 = mod_(v221, 8);
            const int v278 = v277 * 4;
            const int v279 = v276 + v278;
            const int v280 = mod_(v273, 4);
            const int v281 = v279 + v280;
            const float v282 = load_chip(b1, v281);
            const long long v283 = (long long)v231;
            const int v284 = load_constant(b9, v283);
            const long long v285 = (long long)v284;
            const long long v286 = v285 * 16ll;
            const long long v287 = v286 + (long long)v271 + (long long)v272;
            const float v288 = load(b0, v287);
            const float v289 = a222[0];
            const float v290 = fma_(v282, v288, v289);
            a222[0] = v290;
            const long long v291 = (long long)v235;
            const int v292 = load_constant(b9, v291);
            const long long v293 = (long long)v292;
            const long long v294 = v293 * 16ll;
            const long long v295 = v294 + (long long)v271 + (long long)v272;
            const float v296 = load(b0, v295);
            const float v297 = a222[1];
            const float v298 = fma_(v282, v296, v297);
            a222[1] = v298;
          }
          a223 = join<4, 2>(a222);
          const int v299 = mod_(thread, 4);
          const int v300 = v80 + v299;
          const bool v301 = v299 < 2;
          const bool v302 = v300 < v76;
          const bool v303 = v301 && v302;
          if (v303) {
            const int v304 = i73 + 1;
            const long long v305 = (long long)v304;
            const int v306 = load_constant(b7, v305);
            const int v307 = v306 + v300;
            const long long v308 = (long long)v307;
            const long long v309 = v308 * 16ll;
            const long long v310 = v309 + (long long)v221;
            const float v311 = a223;
            const float v312 = load_constant(b10, v221);
            const float v313 = v311 + v312;
            const float v314 = relu_(v313);
            store(b0, v310, v314);
          }
        }
        else {
          const int v315 = div_(thread, 4);
          float a316[1];
          float a317;
          const int v318 = v76 - 1;
          const int v319 = min_(v80, v318);
          const int v320 = i73 + 1;
          const long long v321 = (long long)v320;
          const int v322 = load_constant(b7, v321);
          const int v323 = v322 + v319;
          a316[0] = 0.0f;
          UNROLL("unroll 16")
          for (int i324 = 0; i324 < 2; ++i324) {
            const int v325 = div_(v315, 8);
            const int v326 = v325 * 128;
            const int v327 = mod_(thread, 4);
            const int v328 = i324 * 4;
            const int v329 = v327 + v328;
            const int v330 = div_(v329, 4);
            const int v331 = v330 * 32;
            const int v332 = v326 + v331;
            const int v333 = mod_(v315, 8);
            const int v334 = v333 * 4;
            const int v335 = v332 + v334;
            const int v336 = mod_(v329, 4);
            const int v337 = v335 + v336;
            const float v338 = load_chip(b1, v337);
            const long long v339 = (long long)v323;
            const int v340 = load_constant(b8, v339);
            const long long v341 = (long long)v340;
            const long long v342 = v341 * 16ll;
            const long long v343 = v342 + (long long)v327 + (long long)v328;
            const float v344 = load(b0, v343);
            const float v345 = a316[0];
            const float v346 = fma_(v338, v344, v345);
            a316[0] = v346;
          }
          UNROLL("unroll 16")
          for (int i347 = 0; i347 < 2; ++i347) {
            const int v348 = div_(v315, 8);
            const int v349 = v348 * 128;
            const int v350 = v349 + 64;
            const int v351 = mod_(thread, 4);
            const int v352 = i347 * 4;
            const int v353 = v351 + v352;
            const int v354 = div_(v353, 4);
            const int v355 = v354 * 32;
            const int v356 = v350 + v355;
            const int v357 = mod_(v315, 8);
            const int v358 = v357 * 4;
            const int v359 = v356 + v358;
            const int v360 = mod_(v353, 4);
            const int v361 = v359 + v360;
            const float v362 = load_chip(b1, v361);
            const long long v363 = (long long)v323;
            const int v364 = load_constant(b9, v363);
            const long long v365 = (long long)v364;
            const long long v366 = v365 * 16ll;
            const long long v367 = v366 + (long long)v351 + (long long)v352;
            const float v368 = load(b0, v367);
            const float v369 = a316[0];
            const float v370 = fma_(v362, v368, v369);
            a316[0] = v370;
          }
          a317 = join<4, 1>(a316);
          const int v371 = mod_(thread, 4);
          const bool v372 = v371 < 1;
          const bool v373 = v80 < v76;
          const bool v374 = v372 && v373;
          if (v374) {
            const int v375 = i73 + 1;
            const long long v376 = (long long)v375;
            const int v377 = load_constant(b7, v376);
            const int v378 = v377 + v80;
            const long long v379 = (long long)v378;
            const long long v380 = v379 * 16ll;
            const long long v381 = v380 + (long long)v315;
            const float v382 = a317;
            const float v383 = load_constant(b10, v315);
            const float v384 = v382 + v383;
            const float v385 = relu_(v384);
            store(b0, v381, v385);
          }
        }
      }
    }
    sync_block();
  }
}
