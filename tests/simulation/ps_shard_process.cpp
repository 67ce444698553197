#include "tests/simulation/ps_shard_process.hpp"

#include "actors/common/action_handlers.hpp"
#include "actors/ps_shard/retained_choice.hpp"
#include "tests/simulation/world.hpp"

namespace dlrun::simulation {
namespace {

using protocol::durability;
using protocol::planted_bug;

/// That a push finds parts of all others there.
constexpr double early_chance = 0.3;

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

bool is_left_out(const job_shape& job, const protocol::history& history, step_id step) {
  return parked_whole(parked_slots(history), step).size() == job.slots_of(step);
}

/// R24: identities of a shard's stores are the starts that made them.
protocol::opened_store open_store(simulated_store& disk, incarnation opener, std::uint32_t host,
                                  const protocol::history& history) {
  const bool is_new = disk.identity == 0;
  if (is_new) disk.identity = opener.value;
  return {{fmt::format("host {}", host), disk.identity, {}},
          std::exchange(disk.last_opener, opener),
          newest_timeline(history),
          disk.restorable().back().last,
          is_new ? "it is not what it was" : ""};
}

} // namespace

ps_shard_process::ps_shard_process(world& where, ps_shard_id id, protocol::fence self, std::uint32_t host)
    : member_process(where, protocol::ps_shard_role(id), self, host)
    , id_(id)
    , gradients_(where, *this, id)
    , writer_(where, *this, id,
              {.known_committed = [this] { return core_->state().committed; },
               .committed =
                   [this](version_id version) {
                     perform(core_->on_committed(version));
                     if (alive) leave_if_trained();
                   },
               .snapshot_durable =
                   [this](version_id version) {
                     perform(core_->on_snapshot_durable(core_->timeline(), version));
                   },
               .rewound = [this](const ps_shard::perform_rewind& order) { rewound(order); }}) {}

void ps_shard_process::start() {
  auto& disk = writer_.disk();
  if (disk.opened_by >= self().incarnation) return world_.kill(*this, "its disk is opened by a newer start");
  disk.opened_by = self().incarnation;
  if (world_.random().chance(world_.plan().damage) && disk.newest_snapshot()) {
    world_.say(this, "finds its newest snapshot damaged");
    disk.damage_newest_snapshot();
    if (world_.journal().ended) world_.happened().damaged_after_end.insert(id_);
  }
  const auto newest = disk.open();
  disk.truncate(newest, world_.is_planted(planted_bug::keep_snapshots));
  history_ = disk.history();
  auto standing = disk.describe(newest);
  if (auto retained = load_retained(standing))
    standing = std::move(*retained);
  else
    load(newest);
  if (world_.plan().is_durable()) opened_ = open_store(disk, self().incarnation, host(), history_);
  const auto version = standing.version;
  core_.emplace(config_for(world_, id_, self()), std::move(standing));
  world_.say(this, "restores version {} of timeline {}", version, core_->timeline());
  check_distance();
  member_process::start();
}

void ps_shard_process::renew_store() {
  if (!writer_.owns_disk() || opened_.store.identity == self().incarnation.value) return;
  opened_.store.identity = writer_.disk().identity = self().incarnation.value;
}

void ps_shard_process::begin() {
  perform(core_->start());
  every(world_.plan().period, [this] {
    report(0);
    perform(core_->on_tick());
  });
}

void ps_shard_process::died() {
  parameters_->gone = true;
  if (moves_) return world_.stores().retained().leave(id_, host());
  if (world_.plan().durability == durability::snapshots)
    world_.stores().retained().put(id_, host(), retained_.image());
}

/// A frozen one hears it when it thaws. Some of the drains are undone meanwhile.
void ps_shard_process::move() {
  const auto tell = [this](bool is_wanted) {
    world_.say(this, "is to {}", is_wanted ? "move" : "stay");
    perform(core_->on_move(is_wanted));
  };
  after({}, [tell] { tell(true); });
  if (world_.random().chance(0.3)) after(world_.random().milliseconds(1, 30), [tell] { tell(false); });
}

void ps_shard_process::check_parameters(version_id version, value content) const {
  if (content != world_.truth().parameters(course_of(history_, world_.job().steps), version, id_))
    broken("I2", "{} makes a wrong version {}", name(), version);
}

/// R7: any two shards are at most B + 1 versions apart when one of them comes back, but for steps
/// of which nothing is left: those need nobody's push.
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
    auto needed = its.applied;
    while (needed > mine.applied && is_left_out(world_.job(), history_, {needed.value - 1}))
      needed = {needed.value - 1};
    if (needed.value - mine.applied.value > world_.plan().bound + 1)
      broken("R7", "{} comes back {} versions behind {}", name(), apart, other->name());
  }
}

void ps_shard_process::hear(const message& what) {
  std::visit(common::action_handlers{
                 [&](const gradient_push& one) { on_push(one); },
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
  auto mapped = core_->wants(what.push) ? gradients_.map(what) : std::nullopt;
  if (!mapped) return perform(core_->on_pull(ps_shard::question_in(what.push)));
  if (what.push.self.incarnation < newest_worker_[what.push.worker])
    broken("I4", "{} takes a gradient of worker {} under the old incarnation {}", name(), what.push.worker,
           what.push.self.incarnation);
  begin_early(what.push.step);
  perform(core_->on_push(what.push, gradients_.add(std::move(*mapped))));
}

/// As when parts of all gradients are there: the buffer of the older version is written from now
/// on, though some of the gradients may never come as a whole.
void ps_shard_process::begin_early(step_id step) {
  if (!world_.random().chance(early_chance) || !core_->begin_early(step)) return;
  world_.say(this, "begins step {} early", step);
  auto& into = parameters_->of(version_after(step));
  into.version.reset();
  ++into.writes;
  retained_.begin(version_after(step));
}

// ---- what the core decided

void ps_shard_process::perform(const ps_shard::ps_shard_actions& actions) {
  const auto carry_out = common::action_handlers{
      [this](const ps_shard::combine& order) { gradients_.combine(order, core_->timeline()); },
      [this](const ps_shard::make_zero& order) { gradients_.make_zero(order); },
      [this](const ps_shard::release& order) { gradients_.release(order); },
      [this](const ps_shard::retain& order) { retained_.note(order); },
      [this](const ps_shard::drop_below& order) { writer_.drop_below(order); },
      [this](const ps_shard::perform_rewind& order) { writer_.rewind(order); },
      [this](const ps_shard::publish&) { publish(); },
      [this](const ps_shard::send_status& order) { report(order.probe); },
      [this](const ps_shard::send_norm& order) { send(protocol::ps_shard_role(order.to), order.message); },
      [this](const ps_shard::send_norm_request& order) {
        send(protocol::ps_shard_role(order.to), order.message);
      },
      [this](const ps_shard::send_state& order) {
        auto answer = state();
        answer.state.lacks = order.lacks;
        send(protocol::worker_role(order.to), answer);
      },
      [this](const ps_shard::send_fenced& order) {
        const auto to = protocol::worker_role(order.to);
        send(to, protocol::fenced{to, order.newest});
      },
      [this](const ps_shard::exit_fenced& order) { end_fenced(order.newest); },
      [this](const ps_shard::end_in_order&) {
        moves_ = true;
        world_.kill(*this, "has left");
      },
      [this](const auto& order) { perform_one(order); }};
  for (const auto& action : actions) {
    if (!alive) return;
    std::visit(carry_out, action);
  }
}

// ---- steps

void ps_shard_process::perform_one(const ps_shard::measure& order) {
  const auto* root = gradients_.use(order.root, core_->timeline());
  if (root == nullptr) return;
  writer_.after_on_this_timeline(0.3, [this, step = order.step, norm = norm_of(root->content)] {
    perform(core_->on_measured(step, {norm}));
  });
}

/// I1: each slot once.
void ps_shard_process::perform_one(const ps_shard::apply& order) {
  if (order.sum) gradients_.combine(*order.sum, core_->timeline());
  if (!alive) return;
  const auto* root = gradients_.use(order.root, core_->timeline());
  if (root == nullptr) return;
  const auto slots = world_.job().slots_of(order.step);
  for (std::uint32_t slot = 0; slot < root->times.size(); ++slot)
    if (root->times[slot] != (slot < slots ? 1U : 0U))
      broken("I1", "{} applies slot {} of step {} {} times", name(), slot, order.step, root->times[slot]);
  auto& into = parameters_->of(version_after(order.step));
  into.version.reset();
  ++into.writes;
  retained_.begin(version_after(order.step));
  writer_.after_on_this_timeline(world_.plan().apply_ms,
                                 [this, order, began = now()] { applied(order, began); });
}

void ps_shard_process::applied(const ps_shard::apply& order, protocol::time_point began) {
  const auto* held = gradients_.use(order.root, core_->timeline());
  if (held == nullptr) return;
  const auto& from = parameters_->of(version_before(order.step));
  if (from.version != version_before(order.step)) broken("R8", "{} has lost version {}", name(), order.step);
  const auto content = update(from.content, held->content, order.coupled, order.revision);
  check_parameters(version_after(order.step), content);
  auto& into = parameters_->of(version_after(order.step));
  into.version = version_after(order.step);
  into.timeline = core_->timeline();
  into.content = content;
  world_.say(this, "publishes version {}", version_after(order.step));
  const auto retain = [this, version = version_after(order.step), content] {
    retained_.publish(version, content, ps_shard::norm_steps(world_.plan().bound));
  };
  if (!world_.is_planted(planted_bug::tell_first))
    retain();
  else
    writer_.after_on_this_timeline(5, retain);
  perform(core_->on_applied(order.step, now() - began));
  if (!alive) return;
  const auto stands = core_->state();
  if (world_.plan().durability == durability::every_step &&
      stands.applied.value > stands.committed.value + world_.plan().bound)
    broken("R7", "{} is more than B versions ahead of its log", name());
  leave_if_trained();
}

/// R19, planted.
void ps_shard_process::leave_if_trained() {
  if (world_.is_planted(planted_bug::exit_at_last) && core_->state().committed.value == world_.job().steps)
    world_.kill(*this, "leaves when it is done");
}

void ps_shard_process::publish() {
  for (std::uint32_t worker = 0; worker < world_.plan().workers_max; ++worker)
    send(protocol::worker_role({worker}), state());
}

// ---- its disk

/// R36. @returns where it stands, when memory has more than the disk.
std::optional<ps_shard::loaded_standing>
ps_shard_process::load_retained(const ps_shard::loaded_standing& stored) {
  if (world_.plan().durability != durability::snapshots) return std::nullopt;
  const auto* found = world_.stores().retained().find(id_, host());
  if (found == nullptr) return std::nullopt;
  const auto* newest = found->newest();
  const auto named = world_.plan().evaluations;
  if (!ps_shard::begins_with_retained(found->timeline, newest->version, stored, named, world_.bug())) {
    // The only reasons for which something has to be computed again.
    const auto passed = std::ranges::any_of(
        named, [&](version_id one) { return stored.version < one && one < newest->version; });
    if (passed || found->timeline != newest_timeline(history_)) world_.happened().memory_left = true;
    world_.say(this, "leaves version {} of timeline {} in memory", newest->version, found->timeline);
    return std::nullopt;
  }
  retained_.take_over(*found);
  const auto timeline = newest_timeline(history_);
  auto standing = stored;
  standing.version = newest->version;
  standing.ledger = newest->image.ledger;
  standing.partials = newest->partials;
  standing.serves_previous = false; // what disk has is not loaded
  for (auto& buffer : parameters_->buffers) buffer = {std::nullopt, {}, 0, buffer.writes + 1};
  for (const auto& one : found->buffers) {
    if (!one) continue;
    check_parameters(one->version, one->image.content);
    auto& into = parameters_->of(one->version);
    into = {one->version, timeline, one->image.content, into.writes};
    if (version_after(step_from(one->version)) == newest->version) standing.serves_previous = true;
  }
  world_.say(this, "finds version {} in memory", newest->version);
  return standing;
}

/// Replays up to `version` - 1, then to `version`, so that both exist (R8).
void ps_shard_process::load(version_id version) {
  const auto can = writer_.disk().restorable();
  const auto timeline = newest_timeline(history_);
  retained_.restart(timeline);
  for (auto& buffer : parameters_->buffers) buffer = {std::nullopt, {}, 0, buffer.writes + 1};
  for (auto one = version.value == 0 ? 0 : version.value - 1; one <= version.value; ++one) {
    if (!contains(can, {one})) continue;
    const auto image = writer_.disk().restore({one});
    check_parameters({one}, image.content);
    auto& into = parameters_->of({one});
    into = {version_id{one}, timeline, image.content, into.writes};
    retained_.load({one}, image);
  }
}

void ps_shard_process::perform_one(const ps_shard::append& order) {
  if (const auto* root = gradients_.use(order.root, core_->timeline()); root != nullptr)
    writer_.append(order, root->content);
}

void ps_shard_process::perform_one(const ps_shard::take_snapshot& order) {
  const auto& buffer = parameters_->of(order.version);
  if (order.version == core_->state().applied && buffer.version == order.version)
    return writer_.take_snapshot(order.version, {buffer.content, order.ledger});
  if (!contains(writer_.disk().restorable(), order.version))
    broken("R17", "{} is to make a snapshot of version {}, which is gone", name(), order.version);
  writer_.take_snapshot(order.version, writer_.disk().restore(order.version));
}

/// R16.
void ps_shard_process::rewound(const ps_shard::perform_rewind& order) {
  history_ = order.history;
  load(order.version);
  auto found = writer_.disk().describe(order.version);
  found.history = order.history;
  perform(core_->on_rewound(std::move(found)));
}

// ---- the rest

announced_state ps_shard_process::state() const { return {core_->state(), parameters_}; }

void ps_shard_process::report(std::uint64_t probe) {
  auto status = core_->status(probe);
  status.sequence = ++status_sequence_;
  status.store = opened_.store;
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
  if (!core_->has_snapshot(wanted.of.timeline, wanted.of.version) || !writer_.owns_disk()) return;
  const auto* image = writer_.disk().snapshot(wanted.of.version);
  if (image == nullptr) broken("R17", "{} has no snapshot {} that it says it has", name(), wanted.of.version);
  for (std::uint32_t worker = 0; worker < world_.plan().workers_max; ++worker)
    send(protocol::worker_role({worker}), snapshot_part{id_, wanted.of, image->content});
}

} // namespace dlrun::simulation
