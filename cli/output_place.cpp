#include "cli/output_place.hpp"

#include "runtime/run_files.hpp"
#include "runtime/run_folder.hpp"

#include <filesystem>
#include <fmt/format.h>

namespace dlrun::cli {
namespace {

namespace fs = std::filesystem;

bool replaces(const fs::path& output, const fs::path& input) {
  std::error_code ignored;
  if (!fs::is_directory(input, ignored)) return fs::equivalent(output, input, ignored);
  if (runtime::find_run(input.string())) return runtime::is_part_of_run(input, output);
  return !runtime::place_within(input, output).empty();
}

} // namespace

result<void> check_output_place(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  // A device takes what is written and stays what it is; a file that is not there replaces nothing.
  if (output.empty() || !fs::is_regular_file(output, ignored)) return {};
  for (const auto& input : inputs)
    if (!input.empty() && replaces(output, input))
      return fail(error_code::bad_usage,
                  fmt::format("'{0}' would replace what is read: it is '{1}', or a part of it; choose "
                              "another file",
                              output, input));
  return {};
}

} // namespace dlrun::cli
