#include "actors/agent/stall_board.hpp"

#include <bit>
#include <fmt/format.h>

namespace dlrun::agent {
namespace {

using protocol::stall_phase;

std::string words_of(const protocol::stall& what) {
  switch (what.phase) {
  case stall_phase::gone: return "which is not there";
  case stall_phase::silent: return "which is not heard";
  case stall_phase::connecting:
    return fmt::format("which has not heard where ps_shard {} stands", what.ps_shard);
  case stall_phase::fetching: return fmt::format("which lacks parameters of ps_shard {}", what.ps_shard);
  case stall_phase::computing: return fmt::format("which computes slot {}", what.slot);
  case stall_phase::pushing:
    return fmt::format("whose gradient of slot {} is not with ps_shard {}", what.slot, what.ps_shard);
  case stall_phase::evaluating: return "which evaluates that version";
  case stall_phase::logging: return "whose disk, or its copy, is behind";
  case stall_phase::updating: break;
  }
  return "which has all gradients and updates its parameters";
}

} // namespace

std::string describe(const protocol::stall& what, const std::string& host) {
  return fmt::format("{}{}, {}", protocol::to_string(what.role), host.empty() ? "" : " on " + host,
                     words_of(what));
}

namespace {

protocol::duration lasted(const protocol::stall& what) {
  return protocol::duration(static_cast<protocol::duration::rep>(what.after_us));
}

protocol::job_event event_of(const protocol::stall& what, const std::string& host) {
  protocol::job_event event{
      .event = what.is_over ? "stall-over" : "stalled",
      .role = what.role,
      .incarnation = what.incarnation,
      .text = {},
      .numbers = {.has_step = true, .step = what.version.value, .after_us = what.after_us},
      .place = {host, std::string{to_string(what.phase)}}};
  if (what.has_slot) event.numbers.values.push_back(protocol::named_number("slot", what.slot.value));
  event.text = fmt::format("{} for {:.1f} s after step {}: it {} for {}",
                           what.is_over ? "there was no step" : "no step", protocol::to_seconds(lasted(what)),
                           what.version, what.is_over ? "waited" : "waits", describe(what, host));
  return event;
}

} // namespace

std::optional<protocol::job_event> stall_board::hear(const protocol::stall& what, const std::string& host,
                                                     protocol::time_point now) {
  const bool is_known = what.is_over && ended_ == what.version;
  ended_.reset();
  stalled_.reset();
  if (!what.is_over) stalled_ = {what, host, now - lasted(what)};
  return is_known ? std::nullopt : std::optional(event_of(what, host));
}

std::optional<protocol::job_event> stall_board::look(std::uint64_t step, protocol::time_point now) {
  if (!stalled_ || step <= stalled_->what.version.value) return std::nullopt;
  auto over = stalled_->what;
  over.is_over = true;
  over.after_us = static_cast<std::uint64_t>((now - stalled_->since).count());
  const auto host = stalled_->host;
  stalled_.reset();
  ended_ = over.version;
  return event_of(over, host);
}

std::optional<stall_view> stall_board::view(std::uint64_t step, protocol::time_point now) const {
  if (!stalled_ || step > stalled_->what.version.value) return std::nullopt;
  return stall_view{stalled_->what, stalled_->host, now - stalled_->since};
}

} // namespace dlrun::agent
