# One folder = one library = its README = its tests. These functions keep every folder's
# CMakeLists.txt to a list of names.

# dlrun_precompiled_headers(NAME HEADERS ... LINK ...): static library NAME, for others to take its
# precompiled headers (REUSE_FROM).
function(dlrun_precompiled_headers name)
  cmake_parse_arguments(arg "" "" "HEADERS;LINK" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cpp CONTENT "// A library needs a source.\n")
  add_library(${name} STATIC ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE dlrun::include dlrun::warnings ${arg_LINK})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# dlrun_library(NAME [RAW_MEMORY] [NUMERIC | WITH_CAF | OWN_HEADERS] SOURCES ... [LINK ...]): static
# library dlrun_NAME, alias dlrun::NAME. RAW_MEMORY: it handles bytes by address, so that the
# sanitizers look at every use of a pointer. NUMERIC: the same, and its floating-point results are
# part of the product's promise. Headers are precompiled: those of dlrun_common_headers, or,
# WITH_CAF, those of dlrun_actor_protocol; none where there are flags of its own (NUMERIC,
# OWN_HEADERS).
function(dlrun_library name)
  cmake_parse_arguments(arg "RAW_MEMORY;NUMERIC;WITH_CAF;OWN_HEADERS" "" "SOURCES;LINK" ${ARGN})
  add_library(dlrun_${name} STATIC ${arg_SOURCES})
  add_library(dlrun::${name} ALIAS dlrun_${name})
  target_link_libraries(dlrun_${name} PUBLIC dlrun::include ${arg_LINK} PRIVATE dlrun::warnings)
  if(NOT arg_RAW_MEMORY AND NOT arg_NUMERIC)
    target_link_libraries(dlrun_${name} PRIVATE dlrun::plain_objects)
  endif()
  if(arg_NUMERIC)
    target_link_libraries(dlrun_${name} PRIVATE dlrun::stable_bits)
  elseif(arg_WITH_CAF)
    target_precompile_headers(dlrun_${name} REUSE_FROM dlrun_actor_protocol)
  elseif(NOT arg_OWN_HEADERS)
    target_precompile_headers(dlrun_${name} REUSE_FROM dlrun_common_headers)
  endif()
endfunction()

# dlrun_not_hot(TARGET): what it does is not done often enough for its speed to matter; the build
# saves a third of its time.
function(dlrun_not_hot name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# dlrun_must_not_link(TARGET UNWANTED): TARGET needs nothing that needs UNWANTED. What it links must
# be known already.
function(dlrun_must_not_link name unwanted)
  set(seen)
  set(left ${name})
  while(left)
    list(POP_FRONT left one)
    if(one STREQUAL unwanted)
      message(FATAL_ERROR "${name} links ${unwanted}, by way of one of: ${seen}")
    endif()
    if(one IN_LIST seen OR NOT TARGET ${one})
      continue()
    endif()
    list(APPEND seen ${one})
    foreach(property IN ITEMS LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_target_property(links ${one} ${property})
      if(links)
        list(APPEND left ${links})
      endif()
    endforeach()
  endwhile()
endfunction()

# All test programs, without the program that tests of processes run.
add_custom_target(dlrun_tests)

# dlrun_strip_release(NAME): without debug information in a release, which is nine tenths of a
# program that links all of dlrun: of 70 programs it is gigabytes. Where a test fails the debug
# build says in which line.
function(dlrun_strip_release name)
  target_link_options(${name} PRIVATE $<$<CONFIG:Release>:LINKER:--strip-debug>)
endfunction()

# dlrun_test(NAME LABEL unit|actor|sim|integration SOURCES ... LINK ... [TIMEOUT seconds] [WITH_CAF]
# [ALSO_AVX2]): one GoogleTest program. What is tested is in libraries, optimised; the tests
# themselves are not, which halves the time of their build. Headers are precompiled: those of
# test_headers (tests), or, WITH_CAF, those of actor_test_support (tests/actors). ALSO_AVX2: it also
# runs as NAME_avx2, as on a processor that has no wider vectors.
function(dlrun_test name)
  cmake_parse_arguments(arg "WITH_CAF;ALSO_AVX2" "LABEL;TIMEOUT" "SOURCES;LINK;ARGS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} dlrun::warnings GTest::gmock GTest::gtest_main)
  target_link_libraries(${name} PRIVATE dlrun::quick_build)
  dlrun_strip_release(${name})
  if(arg_WITH_CAF)
    target_precompile_headers(${name} REUSE_FROM actor_test_support)
  else()
    target_precompile_headers(${name} REUSE_FROM test_headers)
  endif()
  add_dependencies(dlrun_tests ${name})
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
  if(arg_ALSO_AVX2)
    # Under a name of its own, after which GoogleTest names the file of its results.
    add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
      $<TARGET_FILE_NAME:${name}> $<TARGET_FILE:${name}>_avx2)
    add_test(NAME ${name}_avx2 COMMAND $<TARGET_FILE:${name}>_avx2 ${arg_ARGS})
    set_tests_properties(${name}_avx2 PROPERTIES
      LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} ENVIRONMENT ONEDNN_MAX_CPU_ISA=AVX2)
  endif()
endfunction()
