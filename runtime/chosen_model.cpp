#include "runtime/chosen_model.hpp"

#include "runtime/trained_with.hpp"

#include <filesystem>

namespace dlrun::runtime {

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
