/// `--set path=value`: changes to a specification from the command line.
#pragma once

#include "job/spec_mapper.hpp"

namespace dlrun::job {

/// Sets one key. `text` is "path=value"; the value is YAML (`3`, `[0.9, 0.99]`,
/// `{adam: {lr: 0.001}}`), or for a text key the text as it stands. Missing sections on the path
/// are made; places in lists must exist. Problems name the override and the nearest valid path.
void apply_override(const std::string& text, google::protobuf::Message& root, problem_list& problems,
                    source_map& sources);

} // namespace dlrun::job
