# cortex_find_z3(): finds Z3's C interface and makes the target `cortex::z3`. Installed beside cortexConfig.cmake.
#
# Debian's package has no Z3Config.cmake, so header and library are looked for themselves; Z3_ROOT or CMAKE_PREFIX_PATH say
# where.
#
# Sets:   CORTEX_Z3_FOUND, CORTEX_Z3_INCLUDE_DIR, CORTEX_Z3_LIBRARY, CORTEX_Z3_NOT_FOUND_MESSAGE
macro(cortex_find_z3)
  find_path(CORTEX_Z3_INCLUDE_DIR z3.h HINTS ${Z3_ROOT} PATH_SUFFIXES include)
  find_library(CORTEX_Z3_LIBRARY z3 HINTS ${Z3_ROOT} PATH_SUFFIXES lib)
  mark_as_advanced(CORTEX_Z3_INCLUDE_DIR CORTEX_Z3_LIBRARY)
  set(CORTEX_Z3_NOT_FOUND_MESSAGE "Z3 was not found; install libz3-dev, or set Z3_ROOT to the directory that holds it.")
  set(CORTEX_Z3_FOUND OFF)
  if(CORTEX_Z3_INCLUDE_DIR AND CORTEX_Z3_LIBRARY)
    set(CORTEX_Z3_FOUND ON)
    if(NOT TARGET cortex::z3)
      # An imported target: exported files name it and not its paths.
      add_library(cortex::z3 INTERFACE IMPORTED)
      set_target_properties(cortex::z3 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CORTEX_Z3_INCLUDE_DIR}"
                                                  INTERFACE_LINK_LIBRARIES "${CORTEX_Z3_LIBRARY}")
    endif()
  endif()
endmacro()
