#include "actors/common/role_log.hpp"

#include "actors/common/job_facts.hpp"
#include "job/choices.hpp"
#include "job/run_layout.hpp"

#include <atomic>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>

namespace dlrun::common {
namespace {

/// `"event":"lease","text":"slots [0, 4)"`, whatever the text holds.
class json_text_flag final : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const auto [event, text] = split_event({message.payload.data(), message.payload.size()});
    append(R"("event":)" + quoted(event) + R"(,"text":)" + quoted(text), out);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<json_text_flag>(); }

private:
  static std::string quoted(std::string_view text) {
    using nlohmann::json;
    return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
  static void append(const std::string& text, spdlog::memory_buf_t& out) {
    out.append(text.data(), text.data() + text.size());
  }
};

constexpr char json_text = '*';

/// What of a line is the same in all: who writes. None of it needs to be escaped.
std::string json_pattern(const protocol::role_name& role, dlrun::incarnation incarnation) {
  return fmt::format(
      R"({{"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","role":"{}","index":{},"incarnation":{},%{}}})",
      protocol::to_string(role.kind), role.index, incarnation, json_text);
}

/// Once, for people: a log that cannot be written ends nothing.
spdlog::err_handler told_once(const std::string& file) {
  return [file, told = std::make_shared<std::atomic<bool>>(false)](const std::string& why) {
    const auto colon = why.rfind(": "); // before it: what spdlog did, and the file
    if (told->exchange(true)) return;
    fmt::print(stderr, "dlrun: warning: cannot write the log '{}': {}\n", file,
               colon == std::string::npos ? why : why.substr(colon + 2));
  };
}

} // namespace

std::filesystem::path role_log_path(const std::filesystem::path& run_dir, const protocol::role_name& role) {
  return run_dir / run_layout::logs / fmt::format("{}-{}.log", protocol::to_string(role.kind), role.index);
}

std::shared_ptr<spdlog::logger> make_role_log(const job_facts& job, const protocol::role_name& role,
                                              dlrun::incarnation incarnation) {
  const auto file = role_log_path(job.run_dir, role).string();
  auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file, false);
  auto log = std::make_shared<spdlog::logger>(
      fmt::format("{}-{} inc={}", protocol::to_string(role.kind), role.index, incarnation), std::move(sink));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  if (job::log_format_of(job.spec) == job::log_format::json)
    formatter->add_flag<json_text_flag>(json_text).set_pattern(json_pattern(role, incarnation));
  else
    formatter->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %n %v");
  log->set_formatter(std::move(formatter));
  log->flush_on(spdlog::level::info);
  log->set_error_handler(told_once(file));
  return log;
}

log_text split_event(std::string_view text) {
  const auto colon = text.find(": ");
  const auto name = text.substr(0, colon);
  const bool named = colon != std::string_view::npos && !name.empty() &&
                     name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string_view::npos;
  return named ? log_text{name, text.substr(colon + 2)} : log_text{{}, text};
}

} // namespace dlrun::common
