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

/// A complete job specification: all defaults are filled in, and everything is checked that needs
/// neither data nor weights. A value, cheap to copy; immutable and thread-safe. `overrides` are
/// "path=value" texts, as after `--set`: "train.epochs=3".
class job_spec {
public:
  /// Reads a YAML file (docs/spec.md). Relative paths in it are relative to its folder.
  /// @returns bad_spec with all problems, one a line, each naming file, line, key and the way out,
  /// also when there is no such file; system when the file cannot be read.
  static result<job_spec> read(const std::filesystem::path& file,
                               std::span<const std::string> overrides = {});
  /// Parses YAML text. Errors call the text `name`, and so is the job called if the text gives it
  /// no name. Relative paths are relative to `base_dir`. Errors as of read().
  static result<job_spec> parse(std::string_view yaml, const std::string& name = "job",
                                const std::filesystem::path& base_dir = ".",
                                std::span<const std::string> overrides = {});
  /// Completes a message (dlrun/spec.hpp): fields that are not set get their defaults. Errors as of
  /// read(), naming the field by its path.
  static result<job_spec> build(const spec::JobSpec& message, const std::filesystem::path& base_dir = ".",
                                std::span<const std::string> overrides = {});

  /// Name of the job. The run folder is runs/NAME unless the caller names another.
  const std::string& name() const;
  /// The complete specification: every field that has a default is set.
  const spec::JobSpec& message() const { return *message_; }
  /// The text that a run stores; parse() makes the identical specification of it.
  std::string to_yaml() const;

private:
  explicit job_spec(spec::JobSpec message);

  std::shared_ptr<const spec::JobSpec> message_;
};

} // namespace dlrun
