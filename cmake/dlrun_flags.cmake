# Compiler flags, as interface targets, so that a folder says what it needs and nothing is global by
# accident.

add_library(dlrun_warnings INTERFACE)
add_library(dlrun::warnings ALIAS dlrun_warnings)
target_compile_options(dlrun_warnings INTERFACE -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Woverloaded-virtual
                                                -Wimplicit-fallthrough $<$<BOOL:${DLRUN_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang) # the kernels tell GCC what it may vectorise; Clang finds out itself
  target_compile_options(dlrun_warnings INTERFACE -Wno-unknown-pragmas)
elseif(CMAKE_UNITY_BUILD) # sources are included there, and what is local to one looks like a header's
  target_compile_options(dlrun_warnings INTERFACE -Wno-subobject-linkage)
endif()

# All code may become part of libdlrun.so. Programs are compiled the same way, so that they can
# share precompiled headers with libraries. Without interposition a call within a file is inlined as
# in a program.
add_compile_options(-fPIC -fno-semantic-interposition)

# Left to itself GCC collects its garbage so often that this is a tenth of the time of a full build.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(--param=ggc-min-heapsize=2000000)
endif()

# The trained parameters are promised bit for bit, so nothing may let the compiler choose between
# two roundings:
#  -ffp-contract=off  a*b+c stays two roundings; with contraction the same kernel gave other bits when one more store kept
#                     the compiler from fusing (measured).
#  -fno-fast-math     no reassociation, no flush to zero, no assumption that NaN and inf do not occur.
#  -fno-math-errno    only lets sqrt become an instruction (correctly rounded either way); without it Adam stays scalar.
# x86-64-v3 (AVX2) is the baseline; within 7 % of -march=native on the optimizers, and the same bits
# on every such CPU.
add_library(dlrun_stable_bits INTERFACE)
add_library(dlrun::stable_bits ALIAS dlrun_stable_bits)
target_compile_options(dlrun_stable_bits INTERFACE -ffp-contract=off -fno-fast-math -fno-math-errno)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  target_compile_options(dlrun_stable_bits INTERFACE -march=x86-64-v3)
endif()
target_compile_options(dlrun_stable_bits INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O3>)

# Sanitizers apply to everything we compile, tests included. The optimisation level is the preset's;
# frame pointers make stack traces cheap. A finding ends the process: a test that goes on after one
# could pass.
set(DLRUN_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, e.g. address,undefined or thread")
if(DLRUN_SANITIZE)
  add_compile_options(-fsanitize=${DLRUN_SANITIZE} -fno-omit-frame-pointer -fno-optimize-sibling-calls
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DLRUN_SANITIZE})
endif()

# For code of objects and containers: of the sanitizers three are left out whose checks at each use
# of a pointer take a quarter of the time that compiling it takes; AddressSanitizer sees the same
# mistakes when they do harm.
add_library(dlrun_plain_objects INTERFACE)
add_library(dlrun::plain_objects ALIAS dlrun_plain_objects)
if(DLRUN_SANITIZE MATCHES undefined)
  target_compile_options(dlrun_plain_objects INTERFACE -fno-sanitize=null,alignment,vptr)
endif()

# For tests: not optimised, for what that does to the time of a full build.
add_library(dlrun_quick_build INTERFACE)
add_library(dlrun::quick_build ALIAS dlrun_quick_build)
target_link_libraries(dlrun_quick_build INTERFACE dlrun::plain_objects)
target_compile_options(dlrun_quick_build INTERFACE -O0 $<$<CONFIG:Release>:-g0>)
