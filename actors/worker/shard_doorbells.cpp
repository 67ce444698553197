#include "actors/worker/shard_doorbells.hpp"

#include "actors/common/clock.hpp"

namespace dlrun::worker {
namespace {

constexpr auto connect_deadline = std::chrono::seconds(2);

} // namespace

shard_doorbells::shard_doorbells(const common::role_context& context, transport::segment_fetches& client,
                                 std::string tensor_address, links asked)
    : context_(context)
    , client_(client)
    , tensor_address_(std::move(tensor_address))
    , asked_(std::move(asked)) {}

void shard_doorbells::follow(const protocol::shard_state& state) {
  if (!attempts_.follow(state.shard, state.incarnation)) return;
  auto& one = bells_.try_emplace(state.shard, shard_bell{state, nullptr}).first->second;
  if (one.told.incarnation != state.incarnation)
    one = {state, nullptr};
  else if (one.told.timeline <= state.timeline)
    one.told = state;
  if (client_.is_shared(state.parameters.address) && attempts_.begin(state.shard, common::now()))
    connect(state.shard, state.incarnation, state.parameters.address);
}

void shard_doorbells::connect(ps_shard_id shard, incarnation start, const std::string& address) {
  const auto asked = client_.connect_doorbell(
      address, std::chrono::steady_clock::now() + connect_deadline,
      [this, post = asked_.back.post, shard, start](result<std::unique_ptr<transport::doorbell>> made) {
        auto shared = std::make_shared<result<std::unique_ptr<transport::doorbell>>>(std::move(made));
        post([this, shard, start, shared] { on_connected(shard, start, std::move(*shared)); });
      });
  if (!asked) on_connected(shard, start, tl::unexpected(asked.error()));
}

void shard_doorbells::on_connected(ps_shard_id shard, incarnation start,
                                   result<std::unique_ptr<transport::doorbell>> made) {
  auto& one = bells_.at(shard);
  if (one.told.incarnation != start) return; // a newer start of the shard took its place
  const auto opened = open(shard, start, std::move(made));
  if (opened) {
    one.doorbell = *opened;
    return attempts_.on_connected(shard, start, common::now());
  }
  context_.log->info("doorbell-refused: ps_shard {}: {}", shard, opened.error().message);
  attempts_.on_failed(shard, start, common::now());
}

/// Its first word is who rings.
result<shard_doorbells::bell> shard_doorbells::open(ps_shard_id shard, incarnation start,
                                                    result<std::unique_ptr<transport::doorbell>> made) {
  if (!made) return tl::unexpected(made.error());
  const bell rung{std::move(*made)};
  const auto hello = protocol::make_hello({context_.role.index}, context_.self, tensor_address_);
  if (!hello || !rung->ring(protocol::bytes_of(*hello)))
    return fail(error_code::role_lost, "it takes no hello");
  const auto heard =
      asked_.listen(rung, [this, shard, start](auto packet) { return on_packet(shard, start, packet); });
  if (!heard) return tl::unexpected(heard.error());
  return rung;
}

/// On the compute thread. Returns whether to go on listening.
bool shard_doorbells::on_packet(ps_shard_id shard, incarnation start,
                                std::optional<std::span<const std::byte>> packet) {
  bool is_alive = false;
  asked_.back.enter([&] {
    auto& one = bells_.at(shard);
    if (one.told.incarnation != start) return; // a newer start of the shard took its place
    const auto state = packet ? protocol::read_packet<protocol::state_packet>(*packet) : std::nullopt;
    is_alive = state && state->shard_incarnation == start;
    if (!is_alive) {
      one.doorbell = nullptr;
      attempts_.on_lost(shard, start);
    } else if (one.told.timeline == state->timeline) { // else the message is on its way
      asked_.heard(protocol::unpacked(*state, one.told));
    }
  });
  return is_alive;
}

bool shard_doorbells::ring(ps_shard_id shard, const protocol::push& push) const {
  const auto found = bells_.find(shard);
  return found != bells_.end() && found->second.doorbell &&
         found->second.doorbell->ring(protocol::bytes_of(protocol::packed(push)));
}

void shard_doorbells::tell_part(const protocol::push& push, std::uint64_t from) const {
  const protocol::part_packet packet{.of = protocol::packed(push), .from = from};
  for (const auto& [shard, one] : bells_) {
    const auto& range = context_.job->shards.at(shard.value);
    if (one.doorbell && range.offset + range.size > from) one.doorbell->ring(protocol::bytes_of(packet));
  }
}

} // namespace dlrun::worker
