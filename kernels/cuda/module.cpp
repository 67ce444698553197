#include "kernels/cuda/module.hpp"

#include "kernels/cuda/build_id.hpp"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>

namespace dlrun::kernels::cuda {
namespace {

/// Of the file that this code is part of: a program, or libdlrun.so in any program.
std::filesystem::path own_file() {
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&module_path), &about) == 0 || about.dli_fname == nullptr)
    return {};
  return about.dli_fname;
}

/// The folders in which it may be.
std::array<std::filesystem::path, 3> library_folders() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  return {own_file().parent_path(), program.parent_path() / "lib",
          program.parent_path() / DLRUN_LIBRARY_FOLDER};
}

bool is_there(const char* library) {
  void* const found = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (found != nullptr) ::dlclose(found);
  return found != nullptr;
}

tl::unexpected<error> refused(std::string why) { return fail(error_code::bad_usage, std::move(why)); }

result<device_module*> enter(void* library, const std::string& file) {
  void* const found = ::dlsym(library, module_entry);
  if (found == nullptr)
    return refused(fmt::format("'{}' is no CUDA module of dlrun: it has no {}; name another file in {}, or "
                               "leave that out",
                               file, module_entry, module_variable));
  auto* const made = reinterpret_cast<device_module_entry*>(found)(build_id);
  if (made == nullptr)
    return refused(fmt::format("the CUDA module '{}' is of another build than this program, which is '{}': "
                               "build and install both together",
                               file, build_id));
  return made;
}

} // namespace

std::filesystem::path module_path() {
  if (const char* named = std::getenv(module_variable); named != nullptr && *named != '\0') return named;
  const auto folders = library_folders();
  std::error_code ignored;
  for (const auto& folder : folders)
    if (auto path = folder / module_file; std::filesystem::exists(path, ignored)) return path;
  return folders.back() / module_file;
}

result<device_module*> load_module(const std::filesystem::path& path, const char* driver) {
  std::error_code ignored;
  const auto file = std::filesystem::absolute(path, ignored).string(); // dlopen searches for a mere name
  if (!std::filesystem::is_regular_file(file, ignored))
    return refused(
        fmt::format("there is no CUDA module: '{}' is no file; install one (docs/gpu.md), or name it in {}",
                    file, module_variable));
  if (path.filename() == module_file && !is_there(driver)) return tl::unexpected(no_driver());
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return refused(fmt::format("the CUDA module '{}' cannot be loaded: {}; install what it needs "
                               "(docs/gpu.md)",
                               file, ::dlerror()));
  auto entered = enter(library, file);
  if (!entered) ::dlclose(library);
  return entered;
}

} // namespace dlrun::kernels::cuda
