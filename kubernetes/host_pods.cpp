#include "kubernetes/host_pods.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace dlrun::kubernetes {
host_pods::host_pods(pod_requests& requests, const api_client& client, host_pods_options options)
    : requests_{requests}
    , client_{client}
    , options_{std::move(options)}
    , plan_{options_.rules} {}

void host_pods::on_news(pod_news news) {
  const std::scoped_lock lock{mutex_};
  news_.push_back(std::move(news));
}

void host_pods::hosts_are(host_sights hosts) {
  const std::scoped_lock lock{mutex_};
  hosts_ = std::move(hosts);
}

void host_pods::pass() {
  std::vector<pod_news> news;
  std::optional<host_sights> hosts;
  {
    const std::scoped_lock lock{mutex_};
    news.swap(news_);
    hosts = hosts_;
  }
  for (const auto& one : news) plan_.on_news(one);
  const auto now = client_.time().now();
  if ((!looked_ || now - *looked_ >= options_.look_period) && !look()) return;
  const auto actions = plan_.next(wanted_, hosts, now);
  const bool makes =
      std::ranges::any_of(actions, [](const auto& one) { return std::holds_alternative<create_pod>(one); });
  if (makes && looked_ < now && !look()) return; // what nobody wants any more is not made
  carry_out(actions);
}

/// @returns whether it is known what is wanted
bool host_pods::look() {
  auto wanted = requests_.wanted(give_up());
  looked_ = client_.time().now();
  if (wanted) wanted_ = std::move(*wanted);
  if (!wanted) complain(wanted.error().message);
  return wanted.has_value();
}

/// What the server does not answer it does not answer for the others either.
void host_pods::carry_out(const std::vector<pod_action>& actions) {
  for (const auto& action : actions) {
    const auto refused = std::visit([this](const auto& what) { return carry_out(what); }, action);
    if (!refused) continue;
    complain(refused->message);
    if (may_pass(refused->kind) || refused->kind == refusal_kind::namespace_ends) return;
  }
}

std::optional<api_refusal> host_pods::carry_out(const create_pod& what) {
  if (what.slot >= wanted_.count || wanted_.owner.empty()) return std::nullopt;
  const auto made = requests_.create(what, wanted_.owner, give_up());
  const auto now = client_.time().now();
  if (!made) {
    plan_.on_not_created(what, made.error().kind, now);
    return made.error();
  }
  complained_.clear();
  if (!*made) {
    plan_.on_name_taken(what);
    return std::nullopt;
  }
  plan_.on_created(what, **made, now);
  options_.tell(fmt::format("made pod {}: {}", (*made)->name, what.why));
  return std::nullopt;
}

std::optional<api_refusal> host_pods::carry_out(const delete_pod& what) {
  const auto done = requests_.remove(what, give_up());
  if (!done) return done.error();
  options_.tell(fmt::format("deleted pod {}: {}", what.name, what.why));
  return std::nullopt;
}

void host_pods::complain(const std::string& why) {
  if (std::exchange(complained_, why) != why) options_.warn(why);
}

time_point host_pods::give_up() const { return client_.time().now() + options_.request_max; }

} // namespace dlrun::kubernetes
