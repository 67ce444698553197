/// Damages files as disks and crashes do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace dlrun::test {

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void flip_byte(const std::filesystem::path& path, std::uint64_t offset, std::uint8_t bits) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ bits));
}

/// One way to damage a file: to cut it off at `offset`, or to flip bits there.
struct damage {
  bool truncate = false;
  std::uint64_t offset = 0;
  std::uint8_t bits = 1;

  void apply_to(const std::filesystem::path& path) const {
    if (truncate)
      std::filesystem::resize_file(path, offset);
    else
      flip_byte(path, offset, bits);
  }
  /// Makes the file what it was.
  void undo(const std::filesystem::path& path, const std::string& whole) const {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(whole.data() + offset, static_cast<std::streamsize>(truncate ? whole.size() - offset : 1));
  }
  std::string describe() const {
    return (truncate ? "truncated at byte " : "bits " + std::to_string(bits) + " flipped at byte ") +
           std::to_string(offset);
  }
};

/// Truncations at each of `borders` and at `count` places, and `count` flips, all below `bytes`.
/// Seeded.
inline std::vector<damage> damages(std::uint64_t bytes, const std::vector<std::uint64_t>& borders, int count,
                                   std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<damage> all;
  for (const auto border : borders)
    if (border < bytes) all.push_back({true, border, 0});
  for (int i = 0; i < count; ++i) all.push_back({true, random() % bytes, 0});
  for (int i = 0; i < count; ++i)
    all.push_back({false, random() % bytes, static_cast<std::uint8_t>(random() % 255 + 1)});
  return all;
}

/// Where the records of RocksDB's log begin and end.
inline std::vector<std::uint64_t> log_record_borders(const std::string& log) {
  constexpr std::size_t block_bytes = 32768;
  constexpr std::size_t head_bytes = 7;
  std::vector<std::uint64_t> borders;
  for (std::size_t at = 0; at + head_bytes <= log.size();) {
    if (block_bytes - at % block_bytes < head_bytes) {
      at += block_bytes - at % block_bytes;
      continue;
    }
    borders.push_back(at);
    at += head_bytes + static_cast<std::uint8_t>(log[at + 4]) + 256U * static_cast<std::uint8_t>(log[at + 5]);
  }
  return borders;
}

} // namespace dlrun::test
