#include "runtime/model_weights_file.hpp"

#include "actors/common/fingerprint.hpp"
#include "weights/model_weights.hpp"

namespace dlrun::runtime {
namespace {

/// What a file says of itself; "format" is what libraries on top of safetensors ask for.
std::map<std::string, std::string> metadata_of(const inference::loaded_model& model) {
  std::map<std::string, std::string> all{
      {"format", "pt"}, {"dlrun", common::dlrun_version()}, {"job", model.spec.name()}};
  if (!model.version) return all; // of a weights file: what it was trained for is not known
  all["step"] = std::to_string(model.version->value);
  all["parameters_sha256"] = model.parameters_sha256;
  return all;
}

} // namespace

result<void> write_model(const inference::loaded_model& model, const std::filesystem::path& file) {
  return weights::write_weights(file, model.model->layout(), model.parameters,
                                model.version ? model.version->value : 0, metadata_of(model));
}

} // namespace dlrun::runtime
