#include "data/dataset.hpp"

#include "data/idx_reader.hpp"
#include "data/normalisation.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>

namespace dlrun::data {
result<std::shared_ptr<const dataset>> dataset::open(const spec::DatasetSpec& spec, blob records,
                                                     blob labels) {
  auto record_view = view_idx(records);
  if (!record_view) return tl::unexpected(record_view.error());
  auto label_view = view_idx(labels);
  if (!label_view) return tl::unexpected(label_view.error());
  const auto& dims = record_view->header.dims;
  if (label_view->header.dims.size() != 1)
    return fail(
        error_code::bad_data,
        fmt::format("{}: labels have one dimension, this file has {}; are records and labels swapped?",
                    labels.name(), label_view->header.dims.size()));
  if (dims.front() != label_view->header.dims.front())
    return fail(error_code::bad_data,
                fmt::format("{} has {} records, but {} has {} labels", records.name(), dims.front(),
                            labels.name(), label_view->header.dims.front()));

  auto made = with_records(spec, std::move(records), *record_view);
  made->labels_ = label_view->values; // the bytes stay where they are when their blob is moved
  made->class_count_ = std::uint32_t{*std::max_element(made->labels_.begin(), made->labels_.end())} + 1;
  made->labels_blob_ = std::move(labels);
  return made;
}

std::shared_ptr<dataset> dataset::with_records(const spec::DatasetSpec& spec, blob records,
                                               const idx_view& view) {
  const auto& dims = view.header.dims;
  auto made = std::shared_ptr<dataset>(new dataset);
  made->record_count_ = dims.front();
  made->record_shape_.assign(dims.begin() + 1, dims.end());
  made->record_values_ = view.header.payload_bytes / dims.front();
  made->values_ = view.values;
  const auto& normalize = spec.normalize();
  made->normalised_ = normalisation_table(normalize.has_mean() ? normalize.mean() : 0.0,
                                          normalize.has_std() ? normalize.std() : 1.0);
  made->records_ = std::move(records);
  return made;
}

result<std::shared_ptr<const dataset>> dataset::open(const spec::DatasetSpec& spec) {
  auto records = open_idx(spec.records());
  if (!records) return tl::unexpected(records.error());
  if (spec.labels().empty()) {
    const auto view = view_idx(*records);
    if (!view) return tl::unexpected(view.error());
    return with_records(spec, std::move(*records), *view);
  }
  auto labels = open_idx(spec.labels());
  if (!labels) return tl::unexpected(labels.error());
  return open(spec, std::move(*records), std::move(*labels));
}

void dataset::read(std::span<const std::uint64_t> indices, std::span<float> records,
                   std::span<std::int32_t> labels) const {
  DLRUN_CHECK(records.size() == indices.size() * record_values_, "{} floats for {} records of {} values",
              records.size(), indices.size(), record_values_);
  DLRUN_CHECK(labels.size() == (labels_.empty() ? 0 : indices.size()), "{} labels for {} records",
              labels.size(), indices.size());
  float* out = records.data();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const std::uint64_t index = indices[i];
    DLRUN_CHECK(index < record_count_, "record {} of {}", index, record_count_);
    const std::uint8_t* const bytes = values_.data() + index * record_values_;
    for (std::uint64_t j = 0; j < record_values_; ++j) out[j] = normalised_[bytes[j]];
    out += record_values_;
    if (!labels.empty()) labels[i] = labels_[index];
  }
}

result<void> dataset::check_fits(std::span<const std::int64_t> input, std::int64_t outputs) const {
  const auto wanted = std::accumulate(input.begin(), input.end(), std::int64_t{1}, std::multiplies<>{});
  if (wanted < 0 || static_cast<std::uint64_t>(wanted) != record_values_)
    return fail(
        error_code::bad_data,
        fmt::format(
            "{}: a record has {} values ({}), but the model's input [{}] has {}; set model.input to the "
            "shape of the records",
            records_.name(), record_values_, fmt::join(record_shape_, " x "), fmt::join(input, ", "),
            wanted));
  if (outputs >= class_count_) return {};
  const auto first =
      std::find_if(labels_.begin(), labels_.end(), [&](std::uint8_t label) { return label >= outputs; });
  return fail(error_code::bad_data,
              fmt::format("{}: record {} has label {}, but the model has only {} outputs; the data needs {}",
                          labels_blob_.name(), first - labels_.begin(), *first, outputs, class_count_));
}

} // namespace dlrun::data
