// What the options of a job on pods name and the cluster has to have; with a kubectl that answers:
// tests/integration/submit_test.py.
#include "cli/named_objects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class objects_named_by_options : public testing::Test {
protected:
  pods_wish pods{.name = "x", .name_space = "team-a", .image = {}, .job_file = {}};
  pods_target in_team{"team-a", "x"}, in_context{"", "x"};
};

TEST_F(objects_named_by_options, are_none_where_none_is_named) {
  EXPECT_THAT(objects_named_by(pods), IsEmpty());
}

TEST_F(objects_named_by_options, are_asked_for_by_kind_and_by_name_alone) {
  pods.data_claim = "data";
  pods.model_claim = "models";
  pods.priority_class = "high";
  const auto kinds = objects_named_by(pods);
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_THAT(words_for_named(in_team, kinds[0]),
              AllOf(Contains("persistentvolumeclaim/data"), Contains("persistentvolumeclaim/models"),
                    Contains("--output=name"), Contains("--ignore-not-found"),
                    Contains("--namespace=team-a")));
  EXPECT_THAT(words_for_named(in_context, kinds[1]),
              AllOf(Contains("priorityclass.scheduling.k8s.io/high"), Not(Contains(HasSubstr("data")))));
}

TEST_F(objects_named_by_options, are_missing_where_the_answer_does_not_tell_of_them) {
  pods.data_claim = "data";
  pods.run_claim = "runs";
  const auto claims = objects_named_by(pods).front();
  EXPECT_THAT(not_told(claims, "persistentvolumeclaim/data\npersistentvolumeclaim/runs\n"), IsEmpty());
  EXPECT_THAT(not_told(claims, "persistentvolumeclaim/data\n"),
              ElementsAre(Field(&named_object::name, "runs")));
  EXPECT_THAT(not_told(claims, "persistentvolumeclaim/data-runs\n"), testing::SizeIs(2));
}

TEST_F(objects_named_by_options, are_told_with_the_way_out) {
  pods.secret = "key";
  pods.preemptible_class = "low";
  const auto kinds = objects_named_by(pods);
  EXPECT_EQ(
      tell_missing(in_team, kinds[0], kinds[0].all[0]),
      "--secret 'key': there is no Secret of that name in namespace 'team-a': make it, or name one that is "
      "there ('kubectl get secrets --namespace team-a'), or leave the option out, and one is made");
  EXPECT_EQ(
      tell_missing(in_context, kinds[1], kinds[1].all[0]),
      "--preemptible-priority-class 'low': there is no PriorityClass of that name: make it, or name one that "
      "is there ('kubectl get priorityclasses')");
  EXPECT_THAT(tell_missing(in_context, kinds[0], kinds[0].all[0]),
              HasSubstr("in the namespace of kubectl's context"));
}

TEST_F(objects_named_by_options, may_be_what_nobody_tells_this_user) {
  EXPECT_TRUE(
      is_untold("Error from server (Forbidden): secrets \"key\" is forbidden: User \"jane\" cannot get"));
  EXPECT_TRUE(is_untold("error: the server doesn't have a resource type \"localqueue\""));
  EXPECT_FALSE(is_untold("Unable to connect to the server: i/o timeout"));
}

} // namespace
} // namespace dlrun::cli
