#include "persistence/record_log_scan.hpp"

#include "base/crc32c.hpp"
#include "persistence/framing.hpp"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace dlrun::persistence {

namespace {

constexpr std::size_t block_bytes = 32768;
constexpr std::size_t head_bytes = 7; // CRC32C (4), length (2), type (1)
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t search_bytes = std::size_t{1} << 20;

enum fragment_type : std::uint8_t { zero = 0, full = 1, first = 2, middle = 3, last = 4 };

/// RocksDB stores checksums rotated and shifted, since a checksum of data with checksums in it is
/// weak.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8U; }

struct fragment {
  fragment_type type = zero;
  std::uint64_t end = 0;
};

enum class flaw : std::uint8_t { none, cut_off, zeroes, wrong };

class scanner {
public:
  explicit scanner(std::span<const std::byte> bytes)
      : bytes_(bytes) {}

  record_log_scan run() {
    record_log_scan found{log_tail::intact, 0, bytes_.size(), {}};
    bool inside = false;
    for (std::uint64_t at = next_head(0); at < bytes_.size();) {
      const auto [here, problem] = look(at);
      if (problem != flaw::none) return ended_badly(found, at, problem);
      const bool begins = here.type == full || here.type == first;
      if (begins == inside) return ended_badly(found, at, flaw::wrong);
      inside = here.type == first || here.type == middle;
      at = next_head(here.end);
      if (!inside) found.valid_bytes = here.end;
    }
    if (inside) {
      found.tail = log_tail::torn;
      found.why = "the file ends before the last record does";
    }
    return found;
  }

private:
  /// Where the next head may be: the last bytes of a block that cannot hold one are zeroes.
  static std::uint64_t next_head(std::uint64_t at) {
    const auto left = block_bytes - at % block_bytes;
    return left < head_bytes ? at + left : at;
  }

  std::pair<fragment, flaw> look(std::uint64_t at) const {
    const auto rest = bytes_.subspan(at);
    if (rest.size() < head_bytes) return {{}, flaw::cut_off};
    const auto length = get<std::uint16_t>(rest, 4);
    const auto type = get<std::uint8_t>(rest, 6);
    if (type == zero && length == 0) return {{}, flaw::zeroes};
    if (type > last || at % block_bytes + head_bytes + length > block_bytes) return {{}, flaw::wrong};
    const auto checksum = get<std::uint32_t>(rest, 0);
    // The type byte is part of what the checksum is of. A checksum that is right up to the end of
    // the file means that the length was damaged, not that the rest is missing.
    const bool whole = rest.size() >= head_bytes + length;
    const auto covered = rest.subspan(6, whole ? length + 1U : rest.size() - 6);
    const bool right = checksum == masked(base::crc32c(covered));
    if (!whole) return {{}, right ? flaw::wrong : flaw::cut_off};
    if (!right) return {{}, flaw::wrong};
    return {{static_cast<fragment_type>(type), at + head_bytes + length}, flaw::none};
  }

  bool zero_from(std::uint64_t at) const {
    return std::ranges::all_of(bytes_.subspan(at), [](std::byte b) { return b == std::byte{0}; });
  }

  /// Does a page of the record at `at`, and all after it, hold zeroes only?
  bool lost_its_pages(std::uint64_t at) const {
    const auto page = (at / page_bytes + 1) * page_bytes;
    return page < bytes_.size() && zero_from(page);
  }

  /// Is there any whole fragment behind the bad one? Then it was not the end that was being
  /// written. The length of the bad one cannot be believed, so it is looked for at every byte
  /// nearby; farther away, where blocks begin.
  bool something_follows(std::uint64_t bad) const {
    const auto near_end = std::min<std::uint64_t>(bytes_.size(), bad + search_bytes);
    for (auto at = bad + 1; at < near_end; ++at)
      if (look(at).second == flaw::none) return true;
    for (auto block = (bad / block_bytes + 1) * block_bytes; block < bytes_.size(); block += block_bytes)
      if (look(block).second == flaw::none) return true;
    return false;
  }

  record_log_scan ended_badly(record_log_scan found, std::uint64_t at, flaw problem) const {
    const bool torn =
        problem == flaw::cut_off || (problem == flaw::zeroes && zero_from(at)) || lost_its_pages(at);
    if (something_follows(at)) {
      found.tail = log_tail::damaged;
      found.why = fmt::format("the record at byte {} is damaged, and others follow", at);
    } else if (torn) {
      found.tail = log_tail::torn;
      found.why = fmt::format("the write at byte {} was torn", at);
    } else {
      found.tail = log_tail::damaged;
      found.why = fmt::format("the record at byte {} is damaged", at);
    }
    return found;
  }

  std::span<const std::byte> bytes_;
};

} // namespace

result<record_log_scan> scan_record_log(file_system& files, const std::string& path) {
  const auto content = read_file(files, path);
  if (!content) return tl::unexpected(content.error());
  return scanner(std::as_bytes(std::span(*content))).run();
}

} // namespace dlrun::persistence
