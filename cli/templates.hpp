/// Job files to start from, part of the program: they are the examples (examples/README.md).
#pragma once

#include <span>
#include <string_view>

namespace dlrun::cli {

/// A file that belongs to a template.
struct template_file {
  std::string_view name; ///< to be written as
  std::string_view text;
};

struct job_template {
  std::string_view name;               ///< "mlp"
  std::string_view description;        ///< one line
  std::string_view job;                ///< YAML
  std::span<const template_file> data; ///< small data of its own; empty when the job reads installed data
};

/// In the order in which they are to be shown.
std::span<const job_template> job_templates();

} // namespace dlrun::cli
