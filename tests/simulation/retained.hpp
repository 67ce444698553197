/// What PS shards made in memory that their agent holds (rule R36).
#pragma once

#include "actors/ps_shard/ps_shard_actions.hpp"
#include "tests/simulation/disk.hpp"

#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace dlrun::simulation {

/// Of one start: its two buffers, number v mod 2 for version v.
struct retained_image {
  struct buffer {
    version_id version;
    shard_image image;
    bool has_notes = false; ///< made by a step, or taken over; loaded from disk it has none
    std::map<step_id, ps_shard::norm_partials> partials;
  };
  timeline_id timeline;
  std::optional<buffer> buffers[2]; ///< empty while it is written to

  std::optional<buffer>& of(version_id version) { return buffers[version.value % 2]; }
  /// The newest that a later start could begin with; null when there is none.
  const buffer* newest() const;
};

/// The memory of a start that runs.
class retained_writer {
public:
  const retained_image& image() const { return image_; }
  /// Nothing is there; load() follows.
  void restart(timeline_id timeline);
  /// What came of disk, which no later start begins with.
  void load(version_id version, const shard_image& image);
  /// What an earlier start left.
  void take_over(const retained_image& former);
  /// The buffer of that version is written from now on.
  void begin(version_id version) { image_.of(version).reset(); }
  /// What goes beside the version that is made next.
  void note(const ps_shard::retain& what) { notes_ = what; }
  /// It is whole. `steps_max`: of how many the partials stay.
  void publish(version_id version, value content, std::size_t steps_max);

private:
  retained_image image_;
  std::optional<ps_shard::retain> notes_;
  std::map<step_id, ps_shard::norm_partials> partials_;
};

/// By PS shard and host: of the starts that are over the one with the newest version.
class retained_memories {
public:
  const retained_image* find(ps_shard_id shard, std::uint32_t host) const;
  /// That start is over.
  void put(ps_shard_id shard, std::uint32_t host, const retained_image& left);
  /// Its next start is elsewhere.
  void leave(ps_shard_id shard, std::uint32_t host) { kept_.erase({shard, host}); }
  /// The agent of the host is gone, and all that it held.
  void lose(std::uint32_t host);

private:
  std::map<std::pair<ps_shard_id, std::uint32_t>, retained_image> kept_;
};

} // namespace dlrun::simulation
