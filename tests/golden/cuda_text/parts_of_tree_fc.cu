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
  UNROLL("unroll 8")
  for (int i0 = 0; i0 < 1; ++i0) {
    const int v1 = i0 * 32;
    const int v2 = v1 + thread;
    const int v3 = v2 * 4;
    store_chip_piece(b1, v3, load_piece(b2, v3));
  }
  const bool v4 = thread < 8;
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
  const int v15 = div_(thread, 8);
  const int v16 = v14 - v15;
  const int v17 = v16 + 3;
  const int v18 = div_(v17, 4);
  for (int i19 = 0; i19 < v18; ++i19) {
    const int v20 = mod_(thread, 8);
    const long long v21 = (long long)1;
    const int v22 = load_constant(b3, v21);
    const int v23 = i19 * 4;
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
    const int v42 = v41 + 3;
    const int v43 = div_(v42, 4);
    for (int i44 = 0; i44 < v43; ++i44) {
      const int v45 = i44 * 4;
      const int v46 = i44 * 4;
      const int v47 = v41 - v46;
      const bool v48 = v47 > 2;
      if (v48) {
        const int v49 = div_(thread, 4);
        float a50[4];
        float a51;
        const int v52 = v41 - 1;
        const int v53 = min_(v45, v52);
        const int v54 = v45 + 1;
        const int v55 = min_(v54, v52);
        const int v56 = v45 + 2;
        const int v57 = min_(v56, v52);
        const int v58 = v45 + 3;
        const int v59 = min_(v58, v52);
        const int v60 = i38 + 1;
        const long long v61 = (long long)v60;
        const int v62 = load_constant(b7, v61);
        const int v63 = v62 + v53;
        const int v64 = i38 + 1;
        const long long v65 = (long long)v64;
        const int v66 = load_constant(b7, v65);
        const int v67 = v66 + v55;
        const int v68 = i38 + 1;
        const long long v69 = (long long)v68;
        const int v70 = load_constant(b7, v69);
        const int v71 = v70 + v57;
        const int v72 = i38 + 1;
        const long long v73 = (long long)v72;
        const int v74 = load_constant(b7, v73);
        const int v75 = v74 + v59;
        a50[0] = 0.0f;
        a50[1] = 0.0f;
        a50[2] = 0.0f;
        a50[3] = 0.0f;
        UNROLL("unroll 16")
        for (int i76 = 0; i76 < 2; ++i76) {
          const int v77 = div_(v49, 8);
          const int v78 = v77 * 128;
          const int v79 = mod_(thread, 4);
          const int v80 = i76 * 4;
          const int v81 = v79 + v80;
          const int v82 = div_(v81, 4);
          const int v83 = v82 * 32;
          const int v84 = v78 + v83;
          const int v85 = mod_(v49, 8);
          const int v86 = v85 * 4;
          const int v87 = v84 + v86;
          const int v88 = mod_(v81, 4);
          const int v89 = v87 + v88;
          const float v90 = load_chip(b1, v89);
          const long long v91 = (long long)v63;
          const int v92 = load_constant(b8, v91);
          const long long v93 = (long long)v92;
          const long long v94 = v93 * 16ll;
          const long long v95 = v94 + (long long)v79 + (long long)v80;
          const float v96 = load(b0, v95);
          const float v97 = a50[0];
          const float v98 = fma_(v90, v96, v97);
          a50[0] = v98;
          const long long v99 = (long long)v67;
          const int v100 = load_constant(b8, v99);
          const long long v101 = (long long)v100;
          const long long v102 = v101 * 16ll;
          const long long v103 = v102 + (long long)v79 + (long long)v80;
          const float v104 = load(b0, v103);
          const float v105 = a50[1];
          const float v106 = fma_(v90, v104, v105);
          a50[1] = v106;
          const long long v107 = (long long)v71;
          const int v108 = load_constant(b8, v107);
          const long long v109 = (long long)v108;
          const long long v110 = v109 * 16ll;
          const long long v111 = v110 + (long long)v79 + (long long)v80;
          const float v112 = load(b0, v111);
          const float v113 = a50[2];
          const float v114 = fma_(v90, v112, v113);
          a50[2] = v114;
          const long long v115 = (long long)v75;
          const int v116 = load_constant(b8, v115);
          const long long v117 = (long long)v116;
          const long long v118 = v117 * 16ll;
          const long long v119 = v118 + (long long)v79 + (long long)v80;
          const float v120 = load(b0, v119);
          const float v121 = a50[3];
          const float v122 = fma_(v90, v120, v121);
          a50[3] = v122;
        }
        UNROLL("unroll 16")
        for (int i123 = 0; i123 < 2; ++i123) {
          const int v124 = div_(v49, 8);
          const int v125 = v124 * 128;
          const int v126 = v125 + 64;
          const int v127 = mod_(thread, 4);
          const int v128 = i123 * 4;
          const int v129 = v127 + v128;
          const int v130 = div_(v129, 4);
          const int v131 = v130 * 32;
          const int v132 = v126 + v131;
          const int v133 = mod_(v49, 8);
          const int v134 = v133 * 4;
          const int v135 = v132 + v134;
          const int v136 = mod_(v129, 4);
          const int v137 = v135 + v136;
          const float v138 = load_chip(b1, v137);
          const long long v139 = (long long)v63;
          const int v140 = load_constant(b9, v139);
          const long long v141 = (long long)v140;
          const long long v142 = v141 * 16ll;
          const long long v143 = v142 + (long long)v127 + (long long)v128;
          const float v144 = load(b0, v143);
          const float v145 = a50[0];
          const float v146 = fma_(v138, v144, v145);
          a50[0] = v146;
          const long long v147 = (long long)v67;
          const int v148 = load_constant(b9, v147);
          const long long v149 = (long long)v148;
          const long long v150 = v149 * 16ll;
          const long long v151 = v150 + (long long)v127 + (long long)v128;
          const float v152 = load(b0, v151);
          const float v153 = a50[1];
          const float v154 = fma_(v138, v152, v153);
          a50[1] = v154;
          const long long v155 = (long long)v71;
          const int v156 = load_constant(b9, v155);
          const long long v157 = (long long)v156;
          const long long v158 = v157 * 16ll;
          const long long v159 = v158 + (long long)v127 + (long long)v128;
          const float v160 = load(b0, v159);
          const float v161 = a50[2];
          const float v162 = fma_(v138, v160, v161);
          a50[2] = v162;
          const long long v163 = (long long)v75;
          const int v164 = load_constant(b9, v163);
          const long long v165 = (long long)v164;
          const long long v166 = v165 * 16ll;
          const long long v167 = v166 + (long long)v127 + (long long)v128;
          const float v168 = load(b0, v167);
          const float v169 = a50[3];
          const float v170 = fma_(v138, v168, v169);
          a50[3] = v170;
        }
        a51 = join<4, 4>(a50);
        const int v171 = mod_(thread, 4);
        const int v172 = v45 + v171;
        const bool v173 = v172 < v41;
        if (v173) {
          const int v174 = i38 + 1;
          const long long v175 = (long long)v174;
          const int v176 = load_constant(b7, v175);
          const int v177 = v176 + v172;
          const long long v178 = (long long)v177;
          const long long v179 = v178 * 16ll;
          const long long v180 = v179 + (long long)v49;
          const float v181 = a51;
          const float v182 = load_constant(b10, v49);
          const float v183 = v181 + v182;
          const float v184 = relu_(v183);
          store(b0, v180, v184);
        }
      }
      else {
        const bool v185 = v47 > 1;
        if (v185) {
          const int v186 = div_(thread, 4);
          float a187[2];
          float a188;
          const int v189 = v41 - 1;
          const int v190 = min_(v45, v189);
          const int v191 = v45 + 1;
          const int v192 = min_(v191, v189);
          const int v193 = i38 + 1;
          const long long v194 = (long long)v193;
          const int v195 = load_constant(b7, v194);
          const int v196 = v195 + v190;
          const int v197 = i38 + 1;
          const long long v198 = (long long)v197;
          const int v199 = load_constant(b7, v198);
          const int v200 = v199 + v192;
          a187[0] = 0.0f;
          a187[1] = 0.0f;
          UNROLL("unroll 16")
          for (int i201 = 0; i201 < 2; ++i201) {
            const int v202 = div_(v186, 8);
            const int v203 = v202 * 128;
            const int v204 = mod_(thread, 4);
            const int v205 = i201 * 4;
            const int v206 = v204 + v205;
            const int v207 = div_(v206, 4);
            const int v208 = v207 * 32;
            const int v209 = v203 + v208;
            const int v210 = mod_(v186, 8);
            const int v211 = v210 * 4;
            const int v212 = v209 + v211;
            const int v213 = mod_(v206, 4);
            const int v214 = v212 + v213;
            const float v215 = load_chip(b1, v214);
            const long long v216 = (long long)v196;
            const int v217 = load_constant(b8, v216);
            const long long v218 = (long long)v217;
            const long long v219 = v218 * 16ll;
            const long long v220 = v219 + (long long)v204 + (long long)v205;
            const float v221 = load(b0, v220);
            const float v222 = a187[0];
            const float v223 = fma_(v215, v221, v222);
            a187[0] = v223;
            const long long v224 = (long long)v200;
            const int v225 = load_constant(b8, v224);
            const long long v226 = (long long)v225;
            const long long v227 = v226 * 16ll;
            const long long v228 = v227 + (long long)v204 + (long long)v205;
            const float v229 = load(b0, v228);
            const float v230 = a187[1];
            const float v231 = fma_(v215, v229, v230);
            a187[1] = v231;
          }
          UNROLL("unroll 16")
          for (int i232 = 0; i232 < 2; ++i232) {
            const int v233 = div_(v186, 8);
            const int v234 = v233 * 128;
            const int v235 = v234 + 64;
            const int v236 = mod_(thread, 4);
            const int v237 = i232 * 4;
            const int v238 = v236 + v237;
            const int v239 = div_(v238, 4);
            const int v240 = v239 * 32;
            const int v241 = v235 + v240;
            const int v242 = mod_(v186, 8);
            const int v243 = v242 * 4;
            const int v244 = v241 + v243;
            const int v245 = mod_(v238, 4);
            const int v246 = v244 + v245;
            const float v247 = load_chip(b1, v246);
            const long long v248 = (long long)v196;
            const int v249 = load_constant(b9, v248);
            const long long v250 = (long long)v249;
            const long long v251 = v250 * 16ll;
            const long long v252 = v251 + (long long)v236 + (long long)v237;
            const float v253 = load(b0, v252);
            const float v254 = a187[0];
            const float v255 = fma_(v247, v253, v254);
            a187[0] = v255;
            const long long v256 = (long long)v200;
            const int v257 = load_constant(b9, v256);
            const long long v258 = (long long)v257;
            const long long v259 = v258 * 16ll;
            const long long v260 = v259 + (long long)v236 + (long long)v237;
            const float v261 = load(b0, v260);
            const float v262 = a187[1];
            const float v263 = fma_(v247, v261, v262);
            a187[1] = v263;
          }
          a188 = join<4, 2>(a187);
          const int v264 = mod_(thread, 4);
          const int v265 = v45 + v264;
          const bool v266 = v264 < 2;
          const bool v267 = v265 < v41;
          const bool v268 = v266 && v267;
          if (v268) {
            const int v269 = i38 + 1;
            const long long v270 = (long long)v269;
            const int v271 = load_constant(b7, v270);
            const int v272 = v271 + v265;
            const long long v273 = (long long)v272;
            const long long v274 = v273 * 16ll;
            const long long v275 = v274 + (long long)v186;
            const float v276 = a188;
            const float v277 = load_constant(b10, v186);
            const float v278 = v276 + v277;
            const float v279 = relu_(v278);
            store(b0, v275, v279);
          }
        }
        else {
          const int v280 = div_(thread, 4);
          float a281[1];
          float a282;
          const int v283 = v41 - 1;
          const int v284 = min_(v45, v283);
          const int v285 = i38 + 1;
          const long long v286 = (long long)v285;
          const int v287 = load_constant(b7, v286);
          const int v288 = v287 + v284;
          a281[0] = 0.0f;
          UNROLL("unroll 16")
          for (int i289 = 0; i289 < 2; ++i289) {
            const int v290 = div_(v280, 8);
            const int v291 = v290 * 128;
            const int v292 = mod_(thread, 4);
            const int v293 = i289 * 4;
            const int v294 = v292 + v293;
            const int v295 = div_(v294, 4);
            const int v296 = v295 * 32;
            const int v297 = v291 + v296;
            const int v298 = mod_(v280, 8);
            const int v299 = v298 * 4;
            const int v300 = v297 + v299;
            const int v301 = mod_(v294, 4);
            const int v302 = v300 + v301;
            const float v303 = load_chip(b1, v302);
            const long long v304 = (long long)v288;
            const int v305 = load_constant(b8, v304);
            const long long v306 = (long long)v305;
            const long long v307 = v306 * 16ll;
            const long long v308 = v307 + (long long)v292 + (long long)v293;
            const float v309 = load(b0, v308);
            const float v310 = a281[0];
            const float v311 = fma_(v303, v309, v310);
            a281[0] = v311;
          }
          UNROLL("unroll 16")
          for (int i312 = 0; i312 < 2; ++i312) {
            const int v313 = div_(v280, 8);
            const int v314 = v313 * 128;
            const int v315 = v314 + 64;
            const int v316 = mod_(thread, 4);
            const int v317 = i312 * 4;
            const int v318 = v316 + v317;
            const int v319 = div_(v318, 4);
            const int v320 = v319 * 32;
            const int v321 = v315 + v320;
            const int v322 = mod_(v280, 8);
            const int v323 = v322 * 4;
            const int v324 = v321 + v323;
            const int v325 = mod_(v318, 4);
            const int v326 = v324 + v325;
            const float v327 = load_chip(b1, v326);
            const long long v328 = (long long)v288;
            const int v329 = load_constant(b9, v328);
            const long long v330 = (long long)v329;
            const long long v331 = v330 * 16ll;
            const long long v332 = v331 + (long long)v316 + (long long)v317;
            const float v333 = load(b0, v332);
            const float v334 = a281[0];
            const float v335 = fma_(v327, v333, v334);
            a281[0] = v335;
          }
          a282 = join<4, 1>(a281);
          const int v336 = mod_(thread, 4);
          const bool v337 = v336 < 1;
          const bool v338 = v45 < v41;
          const bool v339 = v337 && v338;
          if (v339) {
            const int v340 = i38 + 1;
            const long long v341 = (long long)v340;
            const int v342 = load_constant(b7, v341);
            const int v343 = v342 + v45;
            const long long v344 = (long long)v343;
            const long long v345 = v344 * 16ll;
            const long long v346 = v345 + (long long)v280;
            const float v347 = a282;
            const float v348 = load_constant(b10, v280);
            const float v349 = v347 + v348;
            const float v350 = relu_(v349);
            store(b0, v346, v350);
          }
        }
      }
    }
    sync_block();
  }
}
