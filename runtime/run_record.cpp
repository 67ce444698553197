#include "runtime/run_record.hpp"

#include "base/atomic_file.hpp"
#include "base/random.hpp"
#include "base/shell_word.hpp"
#include "base/small_file.hpp"
#include "data/recorded_data.hpp"
#include "job/defaults.hpp"
#include "job/run_layout.hpp"
#include "runtime/digested_message.hpp"
#include "runtime/root_secrets.hpp"
#include "runtime/run_files.hpp"
#include "runtime/run_fingerprint.hpp"
#include "runtime/run_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

/// More than any such file has.
constexpr std::size_t record_bytes_max = std::size_t{256} << 20;

constexpr std::string_view head = "dlrun-run-record 1 ";

std::vector<std::string> tensors_of(const spec::ModelSpec& spec) {
  std::vector<std::string> all;
  const auto model = engine::model::build(spec);
  if (!model) return all; // of a prepared job it is there
  for (const auto& tensor : (*model)->layout().tensors())
    all.push_back(fmt::format("{} {}", tensor.name, dlrun::to_string(tensor.extents)));
  return all;
}

result<void> check_same_model(const records::RunRecord& record, const prepared_job& job) {
  const auto now = tensors_of(job.spec.model());
  if (std::ranges::equal(record.tensors(), now)) return {};
  int at = 0;
  while (at < record.tensors_size() && static_cast<std::size_t>(at) < now.size() &&
         record.tensors(at) == now[static_cast<std::size_t>(at)])
    ++at;
  const auto before = at < record.tensors_size() ? record.tensors(at) : std::string{"nothing"};
  const auto is = static_cast<std::size_t>(at) < now.size() ? now[static_cast<std::size_t>(at)] : "nothing";
  return fail(
      error_code::bad_spec,
      fmt::format("the model's layers now have the parameters {} where the run was trained with {}: go on "
                  "with the program that began it, whose layers are these",
                  is, before));
}

/// What of the job's data is not what the record has, "" when nothing is: names each file and the
/// place in it.
std::string data_difference(const records::RunRecord& record, const prepared_job& job) {
  auto changed = data::tell_changes(record.data(), *job.data, data::data_part::training);
  const auto validation = data::tell_changes(record.data(), *job.data, data::data_part::validation);
  if (!changed.empty() && !validation.empty()) changed += "; ";
  return changed + validation;
}

} // namespace

records::RunRecord make_record(const prepared_job& job) {
  records::RunRecord record;
  record.set_run(base::random_number());
  *record.add_revisions() = job.spec;
  if (job.asked) *record.mutable_asked() = *job.asked;
  record.set_train_records(job.train_records);
  for (auto& one : data::digests_of(*job.data)) *record.add_data() = std::move(one);
  for (auto& tensor : tensors_of(job.spec.model())) record.add_tensors(std::move(tensor));
  note_fingerprint(record, job.spec);
  return record;
}

std::string bytes_of(const records::RunRecord& record) { return digested(head, record); }

std::optional<records::RunRecord> record_of(const std::string& bytes) {
  records::RunRecord record;
  if (!parse_digested(head, bytes, record) || record.revisions().empty()) return std::nullopt;
  for (auto& spec : *record.mutable_revisions()) job::fill_defaults(spec, spec.name());
  if (record.has_asked()) job::fill_defaults(*record.mutable_asked(), record.asked().name());
  return record;
}

result<bool> has_record(const std::filesystem::path& run_dir) {
  const auto file = run_dir / run_layout::record;
  std::error_code why;
  const bool is_there = std::filesystem::exists(file, why);
  if (why) return fail(error_code::system, fmt::format("cannot read '{}': {}", file.string(), why.message()));
  return is_there;
}

result<std::optional<records::RunRecord>> read_record(const std::filesystem::path& run_dir) {
  const auto file = run_dir / run_layout::record;
  const auto is_there = has_record(run_dir);
  if (!is_there) return tl::unexpected(is_there.error());
  if (!*is_there) return std::nullopt;
  if (auto fine = check_run_files(run_dir); !fine) return tl::unexpected(fine.error());
  const auto bytes = base::read_small_file(file, record_bytes_max);
  if (!bytes) return tl::unexpected(bytes.error());
  if (!*bytes) return std::nullopt;
  auto record = record_of(**bytes);
  if (!record)
    return fail(
        error_code::bad_usage,
        fmt::format("'{}' is not what dlrun wrote (an edited or damaged file, or one of a later version): "
                    "restore it from a copy; without one, remove it: 'dlrun resume {} --unrecorded' then "
                    "goes on with spec.yaml and the data as they are",
                    file.string(), base::shell_word(run_dir.string())));
  return record;
}

std::string tell_hosts(const records::RunRecord& record) {
  std::vector<std::string> all;
  for (const auto& host : record.hosts())
    all.push_back(fmt::format("{} ({}, folder '{}')", host.name(), host.address(), host.folder()));
  return fmt::format("{}", fmt::join(all, ", "));
}

bool needs_hosts(const std::filesystem::path& run_dir) {
  if (root_secrets::are_left(run_dir)) return true;
  const auto record = read_record(run_dir);
  return record && *record && !(*record)->hosts().empty();
}

std::string resume_command(const std::filesystem::path& run_dir) {
  return fmt::format("dlrun resume {}{}", base::shell_word(run_dir.string()),
                     needs_hosts(run_dir) ? " --hosts FILE" : "");
}

result<void> write_record(const std::filesystem::path& run_dir, const records::RunRecord& record) {
  return base::write_file_atomically(run_dir / run_layout::record, bytes_of(record));
}

result<void> check_same_inputs(const records::RunRecord& record, const prepared_job& job) {
  if (auto same = check_same_model(record, job); !same) return same;
  const auto changed = data_difference(record, job);
  if (changed.empty()) return {};
  const auto decoders = decoder_difference(record);
  return fail(
      error_code::bad_data,
      fmt::format(
          "the data is not what the run was trained on: {}{}; put it back, or say where it is now, as "
          "in --set data.train.records=FILE; with other data train in another folder, from the "
          "export of this run if you like (train.init_from)",
          changed, decoders.empty() ? "" : fmt::format(" (decoded with other libraries: {})", decoders)));
}

} // namespace dlrun::runtime
