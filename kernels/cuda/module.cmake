# The CUDA module, where CUDA is found: build/<preset>/lib/libdlrun_cuda.so, which dlrun loads when
# a job asks for GPUs. It needs nothing of the program and shows nothing but its entry point.

# What a module and the program that loads it have in common (build_id.hpp): whoever includes that
# links dlrun::cuda_build_id. The digest is of the headers by which they talk.
set(seam)
foreach(header IN ITEMS kernels/cuda/device_api.hpp kernels/cuda/precision.hpp kernels/cuda/steps.hpp kernels/cpu/activations.hpp kernels/cpu/average_pool.hpp
                        kernels/cpu/convolution_geometry.hpp kernels/cpu/distance.hpp kernels/cpu/embedding.hpp kernels/cpu/group_norm.hpp kernels/cpu/max_pool.hpp
                        kernels/cpu/strided.hpp include/dlrun/batch.hpp include/dlrun/random.hpp include/dlrun/error.hpp)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
  file(SHA256 ${CMAKE_SOURCE_DIR}/${header} digest)
  string(APPEND seam ${digest})
endforeach()
string(SHA256 seam "${seam}")
string(SUBSTRING ${seam} 0 16 seam)
add_library(dlrun_cuda_build_id INTERFACE)
add_library(dlrun::cuda_build_id ALIAS dlrun_cuda_build_id)
target_compile_definitions(dlrun_cuda_build_id INTERFACE DLRUN_BUILD_ID="${PROJECT_VERSION} ${seam}")

include(dlrun_cuda)
if(NOT DLRUN_CUDA_FOUND)
  return()
endif()

dlrun_cuda_objects(kernel_objects ${module_kernels})

# The device, for the module and for tests that look inside. fmt as headers: the module is to need
# no library that the program may have in another version.
add_library(dlrun_cuda_device STATIC ${device_sources} ${kernel_objects})
target_include_directories(dlrun_cuda_device PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_include_directories(dlrun_cuda_device SYSTEM PUBLIC ${DLRUN_CUDA_INCLUDE} ${DLRUN_CUDNN_INCLUDE})
target_link_libraries(dlrun_cuda_device PUBLIC fmt::fmt-header-only tl::expected ${DLRUN_CUBLASLT} ${DLRUN_CUDNN} ${DLRUN_CUDART} dl rt pthread
                                        PRIVATE dlrun::warnings)
target_compile_options(dlrun_cuda_device PRIVATE -fvisibility=hidden)

add_library(dlrun_cuda MODULE ${module_sources})
target_link_libraries(dlrun_cuda PRIVATE dlrun_cuda_device dlrun::cuda_build_id dlrun::warnings)
target_link_options(dlrun_cuda PRIVATE LINKER:-z,defs LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/module.map)
set_target_properties(dlrun_cuda PROPERTIES LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/module.map LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
