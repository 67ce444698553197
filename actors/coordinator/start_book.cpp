#include "actors/coordinator/start_book.hpp"

namespace dlrun::coordinator {

using protocol::role_kind;
using protocol::role_name;

start_book::start_book(const std::vector<role_name>& roles, bool relaxed)
    : arithmetic_{relaxed} {
  for (const auto& role : roles) pages_[role];
}

incarnation start_book::newest(const role_name& role) const {
  const auto at = pages_.find(role);
  return at == pages_.end() || !at->second.newest ? incarnation{} : at->second.newest->incarnation;
}

bool start_book::is_over(const role_name& role, const protocol::fence& self) const {
  const auto at = pages_.find(role);
  return at != pages_.end() && at->second.newest == self && !at->second.running;
}

void start_book::begin(const role_name& role, const protocol::fence& self) {
  pages_[role] = {self, true, {}};
  ++sequence_;
}

bool start_book::join(const role_name& role, const protocol::endpoint& at) {
  auto& page = pages_.at(role);
  if (page.at == at) return false;
  page.at = at;
  ++sequence_;
  return true;
}

void start_book::end(const role_name& role) {
  auto& page = pages_.at(role);
  page.at.reset();
  page.running = false;
  ++sequence_;
}

protocol::directory start_book::directory(incarnation coordinator,
                                          std::vector<protocol::suspect_slot> suspects) const {
  protocol::directory all{coordinator, sequence_, {}, std::move(suspects)};
  for (const auto& [role, page] : pages_) {
    protocol::directory_entry entry{role, {}, page.at.has_value(), {}, 0};
    if (page.newest) {
      entry.incarnation = page.newest->incarnation;
      entry.token = page.newest->token;
    }
    if (page.at) entry.at = *page.at;
    all.entries.push_back(std::move(entry));
  }
  return all;
}

std::vector<protocol::worker_available> start_book::available_workers() const {
  std::vector<protocol::worker_available> all;
  for (const auto& [role, page] : pages_)
    if (role.kind == role_kind::worker && page.at) all.push_back({{role.index}, page.newest->incarnation});
  return all;
}

std::vector<protocol::ps_shard_available> start_book::available_ps_shards() const {
  std::vector<protocol::ps_shard_available> all;
  for (const auto& [role, page] : pages_)
    if (role.kind == role_kind::ps_shard && page.at) all.push_back({{role.index}, page.newest->incarnation});
  return all;
}

} // namespace dlrun::coordinator
