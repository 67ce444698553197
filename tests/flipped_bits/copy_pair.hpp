/// A PS shard's side of a copy and the keeper's, with stores on disk, in one thread and on a clock
/// of their own: all of the product's but its actors.
#pragma once

#include "actors/keeper/part_fetcher.hpp"
#include "actors/keeper/store_mirror.hpp"
#include "actors/ps_shard/copy_book.hpp"
#include "actors/ps_shard/copy_sender.hpp"
#include "tests/flipped_bits/bit_flip.hpp"
#include "tests/flipped_bits/played_channel.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::flipped_bits {

/// All that a copy of `store` is to have.
ps_shard::own_store held_by(const persistence::shard_store& store);

struct copy_pair_options {
  const persistence::shard_store* store = nullptr; ///< that is copied
  persistence::shard_store_options copy{};
  std::shared_ptr<bit_flip> flip;
};

/// Fills the copy until the PS shard counts it.
class copy_pair {
public:
  explicit copy_pair(copy_pair_options options);

  /// @returns false when it does not get there.
  bool run();
  /// What went wrong on the way, as the product noticed it.
  const std::vector<std::string>& noticed() const { return noticed_; }
  /// That of the copy, which is open.
  const persistence::shard_store& copy() const { return *mirror_->store(); }

private:
  void start_keeper();
  void lose_keeper(const std::string& why);
  bool is_level() const;
  bool turn();
  bool run_task(std::deque<std::function<void()>>& tasks);
  void deliver(protocol::copy_part part);
  void hear(protocol::copy_standing said);

  copy_pair_options options_;
  std::vector<std::string> noticed_;
  protocol::time_point now_{};
  std::deque<std::function<void()>> to_read_;
  std::deque<std::function<void()>> posted_;
  std::deque<protocol::copy_part> parts_;
  std::shared_ptr<played_offers> offers_ = std::make_shared<played_offers>();
  ps_shard::own_store own_;
  dlrun::incarnation keeper_{};
  std::unique_ptr<keeper::store_mirror> mirror_;
  keeper::part_fetcher fetcher_;
  ps_shard::copy_book book_;
  ps_shard::copy_sender sender_;
};

} // namespace dlrun::flipped_bits
