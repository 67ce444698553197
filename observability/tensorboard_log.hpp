/// The scalars of a run as TensorBoard event files.
#pragma once

#include "actors/agent/event_file.hpp"
#include "actors/agent/run_board.hpp"
#include "actors/protocol/time.hpp"
#include "observability/run_facts.hpp"
#include "observability/scalar_event.hpp"

#include <dlrun/report.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string>

namespace dlrun::observability {

/// Writes a file of its own into `<run>/tensorboard/`, behind those of earlier starts of the run.
/// Of training a point at most twice a second, of each evaluation one. When training goes back,
/// what was written of the steps that are done again is declared void, so that none is shown twice.
/// Each call writes what it has to, which may block as long as the disk does. Not thread-safe.
class tensorboard_log {
public:
  /// `complain` is called once, when files cannot be written: with which, and why.
  tensorboard_log(run_facts facts, std::function<void(std::string)> complain);

  void update(const agent::run_snapshot& now, protocol::time_point at);
  /// `rewind` and `evaluated` are of interest.
  void event(const protocol::job_event& event);
  /// The end: what the report knows and was not heard on the way.
  void finish(const dlrun::report& report);

private:
  void go_on_behind(const std::filesystem::path& folder);
  void go_back(std::uint64_t version);
  void write_pending();
  void write_evaluation(const dlrun::evaluation& evaluation);
  void append(const std::string& record);
  void check();
  void give_up(const std::string& why);

  run_facts facts_;
  std::function<void(std::string)> complain_;
  std::filesystem::path path_;
  std::optional<agent::event_file> file_; ///< nothing when there is no place for it
  std::uint64_t last_step_ = 0;           ///< of training that was written
  std::set<std::uint64_t> evaluated_;     ///< steps whose evaluations were written
  std::uint64_t seen_step_ = 0;
  std::optional<std::uint64_t> stale_step_;         ///< of before the newest rewind: not to be believed
  std::optional<agent::training_progress> pending_; ///< newest, not written yet
  std::optional<protocol::time_point> written_at_;
  bool complained_ = false;
};

} // namespace dlrun::observability
