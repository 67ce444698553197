#include "actors/coordinator/member_links.hpp"

#include "actors/common/ask.hpp"

namespace dlrun::coordinator {
namespace {

constexpr auto digest_deadline = std::chrono::seconds(10);

} // namespace

void member_links::send(const protocol::directory& directory) const {
  for (const auto& [role, handle] : members_)
    std::visit([&](const auto& who) { self_->send(who, directory, dispatcher()); }, handle);
}

void member_links::send(const protocol::worker_available& message) const {
  if (const auto* who = find<protocol::worker_actor>(protocol::worker_role(message.worker)))
    self_->send(dispatcher_, message, *who);
}

void member_links::send(const protocol::ps_shard_available& message) const {
  if (const auto* who = find<protocol::ps_shard_actor>(protocol::ps_shard_role(message.shard)))
    self_->send(dispatcher_, message, *who);
}

void member_links::ask(const request_digests& order,
                       std::function<void(const protocol::digest_reply&)> answered,
                       std::function<void(const std::string&)> failed) const {
  const auto* shard = find<protocol::ps_shard_actor>(protocol::ps_shard_role(order.shard));
  if (shard == nullptr) return;
  common::ask(self_, *shard, digest_deadline, order.request, std::move(answered),
              [failed = std::move(failed)](const caf::error& why) { failed(to_string(why)); });
}

} // namespace dlrun::coordinator
