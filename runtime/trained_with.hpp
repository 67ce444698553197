/// What the run in a folder is trained with, whatever somebody made of its spec.yaml.
#pragma once

#include "proto/run_record.pb.h"
#include "runtime/run_folder.hpp"

#include <optional>

namespace dlrun::runtime {

struct trained_with {
  std::vector<spec::JobSpec> revisions; ///< as trained, oldest first; at least one
  /// The newest one, with the keys that change no bit (FREE, proto/field_rule.proto) as its file
  /// has them.
  spec::JobSpec as_written;
  /// Files that say something else, cannot be read or are too many, each with what is wrong, for
  /// people. A file that is gone says nothing.
  std::vector<std::string> edited{};
  std::optional<records::RunRecord> record{}; ///< nothing for a run of dlrun 0.1: its files are believed
};

/// @returns bad_usage for a record that is not what was written, bad_spec where there is no
/// record and a spec.yaml cannot be read.
result<trained_with> read_trained_with(const run_folder& folder);

/// Are the stores of PS shards in its folder, as far as there are any, of this run? Of another one
/// they would pass for whole. @returns bad_usage as common::check_stores_are_of().
result<void> check_stores_are_own(const std::filesystem::path& folder, const trained_with& trained);

/// Replaces `cluster.device: auto` in `wanted` by the device that it became, which `trained` has.
void keep_settled_device(const spec::JobSpec& trained, spec::JobSpec& wanted);

} // namespace dlrun::runtime
