/// What of a run does not change while it goes on.
#pragma once

#include "data/sampler.hpp"
#include "engine/update_rule.hpp"

#include <filesystem>
#include <string>

namespace dlrun::observability {

struct run_facts {
  std::string job; ///< its name
  std::filesystem::path run_dir;
  data::sampler sampler;
  engine::update_rule rule; ///< of the newest revision of the specification

  /// That of the step which made `version`; `version` is not 0.
  double learning_rate(version_id version) const { return rule.lr({version.value - 1}); }
};

} // namespace dlrun::observability
