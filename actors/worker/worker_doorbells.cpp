/// A worker and its doorbells at PS shards: states that come through them, parts of gradients.
#include "actors/common/clock.hpp"
#include "actors/worker/worker.hpp"

namespace dlrun::worker {
namespace {

constexpr auto connect_deadline = std::chrono::seconds(2);
/// Meanwhile all goes by messages, as where there are no doorbells.
constexpr auto bell_pause = std::chrono::seconds(1);

} // namespace

// ---- from the compute thread to the value thread of a PS shard and back

void worker_state::connect_bell(ps_shard_id shard) {
  auto& link = shards_[shard];
  if (!client_->is_shared() || link.bell || link.connecting_bell || common::now() < link.bell_again) return;
  const auto post = common::poster<protocol::worker_actor>{self_};
  const auto asked = client_->connect_doorbell(
      link.parameters.address, std::chrono::steady_clock::now() + connect_deadline,
      [this, post, shard, mapped = link.mapped](result<std::unique_ptr<transport::doorbell>> made) {
        auto shared = std::make_shared<result<std::unique_ptr<transport::doorbell>>>(std::move(made));
        post([this, shard, mapped, shared] { on_bell(shard, mapped, std::move(*shared)); });
      });
  link.connecting_bell = asked.has_value();
}

void worker_state::on_bell(ps_shard_id shard, dlrun::incarnation incarnation,
                           result<std::unique_ptr<transport::doorbell>> made) {
  auto& link = shards_[shard];
  if (link.mapped != incarnation) return;
  link.connecting_bell = false;
  link.bell_again = common::now() + bell_pause;
  if (!made) {
    context_.log->info("doorbell-refused: ps_shard {}: {}", shard, made.error().message);
    return;
  }
  const std::shared_ptr<const transport::doorbell> bell{std::move(*made)};
  const auto hello = protocol::make_hello({context_.role.index}, context_.self, server_->address());
  if (!hello || !bell->ring(protocol::bytes_of(*hello))) return;
  const auto heard = compute_thread_.listen(
      bell, [this, shard, incarnation](auto packet) { return on_packet(shard, incarnation, packet); });
  if (heard)
    link.bell = bell;
  else
    context_.log->warn("doorbell-unheard: ps_shard {}: {}", shard, heard.error().message);
}

/// On the compute thread.
bool worker_state::on_packet(ps_shard_id shard, dlrun::incarnation incarnation,
                             std::optional<std::span<const std::byte>> packet) {
  const std::scoped_lock inside{self_->entry()};
  auto& link = shards_[shard];
  if (link.mapped != incarnation) return false; // a newer start of the shard took its place
  const auto state = packet ? protocol::read_packet<protocol::state_packet>(*packet) : std::nullopt;
  if (!state || state->shard_incarnation != incarnation) {
    link.bell = nullptr;
    return false;
  }
  if (link.told && link.told->timeline == state->timeline) // else the message is on its way
    carry_out(core_.on_shard_state(protocol::unpacked(*state, *link.told), common::now()));
  return true;
}

protocol::push worker_state::push_of(const transport::pooled_gradient& buffer,
                                     const transport::gradient_header& header) const {
  return {.timeline = header.timeline,
          .worker = {context_.role.index},
          .self = context_.self,
          .step = header.step,
          .slots = {header.slots_begin, header.slots_end},
          .records = header.records,
          .tensor_sequence = header.sequence,
          .where = {server_->address(), buffer.id().value, buffer.buffer().shared().size()}};
}

/// On the compute thread, from within a computation: PS shards that have it in shared memory may begin with
/// what is there. What is lost is not repeated: the push says it all.
void worker_state::tell_part(const transport::pooled_gradient& buffer,
                             const transport::gradient_header& header, std::uint64_t from) {
  const std::scoped_lock inside{self_->entry()};
  if (header.timeline != core_.timeline()) return;
  const protocol::part_packet packet{.of = protocol::packed(push_of(buffer, header)), .from = from};
  for (const auto& [shard, link] : shards_) {
    const auto& range = context_.job->shards.at(shard.value);
    if (link.bell && range.offset + range.size > from) link.bell->ring(protocol::bytes_of(packet));
  }
}

} // namespace dlrun::worker
