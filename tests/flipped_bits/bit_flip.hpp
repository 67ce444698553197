/// One bit that is flipped, once, at a moment and in a place that a seed decides.
#pragma once

#include "actors/keeper/store_mirror.hpp"
#include "actors/ps_shard/copy_stream.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

namespace dlrun::flipped_bits {

enum class place : std::uint8_t {
  part_fields,     ///< of a copy_part, behind its seal
  standing_fields, ///< of a copy_standing, behind its seal
  item,            ///< which record or snapshot is read, where the PS shard has it in memory
  part_sent,       ///< bytes of a part in the memory of the PS shard, where they are fetched
  part_fetched,    ///< the same in that of the keeper, before their check
  piece,           ///< what the keeper has in memory of a record or a snapshot between two parts
  written,         ///< bytes on their way into a file of the copy
  on_disk          ///< bytes of a file of the copy that nobody has open
};
inline constexpr std::array all_places{place::part_fields, place::standing_fields, place::item,
                                       place::part_sent,   place::part_fetched,    place::piece,
                                       place::written,     place::on_disk};
std::string_view to_string(place where);

struct flip_plan {
  place where = place::on_disk;
  std::uint64_t when = 0; ///< so many opportunities are passed over
  std::uint64_t bit = 0;  ///< of all there are at that moment, modulo their number
};

/// Is shown each opportunity, counts it, and flips at the planned one. Without a plan it counts
/// alone. Thread-safe.
class bit_flip {
public:
  explicit bit_flip(std::optional<flip_plan> plan = {})
      : plan_(plan) {}

  void show(protocol::copy_part& part);
  void show(protocol::copy_standing& standing);
  void show(ps_shard::copy_item& item);
  void show(keeper::store_mirror& mirror);
  /// Bytes in such a place; none are no opportunity.
  void show(place where, std::span<std::byte> bytes);

  bool is_done() const;
  std::uint64_t opportunities(place where) const;

private:
  bool is_now(place where);

  const std::optional<flip_plan> plan_;
  mutable std::mutex mutex_;
  std::map<place, std::uint64_t> shown_; // guarded by mutex_, as is the next
  bool is_done_ = false;
};

} // namespace dlrun::flipped_bits
