#include "inference/forward_pass.hpp"
#include "runtime/chosen_model.hpp"
#include "runtime/model_weights_file.hpp"
#include "runtime/thrown_text.hpp"

#include <algorithm>
#include <dlrun/model.hpp>

namespace dlrun {

class trained_model::impl {
public:
  explicit impl(inference::loaded_model given)
      : given_{std::move(given)}
      , pass_{given_.model, inference::options_from(given_.spec)} {}

  const inference::loaded_model& given() const { return given_; }

  result<std::vector<float>> predict(std::span<const float> records) {
    const auto& model = *given_.model;
    const auto width = static_cast<std::size_t>(*element_count(model.input_shape()));
    if (records.empty() || records.size() % width != 0)
      return fail(error_code::bad_usage,
                  fmt::format("{} floats are no records of shape {}, which have {} each", records.size(),
                              to_string(model.input_shape()), width));
    const auto outputs_each = static_cast<std::size_t>(*element_count(model.output_shape()));
    const inference::record_source source{
        records.size() / width, [&](std::span<const std::uint64_t> places, std::span<float> into) {
          std::ranges::copy(records.subspan(places.front() * width, into.size()), into.begin());
          return result<void>{};
        }};
    std::vector<float> outputs;
    outputs.reserve(source.count * outputs_each);
    const auto done = pass_.predict<std::span<const float>>(
        given_.parameters, source, [](auto, std::span<const float> some) { return some; },
        [&](std::span<const float>&& some) -> result<void> {
          outputs.insert(outputs.end(), some.begin(), some.end());
          return {};
        });
    if (!done) return tl::unexpected(done.error());
    return outputs;
  }

private:
  inference::loaded_model given_;
  inference::forward_pass pass_; ///< on the calling thread
};

trained_model::trained_model(std::unique_ptr<impl> impl)
    : impl_{std::move(impl)} {}
trained_model::trained_model(trained_model&&) noexcept = default;
trained_model& trained_model::operator=(trained_model&&) noexcept = default;
trained_model::~trained_model() = default;

result<trained_model> trained_model::load(const model_choice& choice) {
  try {
    auto given = runtime::load_model(choice);
    if (!given) return tl::unexpected(given.error());
    return trained_model{std::make_unique<impl>(std::move(*given))};
  } catch (...) { // a layer of the program
    return fail(error_code::bad_usage,
                fmt::format("cannot load '{}': {}", choice.path, runtime::thrown_text()));
  }
}

const shape& trained_model::input_shape() const { return impl_->given().model->input_shape(); }
const shape& trained_model::output_shape() const { return impl_->given().model->output_shape(); }

std::optional<std::uint64_t> trained_model::step() const {
  const auto& version = impl_->given().version;
  return version ? std::optional{version->value} : std::nullopt;
}

std::vector<named_tensor> trained_model::tensors() const {
  const auto& given = impl_->given();
  std::vector<named_tensor> all;
  for (const auto& tensor : given.model->layout().tensors())
    if (tensor.kind != tensor_kind::metric)
      all.push_back(
          {tensor.name, tensor.extents, std::span{given.parameters}.subspan(tensor.offset, tensor.size)});
  return all;
}

result<std::vector<float>> trained_model::predict(std::span<const float> records) {
  try {
    return impl_->predict(records);
  } catch (...) { // a layer of the program
    return fail(error_code::bad_usage, "cannot predict: " + runtime::thrown_text());
  }
}

result<void> trained_model::save(const std::filesystem::path& file) const {
  return runtime::write_model(impl_->given(), file);
}

} // namespace dlrun
