/// Text that a user wrote: a job specification, a list of hosts.
#pragma once

#include <cstddef>
#include <dlrun/error.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace dlrun::job {

/// Says, from the beginning of a text, how many bytes it may have.
using source_limit = std::function<std::size_t(std::string_view beginning)>;

/// Refuses bytes that are not text, before any parser sees them. Errors call the file `name`, and
/// say that it should be `what` ("a job specification").
/// @returns bad_spec naming file, line and byte.
result<void> check_source_text(std::string_view text, const std::string& name, std::string_view what,
                               const source_limit& limit);

/// Reads a whole file; of one that is too large, one byte more than is allowed.
/// @returns bad_spec when there is no such file; system when it cannot be read.
result<std::string> read_source_text(const std::filesystem::path& file, const source_limit& limit);

} // namespace dlrun::job
