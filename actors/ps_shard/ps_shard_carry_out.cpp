/// What the core of a PS shard decided, done.
#include "actors/common/clock.hpp"
#include "actors/ps_shard/block_scratch.hpp"
#include "actors/ps_shard/ps_shard.hpp"
#include "kernels/cpu/reduce.hpp"

#include <algorithm>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

/// Copies of blocks that may wait for the writer of a snapshot. A block has 64 Ki floats and their optimizer
/// state: with momentum 32 MiB in all.
constexpr std::size_t snapshot_pool_blocks = 64;
constexpr auto quota_patience = std::chrono::seconds(5);
/// The worker whose gradient it is looks for the slot, for which it computes the step once more, and says
/// more.
constexpr auto divergence_patience = std::chrono::seconds(2);
constexpr int divergence_patience_steps = 4;
/// Of the newest measurement in the running mean.
constexpr double apply_weight = 0.1;

/// A shard of so many floats (4 MiB) applies a step in less than a millisecond: to wake a thread for that,
/// and to be woken by it, takes as long on a machine that has no core to spare.
constexpr std::uint64_t applied_here_max = std::uint64_t{1} << 20;

} // namespace

// ---- what the core decided

void ps_shard_state::carry_out(const ps_shard_actions& actions) {
  for (auto at = actions.begin(); at != actions.end(); ++at) {
    const auto* const sum = std::get_if<combine>(&*at);
    const auto* const last = sum && at + 1 != actions.end() ? std::get_if<apply>(&at[1]) : nullptr;
    if (last && last->root == sum->into) {
      apply_root(*last, *sum);
      ++at;
    } else {
      std::visit([this](const auto& what) { carry_out(what); }, *at);
    }
  }
}

std::span<const float> ps_shard_state::summands::part(std::uint64_t begin, std::uint64_t end) const {
  const auto size = end - begin;
  const auto into = sum.empty() ? block_scratch(0, size) : sum.subspan(begin, size);
  kernels::cpu::add(left.floats.subspan(begin, size), right.floats.subspan(begin, size), into);
  return into;
}

bool ps_shard_state::summands::intact() const {
  return (!left.intact || left.intact()) && (!right.intact || right.intact());
}

/// Takes two values out of the table and puts their sum in, which is still to be made: into `sum`, or
/// nowhere, where it is not wanted as a whole.
ps_shard_state::summands ps_shard_state::begin_sum(value_table& values, const combine& action,
                                                   const std::shared_ptr<std::vector<float>>& sum) {
  auto left = values.extract(action.left);
  auto right = values.extract(action.right);
  DLRUN_CHECK(left && right, "the core combines values that are there");
  if (!sum) {
    values.emplace(action.into, value{});
    return {std::move(left.mapped()), std::move(right.mapped()), {}};
  }
  values.emplace(action.into, value{*sum, sum, nullptr});
  return {std::move(left.mapped()), std::move(right.mapped()), *sum};
}

void ps_shard_state::carry_out(const combine& action) {
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  values_thread_.run([this, values = values_, action, post] {
    constexpr std::size_t part = engine::parameter_layout::block_size;
    const auto parts = begin_sum(*values, action, sums_.lend());
    const auto size = parts.sum.size();
    team_->for_each((size + part - 1) / part, [&](std::size_t number) {
      parts.part(number * part, std::min((number + 1) * part, size));
    });
    if (!parts.intact()) post([this] { lose_trust("a gradient changed while it was summed"); });
  });
}

void ps_shard_state::carry_out(const make_zero& action) {
  values_thread_.run([values = values_, action, size = range_.size] {
    auto zero = std::make_shared<std::vector<float>>(size, 0.0F);
    values->emplace(action.into, value{*zero, zero, nullptr});
  });
}

void ps_shard_state::carry_out(const release& action) {
  values_thread_.run_later([values = values_, action] { values->erase(action.value); });
}

void ps_shard_state::carry_out(const apply& action) { apply_root(action, std::nullopt); }

/// The last sum of a step is made block by block as it is applied. As a whole only the log wants it.
void ps_shard_state::apply_root(const apply& action, const std::optional<combine>& sum) {
  const auto shape =
      shape_of(context_.job->sampler, action.step, action.revision, core_->state().parked, action.coupled);
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  const auto run =
      range_.size <= applied_here_max ? &common::task_thread::run_here : &common::task_thread::run;
  auto early_sum = std::exchange(early_sum_, nullptr);
  early_.clear();
  const bool is_logged = context_.job->durability() == protocol::durability::every_step;
  (values_thread_.*run)([this, is_logged, early_sum, values = values_, parameters = parameters_, action, sum,
                         timeline = core_->timeline(), shape, post] {
    const auto begin = common::now();
    const auto parts = sum ? std::optional(begin_sum(*values, *sum,
                                                     !is_logged  ? nullptr
                                                     : early_sum ? early_sum
                                                                 : sums_.lend()))
                           : std::nullopt;
    const auto root = values->find(action.root);
    DLRUN_CHECK(root != values->end(), "the core applies a root that is there");
    const auto& floats = root->second.floats;
    const auto& intact = root->second.intact;
    const auto made = parameters->apply(
        timeline, action.step, shape,
        [&](std::uint64_t begin, std::uint64_t end) {
          return parts ? parts->part(begin, end) : floats.subspan(begin, end - begin);
        },
        [&] { return parts ? parts->intact() : !intact || intact(); });
    root->second.is_finite = made || made.error().code != error_code::diverged;
    const auto took = common::now() - begin;
    if (!made)
      return post(
          [this, action, timeline, why = made.error()] { on_not_applied(action.step, timeline, why); });
    if (!values_thread_.is_current()) // but a handler's: its other actions come first
      return post([this, action, made, took] { on_applied(action.step, *made, took); });
    const std::scoped_lock inside{self_->entry()};
    on_applied(action.step, *made, took);
  });
}

void ps_shard_state::carry_out(const append& action) {
  values_thread_.run([values = values_, storage = storage_, action] {
    const auto root = values->find(action.root);
    DLRUN_CHECK(root != values->end(), "the core appends a root that is there");
    if (!root->second.is_finite) return; // then it is applied nowhere, not even by a replay
    storage->append({action.step, action.timeline,
                     encode(step_extra{action.revision, action.coupled, action.partials, action.ledger}),
                     root->second.floats, root->second.memory, root->second.intact});
  });
}

void ps_shard_state::carry_out(const take_snapshot& action) {
  const bool is_current = action.version == core_->state().applied;
  snapshot_order order{action.version, core_->timeline(), nullptr, metrics_.sums(), action.ledger};
  context_.log->info("snapshot: version {}{}", action.version, is_current ? "" : " from the log");
  values_thread_.run([parameters = parameters_, storage = storage_, order, is_current]() mutable {
    if (is_current) order.image = parameters->begin_image(snapshot_pool_blocks);
    storage->take_snapshot(std::move(order));
  });
}

void ps_shard_state::carry_out(const drop_below& action) {
  storage_->drop_below(action.version, action.kept);
}

/// First the disk, then the numbers, then the core.
void ps_shard_state::carry_out(const perform_rewind& action) {
  context_.log->info("rewind: to version {} on timeline {}", action.version, action.timeline);
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  storage_->rewind(action, [this, action, post](const result<void>& truncated) {
    post([this, action, truncated] { on_truncated(action, truncated); });
  });
}

void ps_shard_state::on_truncated(const perform_rewind& action, const result<void>& truncated) {
  if (!truncated) return quit(truncated.error().message);
  const auto post = common::poster<protocol::ps_shard_actor>{self_};
  values_thread_.run([this, parameters = parameters_, storage = storage_, action, post] {
    const auto loaded = storage->load_after_rewind(*parameters, action);
    post([this, loaded] { on_rewound(loaded); });
  });
}

void ps_shard_state::on_rewound(const result<restored_state>& loaded) {
  if (!loaded) return quit(loaded.error().message);
  metrics_ = epoch_metrics{storage_->restored_metrics()};
  diverged_.reset();
  carry_out(core_->on_rewound(*loaded));
  report_status();
}

/// It has no step to tell yet, but it lives.
void ps_shard_state::on_opening_stalled(const error& why) {
  if (!log_stalled_) on_log_stalled(why);
  const protocol::heartbeat alive{.role = context_.role, .self = context_.self, .state = "disk-full"};
  heartbeat_sender_.send_for_answer<protocol::coordinator_location>(self_, context_.agent, alive,
                                                                    [](const auto&) {});
}

void ps_shard_state::on_log_stalled(const std::optional<error>& why) {
  log_stalled_ = why;
  tell_stall("pauses", why);
}

/// Training goes on without new snapshots, but for the last one.
void ps_shard_state::on_snapshot_stalled(const std::optional<error>& why) {
  if (std::exchange(snapshot_stalled_, why).has_value() != why.has_value() && !log_stalled_)
    tell_stall("cannot take snapshots", why);
}

void ps_shard_state::tell_stall(const char* what, const std::optional<error>& why) {
  if (!why && is_stalled()) return;
  stalled_since_ = common::now();
  const auto text =
      why ? fmt::format("ps_shard {} {}: {}", context_.role.index, what, why->message)
          : fmt::format("ps_shard {} goes on: the disk takes what it writes again", context_.role.index);
  context_.log->warn("disk: {}", text);
  self_->send(context_.agent,
              protocol::job_event{why ? "disk-full" : "disk-ok", context_.role, context_.self.incarnation,
                                  common::to_us(common::now()), text});
}

/// What is dropped soon may make room. A quota that is too small for what must be kept stays so.
void ps_shard_state::give_up_on_quota() {
  const auto& why = log_stalled_ ? log_stalled_ : snapshot_stalled_;
  if (!why || why->code != error_code::limit_exceeded || common::now() - stalled_since_ < quota_patience)
    return;
  stalled_since_ = common::now(); // told again, should this be lost
  self_->send(context_.agent,
              protocol::stop_job{
                  protocol::job_outcome::failed,
                  fmt::format("{}. It is the part of ps_shard {} in durability.disk_quota ({}): go on "
                              "with 'dlrun resume {} --set durability.disk_quota=SIZE', larger, or 0 "
                              "for no limit",
                              why->message, context_.role.index, context_.job->spec.durability().disk_quota(),
                              context_.job->run_dir.string())});
}

/// A worker reuses a buffer only when this shard has applied its step. So the one that is wrong here is this
/// start: it was taken for dead and replaced while it was stopped, and nothing it has may be published.
void ps_shard_state::lose_trust(const std::string& why) { quit("overtaken: " + why); }

/// A divergence ends the job. Until then, or until all go back, the core waits for this step.
void ps_shard_state::on_not_applied(step_id step, timeline_id timeline, const error& why) {
  if (why.code != error_code::diverged) return lose_trust(why.message);
  if (timeline != core_->timeline()) return;
  context_.log->error("diverged: step {}: {}", step, why.message);
  diverged_ = {context_.role, context_.self, timeline, step, false, {}, why.message};
  diverged_at_ = common::now();
}

/// From when nobody has said more, until the job has ended.
void ps_shard_state::report_divergence() {
  if (!diverged_ || !dispatcher_) return;
  const protocol::duration usual{static_cast<protocol::duration::rep>(step_times_.quantiles().p50_us)};
  if (common::now() - diverged_at_ >= divergence_patience + divergence_patience_steps * usual)
    self_->send(dispatcher_, *diverged_);
}

void ps_shard_state::on_applied(step_id step, const std::optional<step_metrics>& metrics,
                                protocol::duration took) {
  if (metrics) metrics_.add(context_.job->sampler.epoch_of(step), *metrics);
  apply_us_ += apply_weight * (static_cast<double>(took.count()) - apply_us_);
  carry_out(core_->on_applied(step));
  if (!std::exchange(has_applied_, true))
    context_.log->info("first-step: version {} is made", version_after(step));
  if (core_->trained()) context_.log->info("trained: version {} is made", version_after(step));
  auto contributions = core_->contributions();
  const bool has_new = contributions != applied_contributions_;
  applied_contributions_ = std::move(contributions);
  if (core_->trained() || has_new) common::post(protocol::ps_shard_actor{self_}, [this] { report_status(); });
}

void ps_shard_state::carry_out(const send_status& action) {
  if (dispatcher_) self_->send(dispatcher_, current_status(action.probe));
}

void ps_shard_state::carry_out(const publish&) {
  step_times_.add(core_->state().applied, common::now());
  for (auto& [worker, attached] : workers_) tell(attached);
}

void ps_shard_state::carry_out(const send_state& action) {
  if (const auto found = workers_.find(action.to); found != workers_.end()) tell(found->second);
}

void ps_shard_state::carry_out(const send_fenced& action) {
  context_.log->info("fenced-worker: worker {} speaks under an old incarnation, the newest is {}", action.to,
                     action.newest);
  if (const auto found = workers_.find(action.to); found != workers_.end())
    self_->send(found->second.handle, protocol::fenced{protocol::worker_role(action.to), action.newest});
}

void ps_shard_state::carry_out(const exit_fenced& action) {
  quit(fmt::format("fenced: incarnation {} of ps_shard {} exists", action.newest, context_.role.index));
}

} // namespace dlrun::ps_shard
