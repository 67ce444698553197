// Empty: libdlrun.so is made of the libraries that dlrun_package.cmake names.
