#include "cli/prediction.hpp"

#include "cli/compute_in_order.hpp"
#include "data/sampler.hpp"
#include "engine/network.hpp"
#include "job/quantity.hpp"
#include "runtime/prepared_job.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

std::string head_line(const prediction_style& style, std::size_t outputs) {
  std::string line = "record";
  if (style.has_class) line += style.names.empty() ? ",class" : ",class,name";
  for (std::size_t i = 0; i < outputs; ++i) fmt::format_to(std::back_inserter(line), ",output{}", i);
  return line + '\n';
}

/// As a cell of a table (RFC 4180).
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string{"\"\""} : std::string{c};
  return quoted + '"';
}

/// The class of the greatest output, with what separates it.
std::string class_part(const prediction_style& style, std::span<const float> outputs) {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(outputs) - outputs.begin());
  const bool is_csv = style.format == prediction_format::csv;
  auto part = fmt::format(fmt::runtime(is_csv ? ",{}" : R"(,"class":{})"), best);
  if (style.names.empty()) return part;
  const auto name = best < style.names.size() ? style.names[best] : std::string{};
  return part + (is_csv ? ',' + csv_cell(name) : R"(,"name":)" + nlohmann::json(name).dump());
}

prediction_style style_for(const runtime::given_model& model, const prediction_input& input,
                           prediction_format format) {
  if (model.model->loss().outputs() != output_kind::class_scores) return {format, false, {}};
  return {format, true, input.class_names};
}

/// One thread's part of the work.
struct predictor {
  predictor(const runtime::given_model& model, const data::dataset& data, std::size_t outputs)
      : parameters(model.parameters)
      , data(data)
      , outputs_each(outputs)
      , network(model.model, static_cast<int>(model.spec.cluster().threads_per_worker())) {}

  /// The lines of a microbatch.
  result<std::string> run(const data::validation_sampler& order, std::uint64_t slot,
                          const prediction_style& style) {
    order.records(slot, indices);
    records.resize(indices.size() * data.record_values());
    outputs.resize(indices.size() * outputs_each);
    if (auto read = data.read(indices, records, {}); !read) return tl::unexpected(read.error());
    const auto size = static_cast<std::int64_t>(indices.size());
    if (auto done = network.predict(parameters, records, size, outputs); !done)
      return tl::unexpected(done.error());
    std::string lines;
    for (std::size_t i = 0; i < indices.size(); ++i)
      lines += prediction_line(style, indices[i], std::span{outputs}.subspan(i * outputs_each, outputs_each));
    return lines;
  }

  std::span<const float> parameters;
  const data::dataset& data;
  std::size_t outputs_each;
  engine::network network;
  std::vector<std::uint64_t> indices;
  std::vector<float> records, outputs;
};

} // namespace

result<prediction_input> open_input(const runtime::given_model& model, const std::string& file) {
  auto spec = model.spec.data();
  // A run's specification has what its training data taught; of a job file a table's must be read for it.
  if (!model.version && spec.train().format() == "csv")
    if (auto decoded =
            data::decode_job_data(spec, model.spec.train().seed(), runtime::targets_of(*model.model).kind);
        !decoded)
      return tl::unexpected(decoded.error());
  auto records = data::open_records(spec.train(), file, job::parse_bytes(spec.memory_limit()).value_or(0));
  if (!records) return tl::unexpected(records.error());
  const auto& names =
      spec.train().format() == "csv" ? spec.train().csv().classes() : spec.train().image_folder().classes();
  return prediction_input{std::move(*records), {names.begin(), names.end()}};
}

std::string prediction_line(const prediction_style& style, std::uint64_t record,
                            std::span<const float> outputs) {
  const bool is_csv = style.format == prediction_format::csv;
  std::string line = fmt::format(fmt::runtime(is_csv ? "{}" : R"({{"record":{})"), record);
  if (style.has_class) line += class_part(style, outputs);
  if (!is_csv) line += R"(,"outputs":[)";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_csv || i > 0) line += ',';
    if (!is_csv && !std::isfinite(outputs[i]))
      line += "null";
    else
      fmt::format_to(std::back_inserter(line), "{}", outputs[i]);
  }
  line += is_csv ? "\n" : "]}\n";
  return line;
}

result<void> predict(const runtime::given_model& model, const prediction_input& input,
                     prediction_format format, std::size_t threads, line_output& out) {
  const auto& data = *input.records;
  const auto style = style_for(model, input, format);
  if (auto fits = runtime::check_fits(data, *model.model); !fits) return fits;
  const auto outputs = static_cast<std::size_t>(*element_count(model.model->output_shape()));
  const data::validation_sampler order{data.record_count(),
                                       static_cast<std::uint64_t>(model.spec.train().microbatch_size())};
  std::vector<std::unique_ptr<predictor>> workers;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(threads, order.slots()); ++i)
    workers.push_back(std::make_unique<predictor>(model, data, outputs));
  if (format == prediction_format::csv)
    if (auto written = out.write(head_line(style, outputs)); !written) return written;
  return compute_in_order<std::string>(
      order.slots(), workers.size(),
      [&](std::size_t thread, std::uint64_t slot) { return workers[thread]->run(order, slot, style); },
      [&](std::uint64_t, std::string&& lines) { return out.write(lines); });
}

} // namespace dlrun::cli
