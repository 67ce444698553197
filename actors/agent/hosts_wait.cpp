#include "actors/agent/hosts_wait.hpp"

#include "base/job_hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::agent {
namespace {

/// One that was turned away connects again after half a second, or 10 s after a connection that is
/// lost.
constexpr std::chrono::seconds just_now{15};

} // namespace

void hosts_wait::show(const hosted_roles& now) {
  const std::scoped_lock lock{mutex_};
  if (!has_begun_) {
    missing_ = now.roster().missing();
    awaited_ = now.joining().awaited(now.roster(), now.places());
  }
  staying_ = now.roster().staying();
  changed_.notify_all();
}

void hosts_wait::note_begun() {
  const std::scoped_lock lock{mutex_};
  has_begun_ = true;
  missing_.clear();
  awaited_.clear();
}

void hosts_wait::fail_with(const std::string& why) {
  const std::scoped_lock lock{mutex_};
  if (failure_.empty()) failure_ = why;
  changed_.notify_all();
}

result<void> hosts_wait::wait_until_there(std::chrono::milliseconds patience) {
  std::unique_lock lock{mutex_};
  const bool settled = changed_.wait_for(
      lock, patience, [this] { return (missing_.empty() && awaited_.empty()) || !failure_.empty(); });
  if (!failure_.empty()) return fail(error_code::bad_usage, failure_);
  if (settled) return {};
  if (missing_.empty()) return fail(error_code::timed_out, awaited_);
  return fail(error_code::timed_out,
              fmt::format("no word from the agents of these hosts: {}", fmt::join(missing_, ", ")));
}

std::string hosts_wait::awaited() const {
  const std::scoped_lock lock{mutex_};
  return missing_.empty() ? awaited_ : "";
}

void hosts_wait::note_turned_away(const std::string& host, const std::string& address,
                                  protocol::time_point now) {
  const std::scoped_lock lock{mutex_};
  std::erase_if(turned_away_, [&](const auto& one) { return now - one.second.at > just_now; });
  if (turned_away_.size() < base::job_hosts_max || turned_away_.contains(host))
    turned_away_.insert_or_assign(host, refusal{address, now});
}

std::map<std::string, std::string> hosts_wait::turned_away(protocol::time_point now) const {
  const std::scoped_lock lock{mutex_};
  std::map<std::string, std::string> all;
  for (const auto& [host, one] : turned_away_)
    if (now - one.at <= just_now) all[host] = one.address;
  return all;
}

void hosts_wait::note_moved_on(const std::string& host) {
  const std::scoped_lock lock{mutex_};
  if (!superseded_)
    superseded_ = fmt::format("another root has taken the run over: host {} follows a later one", host);
}

std::optional<std::string> hosts_wait::superseded() const {
  const std::scoped_lock lock{mutex_};
  return superseded_;
}

void hosts_wait::wait_until_gone(std::chrono::milliseconds patience) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, patience, [this] { return staying_ == 0; });
}

} // namespace dlrun::agent
