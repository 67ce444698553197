#include "cli/pods_suspension.hpp"

#include "cli/complain.hpp"
#include "cli/kubernetes_objects.hpp"
#include "cli/own_api.hpp"
#include "job/run_layout.hpp"
#include "kubernetes/suspension_telling.hpp"
#include "runtime/missing_stores.hpp"

#include <chrono>
#include <dlrun/report.hpp>

namespace dlrun::cli {
namespace {

constexpr std::chrono::seconds suspension_max{10};

} // namespace

void end_suspended(const std::string& job, const std::filesystem::path& run_dir) {
  const auto report = dlrun::read_report(run_dir / run_layout::report);
  const kubernetes::suspension what{.job = job,
                                    .volume = run_volume,
                                    .step = report ? report->steps : 0,
                                    .lacking = runtime::why_not_here(run_dir),
                                    .at = std::chrono::system_clock::now()};
  const auto asked = with_own_api([&](kubernetes::api_client& client) {
    for (const auto& one : tell_suspension(client, what, client.time().now() + suspension_max)) warn(one);
  });
  if (!asked) warn(asked.error().message);
}

} // namespace dlrun::cli
