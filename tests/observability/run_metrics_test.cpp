#include "observability/run_metrics.hpp"

#include "tests/observability/watched_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/check_names.h>
#include <prometheus/text_serializer.h>

namespace dlrun::observability {
namespace {

using protocol::role_kind;
using std::chrono::milliseconds;
using test::at_step;
using test::begin;
using testing::HasSubstr;
using testing::Not;

class run_metrics_test : public testing::Test {
protected:
  /// As Prometheus gets it.
  std::string text() const { return prometheus::TextSerializer{}.Serialize(metrics.collect()); }
  void hear(std::uint64_t step, std::vector<agent::role_view> roles = {}) {
    auto snapshot = at_step(step);
    snapshot.roles = std::move(roles);
    metrics.update(snapshot, now += milliseconds(1000));
  }
  void event(const std::string& name, role_kind kind, std::uint64_t incarnation, std::uint64_t after_us = 0) {
    auto told = test::event_of(name, {.after_us = after_us});
    told.role = {kind, 1};
    told.incarnation = {incarnation};
    told.at_us = static_cast<std::uint64_t>(now.time_since_epoch().count());
    metrics.event(told);
  }

  run_metrics metrics{test::watched_run("run")};
  protocol::time_point now = begin;
};

TEST_F(run_metrics_test, names_are_as_prometheus_wants_them) {
  hear(20, {{{role_kind::worker, 1}, 7, {1}, "training"}});
  metrics.event(test::evaluated(13, 0.5, 0.75));
  for (const auto& family : metrics.collect()) {
    EXPECT_TRUE(prometheus::CheckMetricName(family.name)) << family.name;
    EXPECT_TRUE(family.name.starts_with("dlrun_")) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_EQ(family.name.ends_with("_total"), family.type == prometheus::MetricType::Counter) << family.name;
    for (const auto& metric : family.metric)
      for (const auto& label : metric.label)
        EXPECT_TRUE(prometheus::CheckLabelName(label.name)) << label.name;
  }
}

TEST_F(run_metrics_test, before_the_first_step_there_is_no_loss) {
  hear(0);
  EXPECT_THAT(text(), HasSubstr("\ndlrun_step 0\n"));
  EXPECT_THAT(text(), HasSubstr("\ndlrun_steps_target 130\n"));
  EXPECT_THAT(text(), Not(HasSubstr("loss ")));
  EXPECT_THAT(text(), Not(HasSubstr("validation")));
}

TEST_F(run_metrics_test, progress_is_what_was_heard_last) {
  hear(4);
  hear(20);
  for (const auto* line : {"dlrun_info{job=\"mlp\",version=\"", "dlrun_step 20\n", "dlrun_durable_step 10\n",
                           "dlrun_samples_total 156\n", "dlrun_samples_per_second 128\n", "dlrun_epoch 1\n",
                           "dlrun_train_loss 0.05", "dlrun_train_epoch_loss 0.25\n",
                           "dlrun_train_metric{metric=\"accuracy\"} 0.75\n", "dlrun_learning_rate 0.25\n"})
    EXPECT_THAT(text(), HasSubstr(line));
}

TEST_F(run_metrics_test, the_newest_archive_is_told_once_there_is_one) {
  auto shown = test::at_step(20);
  shown.archive = agent::archive_view{};
  metrics.update(shown, now);
  EXPECT_THAT(text(), Not(HasSubstr("dlrun_archive")));
  shown.archive = agent::archive_view{12, 1, {}};
  metrics.update(shown, now);
  EXPECT_THAT(text(), HasSubstr("dlrun_archive_step 12\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_archive_age_seconds "));
}

TEST_F(run_metrics_test, copies_are_told_as_their_ps_shards_tell_them) {
  hear(20);
  EXPECT_THAT(text(), Not(HasSubstr("dlrun_copy_")));
  EXPECT_THAT(text(), Not(HasSubstr("dlrun_host_")));
  agent::role_view keeper{{role_kind::keeper, 1}, 7, {1}, "filling"};
  hear(20, {keeper});
  EXPECT_THAT(text(), HasSubstr("dlrun_copy_whole{index=\"1\"} 0\n"));
  EXPECT_THAT(text(), Not(HasSubstr("dlrun_copy_behind")));
  hear(20, {keeper, {{role_kind::keeper, 1001}, 8, {1}, "whole"}});
  EXPECT_THAT(text(), HasSubstr("dlrun_copy_whole{index=\"1\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_copy_whole{index=\"1\",copy=\"2\"} 1\n"));
  keeper.state = "whole";
  keeper.copy = {.is_known = true, .behind = 2};
  hear(20, {keeper});
  EXPECT_THAT(text(), HasSubstr("dlrun_copy_whole{index=\"1\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_copy_behind_steps{index=\"1\"} 2\n"));
  EXPECT_THAT(text(), Not(HasSubstr("dlrun_copy_waited"))) << "not measured yet";
  keeper.copy->cost = {
      .steps = 40, .bytes_per_second = 4'000'000, .busy_permille = 750, .waited_permille = 250};
  hear(20, {keeper});
  for (const auto* line :
       {"dlrun_copy_bytes_per_second{index=\"1\"} 4000000\n", "dlrun_copy_busy_ratio{index=\"1\"} 0.75\n",
        "dlrun_copy_waited_ratio{index=\"1\"} 0.25\n"})
    EXPECT_THAT(text(), HasSubstr(line));
}

TEST_F(run_metrics_test, says_of_each_host_that_is_there_whether_it_may_be_lost) {
  auto snapshot = at_step(20);
  snapshot.hosts = {{.name = "alpha", .state = "there", .loses = "the run"},
                    {.name = "beta", .state = "there", .memory = {.used = 700, .limit = 1000}},
                    {.name = "gamma", .state = "away"}};
  metrics.update(snapshot, now);
  EXPECT_THAT(text(), HasSubstr("dlrun_host_may_be_lost{host=\"alpha\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_host_may_be_lost{host=\"beta\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_host_memory_bytes{host=\"beta\"} 700\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_host_memory_limit_bytes{host=\"beta\"} 1000\n"));
  EXPECT_THAT(text(), Not(HasSubstr("dlrun_host_memory_bytes{host=\"alpha\"}"))) << "which has not told";
  EXPECT_THAT(text(), Not(HasSubstr("gamma")));
}

TEST_F(run_metrics_test, samples_that_are_done_again_count_once) {
  hear(20);
  hear(10);
  EXPECT_THAT(text(), HasSubstr("\ndlrun_step 10\n"));
  EXPECT_THAT(text(), HasSubstr("\ndlrun_samples_total 156\n"));
  hear(26);
  EXPECT_THAT(text(), HasSubstr("\ndlrun_samples_total 200\n"));
}

TEST_F(run_metrics_test, the_newest_evaluation_is_shown) {
  metrics.event(test::evaluated(13, 0.5, 0.75));
  metrics.event(test::evaluated(26, 0.25, 0.875));
  EXPECT_THAT(text(), HasSubstr("dlrun_validation_step 26\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_validation_loss 0.25\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_validation_metric{metric=\"accuracy\"} 0.875\n"));
  dlrun::report report;
  report.evaluations = {{130, 10, 0.125, {{{"accuracy", 1}}}}};
  metrics.finish(report);
  EXPECT_THAT(text(), HasSubstr("dlrun_validation_step 130\n"));
}

TEST_F(run_metrics_test, workers_that_are_wanted_and_those_that_are_there_are_shown) {
  auto snapshot = at_step(1);
  snapshot.workers = {.wanted = 4, .present = 3, .leaving = 1};
  metrics.update(snapshot, now);
  EXPECT_THAT(text(), HasSubstr("dlrun_workers_wanted 4\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_workers_present 3\n"));
}

TEST_F(run_metrics_test, of_workers_that_run_share_and_speed_are_shown) {
  hear(1, {{{role_kind::worker, 0}, 7, {1}, "training", 5, 62.5},
           {{role_kind::worker, 1}, 0, {1}, "down", 3, 60},
           {{role_kind::ps_shard, 0}, 9, {1}, "training"}});
  EXPECT_THAT(text(), HasSubstr("\ndlrun_worker_slots{index=\"0\"} 5\n"));
  EXPECT_THAT(text(), HasSubstr("\ndlrun_worker_slots_per_second{index=\"0\"} 62.5\n"));
  EXPECT_THAT(text(), Not(HasSubstr("dlrun_worker_slots{index=\"1\"}")));
}

TEST_F(run_metrics_test, roles_are_up_while_they_run_and_are_heard_of) {
  hear(1, {{{role_kind::worker, 0}, 7, {1}, "training"},
           {{role_kind::worker, 1}, 8, {2}, "starting"},
           {{role_kind::ps_shard, 0}, 0, {}, "down"}});
  EXPECT_THAT(text(), HasSubstr("dlrun_role_up{role=\"worker\",index=\"0\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_role_up{role=\"worker\",index=\"1\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_role_up{role=\"ps_shard\",index=\"0\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_role_restarts_total{role=\"worker\",index=\"1\"} 0\n"))
      << "a series begins with 0, or its first increase is not seen";
}

TEST_F(run_metrics_test, a_loss_and_what_became_of_it_is_counted) {
  EXPECT_THAT(text(), HasSubstr("dlrun_recoveries_total{role=\"worker\"} 0\n"));
  event("role-exited", role_kind::worker, 1, 40'000);
  event("role-restarted", role_kind::worker, 2);
  event("worker-resumed", role_kind::worker, 2, 220'000);
  event("worker-resumed", role_kind::worker, 2, 220'000); // told again
  for (const auto* line :
       {"dlrun_role_restarts_total{role=\"worker\",index=\"1\"} 1\n",
        "dlrun_recoveries_total{role=\"worker\"} 1\n", "dlrun_recoveries_total{role=\"ps_shard\"} 0\n",
        "dlrun_loss_detected_seconds_bucket{role=\"worker\",le=\"0.025\"} 0\n",
        "dlrun_loss_detected_seconds_bucket{role=\"worker\",le=\"0.05\"} 1\n",
        "dlrun_recovery_seconds_count{role=\"worker\"} 1\n",
        "dlrun_recovery_seconds_sum{role=\"worker\"} 0.22",
        "dlrun_recovery_seconds_bucket{role=\"worker\",le=\"+Inf\"} 1\n",
        "dlrun_events_total{event=\"role-exited\"} 1\n", "dlrun_events_total{event=\"worker-resumed\"} 2\n"})
    EXPECT_THAT(text(), HasSubstr(line));
}

TEST_F(run_metrics_test, a_coordinator_has_recovered_when_another_start_of_it_works) {
  event("role-exited", role_kind::coordinator, 1, 40'000);
  hear(5, {{{role_kind::coordinator, 0}, 9, {2}, "starting"}});
  EXPECT_THAT(text(), HasSubstr("dlrun_recoveries_total{role=\"coordinator\"} 0\n"));
  hear(6, {{{role_kind::coordinator, 0}, 9, {2}, "coordinating"}});
  hear(7, {{{role_kind::coordinator, 0}, 9, {2}, "coordinating"}});
  EXPECT_THAT(text(), HasSubstr("dlrun_recoveries_total{role=\"coordinator\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("dlrun_recovery_seconds_sum{role=\"coordinator\"} 2\n"));
}

} // namespace
} // namespace dlrun::observability
