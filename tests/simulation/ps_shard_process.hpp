/// A simulated PS shard around the product's ps_shard_core, with a disk that outlives it where the
/// scenario has one.
#pragma once

#include "actors/ps_shard/ps_shard_core.hpp"
#include "tests/simulation/disk.hpp"
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
  struct pending_append {
    ps_shard::append what;
    value root = 0;
  };

  void on_push(const gradient_push& what);
  void begin_early(step_id step);
  bool map(const gradient_push& what, gradient& into) const;
  void perform(const ps_shard::ps_shard_actions& actions);
  void perform_one(const ps_shard::combine& order);
  void perform_one(const ps_shard::make_zero& order);
  void perform_one(const ps_shard::release& order);
  void perform_one(const ps_shard::measure& order);
  void perform_one(const ps_shard::apply& order);
  void perform_one(const ps_shard::append& order);
  void perform_one(const ps_shard::take_snapshot& order);
  void perform_one(const ps_shard::drop_below& order);
  void perform_one(const ps_shard::perform_rewind& order);
  void perform_one(const ps_shard::send_norm& order);
  void perform_one(const ps_shard::send_norm_request& order);
  void perform_one(const ps_shard::publish& order);
  void perform_one(const ps_shard::send_state& order);
  void perform_one(const ps_shard::send_status& order);
  void perform_one(const ps_shard::send_fenced& order);
  void perform_one(const ps_shard::exit_fenced& order);

  // steps
  const gradient* used(ps_shard::value_id which);
  void applied(const ps_shard::apply& order, protocol::time_point began);
  void check_parameters(version_id version, value content) const;
  void check_distance() const;
  announced_state state() const;
  void report(std::uint64_t probe);
  void answer_digests(const protocol::digest_request& request);
  void answer_snapshot(const snapshot_pull& wanted);
  void leave_if_trained();

  // disk (ps_shard_storage.cpp)
  shard_disk& disk() const;
  bool owns_disk();
  void load(version_id version);
  void write_log();
  void sync_log(std::uint64_t end);
  void write_snapshot(version_id version, const shard_image& image);
  bool may_write_snapshot(version_id version) const;
  void rewound(const ps_shard::perform_rewind& order);
  /// Happens unless a rewind came first.
  void after_on_this_timeline(double milliseconds_max, std::function<void()> what);

  ps_shard_id id_;
  std::optional<ps_shard::ps_shard_core> core_;
  protocol::history history_; ///< that its parameters were made with
  std::shared_ptr<parameter_memory> parameters_ = std::make_shared<parameter_memory>();
  std::map<ps_shard::value_id, gradient> values_;
  std::uint64_t next_value_ = 1;
  std::deque<pending_append> appends_;
  bool appending_ = false;
  std::set<version_id> snapshots_in_work_;
  std::uint64_t rewinds_ = 0;
  std::uint64_t status_sequence_ = 0;
  std::map<worker_id, incarnation> newest_worker_; ///< as the directory says
};

} // namespace dlrun::simulation
