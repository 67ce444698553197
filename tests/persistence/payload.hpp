/// Bytes that follow from what they are of, so that a test needs no copy to compare with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dlrun/ids.hpp>
#include <iterator>
#include <vector>

namespace dlrun::test {

inline std::vector<std::byte> payload_of(step_id step, timeline_id timeline, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = step.value * 0x9e3779b97f4a7c15U + timeline.value * 0xbf58476d1ce4e5b9U + size;
  for (auto& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

/// Small and large ones in turn: both ways of storing them.
inline std::size_t size_of(step_id step) {
  constexpr std::size_t sizes[] = {0, 100, 4096, 5000, 17, 9000};
  return sizes[step.value % std::size(sizes)];
}

/// Payloads above this go to segments in the tests, so that the tests are quick.
inline constexpr std::size_t small_inline_bytes_max = 4096;

} // namespace dlrun::test
