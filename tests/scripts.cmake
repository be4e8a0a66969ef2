# Tests that are scripts or look at the tree: floors, lone headers, compile failures, packaging, README and guides, compile
# times.
set(CORTEX_TEST_SCRIPT_COMPILER "" CACHE STRING "What tests that are scripts compile with; empty: what all else is compiled with")
set(script_compiler ${CMAKE_CXX_COMPILER})
if(CORTEX_TEST_SCRIPT_COMPILER)
  set(script_compiler ${CORTEX_TEST_SCRIPT_COMPILER})
endif()

set(with_llvm 0)
set(llvm_flags "")
if(CORTEX_LLVM)
  set(with_llvm 1)
  set(llvm_flags "-isystem '${CORTEX_LLVM_INCLUDE_DIRS}'")
endif()
set(with_z3 0)
if(CORTEX_Z3)
  set(with_z3 1)
endif()
set(boost_isystem "")
set(boost_flags "")
if(NOT Boost_INCLUDE_DIRS IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
  set(boost_isystem -isystem ${Boost_INCLUDE_DIRS})
  set(boost_flags "-isystem '${Boost_INCLUDE_DIRS}'")
endif()
set(flags ${CMAKE_CURRENT_BINARY_DIR}/flags.sh)
configure_file(tools/flags.sh.in ${flags} @ONLY)
set(work ${CMAKE_CURRENT_BINARY_DIR}/work)
set(tools ${CMAKE_CURRENT_SOURCE_DIR}/tools)

# script_test(<name> <timeout> <labels> <command> ...)
function(script_test name timeout labels)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${timeout} LABELS "${CORTEX_TEST_PART};${labels}")
endfunction()

if(CORTEX_TEST_PART MATCHES "full|nollvm")
  script_test(tree/headers-compile-alone 600 tree bash ${tools}/check_headers.sh ${flags} ${work}/headers)
  set_tests_properties(tree/headers-compile-alone PROPERTIES PROCESSORS 2)
endif()

if(CORTEX_TEST_PART STREQUAL full)
  add_executable(check_floors tools/check_floors.cpp)
  target_compile_features(check_floors PRIVATE cxx_std_20)
  target_compile_options(check_floors PRIVATE -O0)
  script_test(tree/floors 60 tree check_floors ${PROJECT_SOURCE_DIR}/include)
  script_test(tree/floors-refuses 60 tree bash ${tools}/check_floors_refuses.sh $<TARGET_FILE:check_floors>)
  script_test(tree/readme 300 tree bash ${tools}/check_readme.sh ${flags} ${work}/readme)

  # Alone on the machine: a neighbour costs time through the caches.
  foreach(what include example)
    script_test(tree/compile-time-${what} 300 tree bash ${tools}/measure_compile.sh ${flags} ${what})
    set_tests_properties(tree/compile-time-${what} PROPERTIES RUN_SERIAL ON)
  endforeach()

  foreach(mode installed subdirectory)
    script_test(packaging/${mode} 300 packaging
                bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/check.sh ${flags} ${work}/${mode} ${mode})
  endforeach()

  script_test(packaging/abi 120 packaging
              bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/check_abi.sh ${flags} $<TARGET_FILE:cortex_compiled> ${work}/abi)

  script_test(packaging/linked-code 300 packaging
              bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/check_linked_code.sh ${flags} $<TARGET_FILE:cortex_compiled>
              ${work}/linked_code)

  script_test(packaging/fast-math 120 packaging
              bash ${CMAKE_CURRENT_SOURCE_DIR}/packaging/check_fast_math.sh ${flags} ${work}/fast_math)

  # Each of these files must fail to compile, and say what its first line expects. What they all begin with is most of
  # their time, and is compiled once.
  set(flags_of_cases -I${PROJECT_SOURCE_DIR}/include -DCORTEX_COMPILED=1 ${boost_isystem})
  set(prelude ${CMAKE_CURRENT_BINARY_DIR}/compile_fail_prelude.hpp)
  file(WRITE ${prelude} "#include \"${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/prelude.hpp\"\n")
  script_test(compile_fail/prelude-compiles 120 compile_fail
              ${script_compiler} -std=c++20 ${flags_of_cases} -x c++-header ${prelude} -o ${prelude}.gch)
  set_tests_properties(compile_fail/prelude-compiles PROPERTIES FIXTURES_SETUP compile_fail_prelude)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/*.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    script_test(compile_fail/${name} 120 compile_fail
                sh ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/check.sh ${script_compiler} ${flags_of_cases}
                -include ${prelude} ${source})
    set_tests_properties(compile_fail/${name} PROPERTIES FIXTURES_REQUIRED compile_fail_prelude)
  endforeach()

  if(CORTEX_BUILD_EXAMPLES)
    script_test(examples/sentences-answers 300 examples
                bash ${CMAKE_CURRENT_SOURCE_DIR}/examples/check_sentences.sh $<TARGET_FILE:example_sentences>)
    script_test(examples/sentiment-answers 300 examples
                bash ${CMAKE_CURRENT_SOURCE_DIR}/examples/check_sentiment.sh $<TARGET_FILE:example_sentiment>)
    script_test(examples/run-answers 60 examples
                bash ${CMAKE_CURRENT_SOURCE_DIR}/examples/check_run.sh ${PROJECT_SOURCE_DIR}/examples/run)
  endif()
  if(CORTEX_BUILD_BENCH)
    script_test(tree/bench-answers 240 tree bash ${tools}/check_bench.sh $<TARGET_FILE:bench_latency>)
    set(bench_rows ${work}/bench_rows)
    script_test(tree/bench-experiments 300 tree bash ${tools}/check_bench_experiments.sh $<TARGET_FILE_DIR:bench_latency>
                ${bench_rows})
    set_tests_properties(tree/bench-experiments PROPERTIES FIXTURES_SETUP bench_rows)
    foreach(what bars plot)
      script_test(tree/bench-${what} 120 tree bash ${tools}/check_bench_${what}.sh ${PROJECT_SOURCE_DIR}/bench/${what} ${bench_rows})
      set_tests_properties(tree/bench-${what} PROPERTIES FIXTURES_REQUIRED bench_rows)
    endforeach()
    script_test(tree/bench-gpu-systems 120 tree bash ${tools}/check_bench_gpu_systems.sh $<TARGET_FILE:bench_gpu>)
    script_test(tree/bench-registers 120 tree bash ${tools}/check_bench_registers.sh $<TARGET_FILE:bench_registers>)
  endif()
  script_test(tree/bench-run-answers 60 tree bash ${tools}/check_bench_run.sh ${PROJECT_SOURCE_DIR}/bench/run)
  script_test(tree/bench-gpu-answers 60 tree bash ${tools}/check_bench_gpu.sh ${PROJECT_SOURCE_DIR}/bench/gpu)
endif()
