#include "runtime/folder_watch.hpp"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <utility>

namespace dlrun::runtime {

folder_watch::folder_watch(std::filesystem::path folder)
    : folder_(std::move(folder))
    , held_{::open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)} {}

std::string folder_watch::lost() const {
  struct stat held {};
  struct stat named {};
  if (!held_ || ::fstat(held_.get(), &held) != 0) return "";
  if (::stat(folder_.c_str(), &named) == 0) {
    if (named.st_dev == held.st_dev && named.st_ino == held.st_ino) return "";
  } else if (errno != ENOENT && errno != ENOTDIR) {
    return "";
  }
  return fmt::format("the run folder '{}' was removed, moved or replaced while the run went on: put it back "
                     "and 'dlrun resume' it, or train again",
                     folder_.string());
}

} // namespace dlrun::runtime
