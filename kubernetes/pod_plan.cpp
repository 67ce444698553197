#include "kubernetes/pod_plan.hpp"

#include "kubernetes/pod_memory.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace dlrun::kubernetes {
namespace {

/// Why a pod lives no more.
std::string why_ended(const pod_record& pod) {
  if (pod.is_going) return fmt::format("{} is being deleted", pod.name);
  return fmt::format("{} has {}{}{}", pod.name, pod.phase == pod_phase::failed ? "failed" : "ended",
                     pod.reason.empty() ? "" : ": ", pod.reason);
}

std::string seconds(std::chrono::milliseconds time) {
  return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
}

} // namespace

// ---- what is there

void pod_plan::on_news(const pod_news& news) {
  if (const auto* all = std::get_if<pod_listing>(&news)) return list(*all);
  if (const auto* pod = std::get_if<pod_record>(&news)) return see(*pod);
  const auto& uid = std::get<pod_gone>(news).uid;
  const auto* found = pods_.find(uid);
  if (found == nullptr) return;
  auto& slot = slots_[found->slot];
  if (found->incarnation == slot.newest) slot.why = fmt::format("{} is gone", found->name);
  if (is_alive(*found)) excuse(*found); // an object goes only when it is deleted
  deletions_.erase(uid);
  pods_.erase(uid);
}

void pod_plan::see(const pod_record& pod) {
  auto& slot = slots_[pod.slot];
  if (!has(planted_bug::forget_memory)) slot.memory = std::max(slot.memory, pod.memory);
  if (!has(planted_bug::forget_names)) slot.newest = std::max(slot.newest, pod.incarnation);
  if (slot.unseen && slot.unseen->uid == pod.uid) slot.unseen.reset();
  refused_.see(pod);
  if (pod.is_going || pod.is_disrupted) excuse(pod);
  pods_.put(pod);
}

/// It was in the job, and was taken away: that says nothing against the next one. Once, since what
/// the server does not make counts. Those that are deleted here are not the newest.
void pod_plan::excuse(const pod_record& pod) {
  auto& slot = slots_[pod.slot];
  if (slot.joined != pod.uid || slot.excused == pod.uid || slot.newest != pod.incarnation || pod.is_held_back)
    return;
  slot.excused = pod.uid;
  slot.pods_made = 0;
}

/// One that was made after the list had begun may be missing in it.
void pod_plan::list(const pod_listing& all) {
  is_listed_ = true;
  const auto before = std::exchange(pods_, {});
  for (const auto& pod : all.pods) see(pod);
  for (const auto& [uid, pod] : before.all())
    if (is_alive(pod) && !pods_.contains(uid)) excuse(pod);
  for (auto& [number, slot] : slots_)
    if (slot.unseen && (slot.unseen_since < all.began || has(planted_bug::trust_list))) slot.unseen.reset();
  std::erase_if(deletions_, [this](const auto& one) { return !pods_.contains(one.first); });
}

bool pod_plan::is_whole(const wanted_pods& wanted) const {
  if (!is_listed_ || wanted.count() == 0 || pods_.all().size() != wanted.count()) return false;
  return std::ranges::all_of(pods_.all(), [&](const auto& one) {
    const auto& pod = one.second;
    return wanted.contains(pod.slot) && pod.owner == wanted.owner && is_alive(pod) && pod.runs &&
           pods_.of(pod.slot).size() == 1;
  });
}

// ---- what is to be done

std::vector<pod_action> pod_plan::next(const wanted_pods& wanted, const std::optional<host_sights>& hosts,
                                       time_point now) {
  const auto passed = std::chrono::duration<double>(now - std::exchange(looked_, now).value_or(now)).count();
  room_ = std::min(rules_.burst, room_ + rules_.rate * passed);
  std::vector<pod_action> out;
  if (!is_listed_ || wanted.owner.empty()) return out;
  count_memory_ends(now);
  for (const auto& [group, count] : {std::pair{pod_group::ps, wanted.ps}, {pod_group::hosts, wanted.hosts}})
    for (std::uint32_t index = 0; index < count; ++index)
      look_at_slot({group, index}, wanted, hosts ? &*hosts : nullptr, now, out);
  for (const auto& [uid, pod] : pods_.all())
    if (!wanted.contains(pod.slot) && pod.owner == wanted.owner && !pod.is_going &&
        !has(planted_bug::keep_surplus))
      remove(pod, fmt::format("{} pods of hosts are wanted", wanted.count()), now, out);
  return out;
}

void pod_plan::look_at_slot(pod_slot slot, const wanted_pods& wanted, const host_sights* hosts,
                            time_point now, std::vector<pod_action>& out) {
  auto& state = slots_[slot];
  const auto* alive = newest_alive(slot, state, wanted.owner);
  if (alive == nullptr) {
    const auto* ended = newest_ended(slot, wanted.owner);
    if (ended != nullptr) {
      state.why = why_ended(*ended);
      remove_older(*ended, wanted.owner, now, out); // it tells why, until another one lives
    }
    if (!is_finished(ended, state, now) && may_make(state, now)) make(slot, state, out);
    return;
  }
  remove_older(*alive, wanted.owner, now, out);
  host_sight host;
  if (hosts != nullptr)
    if (const auto found = hosts->find(slot); found != hosts->end()) host = found->second;
  auto why = why_given_up(*alive, state, hosts == nullptr ? nullptr : &host, now);
  if (why.empty()) return;
  state.why = std::move(why);
  if (may_make(state, now)) make(slot, state, out);
}

/// Null: none lives. What was made and is not told of yet does.
const pod_record* pod_plan::newest_alive(pod_slot slot, const slot_state& state,
                                         const std::string& owner) const {
  const bool is_made = state.unseen && state.unseen->owner == owner && is_alive(*state.unseen);
  const pod_record* found = is_made ? &*state.unseen : nullptr;
  for (const auto* pod : pods_.of(slot))
    if (pod->owner == owner && is_alive(*pod) && (found == nullptr || pod->incarnation > found->incarnation))
      found = pod;
  return found;
}

/// @param host null: the job does not say  @returns "" where it is not, or not yet
std::string pod_plan::why_given_up(const pod_record& pod, slot_state& state, const host_sight* host,
                                   time_point now) {
  const bool is_in = host != nullptr && host->standing != host_standing::away && !pod.address.empty() &&
                     host->address == pod.address;
  if (is_in) {
    if (!state.in_since) state.in_since = now;
    if (now - *state.in_since >= rules_.sound_after) state.pods_made = 0;
    state.joined = pod.uid;
    state.out_since.reset();
    state.restarts = pod.restarts;
    return "";
  }
  state.in_since.reset();
  if (pod.has_other_bits && !pod.node.empty())
    return fmt::format("node {}, on which {} is, would compute other bits than the job began with", pod.node,
                       pod.name);
  if (is_out_of_memory_again(pod) && (host != nullptr || !pod.runs)) return why_more_memory(pod, state);
  if (has(planted_bug::trust_phase)) return "";
  if (pod.is_held_back && pod.restarts >= rules_.restarts_max) // also while the job waits for it
    return fmt::format("the container of {} was started {} times in vain", pod.name, pod.restarts + 1);
  if (host == nullptr) return "";
  if (state.joined != pod.uid && !has(planted_bug::no_start)) return ""; // it is on its way
  if (!state.out_since) state.out_since = now;
  const bool is_restarted = (!pod.runs || pod.restarts > state.restarts) && !has(planted_bug::no_restart);
  const auto patience = is_restarted ? rules_.restart_patience : rules_.silence_patience;
  if (now - *state.out_since < patience) return "";
  if (!is_restarted) excuse(pod);
  return is_restarted
             ? fmt::format("the container of {} has ended, and its host has not joined again for {}",
                           pod.name, seconds(patience))
             : fmt::format("the job has given up the host of {}, whose pod says nothing of it for {}",
                           pod.name, seconds(patience));
}

void pod_plan::count_memory_ends(time_point now) {
  std::erase_if(memory_ends_, [this](const auto& one) { return !pods_.contains(one.first); });
  for (const auto& [uid, pod] : pods_.all()) {
    auto& seen = memory_ends_[uid];
    if (pod.ends > seen.ends && pod.is_out_of_memory) {
      if (now - seen.last > rules_.memory_window) seen.kills = 0;
      ++seen.kills;
      seen.last = now;
    }
    seen.ends = std::max(seen.ends, pod.ends);
  }
}

/// The kubelet starts it again the first time.
bool pod_plan::is_out_of_memory_again(const pod_record& pod) const {
  const auto found = memory_ends_.find(pod.uid);
  return pod.is_out_of_memory && pod.memory > 0 && found != memory_ends_.end() && found->second.kills >= 2;
}

/// @returns "" where it may have no more: then the job is to end
std::string pod_plan::why_more_memory(const pod_record& pod, slot_state& state) {
  const auto more = grown_memory(pod.memory, rules_.memory_max);
  const auto what =
      fmt::format("the container of {} was out of memory twice, with {}", pod.name, memory_text(pod.memory));
  if (more > pod.memory) {
    state.memory = std::max(state.memory, more);
    return fmt::format("{}: its next pod has {}", what, memory_text(state.memory));
  }
  const auto most = rules_.memory_max == 0
                        ? std::string{"without --memory-max no pod gets more"}
                        : "no pod gets more than --memory-max " + memory_text(rules_.memory_max);
  end_ =
      pods_end{1, fmt::format("{}, and {}: delete the job, and submit it with more --memory or --memory-max",
                              what, most)};
  return "";
}

/// Of a slot where none lives; null: there is none.
const pod_record* pod_plan::newest_ended(pod_slot slot, const std::string& owner) const {
  const pod_record* newest = nullptr;
  for (const auto* pod : pods_.of(slot))
    if (pod->owner == owner && (newest == nullptr || pod->incarnation > newest->incarnation)) newest = pod;
  return newest;
}

/// It ended with 0, as hosts do that hear that the job is over, just now.
bool pod_plan::is_finished(const pod_record* newest, slot_state& state, time_point now) const {
  if (newest == nullptr || newest->is_going || newest->phase != pod_phase::succeeded) {
    state.finished_since.reset();
    return false;
  }
  if (!state.finished_since) state.finished_since = now;
  return now - *state.finished_since < rules_.finished_patience;
}

/// The first two of a slot at once.
bool pod_plan::may_make(const slot_state& state, time_point now) const {
  if (room_ < 1) return false;
  if (!state.made_at || state.pods_made < 2) return now >= state.not_before;
  constexpr std::uint32_t doublings_max = 10;
  const auto pause = rules_.pause_first * (1U << std::min(state.pods_made - 2, doublings_max));
  return now >= state.not_before && now - *state.made_at >= std::min(pause, rules_.pause_max);
}

void pod_plan::make(pod_slot slot, slot_state& state, std::vector<pod_action>& out) {
  room_ -= 1;
  out.emplace_back(create_pod{slot, state.newest + 1, state.why, state.memory, refused_.nodes()});
}

void pod_plan::remove(const pod_record& pod, std::string why, time_point now, std::vector<pod_action>& out) {
  const auto asked = deletions_.find(pod.uid);
  if (asked != deletions_.end() && now - asked->second < rules_.repeat_after) return;
  deletions_[pod.uid] = now;
  out.emplace_back(delete_pod{pod.name, pod.uid, std::move(why)});
}

/// Also those that have ended: nobody needs them.
void pod_plan::remove_older(const pod_record& than, const std::string& owner, time_point now,
                            std::vector<pod_action>& out) {
  if (has(planted_bug::keep_older)) return;
  for (const auto* pod : pods_.of(than.slot))
    if (pod->owner == owner && pod->incarnation < than.incarnation && !pod->is_going)
      remove(*pod, fmt::format("{} came after it", than.name), now, out);
}

// ---- what became of it

void pod_plan::on_created(const create_pod& what, const pod_record& made, time_point now) {
  auto& slot = slots_[what.slot];
  slot.newest = std::max(slot.newest, what.incarnation);
  ++slot.pods_made;
  slot.made_at = now;
  slot.out_since.reset();
  if (pods_.contains(made.uid) || has(planted_bug::forget_made)) return; // it was told of meanwhile
  slot.unseen = made;
  slot.unseen_since = now;
}

/// One that may pass says nothing of the slot.
void pod_plan::on_not_created(const create_pod& what, refusal_kind why, time_point now) {
  auto& slot = slots_[what.slot];
  slot.not_before = now + rules_.pause_first;
  if (may_pass(why)) return;
  ++slot.pods_made;
  slot.made_at = now;
}

} // namespace dlrun::kubernetes
