#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"

#include <dlrun/job.hpp>

namespace dlrun {

job_spec::job_spec(spec::JobSpec message)
    : message_(std::make_shared<const spec::JobSpec>(std::move(message))) {}

result<job_spec> job_spec::read(const std::filesystem::path& file, std::span<const std::string> overrides) {
  auto made = job::read_spec(file, overrides);
  if (!made) return tl::unexpected(made.error());
  return job_spec{std::move(*made)};
}

result<job_spec> job_spec::parse(std::string_view yaml, const std::string& name,
                                 const std::filesystem::path& base_dir,
                                 std::span<const std::string> overrides) {
  auto made = job::parse_spec(yaml, name, base_dir, overrides);
  if (!made) return tl::unexpected(made.error());
  return job_spec{std::move(*made)};
}

result<job_spec> job_spec::build(const spec::JobSpec& message, const std::filesystem::path& base_dir,
                                 std::span<const std::string> overrides) {
  auto made = job::complete_spec(message, message.has_name() ? message.name() : "job", base_dir, overrides);
  if (!made) return tl::unexpected(made.error());
  return job_spec{std::move(*made)};
}

const std::string& job_spec::name() const { return message_->name(); }

std::string job_spec::to_yaml() const { return job::write_spec(*message_); }

} // namespace dlrun
