/// What a root asks for an archive of its run (R45), while the job runs: the journal of the
/// coordinator, and snapshots of PS shards on other hosts. Each answer is for one request, so that
/// any may be asked again.
#pragma once

#include "actors/protocol/store_messages.hpp"

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// Root -> agent -> coordinator: the next bytes of the journal, as records::JournalCopy.
struct journal_part_wanted {
  std::uint64_t offset = 0;

  template <class Inspector>
  friend auto inspect(Inspector& f, journal_part_wanted& x) {
    return f(x.offset);
  }
};

struct journal_part {
  std::string failure; ///< why there is none; else empty
  std::uint64_t bytes_of_all = 0;
  std::uint32_t crc32c = 0; ///< of all: parts of one moment have the same
  std::string bytes;

  template <class Inspector>
  friend auto inspect(Inspector& f, journal_part& x) {
    return f(x.failure, x.bytes_of_all, x.crc32c, x.bytes);
  }
};
inline constexpr std::size_t journal_part_bytes_max = store_part_bytes_max;

/// Root -> host agent: keep these snapshots of that PS shard until the next such request, whatever
/// becomes of its store, and say which it has. The answer is a store_listing of their files.
struct snapshots_wanted {
  ps_shard_id shard;
  std::vector<std::string> kept; ///< names of files

  template <class Inspector>
  friend auto inspect(Inspector& f, snapshots_wanted& x) {
    return f(x.shard, x.kept);
  }
};

/// Root -> host agent: bytes of one that is kept. The answer is a store_part, shorter than was
/// wanted only at the end of the file.
struct snapshot_part_wanted {
  ps_shard_id shard;
  std::string file;
  std::uint64_t offset = 0;
  std::uint32_t size = 0; ///< at most store_part_bytes_max

  template <class Inspector>
  friend auto inspect(Inspector& f, snapshot_part_wanted& x) {
    return f(x.shard, x.file, x.offset, x.size);
  }
};

} // namespace dlrun::protocol
