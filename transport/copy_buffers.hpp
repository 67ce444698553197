/// Memory for copies of segments.
#pragma once

#include "transport/segment.hpp"

#include <cstddef>
#include <memory>
#include <span>

namespace dlrun::transport {

/// Memory on loan. It goes back when the last owner is destroyed, on any thread.
struct copy_buffer {
  std::span<std::byte> memory;
  std::shared_ptr<void> owner;
};

/// Lends memory for copies of segments, and lends it again, so that a copy does not begin with page
/// faults. Pages that nobody writes take no memory: a copy of a part of a segment costs only that
/// part. Thread-safe. Loans may outlive this object.
class copy_buffers {
public:
  copy_buffers();

  /// `bytes` (at least 1) of page-aligned memory: zeroes in the first page, unspecified content in
  /// the rest.
  /// @returns system when the OS refuses.
  result<copy_buffer> lend(std::size_t bytes);

private:
  struct shelf;
  std::shared_ptr<shelf> shelf_;
};

} // namespace dlrun::transport
