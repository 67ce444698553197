/// That a job is to end for the sake of its pods.
#pragma once

#include <string>

namespace dlrun::kubernetes {

/// In order: its pods leave it no way on.
struct pods_end {
  int exit_code = 1; ///< 2: what users gave does not do, and nothing was trained
  std::string why{}; ///< for people, with the way out
};

} // namespace dlrun::kubernetes
