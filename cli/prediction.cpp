#include "cli/prediction.hpp"

#include "cli/compute_in_order.hpp"
#include "cli/prepared_job.hpp"
#include "data/sampler.hpp"
#include "engine/network.hpp"
#include "job/quantity.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace dlrun::cli {
namespace {

std::string head_line(std::size_t outputs) {
  std::string line = "record,class";
  for (std::size_t i = 0; i < outputs; ++i) fmt::format_to(std::back_inserter(line), ",output{}", i);
  return line + '\n';
}

/// One thread's part of the work.
struct predictor {
  predictor(const given_model& model, const data::dataset& data, std::size_t outputs)
      : parameters(model.parameters)
      , data(data)
      , outputs_each(outputs)
      , network(model.model, static_cast<int>(model.spec.cluster().threads_per_worker())) {}

  /// The lines of a microbatch.
  result<std::string> run(const data::validation_sampler& order, std::uint64_t slot,
                          prediction_format format) {
    order.records(slot, indices);
    records.resize(indices.size() * data.record_values());
    outputs.resize(indices.size() * outputs_each);
    if (auto read = data.read(indices, records, {}); !read) return tl::unexpected(read.error());
    const auto size = static_cast<std::int64_t>(indices.size());
    if (auto done = network.predict(parameters, records, size, outputs); !done)
      return tl::unexpected(done.error());
    std::string lines;
    for (std::size_t i = 0; i < indices.size(); ++i)
      lines +=
          prediction_line(format, indices[i], std::span{outputs}.subspan(i * outputs_each, outputs_each));
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

result<std::shared_ptr<const data::dataset>> open_input(const given_model& model, const std::string& file) {
  auto spec = model.spec.data();
  // A run's specification has what its training data taught; of a job file a table's must be read for it.
  if (!model.version && spec.train().format() == "csv")
    if (auto decoded = data::decode_job_data(spec, model.spec.train().seed(), targets_of(*model.model).kind);
        !decoded)
      return tl::unexpected(decoded.error());
  return data::open_records(spec.train(), file, job::parse_bytes(spec.memory_limit()).value_or(0));
}

std::string prediction_line(prediction_format format, std::uint64_t record, std::span<const float> outputs) {
  const auto best = std::ranges::max_element(outputs) - outputs.begin();
  std::string line = fmt::format(
      fmt::runtime(format == prediction_format::csv ? "{},{}" : R"({{"record":{},"class":{},"outputs":[)"),
      record, best);
  const auto into = std::back_inserter(line);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (format == prediction_format::csv || i > 0) line += ',';
    if (format == prediction_format::json && !std::isfinite(outputs[i]))
      line += "null";
    else
      fmt::format_to(into, "{}", outputs[i]);
  }
  line += format == prediction_format::csv ? "\n" : "]}\n";
  return line;
}

result<void> predict(const given_model& model, const data::dataset& data, prediction_format format,
                     std::size_t threads, line_output& out) {
  const auto wanted = targets_of(*model.model);
  if (auto fits = data.check_fits(model.model->input_shape(), wanted.kind, wanted.outputs); !fits)
    return fits;
  const auto outputs = static_cast<std::size_t>(*engine::element_count(model.model->output_shape()));
  const data::validation_sampler order{data.record_count(),
                                       static_cast<std::uint64_t>(model.spec.train().microbatch_size())};
  std::vector<std::unique_ptr<predictor>> workers;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(threads, order.slots()); ++i)
    workers.push_back(std::make_unique<predictor>(model, data, outputs));
  if (format == prediction_format::csv)
    if (auto written = out.write(head_line(outputs)); !written) return written;
  return compute_in_order<std::string>(
      order.slots(), workers.size(),
      [&](std::size_t thread, std::uint64_t slot) { return workers[thread]->run(order, slot, format); },
      [&](std::uint64_t, std::string&& lines) { return out.write(lines); });
}

} // namespace dlrun::cli
