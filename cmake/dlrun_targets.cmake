# One folder = one library = its README = its tests. These functions keep every folder's CMakeLists.txt to a list of names.

# dlrun_library(NAME [RAW_MEMORY] SOURCES ... [LINK ...]): static library dlrun_NAME, alias dlrun::NAME. RAW_MEMORY: it handles
# bytes by address, so that the sanitizers look at every use of a pointer.
function(dlrun_library name)
  cmake_parse_arguments(arg "RAW_MEMORY" "" "SOURCES;LINK" ${ARGN})
  add_library(dlrun_${name} STATIC ${arg_SOURCES})
  add_library(dlrun::${name} ALIAS dlrun_${name})
  target_link_libraries(dlrun_${name} PUBLIC dlrun::base ${arg_LINK} PRIVATE dlrun::warnings)
  if(NOT arg_RAW_MEMORY)
    target_link_libraries(dlrun_${name} PRIVATE dlrun::plain_objects)
  endif()
endfunction()

# dlrun_numeric_library(NAME ...): the same, for code whose floating-point results are part of the product's promise.
function(dlrun_numeric_library name)
  dlrun_library(${name} RAW_MEMORY ${ARGN})
  target_link_libraries(dlrun_${name} PRIVATE dlrun::stable_bits)
endfunction()

# dlrun_uses_caf(TARGET): it shares the precompiled headers of dlrun_actor_protocol. Sanitized builds do not optimise such code:
# its templates are most of their time.
function(dlrun_uses_caf name)
  target_precompile_headers(${name} REUSE_FROM dlrun_actor_protocol)
  target_link_libraries(${name} PRIVATE $<$<CONFIG:Debug>:dlrun::quick_build>)
endfunction()

# dlrun_not_hot(TARGET): what it does is not done often enough for its speed to matter; the build saves a third of its time.
function(dlrun_not_hot name)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# All test programs, without the program that tests of processes run.
add_custom_target(dlrun_tests)

# dlrun_test(NAME LABEL unit|actor|sim|integration|gpu SOURCES ... LINK ... [TIMEOUT seconds] [WITH_CAF]): one GoogleTest
# program. What is tested is in libraries, optimised; the tests themselves are not, which halves the time of their build.
# Headers are precompiled: those of test_headers (tests), or, WITH_CAF, those of actor_test_support (tests/actors).
function(dlrun_test name)
  cmake_parse_arguments(arg "WITH_CAF" "LABEL;TIMEOUT" "SOURCES;LINK;ARGS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} dlrun::warnings GTest::gmock GTest::gtest_main)
  target_link_libraries(${name} PRIVATE dlrun::quick_build)
  if(arg_WITH_CAF)
    target_precompile_headers(${name} REUSE_FROM actor_test_support)
  else()
    target_precompile_headers(${name} REUSE_FROM test_headers)
  endif()
  add_dependencies(dlrun_tests ${name})
  add_test(NAME ${name} COMMAND ${name} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
endfunction()
