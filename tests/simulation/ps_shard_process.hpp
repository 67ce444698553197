/// A simulated PS shard around the product's ps_shard_core, with a log that outlives it where the scenario
/// has one.
#pragma once

#include "actors/ps_shard/ps_shard_core.hpp"
#include "tests/simulation/process.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>

namespace dlrun::simulation {

class ps_shard_process : public member_process {
public:
  ps_shard_process(world& where, ps_shard_id id, protocol::fence self);

  const ps_shard::ps_shard_core& core() const { return *core_; }
  ps_shard_id id() const { return id_; }
  version_id restored() const { return restored_; }
  std::size_t values_held() const { return values_.size(); }
  void start() override;
  void died() override;

protected:
  void begin() override;
  void hear(const message& what) override;

private:
  /// A gradient in use: from a worker's buffer, read in place, or the result of a sum.
  struct gradient {
    value content = 0;
    std::vector<std::uint32_t> times; ///< how often each slot is in it, by our own count
    std::shared_ptr<gradient_memory> memory;
    std::size_t buffer = 0;
    std::uint64_t sequence = 0;
  };

  void restore();
  void on_push(const gradient_push& what);
  bool map(const gradient_push& what, gradient& into) const;
  void perform(const ps_shard::ps_shard_actions& actions);
  void perform_one(const ps_shard::combine& order);
  void perform_one(const ps_shard::release& order);
  void perform_one(const ps_shard::apply& order);
  void perform_one(const ps_shard::append& order);
  void perform_one(const ps_shard::publish& order);
  void perform_one(const ps_shard::send_state& order);
  void perform_one(const ps_shard::send_fenced& order);
  void perform_one(const ps_shard::exit_fenced& order);

  const gradient* used(ps_shard::value_id which);
  void applied(step_id step, ps_shard::value_id root);
  void append_next();
  void appended(step_id step, value root);
  void report();
  void answer_digests(const protocol::digest_request& request);
  void check_parameters(version_id version, value content) const;
  announced_state state() const;

  ps_shard_id id_;
  version_id restored_;
  std::optional<ps_shard::ps_shard_core> core_;
  std::shared_ptr<parameter_memory> parameters_ = std::make_shared<parameter_memory>();
  std::map<ps_shard::value_id, gradient> values_;
  std::uint64_t next_value_ = 1;
  std::deque<std::pair<step_id, ps_shard::value_id>> appends_;
  bool appending_ = false;
  std::uint64_t status_sequence_ = 0;
  std::map<worker_id, incarnation> newest_worker_; ///< as the directory says
};

} // namespace dlrun::simulation
