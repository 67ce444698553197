#include "job/run_layout.hpp"
#include "runtime/run_record.hpp"

#include "job/spec_reader.hpp"
#include "runtime/run_folder.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using test::idx_bytes;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint32_t records = 300;

/// 300 records of four bytes and their labels, also for validation.
class run_record_test : public testing::Test {
protected:
  run_record_test() {
    write("images", pixels(0));
    write("labels", labels());
    folder.write("more-images", idx_bytes({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
    folder.write("more-labels", idx_bytes({2}, {0, 1}));
  }
  static test::bytes pixels(std::uint8_t first) {
    test::bytes all;
    for (std::size_t i = 0; i < records * 4; ++i) all.push_back(static_cast<std::uint8_t>(first + i * 3));
    return all;
  }
  static test::bytes labels() {
    test::bytes all;
    for (std::uint32_t i = 0; i < records; ++i) all.push_back(static_cast<std::uint8_t>(i % 3));
    return all;
  }
  void write(const std::string& name, const test::bytes& values) const {
    const auto each = name.find("images") != std::string::npos ? 4U : 1U;
    const auto count = static_cast<std::uint32_t>(values.size() / each);
    folder.write(name, idx_bytes(each == 4 ? std::vector<std::uint32_t>{count, 2, 2}
                                           : std::vector<std::uint32_t>{count},
                                 values));
  }
  prepared_job prepare(const std::vector<std::string>& overrides = {}) const {
    const auto spec =
        job::parse_spec(R"(model: {input: [4], layers: [{linear: {out_features: 3}, name: only}]}
data: {train: {records: images, labels: labels}, validation: {records: more-images, labels: more-labels}}
train: {microbatch_size: 2, optimizer: {sgd: {lr: 0.1}}}
)",
                        "job.yaml", folder.path(), overrides);
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
    auto job = prepare_job(*spec);
    EXPECT_TRUE(job) << (job ? "" : job.error().message);
    return std::move(*job);
  }
  /// What is said of the job as it is now; "" when it is that of the record.
  std::string refusal(const records::RunRecord& record,
                      const std::vector<std::string>& overrides = {}) const {
    const auto same = check_same_inputs(record, prepare(overrides));
    if (same) return "";
    EXPECT_THAT(same.error().code, testing::AnyOf(error_code::bad_data, error_code::bad_spec));
    return same.error().message;
  }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }

  test::temporary_folder folder;
};

TEST_F(run_record_test, is_read_as_it_was_written) {
  const auto record = make_record(prepare());
  ASSERT_TRUE(write_record(folder.path(), record));
  const auto read = read_record(folder.path());
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(*read);
  EXPECT_EQ((*read)->SerializeAsString(), record.SerializeAsString());
  EXPECT_EQ((*read)->train_records(), records);
  EXPECT_EQ((*read)->tensors(0), "only.weight [3, 4]");
  EXPECT_EQ((*read)->data_size(), 4);
}

TEST_F(run_record_test, a_folder_without_one_has_none) {
  const auto read = read_record(folder.path());
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

/// A key that a later version adds is compared by its default.
TEST_F(run_record_test, one_that_cannot_be_looked_for_is_not_taken_for_none) {
  std::filesystem::create_symlink(run_layout::record, folder.path() / run_layout::record); // to itself
  const auto looked = has_record(folder.path());
  const auto read = read_record(folder.path());
  ASSERT_FALSE(looked);
  ASSERT_FALSE(read);
  for (const auto& told : {looked.error(), read.error()}) {
    EXPECT_EQ(told.code, error_code::system);
    EXPECT_THAT(told.message, AllOf(HasSubstr(path("run.record")), HasSubstr("Too many levels")));
  }
}

TEST_F(run_record_test, a_key_that_it_does_not_have_has_its_default) {
  auto record = make_record(prepare());
  record.mutable_revisions(0)->mutable_train()->clear_shuffle();
  ASSERT_TRUE(write_record(folder.path(), record));
  EXPECT_TRUE((*read_record(folder.path()))->revisions(0).train().shuffle());
}

TEST_F(run_record_test, what_is_not_as_written_is_refused_wherever_it_was_changed) {
  ASSERT_TRUE(write_record(folder.path(), make_record(prepare())));
  std::ifstream file(folder.path() / run_layout::record, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>{file}, {}};
  const auto expect_damaged = [&](const std::string& content, std::size_t at) {
    folder.write(run_layout::record, test::text_bytes(content));
    const auto read = read_record(folder.path());
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code, error_code::bad_usage);
    EXPECT_THAT(read.error().message, AllOf(HasSubstr("run.record"), HasSubstr("--unrecorded")));
  };
  for (std::size_t at = 0; at < whole.size(); at += at < 100 ? 1 : 13) {
    auto flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    expect_damaged(flipped, at);
    expect_damaged(whole.substr(0, at), at);
  }
}

TEST_F(run_record_test, the_same_data_is_the_same_wherever_it_lies) {
  const auto record = make_record(prepare());
  EXPECT_EQ(refusal(record), "");
  std::filesystem::copy(path("images"), path("moved"));
  std::filesystem::remove(path("images"));
  EXPECT_EQ(refusal(record, {"data.train.records=moved"}), "");
  std::filesystem::create_symlink(path("moved"), path("images"));
  EXPECT_EQ(refusal(record), "");
  folder.write("images.gz", test::gzip(idx_bytes({records, 2, 2}, pixels(0))));
  EXPECT_EQ(refusal(record, {"data.train.records=images.gz"}), "") << "compressed it is the same too";
}

TEST_F(run_record_test, other_records_are_told_by_their_file_and_place) {
  const auto record = make_record(prepare());
  const auto time = std::filesystem::last_write_time(path("images"));
  auto changed = pixels(0);
  changed[4 * 123] ^= 1U;
  write("images", changed);
  std::filesystem::last_write_time(path("images"), time); // of the same size and age
  EXPECT_THAT(refusal(record),
              AllOf(HasSubstr("the records of data.train ('" + path("images") +
                              "'): the first that differ: records 120 to 123 (block 30 of 75)"),
                    Not(HasSubstr("labels"))));
}

TEST_F(run_record_test, other_labels_order_and_numbers_are_told) {
  const auto record = make_record(prepare());
  auto flipped = labels();
  flipped[7] = 0;
  write("labels", flipped);
  EXPECT_THAT(refusal(record), HasSubstr("the targets of data.train ('" + path("labels") + "')"));
  write("labels", labels());
  auto swapped = pixels(0);
  std::swap_ranges(swapped.begin(), swapped.begin() + 4, swapped.end() - 4);
  write("images", swapped);
  EXPECT_THAT(refusal(record), HasSubstr("records 0 to 3 (block 0 of 75)"));
  auto more = pixels(0);
  more.insert(more.end(), {1, 2, 3, 4});
  auto one_more = labels();
  one_more.push_back(0);
  write("images", more);
  write("labels", one_more);
  EXPECT_THAT(refusal(record), HasSubstr("301 of them, and the run has 300"));
}

TEST_F(run_record_test, other_validation_data_is_told) {
  const auto record = make_record(prepare());
  folder.write("more-labels", idx_bytes({2}, {1, 1}));
  EXPECT_THAT(refusal(record),
              AllOf(HasSubstr("the targets of data.validation"), Not(HasSubstr("data.train ("))));
}

/// As of a layer of the program's own that makes other parameters than it did.
TEST_F(run_record_test, layers_with_other_parameters_are_told) {
  auto record = make_record(prepare());
  record.set_tensors(0, "only.weight [3, 5]");
  EXPECT_THAT(refusal(record), AllOf(HasSubstr("only.weight [3, 4]"), HasSubstr("only.weight [3, 5]")));
}

} // namespace
} // namespace dlrun::runtime
