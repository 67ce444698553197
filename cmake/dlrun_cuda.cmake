# What the CUDA module is built with: CUDA 13's compiler and libraries, where they are. Sets
# DLRUN_CUDA_FOUND and says what is missing; DLRUN_CUDA=ON makes that an error.
#
# nvcc is called by a command for each .cu file: CMake's own CUDA language would make every
# configure compile its tests.

set(DLRUN_CUDA AUTO CACHE STRING "Build the CUDA module: AUTO (where CUDA 13 is found), ON or OFF")
set_property(CACHE DLRUN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(DLRUN_CUDA_ARCHITECTURES "80;86;89;90;100;120" CACHE STRING "Compute capabilities that the CUDA module has code for; newer ones than the last compile it on their first use")
set(DLRUN_CUDA_FOUND FALSE)

# dlrun_no_cuda(TEXT): there is no CUDA module, because of TEXT.
function(dlrun_no_cuda text)
  if(DLRUN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DLRUN_CUDA is ON, but ${text}")
  endif()
  message(STATUS "No CUDA module: ${text}")
endfunction()

# dlrun_find_cuda(): sets DLRUN_CUDA_FOUND, and where it is, DLRUN_CUDA_INCLUDE and the paths below.
function(dlrun_find_cuda)
  if(DLRUN_CUDA STREQUAL "OFF")
    return()
  endif()
  if(DLRUN_SANITIZE)
    dlrun_no_cuda("sanitizers know nothing of GPU code")
    return()
  endif()
  set(roots ${CMAKE_SOURCE_DIR}/build/cuda /usr/local/cuda)
  find_program(DLRUN_NVCC nvcc HINTS ${roots} PATH_SUFFIXES bin)
  if(NOT DLRUN_NVCC)
    dlrun_no_cuda("there is no nvcc on the PATH, in /usr/local/cuda or in build/cuda (scripts/install_cuda installs one there)")
    return()
  endif()
  execute_process(COMMAND ${DLRUN_NVCC} --version OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCH "release ([0-9.]+)" _ "${text}")
  set(version "${CMAKE_MATCH_1}")
  if(NOT version OR version VERSION_LESS 13)
    dlrun_no_cuda("${DLRUN_NVCC} is of CUDA '${version}', and 13.0 or newer is needed (Debian's nvidia-cuda-toolkit is too old)")
    return()
  endif()
  file(REAL_PATH ${DLRUN_NVCC} compiler)
  cmake_path(GET compiler PARENT_PATH bin)
  cmake_path(GET bin PARENT_PATH root)
  find_path(DLRUN_CUDA_INCLUDE cuda_runtime_api.h HINTS ${root} PATH_SUFFIXES include NO_DEFAULT_PATH)
  find_path(DLRUN_CUDNN_INCLUDE cudnn_graph.h HINTS ${root} PATH_SUFFIXES include)
  set(folders lib lib64 lib/x86_64-linux-gnu targets/x86_64-linux/lib)
  find_library(DLRUN_CUDART libcudart_static.a HINTS ${root} PATH_SUFFIXES ${folders} NO_DEFAULT_PATH)
  find_library(DLRUN_CUBLASLT cublasLt HINTS ${root} PATH_SUFFIXES ${folders} NO_DEFAULT_PATH)
  find_library(DLRUN_CUDNN cudnn HINTS ${root} PATH_SUFFIXES ${folders})
  foreach(part IN ITEMS DLRUN_CUDA_INCLUDE DLRUN_CUDNN_INCLUDE DLRUN_CUDART DLRUN_CUBLASLT DLRUN_CUDNN)
    if(NOT ${part})
      dlrun_no_cuda("beside ${DLRUN_NVCC} there is no ${part} (CUDA's runtime, cuBLASLt and cuDNN 9 are needed, with headers)")
      return()
    endif()
  endforeach()
  message(STATUS "CUDA module: CUDA ${version} in ${root}, for compute capabilities ${DLRUN_CUDA_ARCHITECTURES}")
  set(DLRUN_CUDA_FOUND TRUE PARENT_SCOPE)
endfunction()

# dlrun_cuda_objects(OBJECTS SOURCES...): OBJECTS are the object files of these .cu files, as
# optimised in every preset. No contraction, no approximations: bits are promised.
function(dlrun_cuda_objects objects)
  set(flags -std=c++20 -O3 --expt-relaxed-constexpr --fmad=false -ftz=false -prec-div=true -prec-sqrt=true
            -Xcompiler=-fPIC,-fvisibility=hidden,-ffp-contract=off,-Wall,-Wextra
            -I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/include)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND flags -ccbin ${CMAKE_CXX_COMPILER})
  endif()
  foreach(architecture IN LISTS DLRUN_CUDA_ARCHITECTURES)
    list(APPEND flags -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET DLRUN_CUDA_ARCHITECTURES -1 last)
  list(APPEND flags -gencode arch=compute_${last},code=compute_${last}) # for those to come
  set(made)
  foreach(source IN LISTS ARGN)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda_objects/${source}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/cuda_objects
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${DLRUN_NVCC} ${flags} -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d COMMENT "nvcc ${source}" VERBATIM)
    list(APPEND made ${object})
  endforeach()
  set(${objects} ${made} PARENT_SCOPE)
endfunction()

dlrun_find_cuda()
