/// Finds and loads the CUDA module, the only part of dlrun that knows CUDA.
#pragma once

#include "kernels/cuda/device_api.hpp"
#include "kernels/cuda/driver.hpp"

#include <filesystem>

namespace dlrun::kernels::cuda {

/// The file of the module, in the library folder of an installation.
inline constexpr const char* module_file = "libdlrun_cuda.so";
/// The entry point in it, of type device_module_entry.
inline constexpr const char* module_entry = "dlrun_device_module_1";
/// In the environment: another file to load as the module.
inline constexpr const char* module_variable = "DLRUN_CUDA_MODULE";

/// Where the module of this process is, whether or not there is one: what DLRUN_CUDA_MODULE names,
/// else the first that is there of: beside libdlrun.so, where this is part of that; in the library
/// folder beside the folder of the running program. This is the only place that reads the variable.
std::filesystem::path module_path();

/// Loads the module at `path`; it stays loaded until the process ends. Thread-safe; the same module
/// for the same file. One that is called `module_file` is loaded only where the dynamic linker
/// finds `driver`: CUDA's libraries, which come with it, take 200 MB and half a second that a host
/// without a GPU need not spend. @returns bad_usage, naming the file and the way out, when there is
/// none, the driver or a library that it needs is missing, it is no module of dlrun, or it is one
/// of another build.
result<device_module*> load_module(const std::filesystem::path& path, const char* driver = driver_library);

} // namespace dlrun::kernels::cuda
