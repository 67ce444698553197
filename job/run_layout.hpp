/// The names of what dlrun keeps in a run folder. docs/formats.md says what each of them holds.
#pragma once

namespace dlrun::run_layout {

inline constexpr auto record = "run.record"; ///< what the run is trained with
inline constexpr auto restoring =
    "run.record.restoring";               ///< there until the record is, of a run from an archive
inline constexpr auto spec = "spec.yaml"; ///< for people; spec.1.yaml is revision 1, and so on
inline constexpr auto lock = "run.lock";  ///< held by the root, shared by readers
inline constexpr auto events = "events.jsonl";
inline constexpr auto report = "report.json";
inline constexpr auto secrets = "root.secrets";   ///< of a root that starts again
inline constexpr auto write_rate = ".write-rate"; ///< what measures the disk writes here
inline constexpr auto agent = "agent.json";       ///< where the root's control socket is
inline constexpr auto control_socket = "control.sock";

inline constexpr auto host_mark = "run.id"; ///< of the folder of a host that is not the root's

inline constexpr auto logs = "logs"; ///< a folder: ROLE-INDEX.log of each role
inline constexpr auto journal = "journal";
inline constexpr auto store_prefix = "ps_shard-"; ///< ps_shard-N: the store of PS shard N

} // namespace dlrun::run_layout
