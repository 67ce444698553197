/// Who holds which slots of every step (rules R5, R34).
#pragma once

#include "actors/data_dispatcher/assignment.hpp"
#include "actors/data_dispatcher/data_dispatcher_actions.hpp"
#include "actors/data_dispatcher/worker_speed.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::data_dispatcher {

struct lease_rules {
  dlrun::incarnation dispatcher; ///< whose leases these are
  std::uint32_t slots = 1;       ///< K
  /// A worker silent for longer gets no slots (it keeps its lease; what it still sends is welcome).
  /// Must be several times the period of worker_status.
  protocol::duration silent_after = std::chrono::milliseconds(1000);
  /// Leases are repeated at this period until acknowledged.
  protocol::duration repeat_after = std::chrono::milliseconds(200);
  /// A worker whose measured speed was worth no slots is measured anew after this long, and for as
  /// long. Larger: a worker that was slow for a moment idles longer, but one that is slow now and
  /// then is not taken for fast between.
  protocol::duration retry_idle_after = std::chrono::seconds(2);
};

/// Pure: the workers and their leases, and the slots of lost workers until others have
/// acknowledged them. A newcomer needs a while until it can compute (connections, its first run of
/// each kernel). No step waits for that: while others work it is on trial, with a slot that
/// somebody else has too, and gets a share once it has computed one. Who was too slow for a share
/// is on trial every now and then.
class lease_book {
public:
  explicit lease_book(lease_rules rules);

  /// A start of a worker can take work. False, and nothing happens, if it is not newer than the one
  /// that is known.
  bool join(worker_id worker, dlrun::incarnation incarnation, protocol::time_point now,
            data_dispatcher_actions& out);
  /// That start is over: its slots go to the others at once. False for an older start.
  bool lose(worker_id worker, dlrun::incarnation incarnation, protocol::time_point now,
            data_dispatcher_actions& out);
  /// True when it says for the first time that it leaves: its slots go to the others at once (R33).
  bool on_status(const protocol::worker_status& status, protocol::time_point now,
                 data_dispatcher_actions& out);

  /// While leases are withheld they are decided and not sent; afterwards repeat() sends them.
  void withhold(bool withheld) { withheld_ = withheld; }
  /// Sees who is silent, and divides the slots anew if that is worth it.
  void renew(protocol::time_point now, data_dispatcher_actions& out);
  /// Sends what is not acknowledged again.
  void repeat(protocol::time_point now, data_dispatcher_actions& out);
  /// Nobody was heard for a reason of our own: silence counts from now.
  void excuse_silence(protocol::time_point now);

  /// Workers that have joined, heard or not.
  std::size_t size() const { return workers_.size(); }
  /// The start of each worker that is not silent.
  std::map<worker_id, dlrun::incarnation> heard() const;
  /// Grows whenever heard() becomes another.
  std::uint64_t heard_changes() const { return heard_changes_; }
  /// Those of them that stay: who leaves takes no new work.
  std::map<worker_id, dlrun::incarnation> working() const;

  /// Who has the slot of every step by the division in force; nothing while nobody works.
  std::optional<std::pair<worker_id, dlrun::incarnation>> holder_of(slot_id slot) const;
  /// The lowest number that no worker has.
  worker_id first_absent() const;

private:
  struct live_worker {
    dlrun::incarnation incarnation;
    protocol::time_point heard{};
    worker_speed speed;
    std::uint64_t acknowledged = 0;
    std::optional<protocol::lease> lease;
    std::string unsaid_reason;                ///< of a lease that was not sent yet
    std::optional<protocol::time_point> sent; ///< the lease, for the last time
    protocol::time_point leased_at{};         ///< since when it has these slots
    bool silent = false;
    bool leaving = false;
    bool on_trial = false;
    protocol::time_point trial_ends{}; ///< when it has computed more than `tried_from`
    std::uint64_t tried_from = 0;
    bool takes_work() const { return !silent && !leaving; }
  };
  struct loss {
    worker_id worker;
    dlrun::incarnation incarnation;
    protocol::slot_range slots;
    protocol::time_point noticed{};
  };

  /// Somebody has a share, and has shown that it computes.
  bool somebody_works() const;
  std::vector<candidate> candidates(protocol::time_point now);
  void divide(protocol::time_point now, data_dispatcher_actions& out);
  /// What the division in force gives the worker; empty when nothing.
  protocol::slot_range share_of(worker_id worker) const;
  void lease_to(worker_id id, live_worker& worker, protocol::slot_range slots, const std::string& reason,
                protocol::time_point now, data_dispatcher_actions& out);
  void send(worker_id id, live_worker& worker, protocol::time_point now, data_dispatcher_actions& out);
  void notice_silence(protocol::time_point now);
  void try_idle_ones(protocol::time_point now, data_dispatcher_actions& out);
  double fastest_with_slots() const;
  void settle_losses(const live_worker& worker, protocol::time_point now, data_dispatcher_actions& out);
  template <class MayBe>
  void settle_losses(protocol::time_point now, data_dispatcher_actions& out, MayBe may_be);
  bool is_with_others(protocol::slot_range slots) const;
  candidate candidate_of(worker_id id, const live_worker& worker, protocol::time_point now) const;

  lease_rules rules_;
  assignment assignment_;
  std::map<worker_id, live_worker> workers_;
  std::vector<loss> losses_; ///< whose slots are not with others yet
  std::uint64_t next_sequence_ = 1;
  std::uint64_t heard_changes_ = 0;
  bool withheld_ = false;
};

} // namespace dlrun::data_dispatcher
