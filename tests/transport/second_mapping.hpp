/// The same memory as another process has it.
#pragma once

#include "transport/segment.hpp"

#include <fcntl.h>

namespace dlrun::transport {

/// A second mapping of it, through a descriptor of its own.
inline segment other_side(const segment& owner) {
  return segment::adopt(base::unique_fd(::fcntl(owner.fd(), F_DUPFD_CLOEXEC, 3)), owner.size()).value();
}

} // namespace dlrun::transport
