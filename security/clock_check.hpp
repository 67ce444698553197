/// Whether the clock of this host lets it use certificates of its job.
#pragma once

#include "security/credentials.hpp"

#include <dlrun/error.hpp>

namespace dlrun::security {

/// Call this with credentials that were issued a moment ago, before any session: one that fails by
/// the clock fails at one end, and the other end hears no more than that.
/// @returns bad_usage where `mine` are not valid yet, or not any more, by the clock here: with the
/// time here and there, and the way out. bad_usage for what is no certificate.
result<void> check_clock(const credentials& mine);

} // namespace dlrun::security
