/// What a job that has not begun answers to other commands.
#pragma once

#include "job/exit_code.hpp"

#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace dlrun::runtime {

/// Who is told `stopping` stops the job, however near its beginning is. Of any thread.
class before_begin {
public:
  /// `has_hosts`: others than this one, for which it may wait.
  explicit before_begin(bool has_hosts)
      : has_hosts_(has_hosts) {}

  /// Nothing for what run_control answers: everything once the job has begun.
  std::optional<std::string> answer(const std::string& request) {
    const std::scoped_lock lock{mutex_};
    if (has_begun_ || request == "status" || request.starts_with("token ")) return std::nullopt;
    if (request != "stop")
      return nlohmann::json{{"error", has_hosts_ ? "the job has not begun: it waits for its hosts"
                                                 : "the job has not begun: try again in a moment"},
                            {"exit_code", static_cast<int>(job::exit_code::bad_input)}}
          .dump();
    is_stopped_ = true;
    return "stopping";
  }
  bool is_stopped() const {
    const std::scoped_lock lock{mutex_};
    return is_stopped_;
  }
  /// @returns false if somebody has stopped it: it must not begin
  bool begin() {
    const std::scoped_lock lock{mutex_};
    has_begun_ = !is_stopped_;
    return has_begun_;
  }

private:
  const bool has_hosts_;
  mutable std::mutex mutex_;
  bool has_begun_ = false;
  bool is_stopped_ = false;
};

} // namespace dlrun::runtime
