/// A PS shard and the doorbells of its workers: pushes that come through them, parts of gradients, and where
/// it stands.
#include "actors/ps_shard/norm_exchange.hpp"
#include "actors/ps_shard/ps_shard.hpp"

#include <algorithm>

namespace dlrun::ps_shard {

// ---- doorbells

void ps_shard_state::on_doorbell(const std::shared_ptr<const transport::doorbell>& bell) {
  const auto heard = values_thread_.listen(
      bell, [this, bell, from = bell_owner{}](auto packet) mutable { return on_packet(from, bell, packet); });
  if (!heard) context_.log->warn("doorbell-unheard: {}", heard.error().message);
}

/// On the value thread. First comes who it is, then what it pushes.
bool ps_shard_state::on_packet(bell_owner& from, const std::shared_ptr<const transport::doorbell>& bell,
                               std::optional<std::span<const std::byte>> packet) {
  const std::scoped_lock inside{self_->entry()};
  if (packet && !from) {
    from = protocol::read_packet<protocol::hello_packet>(*packet);
    return from && attach(*from, bell);
  }
  if (const auto push = packet ? protocol::read_packet<protocol::push_packet>(*packet) : std::nullopt) {
    on_push(protocol::unpacked(*push, *from));
    return true;
  }
  if (const auto part = packet ? protocol::read_packet<protocol::part_packet>(*packet) : std::nullopt) {
    on_part(protocol::unpacked(part->of, *from), part->from);
    return true;
  }
  detach(from, bell);
  return false;
}

// ---- a step that is begun with before all of it is there

/// Floats from `from` on of what will be pushed. A first gradient of a buffer is not mapped yet: it is waited
/// for whole.
void ps_shard_state::on_part(const protocol::push& push, std::uint64_t from) {
  if (!core_ || !speaks_for_itself(push.worker, push.self) || !core_->wants(push)) return;
  const auto found = sources_.find({push.where.address, push.where.segment});
  if (found == sources_.end() || !found->second.reader) return;
  const auto reader = found->second.reader;
  const auto expected = header_of(push);
  const auto whole = reader->view(expected);
  if (!whole) return;
  note_early(push, {whole->subspan(range_.offset, range_.size), reader,
                    [reader, expected] { return reader->unchanged(expected); },
                    std::max(from, range_.offset) - range_.offset});
}

void ps_shard_state::note_early(const protocol::push& push, early_gradients::gradient gradient) {
  const auto next = step_from(core_->state().applied);
  if (push.step != next || push.timeline != core_->timeline()) return;
  early_.add({push.timeline, next}, core_->slots_of(next), push.slots, std::move(gradient));
  if (!early_.has_more()) return;
  if (early_.is_begun()) return apply_early(next, *early_.revision());
  if (const auto revision = core_->begin_early(next)) apply_early(next, *revision);
}

/// On the value thread, in whose queue the rest of the step comes later.
void ps_shard_state::apply_early(step_id step, std::uint64_t revision) {
  const auto work = std::make_shared<const early_gradients::work>(early_.begin(revision));
  const bool is_sum = !work->is_one();
  if (is_sum && !early_sum_ && context_.job->durability() == protocol::durability::every_step)
    early_sum_ = sums_.lend(); // the log wants it as a whole
  const auto shape = shape_of(context_.job->sampler, step, revision, core_->state().parked);
  values_thread_.run([parameters = parameters_, work, sum = is_sum ? early_sum_ : nullptr, shape,
                      timeline = core_->timeline(), step] {
    parameters->apply_early(
        timeline, step, shape, work->from,
        [&](std::uint64_t begin, std::uint64_t end) {
          return work->part(begin, end,
                            sum ? std::span{*sum}.subspan(begin, end - begin) : std::span<float>{});
        },
        [&] { return work->intact(); });
  });
}

/// A worker that has not pulled yet, or has been replaced, has no use for one.
bool ps_shard_state::attach(const protocol::hello_packet& owner,
                            const std::shared_ptr<const transport::doorbell>& bell) {
  const auto found = workers_.find(owner.worker);
  if (!core_ || found == workers_.end() || found->second.incarnation != owner.self.incarnation ||
      !speaks_for_itself(owner.worker, owner.self))
    return false;
  found->second.bell = bell;
  return true;
}

void ps_shard_state::detach(const bell_owner& owner, const std::shared_ptr<const transport::doorbell>& bell) {
  if (!owner) return;
  if (const auto found = workers_.find(owner->worker); found != workers_.end() && found->second.bell == bell)
    found->second.bell = nullptr;
}

/// Where this shard stands: through the doorbell, unless there is something that it does not say.
void ps_shard_state::tell(attached_worker& worker) {
  const auto state = core_->state();
  if (worker.bell && worker.told == state.timeline &&
      worker.bell->ring(protocol::bytes_of(protocol::packed(state))))
    return;
  self_->send(worker.handle, current_state());
  worker.told = state.timeline;
}

} // namespace dlrun::ps_shard
