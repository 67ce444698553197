/// pod_plan: which pods of hosts are to be made, and which are to go.
#pragma once

#include "kubernetes/api_refusal.hpp"
#include "kubernetes/host_sights.hpp"
#include "kubernetes/known_pods.hpp"
#include "kubernetes/planted_bug.hpp"
#include "kubernetes/pod_watch.hpp"
#include "kubernetes/pods_end.hpp"
#include "kubernetes/refused_nodes.hpp"
#include "kubernetes/wanted_pods.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace dlrun::kubernetes {

struct create_pod {
  pod_slot slot{};
  std::uint32_t incarnation = 0;
  std::string why;
  std::uint64_t memory = 0;         ///< bytes that it may use; 0: what the template says
  std::set<std::string> keep_off{}; ///< nodes that it is not to be on
};
struct delete_pod {
  std::string name;
  std::string uid;
  std::string why;
};
using pod_action = std::variant<create_pod, delete_pod>;

struct pod_rules {
  /// A host that was there and is away, though its pod says that all is well: its node may be dead.
  std::chrono::milliseconds silence_patience{2000};
  /// The same where the pod says that its container ended: the kubelet starts it again in place,
  /// after 0, 10 and 20 s, with the stores that the pod has.
  std::chrono::milliseconds restart_patience{15'000};
  /// A pod that ended well says that the job is over; the root then ends too.
  std::chrono::milliseconds finished_patience{15'000};
  /// After that many restarts a pod that never joined is given up, while the kubelet holds it back.
  std::uint32_t restarts_max = 4;
  /// A host that was there for so long is sound: its next pod is made at once. So is that of one
  /// whose pod was taken away: deleted, evicted, or lost with its node.
  std::chrono::milliseconds sound_after{60'000};
  /// Between two pods of a slot, from the third on; doubles.
  std::chrono::milliseconds pause_first{1000}, pause_max{60'000};
  /// Pods made in a second, and at once.
  double rate = 50, burst = 100;
  /// A container that was out of memory twice within that is to have more.
  std::chrono::milliseconds memory_window{3'600'000};
  /// Bytes that a pod may have; 0: what the template says, and no more.
  std::uint64_t memory_max = 0;
  /// Before a deletion that shows no effect is asked for again.
  std::chrono::milliseconds repeat_after{10'000};
  planted_bug bug = planted_bug::none; ///< for the property test
};

/// Pure and level-triggered: each look compares what is wanted with what is there, and says what to
/// do next. Of the pods of a slot the newest counts, and all older ones are deleted. A slot without
/// a pod that lives gets the next incarnation; so does one whose pod the job has given up, which is
/// deleted once the next one is there. So a slot never has two pods that live, but where one of
/// them is given up: the job lets in one agent of a name at a time.
class pod_plan {
public:
  explicit pod_plan(pod_rules rules = {})
      : rules_{rules}
      , room_{rules.burst}
      , refused_{rules.bug} {}

  // what is there
  void on_news(const pod_news& news);

  /// @param hosts nothing: the job does not say yet
  /// @returns what is to be done now, each answered before the next look; nothing before all pods
  /// were listed once
  std::vector<pod_action> next(const wanted_pods& wanted, const std::optional<host_sights>& hosts,
                               time_point now);

  /// Set by next(): a pod needs more than it may have.
  const std::optional<pods_end>& end() const { return end_; }

  /// On which no pods are made any more.
  const refused_nodes& refused() const { return refused_; }

  /// By uid, as the server tells them.
  const std::map<std::string, pod_record>& pods() const { return pods_.all(); }

  /// Each slot has one pod, which runs, and there is no other pod of the job.
  bool is_whole(const wanted_pods& wanted) const;

  // what became of it
  void on_created(const create_pod& what, const pod_record& made, time_point now);
  /// Something else has its name.
  void on_name_taken(const create_pod& what) { slots_[what.slot].newest = what.incarnation; }
  void on_not_created(const create_pod& what, refusal_kind why, time_point now);

private:
  struct slot_state {
    std::uint32_t newest = 0;    ///< incarnation that was ever seen
    std::uint32_t pods_made = 0; ///< or tried to, since its host was sound or its pod was taken away
    std::optional<time_point> made_at{};
    time_point not_before{};            ///< the server did not make it
    std::optional<pod_record> unseen{}; ///< made, and not told of by the server yet
    time_point unseen_since{};
    std::string why{"it has none"}; ///< it needs a pod
    std::uint64_t memory = 0;       ///< of its pods, at least; it never shrinks
    // of its pod that lives
    std::string joined{};                 ///< uid, once its host was there
    std::string excused{};                ///< likewise, once it was taken away
    std::optional<time_point> in_since{}; ///< its host is there since then
    std::optional<time_point> out_since{};
    std::uint32_t restarts = 0; ///< when its host was there last
    std::optional<time_point> finished_since{};
  };

  bool has(planted_bug bug) const { return is_planted(rules_.bug, bug); }
  /// How often a container was out of memory.
  struct memory_ends {
    std::uint32_t ends = 0; ///< all that were seen, of any kind
    std::uint32_t kills = 0;
    time_point last{};
  };

  void see(const pod_record& pod);
  void excuse(const pod_record& pod);
  void list(const pod_listing& all);
  const pod_record* newest_alive(pod_slot slot, const slot_state& state, const std::string& owner) const;
  void look_at_slot(pod_slot slot, const wanted_pods& wanted, const host_sights* hosts, time_point now,
                    std::vector<pod_action>& out);
  std::string why_given_up(const pod_record& pod, slot_state& state, const host_sight* host, time_point now);
  void count_memory_ends(time_point now);
  bool is_out_of_memory_again(const pod_record& pod) const;
  std::string why_more_memory(const pod_record& pod, slot_state& state);
  const pod_record* newest_ended(pod_slot slot, const std::string& owner) const;
  bool is_finished(const pod_record* newest, slot_state& state, time_point now) const;
  bool may_make(const slot_state& state, time_point now) const;
  void make(pod_slot slot, slot_state& state, std::vector<pod_action>& out);
  void remove(const pod_record& pod, std::string why, time_point now, std::vector<pod_action>& out);
  void remove_older(const pod_record& than, const std::string& owner, time_point now,
                    std::vector<pod_action>& out);

  pod_rules rules_;
  double room_; ///< pods that may be made at once
  refused_nodes refused_;
  std::optional<time_point> looked_;
  bool is_listed_ = false;
  known_pods pods_;
  std::map<pod_slot, slot_state> slots_;
  std::map<std::string, time_point> deletions_;    ///< that were asked for, by uid
  std::map<std::string, memory_ends> memory_ends_; ///< by uid
  std::optional<pods_end> end_;
};

} // namespace dlrun::kubernetes
