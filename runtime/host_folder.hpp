/// The folder of a run on a host that is not the root's.
#pragma once

#include "base/unique_fd.hpp"
#include "proto/host_bundle.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <vector>

namespace dlrun::runtime {

/// The folder in which a host keeps its part of a run. One agent at a time holds it: one of another
/// host of the same start of the run is refused at once. It belongs to one run, however often that
/// is resumed: a file in it names the run.
class host_folder {
public:
  /// Takes the folder, and makes it if there is none. Waits for the agent of an earlier start,
  /// which was given up and is ending. @returns bad_usage, naming the host, the cause and the way
  /// out, for a folder that holds something else or that cannot be written. Then nothing is left of
  /// what it made.
  static result<host_folder> take(const bootstrap::HostBundle& bundle);

  /// Does the folder hold what take() leaves in one, of whatever run?
  static bool is_of_a_run(const std::filesystem::path& folder);

  /// Removes what take() made if no role has run here since: then nothing began.
  void discard_unused() const;

private:
  host_folder(std::filesystem::path path, std::vector<std::filesystem::path> made)
      : path_{std::move(path)}
      , made_{std::move(made)} {}
  result<void> make(const bootstrap::HostBundle& bundle);
  result<void> claim(const bootstrap::HostBundle& bundle);
  result<void> lock(const bootstrap::HostBundle& bundle);
  tl::unexpected<error> refuse_shared(const bootstrap::HostBundle& bundle, const std::string& holder);

  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_; ///< folders that were not there, the outermost first
  bool is_new_ = false;                     ///< it was nobody's
  base::unique_fd lock_;
};

} // namespace dlrun::runtime
