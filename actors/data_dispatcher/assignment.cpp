#include "actors/data_dispatcher/assignment.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <dlrun/check.hpp>
#include <numeric>
#include <queue>
#include <string_view>

namespace dlrun::data_dispatcher {
namespace {

using protocol::make_slot_range;
using protocol::slot_range;
using cuts_type = std::vector<std::uint32_t>; // candidate i has [cuts[i], cuts[i + 1])

/// A cut may move by this part of a range to fall on the border of a larger subtree; the step gets
/// at most as much longer.
constexpr double alignment_slack = 1.0 / 32;

/// Of the mean of the others: who is slower gets nothing. It would add at most this part of a
/// worker, and when it stops in one of the few slots that it would have, the step waits until that
/// is seen.
constexpr double worth_min = 1.0 / 8;

/// Of a share: who is worth so many times as much has too little. Larger: who was slow keeps less
/// of what it is worth; smaller: measured speeds that vary change the division.
constexpr double regain_min = 1.5;
/// And so many slots: rounding and the places of cuts take up to three. Of shares so small that
/// this is more than regain_min one slot is 10 % of a step.
constexpr double regain_slots_min = 4;

bool is_speed(double value) { return std::isfinite(value) && value > 0; }

/// 0 for who is not worth to wait for. The fastest is.
void drop_slow(std::vector<double>& speeds) {
  double sum = 0;
  for (const auto speed : speeds) sum += speed;
  const auto others = static_cast<double>(speeds.size()) - 1;
  for (auto& speed : speeds)
    if (speed * others < worth_min * (sum - speed)) speed = 0;
}

/// Measured speeds; who has none yet counts as the mean of the others.
std::vector<double> speeds_of(const std::vector<candidate>& candidates) {
  double sum = 0;
  std::size_t measured = 0;
  for (const auto& one : candidates) {
    if (!is_speed(one.slots_per_second)) continue;
    sum += one.slots_per_second;
    ++measured;
  }
  const double mean = measured == 0 ? 1 : sum / static_cast<double>(measured);
  std::vector<double> speeds;
  speeds.reserve(candidates.size());
  for (const auto& one : candidates) {
    const auto known = is_speed(one.slots_per_second) ? one.slots_per_second : mean;
    speeds.push_back(measured == 0 ? known : std::min(known, one.at_most));
  }
  drop_slow(speeds);
  return speeds;
}

double sum_of(const std::vector<double>& speeds) {
  return std::accumulate(speeds.begin(), speeds.end(), 0.0);
}

/// If slots could be divided at will: no division takes less.
double shortest_step_seconds(std::uint32_t slots, const std::vector<double>& speeds) {
  return slots / sum_of(speeds);
}

/// Sizes with the shortest possible step: each gets the whole part of its share, the rest goes one
/// by one to whom it delays least.
std::vector<std::uint32_t> sizes_for(std::uint32_t slots, const std::vector<double>& speeds) {
  const double sum = sum_of(speeds);
  std::vector<std::uint32_t> sizes;
  sizes.reserve(speeds.size());
  std::uint32_t given = 0;
  for (const auto speed : speeds) {
    const auto share = std::min(static_cast<std::uint32_t>(slots * (speed / sum)), slots - given);
    sizes.push_back(share);
    given += share;
  }
  using entry = std::pair<double, std::size_t>;
  std::vector<entry> all;
  all.reserve(speeds.size());
  for (std::size_t i = 0; i < speeds.size(); ++i)
    if (speeds[i] > 0) all.emplace_back((sizes[i] + 1) / speeds[i], i);
  std::priority_queue<entry, std::vector<entry>, std::greater<>> next{{}, std::move(all)};
  for (; given < slots; ++given) {
    const auto i = next.top().second;
    next.pop();
    ++sizes[i];
    next.emplace((sizes[i] + 1) / speeds[i], i);
  }
  return sizes;
}

double step_seconds(const cuts_type& cuts, const std::vector<double>& speeds) {
  double longest = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i)
    if (cuts[i + 1] > cuts[i]) longest = std::max(longest, (cuts[i + 1] - cuts[i]) / speeds[i]);
  return longest;
}

/// Moves each inner cut to the most divisible place that costs nearly nothing: larger subtrees,
/// fewer gradients.
void align(cuts_type& cuts, const std::vector<double>& speeds) {
  const double limit = step_seconds(cuts, speeds) * (1 + alignment_slack);
  for (std::size_t i = 1; i + 1 < cuts.size(); ++i) {
    const auto left = cuts[i] - cuts[i - 1];
    const auto right = cuts[i + 1] - cuts[i];
    if (left == 0 || right == 0) continue;
    const auto reach = std::max(1U, static_cast<std::uint32_t>(std::min(left, right) * alignment_slack));
    const auto lowest = std::max(cuts[i] - std::min(cuts[i], reach), cuts[i - 1] + 1);
    const auto highest = std::min(cuts[i] + reach, cuts[i + 1] - 1);
    auto best = cuts[i];
    for (auto place = lowest; place <= highest; ++place) {
      if ((place - cuts[i - 1]) / speeds[i - 1] > limit || (cuts[i + 1] - place) / speeds[i] > limit)
        continue;
      if (std::countr_zero(place) > std::countr_zero(best)) best = place;
    }
    cuts[i] = best;
  }
}

} // namespace

assignment::assignment(std::uint32_t slots, double improvement_min)
    : slots_(slots)
    , improvement_min_(improvement_min) {
  DLRUN_CHECK(slots >= 1, "a step has at least one slot");
}

assignment_decision assignment::decide(std::vector<candidate> candidates) {
  if (!std::ranges::is_sorted(candidates, {}, &candidate::worker))
    std::ranges::sort(candidates, {}, &candidate::worker);
  auto reason = why_members_changed(candidates);
  if (candidates.empty()) {
    current_.clear();
    incarnations_.clear();
    return {current_, reason};
  }
  const auto speeds = speeds_of(candidates);
  const double before = reason.empty() ? seconds_now(speeds) : 0;
  const double wanted = has_too_little(speeds) ? before : before * (1 - improvement_min_);
  if (reason.empty() && shortest_step_seconds(slots_, speeds) >= wanted)
    return {current_, {}}; // most ticks of most jobs: no division is worth a change
  cuts_type cuts{0};
  cuts.reserve(speeds.size() + 1);
  for (const auto size : sizes_for(slots_, speeds)) cuts.push_back(cuts.back() + size);
  align(cuts, speeds);
  if (reason.empty()) {
    const double after = step_seconds(cuts, speeds);
    if (after >= wanted) return {current_, {}};
    reason = fmt::format("measured speeds: a step takes {:.0f} % less time", 100 * (1 - after / before));
  }
  take(candidates, cuts);
  return {current_, reason};
}

/// Of the division in force, whose members have these speeds.
double assignment::seconds_now(const std::vector<double>& speeds) const {
  cuts_type cuts{0};
  for (const auto& [worker, slots] : current_) cuts.push_back(slots.end.value);
  return step_seconds(cuts, speeds);
}

/// Somebody with a share, in the division in force, whose members have these speeds. Who has none
/// is not measured: that is tried first.
bool assignment::has_too_little(const std::vector<double>& speeds) const {
  const double sum = sum_of(speeds);
  auto speed = speeds.begin();
  for (const auto& [worker, slots] : current_) {
    if (speed == speeds.end()) return false; // other members
    const double worth = slots_ * *speed++ / sum;
    if (!slots.empty() && worth >= slots.size() * regain_min && worth >= slots.size() + regain_slots_min)
      return true;
  }
  return false;
}

/// Both are in the order of the workers.
std::string assignment::why_members_changed(const std::vector<candidate>& candidates) const {
  const auto is_same = [](const candidate& one, const auto& before) {
    return one.worker == before.first && one.incarnation == before.second;
  };
  if (std::ranges::equal(candidates, incarnations_, is_same)) return {};
  std::string came, went;
  const auto add = [](std::string& reason, worker_id worker, std::string_view what) {
    if (!reason.empty()) reason += ", ";
    reason += fmt::format("worker {} {}", worker, what);
  };
  auto before = incarnations_.begin();
  for (const auto& one : candidates) {
    for (; before != incarnations_.end() && before->first < one.worker; ++before)
      add(went, before->first, "does not take part any more");
    if (before == incarnations_.end() || before->first != one.worker)
      add(came, one.worker, "takes part");
    else if (before++->second != one.incarnation)
      add(came, one.worker, "was restarted");
  }
  for (; before != incarnations_.end(); ++before) add(went, before->first, "does not take part any more");
  return came.empty() || went.empty() ? came + went : came + ", " + went;
}

/// Most of the candidates had a share before: their entries are kept.
void assignment::take(const std::vector<candidate>& candidates, const std::vector<std::uint32_t>& cuts) {
  incarnations_.clear();
  auto at = current_.begin();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto& [worker, incarnation, speed, at_most] = candidates[i];
    while (at != current_.end() && at->first < worker) at = current_.erase(at);
    if (at == current_.end() || at->first != worker) at = current_.emplace_hint(at, worker, slot_range{});
    at++->second = make_slot_range(cuts[i], cuts[i + 1]);
    incarnations_.emplace_back(worker, incarnation);
  }
  current_.erase(at, current_.end());
}

} // namespace dlrun::data_dispatcher
