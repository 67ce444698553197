#include "actors/agent/launch_book.hpp"

#include <fmt/format.h>

namespace dlrun::agent {

using protocol::role_name;

void launch_book::put(const launch_order& order, const launch_events& events) {
  all_[{order.role, order.self.incarnation}] = {order, events};
}

void launch_book::adopt(const protocol::running_start& one, const launch_events& events,
                        const std::string& host) {
  all_[{one.role, one.self.incarnation}] = {{one.role, one.self}, events, host};
  certified_[one.role] = {one.self.incarnation, host};
}

kept_launch* launch_book::find(const role_name& role, incarnation incarnation) {
  const auto found = all_.find({role, incarnation});
  return found == all_.end() ? nullptr : &found->second;
}

std::optional<kept_launch> launch_book::take(const role_name& role, incarnation incarnation) {
  auto found = all_.extract({role, incarnation});
  return found.empty() ? std::nullopt : std::optional{std::move(found.mapped())};
}

result<void> launch_book::certify(kept_launch& one, const std::string& host) {
  if (one.order.credentials && one.certified == host) return {};
  auto issued = issue_(one.order.role, host);
  if (!issued) return tl::unexpected(issued.error());
  one.order.credentials = std::move(*issued);
  one.certified = host;
  certified_[one.order.role] = {one.order.self.incarnation, host};
  return {};
}

result<protocol::role_credentials> launch_book::renew(const role_name& role, incarnation incarnation) const {
  const auto found = certified_.find(role);
  if (found != certified_.end() && found->second.incarnation == incarnation)
    return issue_(role, found->second.host);
  return fail(error_code::fenced,
              fmt::format("incarnation {} of {} gets no certificate: it is not the newest", incarnation,
                          protocol::to_string(role)));
}

void launch_book::tell(const tell_launch& news) {
  const auto found = all_.find({news.role, news.self.incarnation});
  if (found == all_.end()) return;
  const auto events = found->second.events;
  if (const auto* runs = std::get_if<role_runs>(&news.what))
    return events.started(news.role, news.self, runs->pid);
  all_.erase(found);
  if (const auto* why = std::get_if<error>(&news.what))
    events.start_failed(news.role, news.self, *why);
  else
    events.exited(news.role, news.self, std::get<role_end>(news.what));
}

} // namespace dlrun::agent
