#include "job/run_layout.hpp"
#include "runtime/trained_with.hpp"

#include "job/spec_reader.hpp"
#include "job/spec_writer.hpp"
#include "runtime/run_record.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A run folder with a record of two revisions, the second with another learning rate.
class trained_with_test : public testing::Test {
protected:
  trained_with_test() {
    write(0, begun);
    write(1, changed);
    keep_record();
  }
  void keep_record() const {
    records::RunRecord record;
    *record.add_revisions() = begun;
    *record.add_revisions() = changed;
    record.set_train_records(7);
    EXPECT_TRUE(write_record(run.path(), record));
  }
  void write(std::size_t revision, const spec::JobSpec& spec) const {
    EXPECT_TRUE(job::write_spec_file(run.spec_file(revision), spec));
  }
  trained_with read() const {
    auto found = read_trained_with(run);
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    return std::move(*found);
  }
  static spec::JobSpec spec_with(const std::vector<std::string>& overrides) {
    auto spec = test::parse(test::minimal_spec, overrides).value();
    if (spec.cluster().device() == "auto") spec.mutable_cluster()->set_device("cpu"); // as it was settled
    return spec;
  }

  test::temporary_folder temporary;
  spec::JobSpec begun = spec_with({});
  spec::JobSpec changed = spec_with({"train.optimizer.sgd.lr=0.01"});
  run_folder run = run_folder::create((temporary.path() / "run").string(), begun).value();
};

TEST_F(trained_with_test, files_that_nobody_touched_say_the_same) {
  const auto found = read();
  ASSERT_EQ(found.revisions.size(), 2U);
  EXPECT_EQ(found.revisions[1].SerializeAsString(), changed.SerializeAsString());
  EXPECT_EQ(found.as_written.SerializeAsString(), changed.SerializeAsString());
  EXPECT_THAT(found.edited, IsEmpty());
  ASSERT_TRUE(found.record);
  EXPECT_EQ(found.record->train_records(), 7U);
}

TEST_F(trained_with_test, an_edited_file_is_told_key_by_key_and_not_believed) {
  write(1, spec_with({"train.optimizer.sgd.lr=0.5", "train.seed=2", "train.epochs=9"}));
  const auto found = read();
  EXPECT_THAT(found.edited,
              ElementsAre(AllOf(
                  HasSubstr("train.seed: 1 was trained with, spec.1.yaml now says 2"),
                  HasSubstr("train.epochs: 1 was trained with, spec.1.yaml now says 9"),
                  HasSubstr("train.optimizer.sgd.lr: 0.01 was trained with, spec.1.yaml now says 0.5"))));
  EXPECT_EQ(found.as_written.SerializeAsString(), changed.SerializeAsString());
}

TEST_F(trained_with_test, keys_that_change_no_bit_may_be_edited_in_the_newest) {
  write(1, spec_with({"train.optimizer.sgd.lr=0.01", "cluster.workers=7"}));
  const auto found = read();
  EXPECT_THAT(found.edited, IsEmpty());
  EXPECT_EQ(found.as_written.cluster().workers(), 7);
  EXPECT_EQ(found.revisions.back().cluster().workers(), 2);
  write(0, spec_with({"cluster.workers=7"}));
  EXPECT_THAT(read().edited,
              ElementsAre(HasSubstr("cluster.workers: 2 was trained with, spec.yaml now says 7")))
      << "what an older revision says would be ignored";
}

TEST_F(trained_with_test, a_run_from_before_there_were_devices_was_trained_on_processors) {
  for (auto* one : {&begun, &changed}) {
    one->mutable_cluster()->clear_device();
    one->mutable_train()->clear_precision();
  }
  keep_record();
  write(0, begun);
  write(1, changed);
  auto found = read();
  EXPECT_THAT(found.edited, IsEmpty());
  for (const auto& one : found.revisions) {
    EXPECT_EQ(one.cluster().device(), "cpu");
    EXPECT_EQ(one.train().precision(), "fp32");
  }
  EXPECT_EQ(found.as_written.cluster().device(), "cpu");
  std::filesystem::remove(run.path() / run_layout::record);
  found = read();
  EXPECT_EQ(found.revisions.back().cluster().device(), "cpu") << "of dlrun 0.1";
}

TEST_F(trained_with_test, auto_in_a_file_is_the_device_that_was_settled) {
  changed.mutable_cluster()->set_device("cuda");
  begun.mutable_cluster()->set_device("cuda");
  keep_record();
  write(0, begun);
  auto edited = changed;
  edited.mutable_cluster()->set_device("auto");
  write(1, edited);
  const auto found = read();
  EXPECT_THAT(found.edited, IsEmpty());
  EXPECT_EQ(found.as_written.cluster().device(), "cuda");
  edited.mutable_cluster()->set_device("cpu");
  write(1, edited);
  EXPECT_THAT(read().edited,
              ElementsAre(HasSubstr("cluster.device: cuda was trained with, spec.1.yaml now says cpu")));
}

TEST_F(trained_with_test, a_file_that_is_gone_says_nothing) {
  std::filesystem::remove(run.spec_file(0));
  std::filesystem::remove(run.spec_file(1));
  const auto found = read();
  EXPECT_THAT(found.edited, IsEmpty());
  EXPECT_EQ(found.revisions.size(), 2U);
  EXPECT_TRUE(find_run(run.path().string())) << "it is a run all the same";
}

TEST_F(trained_with_test, a_file_that_cannot_be_read_is_told) {
  for (const std::string content : {"", "model: {input: [1", "\xFF\xFE", "train: {seed: x}"}) {
    std::ofstream(run.spec_file(1), std::ios::binary) << content;
    EXPECT_THAT(read().edited,
                ElementsAre(AllOf(HasSubstr("cannot be read any more"), HasSubstr("spec.1.yaml"))));
  }
}

TEST_F(trained_with_test, a_revision_that_the_run_never_had_is_told) {
  write(2, changed);
  EXPECT_THAT(read().edited, ElementsAre(HasSubstr("spec.2.yaml is not of this run")));
}

TEST_F(trained_with_test, without_a_record_the_files_are_believed) {
  std::filesystem::remove(run.path() / run_layout::record);
  write(1, spec_with({"train.seed=2"}));
  const auto found = read();
  EXPECT_FALSE(found.record);
  EXPECT_EQ(found.revisions.size(), 2U);
  EXPECT_EQ(found.as_written.train().seed(), 2U);
  std::ofstream(run.spec_file(1)) << "model: {";
  EXPECT_FALSE(read_trained_with(run));
}

} // namespace
} // namespace dlrun::runtime
