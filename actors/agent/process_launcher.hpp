/// Starts roles as child processes of the agent's process.
#pragma once

#include "actors/agent/gpu_choice.hpp"
#include "actors/agent/memory_shelf.hpp"
#include "actors/agent/process/oom_watch.hpp"
#include "actors/agent/process/process_spawner.hpp"
#include "actors/agent/role_launcher.hpp"
#include "actors/common/job_context.hpp"
#include "actors/common/progress_word.hpp"
#include "base/unique_fd.hpp"

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace dlrun::agent {

/// The first argument of a role's process, which no program has for itself. The others are options
/// and their descriptors, those of actors/agent/process and these.
inline constexpr std::string_view role_argument = "dlrun-role";
inline constexpr std::string_view data_option = "--data-fd"; ///< one for each file of decoded data
inline constexpr std::string_view weights_option = "--weights-fd";
/// Of the message that a role's process finds (proto/bootstrap.proto).
inline constexpr std::uint32_t bootstrap_format = 2;
/// In the environment of a role's process: that it is one.
inline constexpr const char* role_variable = "DLRUN_ROLE";

/// What is different there from our own. @param threads that kernels compute with
std::vector<environment_edit> role_environment(int threads);

/// What every role's process is given.
struct process_launch_options {
  std::shared_ptr<const common::job_context> job;
  executable program; ///< begins with run_role(); own_executable() as a rule
  /// Number by which other hosts reach this one; "" in a job of one host.
  std::string host_address{};
  /// As the list of hosts calls this one; "" in a job of one host.
  std::string host_name{};
};

/// Thread-safe. When it is destroyed its children are killed and reaped.
class process_launcher : public role_launcher {
public:
  static result<std::unique_ptr<process_launcher>> create(process_launch_options options);
  ~process_launcher() override;

  /// Where the control link of the agent is. To be called before the first start().
  void agent_listens_at(std::string address) { agent_control_ = std::move(address); }

  void start(const launch_order& order, const launch_events& events) override;
  std::vector<seen_work> look() override;
  void stop(const protocol::role_name& role, const protocol::fence& self, protocol::stop_how how) override;

private:
  using start_key = std::pair<protocol::role_name, dlrun::incarnation>;

  explicit process_launcher(process_launch_options options);
  struct running_child;
  struct child_memory {
    base::unique_fd last_words;
    std::optional<common::progress_word> progress; ///< a worker's
    std::optional<std::uint32_t> gpu{};            ///< that a worker computes on
    memory_shelf::memory retained{};               ///< of a PS shard's versions; else null
  };
  result<child_memory> make_memory(const launch_order& order) const;
  void keep_memory(const start_key& key, const running_child& child, bool out_of_memory);
  struct running_child {
    child_id id{};
    protocol::fence self{};
    pid_t pid = 0;
    std::shared_ptr<const child_memory> memory{};
    bool killed = false; ///< by us
    std::optional<protocol::slot_progress> killed_in{};
  };
  role_end end_of(const start_key& key, const exit_report& report, const running_child& child);
  std::optional<std::uint32_t> take_gpu(const protocol::role_name& role);
  std::optional<avoided_gpu> give_gpu_back(const child_memory& memory, const std::string& said);
  running_child take(const start_key& key);
  void note_pid(const start_key& key, pid_t pid);
  memory_shelf::memory take_former(const launch_order& order);
  result<child_command> make_child(const launch_order& order, const child_memory& memory,
                                   const memory_shelf::memory& former) const;

  process_launch_options options_;
  std::string agent_control_;
  base::unique_fd lifeline_root_; ///< closed by the kernel when this process dies: every child sees that
  base::unique_fd lifeline_leaf_;
  std::mutex gpu_mutex_;
  gpu_choice gpus_; ///< that workers started here compute on
  std::mutex mutex_;
  oom_watch memory_;
  std::map<start_key, running_child> children_;
  memory_shelf shelf_;
  std::unique_ptr<process_spawner> spawner_; ///< last: its thread uses the members above
};

} // namespace dlrun::agent
