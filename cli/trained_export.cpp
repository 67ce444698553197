#include "cli/trained_export.hpp"

#include "cli/complain.hpp"
#include "cli/model_options.hpp"
#include "cli/output_place.hpp"
#include "job/defaults.hpp"
#include "job/spec_reader.hpp"
#include "runtime/model_weights_file.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fmt/format.h>
#include <system_error>
#include <unistd.h>

namespace dlrun::cli {

result<void> check_export(const std::string& file, const std::string& run_dir, const std::string& spec_file) {
  if (file.empty()) return {};
  const auto folder = std::filesystem::absolute(file).parent_path();
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored) || ::access(folder.c_str(), W_OK) != 0)
    return fail(error_code::bad_usage,
                fmt::format("--export '{}': '{}' is no folder in which this user may write: make it, or name "
                            "another file",
                            file, folder.string()));
  std::vector<std::string> read{run_dir, spec_file};
  if (const auto spec = job::read_spec(spec_file)) // else the start says what is wrong with it
    std::ranges::copy(job::files_read_by(*spec), std::back_inserter(read));
  return check_output_place(file, read);
}

std::string write_trained(const result<inference::loaded_model>& model, const std::string& file) {
  const auto written = model ? runtime::write_model(*model, file) : tl::unexpected(model.error());
  if (!written)
    return fmt::format("the job is complete, and its model cannot be written to '{}': {}", file,
                       written.error().message);
  note(fmt::format("the trained model is in '{}'", file));
  return "";
}

verb_end export_trained(verb_end ended, const std::string& file, const std::string& run_dir) {
  if (file.empty() || !is_trained(ended)) return ended;
  auto why_not = write_trained(load_and_tell({.path = run_dir}), file);
  if (why_not.empty()) return ended;
  why_not += "; the same call writes it when that is mended";
  complain(why_not);
  return {static_cast<int>(job::exit_code::job_failed), std::move(why_not)};
}

} // namespace dlrun::cli
