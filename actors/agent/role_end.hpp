/// How a role ended, as its launcher saw it.
#pragma once

#include <string>

namespace dlrun::agent {

struct role_end {
  bool clean = false; ///< by itself, without an error
  std::string cause;  ///< for people
  /// Another start of it would end in the same way: a library of its program is missing, an
  /// argument is wrong.
  bool is_lasting = false;
};

} // namespace dlrun::agent
