# find_package(dlrun): target dlrun::dlrun (docs/tutorials/embedding.md).
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(tl-expected)
find_dependency(Protobuf)
include(${CMAKE_CURRENT_LIST_DIR}/dlrunTargets.cmake)
