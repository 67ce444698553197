/// The disk of a PS shard as its actor sees it: whatever it does is answered on the actor.
#pragma once

#include "actors/ps_shard/threaded_store.hpp"
#include "actors/ps_shard/version_maker.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace dlrun::ps_shard {

/// Opening and replaying happen on the thread of `maker`, writing on those of the store. Called
/// by its owner only, where events and `done` are called too.
class shard_disk {
public:
  using loaded = std::function<void(const result<loaded_standing>&)>;

  /// `maker` outlives this. `post` as in common::way_back.
  shard_disk(version_maker& maker, std::function<void(std::function<void()>)> post)
      : maker_(maker)
      , post_(std::move(post)) {}

  /// Begins to open the store. The caller can get memory for the parameters meanwhile. `stalled`
  /// hears now and then why a full disk keeps it from that, and nothing when that is over; the
  /// watcher of `options` is made of it.
  void open(threaded_store_options options, std::function<void(const std::optional<error>&)> stalled);
  /// The owner ends: it is not waited for a full disk any more.
  void leave() { is_gone_ = true; }
  /// Loads the newest version that is there, into the maker's parameters; `former` as for
  /// threaded_store::restore_newest(). Requires open().
  void load_newest(common::retained_memory former, loaded done);
  /// From here on events come. Requires load_newest(), as all below does.
  void run(threaded_store_events events);
  /// First the disk, then the numbers (R16).
  void go_back(const perform_rewind& order, loaded done);
  /// As threaded_store::freeze().
  void freeze(timeline_id timeline, version_id version,
              std::function<void(const result<transport::frozen_parameters_writer>&)> done);

  /// Null until load_newest() is done, and where nothing is kept on disk.
  const std::shared_ptr<threaded_store>& store() const { return store_; }

private:
  version_maker& maker_;
  std::function<void(std::function<void()>)> post_;
  std::shared_ptr<result<std::shared_ptr<threaded_store>>> opened_; ///< of the maker's thread
  std::shared_ptr<threaded_store> store_;
  std::atomic<bool> is_gone_ = false;
};

} // namespace dlrun::ps_shard
