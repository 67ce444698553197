#include "actors/coordinator/start_claims.hpp"

#include <fmt/format.h>

namespace dlrun::coordinator::start_claims {

using protocol::join;
using protocol::role_kind;

bool is_believed(const start_book& starts, const fence_book& fences, const protocol::role_name& role,
                 const protocol::fence& self, claimant by) {
  const auto newest = starts.newest(role);
  return starts.of(role).newest == self || fences.is_issued(role, self, newest) ||
         (by == claimant::agent && fences.was_issued(role, self, newest));
}

bool awaits_agent(const start_book& starts, const fence_book& fences, const join& join) {
  return starts.has(join.role) && !is_believed(starts, fences, join.role, join.self, claimant::role) &&
         is_believed(starts, fences, join.role, join.self, claimant::agent);
}

std::string why_refused(const start_book& starts, const fence_book& fences, const join& join) {
  const auto name = protocol::to_string(join.role);
  const bool joins = join.role.kind == role_kind::ps_shard || join.role.kind == role_kind::worker;
  if (!joins || !starts.has(join.role)) return fmt::format("this job has no {} that could join", name);
  const auto newest = starts.newest(join.role);
  if (!is_believed(starts, fences, join.role, join.self, claimant::role)) {
    if (join.self.incarnation < newest)
      return fmt::format("{} incarnation {} is not the newest, which is {}", name, join.self.incarnation,
                         newest);
    return fmt::format(
        "{} incarnation {} was never issued with this token; the newest that was started is {}", name,
        join.self.incarnation, newest);
  }
  if (starts.is_over(join.role, join.self))
    return fmt::format("{} incarnation {} is over; the newest that was issued is {}", name,
                       join.self.incarnation, fences.last_issued(join.role));
  return starts.arithmetic().why_refused(join);
}

} // namespace dlrun::coordinator::start_claims
