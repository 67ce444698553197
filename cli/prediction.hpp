/// What a model gives for records without labels, one line each.
#pragma once

#include "cli/line_output.hpp"
#include "data/dataset.hpp"
#include "runtime/model_source.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlrun::cli {

enum class prediction_format : std::uint8_t {
  csv, ///< a head, then record, class, name, outputs
  json ///< an object a line, with the same keys; numbers that do not exist are null
};

/// What a line is made of.
struct prediction_style {
  prediction_format format = prediction_format::csv;
  bool has_class = true;            ///< outputs are scores of classes that exclude one another
  std::vector<std::string> names{}; ///< of the classes, where the training data has names; else empty
};

struct prediction_input {
  std::shared_ptr<const data::dataset> records;
  std::vector<std::string> class_names; ///< as the training data has them; empty where it has none
};

/// The records of `file`, read as the job of the model reads its training data: format, columns and
/// normalisation are the same; targets are not asked for. @returns as data::open_records().
result<prediction_input> open_input(const runtime::given_model& model, const std::string& file);

/// Writes a line a record to `out`, in the order of the input: its place from 0; where the loss compares
/// classes the class of the greatest output (the first of equals), and its name, if it has one; and all
/// outputs in the shortest digits that give the same float again.
/// Computed in microbatches of the job's size on `threads` (at least 1) threads, whose number changes no
/// byte.
/// @returns bad_data when the records do not fit the model; system when `out` cannot be written.
result<void> predict(const runtime::given_model& model, const prediction_input& input,
                     prediction_format format, std::size_t threads, line_output& out);

/// One line, with its end. `outputs` is not empty.
std::string prediction_line(const prediction_style& style, std::uint64_t record,
                            std::span<const float> outputs);

} // namespace dlrun::cli
