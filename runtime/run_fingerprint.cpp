#include "runtime/run_fingerprint.hpp"

#include "actors/common/fingerprint.hpp"
#include "data/decoders.hpp"
#include "engine/cpu_level.hpp"
#include "job/choices.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace dlrun::runtime {
namespace {

using recorded_parts = google::protobuf::RepeatedPtrField<records::FingerprintPart>;

std::vector<engine::fingerprint_part> parts_here(const spec::JobSpec& spec) {
  return common::build_here(static_cast<int>(spec.cluster().threads_per_worker())).parts;
}

std::vector<engine::fingerprint_part> decoders_here() {
  std::vector<engine::fingerprint_part> all;
  for (auto& one : data::decoder_versions()) all.push_back({std::move(one.library), std::move(one.version)});
  return all;
}

void note(const std::vector<engine::fingerprint_part>& here, recorded_parts& recorded) {
  for (const auto& part : here) {
    auto& made = *recorded.Add();
    made.set_what(part.what);
    made.set_value(part.value);
  }
}

/// A part that only one of them knows is none of the other's: versions name more or fewer.
std::string difference(const recorded_parts& recorded, const std::vector<engine::fingerprint_part>& here) {
  std::vector<std::string> all;
  for (const auto& part : here) {
    const auto before = std::ranges::find(recorded, part.what, &records::FingerprintPart::what);
    if (before != recorded.end() && before->value() != part.value)
      all.push_back(fmt::format("{}: '{}' here, '{}' there", part.what, part.value, before->value()));
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

} // namespace

void note_fingerprint(records::RunRecord& record, const spec::JobSpec& spec) {
  if (!record.fingerprint().empty()) return;
  note(parts_here(spec), *record.mutable_fingerprint());
  record.clear_decoders();
  note(decoders_here(), *record.mutable_decoders());
}

std::string fingerprint_difference(const records::RunRecord& record, const spec::JobSpec& spec) {
  return difference(record.fingerprint(), parts_here(spec));
}

std::string decoder_difference(const records::RunRecord& record) {
  return difference(record.decoders(), decoders_here());
}

result<void> check_same_arithmetic(const records::RunRecord& record, const spec::JobSpec& spec) {
  if (auto held = engine::hold_to_cpu_level(spec.cluster().cpu_level()); !held) return held;
  if (job::is_relaxed(spec)) return {};
  const auto differs = fingerprint_difference(record, spec);
  if (differs.empty()) return {};
  return fail(error_code::bad_usage,
              fmt::format("this host would not compute the same bits as the one on which the run began: {}; "
                          "use one that is like it, or let cluster.determinism be \"relaxed\" (of a run that "
                          "is there, with --set cluster.determinism=relaxed), which the report says",
                          differs));
}

} // namespace dlrun::runtime
