#include "runtime/host_data.hpp"

#include "job/spec_reader.hpp"
#include "runtime/run_record.hpp"
#include "security/certificate_authority.hpp"
#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using test::idx_bytes;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint32_t held_records = 300;

/// A job of 300 records of four bytes, with validation data, prepared where the root is. What is at
/// its paths then changes: that is the host.
class host_data_test : public testing::Test {
protected:
  host_data_test() {
    for (const auto* name : {"images", "more-images"}) write(name, pixels());
    for (const auto* name : {"labels", "more-labels"})
      folder.write(name, idx_bytes({held_records}, classes()));
    root = prepare();
    bundle.set_host("beta");
    bundle.set_root("alpha");
    bundle.set_index(1);
    *bundle.mutable_spec() = root.spec;
    *bundle.mutable_record() = make_record(root);
    giver = data_giver::start({.token = token, .tls = context("alpha")}, root.data).value();
    giver->others_are({});
    bundle.set_data_at(giver->address());
  }
  static test::bytes pixels() {
    test::bytes all;
    for (std::size_t i = 0; i < held_records * 4; ++i) all.push_back(static_cast<std::uint8_t>(i * 3));
    return all;
  }
  static test::bytes classes() {
    test::bytes all;
    for (std::uint32_t i = 0; i < held_records; ++i) all.push_back(static_cast<std::uint8_t>(i % 3));
    return all;
  }
  void write(const std::string& name, const test::bytes& values) const {
    folder.write(name, idx_bytes({held_records, 2, 2}, values));
  }
  prepared_job prepare() const {
    const auto spec = job::parse_spec(R"(model: {input: [4], layers: [{linear: {out_features: 3}}]}
data: {train: {records: images, labels: labels}, validation: {records: more-images, labels: more-labels}}
train: {microbatch_size: 2, optimizer: {sgd: {lr: 0.1}}}
)",
                                      "job.yaml", folder.path(), {});
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
    return std::move(*prepare_job(*spec));
  }
  std::shared_ptr<security::tls_context> context(const std::string& host) const {
    return security::tls_context::make(authority.issue({"j1", "agent", 0, host}).value()).value();
  }
  result<host_job> prepare_there() const {
    return prepare_on_host(bundle, {.token = token, .tls = context("beta"), .root = {}});
  }
  void expect_same(const host_job& there) const {
    for (const auto place : {data::array_place::training_records, data::array_place::training_targets,
                             data::array_place::validation_records, data::array_place::validation_targets})
      EXPECT_TRUE(std::ranges::equal(data::array_at(*there.job.data, place)->bytes(),
                                     data::array_at(*root.data, place)->bytes()));
    EXPECT_EQ(there.job.train_records, root.train_records);
    EXPECT_EQ(there.job.validation_records, root.validation_records);
    EXPECT_EQ(there.job.spec.SerializeAsString(), root.spec.SerializeAsString());
    EXPECT_EQ(there.job.data->training.class_count, 3U);
  }
  std::string path(const std::string& name) const { return (folder.path() / name).string(); }

  test::temporary_folder folder;
  transport::run_token token = transport::run_token::random().value();
  security::certificate_authority authority = security::certificate_authority::make("j1").value();
  prepared_job root;
  bootstrap::HostBundle bundle;
  std::unique_ptr<data_giver> giver;
};

TEST_F(host_data_test, a_host_with_the_data_is_given_nothing) {
  const auto there = prepare_there();
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->intake.bytes, 0U);
  expect_same(*there);
}

TEST_F(host_data_test, a_host_without_any_file_is_given_all) {
  for (const auto* name : {"images", "labels", "more-images", "more-labels"})
    std::filesystem::rename(path(name), path(name) + "-kept"); // the root has it mapped
  const auto there = prepare_there();
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->intake.bytes, 2 * held_records * 5);
  EXPECT_THAT(there->intake.why, HasSubstr("cannot open " + path("images")));
  EXPECT_THAT(there->intake.from, HasSubstr("by host alpha"));
  expect_same(*there);
}

TEST_F(host_data_test, of_a_file_with_one_changed_byte_one_block_is_given) {
  std::filesystem::rename(path("images"), path("images-kept"));
  auto changed = pixels();
  changed[4 * 123] ^= 1U;
  write("images", changed);
  const auto there = prepare_there();
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->intake.bytes, 16U);
  EXPECT_THAT(there->intake.why, HasSubstr("the records of data.train ('" + path("images") +
                                           "'): the first that differ: records 120 to 123 (block 30 of 75)"));
  expect_same(*there);
}

TEST_F(host_data_test, validation_data_alone_is_given_where_only_that_is_missing) {
  std::filesystem::rename(path("more-labels"), path("kept"));
  const auto there = prepare_there();
  ASSERT_TRUE(there) << there.error().message;
  EXPECT_EQ(there->intake.bytes, held_records * 5);
  expect_same(*there);
}

TEST_F(host_data_test, where_it_may_not_be_given_host_file_and_block_are_named) {
  std::filesystem::rename(path("images"), path("images-kept"));
  auto changed = pixels();
  changed[0] ^= 1U;
  write("images", changed);
  bundle.mutable_spec()->mutable_data()->set_share("off");
  const auto there = prepare_there();
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code, error_code::bad_data);
  EXPECT_THAT(there.error().message,
              AllOf(HasSubstr("host beta"), HasSubstr("not that of host alpha"), HasSubstr(path("images")),
                    HasSubstr("block 0 of 75"), HasSubstr("data.share")));
}

TEST_F(host_data_test, what_does_not_fit_into_memory_is_refused_before_anything_is_fetched) {
  std::filesystem::rename(path("images"), path("images-kept"));
  bundle.mutable_spec()->mutable_data()->set_memory_limit("1000");
  giver.reset();
  const auto there = prepare_there();
  ASSERT_FALSE(there);
  EXPECT_THAT(there.error().message, AllOf(HasSubstr("host beta"), HasSubstr(path("images")),
                                           HasSubstr("data.memory_limit"), HasSubstr("copy the file")));
}

} // namespace
} // namespace dlrun::runtime
