#include "actors/link/greeting.hpp"

namespace dlrun::link {
namespace {

wire_peer to_wire(const peer_id& who) {
  return {static_cast<std::uint32_t>(who.role.kind), who.role.index, who.incarnation.value};
}

result<peer_id> from_wire(const wire_peer& who) {
  if (who.kind > static_cast<std::uint32_t>(protocol::last_role_kind))
    return fail(error_code::protocol, fmt::format("a greeting names role {}, which there is not", who.kind));
  return peer_id{{static_cast<protocol::role_kind>(who.kind), who.index}, {who.incarnation}};
}

} // namespace

std::string to_string(const peer_id& who) {
  return fmt::format("{} (incarnation {})", protocol::to_string(who.role), who.incarnation);
}

hello make_hello(const transport::run_token& token, const peer_id& from, const peer_id& to) {
  return {.token = token, .from = to_wire(from), .to = to_wire(to)};
}

result<peer_id> dialler_of(const hello& said) { return from_wire(said.from); }

result<peer_id> wanted_of(const hello& said) { return from_wire(said.to); }

result<void> check_welcome(const welcome& said, const peer_id& wanted) {
  if (said.magic != welcome_magic)
    return fail(error_code::protocol,
                fmt::format("what answers for {} does not speak as dlrun does", to_string(wanted)));
  switch (said.status) {
  case greeting_status::welcome:
    if (said.version == link_version) return {};
    break;
  case greeting_status::other_run:
    return fail(error_code::fenced,
                fmt::format("what answers for {} belongs to another run", to_string(wanted)));
  case greeting_status::not_here:
    return fail(error_code::role_lost, fmt::format("{} is not there (any more)", to_string(wanted)));
  case greeting_status::other_version: break;
  }
  return fail(
      error_code::bad_usage,
      fmt::format("{} is of another version of dlrun (link version {}, here {}): all processes of a job "
                  "must be of one",
                  to_string(wanted), said.version, link_version));
}

} // namespace dlrun::link
