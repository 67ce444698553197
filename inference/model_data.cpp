#include "inference/model_data.hpp"

#include "job/choices.hpp"
#include "job/quantity.hpp"

namespace dlrun::inference {

wanted_targets targets_of(const engine::model& model) {
  if (model.loss().targets() == target_kind::values)
    return {target_kind::values, model.loss().target_values()};
  const auto& output = model.output_shape();
  return {target_kind::classes, output.empty() ? 0 : output.front()};
}

result<void> check_fits(const data::dataset& data, const engine::model& model) {
  const auto wanted = targets_of(model);
  if (auto fits = data.check_fits(model.input_shape(), wanted.kind, wanted.outputs); !fits) return fits;
  for (const auto& read : model.rows_read())
    if (auto fits = data.check_rows(read.first, read.count, read.rows, read.layer); !fits) return fits;
  const auto find_bad = [&](const batch& batch) -> std::optional<std::pair<std::size_t, std::string>> {
    auto bad = model.loss().find_bad(batch);
    if (!bad) return std::nullopt;
    return std::pair{bad->record, std::move(bad->what)};
  };
  if (auto fits = data.check_targets(find_bad); !fits) return fits;
  return data.check_finite();
}

result<std::uint64_t> training_records(const spec::JobSpec& spec, const engine::model& model) {
  auto data = spec.data();
  const auto seed = spec.train().seed();
  const auto decoded = data::decode_job_data(data, seed, targets_of(model).kind);
  if (!decoded) return tl::unexpected(decoded.error());
  const auto part = data::open_part(*decoded, data, seed, data::data_part::training);
  if (!part) return tl::unexpected(part.error());
  return (*part)->record_count();
}

result<prediction_input> open_input(const spec::JobSpec& spec, bool is_filled, const engine::model& model,
                                    const std::filesystem::path& file) {
  auto data = spec.data();
  const bool is_table = job::format_of(data.train()) == job::data_format::csv;
  if (!is_filled && is_table)
    if (auto decoded = data::decode_job_data(data, spec.train().seed(), targets_of(model).kind); !decoded)
      return tl::unexpected(decoded.error());
  auto records = data::open_records(data.train(), file, job::parse_bytes(data.memory_limit()).value_or(0));
  if (!records) return tl::unexpected(records.error());
  if (auto fits = check_fits(**records, model); !fits) return tl::unexpected(fits.error());
  const auto& names = is_table ? data.train().csv().classes() : data.train().image_folder().classes();
  return prediction_input{std::move(*records), {names.begin(), names.end()}};
}

} // namespace dlrun::inference
