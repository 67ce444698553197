#include "tests/simulation/worker_process.hpp"

#include "actors/common/action_handlers.hpp"
#include "tests/simulation/minefield.hpp"
#include "tests/simulation/world.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::simulation {
namespace {

using protocol::planted_bug;

constexpr value torn_marker = 0xdeadbeef;
/// Longer than a run may last.
constexpr auto stuck_time = std::chrono::seconds(120);

worker::worker_core_config config_for(const world& where, worker_id id, protocol::fence self) {
  worker::worker_core_config config;
  config.self = id;
  config.fence = self;
  config.ps_shards = where.job().ps_shards;
  config.steps = where.job().steps;
  config.slots_of = [job = where.job()](step_id step) { return job.slots_of(step); };
  config.early_publish_bound = where.plan().bound;
  config.durability = where.plan().durability;
  config.repeat_after = where.plan().period;
  config.bug = where.bug();
  return config;
}

bool can_reach(const world& where, const process& from, ps_shard_id shard, incarnation start) {
  const auto starts = where.living(protocol::ps_shard_role(shard));
  return std::ranges::any_of(starts, [&](const auto* one) {
    return one->self().incarnation == start && from.reaches(*one) && one->reaches(from);
  });
}

std::uint64_t records_in(const job_shape& job, const worker::compute_gradient& order) {
  std::uint64_t records = 0;
  for (auto slot = order.slots.begin; slot < order.slots.end; ++slot.value)
    records += records_left(order.parked, order.step, slot, job.records_of(order.step, slot));
  return records;
}

} // namespace

worker_process::worker_process(world& where, worker_id id, protocol::fence self, std::uint32_t host)
    : member_process(where, protocol::worker_role(id), self, host)
    , id_(id)
    , core_(config_for(where, id, self))
    , evaluation_(where.job().ps_shards) {}

void worker_process::begin() {
  every(world_.plan().period, [this] {
    perform(core_.on_tick(now()));
    report();
  });
}

void worker_process::died() { gradients_->gone = true; }

void worker_process::hear(const message& what) {
  const auto at_now = now();
  std::visit(common::action_handlers{
                 [&](const announced_state& one) {
                   auto& known = shard_memory_[one.state.shard];
                   if (known.first <= one.state.incarnation) known = {one.state.incarnation, one.memory};
                   perform(core_.on_shard_state(one.state, at_now));
                   // R19, planted.
                   if (alive && world_.is_planted(planted_bug::exit_at_last) && core_.trained())
                     world_.kill(*this, "leaves when it is done");
                 },
                 [&](const protocol::lease& one) {
                   perform(core_.on_lease(one, at_now));
                   report();
                 },
                 [&](const protocol::directory& one) { perform(core_.on_directory(one, at_now)); },
                 [&](const protocol::fenced& one) { perform(core_.on_fenced(one, at_now)); },
                 [&](const protocol::probe& one) { perform(core_.on_probe(one, at_now)); },
                 [&](const protocol::evaluate& one) {
                   if (!core_.status().leaving) perform(evaluation_.on_order(one, core_.timeline()));
                 },
                 [&](const snapshot_part& one) { on_snapshot_part(one); }, [](const auto&) {}},
             what);
}

void worker_process::perform(const worker::worker_actions& actions) {
  const auto carry_out = common::action_handlers{
      [this](const worker::wake& order) { after(order.after, [this] { perform(core_.on_tick(now())); }); },
      [this](const worker::send_pull& order) { send_connected(order.to, order.message); },
      [this](const worker::send_kept& order) { send(dispatcher_role, order.message); },
      [this](const worker::exit_fenced& order) { end_fenced(order.newest); },
      [this](const auto& order) { perform_one(order); }};
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit(carry_out, action);
  }
  check_bounds();
}

// ---- connections

/// Takes time. A start that is gone or cut off cannot be connected to.
void worker_process::perform_one(const worker::connect_shard& order) {
  const ps_shard_id shard{order.entry.role.index};
  const auto start = order.entry.incarnation;
  connected_.erase(shard);
  after(world_.delay(), [this, shard, start] {
    if (!can_reach(world_, *this, shard, start)) return perform(core_.on_unconnected(shard, start, now()));
    connected_.insert(shard);
    perform(core_.on_connected(shard, start, now()));
  });
}

void worker_process::send_connected(ps_shard_id shard, message what) {
  if (connected_.contains(shard)) send(protocol::ps_shard_role(shard), std::move(what));
}

// ---- parameters

/// Copying takes time, and what is copied may be written to meanwhile.
void worker_process::perform_one(const worker::fetch_part& order) {
  const auto& known = shard_memory_[order.shard];
  const auto from = known.first == order.shard_incarnation ? known.second : nullptr;
  after(world_.delay(), [this, order, from] { copy(order, from); });
}

/// Every second worker gets one of the shard's buffers, whatever it holds, as over TCP.
void worker_process::copy(const worker::fetch_part& order, const std::shared_ptr<parameter_memory>& from) {
  auto& into = parts_[order.shard][order.version.value % 2];
  const bool is_there = from && !from->gone && can_reach(world_, *this, order.shard, order.shard_incarnation);
  if (is_there && id_.value % 2 == 1 && turns_[order.shard]++ % 2 != order.version.value % 2)
    return perform(core_.on_part(order, worker::fetch_outcome::elsewhere, now()));
  const bool ok =
      is_there && from->of(order.version).version == order.version &&
      (from->of(order.version).timeline == order.timeline || world_.is_planted(planted_bug::no_timeline_w));
  const auto writes = ok ? from->of(order.version).writes : 0;
  if (ok) into = {std::nullopt, torn_marker};
  after(world_.delay(), [this, order, from, writes, ok] { copied(order, from, writes, ok); });
}

void worker_process::copied(const worker::fetch_part& order, const std::shared_ptr<parameter_memory>& from,
                            std::uint64_t writes, bool ok) {
  if (ok) {
    const auto& source = from->of(order.version);
    ok = source.writes == writes;
    if (ok) parts_[order.shard][order.version.value % 2] = {order.version, source.content};
  }
  const auto outcome = ok ? worker::fetch_outcome::taken : worker::fetch_outcome::gone;
  perform(core_.on_part(order, outcome, now()));
}

std::vector<worker_process::held_part> worker_process::parts_of(version_id version) const {
  std::vector<held_part> parts;
  for (std::uint32_t shard = 0; shard < world_.job().ps_shards; ++shard) {
    const auto at = parts_.find({shard});
    parts.push_back(at == parts_.end() ? held_part{} : at->second[version.value % 2]);
  }
  return parts;
}

// ---- gradients

void worker_process::perform_one(const worker::compute_gradient& order) {
  const auto from = parts_of(version_before(order.step));
  const double slots = order.slots.size();
  const auto time = world_.random().milliseconds(0.5, 1.5) * slots * world_.plan().slot_ms *
                    (world_.calm() ? 1 : world_.plan().slowness_of_worker[id_.value]);
  const auto rounded =
      world_.plan().stuck == id_ ? stuck_time : std::chrono::duration_cast<protocol::duration>(time);
  at = protocol::slot_progress{{order.step, order.slots.begin}};
  computing_ = order.slots.size();
  computing_since_ = now();
  if (const auto place = hunted_in(world_.plan(), order);
      place && !world_.calm() && world_.hunts < world_.plan().hunted.times) {
    ++world_.hunts;
    world_.happened().worker_lost = true;
    at = place;
    return after(rounded, [this] { world_.kill(*this, "killed by signal 9 (SIGKILL)"); });
  }
  if (const auto death = death_in(world_.plan(), order, world_.bug())) {
    at = death->at;
    const auto hang = death->hangs ? world_.plan().period * 10 : protocol::duration{};
    return after(rounded + hang, [this] {
      crashed = true;
      world_.kill(*this, "killed by signal 11 (SIGSEGV)");
    });
  }
  after(rounded, [this, order, from] { computed(order, from); });
}

void worker_process::computed(const worker::compute_gradient& order, const std::vector<held_part>& from) {
  slots_computed_ += std::exchange(computing_, 0);
  compute_us_ += static_cast<std::uint64_t>((now() - computing_since_).count());
  const auto after_it = parts_of(version_before(order.step));
  std::vector<value> vector;
  for (std::size_t i = 0; i < from.size(); ++i)
    vector.push_back(from[i].content == after_it[i].content ? from[i].content : torn_marker);
  const auto buffer = gradients_->take();
  auto& content = gradients_->buffers[buffer].content;
  content.clear();
  gradients_->buffers[buffer].records = records_in(world_.job(), order);
  for (std::uint32_t shard = 0; shard < world_.job().ps_shards; ++shard)
    content.push_back(node_gradient({shard}, order.step, order.slots, whole(vector), order.parked));
  at.reset();
  world_.say(this, "computes step {} [{}, {})", order.step, order.slots.begin, order.slots.end);
  const gradient_key key{order.step, order.slots};
  if (kept_.contains(key)) broken("R6", "{} computes what it keeps: step {}", name(), order.step);
  kept_[key] = {buffer, order.timeline};
  perform(core_.on_computed(order.timeline, order.step, order.slots, now()));
}

void worker_process::perform_one(const worker::push_gradient& order) {
  const auto at = kept_.find({order.step, order.slots});
  if (at == kept_.end()) broken("R9", "{} pushes what it does not keep: step {}", name(), order.step);
  const auto& buffer = gradients_->buffers[at->second.buffer];
  gradient_push what;
  what.memory = gradients_;
  what.buffer = at->second.buffer;
  what.push.timeline = core_.timeline();
  what.push.worker = id_;
  what.push.self = self();
  what.push.step = order.step;
  what.push.slots = order.slots;
  what.push.records = buffer.records;
  what.push.tensor_sequence = buffer.sequence;
  send_connected(order.shard, what);
}

/// Symbolic values are finite. What is looked at must be there.
void worker_process::perform_one(const worker::check_gradient& order) {
  if (!kept_.contains({order.made.step, order.made.slots}))
    broken("R9", "{} checks what it does not keep: step {}", name(), order.made.step);
}

/// I3: what is forgotten must be in every log, unless it is of a timeline that is left.
void worker_process::perform_one(const worker::forget_gradient& order) {
  const auto at = kept_.find({order.step, order.slots});
  if (at == kept_.end()) broken("R10", "{} forgets what it does not keep: step {}", name(), order.step);
  const auto [buffer, timeline] = at->second;
  gradients_->buffers[buffer].used = false;
  kept_.erase(at);
  const auto& happened = world_.happened();
  if (world_.plan().durability != protocol::durability::every_step || happened.lossy_power_cut ||
      happened.disk_lost || timeline != core_.timeline() || world_.journal().timeline() != core_.timeline())
    return;
  for (std::uint32_t shard = 0; shard < world_.job().ps_shards; ++shard) {
    const auto& disk = world_.disk_of({shard});
    if (newest_timeline(disk.history()) == core_.timeline() && disk.committed() <= order.step.value)
      broken("I3", "{} forgets step {} that ps_shard {} has not committed", name(), order.step, shard);
  }
}

void worker_process::perform_one(const worker::discard_all& order) {
  world_.say(this, "adopts timeline {}", order.adopted);
  for (const auto& [key, one] : kept_) gradients_->buffers[one.buffer].used = false;
  kept_.clear();
  for (auto& [shard, buffers] : parts_) buffers = {};
}

// ---- ends

/// A frozen one hears it when it thaws.
void worker_process::leave() {
  after(protocol::duration::zero(), [this] {
    world_.say(this, "is asked to leave");
    perform(core_.on_leave(now()));
    report();
  });
}

/// R33: nobody needs what it takes with it. Its process ends between two events.
void worker_process::perform_one(const worker::exit_left&) {
  if (!kept_.empty()) broken("R33", "{} leaves with {} gradients", name(), kept_.size());
  left = true;
  world_.kill(*this, "has left");
}

void worker_process::check_bounds() const {
  std::set<step_id> steps;
  for (const auto& [key, one] : kept_) steps.insert(key.first);
  if (steps.size() > world_.plan().bound + 2) broken("R10", "{} keeps {} steps", name(), steps.size());
}

// ---- the rest

void worker_process::report() {
  if (!alive) return;
  auto status = core_.status();
  status.slots_computed = slots_computed_;
  status.compute_us = compute_us_;
  status.computing = computing_;
  if (computing_ > 0) status.computing_us = static_cast<std::uint64_t>((now() - computing_since_).count());
  send(dispatcher_role, status);
}

// ---- evaluation

void worker_process::perform(const worker::evaluation_actions& actions) {
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit([this](const auto& order) { perform_one(order); }, action);
  }
}

/// R17: from the snapshots; where there are none from the last version, which stays.
void worker_process::perform_one(const worker::get_snapshot_part& order) {
  if (world_.plan().is_durable()) return send_connected(order.shard, snapshot_pull{order.of});
  const auto part = parts_of(order.of.version)[order.shard.value];
  if (part.version == order.of.version) on_snapshot_part({order.shard, order.of, part.content});
}

void worker_process::on_snapshot_part(const snapshot_part& part) {
  if (!evaluation_.wants(part.shard, part.of)) return;
  evaluation_parts_[part.shard] = part.content;
  perform(evaluation_.on_part(part.shard, part.of));
}

/// On a thread of its own, while training goes on.
void worker_process::perform_one(const worker::run_evaluation& order) {
  std::vector<value> parts;
  for (const auto& [shard, content] : evaluation_parts_) parts.push_back(content);
  protocol::evaluated result;
  result.worker = id_;
  result.incarnation = self().incarnation;
  result.timeline = order.of.timeline;
  result.version = order.of.version;
  result.loss_sum_bits = whole(parts);
  const auto time = world_.random().milliseconds(0.2, 4) * world_.plan().slot_ms;
  after(std::chrono::duration_cast<protocol::duration>(time),
        [this, result] { perform(evaluation_.on_result(result)); });
}

void worker_process::perform_one(const worker::cancel_evaluation&) {
  world_.say(this, "is to evaluate something else");
}

void worker_process::perform_one(const worker::send_evaluated& order) { send(dispatcher_role, order.result); }

} // namespace dlrun::simulation
