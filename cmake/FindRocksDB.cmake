# Finds RocksDB as Debian packages it. Its own CMake package wants the headers of everything it is
# linked with. Defines RocksDB_FOUND, RocksDB_VERSION and the imported target RocksDB::rocksdb: the
# shared library, but for targets with the property RocksDB_LINK_STATIC the archive, where the
# package has it. A program that is started often is better off with that: the loader resolves a
# symbol for each of the thousands of functions in the library's tables, used or not, before main
# begins.
find_path(RocksDB_INCLUDE_DIR rocksdb/db.h)
find_library(RocksDB_LIBRARY rocksdb)
find_library(RocksDB_ARCHIVE librocksdb.a)
if(RocksDB_INCLUDE_DIR)
  file(STRINGS ${RocksDB_INCLUDE_DIR}/rocksdb/version.h version_lines REGEX "#define ROCKSDB_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" version_numbers "${version_lines}")
  list(JOIN version_numbers "." RocksDB_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RocksDB REQUIRED_VARS RocksDB_LIBRARY RocksDB_INCLUDE_DIR VERSION_VAR RocksDB_VERSION)
if(RocksDB_FOUND AND NOT TARGET RocksDB::rocksdb)
  set(_linked ${RocksDB_LIBRARY})
  if(RocksDB_ARCHIVE)
    # What the archive needs: the development package depends on theirs.
    set(_linked $<IF:$<BOOL:$<TARGET_PROPERTY:RocksDB_LINK_STATIC>>,${RocksDB_ARCHIVE};snappy;bz2;z;lz4;zstd;${CMAKE_DL_LIBS},${RocksDB_LIBRARY}>)
  endif()
  add_library(RocksDB::rocksdb INTERFACE IMPORTED)
  set_target_properties(RocksDB::rocksdb PROPERTIES INTERFACE_LINK_LIBRARIES "${_linked}" INTERFACE_INCLUDE_DIRECTORIES ${RocksDB_INCLUDE_DIR})
endif()
mark_as_advanced(RocksDB_INCLUDE_DIR RocksDB_LIBRARY RocksDB_ARCHIVE)
