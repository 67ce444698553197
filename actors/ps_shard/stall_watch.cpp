#include "actors/ps_shard/stall_watch.hpp"

#include <fmt/core.h>
#include <utility>

namespace dlrun::ps_shard {
namespace {

constexpr auto quota_patience = std::chrono::seconds(5);

} // namespace

std::optional<stall_watch::word> stall_watch::on_opening(const error& why, protocol::time_point now) {
  return log_ ? std::nullopt : on_log(why, now);
}

std::optional<stall_watch::word> stall_watch::on_log(const std::optional<error>& why,
                                                     protocol::time_point now) {
  log_ = why;
  return tell("pauses", why, now);
}

std::optional<stall_watch::word> stall_watch::on_snapshot(const std::optional<error>& why,
                                                          protocol::time_point now) {
  const bool was_stalled = std::exchange(snapshot_, why).has_value();
  return was_stalled != why.has_value() && !log_ ? tell("cannot take snapshots", why, now) : std::nullopt;
}

std::optional<stall_watch::word> stall_watch::tell(const char* what, const std::optional<error>& why,
                                                   protocol::time_point now) {
  if (!why && is_stalled()) return std::nullopt;
  since_ = now;
  return word{why.has_value(),
              why ? fmt::format("ps_shard {} {}: {}", shard_.value, what, why->message)
                  : fmt::format("ps_shard {} goes on: the disk takes what it writes again", shard_.value)};
}

std::optional<error> stall_watch::find_hopeless(protocol::time_point now) {
  const auto& why = log_ ? log_ : snapshot_;
  if (!why || why->code != error_code::limit_exceeded || now - since_ < quota_patience) return std::nullopt;
  since_ = now;
  return why;
}

} // namespace dlrun::ps_shard
