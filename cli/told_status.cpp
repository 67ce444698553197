#include "cli/told_status.hpp"

#include "actors/agent/drain_stage.hpp"
#include "cli/complain.hpp"
#include "cli/told_copies.hpp"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dlrun::cli {
namespace {

void print_progress(const nlohmann::ordered_json& status) {
  const auto waits_for = status.value("waits_for", "");
  say(stdout, "{}: {}", status.value("job", "?"), status.value("status", "?"));
  if (!waits_for.empty()) return say(stdout, " for {}\n", waits_for);
  if (status.contains("step")) say(stdout, ", step {}", status.value("step", 0));
  if (status.contains("steps"))
    say(stdout, " of {}, {} on disk", status["steps"].get<std::uint64_t>(), status.value("durable_step", 0));
  say(stdout, "\n");
}

void print_hosts(const nlohmann::ordered_json& all) {
  std::vector<std::string> hosts;
  for (const auto& host : all) {
    const auto state = host.value("state", "?");
    hosts.push_back(host.value("name", "?") + (state == "there" ? "" : " (" + state + ")"));
  }
  say(stdout, "hosts: {}\n", fmt::format("{}", fmt::join(hosts, ", ")));
  for (const auto& host : all)
    if (host.contains("waits_for"))
      say(stdout, "host {} is being drained, and has still: {}\n", host.value("name", "?"),
          host.value("waits_for", "?"));
  for (const auto& host : all)
    if (host.value("without_copies", false))
      say(stdout, "{}: another host that joins, or 'dlrun drain --undo', brings them back\n",
          agent::no_copies_while_drained(host.value("name", "?")));
}

/// Of hosts that have little left: beyond the limit the kernel kills.
void print_memory(const nlohmann::ordered_json& hosts) {
  constexpr double much = 0.9, gib = 1ULL << 30U;
  for (const auto& host : hosts) {
    const auto memory = host.value("memory", nlohmann::ordered_json::object());
    const auto used = memory.value("used_bytes", 0.0), limit = memory.value("limit_bytes", 0.0);
    if (limit > 0 && used > much * limit)
      say(stdout, "host {} uses {:.1f} of {:.1f} GiB of memory\n", host.value("name", "?"), used / gib,
          limit / gib);
  }
}

void print_archive(const nlohmann::ordered_json& archive) {
  if (archive.value("step", nlohmann::ordered_json{}).is_number())
    say(stdout, "archive: step {}, {:.0f} s old\n", archive["step"].get<std::uint64_t>(),
        archive["age_s"].get<double>());
  else
    say(stdout, "archive: none yet\n");
  if (archive.contains("failure")) say(stdout, "no archive is made: {}\n", archive.value("failure", "?"));
}

} // namespace

void tell_status(const nlohmann::ordered_json& status) {
  print_progress(status);
  for (const auto* key : {"outcome", "summary", "way_on"})
    if (status.contains(key)) say(stdout, "{}\n", status.value(key, "?"));
  if (status.contains("workers")) {
    const auto& workers = status["workers"];
    const auto leaving = workers.value("leaving", 0);
    say(stdout, "workers: {} wanted, {} there{}\n", workers.value("wanted", 0), workers.value("present", 0),
        leaving > 0 ? fmt::format(", {} leaving", leaving) : "");
  }
  if (status.contains("hosts")) {
    print_hosts(status["hosts"]);
    print_memory(status["hosts"]);
  }
  if (status.contains("archive")) print_archive(status["archive"]);
  if (const auto held = status.find("held_up_by"); held != status.end())
    for (const auto& one : *held) say(stdout, "held up: {}\n", one.get<std::string>());
  for (const auto& line : tell_copies(status)) say(stdout, "{}\n", line);
  for (const auto& line : tell_losses(status)) say(stdout, "{}\n", line);
  if (status.contains("avoided_gpus"))
    for (const auto& one : status["avoided_gpus"])
      say(stdout, "GPU {} of host {} is avoided: {}\n", one.value("gpu", 0), one.value("host", "?"),
          one.value("reason", "?"));
  if (const auto stall = status.find("stall"); stall != status.end() && stall->is_object())
    say(stdout, "no step for {:.1f} s: it waits for {}\n", stall->value("seconds", 0.0),
        stall->value("text", "?"));
  if (status["roles"].empty()) return;
  constexpr auto columns = "{:<16} {:>5} {:>8} {:>11} {:>6} {:>8}  {}\n";
  say(stdout, columns, "role", "index", "pid", "incarnation", "slots", "slots/s", "state");
  for (const auto& role : status["roles"]) {
    const bool computes = role.contains("slots");
    say(stdout, columns, role.value("role", "?"), role.value("index", 0), role.value("pid", 0),
        role.value("incarnation", 0), computes ? std::to_string(role.value("slots", 0)) : "",
        computes ? fmt::format("{:.1f}", role.value("slots_per_second", 0.0)) : "", role.value("state", "?"));
  }
}

} // namespace dlrun::cli
