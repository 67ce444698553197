#include "job/spec_reader.hpp"

#include "job/defaults.hpp"
#include "job/source_text.hpp"
#include "job/spec_mapper.hpp"
#include "job/spec_override.hpp"
#include "job/spec_writer.hpp"
#include "job/validate.hpp"

#include <fmt/format.h>

namespace dlrun::job {
namespace {

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

constexpr std::string_view what_it_is = "a job specification";
std::size_t bytes_limit(std::string_view text) { return limits_of(text).bytes; }

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
  if (auto fine = check_source_text(text, file_name, what_it_is, bytes_limit); !fine)
    return tl::unexpected(fine.error());
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
  const auto text = read_source_text(file, bytes_limit);
  if (!text) return tl::unexpected(text.error());
  return parse_spec(*text, file.string(), file.parent_path().empty() ? "." : file.parent_path(), overrides);
}

} // namespace dlrun::job
