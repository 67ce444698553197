#include "runtime/chosen_model.hpp"

#include "base/shell_word.hpp"
#include "engine/cpu_level.hpp"
#include "runtime/kept_stores.hpp"
#include "runtime/missing_stores.hpp"
#include "runtime/run_fingerprint.hpp"
#include "runtime/run_record.hpp"
#include "runtime/trained_with.hpp"

#include <filesystem>

namespace dlrun::runtime {
namespace {

/// @returns bad_usage when the folder has not the whole model, or a process has a store; other
/// errors as missing_stores()
result<void> check_whole(const std::filesystem::path& folder, const trained_with& trained) {
  if (!trained.record || trained.record->hosts().empty()) return {};
  const auto last = last_stores_of(folder, *trained.record);
  if (!last) return tl::unexpected(last.error());
  const auto missing = missing_stores(folder, *trained.record, *last);
  if (!missing && missing.error().code == error_code::in_use)
    return fail(error_code::bad_usage,
                fmt::format("the run folder '{}' is in use: {}", folder.string(), missing.error().message));
  if (!missing) return tl::unexpected(missing.error());
  if (missing->empty()) return {};
  const auto known = kept_stores(folder);
  if (last->version > version_id{0})
    return fail(error_code::bad_usage, tell_not_whole(folder, *trained.record, *missing, known));
  return fail(
      error_code::bad_usage,
      fmt::format("the run in '{0}' had other hosts, {1}, and a part of its model is there, {2}: copy {3} "
                  "from their folders into '{0}' ('dlrun explain {4}' says on which host each was last)",
                  folder.string(), tell_hosts(*trained.record), tell_stores(*missing, known),
                  folders_of_stores(*missing), base::shell_word(folder.string())));
}

inference::recorded_inputs recorded_of(const trained_with& trained) {
  if (!trained.record) return {};
  return {trained.record->data(), decoder_difference(*trained.record)};
}

result<inference::loaded_model> load_run_in(const run_folder& folder, const model_choice& choice) {
  auto trained = read_trained_with(folder);
  if (!trained) return tl::unexpected(trained.error());
  if (auto own = check_stores_are_own(folder.path(), *trained); !own) return tl::unexpected(own.error());
  if (auto whole = check_whole(folder.path(), *trained); !whole) return tl::unexpected(whole.error());
  const auto held = engine::hold_to_cpu_level(trained->revisions.back().cluster().cpu_level());
  const auto file = folder.spec_file(trained->revisions.size() - 1);
  auto loaded = inference::load_run(
      {.folder = folder.path(),
       .revisions = std::move(trained->revisions),
       .as_written = std::move(trained->as_written),
       .spec_file = file,
       .train_records = trained->record ? std::optional{trained->record->train_records()} : std::nullopt,
       .recorded = recorded_of(*trained)},
      choice);
  if (!loaded) return loaded;
  if (!held)
    loaded->notes.push_back(fmt::format(
        "what it gives may differ in its last digits from what was trained: {}", held.error().message));
  for (const auto& what : trained->edited)
    loaded->notes.push_back(
        fmt::format("{} is not what the run was trained with, which is used: {}", file.string(), what));
  return loaded;
}

} // namespace

result<inference::loaded_model> load_model(const model_choice& choice) {
  std::error_code why;
  const auto found = std::filesystem::status(choice.path, why);
  if (!std::filesystem::exists(found))
    return fail(error_code::bad_usage,
                fmt::format("'{}' is neither the folder of a run nor a weights file: {}", choice.path,
                            why.message()));
  if (!std::filesystem::is_directory(found)) return inference::load_weights_file(choice);
  if (!choice.spec_file.empty())
    return fail(error_code::bad_usage,
                fmt::format("--spec is for a weights file: the run in '{}' has its own", choice.path));
  const auto folder = run_folder::open_to_read(choice.path);
  if (!folder) return tl::unexpected(folder.error());
  return load_run_in(*folder, choice);
}

result<inference::loaded_model> load_own_model(const std::filesystem::path& path) {
  const auto folder = run_folder::of_own_root(path);
  if (!folder) return tl::unexpected(folder.error());
  return load_run_in(*folder, {.path = path.string()});
}

} // namespace dlrun::runtime
