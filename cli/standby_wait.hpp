/// standby_wait: a control pod that is not the root of its run, and may become it (rule R43).
#pragma once

#include "base/pulse.hpp"
#include "cli/stop_signals.hpp"
#include "cli/verb_end.hpp"
#include "kubernetes/job_outcome.hpp"
#include "kubernetes/job_wish.hpp"
#include "runtime/root_wait.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace dlrun::cli {

/// Waits while another root lives, or the etcd is away, until this pod is asked to end. Before it
/// leads it asks the API server, for a second at most, whether anybody may.
class standby_wait final : public runtime::root_wait {
public:
  /// @param job name of the Job of the control pod  @param signals that end it; outlives it
  /// @param pulse of this process, which is ready while it waits
  standby_wait(std::string job, const stop_signals& signals, std::shared_ptr<base::pulse> pulse)
      : job_{std::move(job)}
      , signals_{signals}
      , pulse_{std::move(pulse)} {}

  bool waits(const error& held) override;
  bool asks_again(const error& why) override;
  bool goes_on() override;
  verdict on_free(const std::string& end) override;

  /// Set: it ends, and was not the root.
  const std::optional<verb_end>& ended() const { return ended_; }

private:
  void begin_to_wait(const std::string& why);
  verdict lead();
  bool is_due();
  std::optional<kubernetes::job_standing> ask() const;
  verdict follow(const kubernetes::job_outcome& end);
  verdict end_as(int code);

  std::string job_;
  const stop_signals& signals_;
  std::shared_ptr<base::pulse> pulse_;
  base::turning turning_{pulse_->main};
  bool waits_ = false;
  std::string said_{}; ///< last, of what it waits for
  std::chrono::steady_clock::time_point ask_at_{};
  std::optional<verb_end> ended_{};
};

} // namespace dlrun::cli
