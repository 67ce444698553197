#include "tests/simulation/ps_shard_process.hpp"

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

using protocol::durability;
using protocol::planted_bug;

/// That a push finds parts of all others there.
constexpr double early_chance = 0.3;
/// Replay of one step, as the shard estimates it.
constexpr std::uint64_t replay_step_us = 1000;

ps_shard::ps_shard_core_config config_for(const world& where, ps_shard_id id, protocol::fence self) {
  ps_shard::ps_shard_core_config config;
  config.self = id;
  config.fence = self;
  config.ps_shards = where.job().ps_shards;
  config.steps = where.job().steps;
  config.slots_of = [job = where.job()](step_id step) { return job.slots_of(step); };
  config.records_of = [job = where.job()](step_id step, slot_id slot) { return job.records_of(step, slot); };
  config.early_publish_bound = where.plan().bound;
  config.durability = where.plan().durability;
  config.named_snapshots = config.gates = where.plan().evaluations;
  if (where.job().couples) config.combine_norms = combine;
  config.bug = where.bug();
  return config;
}

} // namespace

ps_shard_process::ps_shard_process(world& where, ps_shard_id id, protocol::fence self)
    : member_process(where, protocol::ps_shard_role(id), self)
    , id_(id) {}

void ps_shard_process::start() {
  if (disk().opened_by >= self().incarnation)
    return world_.kill(*this, "its disk is opened by a newer start");
  disk().opened_by = self().incarnation;
  if (world_.random().chance(world_.plan().damage) && disk().newest_snapshot()) {
    world_.say(this, "finds its newest snapshot damaged");
    disk().damage_newest_snapshot();
    if (world_.journal().ended) world_.happened().damaged_after_end.insert(id_);
  }
  const auto newest = disk().open();
  disk().truncate(newest, world_.is_planted(planted_bug::keep_snapshots));
  history_ = disk().history();
  load(newest);
  core_.emplace(config_for(world_, id_, self()), disk().describe(newest));
  world_.say(this, "restores version {} of timeline {}", newest, core_->timeline());
  check_distance();
  member_process::start();
}

void ps_shard_process::begin() {
  perform(core_->start());
  every(world_.plan().period, [this] {
    report(0);
    perform(core_->on_tick());
  });
}

void ps_shard_process::died() { parameters_->gone = true; }

void ps_shard_process::check_parameters(version_id version, value content) const {
  if (content != world_.expected(history_, version, id_))
    world_.broken("I2", "{} makes a wrong version {}", name(), version);
}

/// R7: any two shards are at most B + 1 versions apart when one of them comes back.
void ps_shard_process::check_distance() const {
  const auto& happened = world_.happened();
  if (world_.plan().durability != durability::every_step || happened.lossy_power_cut || happened.disk_lost ||
      world_.plan().damage > 0)
    return;
  const auto mine = core_->state();
  for (const auto* one : world_.living(protocol::role_kind::ps_shard)) {
    const auto* other = static_cast<const ps_shard_process*>(one);
    if (other == this || !other->core_) continue;
    const auto its = other->core_->state();
    if (its.timeline != mine.timeline || its.applied <= mine.applied) continue;
    const auto apart = its.applied.value - mine.applied.value;
    world_.happened().widest = std::max(world_.happened().widest, apart);
    if (apart > world_.plan().bound + 1)
      world_.broken("R7", "{} comes back {} versions behind {}", name(), apart, other->name());
  }
}

void ps_shard_process::hear(const message& what) {
  std::visit(overloaded{[&](const gradient_push& one) { on_push(one); },
                        [&](const protocol::pull& one) { perform(core_->on_pull(one)); },
                        [&](const protocol::directory& one) {
                          for (const auto& entry : one.entries)
                            if (entry.role.kind == protocol::role_kind::worker) {
                              auto& newest = newest_worker_[{entry.role.index}];
                              newest = std::max(newest, entry.incarnation);
                            }
                          perform(core_->on_directory(one));
                        },
                        [&](const protocol::norm& one) { perform(core_->on_norm(one)); },
                        [&](const protocol::norm_request& one) { perform(core_->on_norm_request(one)); },
                        [&](const protocol::rewind& one) { perform(core_->on_rewind(one)); },
                        [&](const protocol::name_snapshot& one) { perform(core_->on_name_snapshot(one)); },
                        [&](const protocol::floor& one) { perform(core_->on_floor(one)); },
                        [&](const protocol::pin& one) { perform(core_->on_pin(one)); },
                        [&](const protocol::go_on& one) { perform(core_->on_go_on(one)); },
                        [&](const protocol::probe& one) { perform(core_->on_probe(one)); },
                        [&](const protocol::digest_request& one) { answer_digests(one); },
                        [&](const snapshot_pull& one) { answer_snapshot(one); }, [](const auto&) {}},
             what);
}

// ---- gradients

void ps_shard_process::on_push(const gradient_push& what) {
  gradient mapped;
  if (!core_->wants(what.push) || !map(what, mapped)) return perform(core_->on_unusable_push(what.push));
  if (what.push.self.incarnation < newest_worker_[what.push.worker])
    world_.broken("I4", "{} takes a gradient of worker {} under the old incarnation {}", name(),
                  what.push.worker, what.push.self.incarnation);
  begin_early(what.push.step);
  const ps_shard::value_id id{next_value_++};
  values_.emplace(id, std::move(mapped));
  perform(core_->on_push(what.push, id));
}

/// As when parts of all gradients are there: the buffer of the older version is written from now on, though
/// some of the gradients may never come as a whole.
void ps_shard_process::begin_early(step_id step) {
  if (!world_.random().chance(early_chance) || !core_->begin_early(step)) return;
  world_.say(this, "begins step {} early", step);
  auto& into = parameters_->of(version_after(step));
  into.version.reset();
  ++into.writes;
}

bool ps_shard_process::map(const gradient_push& what, gradient& into) const {
  if (what.memory->gone) return false;
  const auto& buffer = what.memory->buffers.at(what.buffer);
  if (!buffer.used || buffer.sequence != what.push.tensor_sequence) return false;
  into.content = buffer.content.at(id_.value);
  into.times.resize(world_.job().slots);
  for (auto slot = what.push.slots.begin; slot < what.push.slots.end; ++slot.value)
    into.times.at(slot.value) = 1;
  into.memory = what.memory;
  into.buffer = what.buffer;
  into.sequence = buffer.sequence;
  return true;
}

/// A value at the moment it is read. A worker uses a buffer again when every newest shard has committed its
/// step, or when it has adopted a newer timeline: who reads it after that is not the newest start or not on
/// the newest timeline, notices it by the sequence, and must not publish what it made of it.
const ps_shard_process::gradient* ps_shard_process::used(ps_shard::value_id which) {
  const auto at = values_.find(which);
  if (at == values_.end()) world_.broken("values", "{} uses value {} that it does not hold", name(), which);
  const auto& one = at->second;
  if (!one.memory || one.memory->buffers.at(one.buffer).sequence == one.sequence) return &one;
  const bool is_behind = newest_timeline(world_.journal().course.history) > core_->timeline();
  const bool may_be_early = world_.happened().lossy_power_cut || world_.happened().disk_lost ||
                            world_.plan().durability == durability::snapshots || world_.plan().damage > 0;
  if (!taken_for_dead && !is_behind && !may_be_early)
    world_.broken("values", "{} reads a gradient buffer that its worker uses for another step", name());
  world_.kill(*this, "reads a buffer that is used for another step");
  return nullptr;
}

void ps_shard_process::perform(const ps_shard::ps_shard_actions& actions) {
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit([this](const auto& order) { perform_one(order); }, action);
  }
}

void ps_shard_process::perform_one(const ps_shard::combine& order) {
  const auto* left = used(order.left);
  const auto* right = left == nullptr ? nullptr : used(order.right);
  if (right == nullptr) return;
  gradient made;
  made.content = sum(left->content, right->content);
  made.times = left->times;
  for (std::size_t i = 0; i < made.times.size(); ++i) made.times[i] += right->times[i];
  values_.erase(order.left);
  values_.erase(order.right);
  if (!values_.emplace(order.into, std::move(made)).second)
    world_.broken("values", "value {} exists twice", order.into);
}

void ps_shard_process::perform_one(const ps_shard::make_zero& order) {
  gradient zero;
  zero.content = zero_gradient();
  zero.times.resize(world_.job().slots);
  zero.times.at(order.of.slot.value) = 1;
  values_[order.into] = std::move(zero);
}

void ps_shard_process::perform_one(const ps_shard::release& order) {
  if (values_.erase(order.value) == 0)
    world_.broken("values", "{} releases value {} twice", name(), order.value);
}

// ---- steps

void ps_shard_process::perform_one(const ps_shard::measure& order) {
  const auto* root = used(order.root);
  if (root == nullptr) return;
  after_on_this_timeline(0.3, [this, step = order.step, norm = norm_of(root->content)] {
    perform(core_->on_measured(step, {norm}));
  });
}

/// I1: each slot once.
void ps_shard_process::perform_one(const ps_shard::apply& order) {
  const auto* root = used(order.root);
  if (root == nullptr) return;
  const auto slots = world_.job().slots_of(order.step);
  for (std::uint32_t slot = 0; slot < root->times.size(); ++slot)
    if (root->times[slot] != (slot < slots ? 1U : 0U))
      world_.broken("I1", "{} applies slot {} of step {} {} times", name(), slot, order.step,
                    root->times[slot]);
  auto& into = parameters_->of(version_after(order.step));
  into.version.reset();
  ++into.writes;
  after_on_this_timeline(world_.plan().apply_ms, [this, order] { applied(order); });
}

void ps_shard_process::applied(const ps_shard::apply& order) {
  const auto* held = used(order.root);
  if (held == nullptr) return;
  const auto& from = parameters_->of(version_before(order.step));
  if (from.version != version_before(order.step))
    world_.broken("R8", "{} has lost version {}", name(), order.step);
  const auto content = update(from.content, held->content, order.coupled, order.revision);
  check_parameters(version_after(order.step), content);
  auto& into = parameters_->of(version_after(order.step));
  into.version = version_after(order.step);
  into.timeline = core_->timeline();
  into.content = content;
  world_.say(this, "publishes version {}", version_after(order.step));
  perform(core_->on_applied(order.step));
  if (!alive) return;
  const auto now = core_->state();
  if (world_.plan().durability == durability::every_step &&
      now.applied.value > now.committed.value + world_.plan().bound)
    world_.broken("R7", "{} is more than B versions ahead of its log", name());
  leave_if_trained();
}

/// R19, planted.
void ps_shard_process::leave_if_trained() {
  if (world_.is_planted(planted_bug::exit_at_last) && core_->trained() &&
      core_->state().committed.value == world_.job().steps)
    world_.kill(*this, "leaves when it is done");
}

void ps_shard_process::perform_one(const ps_shard::send_norm& order) {
  send(protocol::ps_shard_role(order.to), order.message);
}

void ps_shard_process::perform_one(const ps_shard::send_norm_request& order) {
  send(protocol::ps_shard_role(order.to), order.message);
}

void ps_shard_process::perform_one(const ps_shard::publish&) {
  for (std::uint32_t worker = 0; worker < world_.plan().workers; ++worker)
    send(protocol::worker_role({worker}), state());
}

void ps_shard_process::perform_one(const ps_shard::send_state& order) {
  send(protocol::worker_role(order.to), state());
}

void ps_shard_process::perform_one(const ps_shard::send_status& order) { report(order.probe); }

void ps_shard_process::perform_one(const ps_shard::send_fenced& order) {
  send(protocol::worker_role(order.to), protocol::fenced{protocol::worker_role(order.to), order.newest});
}

void ps_shard_process::perform_one(const ps_shard::exit_fenced& order) { end_fenced(order.newest); }

// ---- the rest

announced_state ps_shard_process::state() const { return {core_->state(), parameters_}; }

void ps_shard_process::report(std::uint64_t probe) {
  auto status = core_->status(probe);
  status.sequence = ++status_sequence_;
  const auto newest = disk().newest_snapshot().value_or(version_id{0}).value;
  const auto end = status.committed.value;
  status.durable.replay_us = end > newest ? (end - newest) * replay_step_us : 0;
  send(dispatcher_role, status);
}

/// One block a shard: its digest is its value, four times.
void ps_shard_process::answer_digests(const protocol::digest_request& request) {
  const auto state = core_->state();
  if (request.timeline != state.timeline || request.version != state.applied) return;
  const auto content = parameters_->of(request.version).content;
  std::string digest;
  for (int i = 0; i < 32; ++i) digest += static_cast<char>((content >> (8 * (i % 8))) & 0xff);
  send(coordinator_role, shard_digests{id_, {request.first_block, digest}});
}

/// R17.
void ps_shard_process::answer_snapshot(const snapshot_pull& wanted) {
  if (!core_->has_snapshot(wanted.of.timeline, wanted.of.version) || !owns_disk()) return;
  const auto* image = disk().snapshot(wanted.of.version);
  if (image == nullptr)
    world_.broken("R17", "{} has no snapshot {} that it says it has", name(), wanted.of.version);
  for (std::uint32_t worker = 0; worker < world_.plan().workers; ++worker)
    send(protocol::worker_role({worker}), snapshot_part{id_, wanted.of, image->content});
}

} // namespace dlrun::simulation
