/// segment_set: the segment files of one store.
#pragma once

#include "persistence/segment_file.hpp"

#include <cstdint>
#include <dlrun/error.hpp>
#include <dlrun/ids.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace dlrun::persistence {

/// Where a payload is.
struct segment_place {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
};

/// A payload to be appended.
struct segment_payload {
  segment_record head;
  std::span<const std::byte> bytes;
};

/// The segment files of a store: appends payloads to one file after the other, and knows which
/// steps each file holds. It keeps some files that hold no step any more and writes over them; it
/// removes the others. append() and the cuts belong to one thread at a time, all other functions
/// may be called beside them.
class segment_set {
public:
  /// `directory` must exist. A file is closed when it reaches `segment_bytes`.
  segment_set(std::shared_ptr<file_system> files, std::string directory, std::uint64_t segment_bytes);
  /// Leaves no spare files.
  ~segment_set();
  segment_set(const segment_set&) = delete;
  segment_set& operator=(const segment_set&) = delete;

  /// After a start: finds the files that are there. The caller then names the records that count,
  /// by use(), and ends with remove_unused(): the other files hold none.
  result<void> find_files();
  void use(std::uint64_t segment, step_id step);
  void remove_unused();

  /// Appends all payloads or none. @returns a place for each, in order.
  result<std::vector<segment_place>> append(std::span<const segment_payload> payloads);
  /// Everything found or appended before survives a power cut.
  result<void> sync();
  /// Reads a payload and keeps nothing. @returns storage_damaged naming file and offset, system.
  result<void> verify(const segment_place& place, const segment_record& expected) const;
  /// The file that has a payload.
  result<std::shared_ptr<const segment_reader>> open(const segment_place& place) const;

  /// The records of the steps from `first` on, or below `end`, count no more.
  void cut_from(step_id first);
  void cut_below(step_id end);

  /// Bytes of all files, spare ones included.
  std::uint64_t bytes() const;
  /// Removes the spare files, because their space is needed.
  void remove_spares();

private:
  struct file {
    std::uint64_t bytes = 0;
    bool used = false;
    /// The steps [first, end) are among what it holds.
    step_id first;
    step_id end;
  };

  result<std::vector<segment_place>> append_each(std::span<const segment_payload> payloads);
  result<void> begin_file_for(std::uint64_t bytes);
  result<std::unique_ptr<segment_writer>> make_writer();
  void roll_back(std::uint64_t segment, std::uint64_t bytes);
  void close_current();
  bool keep_spare(const spare_segment& unneeded);
  void remove(std::uint64_t number);
  void remove_if(bool (*unneeded)(const file&, step_id), step_id limit);
  result<std::shared_ptr<segment_reader>> reader(std::uint64_t segment) const;
  result<void> sync_found(std::uint64_t segment);

  std::shared_ptr<file_system> files_;
  std::string directory_;
  std::uint64_t segment_bytes_;

  mutable std::mutex mutex_; // what follows; not held during input and output
  std::map<std::uint64_t, file> known_;
  std::vector<spare_segment> spares_;
  std::uint64_t next_number_ = 1;
  std::shared_ptr<segment_writer> current_;
  /// Not synced as a whole, in order; the last may be current_.
  std::vector<std::shared_ptr<segment_writer>> unsynced_;
  /// Found by find_files() and not synced since: whoever wrote them may not have.
  std::set<std::uint64_t> found_unsynced_;
  mutable std::map<std::uint64_t, std::shared_ptr<segment_reader>> readers_;

  std::mutex sync_mutex_; // held during a sync; taken before mutex_
  /// The names of the files with numbers below this survive a power cut.
  std::uint64_t directory_synced_below_ = 0;
};

} // namespace dlrun::persistence
