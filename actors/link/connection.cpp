#include "actors/link/connection.hpp"

#include <dlrun/check.hpp>

namespace dlrun::link {
namespace {

/// Of one connection, in bytes. What comes on top of it is lost: its peer takes nothing.
constexpr std::size_t unsent_max = std::size_t{1} << 20;
/// Requests that the peer has not answered; more fail at once.
constexpr std::size_t calls_max = 1024;

caf::error lost(const std::string& why) { return caf::make_error(caf::sec::remote_lookup_failed, why); }

} // namespace

connection::connection(caf::io::broker& broker, caf::io::connection_handle socket, connection_setup setup)
    : broker_{&broker}
    , socket_{socket}
    , setup_{std::move(setup)} {}

bool connection::write(const frame_header& header, std::span<const char> payload) {
  if (broker_ == nullptr) return false;
  auto& unsent = broker_->wr_buf(socket_);
  if (unsent.size() > unsent_max) return false;
  if (const auto added = append_frame(unsent, header, payload); !added) {
    setup_.warn(fmt::format("message-too-long: for {}: {}", to_string(peer()), added.error().message));
    return false;
  }
  broker_->flush(socket_);
  return true;
}

void connection::send(std::uint64_t actor, std::uint16_t message, std::span<const char> payload) {
  write({.kind = frame_kind::message, .message = message, .actor = actor}, payload);
}

void connection::request(std::uint64_t actor, std::uint16_t message, std::span<const char> payload,
                         caf::response_promise promise, answer_reader read) {
  if (calls_.size() >= calls_max) return promise.deliver(lost("the peer answers nothing"));
  const auto call = ++last_call_;
  if (!write({.kind = frame_kind::request, .message = message, .actor = actor, .call = call}, payload))
    return promise.deliver(lost("the peer takes nothing"));
  calls_[call] = {std::move(promise), read};
}

void connection::answer(std::uint64_t call, std::span<const char> payload) {
  write({.kind = frame_kind::answer, .call = call}, payload);
}

void connection::refuse(std::uint64_t call, const std::string& why) {
  write({.kind = frame_kind::failure, .call = call},
        std::span{why}.first(std::min<std::size_t>(why.size(), 1024)));
}

std::uint64_t connection::lend(const caf::strong_actor_ptr& actor, const message_table& table) {
  if (actor == setup_.door().actor) return door_number;
  const auto number = actor->id();
  DLRUN_CHECK(number != door_number, "actors are numbered from 1");
  if (lent_.try_emplace(number, lent_actor{actor, &table}).second) broker_->monitor(actor);
  return number;
}

caf::strong_actor_ptr connection::peer_door() {
  const auto as = [this]<class Handle>(std::type_identity<Handle>) {
    const auto proxy = borrow<Handle>(door_number);
    return proxy ? caf::actor_cast<caf::strong_actor_ptr>(*proxy) : nullptr;
  };
  switch (peer().role.kind) {
  case protocol::role_kind::coordinator: return as(std::type_identity<protocol::coordinator_actor>{});
  case protocol::role_kind::ps_shard: return as(std::type_identity<protocol::ps_shard_actor>{});
  case protocol::role_kind::worker: return as(std::type_identity<protocol::worker_actor>{});
  case protocol::role_kind::agent: return as(std::type_identity<protocol::agent_actor>{});
  case protocol::role_kind::host_agent: return as(std::type_identity<protocol::host_agent_actor>{});
  case protocol::role_kind::keeper: return as(std::type_identity<protocol::keeper_actor>{});
  case protocol::role_kind::data_dispatcher: break;
  }
  return nullptr;
}

// ---- what comes

result<void> connection::take(std::span<const char> bytes) {
  return reader_.add(bytes, [this](const frame& what) { return on_frame(what); });
}

result<void> connection::on_frame(const frame& what) {
  switch (what.header.kind) {
  case frame_kind::message:
  case frame_kind::request: return deliver(what);
  case frame_kind::answer:
  case frame_kind::failure: return settle(what);
  case frame_kind::gone: on_gone(what.header.actor); break;
  }
  return {};
}

lent_actor connection::lent(std::uint64_t number) const {
  if (number == door_number) return setup_.door();
  const auto found = lent_.find(number);
  return found == lent_.end() ? lent_actor{} : found->second;
}

result<void> connection::deliver(const frame& what) {
  const auto to = lent(what.header.actor);
  if (to.actor == nullptr) { // it has just ended, or has not begun: messages may be lost
    if (what.header.kind == frame_kind::request) refuse(what.header.call, "nobody is there");
    return {};
  }
  const auto& entries = to.table->entries;
  const auto place = what.header.message;
  if (place >= entries.size() || !entries[place].senders.contains(peer().role.kind))
    return fail(error_code::protocol,
                fmt::format("{} has sent message {}, which is not for it to send", to_string(peer()), place));
  return entries[place].deliver(*this, to.actor, what);
}

result<void> connection::settle(const frame& what) {
  const auto found = calls_.find(what.header.call);
  if (found == calls_.end())
    return fail(error_code::protocol, fmt::format("{} answers what nobody has asked", to_string(peer())));
  auto call = std::move(found->second);
  calls_.erase(found);
  if (what.header.kind == frame_kind::answer) return call.read(*this, what.payload, call.promise);
  call.promise.deliver(lost(std::string{what.payload.begin(), what.payload.end()}));
  return {};
}

void connection::on_gone(std::uint64_t number) {
  const auto found = borrowed_.find(number);
  if (found == borrowed_.end()) return;
  caf::anon_send_exit(found->second.proxy, caf::exit_reason::remote_link_unreachable);
  borrowed_.erase(found);
}

// ---- ends

void connection::on_down(const caf::down_msg& down) {
  const auto number = down.source.id();
  if (lent_.erase(number) == 0) return;
  const auto why = to_string(down.reason);
  write({.kind = frame_kind::gone, .actor = number},
        std::span{why}.first(std::min<std::size_t>(why.size(), 1024)));
}

void connection::end(const std::string& why) {
  if (broker_ == nullptr) return;
  broker_ = nullptr;
  for (auto& [number, call] : calls_) call.promise.deliver(lost(why));
  for (auto& [number, actor] : borrowed_)
    caf::anon_send_exit(actor.proxy, caf::exit_reason::remote_link_unreachable);
  calls_.clear();
  borrowed_.clear();
  lent_.clear();
}

} // namespace dlrun::link
