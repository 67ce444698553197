#include "runtime/trained_with.hpp"

#include "actors/common/held_store.hpp"
#include "job/choices.hpp"
#include "job/spec_reader.hpp"
#include "runtime/changed_spec.hpp"
#include "runtime/run_record.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

/// A run of a version that had no cluster.device was trained on processors; one that had no
/// train.precision, in single precision.
void settle_unknown_device(spec::JobSpec& spec) {
  if (job::device_of(spec) == job::device::automatic) spec.mutable_cluster()->set_device("cpu");
  if (!spec.train().has_precision()) spec.mutable_train()->set_precision("fp32");
}

/// Only of the newest revision may the file say something else, and only in keys that change no
/// bit.
void look_at_file(const std::filesystem::path& file, std::size_t revision, trained_with& found) {
  std::error_code why;
  if (!std::filesystem::exists(std::filesystem::symlink_status(file, why))) return;
  auto written = job::read_spec(file);
  if (!written) {
    found.edited.push_back(fmt::format("it cannot be read any more: {}", written.error().message));
    return;
  }
  keep_settled_device(found.revisions[revision], *written);
  const bool newest = revision + 1 == found.revisions.size();
  auto changes = job::differences(found.revisions[revision], *written);
  const bool is_free =
      std::ranges::all_of(changes, [](const auto& one) { return one.rule == spec::FieldRule::FREE; });
  if (changes.empty()) return;
  if (!newest || !is_free)
    found.edited.push_back(
        tell_changes(changes, "{}: {} was trained with, " + file.filename().string() + " now says {}"));
  else
    found.as_written = *written;
}

result<trained_with> from_record(const run_folder& folder, records::RunRecord record) {
  trained_with found;
  found.revisions.assign(record.revisions().begin(), record.revisions().end());
  for (auto& revision : found.revisions) settle_unknown_device(revision);
  found.as_written = found.revisions.back();
  for (std::size_t i = 0; i < found.revisions.size(); ++i) look_at_file(folder.spec_file(i), i, found);
  const auto beyond = folder.spec_file(found.revisions.size());
  std::error_code why;
  if (std::filesystem::exists(beyond, why))
    found.edited.push_back(fmt::format("{} is not of this run", beyond.filename().string()));
  found.record = std::move(record);
  return found;
}

result<trained_with> from_files(const run_folder& folder) {
  trained_with found;
  for (const auto& file : folder.spec_files()) {
    auto spec = job::read_spec(file);
    if (!spec) return tl::unexpected(spec.error());
    settle_unknown_device(*spec);
    found.revisions.push_back(std::move(*spec));
  }
  found.as_written = found.revisions.back();
  return found;
}

} // namespace

result<void> check_stores_are_own(const std::filesystem::path& folder, const trained_with& trained) {
  if (!trained.record) return {};
  const auto ps_shards = static_cast<std::uint32_t>(trained.revisions.back().cluster().ps_shards());
  return common::check_stores_are_of(folder, ps_shards, trained.record->run());
}

void keep_settled_device(const spec::JobSpec& trained, spec::JobSpec& wanted) {
  if (job::device_of(wanted) == job::device::automatic)
    wanted.mutable_cluster()->set_device(trained.cluster().device());
}

result<trained_with> read_trained_with(const run_folder& folder) {
  auto record = read_record(folder.path());
  if (!record) return tl::unexpected(record.error());
  return *record ? from_record(folder, std::move(**record)) : from_files(folder);
}

} // namespace dlrun::runtime
