/// What a model gives for records without labels, one line each.
#pragma once

#include "cli/line_output.hpp"
#include "cli/model_source.hpp"
#include "data/dataset.hpp"

#include <span>
#include <string>

namespace dlrun::cli {

enum class prediction_format : std::uint8_t {
  csv, ///< a head, then record, class, outputs
  json ///< an object a line, with the same keys; numbers that do not exist are null
};

/// The records of `file`, read as the job of the model reads its training data: format, columns and
/// normalisation are the same; targets are not asked for. @returns as data::open_records().
result<std::shared_ptr<const data::dataset>> open_input(const given_model& model, const std::string& file);

/// Writes a line a record to `out`, in the order of `data`: its place from 0, the class of the greatest
/// output (the first of equals), and all outputs in the shortest digits that give the same float again.
/// Computed in microbatches of the job's size on `threads` (at least 1) threads, whose number changes no
/// byte.
/// @returns bad_data when the records do not fit the model; system when `out` cannot be written.
result<void> predict(const given_model& model, const data::dataset& data, prediction_format format,
                     std::size_t threads, line_output& out);

/// One line, with its end. `outputs` is not empty.
std::string prediction_line(prediction_format format, std::uint64_t record, std::span<const float> outputs);

} // namespace dlrun::cli
