/// The simulated process of coordinator and dispatcher, around the product's two cores and their
/// journal.
#pragma once

#include "actors/coordinator/coordinator_core.hpp"
#include "tests/simulation/disk.hpp"
#include "tests/simulation/dispatcher_process.hpp"
#include "tests/simulation/process.hpp"

#include <deque>
#include <optional>

namespace dlrun::simulation {

class coordinator_process : public process {
public:
  /// `agent`: the number of the agent of the job.
  coordinator_process(world& where, protocol::fence self, std::uint64_t agent, std::uint32_t host = 0);

  void start() override;
  void receive(const message& what) override;
  void connection_broken(const process&) override { agent_knows_ = false; }
  using process::now;
  /// The dispatcher fails and is started again by its supervisor; it has forgotten everything.
  void restart_dispatcher();
  /// It has the journal, and its dispatcher runs.
  bool is_up() const { return dispatcher_.has_value(); }
  /// Requires is_up().
  dispatcher_process& dispatcher() { return *dispatcher_; }
  /// What its dispatcher says.
  void hear(const data_dispatcher::to_coordinator& what);
  /// One write after the other; `then` when it is synced. A journal that a newer start has opened
  /// refuses.
  void write(std::function<void(coordinator_journal&)> change, std::function<void()> then);

  /// What the journal holds, as far as it knows: what it read, and what it wrote since.
  const coordinator_journal& found() const { return found_; }

private:
  void perform(const coordinator::coordinator_actions& actions);
  void perform_one(const coordinator::send_directory& order);
  void perform_one(const coordinator::answer_join& order);
  void perform_one(const protocol::worker_available& order);
  void perform_one(const protocol::worker_gone& order);
  void perform_one(const protocol::poisoned_slot& order);
  void perform_one(const coordinator::journal_fences& order);
  void perform_one(const coordinator::journal_end& order);
  void perform_one(const coordinator::journal_workers& order);
  void perform_one(const coordinator::send_workers_wanted& order);
  void perform_one(const coordinator::request_digests& order);
  void perform_one(const protocol::close_training& order);
  void perform_one(const coordinator::finish_job& order);
  void perform_one(const coordinator::announce_end& order);

  void journal_stores();
  /// R28, in two exchanges with a journal that is elsewhere.
  void take_then_read();
  void begin();
  /// Of several hosts: a sign of life, and who it is while the agent does not know.
  void tell_agent();

  void write_next();
  /// A dispatcher reads its course behind all writes of the one before.
  void finish_writes();

  struct pending_write {
    std::function<void(coordinator_journal&)> change;
    std::function<void()> then;
  };

  std::uint64_t agent_;
  std::optional<coordinator::coordinator_core> core_;
  coordinator_journal found_;
  std::uint64_t last_write_ = 0; ///< in the journal
  coordinator::store_book stores_;
  protocol::join asker_; ///< whose join is being answered
  std::optional<dispatcher_process> dispatcher_;
  std::deque<pending_write> writes_;
  bool writing_ = false;
  bool waits_for_journal_ = false;
  bool agent_knows_ = false; ///< it has accepted this start, and the connection has held since
};

} // namespace dlrun::simulation
