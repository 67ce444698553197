/// Opening a shard_store: what is there, and what of it counts.
#pragma once

#include "persistence/store_ground.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::persistence {

/// Opens a store: fills its store_ground from the folder, once, before any other code has it.
class store_opening {
public:
  explicit store_opening(store_ground& on)
      : on_(on) {}

  /// As shard_store::open(). @returns what was found.
  result<store_contents> open();

private:
  /// A record of the log.
  struct found_record {
    step_id step;
    std::optional<segment_place> place; ///< of the payload, where that is in a segment
    segment_record payload;             ///< what is to be there
    std::string damage;                 ///< why it does not count; empty when it does
    std::optional<error> failure;       ///< it cannot be said whether it counts
  };

  // In this order.
  result<void> create_folders();
  result<void> check_there() const;
  result<void> open_database();
  result<void> claim(bool is_new);
  result<void> settle_identity();
  result<void> load_facts();
  result<void> load_snapshots();
  result<void> load_log();
  found_record examine(step_id step, std::string_view value) const;
  void verify_payloads(std::vector<found_record>& records) const;
  result<void> drop_unreachable(const std::vector<found_record>& records);
  result<void> settle();
  result<void> delete_fact(const std::string& key);
  void note_damage(std::string line);
  /// What is to be dropped may have been acknowledged (R24).
  void note_loss(std::string line);
  /// To be called before it is dropped.
  result<void> renew_if_lost();
  bool is_renewed() const;
  /// Gives it another identity. @param why for people
  result<void> renew(std::string why);

  store_ground& on_;
  store_contents found_;
  bool has_lost_ = false;
  std::uint64_t damage_left_out_ = 0;
};

} // namespace dlrun::persistence
