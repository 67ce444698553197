/// What the columns of a CSV file become: numbers of a record, or its target.
#pragma once

#include "data/normalisation.hpp"
#include "proto/job_spec.pb.h"

#include <dlrun/error.hpp>
#include <string_view>
#include <unordered_map>

namespace dlrun::data {

/// Texts and their numbers, in an order that is fixed when all are known.
class vocabulary {
public:
  /// Learnt entries of one column, and bytes of them of all columns: they are kept in the job file
  /// of the run.
  static constexpr std::size_t entries_max = 10'000;
  static constexpr std::size_t bytes_max = std::size_t{256} << 10;

  void add(std::string_view text);
  /// Numbers the texts by their bytes instead of by when they were added.
  void sort();
  std::optional<std::size_t> find(std::string_view text) const;
  std::size_t size() const { return texts_.size(); }
  std::size_t bytes() const { return bytes_; }
  const std::vector<std::string>& texts() const { return texts_; }

private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::size_t> numbers_;
  std::size_t bytes_ = 0;
};

/// One column of a record. Its place in the file is known; what it has to learn, it may not have
/// yet.
class csv_column {
public:
  /// `place` is where it is in a line, from 0.
  csv_column(const spec::CsvColumn& spec, std::size_t place);
  /// @returns bad_spec (without the place) when what stands for a missing number is none.
  result<void> check() const;

  std::size_t place() const { return place_; }
  const std::string& name() const { return spec_.column(); }
  bool is_categorical() const { return is_categorical_; }
  bool learns_vocabulary() const { return learns_vocabulary_; }
  bool learns_statistics() const { return learns_statistics_; }
  /// Floats of a record: 1, or for one_hot the number of categories.
  std::size_t width() const;
  std::size_t vocabulary_bytes() const { return words_.bytes(); }

  /// The cell, or what stands for a missing one. @returns bad_data (without the place) when it is
  /// missing and nothing stands for it.
  result<std::string_view> text_of(std::string_view cell, bool quoted) const;

  /// One cell of a record that is learnt from. @returns bad_data (without the place).
  result<void> learn_word(std::string_view text);
  result<void> learn_number(std::string_view text);
  /// All are learnt. Writes them into `spec`.
  void finish_words(spec::CsvColumn& spec);
  /// @returns bad_data (without the place) when mean or deviation are beyond what the specification
  ///   can hold.
  result<void> finish_numbers(spec::CsvColumn& spec);

  /// The cell as floats, which fill `out` of width(). @returns bad_data (without the place).
  result<void> convert(std::string_view text, std::span<float> out) const;

private:
  result<std::size_t> category(std::string_view text) const;

  spec::CsvColumn spec_;
  std::size_t place_;
  bool is_categorical_;
  bool is_one_hot_;
  bool has_bucket_; ///< for words that the vocabulary does not have
  bool learns_vocabulary_;
  bool learns_statistics_;
  vocabulary words_;
  running_statistics statistics_;
};

/// A finite decimal number with nothing around it but spaces; one that is nearer to 0 than any
/// double is 0.
/// @returns bad_data (without the place).
result<double> parse_cell(std::string_view text);

} // namespace dlrun::data
