/// Texts in YAML that is written.
#pragma once

#include <string>

namespace dlrun::job {

/// Whether `text` may be written without quotes: no reader of YAML 1.1 or 1.2 takes it for a
/// number, a boolean, null or YAML syntax.
bool is_plain_scalar(const std::string& text);

} // namespace dlrun::job
