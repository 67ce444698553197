/// Data sets for tests, by the keys that a user would write.
#pragma once

#include "data/job_data.hpp"
#include "job/spec_reader.hpp"
#include "tests/data/files.hpp"

#include <gtest/gtest.h>

namespace dlrun::test {

/// A folder, and data sets of the files in it.
class decoded_job {
public:
  /// Decodes `data`, YAML as in a job file's `data:`, paths relative to the folder.
  result<data::job_data> decode(const std::string& data, target_kind wanted = target_kind::classes) {
    const std::string text = "model: {input: [1], layers: [relu]}\ndata: " + data +
                             "\ntrain: {optimizer: {sgd: {lr: 0.1}}, seed: 7}\n";
    auto parsed = job::parse_spec(text, "job.yaml", folder.path());
    if (!parsed) return tl::unexpected(parsed.error());
    spec = std::move(*parsed);
    return data::decode_job_data(*spec.mutable_data(), 7, wanted);
  }

  /// Decodes it and opens one part.
  result<std::shared_ptr<const data::dataset>> open(const std::string& data,
                                                    data::data_part part = data::data_part::training,
                                                    target_kind wanted = target_kind::classes) {
    auto decoded = decode(data, wanted);
    if (!decoded) return tl::unexpected(decoded.error());
    return data::open_part(*decoded, spec.data(), 7, part);
  }

  /// What is said when it cannot be decoded; "" when it can. Whatever it is, it must be the user's
  /// mistake.
  std::string refusal(const std::string& data, target_kind wanted = target_kind::classes) {
    const auto opened = open(data, data::data_part::training, wanted);
    if (opened) return "";
    EXPECT_TRUE(opened.error().code == error_code::bad_data || opened.error().code == error_code::bad_spec)
        << opened.error().message;
    return opened.error().message;
  }

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    return folder.write(name, text_bytes(content));
  }
  std::filesystem::path write(const std::string& name, const bytes& content) const {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    return folder.write(name, content);
  }

  temporary_folder folder;
  spec::JobSpec spec; ///< of the last decode(), with what was learnt
};

/// All records of a data set, in order.
struct everything {
  std::vector<float> records;
  std::vector<std::int32_t> classes;
  std::vector<float> values;
};

inline everything read_all(const data::dataset& from) {
  const auto count = from.record_count();
  const auto targets = static_cast<std::size_t>(from.target_values());
  const bool classes = from.targets() == target_kind::classes && targets > 0;
  std::vector<std::uint64_t> indices(count);
  for (std::uint64_t i = 0; i < count; ++i) indices[i] = i;
  everything all{std::vector<float>(count * from.record_values()),
                 std::vector<std::int32_t>(classes ? count : 0),
                 std::vector<float>(classes ? 0 : count * targets)};
  const auto read = from.read(indices, all.records, {.classes = all.classes, .values = all.values});
  EXPECT_TRUE(read) << (read ? "" : read.error().message);
  return all;
}

} // namespace dlrun::test
