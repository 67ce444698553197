// Why each role is where it is, told from lines as an agent writes them.
#include "cli/explanation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

class explanation_test : public testing::Test {
protected:
  void hear(const json& event) { told.add(event.dump()); }
  void placed(const std::string& role, int index, const std::string& host, const std::string& reason,
              int incarnation = 1) {
    hear({{"event", "role-placed"},
          {"time", "2026-11-22T02:40:11.123Z"},
          {"role", role},
          {"index", index},
          {"incarnation", incarnation},
          {"host", host},
          {"reason", reason}});
  }
  void exited(const std::string& role, int index, const std::string& text) {
    hear({{"event", "role-exited"}, {"role", role}, {"index", index}, {"text", text}});
  }
  void host(const std::string& event, const std::string& name, const std::string& reason = "") {
    hear({{"event", event}, {"role", "agent"}, {"index", 0}, {"host", name}, {"reason", reason}});
  }
  void scaled(int workers) {
    told.add(fmt::format(R"({{"event":"workers-scaled","values":{{"workers":{}.0}}}})", workers));
  }
  explained_role the_only() const {
    const auto all = told.roles();
    EXPECT_THAT(all, SizeIs(1));
    return all.empty() ? explained_role{} : all.front();
  }

  explanation told;
};

TEST_F(explanation_test, a_role_has_its_host_the_reason_and_the_time) {
  placed("worker", 1, "beta", "2 threads on 4 cores with it", 3);
  const auto one = the_only();
  EXPECT_EQ(one.role, "worker");
  EXPECT_EQ(one.index, 1U);
  EXPECT_EQ(one.incarnation, 3U);
  EXPECT_EQ(one.host, "beta");
  EXPECT_EQ(one.reason, "2 threads on 4 cores with it");
  EXPECT_EQ(one.since, "2026-11-22T02:40:11.123Z");
  EXPECT_EQ(one.moved_from, "");
  EXPECT_EQ(told.has_hosts(), true);
}

TEST_F(explanation_test, roles_are_in_order_of_kind_and_number) {
  for (const auto& [role, index] :
       {std::pair{"worker", 10}, {"worker", 2}, {"ps_shard", 0}, {"coordinator", 0}})
    placed(role, index, "alpha", "");
  std::vector<std::string> names;
  for (const auto& one : told.roles()) names.push_back(one.role + std::to_string(one.index));
  EXPECT_THAT(names, testing::ElementsAre("coordinator0", "ps_shard0", "worker2", "worker10"));
}

TEST_F(explanation_test, a_role_that_moved_since_its_host_was_lost_says_from_where_and_why) {
  placed("worker", 1, "beta", "few threads");
  host("host-lost", "beta", "it answers no beats");
  exited("worker", 1, "worker 1 is lost with host beta");
  placed("worker", 1, "gamma", "few threads; beta is lost", 2);
  const auto one = the_only();
  EXPECT_EQ(one.host, "gamma");
  EXPECT_EQ(one.moved_from, "beta");
  EXPECT_EQ(one.why_moved, "host beta is given up: it answers no beats");
  EXPECT_EQ(one.host_lost, "");
}

TEST_F(explanation_test, a_role_that_moved_since_it_ended_says_how_that_was) {
  placed("coordinator", 0, "beta", "no PS shard is there");
  exited("coordinator", 0, "coordinator 0 exited with code 1");
  placed("coordinator", 0, "gamma", "no PS shard is there; it ended on beta", 2);
  EXPECT_EQ(the_only().moved_from, "beta");
  EXPECT_EQ(the_only().why_moved, "coordinator 0 exited with code 1");
}

TEST_F(explanation_test, an_end_before_it_was_placed_is_not_why_it_moved) {
  placed("coordinator", 0, "beta", "");
  exited("coordinator", 0, "coordinator 0 exited with code 1");
  placed("coordinator", 0, "gamma", "", 2);
  placed("coordinator", 0, "alpha", "", 3);
  EXPECT_EQ(the_only().moved_from, "gamma");
  EXPECT_EQ(the_only().why_moved, "");
}

TEST_F(explanation_test, a_role_without_another_place_says_that_its_host_is_lost_until_that_is_back) {
  placed("ps_shard", 1, "beta", "its store is there");
  host("host-lost", "beta", "it answers no beats");
  EXPECT_EQ(the_only().host, "beta");
  EXPECT_EQ(the_only().host_lost, "it answers no beats");
  host("host-joined", "beta");
  EXPECT_EQ(the_only().host_lost, "");
}

TEST_F(explanation_test, workers_that_are_too_many_are_left_out_until_they_are_wanted_again) {
  for (int worker = 0; worker < 3; ++worker) placed("worker", worker, "alpha", "");
  scaled(1);
  EXPECT_EQ(the_only().index, 0U);
  scaled(2);
  EXPECT_THAT(told.roles(), SizeIs(2));
}

TEST_F(explanation_test, a_role_that_was_asked_to_leave_has_moved_for_that_reason) {
  for (const auto* left : {"role-left", "worker-left", "keeper-left"}) {
    SCOPED_TRACE(left);
    told = {};
    placed("worker", 1, "beta", "");
    exited("worker", 1, "worker 1 (incarnation 1) has gone silent");
    placed("worker", 1, "gamma", "", 2);
    hear({{"event", left}, {"role", "worker"}, {"index", 1}, {"text", "it has left: host gamma is drained"}});
    placed("worker", 1, "alpha", "", 3);
    EXPECT_EQ(the_only().moved_from, "gamma");
    EXPECT_EQ(the_only().why_moved, "it has left: host gamma is drained");
  }
}

TEST_F(explanation_test, a_run_that_is_resumed_without_hosts_has_none_whatever_it_had) {
  placed("worker", 1, "beta", "");
  told.add(R"({"event":"run-resumed"})");
  EXPECT_THAT(told.roles(), IsEmpty());
  EXPECT_EQ(told.has_hosts(), false);
  EXPECT_TRUE(told.is_resumed());
}

TEST_F(explanation_test, a_run_that_is_resumed_with_hosts_places_all_anew) {
  placed("worker", 1, "beta", "");
  scaled(1);
  host("host-lost", "beta", "it answers no beats");
  told.add(R"({"event":"run-resumed","values":{"hosts":2.0}})");
  EXPECT_EQ(told.has_hosts(), true);
  placed("worker", 1, "gamma", "", 2);
  EXPECT_EQ(the_only().moved_from, "");
}

TEST_F(explanation_test, without_a_place_and_a_start_that_is_told_it_is_not_known_whether_there_are_hosts) {
  hear({{"event", "evaluated"}, {"role", "coordinator"}, {"index", 0}, {"text", "step 63"}});
  EXPECT_EQ(told.has_hosts(), std::nullopt);
  EXPECT_FALSE(told.is_resumed());
}

TEST_F(explanation_test, a_gpu_that_is_avoided_is_named_until_the_run_is_resumed) {
  hear({{"event", "gpu-avoided"},
        {"time", "2026-11-27T02:40:11.123Z"},
        {"role", "worker"},
        {"index", 1},
        {"values", {{"gpu", 3.0}}},
        {"host", "beta"},
        {"reason", "it failed"}});
  ASSERT_THAT(told.avoided_gpus(), SizeIs(1));
  const auto& one = told.avoided_gpus().front();
  EXPECT_EQ(one.gpu, 3U);
  EXPECT_EQ(one.host, "beta");
  EXPECT_EQ(one.since, "2026-11-27T02:40:11.123Z");
  EXPECT_EQ(one.reason, "it failed");
  told.add(R"({"event":"run-resumed"})");
  EXPECT_THAT(told.avoided_gpus(), IsEmpty());
}

TEST_F(explanation_test, damaged_lines_are_passed_over) {
  placed("worker", 0, "beta", "x");
  for (const auto* line :
       {"", "[]", "5", "\x1b[2J", R"({"event":"role-pla)", R"({"event":5,"host":[]})",
        R"({"event":"role-placed","role":[],"index":"a","host":5})", R"({"event":"role-exited","role":{}})",
        R"({"event":"host-lost"})", R"({"event":"host-lost","host":"beta","reason":7})",
        R"({"event":"workers-scaled","values":[]})", R"({"event":"workers-scaled","values":{"workers":-1}})",
        R"({"event":"workers-scaled","values":{"workers":1e300}})"})
    told.add(line);
  EXPECT_EQ(the_only().host, "beta");
  EXPECT_EQ(the_only().host_lost, "");
}

TEST_F(explanation_test, names_hosts_that_are_drained_until_that_is_undone) {
  EXPECT_THAT(told.drains(), IsEmpty());
  host("host-draining", "beta");
  host("host-draining", "gamma");
  host("host-drained", "beta");
  ASSERT_THAT(told.drains(), SizeIs(2));
  EXPECT_EQ(told.drains()[0].host, "beta");
  EXPECT_TRUE(told.drains()[0].is_over);
  EXPECT_FALSE(told.drains()[1].is_over);
  host("drain-undone", "beta");
  ASSERT_THAT(told.drains(), SizeIs(1));
  hear({{"event", "run-resumed"}});
  EXPECT_THAT(told.drains(), IsEmpty()) << "a root that comes back knows of none";
}

} // namespace
} // namespace dlrun::cli
