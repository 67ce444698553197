#include "transport/joined_parameters.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <cstring>
#include <dlrun/check.hpp>
#include <numeric>
#include <sys/mman.h>
#include <unistd.h>

namespace dlrun::transport {
namespace {

/// Where a part lies in the area, in bytes, and which of it are whole pages: [whole_begin,
/// whole_end), which may be empty.
struct placed_part {
  std::size_t begin, end, whole_begin, whole_end;
};

placed_part place(std::size_t first, std::size_t floats) {
  const auto begin = first * sizeof(float), end = begin + floats * sizeof(float);
  const auto whole_begin = (begin + segment_page_bytes - 1) / segment_page_bytes * segment_page_bytes;
  const auto whole_end = end / segment_page_bytes * segment_page_bytes;
  return whole_begin < whole_end ? placed_part{begin, end, whole_begin, whole_end}
                                 : placed_part{begin, end, end, end};
}

} // namespace

bool joined_view::unchanged() const {
  return std::ranges::all_of(parts, [](const part& p) { return p.reader->unchanged(p.view); });
}

bool joined_parameters::is_possible() {
  return segment_page_bytes % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) == 0;
}

joined_parameters::joined_parameters(std::vector<std::size_t> part_floats, remapping_listener remaps)
    : part_floats_(std::move(part_floats))
    , floats_(std::accumulate(part_floats_.begin(), part_floats_.end(), std::size_t{0}))
    , remaps_(std::move(remaps)) {
  DLRUN_CHECK(!part_floats_.empty() && (part_floats_.size() == 1 || is_possible()),
              "{} parts cannot be joined", part_floats_.size());
}

joined_parameters::~joined_parameters() {
  for (const auto& one : areas_)
    if (one.address != nullptr) ::munmap(one.address, floats_ * sizeof(float));
}

result<joined_view> joined_parameters::view(timeline_id timeline, version_id version,
                                            const readers& readers) {
  DLRUN_CHECK(readers.size() == part_floats_.size(), "{} readers for {} parts", readers.size(),
              part_floats_.size());
  joined_view made;
  std::size_t first = 0;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const auto found = readers[i] ? readers[i]->view(timeline, version) : std::nullopt;
    if (!found)
      return fail(error_code::role_lost, fmt::format("version {} is not served any more by all", version));
    DLRUN_CHECK(readers[i]->floats() == part_floats_[i] && readers[i]->first() == first,
                "a part of {} floats from {} on, not {} from {} on", readers[i]->floats(),
                readers[i]->first(), part_floats_[i], first);
    first += part_floats_[i];
    made.parts.push_back({readers[i], *found});
  }
  if (readers.size() == 1) {
    made.values = made.parts.front().view.values;
    return made;
  }
  auto joined = join(version.value % 2, made);
  if (!joined) return tl::unexpected(joined.error());
  made.values = *joined;
  return made;
}

result<void> joined_parameters::make_room(area& into) const {
  void* const room = ::mmap(nullptr, floats_ * sizeof(float), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED)
    return base::fail_errno(fmt::format("cannot get address space for {} parameters", floats_));
  into.address = static_cast<std::byte*>(room);
  into.parts.resize(part_floats_.size());
  return {};
}

result<std::span<const float>> joined_parameters::join(std::size_t parity, const joined_view& view) {
  auto& into = areas_.at(parity);
  if (into.address == nullptr)
    if (auto made = make_room(into); !made) return tl::unexpected(made.error());
  std::size_t first = 0;
  for (std::size_t i = 0; i < view.parts.size(); ++i) {
    const auto& [reader, found] = view.parts[i];
    const auto at = place(first, part_floats_[i]);
    auto& mapped = into.parts[i];
    if (at.whole_begin < at.whole_end && (mapped.reader != reader || mapped.buffer != found.buffer)) {
      mapped.reader = nullptr;
      if (remaps_) remaps_(parity);
      auto done = reader->map_again(found.buffer, at.whole_begin - at.begin, at.whole_end - at.whole_begin,
                                    into.address + at.whole_begin);
      if (!done) return tl::unexpected(done.error());
      mapped = {reader, found.buffer};
    }
    const auto bytes = std::as_bytes(found.values);
    const auto copy = [&](std::size_t begin, std::size_t end) {
      std::memcpy(into.address + begin, bytes.data() + (begin - at.begin), end - begin);
    };
    copy(at.begin, at.whole_begin);
    copy(at.whole_end, at.end);
    first += part_floats_[i];
  }
  return std::span<const float>{reinterpret_cast<const float*>(into.address), floats_};
}

} // namespace dlrun::transport
