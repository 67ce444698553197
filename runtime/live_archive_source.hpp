/// What an archive is made of, from the job that runs.
#pragma once

#include "actors/agent/routed_launcher.hpp"
#include "actors/protocol/handles.hpp"
#include "runtime/archive_source.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// Snapshots of PS shards on this host are read where they are, those of others through the agent
/// of their host; the journal comes from the coordinator, through the agent of this one.
class live_archive_source final : public archive_source {
public:
  /// @param hosts null in a run on one host. `system` outlives this.
  /// @param answer_deadline of each question to an agent
  live_archive_source(caf::actor_system& system, protocol::agent_actor agent,
                      std::shared_ptr<agent::routed_launcher> hosts, std::filesystem::path run_dir,
                      std::uint32_t ps_shards,
                      std::chrono::milliseconds answer_deadline = std::chrono::seconds(6));

  result<std::vector<stored_snapshots>> list() override;
  result<void> keep(const std::vector<snapshot_name>& names) override;
  result<std::string> read(ps_shard_id shard, const snapshot_name& name, std::uint64_t offset) override;
  result<journal_entries> journal() override;

private:
  /// Where a PS shard was when it was listed.
  struct home {
    std::string host{}; ///< "": this one
    protocol::host_agent_actor agent{};
  };
  result<void> find_homes();
  result<std::vector<protocol::stored_file>> ask(ps_shard_id shard, std::vector<std::string> kept);
  template <class Answer, class Handle, class Question>
  result<Answer> request(const Handle& whom, const std::string& name, const Question& question);

  caf::scoped_actor self_;
  protocol::agent_actor agent_;
  std::shared_ptr<agent::routed_launcher> hosts_;
  std::filesystem::path run_dir_;
  std::vector<home> homes_; ///< of each PS shard
  std::chrono::milliseconds answer_deadline_;
};

} // namespace dlrun::runtime
