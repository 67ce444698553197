#include "actors/ps_shard/copy_cost.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::ps_shard {
namespace {

constexpr std::uint32_t waited_max = 100, busy_max = 500; // permille

std::uint64_t count_us(protocol::duration time) { return static_cast<std::uint64_t>(time.count()); }

std::uint32_t permille(protocol::duration part, protocol::duration of) {
  return static_cast<std::uint32_t>(count_us(part) * 1000 / std::max<std::uint64_t>(count_us(of), 1));
}

std::uint64_t rate(std::uint64_t bytes, protocol::duration time) {
  const auto seconds = std::max(protocol::to_seconds(time), 1e-6);
  return static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds);
}

/// What would make it cheaper, and what that gives up.
const char* way_out(protocol::durability kept) {
  if (kept == protocol::durability::every_step)
    return "a new run with durability.log: snapshots is sent snapshots alone, and a lost host then costs the "
           "steps since the newest one; durability.replicas: 1, with --set at a resume, turns copies off";
  return "a larger durability.max_recovery makes fewer snapshots; durability.replicas: 1, with --set at a "
         "resume, turns copies off";
}

} // namespace

bool is_slow_copy(const protocol::copy_figures& measured, bool was_slow) {
  const std::uint32_t part = was_slow ? 2 : 1;
  return measured.waited_permille >= waited_max / part || measured.busy_permille >= busy_max / part;
}

std::string describe(const protocol::copy_figures& measured) {
  const auto percent = [](std::uint32_t value) { return (value + 5) / 10; };
  return fmt::format("it is sent {:.2f} MB a step at {:.2f} MB/s, which takes {} % of the time, and steps of "
                     "{:.1f} ms wait for it {} % of the time",
                     static_cast<double>(measured.bytes_per_step) / 1e6,
                     static_cast<double>(measured.bytes_per_second) / 1e6, percent(measured.busy_permille),
                     static_cast<double>(measured.step_us) / 1e3, percent(measured.waited_permille));
}

std::optional<copy_cost::word> copy_cost::note(const copy_activity& is, protocol::time_point now) {
  if (noted_ && now - *noted_ < own_pause_min) add(now - *noted_);
  noted_ = now;
  const bool is_step = is.applied > was_.applied;
  follow(is);
  if (!is_step || !is_full()) return std::nullopt;
  const bool is_first = figures_.steps == 0;
  const bool was_slow = figures_.is_slow;
  figures_ = measured();
  figures_.is_slow = is_slow_copy(figures_, was_slow);
  window_ = window{.first = was_.applied, .bytes = was_.bytes};
  return is_first || was_slow != figures_.is_slow ? std::optional(tell()) : std::nullopt;
}

void copy_cost::add(protocol::duration elapsed) {
  if (was_.is_awaited) waited_ += elapsed;
  if (!window_) return;
  window_->lasted += elapsed;
  if (was_.is_on_the_way) window_->busy += elapsed;
  if (was_.is_awaited) window_->waited += elapsed;
}

/// What is measured begins and ends with a step: before the first there may be no work. It is
/// dropped where training goes back, and with the copy: the next one may be behind another link.
void copy_cost::follow(const copy_activity& is) {
  if (!is.counts) figures_ = {};
  if (!is.counts || is.applied < was_.applied)
    window_.reset();
  else if (!window_ && is.applied > was_.applied)
    window_ = window{.first = is.applied, .bytes = is.bytes};
  was_ = is;
}

/// With `snapshots` nothing is sent for a while, which says nothing of the link.
bool copy_cost::is_full() const {
  return window_ && window_->lasted >= window_min && was_.bytes > window_->bytes &&
         was_.applied.value >= window_->first.value + steps_min;
}

protocol::copy_figures copy_cost::measured() const {
  const auto& of = *window_;
  const auto steps = was_.applied.value - of.first.value;
  const auto bytes = was_.bytes - of.bytes;
  return {.steps = steps,
          .step_us = count_us(of.lasted) / steps,
          .bytes_per_step = bytes / steps,
          .bytes_per_second = rate(bytes, of.busy),
          .busy_permille = permille(of.busy, of.lasted),
          .waited_permille = permille(of.waited, of.lasted)};
}

copy_cost::word copy_cost::tell() const {
  const auto copy = protocol::copy_name(keeper_);
  if (!figures_.is_slow) return {false, fmt::format("{} costs little: {}", copy, describe(figures_))};
  const auto* without = protocol::copy_of(keeper_) == 0
                            ? "a host that is lost with its disk takes the only store along"
                            : "fewer hosts may be lost at once";
  return {true, fmt::format("{} costs much: {}. It is kept, since without it {}; {}", copy,
                            describe(figures_), without, way_out(kept_))};
}

} // namespace dlrun::ps_shard
