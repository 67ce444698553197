# Finds the C++ Actor Framework 0.17 as Debian packages it: headers and shared libraries, no CMake
# package. Defines CAF_FOUND, CAF_VERSION and the imported targets CAF::core, CAF::io, CAF::openssl.
find_path(CAF_INCLUDE_DIR caf/all.hpp)
set(_caf_required CAF_INCLUDE_DIR)
foreach(component IN ITEMS core io openssl)
  find_library(CAF_${component}_LIBRARY caf_${component})
  list(APPEND _caf_required CAF_${component}_LIBRARY)
endforeach()

if(CAF_INCLUDE_DIR)
  # CAF_VERSION is written MMmmpp (major, minor, patch), e.g. 1706 for 0.17.6.
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp _caf_line REGEX "#define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" _caf_number "${_caf_line}")
  if(_caf_number)
    math(EXPR _caf_major "${_caf_number} / 10000")
    math(EXPR _caf_minor "(${_caf_number} / 100) % 100")
    math(EXPR _caf_patch "${_caf_number} % 100")
    set(CAF_VERSION ${_caf_major}.${_caf_minor}.${_caf_patch})
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS ${_caf_required} VERSION_VAR CAF_VERSION)

if(CAF_FOUND AND NOT TARGET CAF::core)
  foreach(component IN ITEMS core io openssl)
    add_library(CAF::${component} UNKNOWN IMPORTED)
    set_target_properties(CAF::${component} PROPERTIES IMPORTED_LOCATION ${CAF_${component}_LIBRARY}
                                                       INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
  endforeach()
  set_property(TARGET CAF::io APPEND PROPERTY INTERFACE_LINK_LIBRARIES CAF::core)
  set_property(TARGET CAF::openssl APPEND PROPERTY INTERFACE_LINK_LIBRARIES CAF::io)
endif()
mark_as_advanced(CAF_INCLUDE_DIR CAF_core_LIBRARY CAF_io_LIBRARY CAF_openssl_LIBRARY)
