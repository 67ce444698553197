#include "actors/worker/shard_doorbells.hpp"

#include "actors/common/clock.hpp"

namespace dlrun::worker {
namespace {

constexpr auto connect_deadline = std::chrono::seconds(2);
/// Meanwhile all goes by messages, as where there are no doorbells.
constexpr auto bell_pause = std::chrono::seconds(1);

} // namespace

shard_doorbells::shard_doorbells(const common::role_context& context, transport::segment_fetches& client,
                                 std::string tensor_address, links asked)
    : context_(context)
    , client_(client)
    , tensor_address_(std::move(tensor_address))
    , asked_(std::move(asked)) {}

void shard_doorbells::follow(const protocol::shard_state& state) {
  auto& one = bells_[state.shard];
  if (state.incarnation < one.incarnation) return;
  if (state.incarnation > one.incarnation) one = {};
  one.incarnation = state.incarnation;
  if (!one.told || one.told->timeline <= state.timeline) one.told = state;
  connect(state.shard, state.parameters.address);
}

void shard_doorbells::connect(ps_shard_id shard, const std::string& address) {
  auto& one = bells_[shard];
  if (!client_.is_shared() || one.doorbell || one.is_connecting || common::now() < one.again) return;
  const auto asked = client_.connect_doorbell(
      address, std::chrono::steady_clock::now() + connect_deadline,
      [this, post = asked_.back.post, shard,
       start = one.incarnation](result<std::unique_ptr<transport::doorbell>> made) {
        auto shared = std::make_shared<result<std::unique_ptr<transport::doorbell>>>(std::move(made));
        post([this, shard, start, shared] { on_connected(shard, start, std::move(*shared)); });
      });
  one.is_connecting = asked.has_value();
}

void shard_doorbells::on_connected(ps_shard_id shard, incarnation start,
                                   result<std::unique_ptr<transport::doorbell>> made) {
  auto& one = bells_[shard];
  if (one.incarnation != start) return;
  one.is_connecting = false;
  one.again = common::now() + bell_pause;
  if (!made) {
    context_.log->info("doorbell-refused: ps_shard {}: {}", shard, made.error().message);
    return;
  }
  const bell rung{std::move(*made)};
  const auto hello = protocol::make_hello({context_.role.index}, context_.self, tensor_address_);
  if (!hello || !rung->ring(protocol::bytes_of(*hello))) return;
  const auto heard =
      asked_.listen(rung, [this, shard, start](auto packet) { return on_packet(shard, start, packet); });
  if (heard)
    one.doorbell = rung;
  else
    context_.log->warn("doorbell-unheard: ps_shard {}: {}", shard, heard.error().message);
}

/// On the compute thread. Returns whether to go on listening.
bool shard_doorbells::on_packet(ps_shard_id shard, incarnation start,
                                std::optional<std::span<const std::byte>> packet) {
  bool is_alive = false;
  asked_.back.enter([&] {
    auto& one = bells_[shard];
    if (one.incarnation != start) return; // a newer start of the shard took its place
    const auto state = packet ? protocol::read_packet<protocol::state_packet>(*packet) : std::nullopt;
    is_alive = state && state->shard_incarnation == start;
    if (!is_alive)
      one.doorbell = nullptr;
    else if (one.told && one.told->timeline == state->timeline) // else the message is on its way
      asked_.heard(protocol::unpacked(*state, *one.told));
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
