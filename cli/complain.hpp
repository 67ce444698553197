/// How verbs report errors: one message on stderr, and the exit code that belongs to it.
#pragma once

#include "cli/say.hpp"
#include "job/exit_code.hpp"

#include <dlrun/error.hpp>

namespace dlrun::cli {

/// Prints the error and returns its exit code.
inline int complain(const error& what) {
  say(stderr, "dlrun: {}\n", what.message);
  return static_cast<int>(job::exit_code_for(what.code));
}

} // namespace dlrun::cli
