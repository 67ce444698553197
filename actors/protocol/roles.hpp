/// Who a role is: kind, index, and the fence of one start of it.
#pragma once

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <string_view>
#include <vector>

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

/// Keepers are numbered by copy, and by PS shard: of PS shard 2 keeper 2 has the first copy of the
/// store, keeper 1002 the second. More than there can be PS shards.
inline constexpr std::uint32_t keepers_per_copy = 1000;
/// Of that copy of the PS shard's store, the first of which is 0.
constexpr role_name keeper_role(ps_shard_id id, std::uint32_t copy = 0) {
  return {role_kind::keeper, copy * keepers_per_copy + id.value};
}
/// The keepers of a job with so many copies of each store, the first copies first.
inline std::vector<role_name> keeper_roles(std::uint32_t ps_shards, std::uint32_t copies) {
  std::vector<role_name> all;
  for (std::uint32_t copy = 0; copy < copies; ++copy)
    for (std::uint32_t shard = 0; shard < ps_shards; ++shard) all.push_back(keeper_role({shard}, copy));
  return all;
}
/// The PS shard whose store a PS shard or a keeper has.
constexpr ps_shard_id shard_of(const role_name& role) {
  return {role.kind == role_kind::keeper ? role.index % keepers_per_copy : role.index};
}
/// Which copy a keeper has.
constexpr std::uint32_t copy_of(const role_name& keeper) { return keeper.index / keepers_per_copy; }
/// For people: "the copy of ps_shard 2", or of another than the first "copy 2 of ps_shard 2".
inline std::string copy_name(const role_name& keeper) {
  const auto shard = shard_of(keeper).value;
  if (copy_of(keeper) == 0) return fmt::format("the copy of ps_shard {}", shard);
  return fmt::format("copy {} of ps_shard {}", copy_of(keeper) + 1, shard);
}
/// It has a copy of that PS shard's store.
constexpr bool keeps_copy_of(const role_name& role, ps_shard_id shard) {
  return role.kind == role_kind::keeper && shard_of(role) == shard;
}

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
