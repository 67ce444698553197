#include "kernels/cuda/stand_in/bit_flip.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

namespace dlrun::kernels::cuda {
namespace {

constexpr std::size_t word_bytes = 4;
constexpr std::uint64_t word_bits = 32;

std::span<std::byte> bytes_of(const stand_in_memory::value_type& one) {
  return {static_cast<std::byte*>(one.first), one.second.bytes};
}

} // namespace

void bit_flip::look(const stand_in_memory& memory) {
  if (done_) return;
  before_.clear();
  for (const auto& one : memory) {
    const auto bytes = bytes_of(one);
    before_[one.second.number].assign(bytes.begin(), bytes.end());
  }
}

void bit_flip::flip(const stand_in_memory& memory) {
  if (done_) return;
  std::map<std::int64_t, std::span<std::byte>> now;
  for (const auto& one : memory) now[one.second.number] = bytes_of(one);
  std::vector<std::span<std::byte>> written; // words; the last of a block may be shorter
  for (const auto& [number, bytes] : now) {
    const auto before = before_.find(number);
    if (before == before_.end()) continue;
    for (std::size_t at = 0; at < bytes.size(); at += word_bytes) {
      const auto word = bytes.subspan(at, std::min(word_bytes, bytes.size() - at));
      if (std::memcmp(word.data(), &before->second[at], word.size()) != 0) written.push_back(word);
    }
  }
  before_.clear();
  if (written.empty()) return;
  std::mt19937_64 random(seed_);
  const auto word = written[random() % written.size()];
  const auto bit = seed_ % word_bits % (8 * word.size());
  word[bit / 8] ^= std::byte{1} << (bit % 8);
  done_ = true;
}

} // namespace dlrun::kernels::cuda
