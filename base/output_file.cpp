#include "base/output_file.hpp"

#include "base/full_disk.hpp"
#include "base/os_error.hpp"
#include "base/unique_fd.hpp"
#include "base/write_all.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dlrun::base {
namespace {

constexpr int links_max = 40; // as the kernel follows (path_resolution(7))
constexpr int names_max = 100;
constexpr mode_t for_all = 0666; // less the umask
constexpr mode_t permissions = 0777;

/// What another place to write to, named by the user, would mend.
bool is_of_the_place(int number) {
  return number == EACCES || number == ENOENT || number == ENOTDIR || number == EROFS || number == EISDIR ||
         number == ENXIO || number == EBADF || number == ELOOP || number == ENAMETOOLONG || number == EPERM;
}

/// What the kernel says of a write to `file`, and what of the disk is used up.
std::string text_of(int number, const std::filesystem::path& file) {
  return fmt::format("{}{}", std::strerror(number), is_disk_full(number) ? tell_no_inodes(file) : "");
}

error_code code_of(int number) {
  if (is_disk_full(number)) return error_code::disk_full;
  return is_of_the_place(number) ? error_code::bad_usage : error_code::system;
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.parent_path().empty() ? std::filesystem::path{"."} : file.parent_path();
}

/// The number that `file` has among the open descriptors of this process (/proc/self/fd, to which
/// /dev/fd leads).
std::optional<int> descriptor_of(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto folder = std::filesystem::canonical(folder_of(file), ignored);
  if (folder != fmt::format("/proc/{}/fd", ::getpid())) return std::nullopt;
  const auto name = file.filename().string();
  int number = -1;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (failed != std::errc{} || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

/// Six letters and digits that nobody else chooses at the same time.
std::string random_ending() {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::uniform_int_distribution<std::size_t> place{0, letters.size() - 1};
  std::string ending = ".";
  for (int i = 0; i < 6; ++i) ending += letters[place(random)];
  return ending;
}

} // namespace

std::filesystem::path end_of_links(const std::filesystem::path& file) {
  auto at = file;
  for (int followed = 0; followed < links_max; ++followed) {
    std::error_code failed;
    if (descriptor_of(at)) return at;
    const auto target = std::filesystem::read_symlink(at, failed);
    if (failed) return at; // it is none
    at = target.is_absolute() ? target : folder_of(at) / target;
  }
  return file;
}

tl::unexpected<error> output_file::failure(int number) const {
  return fail(is_disk_full(number) ? error_code::disk_full : error_code::system,
              fmt::format("cannot write {}: {}", file_.string(), text_of(number, file_)));
}

result<output_file> output_file::open(const std::filesystem::path& file, unfinished kept) {
  auto target = end_of_links(file);
  if (const auto number = descriptor_of(target))
    return into(file, ::fcntl(*number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  struct stat about {};
  if (std::error_code ignored; std::filesystem::is_symlink(target, ignored))
    return into(file, (errno = ELOOP, -1));
  if (::stat(target.c_str(), &about) != 0 || S_ISREG(about.st_mode)) return beside(std::move(target), kept);
  if (S_ISDIR(about.st_mode)) return into(file, (errno = EISDIR, -1));
  return into(file, ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
}

result<output_file> output_file::into(const std::filesystem::path& file, int fd) {
  if (fd >= 0) return output_file{fd, file};
  return fail(code_of(errno), fmt::format("cannot write to {}: {}", file.string(), std::strerror(errno)));
}

template <class Make>
int output_file::make_temporary(Make make) {
  int made = -1;
  for (int i = 0; i < names_max && made < 0; ++i) {
    // A name of its own for each writer, so that two at once do not mix their bytes.
    temporary_ = (folder_of(file_) / (".dlrun" + random_ending())).string();
    made = make(temporary_.c_str());
    if (made < 0 && errno != EEXIST) break;
  }
  if (made < 0) temporary_.clear();
  return made;
}

result<output_file> output_file::beside(std::filesystem::path file, unfinished kept) {
  output_file made{-1, std::move(file)};
  made.is_regular_ = true;
  if (kept == unfinished::nameless_where_possible)
    made.fd_ = ::open(folder_of(made.file_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, for_all);
  if (made.fd_ < 0 && (kept == unfinished::named || !is_of_the_place(errno)))
    made.fd_ = made.make_temporary(
        [](const char* name) { return ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, for_all); });
  if (made.fd_ < 0)
    return fail(code_of(errno), fmt::format("cannot create a file beside {}: {}", made.file_.string(),
                                            text_of(errno, made.file_)));
  struct stat replaced {};
  if (::stat(made.file_.c_str(), &replaced) == 0)
    ::fchmod(made.fd_, replaced.st_mode & permissions);
  else if (errno == ENAMETOOLONG)
    return made.into(made.file_, -1);
  return made;
}

output_file::output_file(output_file&& other) noexcept
    : fd_(std::exchange(other.fd_, -1))
    , file_(std::move(other.file_))
    , is_regular_(other.is_regular_)
    , temporary_(std::exchange(other.temporary_, {})) {}

output_file::~output_file() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

result<void> output_file::write(std::string_view content) {
  if (!write_all(fd_, content)) return failure(errno);
  return {};
}

result<void> output_file::finish() {
  if (is_regular_ && ::fsync(fd_) != 0) return failure(errno);
  // A name cannot be taken from another file but by one that has a name.
  if (is_regular_ && temporary_.empty() && make_temporary([this](const char* name) {
                                             return ::linkat(AT_FDCWD,
                                                             fmt::format("/proc/self/fd/{}", fd_).c_str(),
                                                             AT_FDCWD, name, AT_SYMLINK_FOLLOW);
                                           }) < 0)
    return failure(errno);
  // What a file system tells late (a quota, NFS) it tells here.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) return failure(errno);
  if (is_regular_ && ::rename(temporary_.c_str(), file_.c_str()) != 0) return failure(errno);
  temporary_.clear();
  return is_regular_ ? sync_name() : result<void>{};
}

/// Until then a power cut may take the name back. Where the folder may not be read, or the file
/// system syncs none, there is no more to be had.
result<void> output_file::sync_name() const {
  const unique_fd folder(::open(folder_of(file_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) == 0 || errno == EINVAL) return {};
  return failure(errno);
}

} // namespace dlrun::base
