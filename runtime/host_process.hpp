/// The process of a host's agent, `dlrun agent`.
#pragma once

#include <dlrun/error.hpp>

namespace dlrun::runtime {

/// Reads from `input` what it is to be, decodes the data of the job and compares it with the
/// root's, joins the root, and runs the roles that it orders; until it is dismissed, gets a
/// SIGTERM, or has had no link to the root, or no answer of it, for longer than a grace. Blocks.
/// Whatever it started ends with it.
/// @returns bad_usage when this is not the program, data or folder for that.
result<void> run_host_agent(int input);

} // namespace dlrun::runtime
