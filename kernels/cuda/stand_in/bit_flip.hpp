/// One bit of a device's memory that becomes another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace dlrun::kernels::cuda {

/// What is allocated at an address.
struct stand_in_block {
  std::size_t bytes;
  std::int64_t number; ///< of the allocation, from 1
};
using stand_in_memory = std::map<void*, stand_in_block>;

/// Flips a bit of what is written between look() and flip(), once in its life: bit `seed` mod 32 of
/// a word of 32 bits that `seed` draws. Addresses play no part in it.
class bit_flip {
public:
  explicit bit_flip(std::uint64_t seed)
      : seed_{seed} {}

  bool is_done() const { return done_; }
  /// What `memory` is now, all of which can be read.
  void look(const stand_in_memory& memory);
  /// Does nothing where it is done, or nothing has been written since.
  void flip(const stand_in_memory& memory);

private:
  std::uint64_t seed_;
  bool done_ = false;
  std::map<std::int64_t, std::vector<std::byte>> before_; ///< by the number of the allocation
};

} // namespace dlrun::kernels::cuda
