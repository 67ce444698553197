#include "runtime/model_source.hpp"

#include "runtime/run_folder.hpp"

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
  return inference::load_run({folder->path(), folder->spec_files()}, choice);
}

} // namespace dlrun::runtime
