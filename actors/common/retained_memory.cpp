#include "actors/common/retained_memory.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sys/mman.h>

namespace dlrun::common {

result<retained_memory> retained_memory::create() {
  retained_memory made;
  made.parameters.reset(::memfd_create("dlrun:parameters", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  made.state.reset(::memfd_create("dlrun:state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.parameters || !made.state)
    return base::fail_errno("cannot create the memory for a PS shard's versions");
  return made;
}

std::optional<transport::whole_version> retained_memory::newest() const {
  const auto whole = transport::whole_versions(parameters.get());
  const auto found = std::ranges::find_first_of(whole, transport::whole_versions(state.get()));
  return found == whole.end() ? std::nullopt : std::optional(*found);
}

result<retained_memory> adopt_retained(const std::vector<int>& descriptors) {
  if (descriptors.empty()) return retained_memory{};
  if (descriptors.size() != 2)
    return fail(error_code::protocol,
                fmt::format("{} descriptors of a PS shard's memory instead of two", descriptors.size()));
  return retained_memory{base::unique_fd{descriptors[0]}, base::unique_fd{descriptors[1]}};
}

} // namespace dlrun::common
