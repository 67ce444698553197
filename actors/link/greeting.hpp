/// The first words on a control connection: who dials, and who is wanted.
#pragma once

#include "actors/protocol/roles.hpp"
#include "transport/run_token.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <string>
#include <type_traits>

namespace dlrun::link {

/// One start of a role, or the agent of a host: what a process is at the ends of its connections.
struct peer_id {
  protocol::role_name role;
  dlrun::incarnation incarnation;
  auto operator<=>(const peer_id&) const = default;
};
std::string to_string(const peer_id& who);

// The dialler says `hello`, the other `welcome`; both are of fixed size and travel as they lie in
// memory. Frames follow.

inline constexpr std::uint32_t hello_magic = 0x68'63'6c'64;   // "dlch"
inline constexpr std::uint32_t welcome_magic = 0x77'63'6c'64; // "dlcw"
/// Counts changes of what travels on a control connection, messages included.
inline constexpr std::uint32_t link_version = 1;

struct wire_peer {
  std::uint32_t kind = 0;
  std::uint32_t index = 0;
  std::uint64_t incarnation = 0;
};
struct hello {
  std::uint32_t magic = hello_magic;
  std::uint32_t version = link_version;
  transport::run_token token; ///< of the run
  wire_peer from, to;
};
enum class greeting_status : std::uint32_t { welcome = 1, other_run, not_here, other_version };
struct welcome {
  std::uint32_t magic = welcome_magic;
  std::uint32_t version = link_version;
  greeting_status status = greeting_status::welcome;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(hello) == 56 && std::is_trivially_copyable_v<hello>);
static_assert(sizeof(welcome) == 16 && std::is_trivially_copyable_v<welcome>);

hello make_hello(const transport::run_token& token, const peer_id& from, const peer_id& to);
/// Who dials, as `said` has it. @returns protocol for what is no role.
result<peer_id> dialler_of(const hello& said);
/// Who is wanted. @returns protocol for what is no role.
result<peer_id> wanted_of(const hello& said);
/// @returns fenced for another run, role_lost when the wanted one is not there, bad_usage for
/// another version of dlrun, protocol for what is no welcome.
result<void> check_welcome(const welcome& said, const peer_id& wanted);

} // namespace dlrun::link
