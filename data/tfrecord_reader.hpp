/// tf.train.Example records.
#pragma once

#include "data/element_type.hpp"
#include "data/tfrecord_file.hpp"
#include "proto/job_spec.pb.h"
#include "proto/tf_example.pb.h"
#include <dlrun/reader.hpp>

namespace dlrun::data {

/// Reads the features that `data.*.tfrecord` names; a record is their numbers, one feature after
/// the other. A feature of floats or int64 is what it is; one of bytes holds one string, raw
/// numbers of the type that `bytes` says. Every record must have the same features with as many
/// numbers. The file is read twice: for the number of records, and for them.
class tfrecord_reader final : public reader {
public:
  explicit tfrecord_reader(const spec::TfRecordSpec& spec);

  result<record_layout> open(const reader_request& request) override;
  result<void> read(std::uint64_t first, std::uint64_t count, const record_buffers& out) override;

private:
  /// The numbers of `names`, one feature after the other, replace `out`.
  result<void> numbers_of(const google::protobuf::RepeatedPtrField<std::string>& names,
                          std::vector<double>& out);
  result<void> append(const tf::Feature& feature, const std::string& name, std::vector<double>& out);
  result<void> append_bytes(const std::string& raw, const std::string& name, std::vector<double>& out);
  result<void> parse();
  result<void> set_shape(record_layout& layout) const;
  result<void> read_example(std::uint64_t i, const record_buffers& out);
  result<std::int32_t> single_class(const std::vector<double>& numbers) const;
  tl::unexpected<error> wrong(const std::string& what) const;

  const spec::TfRecordSpec& spec_;
  element_type raw_type_ = element_type::u1;
  reader_request request_;
  std::unique_ptr<tfrecord_file> file_;
  tf::Example example_;
  std::size_t values_ = 0;
  std::size_t target_values_ = 0;
  bool bytes_ = false; ///< every feature of the first record is raw bytes of u1
  std::vector<double> numbers_;
};

} // namespace dlrun::data
