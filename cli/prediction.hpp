/// What a model gives for records without labels, one line each.
#pragma once

#include "cli/line_output.hpp"
#include "inference/model_data.hpp"
#include "runtime/chosen_model.hpp"

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

/// Writes a line a record to `out`, in the order of the input: its place from 0; where the loss
/// compares classes the class of the greatest output (the first of equals), and its name, if it has
/// one; and all outputs in the shortest digits that give the same float again. Computed in
/// microbatches of the job's size on `threads` (at least 1) threads, whose number changes no byte.
/// `input` fits the model. @returns how many records have an output that is NaN or infinite; as
/// forward_pass::predict(); system when `out` cannot be written.
result<std::uint64_t> predict(const inference::loaded_model& model, const inference::prediction_input& input,
                              prediction_format format, std::size_t threads, line_output& out);

/// One line, with its end. `outputs` is not empty.
std::string prediction_line(const prediction_style& style, std::uint64_t record,
                            std::span<const float> outputs);

} // namespace dlrun::cli
