/// Which starts of roles are believed, and may take part (rules R4, R35).
#pragma once

#include "actors/coordinator/fence_book.hpp"
#include "actors/coordinator/start_book.hpp"
#include "actors/protocol/membership_messages.hpp"
#include "actors/protocol/roles.hpp"

#include <string>

namespace dlrun::coordinator {

/// Who says that there is such a start.
enum class claimant { role, agent };

/// Pure: a start is believed whose fence was issued, and that is not older than the newest that was
/// heard of. The agent is believed of starts too that an agent before it has made.
namespace start_claims {

/// `role` is one that the books have.
bool is_believed(const start_book& starts, const fence_book& fences, const protocol::role_name& role,
                 const protocol::fence& self, claimant by);
/// It is for the agent to say first that it takes this start over, which an agent before it has
/// made (R35).
bool awaits_agent(const start_book& starts, const fence_book& fences, const protocol::join& join);
/// Why that start may not take part; "": it may.
std::string why_refused(const start_book& starts, const fence_book& fences, const protocol::join& join);

} // namespace start_claims
} // namespace dlrun::coordinator
