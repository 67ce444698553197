#include "runtime/chosen_model.hpp"

#include "actors/common/history_conversion.hpp"
#include "runtime/run_record.hpp"
#include "runtime/trained_with.hpp"

#include <filesystem>
#include <fmt/ranges.h>

namespace dlrun::runtime {
namespace {

/// "" when the folder has the whole model.
std::string why_not_whole(const run_folder& folder, const trained_with& trained) {
  std::vector<std::string> missing;
  for (const auto shard : stores_elsewhere(folder, trained))
    missing.push_back(common::store_directory(folder.path(), shard).filename().string());
  if (missing.empty()) return "";
  return fmt::format("the run in '{0}' had other hosts, {1}, and a part of its model is there: copy {2} from "
                     "their folders into '{0}' ('dlrun explain {0}' says on which host each was last)",
                     folder.path().string(), tell_hosts(*trained.record), fmt::join(missing, ", "));
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
  auto trained = read_trained_with(*folder);
  if (!trained) return tl::unexpected(trained.error());
  if (auto why = why_not_whole(*folder, *trained); !why.empty()) return fail(error_code::bad_usage, why);
  const auto file = folder->spec_file(trained->revisions.size() - 1);
  auto loaded = inference::load_run(
      {.folder = folder->path(),
       .revisions = std::move(trained->revisions),
       .as_written = std::move(trained->as_written),
       .spec_file = file,
       .train_records = trained->record ? std::optional{trained->record->train_records()} : std::nullopt},
      choice);
  if (!loaded) return loaded;
  for (const auto& what : trained->edited)
    loaded->notes.push_back(
        fmt::format("{} is not what the run was trained with, which is used: {}", file.string(), what));
  return loaded;
}

} // namespace dlrun::runtime
