/// An array of the job's data that comes from other hosts, block by block.
#pragma once

#include "data/block_digests.hpp"
#include "data/memory_budget.hpp"
#include "data/memory_file.hpp"
#include "data/recorded_data.hpp"

#include <deque>
#include <memory>

namespace dlrun::runtime {

/// What this host already has of an array.
struct array_here {
  data::array_place place{};
  const records::ArrayDigest* recorded = nullptr; ///< what it has to be
  std::string name;                               ///< of its file, for errors
  /// The array as it was decoded here, if it is of the recorded shape and type.
  std::optional<data::stored_array> own{};
  std::vector<std::uint64_t> missing{}; ///< blocks that are not here, ascending
  std::string why{};                    ///< what is missing or other; "" when nothing is
};

/// Puts an array together: allocates its memory, copies the blocks that are here, and takes the
/// others from other hosts, in any order, each only if its digest is the recorded one. One thread
/// at a time.
class array_intake {
public:
  /// @returns bad_data when `memory` has no room for it; protocol for a record that makes no sense;
  /// system.
  static result<array_intake> begin(const array_here& here, data::memory_budget& memory);

  data::array_place place() const { return place_; }
  std::uint64_t size() const { return bytes_; }
  std::uint64_t missing_bytes() const { return missing_bytes_; }

  /// The next run of blocks to ask a host for: they are missing, and nobody was asked for them.
  std::optional<data::place_run> next();
  data::place_run bytes_of(const data::place_run& blocks) const;
  /// Memory of the whole array, into which those blocks are written.
  std::span<std::byte> room() const;
  /// Keeps that memory.
  std::shared_ptr<void> owner() const { return file_; }

  /// These blocks have been written: keeps those with the recorded digest; next() gives the others
  /// again. @returns bad_data naming the first wrong block.
  result<void> take(const data::place_run& blocks);
  /// These blocks did not come: next() gives them again.
  void put_back(const data::place_run& blocks) { waiting_.push_front(blocks); }

  bool is_whole() const { return missing_bytes_ == 0; }
  /// The whole array, sealed. Nobody may use room() any more.
  result<data::stored_array> finish() &&;

private:
  array_intake(data::array_place place, const records::ArrayDigest& recorded, std::string name)
      : place_{place}
      , recorded_{&recorded}
      , name_{std::move(name)} {}
  void copy(const array_here& here) const;
  bool is_right(std::uint64_t block) const;

  data::array_place place_;
  const records::ArrayDigest* recorded_;
  std::string name_;
  std::uint64_t bytes_ = 0;
  std::uint64_t missing_bytes_ = 0;
  std::shared_ptr<data::memory_file> file_;
  std::deque<data::place_run> waiting_; ///< blocks that nobody was asked for
};

} // namespace dlrun::runtime
