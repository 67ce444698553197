/// Which stores a root fetches that comes back to a job which is complete, and when (R38).
#pragma once

#include "actors/agent/hosted_roles.hpp"

#include <optional>
#include <string>
#include <vector>

namespace dlrun::agent {

/// The store of a PS shard is to be brought from there.
struct store_to_bring {
  ps_shard_id shard;
  std::string host;
  bool operator==(const store_to_bring&) const = default;
};

struct gathered_stores {
  bool is_settled = false; ///< it is no use to wait any longer
  std::vector<store_to_bring> bring{};
  std::vector<ps_shard_id> missing{}; ///< the last version of these is on no host that is there
  bool operator==(const gathered_stores&) const = default;
};

/// Pure: a store serves that holds the last version of the job, wherever it is; one in the run
/// folder has not to be brought. It waits for hosts that are on their way, and for those that have
/// to be there before a job begins; then a while for others that may come by themselves.
class store_gathering {
public:
  /// For hosts that may come back; and, once all is found, for those that are on their way: they
  /// are to hear that the job is over.
  static constexpr protocol::duration patience = std::chrono::seconds(10);

  explicit store_gathering(last_stores last)
      : last_(last) {}

  /// At every tick.
  gathered_stores decide(const hosted_roles& hosts, protocol::time_point now);

private:
  gathered_stores look(const hosted_roles& hosts) const;
  bool is_settled(const gathered_stores& found, const hosted_roles& hosts, protocol::time_point now);

  last_stores last_;
  std::optional<protocol::time_point> began_{};
  std::optional<protocol::time_point> quiet_since_{}; ///< nobody is on the way
};

} // namespace dlrun::agent
