#include "tests/simulation/ps_shard_process.hpp"

#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

constexpr protocol::role_name dispatcher_role{protocol::role_kind::data_dispatcher, 0};
constexpr protocol::role_name coordinator_role{protocol::role_kind::coordinator, 0};

ps_shard::ps_shard_core_config config_for(const world& where, ps_shard_id id, protocol::fence self) {
  ps_shard::ps_shard_core_config config;
  config.self = id;
  config.fence = self;
  config.steps = where.job().steps;
  config.slots_of = [job = where.job()](step_id step) { return job.slots_of(step); };
  config.records_of = [job = where.job()](step_id step, slot_id slot) { return job.records_of(step, slot); };
  config.early_publish_bound = where.plan().bound;
  config.logs = where.plan().logs;
  config.bug = where.bug();
  return config;
}

} // namespace

ps_shard_process::ps_shard_process(world& where, ps_shard_id id, protocol::fence self)
    : member_process(where, protocol::ps_shard_role(id), self)
    , id_(id) {}

void ps_shard_process::start() {
  auto& disk = world_.disk_of(id_);
  if (disk.opened_by >= self().incarnation) return world_.kill(*this, "its log is opened by a newer start");
  disk.opened_by = self().incarnation;
  restore();
  member_process::start();
}

/// Replays the log up to D - 1, then to D, so that both versions exist (R8).
void ps_shard_process::restore() {
  const auto& log = world_.disk_of(id_).roots;
  restored_ = {log.size()};
  value content = initial(id_);
  for (version_id version{0};; ++version.value) {
    parameters_->of(version) = {version, content, 0};
    if (version == restored_) break;
    content = update(content, log[version.value]);
  }
  check_parameters(restored_, content);
  core_.emplace(config_for(world_, id_, self()), timeline_id{}, restored_, restored_.value > 0);
  world_.say(this, "restores version {}", restored_);
}

void ps_shard_process::begin() {
  perform_one(ps_shard::publish{});
  every(world_.plan().period, [this] { report(); });
}

void ps_shard_process::died() { parameters_->gone = true; }

void ps_shard_process::check_parameters(version_id version, value content) const {
  if (content != world_.truth().parameters(version, id_))
    world_.broken("I2", "{} makes a wrong version {}", name(), version);
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
                        [&](const protocol::digest_request& one) { answer_digests(one); },
                        [](const auto&) {}},
             what);
}

// ---- gradients
// ---------------------------------------------------------------------------------------------------

void ps_shard_process::on_push(const gradient_push& what) {
  gradient mapped;
  if (!core_->wants(what.push) || !map(what, mapped)) return perform(core_->on_unusable_push(what.push));
  if (what.push.self.incarnation < newest_worker_[what.push.worker])
    world_.broken("I4", "{} takes a gradient of worker {} under the old incarnation {}", name(),
                  what.push.worker, what.push.self.incarnation);
  const ps_shard::value_id id{next_value_++};
  values_.emplace(id, std::move(mapped));
  perform(core_->on_push(what.push, id));
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
/// step: who reads it after that is a zombie, notices it by the sequence, and must not publish what it made
/// of it.
const ps_shard_process::gradient* ps_shard_process::used(ps_shard::value_id which) {
  const auto at = values_.find(which);
  if (at == values_.end()) world_.broken("values", "{} uses value {} that it does not hold", name(), which);
  const auto& one = at->second;
  if (!one.memory || one.memory->buffers.at(one.buffer).sequence == one.sequence) return &one;
  if (!taken_for_dead)
    world_.broken("values", "{} reads a gradient buffer that its worker uses for another step", name());
  world_.kill(*this, "reads a buffer that is used for another step: it is a zombie");
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

void ps_shard_process::perform_one(const ps_shard::release& order) {
  if (values_.erase(order.value) == 0)
    world_.broken("values", "{} releases value {} twice", name(), order.value);
}

// ---- steps
// -------------------------------------------------------------------------------------------------------

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
  const auto time = world_.random().milliseconds(0.2, 1) * world_.plan().apply_ms;
  after(std::chrono::duration_cast<protocol::duration>(time),
        [this, order] { applied(order.step, order.root); });
}

void ps_shard_process::applied(step_id step, ps_shard::value_id root) {
  const auto* held = used(root);
  if (held == nullptr) return;
  const auto& from = parameters_->of(version_before(step));
  if (from.version != version_before(step)) world_.broken("R8", "{} has lost version {}", name(), step);
  const auto content = update(from.content, held->content);
  check_parameters(version_after(step), content);
  auto& into = parameters_->of(version_after(step));
  into.version = version_after(step);
  into.content = content;
  world_.say(this, "publishes version {}", version_after(step));
  world_.published(id_, version_after(step));
  perform(core_->on_applied(step));
}

void ps_shard_process::perform_one(const ps_shard::append& order) {
  if (!world_.plan().logs) world_.broken("R7", "{} appends without a log", name());
  appends_.emplace_back(order.step, order.root);
  append_next();
}

void ps_shard_process::append_next() {
  if (appending_ || appends_.empty()) return;
  appending_ = true;
  const auto [step, root] = appends_.front();
  appends_.pop_front();
  const auto* held = used(root);
  if (held == nullptr) return;
  after(world_.random().milliseconds(0, world_.plan().log_ms),
        [this, step = step, content = held->content] { appended(step, content); });
}

/// The log refuses the writes of an older start (R4) and takes steps in order (R11).
void ps_shard_process::appended(step_id step, value root) {
  appending_ = false;
  auto& disk = world_.disk_of(id_);
  if (disk.opened_by != self().incarnation) return world_.kill(*this, "fenced by its log");
  if (disk.roots.size() != step.value) world_.broken("R11", "{} appends step {} out of order", name(), step);
  disk.roots.push_back(root);
  world_.say(this, "commits step {}", step);
  perform(core_->on_appended(step));
  append_next();
}

void ps_shard_process::perform_one(const ps_shard::publish&) {
  for (std::uint32_t worker = 0; worker < world_.plan().workers; ++worker)
    send(protocol::worker_role({worker}), state());
}

void ps_shard_process::perform_one(const ps_shard::send_state& order) {
  send(protocol::worker_role(order.to), state());
}

void ps_shard_process::perform_one(const ps_shard::send_fenced& order) {
  send(protocol::worker_role(order.to), protocol::fenced{protocol::worker_role(order.to), order.newest});
}

void ps_shard_process::perform_one(const ps_shard::exit_fenced& order) { end_fenced(order.newest); }

// ---- the rest
// ----------------------------------------------------------------------------------------------------

announced_state ps_shard_process::state() const { return {core_->state(), parameters_}; }

void ps_shard_process::report() {
  const auto state = core_->state();
  protocol::shard_status status;
  status.shard = id_;
  status.self = self();
  status.sequence = ++status_sequence_;
  status.timeline = state.timeline;
  status.applied = state.applied;
  status.committed = state.committed;
  status.ledger = core_->applied().totals();
  status.contributions = core_->contributions();
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

} // namespace dlrun::simulation
