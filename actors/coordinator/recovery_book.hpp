/// Which losses this start of the coordinator has seen, and what became of them.
#pragma once

#include "actors/protocol/start_messages.hpp"
#include "actors/protocol/time.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::coordinator {

/// One loss of a role and what became of it.
struct recovery_record {
  protocol::role_name role;
  dlrun::incarnation lost, replacement;
  std::string cause;
  protocol::time_point noticed{};
  protocol::duration detected{};                  ///< last sign of life -> notice
  std::optional<protocol::duration> redispatched; ///< notice -> its slots with others
  std::optional<protocol::duration> resumed;      ///< notice -> the replacement's first contribution
  std::uint64_t steps_redone = 0; ///< committed steps that all had to make again because of it
};

/// Pure: counts what losses of roles cost, for the report and the user. Decides nothing.
class recovery_book {
public:
  /// A role was lost: at the time of which the agent tells, else `now`. It may be told after its
  /// replacement takes part again.
  void add(const protocol::role_exited& exited, protocol::time_point now);
  bool has(const protocol::role_name& role, dlrun::incarnation lost) const;
  /// A start has begun: the replacement of those lost that have none.
  void on_replaced(const protocol::role_name& role, dlrun::incarnation by);
  /// The slots of that start of a worker are with others, `after` the notice.
  void on_redispatched(worker_id lost, dlrun::incarnation incarnation, protocol::duration after);
  /// A start takes part again: a worker has contributed, a PS shard has made a version. @returns
  /// the losses that are made good by that.
  std::vector<recovery_record> on_resumed(const protocol::role_name& role, dlrun::incarnation incarnation,
                                          protocol::time_point now);
  /// Training went back, not on purpose, and `steps` are made again: the doing of the newest loss
  /// that is not made good yet; of a PS shard if there is one, since a worker alone takes nothing
  /// that others cannot compute.
  void on_steps_redone(std::uint64_t steps);

  const std::vector<recovery_record>& all() const { return all_; }

private:
  struct resumption {
    dlrun::incarnation by;
    protocol::time_point at;
  };

  std::vector<recovery_record> all_;                  ///< in the order in which they were told of
  std::map<protocol::role_name, resumption> resumed_; ///< the newest of each role
};

} // namespace dlrun::coordinator
