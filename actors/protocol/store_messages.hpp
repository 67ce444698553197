/// Between the agent and the agents of other hosts when a job is complete: the store of a PS shard,
/// as files. Only asked for once no role of the job runs; each answer is for one request, so that
/// any of them may be asked again.
#pragma once

#include <cstdint>
#include <dlrun/ids.hpp>
#include <string>
#include <vector>

namespace dlrun::protocol {

/// Agent -> host agent: which files are there of the store of that PS shard?
struct store_listing_wanted {
  ps_shard_id shard;

  template <class Inspector>
  friend auto inspect(Inspector& f, store_listing_wanted& x) {
    return f(x.shard);
  }
};

struct stored_file {
  std::string path; ///< relative to the folder of the store
  std::uint64_t bytes = 0;
  bool is_folder = false;

  bool operator==(const stored_file&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, stored_file& x) {
    return f(x.path, x.bytes, x.is_folder);
  }
};

struct store_listing {
  std::string failure; ///< why there is none; else empty
  std::vector<stored_file> files;

  template <class Inspector>
  friend auto inspect(Inspector& f, store_listing& x) {
    return f(x.failure, x.files);
  }
};

/// Agent -> host agent: bytes of one of these files.
struct store_part_wanted {
  ps_shard_id shard;
  std::string path;
  std::uint64_t offset = 0;
  std::uint32_t size = 0; ///< at most store_part_bytes_max

  bool operator==(const store_part_wanted&) const = default;

  template <class Inspector>
  friend auto inspect(Inspector& f, store_part_wanted& x) {
    return f(x.shard, x.path, x.offset, x.size);
  }
};

struct store_part {
  std::string failure; ///< why there is none; else empty
  std::string bytes;

  template <class Inspector>
  friend auto inspect(Inspector& f, store_part& x) {
    return f(x.failure, x.bytes);
  }
};
/// Half of what a message has room for.
inline constexpr std::uint32_t store_part_bytes_max = std::uint32_t{32} << 10;

} // namespace dlrun::protocol
