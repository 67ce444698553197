/// Where gradients come in at a PS shard: what workers pushed is found in their memory.
#pragma once

#include "actors/protocol/step_messages.hpp"
#include "actors/protocol/time.hpp"
#include "actors/ps_shard/gradient.hpp"
#include "actors/ps_shard/transfer_times.hpp"
#include "engine/parameter_layout.hpp"
#include "transport/gradient_segment.hpp"
#include "transport/tensor_channel.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <spdlog/logger.h>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::ps_shard {

/// Maps the segments that pushes name, each once, and reads this shard's part of the gradient in
/// place, until its worker names others again and again; over TCP it gets a copy for each push.
/// Called by its owner only.
class gradient_inbox {
public:
  struct events {
    /// Whether a push that had to wait for its segment is still worth taking.
    std::function<bool(const protocol::push&)> wants;
    std::function<void(const protocol::push&, gradient)> arrived;
    /// It names a gradient that is there no more.
    std::function<void(const protocol::push&)> unusable;
  };

  /// `range` is the shard's of a gradient of `flat_size` floats. `post` runs a task at the owner,
  /// from any thread, unless the owner has gone.
  gradient_inbox(const engine::shard_range& range, std::uint64_t flat_size,
                 std::unique_ptr<transport::segment_fetches> channel,
                 std::function<void(std::function<void()>)> post, std::shared_ptr<spdlog::logger> log,
                 events told);

  /// A push that is wanted, told at `now`. Either event comes, at once or when its segment is
  /// there; none where that cannot be had, or too many wait for it: the worker repeats what it
  /// keeps.
  void take(const protocol::push& push, protocol::time_point now);
  /// Of a step: the slots whose gradients are on their way from other hosts, and not late.
  std::vector<protocol::slot_range> on_the_way(timeline_id timeline, step_id step,
                                               protocol::time_point now) const;
  /// What is there of a push that will come, final from float `from` of the whole gradient on.
  /// Nothing for the first one of a buffer, which is not mapped yet: it is waited for whole.
  std::optional<gradient> find_part(const protocol::push& push, std::uint64_t from) const;
  /// A newer start of the worker exists: what older ones lent goes, once it is not read any more.
  void forget(worker_id worker, incarnation older_than);
  std::size_t segments() const { return sources_.size(); }

private:
  /// Of memory that is shared, which shows what its worker writes, `sequence` is 0. A copy is of
  /// the one gradient that was whole when it was asked for: what a later push names may have been
  /// half written then, under a header that says that it is that.
  struct segment_key {
    std::string address;
    std::uint64_t segment = 0;
    std::uint64_t sequence = 0;

    auto operator<=>(const segment_key&) const = default;
  };
  struct source {
    worker_id worker;
    dlrun::incarnation incarnation;
    std::shared_ptr<const transport::gradient_reader> reader; ///< mapped; null while it is fetched
    std::vector<protocol::push> waiting;
    protocol::time_point asked{}; ///< when the fetch began
    std::uint64_t named = 0;      ///< by its worker's so manieth push, for the last time
  };

  segment_key key_of(const protocol::push& push) const;
  /// A push names it. What pushes of its worker have not named for long the worker has given back.
  void note_named(const segment_key& key, worker_id worker);
  void fetch(const segment_key& key, const protocol::push& push, protocol::time_point now);
  void on_fetched(const segment_key& key, result<transport::segment> fetched);
  result<gradient> view(const protocol::push& push,
                        const std::shared_ptr<const transport::gradient_reader>& reader) const;
  void hand_over(const protocol::push& push, const std::shared_ptr<const transport::gradient_reader>& reader);

  engine::shard_range range_;
  std::uint64_t flat_size_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<spdlog::logger> log_;
  events told_;
  std::map<segment_key, source> sources_;
  std::map<worker_id, std::uint64_t> pushes_;
  transfer_times transfers_;
  std::unique_ptr<transport::segment_fetches> channel_; ///< last: its callbacks use all of the above
};

} // namespace dlrun::ps_shard
