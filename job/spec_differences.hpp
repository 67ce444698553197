/// In which keys two specifications differ, and whether a run that is resumed may have each of them
/// changed.
#pragma once

#include "proto/field_rule.pb.h"
#include "proto/job_spec.pb.h"

#include <string>
#include <vector>

namespace dlrun::job {

using on_resume = spec::FieldRule::OnResume;

/// A key in which two specifications differ, named by the outermost place of the difference:
/// `model.layers[1]` for another kind of layer, `train.seed` for another number.
struct spec_difference {
  std::string path;   ///< "model.layers[1].linear.out_features"
  std::string before; ///< as YAML in one line, long ones cut; "nothing" where the key is not set
  std::string after;
  on_resume rule = spec::FieldRule::FIXED; ///< of the key, or of the nearest section around it that has one
  std::string whole_after{};               ///< `after`, not cut
};

/// All differences, in the order of the keys in proto/job_spec.proto; empty for equal messages. A
/// file path that is added or removed counts as FIXED, whatever its rule: it may only be replaced
/// by another path.
std::vector<spec_difference> differences(const spec::JobSpec& before, const spec::JobSpec& after);

/// The keys (and sections) to which the proto file gives this rule: "cluster.workers", ...
std::vector<std::string> keys_with(on_resume rule);

} // namespace dlrun::job
