/// Texts in YAML that is written.
#pragma once

#include <string>

namespace dlrun::job {

/// Whether it may stand without quotes: no reader, of YAML 1.1 or 1.2, takes it for a number, a
/// boolean, null or a sign of YAML.
bool is_plain_scalar(const std::string& text);

} // namespace dlrun::job
