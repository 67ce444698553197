/// The journal as the coordinator's actor sees it: whatever it does is answered on the actor.
#pragma once

#include "actors/common/job_facts.hpp"
#include "actors/common/job_journal.hpp"
#include "actors/common/task_thread.hpp"
#include "actors/coordinator/coordinator_core_config.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace dlrun::coordinator {

/// Opens the run's journal, on a thread of its own, and writes it. Called by its owner only, where
/// events are called too.
class coordinator_disk {
public:
  /// Runs a task at the owner; from any thread, and when the owner is gone too.
  using poster = std::function<void(std::function<void()>)>;
  /// Hears now and then why the journal is waited for: the disk is full, or no etcd answers
  /// (timed_out); and nothing when that is over.
  using stall_listener = std::function<void(const std::optional<error>& why)>;

  coordinator_disk(poster post, stall_listener stalled)
      : post_(std::move(post))
      , stalled_(std::move(stalled)) {}
  /// The journal is not waited for any more.
  ~coordinator_disk() { *waits_ = false; }

  /// Opens the journal of `job`'s run for the coordinator `owner`. `done` gets what it holds.
  void open(const std::shared_ptr<const common::job_facts>& job, incarnation owner,
            std::function<void(const result<journaled_job>&)> done);
  /// Null until open() is done, and where nothing is kept on disk.
  const std::shared_ptr<common::job_journal>& journal() const { return journal_; }
  bool is_broken() const { return journal_ && journal_->is_broken(); }
  /// What is written now does not wait for a full disk; false where there is no journal.
  bool has_room() const { return journal_ && !is_full_; }

  /// Requires journal(). `done` is called when it is durable, or with why not.
  void write(common::job_journal::writes changes, std::function<void(const result<void>&)> done);
  /// What only the report needs, in pieces that every journal takes. Requires journal().
  void write_lazily(const common::job_journal::writes& changes);

private:
  common::full_disk_watcher watcher();
  void on_stalled(const std::optional<error>& why);

  poster post_;
  stall_listener stalled_;
  std::shared_ptr<common::job_journal> journal_;
  bool is_full_ = false;
  /// For the journal, which may outlive this by the time its dispatcher takes to end.
  std::shared_ptr<std::atomic<bool>> waits_ = std::make_shared<std::atomic<bool>>(true);
  common::task_thread opener_{"journal-opener"}; ///< last: joined first
};

} // namespace dlrun::coordinator
