/// Specifications for tests.
#pragma once

#include "job/spec_reader.hpp"

#include <string>
#include <vector>

namespace dlrun::test {

/// The smallest specification that is complete; 6 lines.
inline const std::string minimal_spec = R"(model:
  input: [1, 28, 28]
  layers: [flatten, {linear: {out_features: 10}}]
data: {train: {records: images, labels: labels}}
train: {optimizer: {sgd: {lr: 0.05}}}
cluster: {workers: 2}
)";

inline result<spec::JobSpec> parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return job::parse_spec(text, "job.yaml", "/base", overrides);
}

/// The text with the first `from` replaced by `to`.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) return "test bug: \"" + from + "\" not found";
  return text.replace(at, from.size(), to);
}

/// The problems found, "" if there are none.
inline std::string problems_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto spec = parse(text, overrides);
  return spec ? "" : spec.error().message;
}

} // namespace dlrun::test
