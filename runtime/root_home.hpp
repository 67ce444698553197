/// What the root of a run keeps in the etcd of its journal, so that a root without the run folder
/// goes on, and another one may wait for that (rules R40, R43).
#pragma once

#include "base/hmac.hpp"
#include "persistence/etcd_register.hpp"
#include "persistence/register_watch.hpp"
#include "proto/job_spec.pb.h"
#include "proto/run_record.pb.h"
#include "runtime/hosts_plan.hpp"
#include "runtime/root_wait.hpp"

#include <chrono>
#include <condition_variable>
#include <dlrun/error.hpp>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

namespace dlrun::runtime {

/// This process is the root of the run, for as long as the object lives and lost() says nothing.
/// A thread of its own writes once a second that it lives. Thread-safe; calls block for 4 s at most
/// while no etcd answers.
class root_home {
public:
  /// The record of a run that roots have kept, as of the etcd that `asked` names; nothing when
  /// there is none. Changes nothing. @returns as persistence::etcd_register
  static result<std::optional<records::RunRecord>> peek(const spec::JobSpec& asked);
  /// Whether a root of this run has kept anything.
  static result<bool> exists(const spec::JobSpec& spec);

  /// For a run that begins in `run_dir`; null where its journal is in no etcd, and where it has no
  /// other hosts. Keeps `record`. @returns bad_usage when another run has begun there.
  static result<std::shared_ptr<root_home>> begin(const spec::JobSpec& spec,
                                                  const std::filesystem::path& run_dir,
                                                  const std::optional<hosts_plan>& hosts,
                                                  const records::RunRecord& record);
  /// For a run that goes on in `run_dir`, whose lock this process holds. If its last root was
  /// another folder's, run.record and root.secrets here become what that has kept; if older data
  /// was put back into the etcd, the record of the folder is kept anew. Waits up to 5 s for a sign
  /// of life of an earlier root, and then as long as `wait` says. @returns in_use, naming that
  /// root, when it lives and `wait` does not want its end; interrupted when `wait` ends it;
  /// bad_usage when its secrets cannot be read with the key of `hosts`.
  static result<std::shared_ptr<root_home>> take_over(const spec::JobSpec& spec,
                                                      const std::filesystem::path& run_dir,
                                                      const std::optional<hosts_plan>& hosts,
                                                      root_wait& wait);
  root_home(const root_home&) = delete;
  root_home& operator=(const root_home&) = delete;
  ~root_home();

  /// Above that of all roots before it.
  std::uint64_t number() const { return self_.term.value; }
  /// Whether no other process can be the root: the etcd has taken a write of this one so lately
  /// that whoever looks since then has not waited for long enough.
  bool is_alone() const;
  /// Whether the folder was not that of the last root, so that it has nothing of this run but what
  /// was kept.
  bool is_restored() const { return restored_; }
  /// @returns fenced when another root has taken the run over; as persistence::etcd_client.
  result<void> keep_record(const records::RunRecord& record);
  /// The bytes of root.secrets, encrypted; without a key of the list of hosts they are not kept.
  result<void> keep_secrets(const std::string& bytes);
  /// The run has ended in order, or its job has changed without its hosts.
  result<void> forget_secrets();
  /// R43: the run has ended for good, and `how` is for whoever would be the next root of it. The
  /// next one that takes the register all the same removes it.
  result<void> note_end(const std::string& how);
  /// Why this process is not the root any more.
  std::optional<std::string> lost() const;
  /// The next root need not wait. Nothing is written any more.
  void give_up();

private:
  root_home(std::unique_ptr<persistence::etcd_register> kept, std::filesystem::path run_dir,
            std::optional<base::hmac_key> key, std::string prefix)
      : register_{std::move(kept)}
      , run_dir_{std::move(run_dir)}
      , key_{key}
      , prefix_{std::move(prefix)} {}
  static result<std::unique_ptr<root_home>> open(const spec::JobSpec& spec,
                                                 const std::filesystem::path& run_dir,
                                                 const std::optional<hosts_plan>& hosts);
  result<persistence::etcd_register::sight>
  wait_until_free(const std::optional<persistence::etcd_owner>& ended, root_wait& wait);
  result<persistence::etcd_register::sight>
  take_when_free(const std::optional<persistence::etcd_owner>& ended, root_wait& wait);
  error held() const;
  result<void> take(const std::optional<persistence::etcd_owner>& before, std::uint64_t number,
                    std::vector<persistence::journal_write> changes);
  result<void> note_number() const;
  result<void> keep_record_of_folder();
  result<void> restore(const std::map<std::string, std::string>& entries);
  result<void> restore_secrets(const std::map<std::string, std::string>& entries);
  result<void> write(std::span<const persistence::journal_write> changes);
  void renew();

  const std::unique_ptr<persistence::etcd_register> register_;
  const std::filesystem::path run_dir_;
  const std::optional<base::hmac_key> key_; ///< of secrets; nothing: they are not kept
  const std::string prefix_;
  persistence::etcd_owner self_{};
  bool restored_ = false;
  std::mutex record_mutex_;        ///< of who keeps the record,
  std::set<std::string> pieces_{}; ///< of which these are there
  mutable std::mutex mutex_;       ///< of what is below
  std::optional<std::string> lost_{};
  std::chrono::steady_clock::time_point written_{}; ///< before the newest write that was taken
  bool over_ = false;
  std::condition_variable changed_;
  std::thread renewal_;
};

} // namespace dlrun::runtime
