#include "actors/ps_shard/threaded_store.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/history_conversion.hpp"
#include "actors/common/patience.hpp"
#include "actors/ps_shard/norm_exchange.hpp"
#include "actors/ps_shard/retained_choice.hpp"
#include "job/choices.hpp"
#include "job/quantity.hpp"

#include <dlrun/check.hpp>
#include <thread>

namespace dlrun::ps_shard {
namespace {

persistence::sync_mode sync_of(const common::job_context& job) {
  return job::durability_sync_of(job.spec) == job::durability_sync::power ? persistence::sync_mode::power
                                                                          : persistence::sync_mode::process;
}

persistence::shard_store_options store_options(const threaded_store_options& options) {
  const auto& spec = options.job->spec.durability();
  return {.directory = common::store_directory(options.job->run_dir, options.shard).string(),
          .run = options.job->run,
          .opener = options.opener,
          .files = options.files,
          .sync = sync_of(*options.job),
          // The quota is of the whole run folder: each PS shard gets its part.
          .disk_quota_bytes = job::parse_bytes(spec.disk_quota()).value_or(0) / options.job->ps_shards()};
}

} // namespace

// ---- coming back

result<std::unique_ptr<threaded_store>> threaded_store::open(threaded_store_options options) {
  const auto begin = common::now();
  auto store = common::try_patiently(options.patience, options.watcher,
                                     [&] { return persistence::shard_store::open(store_options(options)); });
  if (!store) return tl::unexpected(store.error());
  std::unique_ptr<threaded_store> made{new threaded_store(std::move(options))};
  made->store_ = std::move(*store);
  const auto& found = made->store_->found();
  made->options_.log->info("opened: {} snapshots, log of steps [{}, {}), in {:.1f} ms",
                           found.snapshots.size(), found.log_first, found.log_end,
                           std::chrono::duration<double, std::milli>(common::now() - begin).count());
  for (const auto& line : found.damaged) made->options_.log->warn("storage-damaged: {}", line);
  if (!found.why_new_identity.empty())
    made->options_.log->info("store-identity: {:016x}: {}", found.identity, found.why_new_identity);
  return made;
}

threaded_store::~threaded_store() {
  if (log_) log_->stop(); // a snapshot may be waiting for it
  snapshot_thread_.reset();
}

result<loaded_standing> threaded_store::restore_newest(shard_parameters& parameters,
                                                       common::retained_memory former) {
  if (former.state)
    if (auto retained = restore_retained(parameters, std::move(former))) return *retained;
  for (;;) {
    const auto version = newest_restorable(*store_);
    auto restored = restore_version(parameters, version);
    // What was damaged is dropped by now; something lower may be whole.
    if (restored || newest_restorable(*store_) >= version) return restored;
  }
}

/// R36.
std::optional<loaded_standing> threaded_store::restore_retained(shard_parameters& parameters,
                                                                common::retained_memory former) {
  const auto begin = common::now();
  const auto found = retained_version::open(std::move(former), parameters.retained());
  if (!found) {
    options_.log->info("not-retained: {}", found.error().message);
    return std::nullopt;
  }
  auto state = standing_at(newest_restorable(*store_));
  if (!begins_with_retained(found->timeline(), found->version(), state, options_.job->evaluations())) {
    options_.log->info(
        "not-retained: version {} of timeline {} is in memory, but the store goes on from {} of {}",
        found->version(), found->timeline(), state.version, protocol::newest_timeline(state.history));
    return std::nullopt;
  }
  parameters.take_over(*found);
  const auto& extra = found->extra();
  options_.log->info(
      "restored: version {} on timeline {} from memory that an earlier start left, in {:.1f} ms",
      found->version(), found->timeline(),
      std::chrono::duration<double, std::milli>(common::now() - begin).count());
  metrics_ = extra.snapshot.metrics;
  state.version = found->version();
  state.serves_previous = found->has_previous();
  state.ledger = extra.snapshot.ledger;
  state.partials = extra.partials;
  return state;
}

loaded_standing threaded_store::standing_at(version_id version) const {
  loaded_standing state{.history = history(), .version = version};
  state.restorable = restorable();
  state.snapshots = snapshots();
  return state;
}

result<loaded_standing> threaded_store::restore_version(shard_parameters& parameters, version_id version) {
  const auto history = common::history_from(store_->history());
  const auto made = restore(*store_, parameters, options_.job->sampler, history, version,
                            damaged_snapshot::drop, *options_.log);
  if (!made) return tl::unexpected(made.error());
  options_.log->info("restored: version {} on timeline {}, {} steps replayed in {:.1f} ms", version,
                     protocol::newest_timeline(history), made->steps_replayed,
                     std::chrono::duration<double, std::milli>(made->replay_time).count());
  metrics_ = made->metrics;
  auto state = standing_at(version);
  state.serves_previous = made->has_previous;
  state.ledger = made->ledger;
  if (options_.job->couples()) state.partials = newest_partials(version);
  parameters.notes().restart(metrics_, state.ledger, state.partials);
  return state;
}

/// What a shard that lags behind may still ask for (R12). A step from before the job coupled has
/// none.
std::map<step_id, norm_partials> threaded_store::newest_partials(version_id version) const {
  const auto blocks =
      engine::parameter_blocks(options_.job->model->layout(), options_.job->shards.at(options_.shard.value));
  std::map<step_id, norm_partials> found;
  for (auto end = version.value; end > 0 && found.size() < norm_steps(common::early_publish_bound); --end) {
    const step_id step{end - 1};
    const auto head = store_->read_head(step);
    if (!head) break;
    const auto extra = common::decode_step_extra(head->extra);
    if (!extra || extra->partials.size() != blocks) break;
    found.emplace(step, extra->partials);
  }
  return found;
}

protocol::opened_store threaded_store::opened() const {
  const auto& found = store_->found();
  return {standing(), found.last_opener, protocol::newest_timeline(common::history_from(store_->history())),
          newest_restorable(*store_), found.why_new_identity};
}

// ---- while training goes on

void threaded_store::run(threaded_store_events events) {
  events_ = std::move(events);
  log_ = std::make_unique<step_log>(*store_, events_.log);
  snapshot_thread_ = std::make_unique<common::task_thread>("snapshots");
}

void threaded_store::take_snapshot(snapshot_order order) {
  snapshot_thread_->run([this, order = std::move(order)] {
    const auto written = order.timeline < timeline_.load()
                             ? fail(error_code::interrupted, "overtaken by a rewind")
                             : write(order);
    if (order.image) order.image->abandon();
    if (written)
      events_.snapshot_durable(order.timeline, order.version);
    else
      events_.snapshot_failed(order.timeline, order.version, written.error());
  });
}

result<void> threaded_store::write(const snapshot_order& order) {
  if (!order.image) return write_from_log(order);
  const auto floats = order.image->floats();
  const common::snapshot_extra extra{options_.job->shards.at(options_.shard.value), floats, order.metrics,
                                     order.ledger};
  const bool logs = options_.job->durability() == protocol::durability::every_step;
  return write_snapshot(*store_, order.version, order.timeline, *order.image, extra,
                        [&] { return !logs || log_->wait_for(order.timeline, order.version); });
}

/// The version is past: it is made again beside the one that is trained on.
result<void> threaded_store::write_from_log(const snapshot_order& order) {
  auto scratch = shard_parameters::create_empty(options_.job, options_.shard);
  if (!scratch) return tl::unexpected(scratch.error());
  const auto made = restore(*store_, *scratch, options_.job->sampler, common::history_from(store_->history()),
                            order.version, damaged_snapshot::leave, *options_.log);
  if (!made) return tl::unexpected(made.error());
  const auto image = scratch->begin_image(1);
  const common::snapshot_extra extra{scratch->range(), image->floats(), made->metrics, made->ledger};
  return write_snapshot(*store_, order.version, order.timeline, *image, extra, [] { return true; });
}

void threaded_store::freeze(std::shared_ptr<const shard_parameters> shape, timeline_id timeline,
                            version_id version,
                            std::function<void(result<transport::frozen_parameters_writer>)> done) {
  snapshot_thread_->run([this, shape = std::move(shape), timeline, version, done = std::move(done)] {
    auto frozen = freeze_snapshot(*store_, *shape, timeline, version);
    if (frozen || frozen.error().code != error_code::storage_damaged) return done(std::move(frozen));
    log_->between_writes([this, version, done, why = frozen.error()] {
      const auto dropped = store_->discard_snapshot(version);
      done(tl::unexpected(dropped ? why : dropped.error()));
    });
  });
}

void threaded_store::drop_below(version_id version, std::optional<version_id> kept) {
  log_->between_writes([this, version, kept] {
    const auto dropped = store_->drop_below(version, kept);
    // On a full disk it stays for now: the next order drops it too.
    if (!dropped && !is_full(dropped.error())) events_.log.broken(dropped.error());
  });
}

void threaded_store::renew_identity() {
  log_->between_writes([this] {
    const auto renewed = store_->renew_identity();
    if (renewed)
      options_.log->warn("store-identity: {:016x}: it is short of what it had acknowledged",
                         store_->identity());
    else if (!is_full(renewed.error())) // else the coordinator says it again to the next start
      events_.log.broken(renewed.error());
  });
}

void threaded_store::rewind(const perform_rewind& order, std::function<void(result<void>)> load) {
  timeline_ = order.timeline;
  log_->interrupt(order.timeline, [this, order, load = std::move(load)] {
    load(store_->rewind(common::history_to_store(order.history), order.version));
  });
}

result<loaded_standing> threaded_store::load_after_rewind(shard_parameters& parameters,
                                                          const perform_rewind& order) {
  return restore_version(parameters, order.version);
}

// ---- what is there

protocol::history threaded_store::history() const { return common::history_from(store_->history()); }

protocol::store_standing threaded_store::standing() const {
  return {options_.job->host, store_->identity(), store_->floor()};
}

protocol::version_set threaded_store::restorable() const {
  protocol::version_set all{{{0}, {0}}};
  for (const auto& range : store_->restorable()) protocol::insert(all, range);
  return all;
}

own_store threaded_store::held() const {
  const auto floor = store_->floor(); // before the snapshots: what is below it may go in between
  return {history(), restorable(), store_->logged(), snapshots(), floor};
}

version_id threaded_store::newest() const {
  if (sync_of(*options_.job) != persistence::sync_mode::power) return {store_->next_step().value};
  const auto taken = snapshots();
  return {std::max(store_->synced_end().value, taken.empty() ? 0 : taken.back().value)};
}

std::vector<version_id> threaded_store::snapshots() const {
  std::vector<version_id> all;
  for (const auto& one : store_->snapshots()) all.push_back(one.version);
  return all;
}

} // namespace dlrun::ps_shard
