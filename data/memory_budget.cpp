#include "data/memory_budget.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <unistd.h>

namespace dlrun::data {
namespace {

std::uint64_t half_of_the_machine() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  return pages * page / 2;
}

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

} // namespace

memory_budget::memory_budget(std::uint64_t limit)
    : limit_(limit != 0 ? limit : half_of_the_machine()) {}

result<void> memory_budget::take(std::uint64_t bytes, const std::string& name) {
  if (bytes > limit_ - taken_)
    return fail(
        error_code::bad_data,
        fmt::format("{}: decoded it takes {:.1f} MiB of memory, of {:.1f} MiB that are left for data; set "
                    "data.memory_limit higher, or use format npy, which is mapped and takes none",
                    name, mebibytes(bytes), mebibytes(limit_ - taken_)));
  taken_ += bytes;
  return {};
}

} // namespace dlrun::data
