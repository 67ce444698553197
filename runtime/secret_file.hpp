/// Files with a secret by which hosts join a job.
#pragma once

#include "actors/agent/enrolment/join_key.hpp"
#include "actors/agent/enrolment/join_wire.hpp"

#include <dlrun/error.hpp>
#include <string>

namespace dlrun::runtime {

/// Reads a token of `dlrun token`. @param file "-": standard input. @returns bad_usage, naming file
/// and way out, when the file cannot be read, holds no token, or can be read by everybody (ssh
/// refuses such keys too). A group may read it: systemd and Kubernetes hand secrets to one user in
/// this way.
result<agent::join_token> read_token_file(const std::string& file);
/// Reads a key, as read_token_file() a token.
result<agent::join_key> read_key_file(const std::string& file);

} // namespace dlrun::runtime
