#include "runtime/host_commands.hpp"

#include "actors/agent/process/bootstrap.hpp"
#include "base/os_error.hpp"
#include "job/run_layout.hpp"
#include "runtime/command_log.hpp"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace dlrun::runtime {
namespace {

/// What prints as fast as it can writes some tens of MB meanwhile.
constexpr auto log_look_period = std::chrono::milliseconds(50);

} // namespace

host_commands::host_commands(hosts_plan plan, std::filesystem::path run_dir, bundle_maker make_bundle)
    : plan_{std::move(plan)}
    , run_dir_{std::move(run_dir)}
    , make_bundle_{std::move(make_bundle)} {}

result<std::shared_ptr<host_commands>> host_commands::create(hosts_plan plan, std::filesystem::path run_dir,
                                                             bundle_maker make_bundle) {
  std::shared_ptr<host_commands> made{
      new host_commands(std::move(plan), std::move(run_dir), std::move(make_bundle))};
  auto spawner = agent::process_spawner::create();
  if (!spawner) return tl::unexpected(spawner.error());
  made->spawner_ = std::move(*spawner);
  made->watcher_ = std::thread{[commands = made.get()] { commands->watch_logs(); }};
  return made;
}

host_commands::~host_commands() {
  {
    const std::scoped_lock lock{mutex_};
    is_over_ = true;
  }
  ended_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

void host_commands::watch_logs() {
  std::unique_lock lock{mutex_};
  while (!ended_.wait_for(lock, log_look_period, [this] { return is_over_; }))
    for (auto& [host, one] : running_) one.begins = shorten_log(log_of(host), one.begins);
}

void host_commands::wait_for_end(std::chrono::seconds patience) {
  std::unique_lock lock{mutex_};
  ended_.wait_for(lock, patience, [this] { return running_.empty(); });
}

std::filesystem::path host_commands::log_of(const std::string& host) const {
  return run_dir_ / run_layout::logs / fmt::format("host-{}.log", host);
}

agent::child_command host_commands::make_child(const spec::HostSpec& host, int input, int output) const {
  auto child = agent::child_of(plan_.command_for(host));
  child.standard_input = input;
  child.standard_output = child.standard_error = output;
  return child;
}

void host_commands::run(const std::string& name, std::function<void(std::string why)> ended) {
  const auto& hosts = plan_.hosts.hosts();
  const auto host = std::ranges::find(hosts, name, &spec::HostSpec::name);
  const auto bundle = make_bundle_(*host);
  if (!bundle) return ended("cannot be started: " + bundle.error().message);
  const auto input = agent::make_bootstrap(*bundle);
  const auto path = log_of(name);
  const base::unique_fd output{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
  if (!input || !output)
    return ended(fmt::format("cannot be started: '{}' cannot be written", path.string()));
  shorten_log(path, 0);
  std::error_code why;
  const auto before = std::filesystem::file_size(path, why);
  auto child = make_child(*host, input->get(), output.get());
  const std::scoped_lock lock{mutex_}; // so that no callback comes before the id is known
  const auto id = spawner_->spawn(
      std::move(child),
      [this, name, ended](agent::child_id which, const result<pid_t>& pid) {
        if (pid) return;
        forget(name, which);
        ended("cannot be started: " + pid.error().message);
      },
      [this, name, ended, path](agent::child_id which, const agent::exit_report& report) {
        const auto last = last_line(path, forget(name, which));
        const auto how = fmt::format("{}{}", report.signaled ? "was " : "", describe(report));
        ended(last.empty() ? how : fmt::format("{}: {}", how, last));
      });
  if (id)
    running_[name] = {*id, before};
  else
    ended("cannot be started: " + id.error().message);
}

std::uintmax_t host_commands::forget(const std::string& host, agent::child_id id) {
  const std::scoped_lock lock{mutex_};
  const auto found = running_.find(host);
  if (found == running_.end() || found->second.id != id) return 0;
  const auto begins = shorten_log(log_of(host), found->second.begins);
  running_.erase(found);
  ended_.notify_all();
  return begins;
}

void host_commands::signal(const std::string& host, int number) {
  const std::scoped_lock lock{mutex_};
  if (const auto found = running_.find(host); found != running_.end())
    static_cast<void>(spawner_->signal(found->second.id, number));
}

} // namespace dlrun::runtime
