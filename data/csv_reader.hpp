/// Tables as text: CSV files, plain or gzip.
#pragma once

#include "data/csv_classes.hpp"
#include "data/csv_columns.hpp"
#include "data/csv_header.hpp"
#include "data/csv_parser.hpp"
#include "data/decode.hpp"

#include <memory>
#include <optional>
#include <set>

namespace dlrun::data {

/// Reads the columns that `data.*.csv` names. The file is read twice, or three times where means
/// are learnt: for the number of lines and the vocabularies; for means; for the records. What is
/// learnt is written into the specification it was made with.
class csv_reader final : public reader {
public:
  /// Both must outlive the reader. Something may be learnt if context.learn.
  csv_reader(spec::DatasetSpec& spec, const decode_context& context);

  result<record_layout> open(const reader_request& request) override;
  result<void> read(std::uint64_t first, std::uint64_t count, const record_buffers& out) override;

private:
  struct target_column {
    std::string name;
    std::size_t place = 0;
  };

  result<void> rewind();
  result<bool> next_filled_line();
  result<void> read_header();
  result<void> count_columns();
  result<bool> next_line();
  result<void> find_columns();
  result<std::size_t> place_of(const std::string& column) const;
  result<void> use_all_columns(const std::set<std::size_t>& targets);
  result<std::set<std::size_t>> find_targets();
  result<void> check_not_target(const std::set<std::size_t>& targets) const;
  result<void> first_pass();
  result<void> learn_line();
  result<void> check_may_learn() const;
  result<void> finish_learning();
  result<void> statistics_pass();
  result<void> read_line(std::span<float> floats, std::span<std::int32_t> classes, std::span<float> values);
  /// Puts file, line and column in front of what is wrong.
  tl::unexpected<error> at(std::size_t place, const error& what) const;

  spec::DatasetSpec& spec_;
  const decode_context& context_;
  reader_request request_;
  std::unique_ptr<csv_parser> parser_;
  csv_header header_; // of size 0 until it is read
  std::vector<csv_column> columns_;
  std::vector<target_column> targets_;
  bool learns_classes_ = false;
  std::optional<csv_classes> classes_; // from first_pass() on
  std::uint64_t lines_ = 0;
};

} // namespace dlrun::data
