/// Gets what is missing of the job's data from hosts that have it.
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
  /// Looked at several times a second: the fetch is to end.
  std::function<bool()> is_stopped = [] { return false; };
  /// With no block for so long from any giver the data does not come.
  std::chrono::milliseconds patience{30'000};
  /// After which a giver that sends nothing is left.
  std::chrono::milliseconds giver_patience{10'000};
  /// Told when a giver is begun with, or left: a line for the log.
  std::function<void(const std::string&)> note = [](const auto&) {};
};

/// Bytes that came, by host.
using given_bytes = std::map<std::string, std::uint64_t>;

/// Fills `arrays`. Other hosts are asked before the root; when one cannot go on, or gives what the
/// digests do not allow, the next one gives the rest: what has come stays. Blocks.
/// @returns bad_data naming each giver and what was wrong with it, interrupted.
result<given_bytes> fetch_data(std::span<array_intake> arrays, const data_fetch_options& options);

} // namespace dlrun::runtime
