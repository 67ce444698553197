#include "data/block_digests.hpp"

#include "base/sha256.hpp"

#include <algorithm>
#include <bit>
#include <system_error>

namespace dlrun::data {
namespace {

constexpr std::uint64_t block_bytes_usual = std::uint64_t{1} << 20;
/// Of a small array.
constexpr std::uint64_t blocks_min = 64;
/// An array that is hashed sooner than a thread starts needs none.
constexpr std::uint64_t helped_bytes_min = std::uint64_t{4} << 20;

std::uint64_t divided(std::uint64_t what, std::uint64_t by) { return (what + by - 1) / by; }

} // namespace

std::uint64_t block_bytes_of(std::uint64_t array_bytes) {
  const auto small = std::bit_floor(std::max<std::uint64_t>(1, array_bytes / blocks_min));
  const auto needed = std::bit_ceil(std::max<std::uint64_t>(1, divided(array_bytes, digest_blocks_max)));
  return std::max(std::min(small, block_bytes_usual), needed);
}

place_run bytes_of_block(std::uint64_t array_bytes, std::uint64_t block_bytes, std::uint64_t block) {
  const auto first = block * block_bytes;
  return {first, std::min(first + block_bytes, array_bytes)};
}

block_hasher::block_hasher(std::span<const std::uint8_t> array)
    : array_{array} {
  made_.block_bytes = block_bytes_of(array.size());
  made_.blocks.resize(static_cast<std::size_t>(divided(array.size(), made_.block_bytes)));
  if (array.size() < helped_bytes_min) return;
  try {
    helper_ = std::thread{[this] { take_part(); }};
  } catch (const std::system_error&) { // then finish() does it all
  }
}

block_hasher::~block_hasher() {
  given_up_ = true;
  move_to(array_.size()); // wakes the helper
  if (helper_.joinable()) helper_.join();
}

void block_hasher::move_to(std::uint64_t bytes) {
  filled_.store(bytes, std::memory_order_release);
  filled_.notify_all();
}

void block_hasher::filled(std::uint64_t bytes) { move_to(bytes); }

/// @returns false when the hasher was given up.
bool block_hasher::wait_for(std::uint64_t end) const {
  for (auto now = filled_.load(std::memory_order_acquire); now < end;
       now = filled_.load(std::memory_order_acquire))
    filled_.wait(now, std::memory_order_acquire);
  return !given_up_;
}

void block_hasher::take_part() {
  for (auto block = next_++; block < made_.blocks.size(); block = next_++) {
    const auto run = bytes_of_block(array_.size(), made_.block_bytes, block);
    if (!wait_for(run.end)) return;
    const auto bytes =
        array_.subspan(static_cast<std::size_t>(run.first), static_cast<std::size_t>(run.end - run.first));
    made_.blocks[static_cast<std::size_t>(block)] =
        base::sha256_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

std::shared_ptr<const block_digests> block_hasher::finish() {
  move_to(array_.size());
  std::vector<std::jthread> helpers;
  const auto left =
      divided(array_.size() - std::min(array_.size(), next_ * made_.block_bytes), block_bytes_usual);
  const auto wanted = std::min<std::uint64_t>(std::max(1U, std::thread::hardware_concurrency()), left);
  try {
    while (helpers.size() + (helper_.joinable() ? 2 : 1) < wanted)
      helpers.emplace_back([this] { take_part(); });
  } catch (const std::system_error&) { // those that there are do it
  }
  take_part();
  helpers.clear();
  if (helper_.joinable()) helper_.join();
  return std::make_shared<const block_digests>(std::move(made_));
}

std::shared_ptr<const block_digests> digests_of(const stored_array& array) {
  return array.digests ? array.digests : block_hasher{array.bytes()}.finish();
}

} // namespace dlrun::data
