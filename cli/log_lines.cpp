#include "cli/log_lines.hpp"

#include "actors/agent/log_files.hpp"
#include "actors/common/role_log.hpp"
#include "actors/protocol/roles.hpp"
#include "job/run_layout.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

constexpr std::array<std::string_view, 6> levels{"trace", "debug", "info", "warning", "error", "critical"};
constexpr std::size_t time_length = std::string_view{"2026-11-22T02:40:11.123"}.size();

std::string_view take_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc{} && end == text.data() + text.size() && !text.empty();
}

bool is_time(std::string_view word) {
  return word.size() == time_length && word[4] == '-' && word[10] == 'T' && word[13] == ':' &&
         word.find_first_not_of("0123456789-T:.") == std::string_view::npos;
}

/// "ps_shard-1" -> role and index.
bool read_role(std::string_view word, log_head& head) {
  const auto dash = word.rfind('-');
  if (dash == std::string_view::npos) return false;
  head.role = word.substr(0, dash);
  return read_number(word.substr(dash + 1), head.index);
}

std::size_t severity(std::string_view level) {
  return static_cast<std::size_t>(std::ranges::find(levels, level) - levels.begin());
}

constexpr std::array role_kinds{protocol::role_kind::coordinator, protocol::role_kind::data_dispatcher,
                                protocol::role_kind::ps_shard,    protocol::role_kind::worker,
                                protocol::role_kind::agent,       protocol::role_kind::host_agent,
                                protocol::role_kind::keeper};

bool is_role_kind(std::string_view name) {
  return std::ranges::any_of(role_kinds, [&](auto kind) { return protocol::to_string(kind) == name; });
}

constexpr std::string_view incarnation_prefix = "inc=";

/// Of one in JSON, or from another host: as it would stand in a log of text here.
std::string as_text(const log_line& line) {
  const auto& head = line.head;
  return fmt::format("{} {} {}-{}{}{} {}{} {}{}{}", head.time, head.level, head.role, head.index,
                     head.host.empty() ? "" : "@", head.host, incarnation_prefix, head.incarnation,
                     line.event, line.event.empty() ? "" : ": ", line.text);
}

/// A line of observability.log_format: json.
std::optional<log_line> parse_json_line(std::string_view line, const std::string& host) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  log_line parsed;
  parsed.head.host = host;
  try {
    auto& head = parsed.head;
    // Without the offset from UTC: lines of both forms are ordered by it.
    head.time = object.at("time").get<std::string>().substr(0, time_length);
    object.at("level").get_to(head.level);
    object.at("role").get_to(head.role);
    object.at("index").get_to(head.index);
    object.at("incarnation").get_to(head.incarnation);
    object.at("event").get_to(parsed.event);
    object.at("text").get_to(parsed.text);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt; // a library's, or one that was cut off
  }
  if (!is_time(parsed.head.time) || severity(parsed.head.level) == levels.size()) return std::nullopt;
  parsed.whole = as_text(parsed);
  return parsed;
}

} // namespace

std::optional<log_line> parse_log_line(std::string_view line, const std::string& host) {
  if (line.starts_with('{')) return parse_json_line(line, host);
  log_line parsed;
  parsed.head.host = host;
  parsed.whole = line;
  auto rest = line;
  const auto time = take_word(rest);
  const auto level = take_word(rest);
  if (!is_time(time) || severity(level) == levels.size() || !read_role(take_word(rest), parsed.head))
    return std::nullopt;
  const auto incarnation = take_word(rest);
  if (!incarnation.starts_with(incarnation_prefix) ||
      !read_number(incarnation.substr(incarnation_prefix.size()), parsed.head.incarnation))
    return std::nullopt;
  parsed.head.time = time;
  parsed.head.level = level;
  const auto [event, text] = common::split_event(rest);
  parsed.event = event;
  parsed.text = text;
  if (!host.empty()) parsed.whole = as_text(parsed);
  return parsed;
}

std::string to_json(const log_line& line) {
  using nlohmann::ordered_json;
  const auto& head = line.head;
  ordered_json made{{"time", head.time},
                    {"level", head.level},
                    {"role", head.role},
                    {"index", head.index},
                    {"incarnation", head.incarnation}};
  if (!head.host.empty()) made["host"] = head.host;
  made["event"] = line.event;
  made["text"] = line.text;
  return made.dump(-1, ' ', false,
                   ordered_json::error_handler_t::replace); // what a library prints may not be UTF-8
}

bool log_filter::wants(const log_line& line) const {
  return wants(line.head.role, line.head.index) &&
         (level.empty() || severity(line.head.level) >= severity(level));
}

bool log_filter::wants(std::string_view role_kind, std::uint32_t index) const {
  return role.empty() || role == role_kind || role == fmt::format("{}-{}", role_kind, index);
}

result<void> check(const log_filter& filter) {
  log_head head;
  if (!filter.role.empty() && !is_role_kind(filter.role) &&
      !(read_role(filter.role, head) && is_role_kind(head.role))) {
    std::vector<std::string_view> names;
    for (const auto kind : role_kinds) names.push_back(protocol::to_string(kind));
    return fail(error_code::bad_usage,
                fmt::format("there is no role '{}'; roles are {}, or one of them by its "
                            "number, as in worker-1",
                            filter.role, fmt::join(names, ", ")));
  }
  if (!filter.level.empty() && severity(filter.level) == levels.size())
    return fail(error_code::bad_usage,
                fmt::format("there is no level '{}'; levels are {}", filter.level, fmt::join(levels, ", ")));
  return {};
}

log_merger::log_merger(std::filesystem::path run_dir, log_filter filter, std::vector<hosted_folder> hosts,
                       root_asker ask)
    : run_dir_{std::move(run_dir)}
    , filter_{std::move(filter)}
    , hosted_{run_dir_, std::move(hosts), std::move(ask)} {}

void log_merger::find_files() {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(run_dir_ / run_layout::logs, ignored)) {
    const auto& path = entry.path();
    const auto name = path.stem().string();
    const auto role = agent::role_of_log(path);
    if (!role || std::ranges::find(sources_, name, &source::name) != sources_.end()) continue;
    const auto lines = std::make_shared<line_tail>(path);
    sources_.push_back({name, [lines] { return lines->next(); }, [lines] { return lines->rest(); }, {}, {}});
    auto& last = sources_.back().last;
    last.role = protocol::to_string(role->kind);
    last.index = role->index;
  }
  find_hosted();
  std::ranges::sort(sources_, {}, &source::name);
}

void log_merger::find_hosted() {
  for (const auto& log : hosted_.look()) {
    const auto kind = std::string{protocol::to_string(log->role().kind)};
    source made{fmt::format("{}-{}@{}", kind, log->role().index, log->host()),
                [log] { return log->next(); },
                [log] { return log->rest(); },
                {},
                {}};
    made.last.role = kind;
    made.last.index = log->role().index;
    made.last.host = log->host();
    sources_.push_back(std::move(made));
  }
}

std::vector<std::string> log_merger::missing(bool is_over) {
  return hosted_.missing(is_over, [this](const auto& role) {
    return filter_.wants(protocol::to_string(role.kind), role.index);
  });
}

std::optional<log_line> log_merger::read(source& from) const {
  const auto next = [&] {
    auto line = from.next_line();
    return line || !takes_rests_ ? line : from.rest();
  };
  while (auto text = next()) {
    auto line = parse_log_line(*text, from.last.host);
    if (line)
      from.last = line->head;
    else
      line = log_line{from.last, "", *text, *text};
    if (filter_.wants(*line)) return line;
  }
  return std::nullopt;
}

std::optional<log_line> log_merger::next() {
  source* oldest = nullptr;
  const auto look = [&] {
    for (auto& one : sources_) {
      if (!one.head) one.head = read(one);
      if (one.head && (oldest == nullptr || one.head->head.time < oldest->head->head.time)) oldest = &one;
    }
  };
  look();
  if (oldest == nullptr) {
    find_files();
    look();
  }
  if (oldest == nullptr) return std::nullopt;
  auto line = std::move(oldest->head);
  oldest->head.reset();
  return line;
}

} // namespace dlrun::cli
