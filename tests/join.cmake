# Test files of one folder are compiled several at a time: what they include, and what they instantiate of it, is then
# compiled once for all of them, which takes a third to a half of the time. Each stands in a namespace of its own, so that
# they may give the same names to things, as files that are compiled by themselves may (a test's name is Catch2's affair).

set(CORTEX_TEST_JOIN 32 CACHE STRING "How many test files are compiled as one at most; 1: each by itself, to work on one")

# Files that define what is in no namespace of theirs, or include something on a condition.
set(sources_apart cuda/abi_test.cpp integration/features.cpp runtime/count_allocations.cpp structure/allocations.cpp
    structure/hana_struct.cpp)

# cortex_join(<variable> <source> ...): the files to compile in place of these, which lie in one folder
function(cortex_join result)
  set(joined "")
  set(alone "")
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE name)
    if(CORTEX_TEST_JOIN GREATER 1 AND NOT name IN_LIST sources_apart)
      list(APPEND joined ${name})
    else()
      list(APPEND alone ${source})
    endif()
  endforeach()

  # As many in each as in the others.
  list(LENGTH joined count)
  math(EXPR parts "(${count} + ${CORTEX_TEST_JOIN} - 1) / ${CORTEX_TEST_JOIN}")
  set(part 0)
  while(part LESS parts)
    math(EXPR begin "${count} * ${part} / ${parts}")
    math(EXPR length "${count} * (${part} + 1) / ${parts} - ${begin}")
    math(EXPR part "${part} + 1")
    list(SUBLIST joined ${begin} ${length} names)
    set(includes "")
    set(text "")
    foreach(name IN LISTS names)
      set(source ${CMAKE_CURRENT_SOURCE_DIR}/${name})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
      # What they include comes before the namespaces; where they name it themselves it has been read.
      file(STRINGS ${source} lines REGEX "^#include ")
      list(APPEND includes ${lines})
      string(MAKE_C_IDENTIFIER ${name} namespace)
      string(APPEND text "namespace ${namespace} {\n#include \"${source}\"\n}\n")
    endforeach()
    list(REMOVE_DUPLICATES includes)
    list(JOIN includes "\n" includes)
    cmake_path(GET name PARENT_PATH folder)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/joined/${folder}_${part}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${includes}\n${text}" @ONLY)
    list(APPEND alone ${file})
  endwhile()
  set(${result} ${alone} PARENT_SCOPE)
endfunction()
