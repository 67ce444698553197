/// The numbers of a worker at work: gradients are computed, kept and checked.
#pragma once

#include "actors/common/task_thread.hpp"
#include "actors/common/way_back.hpp"
#include "actors/worker/host_share.hpp"
#include "actors/worker/kept_gradients.hpp"
#include "actors/worker/trainer.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::worker {

/// Runs the trainer on the compute thread, strictly in the order in which it is told what to do,
/// and keeps the gradients that come of it. Called by its owner only, inside the owner's entry
/// lock; what comes of it is told there too.
class gradient_maker {
public:
  struct events {
    std::function<void(const fetch_part&, bool is_there)> copied;
    /// It is kept from now on.
    std::function<void(const compute_gradient&)> computed;
    std::function<void(const compute_gradient&)> overwritten;
    /// Of a gradient that is still computed every float from `from` on is final.
    std::function<void(const protocol::push&, std::uint64_t from)> part;
    /// In that slot, or only in the sum.
    std::function<void(step_id, std::optional<slot_id>, const std::string& text)> diverged;
    /// It cannot compute.
    std::function<void(const std::string& why)> failed;
  };

  /// `context` outlives this.
  gradient_maker(const common::role_context& context, common::way_back back, events told);

  /// Opens the data and makes the computer; once, before all below. @returns as trainer::create().
  result<void> open(std::shared_ptr<transport::segment_offers> server);
  /// As trainer::device().
  const std::string& device() const { return trainer_->device(); }
  /// As trainer::host_layers().
  std::vector<std::string> host_layers() const { return trainer_->host_layers(); }

  /// Where parameters are not read in place: copies the part that is ordered.
  void copy(const fetch_part& order, const parameter_source& source);
  /// `sources` as of trainer::compute().
  void carry_out(const compute_gradient& order, std::vector<parameter_source> sources);
  void carry_out(const check_gradient& order);
  void carry_out(const forget_gradient& order) { kept_.erase({order.step, order.slots}); }
  void discard_all() { kept_.clear(); }

  /// The message that tells of a kept gradient; nothing where there is none.
  std::optional<protocol::push> find_push(step_id step, protocol::slot_range slots) const;
  std::size_t kept() const { return kept_.size(); }
  /// Fills in what it has done since its start.
  void add_figures(protocol::worker_status& status) const;

  result<void> listen(std::shared_ptr<const transport::doorbell> bell, common::task_thread::listener heard) {
    return thread_.listen(std::move(bell), std::move(heard));
  }
  /// Ends the thread. To be called outside the entry lock.
  void stop() { thread_.stop(); }

private:
  void tell_host_share(step_id begun);
  void tell_remarks();
  void compute(const compute_gradient& order, const std::vector<parameter_source>& sources);
  void on_computed(const compute_gradient& order, computed_gradient made);
  void end_computation();
  void on_not_computed(const compute_gradient& order, const error& why, std::optional<slot_id> slot);
  void check(const compute_gradient& made);
  protocol::push push_of(const transport::pooled_gradient& buffer,
                         const transport::gradient_header& header) const;

  const common::role_context& context_;
  common::way_back back_;
  events told_;
  std::shared_ptr<transport::segment_offers> server_; ///< outlives every gradient that was lent from it
  std::shared_ptr<trainer> trainer_;                  ///< used on the thread only
  host_share share_;                                  ///< as well
  std::map<kept_gradients::key, computed_gradient> kept_;
  std::uint64_t slots_computed_ = 0;
  protocol::duration compute_time_{}; ///< of those, and of what came to nothing
  std::uint32_t computing_ = 0;       ///< slots that are computed now
  protocol::time_point computing_since_{};
  common::task_thread thread_{"compute"}; ///< last: joined before what its tasks use goes
};

} // namespace dlrun::worker
