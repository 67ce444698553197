#include "job/spec_reader.hpp"

#include "base/utf8.hpp"
#include "job/defaults.hpp"
#include "job/spec_mapper.hpp"
#include "job/spec_override.hpp"
#include "job/spec_writer.hpp"
#include "job/validate.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

namespace dlrun::job {
namespace {

int line_at(std::string_view text, std::size_t offset) {
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

struct size_limits {
  std::size_t bytes = spec_bytes_max;
  std::size_t values = yaml_values_max;
};

/// By its first line: a user's file, or one that a run wrote.
size_limits limits_of(std::string_view text) {
  constexpr std::size_t written_values_max = 10 * yaml_values_max;
  return text.starts_with(written_head) ? size_limits{written_spec_bytes_max, written_values_max}
                                        : size_limits{};
}

/// Refuses what is not text before any parser sees it.
result<void> check_text(std::string_view text, const std::string& name) {
  if (const auto most = limits_of(text).bytes; text.size() > most)
    return fail(error_code::bad_spec,
                fmt::format("{}: larger than {} KiB, is this a job specification?", name, most / 1024));
  if (const auto offset = base::first_invalid_utf8(text))
    return fail(error_code::bad_spec,
                fmt::format("{}:{}: byte {} (0x{:02x}) is not UTF-8 text", name, line_at(text, *offset),
                            *offset, static_cast<unsigned char>(text[*offset])));
  const auto control = std::find_if(text.begin(), text.end(), [](unsigned char c) {
    return (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
  });
  if (control != text.end()) {
    const auto offset = static_cast<std::size_t>(control - text.begin());
    return fail(error_code::bad_spec,
                fmt::format("{}:{}: byte {} is the control character 0x{:02x}; is this a text file?", name,
                            line_at(text, offset), offset, static_cast<unsigned char>(*control)));
  }
  return {};
}

result<std::string> read_text(const std::filesystem::path& file) {
  std::error_code problem;
  const auto about = std::filesystem::status(file, problem);
  if (!std::filesystem::exists(about))
    return fail(error_code::bad_spec, fmt::format("{}: no such file", file.string()));
  if (!std::filesystem::is_regular_file(about))
    return fail(error_code::bad_spec, fmt::format("{}: not a file", file.string()));
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return fail(errno == EACCES ? error_code::bad_spec : error_code::system,
                fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
  // One byte more than allowed tells a larger file, whatever its size was a moment ago.
  std::string text;
  for (auto most = spec_bytes_max; text.size() <= most && !stream.eof(); most = limits_of(text).bytes) {
    const auto there = text.size();
    text.resize(most + 1);
    stream.read(text.data() + there, static_cast<std::streamsize>(text.size() - there));
    if (stream.bad())
      return fail(error_code::system, fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
    text.resize(there + static_cast<std::size_t>(stream.gcount()));
  }
  return text;
}

/// What is the same however the specification came to be; `problems` are those of before.
result<spec::JobSpec> finish(spec::JobSpec spec, const std::string& origin,
                             const std::filesystem::path& base_dir, std::span<const std::string> overrides,
                             source_map& sources, problem_list& problems) {
  for (const auto& override_text : overrides) apply_override(override_text, spec, problems, sources);
  fill_defaults(spec, default_job_name(origin));
  make_paths_absolute(spec, base_dir);
  validate(spec, sources, problems);
  if (!problems.empty()) return tl::unexpected(problems.to_error());
  return spec;
}

} // namespace

result<spec::JobSpec> parse_spec(std::string_view text, const std::string& file_name,
                                 const std::filesystem::path& base_dir,
                                 std::span<const std::string> overrides) {
  if (auto fine = check_text(text, file_name); !fine) return tl::unexpected(fine.error());
  auto tree = parse_yaml(text, spec_depth_max, limits_of(text).values);
  if (!tree)
    return fail(error_code::bad_spec,
                fmt::format("{}:{}: {}", file_name, tree.error().line, tree.error().text));
  if (tree->is == yaml_node::kind::nothing)
    return fail(error_code::bad_spec, fmt::format("{}: is empty", file_name));

  problem_list problems;
  source_map sources;
  sources.set_root({file_name, 1});
  spec::JobSpec spec;
  mapping into{problems, sources, file_name, true, spec.GetDescriptor()};
  map_message(*tree, spec, "", into);
  return finish(std::move(spec), file_name, base_dir, overrides, sources, problems);
}

result<spec::JobSpec> complete_spec(spec::JobSpec built, const std::string& origin,
                                    const std::filesystem::path& base_dir,
                                    std::span<const std::string> overrides) {
  problem_list problems;
  source_map sources;
  sources.set_root({origin, 0});
  auto spec = finish(std::move(built), origin, base_dir, overrides, sources, problems);
  if (!spec) return spec;
  // What a run keeps is text, which must be readable again: its size, its nesting, texts that are
  // UTF-8.
  return parse_spec(written_spec(*spec), origin, base_dir);
}

result<spec::JobSpec> read_spec(const std::filesystem::path& file, std::span<const std::string> overrides) {
  const auto text = read_text(file);
  if (!text) return tl::unexpected(text.error());
  return parse_spec(*text, file.string(), file.parent_path().empty() ? "." : file.parent_path(), overrides);
}

} // namespace dlrun::job
