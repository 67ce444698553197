/// Files with a secret by which hosts join a job.
#pragma once

#include "actors/agent/enrolment/join_key.hpp"
#include "actors/agent/enrolment/join_wire.hpp"

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::runtime {

/// A token of `dlrun token`. @param file "-": standard input. @returns bad_usage, naming file and
/// way out, when it cannot be read, holds none, or can be read by everybody, as ssh refuses such
/// keys. A group may read it, since systemd and Kubernetes show what one user may read in this way.
result<agent::join_token> read_token_file(const std::string& file);
/// A key, likewise.
result<agent::join_key> read_key_file(const std::string& file);

} // namespace dlrun::runtime
