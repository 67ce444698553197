/// Brings the stores of PS shards that ran on other hosts into the run folder, when the job is
/// complete.
#pragma once

#include "actors/agent/store_files.hpp"
#include "actors/protocol/handles.hpp"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace dlrun::agent {

/// The store of a PS shard that ran last on another host.
struct store_elsewhere {
  ps_shard_id shard;
  std::string host;
  protocol::host_agent_actor agent; ///< null: that host is away
};

/// What became of one.
struct collected_store {
  ps_shard_id shard;
  std::string host;
  std::uint64_t bytes = 0; ///< of its files
  std::string failure;     ///< why it is not in the run folder; else empty
};

/// What the user is told of them.
std::vector<protocol::job_event> tell_collected(const std::vector<collected_store>& stores);

/// One store after the other, of each a few parts at a time; what is not answered is asked for
/// again, a few times. Called by its actor `self` only, which outlives this. The actor writes what
/// comes; it has its turns while a whole store is made durable.
class store_collector {
public:
  using pointer = protocol::agent_actor::base*;
  using done_handler = std::function<void(const std::vector<collected_store>&)>;

  store_collector(pointer self, std::filesystem::path run_dir)
      : self_(self)
      , run_dir_(std::move(run_dir)) {}

  /// Once. `done` is called once, at once where there is nothing to bring.
  void collect(std::vector<store_elsewhere> stores, done_handler done);

private:
  void begin_next();
  template <class Answer, class Wanted>
  void ask(const Wanted& wanted, std::function<void(const Answer&)> on_answer);
  void on_listing(const protocol::store_listing& listing);
  void ask_for_next_part();
  void on_part(const protocol::store_part_wanted& wanted, const protocol::store_part& part);
  void finish_store();
  void end_store(std::string failure);
  const store_elsewhere& current() const { return stores_[collected_.size()]; }

  pointer self_;
  std::filesystem::path run_dir_;
  std::vector<store_elsewhere> stores_;
  std::vector<collected_store> collected_; ///< of the first of them; the next is being brought
  std::optional<store_intake> intake_;     ///< of the one that is being brought
  done_handler done_;
  std::jthread placing_{}; ///< the one that is whole; joined when this ends
};

} // namespace dlrun::agent
