#include "tests/simulation/shard_writer.hpp"

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {

using protocol::durability;
using protocol::planted_bug;

shard_writer::shard_writer(world& where, process& of, ps_shard_id shard, core_side core)
    : world_(where)
    , process_(of)
    , shard_(shard)
    , core_(std::move(core)) {}

simulated_store& shard_writer::disk() const { return world_.stores().at(shard_, process_.host()); }

bool shard_writer::owns_disk() {
  if (disk().opened_by == process_.self().incarnation || world_.is_planted(planted_bug::no_fence_store))
    return true;
  world_.kill(process_, "fenced by its disk");
  return false;
}

void shard_writer::after_on_this_timeline(double milliseconds_max, std::function<void()> what) {
  const auto delay = world_.random().milliseconds(0.2, 1) * milliseconds_max;
  world_.after(std::chrono::duration_cast<protocol::duration>(delay), &process_,
               [this, rewinds = rewinds_, what = std::move(what)] {
                 if (rewinds == rewinds_) what();
               });
}

// ---- the log

void shard_writer::append(const ps_shard::append& what, value root) {
  appends_.push_back({what, root});
  write_log();
}

/// All that waits as one group.
void shard_writer::write_log() {
  if (appending_ || appends_.empty()) return;
  appending_ = true;
  after_on_this_timeline(world_.plan().log_ms, [this, count = appends_.size()] {
    appending_ = false;
    append_group(count);
  });
}

void shard_writer::append_group(std::size_t count) {
  if (!owns_disk()) return;
  if (disk().opened_by != process_.self().incarnation)
    broken("I4", "the log of ps_shard {} takes a write of the older {}", shard_, process_.name());
  if (disk().full) {
    after_on_this_timeline(3, [this] { write_log(); });
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto& one = appends_.front();
    if (disk().appended() != one.what.step.value)
      broken("R11", "{} appends step {} out of order", process_.name(), one.what.step);
    disk().append(one.what, one.root);
    appends_.pop_front();
  }
  const auto end = disk().appended();
  if (world_.plan().syncs_each_step)
    after_on_this_timeline(world_.plan().log_ms, [this, end] { sync_log(end); });
  else
    sync_log(0);
  write_log();
}

void shard_writer::sync_log(std::uint64_t end) {
  if (!owns_disk()) return;
  disk().sync(end);
  world_.say(&process_, "commits version {}", disk().committed());
  core_.committed({disk().committed()});
}

// ---- snapshots

void shard_writer::take_snapshot(version_id version, const shard_image& image) {
  snapshots_in_work_.insert(version);
  after_on_this_timeline(world_.plan().snapshot_ms,
                         [this, version, image] { write_snapshot(version, image); });
}

bool shard_writer::may_write_snapshot(version_id version) const {
  const bool in_order = *snapshots_in_work_.begin() == version;
  const bool logged = world_.plan().durability == durability::snapshots || core_.known_committed() >= version;
  return in_order && logged && !disk().full;
}

void shard_writer::write_snapshot(version_id version, const shard_image& image) {
  if (!owns_disk()) return;
  if (!may_write_snapshot(version)) {
    after_on_this_timeline(3, [this, version, image] { write_snapshot(version, image); });
    return;
  }
  snapshots_in_work_.erase(version);
  disk().sync(version.value);
  disk().add_snapshot(version, image);
  world_.say(&process_, "has a durable snapshot of version {}", version);
  core_.snapshot_durable(version);
}

void shard_writer::drop_below(const ps_shard::drop_below& order) {
  if (!owns_disk()) return;
  world_.say(&process_, "drops what is below version {}", order.version);
  disk().drop_below(order.version, order.kept);
}

// ---- going back

void shard_writer::rewind(const ps_shard::perform_rewind& order) {
  ++rewinds_;
  appends_.clear();
  appending_ = false;
  snapshots_in_work_.clear();
  world_.happened().check_begun(order, world_.journal().timeline(), process_.name());
  after_on_this_timeline(world_.plan().log_ms, [this, order] { finish_rewind(order); });
}

void shard_writer::finish_rewind(const ps_shard::perform_rewind& order) {
  if (!owns_disk()) return;
  if (!contains(disk().restorable(), order.version))
    broken("R16", "{} goes back to version {}, which is gone", process_.name(), order.version);
  world_.say(&process_, "goes back to version {} on timeline {}", order.version, order.timeline);
  const bool keeps = world_.is_planted(planted_bug::keep_snapshots);
  const bool forgets_marker = world_.is_planted(planted_bug::volatile_rewind) && world_.random().chance(0.5);
  if (forgets_marker)
    disk().truncate(order.version, keeps);
  else
    disk().rewind(order.history, order.version, keeps);
  core_.rewound(order);
}

} // namespace dlrun::simulation
