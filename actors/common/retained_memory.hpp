/// Memory in which a PS shard makes its versions, and which outlives it (rule R36).
#pragma once

#include "base/unique_fd.hpp"
#include "transport/parameter_segment.hpp"

#include <dlrun/error.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace dlrun::common {

/// Two memfds: of the parameters, and of the optimizer's state with what goes beside it. The agent
/// of the host makes them, empty, for each start of a PS shard, and has them open until a later
/// start holds a version itself; the PS shard lays them out and is the only one that writes.
struct retained_memory {
  base::unique_fd parameters;
  base::unique_fd state;

  /// @returns system when there is none.
  static result<retained_memory> create();
  /// The newest version that is whole there, as far as that can be seen from outside.
  std::optional<transport::whole_version> newest() const;
};

/// What a start of a PS shard is given; empty where nothing outlives it.
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
