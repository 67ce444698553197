#include "data/memory_budget.hpp"

#include "base/own_machine.hpp"

#include <fmt/format.h>

namespace dlrun::data {
namespace {

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0); }

} // namespace

memory_budget::memory_budget(std::uint64_t limit)
    : limit_(limit != 0 ? limit : base::usable_memory_bytes() / 2) {}

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
