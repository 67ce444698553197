/// A simulated worker around the product's worker_core.
#pragma once

#include "actors/worker/evaluation_core.hpp"
#include "actors/worker/worker_core.hpp"
#include "tests/simulation/process.hpp"

#include <map>
#include <memory>
#include <optional>
#include <set>

namespace dlrun::simulation {

class worker_process : public member_process {
public:
  worker_process(world& where, worker_id id, protocol::fence self, std::uint32_t host = 0);

  void died() override;
  std::optional<protocol::slot_progress> at; ///< what it computes
  bool crashed = false;                      ///< there, by its own doing
  bool left = false;                         ///< as it was asked to
  /// SIGTERM.
  void leave();

protected:
  void begin() override;
  void hear(const message& what) override;

private:
  struct held_part {
    std::optional<version_id> version;
    value content = 0;
  };
  struct kept_gradient {
    std::size_t buffer = 0;
    timeline_id timeline;
  };
  using gradient_key = std::pair<step_id, protocol::slot_range>;

  void perform(const worker::worker_actions& actions);
  void perform_one(const worker::connect_shard& order);
  void perform_one(const worker::fetch_part& order);
  void perform_one(const worker::compute_gradient& order);
  void perform_one(const worker::push_gradient& order);
  void perform_one(const worker::check_gradient& order);
  void perform_one(const worker::forget_gradient& order);
  void perform_one(const worker::discard_all& order);
  void perform_one(const worker::exit_left& order);

  /// What goes to a shard that is not connected is lost.
  void send_connected(ps_shard_id shard, message what);
  void copy(const worker::fetch_part& order, const std::shared_ptr<parameter_memory>& from);
  void copied(const worker::fetch_part& order, const std::shared_ptr<parameter_memory>& from,
              std::uint64_t writes, bool ok);
  void computed(const worker::compute_gradient& order, const std::vector<held_part>& from);
  void perform(const worker::evaluation_actions& actions);
  void perform_one(const worker::get_snapshot_part& order);
  void perform_one(const worker::run_evaluation& order);
  void perform_one(const worker::cancel_evaluation& order);
  void perform_one(const worker::send_evaluated& order);
  void on_snapshot_part(const snapshot_part& part);
  void report();
  void check_bounds() const;
  /// What the buffers of `version` hold, one a shard.
  std::vector<held_part> parts_of(version_id version) const;

  worker_id id_;
  worker::worker_core core_;
  std::set<ps_shard_id> connected_;
  std::map<ps_shard_id, std::uint64_t> turns_; ///< of the buffers that are copied
  std::map<ps_shard_id, std::pair<incarnation, std::shared_ptr<parameter_memory>>> shard_memory_;
  std::map<ps_shard_id, std::array<held_part, 2>> parts_; ///< version v in number v mod 2
  std::shared_ptr<gradient_memory> gradients_ = std::make_shared<gradient_memory>();
  std::map<gradient_key, kept_gradient> kept_;
  worker::evaluation_core evaluation_;
  std::map<ps_shard_id, value> evaluation_parts_;
  std::uint64_t slots_computed_ = 0, compute_us_ = 0;
  std::uint32_t computing_ = 0; ///< slots
  protocol::time_point computing_since_{};
};

} // namespace dlrun::simulation
