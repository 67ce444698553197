/// What a program reads while a job runs: one JSON object a line (docs/cli.md, "train").
#pragma once

#include "runtime/run_observer.hpp"

#include <cstdio>
#include <optional>

namespace dlrun::cli {

class json_display final : public runtime::run_observer {
public:
  /// `out` is stdout in the product.
  json_display(std::FILE* out, protocol::time_point started);

  /// `{"type":"progress",...}`, at most once a second and only when the step has moved.
  void update(const agent::run_snapshot& now, protocol::time_point at) override;
  /// `{"type":"event",...}`
  void event(const protocol::job_event& event) override;
  /// `{"type":"report","path":...,"report":{...}}`, the last line.
  void summary(const dlrun::report& report, const std::string& report_path) override;

private:
  std::FILE* out_;
  protocol::time_point started_;
  std::optional<protocol::time_point> printed_;
  std::uint64_t printed_step_ = 0;
};

} // namespace dlrun::cli
