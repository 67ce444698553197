/// The simulated process of coordinator and dispatcher, around the product's two cores.
#pragma once

#include "actors/coordinator/coordinator_core.hpp"
#include "actors/data_dispatcher/data_dispatcher_core.hpp"
#include "tests/simulation/process.hpp"

#include <optional>

namespace dlrun::simulation {

class coordinator_process : public process {
public:
  coordinator_process(world& where, protocol::fence self);

  void start() override;
  void receive(const message& what) override;
  /// The dispatcher fails and is started again by its supervisor; it has forgotten everything.
  void restart_dispatcher();

  const coordinator::coordinator_core& core() const { return core_; }

private:
  void perform(const coordinator::coordinator_actions& actions);
  void perform(const data_dispatcher::data_dispatcher_actions& actions);
  void perform_one(const coordinator::send_grant& order);
  void perform_one(const coordinator::send_directory& order);
  void perform_one(const coordinator::answer_join& order);
  void perform_one(const coordinator::worker_available& order);
  void perform_one(const coordinator::worker_gone& order);
  void perform_one(const coordinator::request_digests& order);
  void perform_one(const coordinator::finish_job& order);
  void perform_one(const data_dispatcher::send_lease& order);
  void perform_one(const data_dispatcher::order_evaluation& order);
  void perform_one(const data_dispatcher::training_finished& order);
  void perform_one(const data_dispatcher::evaluation_finished& order);
  void perform_one(const data_dispatcher::slots_redispatched& order);
  void perform_one(const data_dispatcher::worker_contributed& order);

  coordinator::coordinator_core core_;
  incarnation asker_; ///< whose join is being answered
  std::optional<data_dispatcher::data_dispatcher_core> dispatcher_;
};

} // namespace dlrun::simulation
