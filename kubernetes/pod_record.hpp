/// pod_record: what is kept of a pod of a host, of the 10 KB that Kubernetes tells of it.
#pragma once

#include "kubernetes/pod_slot.hpp"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

// Labels of the pods of hosts.
inline constexpr auto slot_label = "dlrun/slot";
inline constexpr auto incarnation_label = "dlrun/incarnation";
/// Of those of group `ps`: that word. Others have it not.
inline constexpr auto group_label = "dlrun/group";
inline constexpr auto ps_group_word = "ps";

enum class pod_phase : std::uint8_t { pending, running, succeeded, failed };

/// Each pod that is made for a slot is an incarnation, from 1.
struct pod_record {
  std::string name;
  std::string uid;
  std::string owner{};   ///< uid of the object that controls it
  std::string address{}; ///< "": it has none yet
  pod_slot slot{};
  std::uint32_t incarnation = 0;
  pod_phase phase = pod_phase::pending;
  bool is_going = false;                ///< it was deleted, and may still run
  bool is_disrupted = false;            ///< condition DisruptionTarget: it was evicted, or its node ends
  bool runs = false;                    ///< its container does
  bool is_held_back = false;            ///< CrashLoopBackOff: the kubelet waits before it starts it again
  std::uint32_t restarts = 0;           ///< of its container
  std::uint32_t ends = 0;               ///< likewise: as many, or one more while it does not run
  bool is_out_of_memory = false;        ///< why it ended last
  std::uint64_t memory = 0;             ///< bytes that it may use; 0: nobody says
  std::string reason{};                 ///< why it failed, or waits; "" where nothing is said
  std::string waits_for{};              ///< of one that does not run, for people; "" where nothing is said
  bool cannot_start = false;            ///< its container: an image or a configuration is wrong
  std::string node{};                   ///< on which it is; "": none has been chosen
  bool has_other_bits = false;          ///< why it ended last: its node computes others than the job
  std::vector<std::string> keeps_off{}; ///< nodes that it is not to be on

  bool operator==(const pod_record&) const = default;
};

/// It runs, or is to, and nobody has deleted it.
bool is_alive(const pod_record& pod);

/// @returns nothing for what is no pod of a host.
std::optional<pod_record> read_pod(const nlohmann::json& pod);

} // namespace dlrun::kubernetes
