/// Memory in which a PS shard makes its versions, and which outlives it (rule R36).
#pragma once

#include "base/unique_fd.hpp"
#include "transport/parameter_segment.hpp"

#include <dlrun/error.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace dlrun::common {

/// The memory in which one start of a PS shard makes its versions: a memfd for the parameters, and
/// one for the optimizer's state and what goes with it. The agent of the host makes both, empty,
/// for each start, and holds them open until a later start has a whole version. Only the PS shard
/// lays them out and writes.
struct retained_memory {
  base::unique_fd parameters;
  base::unique_fd state;

  /// @returns system when there is none.
  static result<retained_memory> create();
  /// The newest whole version, as far as that can be seen from outside.
  std::optional<transport::whole_version> newest() const;
};

/// Memory that a start of a PS shard is given; empty where no memory outlives the process.
struct ps_shard_memory {
  retained_memory own;
  retained_memory former; ///< that an earlier start left
};

/// The options that precede the descriptors' numbers in a PS shard's arguments, parameters first:
/// of its own memory, and of what an earlier start left.
inline constexpr std::string_view retained_option = "--retained-fd";
inline constexpr std::string_view former_option = "--former-fd";

/// What was inherited, of which there are two or none. @returns protocol for another number of
/// them.
result<retained_memory> adopt_retained(const std::vector<int>& descriptors);

} // namespace dlrun::common
