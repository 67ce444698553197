#include "runtime/run_fingerprint.hpp"

#include "actors/common/fingerprint.hpp"
#include "data/decoders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class run_fingerprint_test : public testing::Test {
protected:
  run_fingerprint_test() {
    spec.mutable_cluster()->set_threads_per_worker(1);
    spec.mutable_cluster()->set_determinism("strict");
    note_fingerprint(record, spec);
  }
  /// Of the host where the run began.
  void change(const std::string& what, const std::string& value) {
    for (auto& part : *record.mutable_fingerprint())
      if (part.what() == what) part.set_value(value);
  }
  std::string refusal() const {
    const auto same = check_same_arithmetic(record, spec);
    if (same) return "";
    EXPECT_EQ(same.error().code, error_code::bad_usage);
    return same.error().message;
  }

  spec::JobSpec spec;
  records::RunRecord record;
};

TEST_F(run_fingerprint_test, the_host_that_the_run_began_on_may_go_on) {
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(record.fingerprint_size(), 7);
  EXPECT_EQ(decoder_difference(record), "");
  EXPECT_EQ(record.decoders_size(), 3);
}

TEST_F(run_fingerprint_test, each_part_that_differs_is_named_with_both_and_the_way_out) {
  for (const auto* what :
       {"dlrun", "compiler", "oneDNN", "processor", "caches", "instruction set", "threads of a worker"}) {
    record.clear_fingerprint();
    note_fingerprint(record, spec);
    change(what, "another one");
    EXPECT_THAT(refusal(), AllOf(HasSubstr(std::string{what} + ": '"), HasSubstr("'another one' there"),
                                 HasSubstr("cluster.determinism")));
  }
  change("caches", "other ones");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("threads of a worker: "), HasSubstr("caches: "), Not(HasSubstr("oneDNN:"))));
}

TEST_F(run_fingerprint_test, a_run_that_is_relaxed_goes_on_anywhere) {
  change("processor", "another one");
  spec.mutable_cluster()->set_determinism("relaxed");
  EXPECT_EQ(refusal(), "");
  EXPECT_THAT(fingerprint_difference(record, spec), HasSubstr("another one"));
}

TEST_F(run_fingerprint_test, a_run_without_a_fingerprint_is_believed) {
  EXPECT_EQ(fingerprint_difference(records::RunRecord{}, spec), "");
}

TEST_F(run_fingerprint_test, what_the_run_began_with_is_kept) {
  change("processor", "another one");
  note_fingerprint(record, spec);
  EXPECT_THAT(refusal(), HasSubstr("another one"));
  EXPECT_EQ(record.fingerprint_size(), 7);
}

TEST_F(run_fingerprint_test, roles_of_another_build_differ_and_runs_of_another_build_do_not) {
  EXPECT_THAT(common::dlrun_build(), testing::MatchesRegex("[0-9.]+[+][0-9a-f]{12}"));
  EXPECT_EQ(common::dlrun_build().rfind(common::dlrun_version() + "+", 0), 0U);
  const auto here = common::build_here(1);
  EXPECT_THAT(here.fingerprint, HasSubstr(common::dlrun_build()));
  EXPECT_EQ(here.parts.front().value, "dlrun " + common::dlrun_version());
}

TEST_F(run_fingerprint_test, a_part_that_this_version_does_not_know_is_passed_over) {
  auto& newer = *record.add_fingerprint();
  newer.set_what("weather");
  newer.set_value("fine");
  EXPECT_EQ(refusal(), "");
}

TEST_F(run_fingerprint_test, libraries_that_decode_are_named_as_they_name_themselves) {
  const auto decoders = data::decoder_versions();
  ASSERT_EQ(decoders.size(), 3U);
  EXPECT_THAT(decoders.at(0).version, testing::MatchesRegex("[0-9.]+.*"));
  EXPECT_THAT(decoders.at(2).version, testing::MatchesRegex("[0-9]+[a-z]? .*"));
  record.mutable_decoders(0)->set_value("0.1");
  EXPECT_THAT(decoder_difference(record), HasSubstr("zlib: '"));
  EXPECT_EQ(refusal(), "") << "the digests of the data tell";
}

} // namespace
} // namespace dlrun::runtime
