# cortex_find_llvm(): finds LLVM 19.1 to 22 and makes the target `cortex::llvm`. Installed beside cortexConfig.cmake.
#
# LLVM counts only the same major.minor as compatible, so neither `find_package(LLVM 19)` (that asks for 19.0) nor a
# range that begins at 19.1 finds the later ones: the versions are asked for one by one.
#
# Reads:  CORTEX_LLVM_VERSION  19, 20, 21 or 22; empty: the first one found, in this order
#         LLVM_DIR             the directory of LLVMConfig.cmake; without CORTEX_LLVM_VERSION no other is looked at
# Sets:   CORTEX_LLVM_FOUND, CORTEX_LLVM_FOUND_VERSION, CORTEX_LLVM_INCLUDE_DIRS, CORTEX_LLVM_NOT_FOUND_MESSAGE
#         CORTEX_LLVM_SHUT_OUT  whether it is another LLVM, which the build has found before, that keeps one from being used
macro(cortex_find_llvm)
  set(CORTEX_LLVM_SHUT_OUT OFF)
  set(CORTEX_LLVM_FOUND OFF)
  set(CORTEX_LLVM_NOT_FOUND_MESSAGE
      "LLVM 19.1 to 22 was not found; set LLVM_DIR to the directory of its LLVMConfig.cmake.")
  # What the configuration of LLVM says about its own optional parts (libedit, curl, ...) is of no use here.
  set(_cortex_log_level "${CMAKE_MESSAGE_LOG_LEVEL}")
  set(CMAKE_MESSAGE_LOG_LEVEL WARNING)
  if(CORTEX_LLVM_VERSION)
    set(CORTEX_LLVM_NOT_FOUND_MESSAGE
        "LLVM ${CORTEX_LLVM_VERSION} was not found; set LLVM_DIR to the directory of its LLVMConfig.cmake.")
    string(REGEX MATCH "^[0-9]+" _cortex_major "${CORTEX_LLVM_VERSION}")
    if(NOT LLVM_FOUND)  # else its targets stay, which those of another one would be named like
      find_package(LLVM ${_cortex_major}.1 CONFIG QUIET HINTS /usr/lib/llvm-${_cortex_major})
    endif()
  elseif(LLVM_DIR)
    find_package(LLVM CONFIG QUIET)
  else()
    foreach(_cortex_major 19 20 21 22)
      if(NOT LLVM_FOUND)
        find_package(LLVM ${_cortex_major}.1 CONFIG QUIET HINTS /usr/lib/llvm-${_cortex_major})
      endif()
    endforeach()
  endif()
  set(CMAKE_MESSAGE_LOG_LEVEL "${_cortex_log_level}")

  if(LLVM_FOUND AND CORTEX_LLVM_VERSION AND NOT LLVM_VERSION_MAJOR EQUAL _cortex_major)
    set(CORTEX_LLVM_SHUT_OUT ON)
    set(CORTEX_LLVM_NOT_FOUND_MESSAGE "LLVM ${CORTEX_LLVM_VERSION} is asked for, and this build already uses \
LLVM ${LLVM_PACKAGE_VERSION}: take cortex before find_package(LLVM).")
  elseif(LLVM_FOUND AND (LLVM_PACKAGE_VERSION VERSION_LESS 19.1 OR LLVM_PACKAGE_VERSION VERSION_GREATER_EQUAL 23))
    set(CORTEX_LLVM_NOT_FOUND_MESSAGE "LLVM ${LLVM_PACKAGE_VERSION} (${LLVM_DIR}) is not one of 19.1 to 22.")
    set(_cortex_prefixes 19 20 21 22)
    list(TRANSFORM _cortex_prefixes PREPEND /usr/lib/llvm-)
    find_file(_cortex_other LLVMConfig.cmake NO_CACHE NO_DEFAULT_PATH PATH_SUFFIXES lib/cmake/llvm HINTS ${_cortex_prefixes})
    if(_cortex_other AND NOT CORTEX_LLVM_VERSION)
      set(CORTEX_LLVM_SHUT_OUT ON)
      string(APPEND CORTEX_LLVM_NOT_FOUND_MESSAGE
             " ${_cortex_other} would do: set CORTEX_LLVM_VERSION, and take cortex before find_package(LLVM).")
    endif()
  elseif(LLVM_FOUND)
    set(CORTEX_LLVM_FOUND ON)
    set(CORTEX_LLVM_FOUND_VERSION ${LLVM_PACKAGE_VERSION})
    set(CORTEX_LLVM_INCLUDE_DIRS ${LLVM_INCLUDE_DIRS})
    if(NOT TARGET cortex::llvm)
      # An imported target: its include directories are system ones, and exported files name it and not its paths.
      add_library(cortex::llvm INTERFACE IMPORTED)
      set_target_properties(cortex::llvm PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${LLVM_INCLUDE_DIRS}")
      if(TARGET LLVM)  # the one shared library with all of LLVM in it
        set_target_properties(cortex::llvm PROPERTIES INTERFACE_LINK_LIBRARIES LLVM)
      else()
        set(_cortex_native LLVM${LLVM_NATIVE_ARCH})
        set_target_properties(cortex::llvm PROPERTIES INTERFACE_LINK_LIBRARIES
          "LLVMOrcJIT;LLVMPasses;LLVMIRReader;${_cortex_native}CodeGen;${_cortex_native}AsmParser")
      endif()
    endif()
  endif()
endmacro()
