/// Text that a user wrote: a job specification, a list of hosts.
#pragma once

#include <cstddef>
#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace dlrun::job {

/// How many bytes a text may have, by its beginning.
using source_limit = std::function<std::size_t(std::string_view beginning)>;

/// Refuses what is not text before any parser sees it. `name` is what errors call the file, `what`
/// what it should be ("a job specification").
/// @returns bad_spec naming file, line and byte.
result<void> check_source_text(std::string_view text, const std::string& name, std::string_view what,
                               const source_limit& limit);

/// All of a file; of one that is larger than allowed, one byte more than that.
/// @returns bad_spec where there is no such file; system where it cannot be read.
result<std::string> read_source_text(const std::filesystem::path& file, const source_limit& limit);

} // namespace dlrun::job
