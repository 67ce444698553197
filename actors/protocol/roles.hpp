/// Who a role is: kind, index, and the fence of one start of it.
#pragma once

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <string_view>

namespace dlrun::protocol {

enum class role_kind : std::uint8_t {
  coordinator,
  data_dispatcher,
  ps_shard,
  worker,
  agent,
  host_agent,
  keeper
};

inline constexpr role_kind last_role_kind = role_kind::keeper;

constexpr std::string_view to_string(role_kind kind) {
  switch (kind) {
  case role_kind::coordinator: return "coordinator";
  case role_kind::data_dispatcher: return "data_dispatcher";
  case role_kind::ps_shard: return "ps_shard";
  case role_kind::worker: return "worker";
  case role_kind::agent: return "agent";
  case role_kind::host_agent: return "host_agent";
  case role_kind::keeper: return "keeper";
  }
  return "unknown";
}

/// A role of the job: stays the same over restarts.
struct role_name {
  role_kind kind = role_kind::worker;
  std::uint32_t index = 0;

  auto operator<=>(const role_name&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, role_name& x) {
    return f(x.kind, x.index);
  }
};

inline std::string to_string(const role_name& role) {
  return fmt::format("{} {}", to_string(role.kind), role.index);
}

constexpr role_name worker_role(worker_id id) { return {role_kind::worker, id.value}; }
constexpr role_name ps_shard_role(ps_shard_id id) { return {role_kind::ps_shard, id.value}; }
/// Of the copy of that PS shard's store.
constexpr role_name keeper_role(ps_shard_id id) { return {role_kind::keeper, id.value}; }

/// Fence of one start of a role (rule R4): a larger incarnation than any before, and a random
/// token, so that a process that guesses or repeats a number is still refused. Issued by the
/// coordinator before anything starts with it.
struct fence {
  dlrun::incarnation incarnation;
  std::uint64_t token = 0;

  bool operator==(const fence&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, fence& x) {
    return f(x.incarnation, x.token);
  }
};

} // namespace dlrun::protocol
