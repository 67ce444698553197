/// Reads the file that lists the hosts of a job.
#pragma once

#include "proto/hosts_file.pb.h"

#include <dlrun/error.hpp>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::job {

/// Reads a list of hosts from `file`, fills in defaults, and checks it: every host has its own name
/// and its own address. A relative `join.key_file` is relative to the file.
/// @returns bad_spec with all problems, one a line, each naming file, line, key and the way out;
///          system if the file cannot be read.
result<spec::HostsFile> read_hosts(const std::filesystem::path& file);
/// The same for text in memory. `file_name` is what errors call it.
result<spec::HostsFile> parse_hosts(std::string_view text, const std::string& file_name);

/// Whether a host may have this name: letters, digits, '.', '_' and '-', a letter or digit first.
bool is_host_name(const std::string& name);

/// Stands in a list for the address of the host on which the list is used: as an address, and in
/// `join.listen`.
inline constexpr std::string_view self_address = "self";
bool names_self(const spec::HostsFile& file);
/// Replaces "self" by `number`, the address of this host.
void name_self(spec::HostsFile& file, const std::string& number);

/// The words that start `program` with `arguments` on a host.
std::vector<std::string> start_command(const spec::HostsFile& file, const spec::HostSpec& host,
                                       const std::vector<std::string>& program);

} // namespace dlrun::job
