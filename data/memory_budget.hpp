/// How much memory decoded data may take.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::data {

/// Counts what is taken and refuses, before it is, what would be more than the limit. Not
/// thread-safe.
class memory_budget {
public:
  /// `limit` in bytes; 0 is half of the memory that this process may use.
  explicit memory_budget(std::uint64_t limit = 0);

  /// @returns bad_data naming `name`, both sizes and the key that sets the limit.
  result<void> take(std::uint64_t bytes, const std::string& name);

  std::uint64_t limit() const { return limit_; }

private:
  std::uint64_t limit_;
  std::uint64_t taken_ = 0;
};

} // namespace dlrun::data
