/// A simulated PS shard around the product's ps_shard_core, with a disk that outlives it where the
/// scenario has one.
#pragma once

#include "actors/ps_shard/ps_shard_core.hpp"
#include "tests/simulation/held_gradients.hpp"
#include "tests/simulation/process.hpp"
#include "tests/simulation/retained.hpp"
#include "tests/simulation/shard_writer.hpp"

#include <map>
#include <memory>
#include <optional>

namespace dlrun::simulation {

class ps_shard_process : public member_process {
public:
  ps_shard_process(world& where, ps_shard_id id, protocol::fence self, std::uint32_t host = 0);

  const ps_shard::ps_shard_core& core() const { return *core_; }
  ps_shard_id id() const { return id_; }
  std::size_t values_held() const { return gradients_.size(); }
  void start() override;
  void died() override;
  /// It is to end, for its next start to be on another host, unless that is undone (R37).
  void move();

protected:
  void begin() override;
  void hear(const message& what) override;
  protocol::opened_store opened() const override { return opened_; }
  void renew_store() override;

private:
  void on_push(const gradient_push& what);
  void begin_early(step_id step);
  void perform(const ps_shard::ps_shard_actions& actions);
  void perform_one(const ps_shard::measure& order);
  void perform_one(const ps_shard::apply& order);
  void perform_one(const ps_shard::append& order);
  void perform_one(const ps_shard::take_snapshot& order);
  void publish();

  void applied(const ps_shard::apply& order, protocol::time_point began);
  void check_parameters(version_id version, value content) const;
  void check_distance() const;
  announced_state state() const;
  void report(std::uint64_t probe);
  void answer_digests(const protocol::digest_request& request);
  void answer_snapshot(const snapshot_pull& wanted);
  void leave_if_trained();

  std::optional<ps_shard::loaded_standing> load_retained(const ps_shard::loaded_standing& stored);
  void load(version_id version);
  void rewound(const ps_shard::perform_rewind& order);

  ps_shard_id id_;
  std::optional<ps_shard::ps_shard_core> core_;
  protocol::history history_; ///< that its parameters were made with
  std::shared_ptr<parameter_memory> parameters_ = std::make_shared<parameter_memory>();
  retained_writer retained_; ///< what its agent holds (R36)
  held_gradients gradients_;
  shard_writer writer_;
  std::uint64_t status_sequence_ = 0;
  protocol::opened_store opened_;
  std::map<worker_id, incarnation> newest_worker_; ///< as the directory says
  bool moves_ = false;                             ///< it has ended, as it was asked to
};

} // namespace dlrun::simulation
