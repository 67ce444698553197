#include "actors/agent/memory_watch.hpp"
#include "actors/agent/run_board.hpp"

#include "actors/protocol/bit_patterns.hpp"
#include "engine/model.hpp"
#include "proto/job_spec.pb.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::agent {
namespace {

using namespace std::chrono_literals;

/// Accuracy, and the share among the two greatest.
std::shared_ptr<const engine::model> three_classes() {
  spec::ModelSpec spec;
  spec.add_input(3);
  spec.add_layers()->mutable_relu();
  spec.add_metrics()->mutable_accuracy();
  spec.add_metrics()->mutable_top_k()->set_k(2);
  return engine::model::build(spec).value();
}

protocol::training_metrics sums_of(double loss, std::uint64_t records, const std::vector<double>& sums) {
  return {.epoch = 3,
          .loss_sum_bits = std::bit_cast<std::uint64_t>(loss),
          .records = records,
          .step_loss_bits = std::bit_cast<std::uint64_t>(0.125),
          .sum_bits = protocol::to_bits(sums)};
}

TEST(run_board, a_stall_is_shown_with_its_words_and_null_is_none) {
  run_snapshot snapshot;
  EXPECT_TRUE(nlohmann::json::parse(to_json(snapshot))["stall"].is_null());
  protocol::stall what{.role = protocol::worker_role({2}), .phase = protocol::stall_phase::computing};
  what.has_slot = true;
  what.slot = {5};
  snapshot.stall = stall_view{what, "beta", std::chrono::milliseconds(3250)};
  EXPECT_EQ(
      nlohmann::ordered_json::parse(to_json(snapshot))["stall"].dump(),
      R"({"role":"worker","index":2,"host":"beta","phase":"computing","slot":5,"seconds":3.25,"text":"worker 2 on beta, which computes slot 5"})");
}

TEST(run_board, metrics_are_shown_by_name) {
  const auto model = three_classes();
  run_snapshot snapshot;
  snapshot.train = progress_of(sums_of(20, 40, {30, 40, 38, 40}), model->metrics(), 7);
  EXPECT_EQ(snapshot.train->step, 7U);
  EXPECT_EQ(snapshot.train->step_loss, 0.125);
  const auto shown = nlohmann::json::parse(to_json(snapshot));
  EXPECT_EQ(shown["train"].dump(), R"({"accuracy":0.75,"epoch":3,"loss":0.5,"step_loss":0.125,"top2":0.95})");
}

TEST(run_board, what_is_not_known_is_null) {
  EXPECT_TRUE(nlohmann::json::parse(to_json(run_snapshot{})).at("train").is_null())
      << "before the first step";
  run_snapshot snapshot;
  snapshot.train = progress_of(sums_of(std::nan(""), 40, {1}), three_classes()->metrics(), 1);
  const auto shown = nlohmann::json::parse(to_json(snapshot));
  EXPECT_TRUE(shown["train"]["loss"].is_null());
  EXPECT_TRUE(shown["train"]["accuracy"].is_null()) << "of another number of sums";
}

TEST(run_board, shows_what_the_store_of_a_ps_shard_holds_and_none_where_nothing_is_kept) {
  run_snapshot snapshot;
  snapshot.roles = {{.role = protocol::ps_shard_role({0}), .incarnation = {3}, .state = "training"},
                    {.role = protocol::ps_shard_role({1}), .incarnation = {1}, .state = "training"}};
  snapshot.roles[0].store = {"alpha", 0x9f3c0a12b4d5e6f7, {40}};
  snapshot.roles[0].restorable = {{{0}, {0}}, {{40}, {52}}};
  const auto roles = nlohmann::json::parse(to_json(snapshot)).at("roles");
  EXPECT_EQ(roles[0].at("store").dump(),
            R"({"floor":40,"host":"alpha","identity":"9f3c0a12b4d5e6f7","versions":[[0,0],[40,52]]})");
  EXPECT_FALSE(roles[1].contains("store"));
}

TEST(run_board, shows_how_far_a_copy_is_behind_and_once_that_was_measured_what_it_costs) {
  run_snapshot snapshot;
  snapshot.roles = {{.role = protocol::keeper_role({0}), .incarnation = {1}, .state = "whole"}};
  const auto shown = [&] { return nlohmann::ordered_json::parse(to_json(snapshot)).at("roles")[0]; };
  EXPECT_FALSE(shown().contains("copy"));
  snapshot.roles[0].copy = {.is_known = true, .behind = 2};
  EXPECT_EQ(shown().at("copy").dump(), R"({"behind":2})");
  snapshot.roles[0].copy->cost = {.steps = 40,
                                  .step_us = 250'500,
                                  .bytes_per_step = 2'680'000,
                                  .bytes_per_second = 11'800'000,
                                  .busy_permille = 907,
                                  .waited_permille = 750,
                                  .is_slow = true};
  EXPECT_EQ(
      shown().at("copy").dump(),
      R"({"behind":2,"bytes_per_step":2680000,"bytes_per_second":11800000,"step_ms":250.5,"busy":0.907,"waited":0.75,"slow":true})");
}

TEST(run_board, shows_what_would_be_lost_with_a_host) {
  run_snapshot snapshot;
  snapshot.hosts = {{.name = "alpha", .state = "there", .loses = "the run"},
                    {.name = "beta", .state = "there"}};
  EXPECT_EQ(nlohmann::ordered_json::parse(to_json(snapshot)).at("hosts").dump(),
            R"([{"name":"alpha","state":"there","loses":"the run"},{"name":"beta","state":"there"}])");
}

TEST(run_board, shows_memory_of_hosts_that_have_told) {
  run_snapshot snapshot;
  snapshot.hosts = {{.name = "beta", .state = "there", .memory = {.used = 700, .limit = 1000}}};
  EXPECT_EQ(nlohmann::ordered_json::parse(to_json(snapshot)).at("hosts").dump(),
            R"([{"name":"beta","state":"there","memory":{"used_bytes":700,"limit_bytes":1000}}])");
}

TEST(memory_watch, reads_once_a_second) {
  std::uint64_t used = 1;
  memory_watch watch{[&] { return base::memory_use{used++, 9}; }};
  const protocol::time_point begin{};
  EXPECT_EQ(watch.at(begin).used, 1U);
  EXPECT_EQ(watch.at(begin + 999ms).used, 1U);
  EXPECT_EQ(watch.at(begin + 1s).used, 2U);
  EXPECT_EQ(watch.at(begin + 1s).limit, 9U);
}

TEST(run_board, shows_which_gpus_are_avoided) {
  run_snapshot snapshot;
  EXPECT_FALSE(nlohmann::json::parse(to_json(snapshot)).contains("avoided_gpus"));
  snapshot.avoided_gpus = {{3, "beta", "it failed"}};
  EXPECT_EQ(nlohmann::ordered_json::parse(to_json(snapshot))["avoided_gpus"].dump(),
            R"([{"gpu":3,"host":"beta","reason":"it failed"}])");
}

TEST(run_board, shows_what_holds_hosts_up) {
  run_snapshot snapshot;
  EXPECT_FALSE(nlohmann::json::parse(to_json(snapshot)).contains("held_up_by"));
  snapshot.held_up_by = {"exceeded quota"};
  EXPECT_EQ(nlohmann::json::parse(to_json(snapshot))["held_up_by"].dump(), R"(["exceeded quota"])");
}

TEST(run_board, the_newest_archive_is_told_with_its_age) {
  run_board board;
  EXPECT_FALSE(nlohmann::json::parse(to_json(board.snapshot())).contains("archive"));
  board.set_archive({});
  board.show(run_snapshot{});
  EXPECT_EQ(nlohmann::json::parse(to_json(board.snapshot()))["archive"].dump(),
            R"({"age_s":null,"step":null})");
  const auto now = std::chrono::system_clock::now().time_since_epoch() - std::chrono::seconds(90);
  board.set_archive({120, std::chrono::duration_cast<std::chrono::microseconds>(now).count(), "full"});
  const auto told = nlohmann::json::parse(to_json(board.snapshot()))["archive"];
  EXPECT_EQ(told["step"], 120);
  EXPECT_EQ(told["failure"], "full");
  EXPECT_NEAR(told["age_s"].get<double>(), 90, 30);
}

TEST(run_board, another_process_reads_how_far_it_is) {
  const run_snapshot shown{.job = "cnn",
                           .status = "running",
                           .step = 15,
                           .durable_step = 14,
                           .steps = 469,
                           .train = training_progress{.step = 15,
                                                      .step_loss = 0.125,
                                                      .epoch = 3,
                                                      .loss = std::nan(""),
                                                      .metrics = {{"top2", 0.95}, {"accuracy", 0.75}}},
                           .stall = std::nullopt,
                           .workers = {},
                           .roles = {},
                           .started_us = 6'606'505'425};
  const auto read = progress_from_json(to_json(shown));
  ASSERT_TRUE(read && read->train);
  EXPECT_EQ(read->job, "cnn");
  EXPECT_EQ(read->status, "running");
  EXPECT_EQ(read->step, 15U);
  EXPECT_EQ(read->durable_step, 14U);
  EXPECT_EQ(read->steps, 469U);
  EXPECT_EQ(read->started_us, 6'606'505'425U);
  EXPECT_EQ(read->train->step_loss, 0.125);
  EXPECT_EQ(read->train->epoch, 3U);
  EXPECT_TRUE(std::isnan(read->train->loss));
  EXPECT_EQ(read->train->metrics, shown.train->metrics) << "in their order";
  EXPECT_FALSE(progress_from_json(to_json(run_snapshot{}))->train);
}

TEST(run_board, what_is_not_its_word_is_not_read) {
  for (const auto* text : {"", "stopping", "[]", "7", R"({"job":"cnn"})",
                           R"({"job":"x","status":"running","started_us":1,"step":"much"})"})
    EXPECT_FALSE(progress_from_json(text)) << text;
}

} // namespace
} // namespace dlrun::agent
