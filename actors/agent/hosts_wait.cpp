#include "actors/agent/hosts_wait.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::agent {

void hosts_wait::show(const hosted_roles& now) {
  const std::scoped_lock lock{mutex_};
  missing_ = now.roster().missing();
  awaited_ = now.joining().awaited(now.roster(), now.places());
  staying_ = now.roster().staying();
  changed_.notify_all();
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
