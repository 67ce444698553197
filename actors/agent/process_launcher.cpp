#include "actors/agent/process_launcher.hpp"

#include "actors/agent/credentials_message.hpp"
#include "actors/agent/process/bootstrap.hpp"
#include "actors/agent/process/last_words.hpp"
#include "actors/agent/process/parent_bond.hpp"
#include "actors/common/clock.hpp"
#include "actors/common/role_log.hpp"
#include "base/os_error.hpp"
#include "proto/bootstrap.pb.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <limits>
#include <unistd.h>

namespace dlrun::agent {

result<std::unique_ptr<process_launcher>> process_launcher::create(process_launch_options options) {
  std::unique_ptr<process_launcher> made{new process_launcher(std::move(options))};
  auto ends = make_lifeline();
  if (!ends) return tl::unexpected(ends.error());
  made->lifeline_root_ = std::move(ends->root_end);
  made->lifeline_leaf_ = std::move(ends->leaf_end);
  auto spawner = process_spawner::create();
  if (!spawner) return tl::unexpected(spawner.error());
  made->spawner_ = std::move(*spawner);
  return made;
}

process_launcher::process_launcher(process_launch_options options)
    : options_{std::move(options)}
    , gpus_{options_.host_name.empty() ? options_.job->host : options_.host_name,
            options_.job->gpus.numbers} {}

process_launcher::~process_launcher() = default;

namespace {

/// Of wrong input, and of what could not be executed or loaded (exit(1p), ld.so(8)).
constexpr std::array lasting_codes{2, 126, 127};

/// Which of the inherited descriptors holds what.
void add_data(const data::job_data& data, bootstrap::Bootstrap& message) {
  const auto memory = data::memory_of(data);
  for (const auto& blob : memory) message.add_data_files(blob->name());
  *message.mutable_training() = data::to_message(data.training, memory);
  if (data.validation) *message.mutable_validation() = data::to_message(*data.validation, memory);
}

bootstrap::Bootstrap make_message(const process_launch_options& options, const std::string& agent_control,
                                  const launch_order& order, const std::optional<std::uint32_t>& gpu) {
  const auto& job = *options.job;
  bootstrap::Bootstrap message;
  if (gpu) message.set_gpu(*gpu);
  message.set_format(bootstrap_format);
  message.set_role(std::string{protocol::to_string(order.role.kind)});
  message.set_index(order.role.index);
  message.set_incarnation(order.self.incarnation.value);
  message.set_token(order.self.token);
  message.set_run_token(job.run_token.to_bytes());
  message.set_parent_pid(::getpid());
  message.set_agent_control(agent_control);
  message.set_agent_process(order.agent != 0 ? order.agent : job.agent_process);
  if (order.coordinator) {
    auto& address = *message.mutable_coordinator();
    address.set_control(order.coordinator->at.control);
    address.set_process(order.coordinator->at.process);
    address.set_incarnation(order.coordinator->self.incarnation.value);
  }
  message.set_run(job.run);
  message.set_run_dir(job.run_dir.string());
  message.set_root_dir(job.root_dir.string());
  message.set_host_name(options.host_name);
  *message.mutable_spec() = job.spec;
  message.set_train_records(job.sampler.options().record_count);
  message.set_validation_records(job.validation_records);
  message.set_started_us(common::to_us(job.started));
  if (order.credentials) {
    message.set_host_address(options.host_address);
    *message.mutable_credentials() = to_message(*order.credentials);
  }
  if (job.data != nullptr) add_data(*job.data, message);
  for (const auto& revision : job.revisions) *message.add_revisions() = revision;
  return message;
}

int signal_of(protocol::stop_how how) {
  switch (how) {
  case protocol::stop_how::leave: return SIGTERM;
  case protocol::stop_how::end: return end_signal;
  case protocol::stop_how::kill: break;
  }
  return SIGKILL;
}

/// By SIGSTOP, a terminal or a debugger: not by itself (proc(5), the state in /proc/PID/stat).
bool is_stopped(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'T' || state == 't';
}

} // namespace

std::vector<environment_edit> role_environment(int threads) {
  return {{"OMP_NUM_THREADS", std::to_string(threads)},
          {"OMP_DYNAMIC", "false"},
          {"OMP_THREAD_LIMIT", std::to_string(std::numeric_limits<int>::max())},
          {role_variable, "1"}};
}

/// What outlives the child.
result<process_launcher::child_memory> process_launcher::make_memory(const launch_order& order) const {
  auto words = make_last_words();
  if (!words) return tl::unexpected(words.error());
  child_memory memory{std::move(*words), std::nullopt};
  if (order.role.kind == protocol::role_kind::ps_shard &&
      options_.job->durability() == protocol::durability::snapshots) {
    auto retained = common::retained_memory::create();
    if (!retained) return tl::unexpected(retained.error());
    memory.retained = std::make_shared<const common::retained_memory>(std::move(*retained));
  }
  if (order.role.kind != protocol::role_kind::worker) return memory;
  auto progress = common::progress_word::create();
  if (!progress) return tl::unexpected(progress.error());
  memory.progress = std::move(*progress);
  return memory;
}

memory_shelf::memory process_launcher::take_former(const launch_order& order) {
  if (order.role.kind != protocol::role_kind::ps_shard) return nullptr;
  const std::scoped_lock lock{mutex_};
  return shelf_.take(order.role.index);
}

/// The descriptors of `memory` and `former` are duplicated by spawn().
result<child_command> process_launcher::make_child(const launch_order& order, const child_memory& memory,
                                                   const memory_shelf::memory& former) const {
  const auto path = common::role_log_path(options_.job->run_dir, order.role);
  base::unique_fd log{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
  if (!log) return base::fail_errno(fmt::format("cannot open '{}'", path.string()));
  child_command child;
  child.program = options_.program;
  child.arguments = {std::string{role_argument}};
  child.inherit.push_back({lifeline_leaf_.get(), std::string{lifeline_option}});
  child.inherit.push_back({memory.last_words.get(), std::string{last_words_option}});
  if (options_.root_place)
    child.inherit.push_back({options_.root_place->fd(), std::string{common::root_place_option}});
  if (memory.progress) child.inherit.push_back({memory.progress->fd(), std::string{common::progress_option}});
  const auto add_memory = [&](const memory_shelf::memory& one, std::string_view option) {
    if (!one) return;
    child.inherit.push_back({one->parameters.get(), std::string{option}});
    child.inherit.push_back({one->state.get(), std::string{option}});
  };
  add_memory(memory.retained, common::retained_option);
  add_memory(former, common::former_option);
  if (options_.job->data != nullptr)
    for (const auto& blob : data::memory_of(*options_.job->data))
      child.inherit.push_back({blob->fd(), std::string{data_option}});
  if (const auto& weights = options_.job->initial_weights)
    child.inherit.push_back({weights->get(), std::string{weights_option}});
  const auto threads = options_.job->spec.cluster().threads_per_worker();
  child.environment = role_environment(static_cast<int>(threads));
  child.bootstrap = make_message(options_, agent_control_, order, memory.gpu).SerializeAsString();
  child.standard_output = child.standard_error = log.release(); // start() closes it
  return child;
}

std::optional<std::uint32_t> process_launcher::take_gpu(const protocol::role_name& role) {
  if (role.kind != protocol::role_kind::worker) return std::nullopt;
  const std::scoped_lock lock{gpu_mutex_};
  return gpus_.take(role.index);
}

/// At the end of a start, whose last words these are. @returns the GPU, if it is avoided from now
/// on
std::optional<avoided_gpu> process_launcher::give_gpu_back(const child_memory& memory,
                                                           const std::string& said) {
  if (!memory.gpu) return std::nullopt;
  const std::scoped_lock lock{gpu_mutex_};
  gpus_.give_back(*memory.gpu);
  return memory.progress->gpu_failed() ? gpus_.on_failure(*memory.gpu, said, common::now()) : std::nullopt;
}

role_end process_launcher::end_of(const start_key& key, const exit_report& report,
                                  const running_child& child) {
  const auto& memory = *child.memory;
  common::process_end how{report.signaled, report.code_or_signal, false};
  if (how.signaled && how.code_or_signal == SIGKILL && !child.killed) {
    const std::scoped_lock lock{mutex_};
    how.out_of_memory = memory_.killed_lately();
  }
  const auto why = how.out_of_memory ? std::string{"by the kernel, since memory had run out"}
                                     : read_last_words(memory.last_words.get());
  keep_memory(key, child, how.out_of_memory);
  role_end end{.cause = why.empty() ? describe(report) : fmt::format("{}: {}", describe(report), why)};
  end.exited = !report.signaled;
  end.is_lasting =
      end.exited && std::ranges::find(lasting_codes, report.code_or_signal) != lasting_codes.end();
  if (memory.progress) end.slot = memory.progress->slot_of_death(how);
  end.killed_in = child.killed_in;
  // Its program may not have begun when the signal came.
  const bool had_to = report.code_or_signal == (report.signaled ? SIGTERM : left_code);
  end.left = memory.progress && !end.slot && had_to;
  end.avoided = give_gpu_back(memory, why.empty() ? end.cause : why);
  if (end.avoided) end.cause += fmt::format("; GPU {} is avoided from now on", end.avoided->gpu);
  return end;
}

void process_launcher::keep_memory(const start_key& key, const running_child& child, bool out_of_memory) {
  if (!child.memory->retained) return;
  memory_shelf::memory released; // after the lock
  const std::scoped_lock lock{mutex_};
  released = shelf_.put(key.first.index, child.memory->retained, out_of_memory);
}

process_launcher::running_child process_launcher::take(const start_key& key) {
  const std::scoped_lock lock{mutex_};
  const auto found = children_.find(key);
  auto child = std::move(found->second);
  children_.erase(found);
  return child;
}

void process_launcher::note_pid(const start_key& key, pid_t pid) {
  const std::scoped_lock lock{mutex_};
  if (const auto found = children_.find(key); found != children_.end()) found->second.pid = pid;
}

void process_launcher::start(const launch_order& order, const launch_events& events) {
  auto made = make_memory(order);
  if (!made) return events.start_failed(order.role, order.self, made.error());
  made->gpu = take_gpu(order.role);
  const auto memory = std::make_shared<const child_memory>(std::move(*made));
  const auto fail_start = [this, order, events, memory](const error& why) {
    give_gpu_back(*memory, why.message);
    events.start_failed(order.role, order.self, why);
  };
  const auto former = take_former(order);
  auto child = make_child(order, *memory, former);
  if (!child) return fail_start(child.error());
  const base::unique_fd log{child->standard_output}; // duplicated by spawn()
  const start_key key{order.role, order.self.incarnation};
  const std::scoped_lock lock{mutex_}; // so that no callback comes before the id is known
  const auto id = spawner_->spawn(
      std::move(*child),
      [this, key, order, events, fail_start](child_id, const result<pid_t>& pid) {
        if (!pid) {
          take(key);
          return fail_start(pid.error());
        }
        note_pid(key, *pid);
        events.started(order.role, order.self, *pid);
      },
      [this, key, order, events](child_id, const exit_report& report) {
        events.exited(order.role, order.self, end_of(key, report, take(key)));
      });
  if (id)
    children_[key] = {.id = *id, .self = order.self, .memory = memory};
  else
    fail_start(id.error());
}

std::vector<seen_work> process_launcher::look() {
  std::vector<memory_shelf::memory> released; // after the lock
  const std::scoped_lock lock{mutex_};
  memory_.sample(std::chrono::steady_clock::now());
  std::vector<seen_work> all;
  for (const auto& [key, child] : children_) {
    if (child.memory->retained && shelf_.holds(key.first.index) && child.memory->retained->newest())
      released.push_back(shelf_.drop(key.first.index));
    if (!child.memory->progress) continue;
    auto seen = child.memory->progress->look();
    all.push_back({key.first, child.self, seen.sequence, seen.at});
  }
  return all;
}

void process_launcher::stop(const protocol::role_name& role, const protocol::fence& self,
                            protocol::stop_how how) {
  const bool kill = how == protocol::stop_how::kill;
  const std::scoped_lock lock{mutex_};
  const auto found = children_.find({role, self.incarnation});
  if (found == children_.end()) return; // gone already: its exit is on the way
  auto& child = found->second;
  child.killed = child.killed || kill;
  if (kill && child.memory->progress && !is_stopped(child.pid))
    child.killed_in = child.memory->progress->look().at;
  static_cast<void>(spawner_->signal(child.id, signal_of(how)));
}

} // namespace dlrun::agent
