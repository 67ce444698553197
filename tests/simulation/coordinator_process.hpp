/// The simulated process of coordinator and dispatcher, around the product's two cores and a
/// journal.
#pragma once

#include "actors/coordinator/coordinator_core.hpp"
#include "actors/data_dispatcher/data_dispatcher_core.hpp"
#include "tests/simulation/disk.hpp"
#include "tests/simulation/process.hpp"

#include <deque>
#include <optional>

namespace dlrun::simulation {

class coordinator_process : public process {
public:
  /// `agent`: the number of the agent that started it.
  coordinator_process(world& where, protocol::fence self, std::uint64_t agent);

  void start() override;
  void receive(const message& what) override;
  /// The dispatcher fails and is started again by its supervisor; it has forgotten everything.
  void restart_dispatcher();
  /// The operator's undo.
  void go_back(const protocol::go_back& wanted);

  const coordinator::coordinator_core& core() const { return *core_; }

private:
  void perform(const coordinator::coordinator_actions& actions);
  void perform(const data_dispatcher::data_dispatcher_actions& actions);
  void perform_one(const coordinator::send_grant& order);
  void perform_one(const coordinator::send_directory& order);
  void perform_one(const coordinator::answer_join& order);
  void perform_one(const protocol::worker_available& order);
  void perform_one(const protocol::worker_gone& order);
  void perform_one(const protocol::ps_shard_available& order);
  void perform_one(const protocol::ps_shard_gone& order);
  void perform_one(const protocol::poisoned_slot& order);
  void perform_one(const coordinator::journal_fences& order);
  void perform_one(const coordinator::journal_end& order);
  void perform_one(const coordinator::request_digests& order);
  void perform_one(const protocol::close_training& order);
  void perform_one(const coordinator::finish_job& order);
  void perform_one(const coordinator::announce_end& order);
  void perform_one(const data_dispatcher::send_lease& order);
  void perform_one(const data_dispatcher::order_evaluation& order);
  void perform_one(const data_dispatcher::training_finished& order);
  void perform_one(const data_dispatcher::training_closed& order);
  void perform_one(const data_dispatcher::evaluation_finished& order);
  void perform_one(const data_dispatcher::slots_redispatched& order);
  void perform_one(const data_dispatcher::worker_contributed& order);
  void perform_one(const data_dispatcher::ps_shard_resumed& order);
  void perform_one(const data_dispatcher::journal_course& order);
  void perform_one(const data_dispatcher::send_rewind& order);
  void perform_one(const data_dispatcher::send_floor& order);
  void perform_one(const data_dispatcher::send_go_on& order);
  void perform_one(const data_dispatcher::send_pin& order);
  void perform_one(const data_dispatcher::send_name_snapshot& order);
  void perform_one(const data_dispatcher::send_probe& order);
  void perform_one(const data_dispatcher::timeline_started& order);
  void perform_one(const data_dispatcher::decision_made& order);

  /// One write after the other; `then` when it is synced. A journal that a newer start has opened
  /// refuses.
  void write(std::function<void(coordinator_journal&)> change, std::function<void()> then);
  void write_next();
  /// A dispatcher reads its course behind all writes of the one before.
  void finish_writes();

  struct pending_write {
    std::function<void(coordinator_journal&)> change;
    std::function<void()> then;
  };

  std::uint64_t agent_;
  std::optional<coordinator::coordinator_core> core_;
  incarnation asker_; ///< whose join is being answered
  std::optional<data_dispatcher::data_dispatcher_core> dispatcher_;
  std::uint64_t dispatchers_ = 0;
  std::deque<pending_write> writes_;
  bool writing_ = false;
};

} // namespace dlrun::simulation
