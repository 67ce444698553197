/// The report of a run, where there may be none.
#pragma once

#include <dlrun/report.hpp>
#include <filesystem>
#include <optional>

namespace dlrun::job {

/// As read_report(), but nothing where there is no such file.
result<std::optional<dlrun::report>> find_report(const std::filesystem::path& path);

} // namespace dlrun::job
