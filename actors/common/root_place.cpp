#include "actors/common/root_place.hpp"

#include "base/ipv4_address.hpp"
#include "base/os_error.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace dlrun::common {

namespace {

constexpr std::size_t place_bytes = 4096;
constexpr int place_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

} // namespace

void root_place::unmap::operator()(word* mapped) const { ::munmap(mapped, place_bytes); }

result<root_place> root_place::map(base::unique_fd fd) {
  static_assert(sizeof(word) <= place_bytes && word::is_always_lock_free);
  void* mapped = ::mmap(nullptr, place_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return base::fail_errno("cannot map the place of the root");
  return root_place{std::move(fd), static_cast<word*>(mapped)}; // zeroes are its first state
}

result<root_place> root_place::create() {
  base::unique_fd fd{::memfd_create("dlrun:root-place", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!fd || ::ftruncate(fd.get(), place_bytes) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, place_seals) != 0)
    return base::fail_errno("cannot create the memory for the place of the root");
  return map(std::move(fd));
}

result<root_place> root_place::open(base::unique_fd fd) {
  struct stat file {};
  if (::fcntl(fd.get(), F_GET_SEALS) != place_seals || ::fstat(fd.get(), &file) != 0 ||
      static_cast<std::size_t>(file.st_size) != place_bytes)
    return fail(
        error_code::bad_usage,
        fmt::format("descriptor {} is no place of a root; this process is meant to be started by dlrun",
                    fd.get()));
  return map(std::move(fd));
}

bool root_place::move_to(std::string_view at) {
  const auto address = base::parse_ipv4_address(at);
  return address && word_->exchange(address->sin_addr.s_addr) != address->sin_addr.s_addr;
}

std::string root_place::now(const std::string& told) const {
  const auto begin = told.rfind('@') + 1; // 0 of a text without
  auto address = base::parse_ipv4_address(std::string_view{told}.substr(begin));
  const auto here = number();
  if (here == 0 || !address) return told;
  address->sin_addr.s_addr = here;
  return told.substr(0, begin) + base::to_string(*address);
}

} // namespace dlrun::common
