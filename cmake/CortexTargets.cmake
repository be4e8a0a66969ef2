# cortex::cortex   header-only: every translation unit holds the compiler that it uses, and links LLVM.
# cortex::compiled the same code with its one non-template seam built once: translation units see its declaration and
#                  no LLVM header, and compile several times faster.
# Both stand on cortex::headers, so that a program that mixes them agrees on everything else.
add_library(cortex_headers INTERFACE)
add_library(cortex::headers ALIAS cortex_headers)
set_target_properties(cortex_headers PROPERTIES EXPORT_NAME headers)
target_compile_features(cortex_headers INTERFACE cxx_std_20)
target_compile_definitions(cortex_headers INTERFACE CORTEX_LLVM=$<BOOL:${CORTEX_LLVM}>
                                                    CORTEX_Z3=$<BOOL:${CORTEX_Z3}>)
target_include_directories(cortex_headers INTERFACE
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_link_libraries(cortex_headers INTERFACE Threads::Threads Boost::headers ${CMAKE_DL_LIBS})
# The warnings that a project asks for are about its own code, whichever way it takes the library: what find_package gives
# is a system's anyway.
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(cortex_headers PROPERTIES SYSTEM ON)
endif()

add_library(cortex INTERFACE)
add_library(cortex::cortex ALIAS cortex)
target_link_libraries(cortex INTERFACE cortex_headers)

add_library(cortex_compiled STATIC EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/compiled.cpp)
add_library(cortex::compiled ALIAS cortex_compiled)
set_target_properties(cortex_compiled PROPERTIES EXPORT_NAME compiled POSITION_INDEPENDENT_CODE ON)
target_compile_definitions(cortex_compiled PUBLIC CORTEX_COMPILED=1)
target_link_libraries(cortex_compiled PUBLIC cortex_headers)
# Whatever a project compiles its own code with, the compiler needs infinities and NaNs; a target's options come last.
target_compile_options(cortex_compiled PRIVATE -fno-fast-math)
# A shared library keeps the compiler that it is linked with to itself, with the LLVM that this has prepared: of symbols that
# all see, g++ has one copy of static variables in a process, even where dlopen is told RTLD_LOCAL.
set_target_properties(cortex_compiled PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(PROJECT_IS_TOP_LEVEL)
  set_target_properties(cortex_compiled PROPERTIES EXCLUDE_FROM_ALL OFF)
endif()

if(CORTEX_LLVM)
  target_link_libraries(cortex INTERFACE cortex::llvm)
  target_link_libraries(cortex_compiled PRIVATE cortex::llvm)
endif()
if(CORTEX_Z3)
  target_link_libraries(cortex INTERFACE cortex::z3)
  target_link_libraries(cortex_compiled PRIVATE cortex::z3)
endif()
