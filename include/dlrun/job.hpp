/// A job: what is trained, on what, and how it is kept safe.
#pragma once

#include <dlrun/error.hpp>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dlrun::spec {
class JobSpec;
}

namespace dlrun {

/// A job specification that was completed with all defaults and checked, but for what only its data
/// and weights can tell. A value, cheap to copy; immutable and thread-safe. `overrides` are
/// "path=value" texts, as after `--set`: "train.epochs=3".
class job_spec {
public:
  /// Of a YAML file (docs/spec.md). Relative paths in it are relative to its folder.
  /// @returns bad_spec with all problems, one a line, each naming file, line, key and the way out;
  /// system when the file cannot be read.
  static result<job_spec> read(const std::filesystem::path& file,
                               std::span<const std::string> overrides = {});
  /// Of YAML text. `name` is what errors call it, and the job, where the text has no name; relative
  /// paths are relative to `base_dir`. Errors as above.
  static result<job_spec> parse(std::string_view yaml, const std::string& name = "job",
                                const std::filesystem::path& base_dir = ".",
                                std::span<const std::string> overrides = {});
  /// Of a message (dlrun/spec.hpp): fields that are not set have their defaults. Errors as above,
  /// naming the field by its path.
  static result<job_spec> build(const spec::JobSpec& message, const std::filesystem::path& base_dir = ".",
                                std::span<const std::string> overrides = {});

  /// Of the job; names its run folder.
  const std::string& name() const;
  /// Complete: every field that has a default is set.
  const spec::JobSpec& message() const { return *message_; }
  /// As a run keeps it; parse() makes the identical specification of it.
  std::string to_yaml() const;

private:
  explicit job_spec(spec::JobSpec message);

  std::shared_ptr<const spec::JobSpec> message_;
};

} // namespace dlrun
