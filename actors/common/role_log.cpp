#include "actors/common/role_log.hpp"

#include <spdlog/sinks/basic_file_sink.h>

namespace dlrun::common {

std::filesystem::path role_log_path(const std::filesystem::path& run_dir, const protocol::role_name& role) {
  return run_dir / "logs" / fmt::format("{}-{}.log", protocol::to_string(role.kind), role.index);
}

std::shared_ptr<spdlog::logger> make_role_log(const std::filesystem::path& run_dir,
                                              const protocol::role_name& role,
                                              dlrun::incarnation incarnation) {
  auto sink =
      std::make_shared<spdlog::sinks::basic_file_sink_mt>(role_log_path(run_dir, role).string(), false);
  auto log = std::make_shared<spdlog::logger>(
      fmt::format("{}-{} inc={}", protocol::to_string(role.kind), role.index, incarnation), std::move(sink));
  log->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %n %v");
  log->flush_on(spdlog::level::info);
  return log;
}

} // namespace dlrun::common
