/// The journal of the process in which coordinator and data dispatcher run, on a thread of its own.
#pragma once

#include "actors/common/patience.hpp"
#include "actors/common/task_thread.hpp"
#include "persistence/etcd_journal.hpp"
#include "persistence/journal.hpp"
#include "proto/job_spec.pb.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

namespace dlrun::common {

/// Entries that more than their writer reads: the end of the job (the coordinator's,
/// records::JournalOutcome), the course of the training (the dispatcher's, records::JournalCourse).
inline constexpr auto outcome_key = "outcome";
inline constexpr auto course_key = "course";
/// R41: there while the course is known to be older than the training.
inline constexpr auto course_is_older_key = "course-is-older";

/// Keys of an etcd.
struct etcd_ground {
  persistence::etcd_place place;
  std::string prefix;
  persistence::etcd_patience patience{};
};
/// Where a run's journal is: in its folder, or in an etcd.
using journal_place = std::variant<std::filesystem::path, etcd_ground>;
journal_place journal_place_of(const spec::JobSpec& spec, const std::filesystem::path& run_dir);

/// A look that fences nobody. @returns nothing where there is no journal; in_use while a process
/// has the one in a folder; as those journals do.
result<std::optional<persistence::journal_contents>> read_journal(const journal_place& place);

/// Thread-safe. Writes are synced one after the other, in the order in which they were asked for.
class job_journal {
public:
  using writes = std::vector<persistence::journal_write>;

  /// Takes the term (R28): `owner` must be above every owner before it. While an older process
  /// still holds a folder, tries again for `patience`; while the disk is full, now and at later
  /// writes, and now while no etcd answers (timed_out), as long as `watcher` wants. Blocks.
  /// @returns as folder_journal::open() and etcd_journal::take() do.
  static result<std::shared_ptr<job_journal>>
  open(const journal_place& place, incarnation owner, full_disk_watcher watcher = {},
       std::chrono::milliseconds patience = std::chrono::milliseconds(5000));

  /// What it holds: what was found when it was opened, and the writes since that have succeeded.
  std::map<std::string, std::string> entries() const;
  /// A write has failed: all later ones will. A new owner must open it.
  bool is_broken() const;

  /// All of `changes` or none; `done` is called on the journal's thread when they are durable, or
  /// why not.
  void write(writes changes, std::function<void(result<void>)> done);

private:
  job_journal(std::unique_ptr<persistence::journal> journal, full_disk_watcher watcher)
      : journal_(std::move(journal))
      , watcher_(std::move(watcher))
      , entries_(journal_->contents()) {}

  std::unique_ptr<persistence::journal> journal_; ///< of the thread
  full_disk_watcher watcher_;                     ///< of the thread
  mutable std::mutex mutex_;
  std::map<std::string, std::string> entries_;
  bool broken_ = false;
  task_thread thread_{"journal"}; ///< last: its tasks use the journal
};

} // namespace dlrun::common
