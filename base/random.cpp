#include "base/random.hpp"

#include "base/os_error.hpp"

#include <random>
#include <sys/random.h>

namespace dlrun::base {

result<void> fill_random(std::span<std::byte> bytes) {
  // Up to 256 bytes come whole once the generator is seeded; a signal can only interrupt the wait
  // for that.
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    if (errno != EINTR) return fail_errno("cannot get random bytes from the kernel");
  return {};
}

std::uint64_t random_number() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

} // namespace dlrun::base
