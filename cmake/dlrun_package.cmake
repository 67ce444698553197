# What others get: `cmake --install` (program, shared library, headers, find_package(dlrun)) and
# Debian packages (cpack).

# The library of programs that embed dlrun. One file, so that they need to know none of its parts;
# what is in include/dlrun must be in it whether or not something here uses it.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/shared_library.cpp CONTENT "")
add_library(dlrun_shared SHARED ${CMAKE_BINARY_DIR}/shared_library.cpp)
set_target_properties(dlrun_shared PROPERTIES
  OUTPUT_NAME dlrun EXPORT_NAME dlrun VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_link_libraries(dlrun_shared
  PRIVATE dlrun_cli dlrun_runtime dlrun_engine dlrun_data dlrun_job dlrun_proto
  PUBLIC fmt::fmt tl::expected protobuf::libprotobuf)
set_property(TARGET dlrun_shared PROPERTY
  LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,dlrun_cli,dlrun_runtime,dlrun_engine,dlrun_data,dlrun_job,dlrun_proto")
target_include_directories(dlrun_shared INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/dlrun/generated>)
target_compile_features(dlrun_shared INTERFACE cxx_std_20)

include(CMakePackageConfigHelpers)
set(_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dlrun)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dlrunConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS dlrun RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(TARGETS dlrun_shared EXPORT dlrun LIBRARY
  DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(EXPORT dlrun NAMESPACE dlrun:: FILE dlrunTargets.cmake DESTINATION ${_config_dir} COMPONENT development)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/dlrunConfig.cmake ${CMAKE_BINARY_DIR}/dlrunConfigVersion.cmake
  DESTINATION ${_config_dir} COMPONENT development)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/dlrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  PATTERN detail EXCLUDE PATTERN ids.hpp EXCLUDE) # what only dlrun itself uses
foreach(_name IN ITEMS field_rule job_spec)
  install(FILES ${CMAKE_BINARY_DIR}/proto/${_name}.pb.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dlrun/generated/proto COMPONENT development)
endforeach()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)

# cpack --config build/release/CPackConfig.cmake: dlrun (program and library) and dlrun-dev.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dlrun)
set(CPACK_PACKAGE_CONTACT "The dlrun authors <dlrun@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Fault-tolerant distributed training of deep-learning models")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME dlrun)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS libcurl4) # loaded where a journal is in an etcd, or a job on Kubernetes
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME dlrun-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "dlrun (= ${PROJECT_VERSION}), libprotobuf-dev, libfmt-dev, libexpected-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "Headers of dlrun, for programs that embed it or add layers, readers and metrics")
# The CUDA module, where it is built: by itself, since it needs CUDA's libraries.
if(TARGET dlrun_cuda)
  install(TARGETS dlrun_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT cuda)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME dlrun-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "dlrun (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_CUDA_DESCRIPTION "NVIDIA GPUs for dlrun; needs CUDA 13 and cuDNN 9")
endif()
include(CPack)
