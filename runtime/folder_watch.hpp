/// The run folder while its run goes on.
#pragma once

#include "base/unique_fd.hpp"

#include <filesystem>
#include <string>

namespace dlrun::runtime {

/// Notices when the run folder is removed, moved or replaced: what is trained from then on would be
/// lost, or lie in a folder where nobody looks.
class folder_watch {
public:
  explicit folder_watch(std::filesystem::path folder);

  /// Why the run cannot go on; "" while the folder is there, and where that cannot be told.
  std::string lost() const;

private:
  std::filesystem::path folder_;
  base::unique_fd held_; ///< the folder itself, whatever its name is
};

} // namespace dlrun::runtime
