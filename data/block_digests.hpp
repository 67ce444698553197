/// What a decoded array holds, block by block: to know the same data again, to say where other data
/// differs, and to check blocks that another host gives.
#pragma once

#include "data/decoded.hpp"

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace dlrun::data {

/// An array is cut into blocks of 1 MiB. Of a small one they are smaller, so that there are at
/// least 64 and a difference is told well; of one beyond 64 GiB larger, so that there are at most
/// this many, whose digests take 2 MiB.
inline constexpr std::uint64_t digest_blocks_max = std::uint64_t{1} << 16;
inline constexpr std::size_t block_digest_bytes = 32;

/// Bytes of each block of an array of so many (at least 1): a power of two.
std::uint64_t block_bytes_of(std::uint64_t array_bytes);

/// SHA-256 of each block, 32 bytes each, in their order.
struct block_digests {
  std::uint64_t block_bytes = 0; ///< the last block may be shorter
  std::vector<std::string> blocks;
  bool operator==(const block_digests&) const = default;
};

/// Items [first, end) of something.
struct place_run {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  bool operator==(const place_run&) const = default;
};

/// The bytes of a block of an array of `array_bytes`, which must have it.
place_run bytes_of_block(std::uint64_t array_bytes, std::uint64_t block_bytes, std::uint64_t block);

/// Hashes an array while somebody fills it from its beginning, on a thread of its own. The memory
/// must be there until finish() has returned, or this is gone.
class block_hasher {
public:
  explicit block_hasher(std::span<const std::uint8_t> array);
  ~block_hasher();
  block_hasher(const block_hasher&) = delete;
  block_hasher& operator=(const block_hasher&) = delete;

  /// The first `bytes` of the array are as they will stay. Never blocks.
  void filled(std::uint64_t bytes);
  /// All of it is filled: hashes what is left, with all cores. The last call.
  std::shared_ptr<const block_digests> finish();

private:
  void take_part();
  bool wait_for(std::uint64_t end) const;
  void move_to(std::uint64_t bytes);

  std::span<const std::uint8_t> array_;
  block_digests made_;
  std::atomic<std::uint64_t> filled_{0};
  std::atomic<bool> given_up_{false};
  std::atomic<std::uint64_t> next_{0}; ///< block that nobody has taken
  std::thread helper_;                 ///< last: it uses the members above
};

/// The digests of an array: those that were made while it was filled, else made now with all cores,
/// which reads all of it: what is mapped comes from the disk.
std::shared_ptr<const block_digests> digests_of(const stored_array& array);

} // namespace dlrun::data
