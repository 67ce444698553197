/// The store of a PS shard as files, which go from the host where it ran into the run folder.
#pragma once

#include "actors/protocol/store_messages.hpp"

#include <dlrun/error.hpp>
#include <filesystem>
#include <optional>

namespace dlrun::agent {

/// What is in the folder `store`, which nobody has open, sorted by path. @returns bad_usage when it
/// is not there, limit_exceeded when a message has no room for so many.
result<std::vector<protocol::stored_file>> list_store(const std::filesystem::path& store);

/// @returns exactly the bytes that are wanted of a file below the folder `store`; bad_usage for a
/// path that leads out of it, or bytes beyond its end.
result<std::string> read_store_part(const std::filesystem::path& store,
                                    const protocol::store_part_wanted& wanted);

/// The PS shard runs on another host from here on: the store here, if there is one, becomes
/// STORE.old, since its place is that of the newest. @returns system.
result<void> set_store_aside(const std::filesystem::path& store);
/// Was one set aside, and is there no newer one? @returns system.
result<bool> has_store_aside(const std::filesystem::path& store);
/// The PS shard runs here from here on: what was set aside is better than nothing. @returns whether
/// something was, and there is no newer one; system.
result<bool> take_store_back(const std::filesystem::path& store);

/// A store that comes in parts, in any order. Until it is whole and durable it is beside its place,
/// as STORE.part; then it takes the place of the one that was there. Blocks on the disk.
class store_intake {
public:
  /// Removes what came of an earlier one. @returns bad_usage for a path that leads out of the
  /// folder; system, disk_full.
  static result<store_intake> begin(std::filesystem::path store, ps_shard_id shard,
                                    std::vector<protocol::stored_file> files);

  /// What is to be asked for next; nothing when all has been.
  std::optional<protocol::store_part_wanted> next();
  /// The answer. @returns system, disk_full.
  result<void> add(const protocol::store_part_wanted& wanted, std::string_view bytes);
  bool is_whole() const { return missing_ == 0; }
  std::uint64_t bytes() const { return bytes_; }
  /// Puts the whole one in its place.
  result<void> finish() const;
  /// Removes what has come.
  void discard() const;

private:
  store_intake(std::filesystem::path store, ps_shard_id shard, std::vector<protocol::stored_file> files)
      : store_{std::move(store)}
      , shard_{shard}
      , files_{std::move(files)} {}

  std::filesystem::path part() const { return store_.string() + ".part"; }
  result<void> make_files();

  std::filesystem::path store_;
  ps_shard_id shard_;
  std::vector<protocol::stored_file> files_;
  std::size_t file_ = 0; ///< of the next part
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;   ///< of all
  std::uint64_t missing_ = 0; ///< bytes that have not come
};

} // namespace dlrun::agent
