// What kubectl is asked, and what its answers mean; with a kubectl that answers:
// tests/integration/submit_test.py.
#include "cli/kubectl_words.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const pods_target in_context{"", "x"}, in_team{"team-a", "x"};

TEST(pods_target, is_a_job_in_a_namespace_or_in_that_of_the_context) {
  EXPECT_EQ(read_target("k8s://x"), in_context);
  EXPECT_EQ(read_target("k8s://team-a/x"), in_team);
  EXPECT_EQ(read_target("k8s://7/x")->name_space, "7");
  for (const auto& one : {in_context, in_team}) EXPECT_EQ(read_target(one.text()), one);
}

TEST(pods_target, has_no_other_names) {
  for (const std::string wrong :
       {"", "k8s:", "k8s://", "k8s:///", "k8s:///x", "k8s://a/", "k8s://a/b/c", "k8s://X", "k8s://-x",
        "k8s://7", "k8s://a/x\n", "k8s://a/x y", "k8s://a/$(id)", "runs/x"}) {
    const auto target = read_target(wrong);
    ASSERT_FALSE(target) << wrong;
    EXPECT_EQ(target.error().code, error_code::bad_usage);
    EXPECT_THAT(target.error().message, HasSubstr("k8s://NAMESPACE/JOB"));
  }
}

TEST(kubectl_words, name_the_namespace_where_one_is_named) {
  for (const auto words :
       {words_for_objects, words_for_own_objects, words_for_job, words_for_control_pods, words_for_stop}) {
    EXPECT_EQ(words(in_team).front(), "--namespace=team-a");
    EXPECT_THAT(words(in_context), Not(Contains(HasSubstr("--namespace"))));
  }
}

TEST(kubectl_words, run_a_verb_behind_all_options) {
  EXPECT_THAT(words_for_verb(in_team, "x-1", {"status", "/var/lib/dlrun/x", "--json"}),
              ElementsAre("--namespace=team-a", "exec", "x-1", "--container=dlrun", "--",
                          "/usr/local/bin/dlrun", "status", "/var/lib/dlrun/x", "--json"));
  EXPECT_THAT(verb_in_pod(in_team, {"logs", "--json", "k8s://team-a/x"}, 2),
              ElementsAre("logs", "--json", "/var/lib/dlrun/x"));
}

TEST(kubectl_words, apply_by_the_server_from_stdin_and_try_it_first) {
  EXPECT_THAT(words_for_apply(in_context, true),
              AllOf(Contains("--dry-run=server"), Contains("--server-side"), Contains("--filename=-")));
  EXPECT_THAT(words_for_apply(in_context, false), Not(Contains(HasSubstr("dry-run"))));
}

TEST(kubectl_words, try_a_pod_with_the_right_to_create_it_and_no_other) {
  EXPECT_THAT(words_for_trial_pod(in_team), ElementsAre("--namespace=team-a", "create", "--dry-run=server",
                                                        "--output=name", testing::_, "--filename=-"));
}

TEST(kubectl_words, are_answered_with_warnings_beside_what_else_is_said) {
  EXPECT_THAT(warnings_in("Warning: would violate PodSecurity \"restricted:latest\"\nError\nWarning: b\n"),
              ElementsAre("would violate PodSecurity \"restricted:latest\"", "b"));
  EXPECT_THAT(warnings_in("no Warning: here"), IsEmpty());
}

TEST(kubectl_words, delete_by_name_what_was_told_to_be_of_the_job) {
  const auto own =
      own_objects(in_context, "job.batch/x\nsecret/x-key\nsecret/other\nconfigmap/x-pods\njob.batch/x-2\n"
                              "job.batch/x-hosts\n\n");
  EXPECT_THAT(own, ElementsAre("job.batch/x", "secret/x-key", "configmap/x-pods", "job.batch/x-hosts"));
  EXPECT_THAT(words_for_objects(in_context), Not(Contains("job.batch/x-hosts")))
      << "that may be a job of its own";
  EXPECT_THAT(words_for_delete(in_context, own), AllOf(Contains("job.batch/x"), Contains("secret/x-key")));
  EXPECT_THAT(own_objects(in_context, ""), IsEmpty());
  EXPECT_FALSE(serves_metrics(in_context, own));
  const auto served = own_objects(in_context, "networkpolicy.networking.k8s.io/x-metrics\n"
                                              "podmonitor.monitoring.coreos.com/x\n");
  EXPECT_THAT(served, SizeIs(2));
  EXPECT_TRUE(serves_metrics(in_context, served));
}

std::string version(const std::string& major, const std::string& minor) {
  return R"({"clientVersion":{"major":"1","minor":"20"},"serverVersion":{"major":")" + major +
         R"(","minor":")" + minor + R"("}})";
}

TEST(kubernetes_version, is_enough_from_the_oldest_on_that_the_job_needs) {
  for (const auto* minor : {"29", "29+", "37"}) {
    EXPECT_TRUE(check_version(version("1", minor), server_minor_min_alone)) << minor;
    EXPECT_TRUE(check_version(version("1", minor), server_minor_min)) << minor;
  }
  EXPECT_TRUE(check_version(version("2", "0"), server_minor_min_alone));
  for (const auto* minor : {"27", "28", "28+"}) {
    EXPECT_TRUE(check_version(version("1", minor), server_minor_min)) << minor;
    const auto fits = check_version(version("1", minor), server_minor_min_alone);
    ASSERT_FALSE(fits) << minor;
    EXPECT_EQ(fits.error().code, error_code::bad_usage);
    EXPECT_THAT(fits.error().message, AllOf(HasSubstr("1.29 or newer"), HasSubstr("in an etcd")));
  }
  for (const auto* minor : {"9", "26+"})
    for (const int minor_min : {server_minor_min, server_minor_min_alone}) {
      const auto fits = check_version(version("1", minor), minor_min);
      ASSERT_FALSE(fits) << minor;
      EXPECT_THAT(fits.error().message,
                  AllOf(HasSubstr(fmt::format("1.{} or newer", minor_min)), Not(HasSubstr("etcd"))));
    }
  for (const std::string none : {"", "{}", "[]", "null", R"({"clientVersion":{"major":"1","minor":"40"}})",
                                 R"({"serverVersion":7})", R"({"serverVersion":{"major":1}})"})
    EXPECT_EQ(check_version(none, server_minor_min).error().code, error_code::protocol) << none;
}

std::string job(const std::string& rest = R"("spec":{})") {
  return R"({"metadata":{"labels":{"app.kubernetes.io/name":"dlrun"}},)" + rest + "}";
}

TEST(submitted_job, is_read_from_what_the_server_has) {
  const auto plain = read_job(in_context, job());
  ASSERT_TRUE(plain);
  EXPECT_FALSE(plain->is_suspended);
  EXPECT_FALSE(plain->outlives_pods);
  EXPECT_EQ(plain->ended, "");
  const auto other = read_job(
      in_context,
      job(R"("spec":{"suspend":true,"template":{"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{}},)"
          R"({"name":"run","persistentVolumeClaim":{"claimName":"runs"}}]}}},)"
          R"("status":{"conditions":[{"type":"Suspended","status":"True"},{"type":"Complete","status":"False"},)"
          R"({"type":"Failed","status":"True"}]})"));
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->is_suspended);
  EXPECT_EQ(other->suspended_at, "");
  const auto told =
      read_job(in_context,
               R"({"metadata":{"labels":{"app.kubernetes.io/name":"dlrun"},"annotations":{"dlrun/suspended":)"
               R"("2026-11-29T10:00:00Z","dlrun/suspended-at-step":"17"}},"spec":{"suspend":true}})");
  EXPECT_EQ(told->suspended_at, ", at step 17 since 2026-11-29T10:00:00Z");
  EXPECT_TRUE(other->outlives_pods);
  EXPECT_TRUE(read_job(in_context, R"({"metadata":{"labels":{"app.kubernetes.io/name":"dlrun"},)"
                                   R"("annotations":{"dlrun/journal":"etcd"}}})")
                  ->outlives_pods);
  EXPECT_EQ(other->ended, "Failed");
}

TEST(submitted_job, that_is_not_there_or_not_ours_is_told) {
  EXPECT_THAT(read_job(in_team, "").error().message, HasSubstr("no job 'x' in namespace 'team-a'"));
  EXPECT_THAT(read_job(in_team, R"({"metadata":{}})").error().message, HasSubstr("dlrun submit"));
}

class hosts_of_a_job : public testing::Test {
protected:
  static std::string with(const std::string& annotations) {
    return R"({"metadata":{"annotations":)" + annotations + "}}";
  }
  static std::string problem(const std::string& answer, const std::string& wanted) {
    const auto checked = check_hosts(in_team, answer, wanted);
    return checked ? "" : checked.error().message;
  }
  const std::string bounds = R"({"dlrun/hosts-min":"2","dlrun/hosts-max":"5"})";
};

TEST_F(hosts_of_a_job, are_as_many_as_it_was_submitted_for) {
  for (const auto* good : {"2", "3", "5"}) EXPECT_EQ(problem(with(bounds), good), "") << good;
  EXPECT_EQ(check_hosts(in_team, with(bounds), "4"), 4U);
  for (const auto* wrong : {"0", "1", "6", "", "3x", "-3", "99999999999999999999"})
    EXPECT_THAT(problem(with(bounds), wrong), HasSubstr("2 to 5 pods")) << wrong;
}

TEST_F(hosts_of_a_job, are_not_scaled_where_there_are_none_or_nobody_said_how_many) {
  EXPECT_THAT(problem("", "3"), HasSubstr("does not say how many hosts"));
  for (const auto* strange : {"null", "{}", "[]", R"({"dlrun/hosts-min":2})", R"({"dlrun/hosts-min":"x"})"})
    EXPECT_THAT(problem(with(strange), "3"), HasSubstr("does not say how many hosts")) << strange;
}

TEST_F(hosts_of_a_job, are_a_number_in_an_object_of_their_own) {
  EXPECT_THAT(words_for_hosts(in_team, 7),
              testing::AllOf(testing::Contains("configmap/x-pods"),
                             testing::Contains(R"(--patch={"data":{"hosts":"7"}})")));
}

TEST(control_pod, is_taken_when_its_container_runs) {
  const auto pods = [](const std::string& status, const std::string& more = "") {
    return R"({"items":[{"metadata":{"name":"x-1")" + more + R"(},"status":)" + status + "}]}";
  };
  const std::string runs = R"({"phase":"Running","containerStatuses":[{"state":{"running":{}}}]})";
  EXPECT_EQ(running_control_pod(in_context, {}, pods(runs)), "x-1");
  const auto problem = [&](const std::string& answer, const submitted_job& of = {}) {
    const auto pod = running_control_pod(in_context, of, answer);
    return pod ? "" : pod.error().message;
  };
  EXPECT_THAT(problem(pods(runs, R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")")),
              HasSubstr("x-1 is Running"));
  EXPECT_THAT(problem(pods(R"({"phase":"Running","containerStatuses":[{"state":{"waiting":{"reason":)"
                           R"("CrashLoopBackOff"}}}]})")),
              HasSubstr("x-1 is Running, CrashLoopBackOff"));
  EXPECT_THAT(problem(R"({"items":[]})"), HasSubstr("none is there"));
  EXPECT_THAT(problem(R"({"items":[]})", {.is_suspended = true, .suspended_at = ", at step 17"}),
              HasSubstr("the Job is suspended, at step 17: "));
  EXPECT_THAT(problem(R"({"items":[]})", {.is_suspended = true, .outcome = "exit code 1: it is full"}),
              HasSubstr("the Job is suspended: exit code 1: it is full; 'kubectl patch job x -p "));
  EXPECT_THAT(problem(R"({"items":[]})", {.ended = "Complete"}), HasSubstr("over (Complete)"));
  for (const std::string strange : {"", "{}", R"({"items":7})", R"({"items":[7,{"metadata":[]}]})",
                                    R"({"items":[{"metadata":{"name":"--all"},"status":{}}]})"})
    EXPECT_THAT(problem(strange), HasSubstr("none is there")) << strange;
}

TEST(control_pod, of_two_is_the_one_that_leads) {
  const auto pod = [](const std::string& name) {
    return R"({"metadata":{"name":")" + name + R"("},"status":{"phase":"Running","containerStatuses":[)" +
           R"({"state":{"running":{}}}]}})";
  };
  const auto both = R"({"items":[)" + pod("x-1") + "," + pod("x-2") + "]}";
  const auto one = R"({"items":[)" + pod("x-2") + "]}";
  EXPECT_EQ(running_control_pod(in_context, {.leader = "x-1"}, both), "x-1");
  EXPECT_EQ(running_control_pod(in_context, {.leader = "x-2"}, both), "x-2");
  EXPECT_EQ(running_control_pod(in_context, {}, one), "x-2") << "there is one";
  const auto lost = running_control_pod(in_context, {.leader = "x-1"}, one);
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, HasSubstr("x-2 runs, x-1 does not. Another one takes over"));
  const auto none = running_control_pod(in_context, {}, both);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("x-1 and x-2 run, and the job has not begun"));
}

TEST(kubectl_complaints, of_an_exit_code_are_known) {
  EXPECT_TRUE(tells_exit_code("command terminated with exit code 1"));
  EXPECT_TRUE(tells_exit_code("command terminated with exit code 137"));
  for (const auto* other : {"", "command terminated with exit code ", "command terminated with exit code 1 ",
                            "dlrun: command terminated with exit code 1"})
    EXPECT_FALSE(tells_exit_code(other)) << other;
}

} // namespace
} // namespace dlrun::cli
