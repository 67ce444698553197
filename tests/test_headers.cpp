// A library needs a source. What counts are its precompiled headers (CMakeLists.txt).
