#include "runtime/live_archive_source.hpp"

#include "actors/agent/snapshot_pins.hpp"
#include "actors/common/ask.hpp"
#include "actors/common/history_conversion.hpp"
#include "actors/coordinator/journal_copy.hpp"
#include "base/crc32c.hpp"
#include "persistence/snapshot_file.hpp"

#include <fmt/format.h>
#include <future>
#include <optional>

namespace dlrun::runtime {
namespace {

constexpr int journal_tries = 8;

std::string file_of(const snapshot_name& name) {
  return persistence::snapshot_file_name(name.version, name.timeline);
}

} // namespace

live_archive_source::live_archive_source(caf::actor_system& system, protocol::agent_actor agent,
                                         std::shared_ptr<agent::routed_launcher> hosts,
                                         std::filesystem::path run_dir, std::uint32_t ps_shards,
                                         std::chrono::milliseconds answer_deadline)
    : self_{system}
    , agent_{std::move(agent)}
    , hosts_{std::move(hosts)}
    , run_dir_{std::move(run_dir)}
    , homes_(ps_shards)
    , answer_deadline_{answer_deadline} {}

/// On the agent's thread, whose places they are.
result<void> live_archive_source::find_homes() {
  if (!hosts_) return {};
  auto found = std::make_shared<std::promise<std::vector<home>>>();
  auto homes = found->get_future();
  common::post(agent_, [hosts = hosts_, found, count = homes_.size()] {
    std::vector<home> all(count);
    for (std::size_t shard = 0; shard < count; ++shard) {
      const auto role = protocol::ps_shard_role({static_cast<std::uint32_t>(shard)});
      const auto host = hosts->roles().places().host_of(role);
      if (host.empty() || host == hosts->roles().root()) continue;
      all[shard] = {host, hosts->links().agent_of(host).value_or(protocol::host_agent_actor{})};
    }
    found->set_value(std::move(all));
  });
  if (homes.wait_for(answer_deadline_) != std::future_status::ready)
    return fail(error_code::role_lost, "the root's agent does not answer");
  homes_ = homes.get();
  for (std::size_t shard = 0; shard < homes_.size(); ++shard)
    if (!homes_[shard].host.empty() && !homes_[shard].agent)
      return fail(error_code::role_lost,
                  fmt::format("PS shard {} is on host {}, which is away", shard, homes_[shard].host));
  return {};
}

template <class Answer, class Handle, class Question>
result<Answer> live_archive_source::request(const Handle& whom, const std::string& name,
                                            const Question& question) {
  result<Answer> made = fail(error_code::role_lost, name + " does not answer");
  self_->request(whom, answer_deadline_, question)
      .receive([&](Answer& answer) { made = std::move(answer); },
               [&](const caf::error& why) {
                 const bool is_late = why == caf::sec::request_timeout;
                 made = fail(is_late ? error_code::timed_out : error_code::role_lost,
                             fmt::format("{} does not answer: {}", name, to_string(why)));
               });
  if (made && !made->failure.empty())
    return fail(error_code::bad_usage, fmt::format("{}: {}", name, made->failure));
  return made;
}

result<std::vector<protocol::stored_file>> live_archive_source::ask(ps_shard_id shard,
                                                                    std::vector<std::string> kept) {
  const auto& home = homes_[shard.value];
  if (!home.agent) return agent::keep_snapshots(common::store_directory(run_dir_, shard), kept);
  auto answer = request<protocol::store_listing>(home.agent, "host " + home.host,
                                                 protocol::snapshots_wanted{shard, std::move(kept)});
  if (!answer) return tl::unexpected(answer.error());
  return std::move(answer->files);
}

result<std::vector<stored_snapshots>> live_archive_source::list() {
  if (auto found = find_homes(); !found) return tl::unexpected(found.error());
  std::vector<stored_snapshots> all;
  for (std::uint32_t shard = 0; shard < homes_.size(); ++shard) {
    const auto files = ask({shard}, {});
    if (!files) return tl::unexpected(files.error());
    auto& its = all.emplace_back();
    for (const auto& file : *files)
      if (const auto name = snapshot_named(file.path)) its[*name] = file.bytes;
  }
  return all;
}

result<void> live_archive_source::keep(const std::vector<snapshot_name>& names) {
  std::vector<std::string> files;
  for (const auto& name : names) files.push_back(file_of(name));
  for (std::uint32_t shard = 0; shard < homes_.size(); ++shard)
    if (const auto kept = ask({shard}, files); !kept) return tl::unexpected(kept.error());
  return {};
}

result<std::string> live_archive_source::read(ps_shard_id shard, const snapshot_name& name,
                                              std::uint64_t offset) {
  const auto& home = homes_[shard.value];
  constexpr auto size = protocol::store_part_bytes_max;
  if (!home.agent)
    return agent::read_kept_snapshot(common::store_directory(run_dir_, shard), file_of(name), offset, size);
  auto part = request<protocol::store_part>(
      home.agent, "host " + home.host, protocol::snapshot_part_wanted{shard, file_of(name), offset, size});
  if (!part) return tl::unexpected(part.error());
  return std::move(part->bytes);
}

/// One that was written meanwhile has another checksum, and is asked for anew.
result<journal_entries> live_archive_source::journal() {
  std::string bytes;
  std::uint32_t crc32c = 0;
  for (int left = journal_tries; left > 0;) {
    auto part = request<protocol::journal_part>(agent_, "the root's agent",
                                                protocol::journal_part_wanted{bytes.size()});
    if (!part) return tl::unexpected(part.error());
    if (!bytes.empty() && part->crc32c != crc32c) {
      bytes.clear();
      --left;
      continue;
    }
    crc32c = part->crc32c;
    bytes += part->bytes;
    if (bytes.size() < part->bytes_of_all && !part->bytes.empty()) continue;
    auto entries = base::crc32c(bytes) == crc32c ? coordinator::journal_from(bytes) : std::nullopt;
    if (entries) return std::move(*entries);
    return fail(error_code::protocol, "the journal came damaged");
  }
  return fail(error_code::timed_out, "the journal was written again while it was read");
}

} // namespace dlrun::runtime
