/// pods_export: the trained model of a job on pods, on its way into its claim (rule R38).
#pragma once

#include "cli/verb_end.hpp"
#include "kubernetes/job_wish.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace dlrun::cli {

/// Writes the model before the hosts of the job hear that it is over, tries again after pauses, and
/// says what becomes of the Job if that does not help. Of a control pod; thread-safe.
class pods_export {
public:
  /// @param job name of the Job of the control pod  @param file to be written; "": none is wanted
  pods_export(std::string job, std::filesystem::path run_dir, std::string file)
      : job_{std::move(job)}
      , run_dir_{std::move(run_dir)}
      , file_{std::move(file)} {}

  /// As runtime::run_observer has it; waits for half a minute at most. When the model is there, the
  /// register says that the job is complete (R43): who follows this root needs nothing of the
  /// hosts.
  std::string deliver(const std::stop_token& stop, const std::shared_ptr<runtime::root_home>& home);
  /// Once the run has ended: where it was completed before, it is written now, without a pause.
  /// @returns `ended`, or that the model is not there, and what becomes of the Job
  verb_end end(verb_end ended);

private:
  struct undone {
    std::string reason; ///< with the way out
    kubernetes::run_place place;
  };
  /// @param have_hosts_it they were not let go, and have the whole model
  undone tell_undone(std::string why, bool have_hosts_it) const;
  void try_once();

  std::string job_;
  std::filesystem::path run_dir_;
  std::string file_;
  std::mutex mutex_; ///< of what is below
  bool is_tried_ = false;
  std::optional<undone> undone_{};
};

} // namespace dlrun::cli
