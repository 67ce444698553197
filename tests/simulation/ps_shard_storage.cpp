/// The half of a simulated PS shard that writes to its disk.
#include "tests/simulation/ps_shard_process.hpp"
#include "tests/simulation/world.hpp"

namespace dlrun::simulation {

using protocol::durability;
using protocol::planted_bug;

namespace {

constexpr protocol::duration retry_after = std::chrono::milliseconds(3);

} // namespace

shard_disk& ps_shard_process::disk() const { return world_.disk_of(id_); }

/// The disk refuses the writes of an older start (R4).
bool ps_shard_process::owns_disk() {
  if (disk().opened_by == self().incarnation || world_.is_planted(planted_bug::no_fence_store)) return true;
  world_.kill(*this, "fenced by its disk");
  return false;
}

void ps_shard_process::after_on_this_timeline(double milliseconds_max, std::function<void()> what) {
  const auto delay = world_.random().milliseconds(0.2, 1) * milliseconds_max;
  after(std::chrono::duration_cast<protocol::duration>(delay),
        [this, rewinds = rewinds_, what = std::move(what)] {
          if (rewinds == rewinds_) what();
        });
}

/// Replays up to `version` - 1, then to `version`, so that both exist (R8).
void ps_shard_process::load(version_id version) {
  const auto can = disk().restorable();
  const auto timeline = newest_timeline(history_);
  for (auto& buffer : parameters_->buffers) {
    buffer.version.reset();
    ++buffer.writes;
  }
  for (auto one = version.value == 0 ? 0 : version.value - 1; one <= version.value; ++one) {
    if (!contains(can, {one})) continue;
    const auto image = disk().restore({one});
    check_parameters({one}, image.content);
    auto& into = parameters_->of({one});
    into = {version_id{one}, timeline, image.content, into.writes};
  }
}

// ---- the log

void ps_shard_process::perform_one(const ps_shard::append& order) {
  const auto* root = used(order.root);
  if (root == nullptr) return;
  appends_.push_back({order, root->content});
  write_log();
}

/// All that waits as one group. The log takes steps in order (R11).
void ps_shard_process::write_log() {
  if (appending_ || appends_.empty()) return;
  appending_ = true;
  after_on_this_timeline(world_.plan().log_ms, [this, count = appends_.size()] {
    appending_ = false;
    if (!owns_disk()) return;
    if (disk().opened_by != self().incarnation)
      world_.broken("I4", "the log of ps_shard {} takes a write of the older {}", id_, name());
    if (disk().full) {
      after_on_this_timeline(3, [this] { write_log(); });
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const auto& one = appends_.front();
      if (disk().appended() != one.what.step.value)
        world_.broken("R11", "{} appends step {} out of order", name(), one.what.step);
      disk().append(one.what, one.root);
      appends_.pop_front();
    }
    const auto end = disk().appended();
    if (world_.plan().syncs_each_step)
      after_on_this_timeline(world_.plan().log_ms, [this, end] { sync_log(end); });
    else
      sync_log(0);
    write_log();
  });
}

void ps_shard_process::sync_log(std::uint64_t end) {
  if (!owns_disk()) return;
  disk().sync(end);
  world_.say(this, "commits version {}", disk().committed());
  perform(core_->on_committed({disk().committed()}));
  if (alive) leave_if_trained();
}

// ---- snapshots

void ps_shard_process::perform_one(const ps_shard::take_snapshot& order) {
  shard_image image;
  const auto& buffer = parameters_->of(order.version);
  if (order.version == core_->state().applied && buffer.version == order.version) {
    image = {buffer.content, order.ledger};
  } else {
    if (!contains(disk().restorable(), order.version))
      world_.broken("R17", "{} is to make a snapshot of version {}, which is gone", name(), order.version);
    image = disk().restore(order.version);
  }
  snapshots_in_work_.insert(order.version);
  after_on_this_timeline(world_.plan().snapshot_ms,
                         [this, version = order.version, image] { write_snapshot(version, image); });
}

/// R11: in version order, never ahead of the log.
bool ps_shard_process::may_write_snapshot(version_id version) const {
  const bool in_order = *snapshots_in_work_.begin() == version;
  const bool logged =
      world_.plan().durability == durability::snapshots || core_->state().committed >= version;
  return in_order && logged && !disk().full;
}

void ps_shard_process::write_snapshot(version_id version, const shard_image& image) {
  if (!owns_disk()) return;
  if (!may_write_snapshot(version)) {
    after_on_this_timeline(3, [this, version, image] { write_snapshot(version, image); });
    return;
  }
  snapshots_in_work_.erase(version);
  disk().sync(version.value);
  disk().add_snapshot(version, image);
  world_.say(this, "has a durable snapshot of version {}", version);
  perform(core_->on_snapshot_durable(version));
}

void ps_shard_process::perform_one(const ps_shard::drop_below& order) {
  if (!owns_disk()) return;
  world_.say(this, "drops what is below version {}", order.version);
  disk().drop_below(order.version, order.kept);
}

// ---- going back

/// R16. What was in work is dropped at once, the marker takes its time.
void ps_shard_process::perform_one(const ps_shard::perform_rewind& order) {
  ++rewinds_;
  appends_.clear();
  appending_ = false;
  snapshots_in_work_.clear();
  world_.check_begun(order, *this);
  after_on_this_timeline(world_.plan().log_ms, [this, order] { rewound(order); });
}

void ps_shard_process::rewound(const ps_shard::perform_rewind& order) {
  if (!owns_disk()) return;
  if (!contains(disk().restorable(), order.version))
    world_.broken("R16", "{} goes back to version {}, which is gone", name(), order.version);
  world_.say(this, "goes back to version {} on timeline {}", order.version, order.timeline);
  const bool keeps = world_.is_planted(planted_bug::keep_snapshots);
  const bool forgets_marker = world_.is_planted(planted_bug::volatile_rewind) && world_.random().chance(0.5);
  if (forgets_marker)
    disk().truncate(order.version, keeps);
  else
    disk().rewind(order.history, order.version, keeps);
  history_ = order.history;
  load(order.version);
  auto found = disk().describe(order.version);
  found.history = order.history;
  perform(core_->on_rewound(std::move(found)));
}

} // namespace dlrun::simulation
