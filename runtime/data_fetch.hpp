/// Fetches missing parts of the job's data from hosts that have them.
#pragma once

#include "runtime/array_intake.hpp"
#include "runtime/data_giver.hpp"
#include "security/tls_context.hpp"
#include "transport/run_token.hpp"

#include <chrono>
#include <functional>
#include <map>

namespace dlrun::runtime {

struct data_fetch_options {
  transport::run_token token;
  std::shared_ptr<const security::tls_context> tls;
  data_source root;       ///< gives, and knows who else does
  std::uint32_t turn = 0; ///< of this host: so hosts begin with different givers
  /// Called several times a second; true ends the fetch.
  std::function<bool()> is_stopped = [] { return false; };
  /// The fetch fails when no giver has sent a block for this long.
  std::chrono::milliseconds patience{30'000};
  /// A giver that sends nothing for this long is given up.
  std::chrono::milliseconds giver_patience{10'000};
  /// Gets a line for the log when the fetch begins with a giver, or gives one up.
  std::function<void(const std::string&)> note = [](const auto&) {};
};

/// Bytes received, by host.
using given_bytes = std::map<std::string, std::uint64_t>;

/// Fills `arrays`. It asks other hosts before the root. When a giver fails, or sends a block with a
/// wrong digest, the next giver sends the rest; blocks that were right stay. Blocks.
/// @returns bad_data naming each giver and what was wrong with it, interrupted.
result<given_bytes> fetch_data(std::span<array_intake> arrays, const data_fetch_options& options);

} // namespace dlrun::runtime
