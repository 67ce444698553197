/// The folder of a run: who may use it, and where in it things are.
#pragma once

#include "base/unique_fd.hpp"
#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// The full path of the folder of a run, in use or not. @returns bad_usage when it is none.
result<std::filesystem::path> find_run(const std::string& folder);

/// Whether a root has the folder: one that begins, trains, or is about to end. False when that
/// cannot be found out.
bool has_root(const std::filesystem::path& folder);

/// That a root has the folder and answers nobody yet, with the way out; "" when no root has it.
std::string tell_unready_root(const std::filesystem::path& folder);

/// That a root of this host has the folder and cannot be asked, since its socket is not there, with
/// the way out; "" when that is there, or no root has the folder.
std::string tell_root_without_socket(const std::filesystem::path& folder);

/// The full path of the folder of a run that is to begin: `wanted`, or runs/<name of the job>.
std::filesystem::path place_for_run(const std::string& wanted, const spec::JobSpec& spec);

/// Whether the folder holds nothing but what a root leaves that was killed while it made the
/// folder, before it wrote run.record. Also true for an empty folder, and for none.
bool holds_at_most_a_beginning(const std::filesystem::path& folder);

/// What becomes of such a beginning when a run begins in its folder.
enum class torn_beginning : std::uint8_t { refused, removed };

/// The folder of a run, locked for this process as long as the object lives: two roots never share
/// one.
class run_folder {
public:
  /// The folder and that of its logs, where they are not there. @returns bad_usage when they cannot
  /// be made; none is left then.
  static result<void> create_folders(const std::filesystem::path& path);
  /// Makes the folder (default: runs/<name of the job>) with the specification as used. @returns
  /// bad_usage when there is something in it already, or it cannot be made.
  static result<run_folder> create(const std::string& wanted, const spec::JobSpec& spec,
                                   torn_beginning torn = torn_beginning::refused);
  /// Opens the folder of an earlier run. Waits 5 s for those who read it. @returns bad_usage when
  /// it is no run folder, or another root has it; in_use when somebody reads it, or is just ending;
  /// system, disk_full.
  static result<run_folder> open(const std::string& folder);
  /// The same; where nothing can be written, as on a read-only volume, as open_to_read(). Then
  /// check_writable() says so.
  static result<run_folder> open_to_resume(const std::string& folder);
  /// For a look: any number of readers, while no root uses it. Writes nothing. Errors as above.
  static result<run_folder> open_to_read(const std::string& folder);
  /// Of a run whose root is this process, which has the folder locked by another object, and keeps
  /// that for as long as this one lives. @returns bad_usage when it is no run folder.
  static result<run_folder> of_own_root(const std::filesystem::path& folder);

  /// @returns bad_usage, with the reason, for one that open_to_resume() has opened only to read.
  result<void> check_writable() const;

  /// Removes the folder of a run that did not begin after all, so that it is not in the way of the
  /// next try, and the folders above it that were made for it.
  void abandon() const;

  const std::filesystem::path& path() const { return path_; }
  /// The specification as used, for people; revision 0 is what the run began with. The truth is
  /// run.record.
  std::filesystem::path spec_file(std::size_t revision = 0) const;
  /// Of all revisions there are, oldest first.
  std::vector<std::filesystem::path> spec_files() const;

private:
  run_folder(std::filesystem::path path, base::unique_fd lock)
      : path_(std::move(path))
      , lock_(std::move(lock)) {}

  std::filesystem::path path_;
  base::unique_fd lock_;
  std::optional<error> unwritable_{};    ///< why nothing can be written to it
  std::filesystem::path highest_made_{}; ///< with the folder; "": the folder was there
};

} // namespace dlrun::runtime
