#include "cli/prediction.hpp"

#include "base/not_finite.hpp"
#include "inference/forward_pass.hpp"

#include <algorithm>
#include <atomic>
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

/// The class of the greatest output, with what separates it. Where an output is no number there is
/// none.
std::string class_part(const prediction_style& style, std::span<const float> outputs) {
  if (base::find_not_finite(outputs)) {
    if (style.format == prediction_format::csv) return style.names.empty() ? "," : ",,";
    return style.names.empty() ? R"(,"class":null)" : R"(,"class":null,"name":null)";
  }
  const auto best = static_cast<std::size_t>(std::ranges::max_element(outputs) - outputs.begin());
  const bool is_csv = style.format == prediction_format::csv;
  auto part = fmt::format(fmt::runtime(is_csv ? ",{}" : R"(,"class":{})"), best);
  if (style.names.empty()) return part;
  const auto name = best < style.names.size() ? style.names[best] : std::string{};
  return part + (is_csv ? ',' + csv_cell(name) : R"(,"name":)" + nlohmann::json(name).dump());
}

prediction_style style_for(const inference::loaded_model& model, const inference::prediction_input& input,
                           prediction_format format) {
  if (model.model->loss().outputs() != output_kind::class_scores) return {format, false, {}};
  return {format, true, input.class_names};
}

} // namespace

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

result<std::uint64_t> predict(const inference::loaded_model& model, const inference::prediction_input& input,
                              prediction_format format, std::size_t threads, line_output& out) {
  const auto style = style_for(model, input, format);
  const auto outputs = static_cast<std::size_t>(*element_count(model.model->output_shape()));
  if (format == prediction_format::csv)
    if (auto written = out.write(head_line(style, outputs)); !written) return tl::unexpected(written.error());
  std::atomic<std::uint64_t> without_number = 0;
  inference::forward_pass pass{model.model, inference::options_from(model.spec, threads)};
  const auto done = pass.predict<std::string>(
      model.parameters, inference::records_of(*input.records),
      [&](std::span<const std::uint64_t> places, std::span<const float> all) {
        std::string lines;
        for (std::size_t i = 0; i < places.size(); ++i) {
          const auto own = all.subspan(i * outputs, outputs);
          if (base::find_not_finite(own)) ++without_number;
          lines += prediction_line(style, places[i], own);
        }
        return lines;
      },
      [&](std::string&& lines) { return out.write(lines); });
  if (!done) return tl::unexpected(done.error());
  return without_number.load();
}

} // namespace dlrun::cli
