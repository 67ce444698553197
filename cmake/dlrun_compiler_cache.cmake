# Compiles through ccache where it is installed. The cache lies in the checkout, with its own limit,
# unless the environment names another: nobody's own cache is filled, and it goes when the checkout
# goes.
find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # pch_defines, time_macros: without them ccache takes no file that uses a precompiled header.
  # DEPEND: what a source includes is taken from the compiler's list of it, not from preprocessing
  # it once more. BASEDIR: two checkouts at different paths share what they have in common, where
  # they share a cache.
  set(_ccache_settings CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR})
  if(NOT DEFINED ENV{CCACHE_DIR})
    list(APPEND _ccache_settings CCACHE_DIR=${CMAKE_SOURCE_DIR}/.cache/ccache CCACHE_MAXSIZE=2G)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER env ${_ccache_settings} ${CCACHE_PROGRAM})
endif()

# Of the linkers mold is by far the fastest: programs that link all of dlrun take it a second.
find_program(DLRUN_MOLD mold)
if(DLRUN_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
