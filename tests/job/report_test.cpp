#include <dlrun/report.hpp>

#include "tests/data/files.hpp"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <thread>

namespace dlrun::job {
namespace {

report full_report() {
  report r;
  r.job = "cnn";
  r.status = run_status::interrupted;
  r.reason = "stopped by the user";
  r.steps = 469;
  r.epochs = 1;
  r.samples_committed = 60'000;
  r.samples_missing = 1;
  r.samples_duplicated = 2;
  r.parameters_sha256 = std::string(64, 'a');
  r.deterministic = false;
  r.train_loss = 0.1 + 0.2;
  r.train_metrics = {{"accuracy", 1.0 / 3}, {"top5", 0.5}};
  r.validation = {{0.25, {{"accuracy", 0.875}, {"auc", 0.5}}, 10'000}};
  r.evaluations = {{469, 1, 0.25, {{{"accuracy", 0.875}, {"auc", 0.5}}}}};
  r.best = {469, "auc", 0.5};
  r.stopped_early = true;
  r.wall_seconds = 12.5;
  r.samples_per_second = 4800;
  r.step_ms = {1.5, 4, 20};
  r.goodput = 0.99;
  r.steps_redone = 3;
  r.recoveries = {{"worker", 1, "killed by signal 9", 7, 1.5, 0.25, 3.5, 812.125, 0}};
  r.rewinds = {{4, 20, 3, 1.75, "the gradients of step 22 are lost"}};
  r.store_losses = {{1, 7, "beta", "00000000000000ab", 12, "alpha", "fedcba9876543210", 40, "it is new"}};
  r.journal_losses = {{"worker", 2, 9, 6, 2.5}};
  r.parked_shards = {{128, 3, 1, "crashed the worker three times", "128:3:17", {4711}}};
  r.durability = {"every_step", "process", 2, 1.25};
  r.bytes_copied = 9;
  r.bytes_snapshotted = 7;
  r.bytes_logged = 1ULL << 40;
  r.versions = {"0.1.0", "0.17.6", "2.6.3", "g++ 12", 1};
  r.host = {"Some CPU", "avx2", 1, "cpu"};
  return r;
}

TEST(report, reads_back_what_it_wrote) {
  const auto written = full_report();
  const auto read = report_from_json(to_json(written));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read), to_json(written));
  EXPECT_EQ(read->status, run_status::interrupted);
  EXPECT_EQ(read->train_loss, 0.30000000000000004);
  EXPECT_EQ(read->recoveries.at(0).resumed_ms, 812.125);
  EXPECT_EQ(read->parked_shards.at(0).records, 1U);
  EXPECT_EQ(read->parked_shards.at(0).skip, "128:3:17");
  EXPECT_EQ(read->parked_shards.at(0).numbers, std::vector<std::uint64_t>{4711});
  EXPECT_EQ(read->rewinds.at(0).version, 20U);
  EXPECT_EQ(read->store_losses.at(0).store_before, "fedcba9876543210");
  EXPECT_EQ(read->store_losses.at(0).acknowledged, 40U);
  EXPECT_EQ(read->journal_losses.at(0).known, 6U);
  EXPECT_EQ(read->durability.log, "every_step");
  EXPECT_EQ(read->validation->samples, 10'000U);
  EXPECT_EQ(read->train_metrics, written.train_metrics);
  EXPECT_EQ(read->validation->metrics, written.validation->metrics);
  EXPECT_EQ(read->evaluations.at(0).metrics.all, written.evaluations[0].metrics.all);
  EXPECT_EQ(read->best->metric, "auc");
  EXPECT_TRUE(read->stopped_early);
  EXPECT_FALSE(read->deterministic);
  EXPECT_EQ(read->bytes_logged, 1ULL << 40);
  EXPECT_EQ(read->bytes_copied, 9U);
  EXPECT_EQ(read->durability.copies_waited_seconds, 1.25);
}

TEST(report, has_every_documented_field) {
  const auto parsed = nlohmann::json::parse(to_json(full_report()));
  for (const char* key : {"job",
                          "status",
                          "reason",
                          "error",
                          "steps",
                          "epochs",
                          "samples_committed",
                          "samples_missing",
                          "samples_duplicated",
                          "parameters_sha256",
                          "deterministic",
                          "train_loss",
                          "train_accuracy",
                          "validation",
                          "evaluations",
                          "best",
                          "stopped_early",
                          "wall_seconds",
                          "samples_per_second",
                          "step_ms",
                          "goodput",
                          "steps_redone",
                          "recoveries",
                          "rewinds",
                          "store_losses",
                          "journal_losses",
                          "parked_shards",
                          "durability",
                          "bytes_logged",
                          "bytes_snapshotted",
                          "bytes_copied",
                          "versions",
                          "host"})
    EXPECT_TRUE(parsed.contains(key)) << key;
  for (const char* key : {"role", "index", "cause", "incarnation", "at_seconds", "detected_ms",
                          "redispatched_ms", "resumed_ms", "steps_redone"})
    EXPECT_TRUE(parsed["recoveries"][0].contains(key)) << key;
  for (const char* key : {"dlrun", "caf", "onednn", "compiler", "spec"})
    EXPECT_TRUE(parsed["versions"].contains(key)) << key;
  for (const char* key : {"cpu_model", "isa", "threads", "device"})
    EXPECT_TRUE(parsed["host"].contains(key)) << key;
  EXPECT_EQ(parsed["status"], "interrupted");
}

/// Holds an object to a schema: each of its keys is a property, and each property one of its keys.
/// Metrics go by any name.
void expect_same_keys(const nlohmann::json& value, nlohmann::json schema, const nlohmann::json& root,
                      const std::string& where) {
  if (schema.contains("anyOf")) schema = schema["anyOf"][1]; // the other one is null
  if (schema.contains("$ref"))
    schema = root.at(nlohmann::json::json_pointer(schema["$ref"].get<std::string>().substr(1)));
  if (value.is_array())
    for (const auto& item : value) expect_same_keys(item, schema["items"], root, where + "[]");
  if (!value.is_object() || !schema.contains("properties")) return;
  const auto& properties = schema["properties"];
  for (const auto& [key, inner] : value.items()) {
    EXPECT_TRUE(properties.contains(key) || schema.contains("patternProperties")) << where << "." << key;
    if (properties.contains(key)) expect_same_keys(inner, properties[key], root, where + "." + key);
  }
  for (const auto& [key, unused] : properties.items())
    EXPECT_TRUE(value.contains(key)) << where << "." << key;
  EXPECT_EQ(schema["additionalProperties"], false) << where;
  EXPECT_EQ(schema["required"].size(), properties.size()) << where;
}

TEST(report, its_fields_are_those_of_the_schema) {
  std::ifstream file(std::string(DLRUN_SOURCE_DIR) + "/docs/report.schema.json");
  const auto schema = nlohmann::json::parse(file);
  expect_same_keys(nlohmann::json::parse(to_json(full_report())), schema, schema, "report");
}

TEST(report, what_is_not_a_number_becomes_null_and_back) {
  auto r = full_report();
  r.train_loss = std::numeric_limits<double>::quiet_NaN();
  r.goodput = std::numeric_limits<double>::infinity();
  r.validation.reset();
  const auto parsed = nlohmann::json::parse(to_json(r));
  EXPECT_TRUE(parsed["train_loss"].is_null());
  EXPECT_TRUE(parsed["goodput"].is_null());
  EXPECT_TRUE(parsed["validation"].is_null());
  const auto read = report_from_json(to_json(r));
  ASSERT_TRUE(read);
  EXPECT_TRUE(std::isnan(read->train_loss));
  EXPECT_FALSE(read->validation);
}

TEST(report, doubles_keep_every_bit) {
  for (const double number : {1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 0.1 + 0.2}) {
    auto r = full_report();
    r.train_loss = number;
    EXPECT_EQ(std::signbit(report_from_json(to_json(r))->train_loss), std::signbit(number));
    EXPECT_EQ(report_from_json(to_json(r))->train_loss, number);
  }
}

TEST(report, text_that_is_not_utf8_is_still_written) {
  auto r = full_report();
  r.reason = "file \xff\xfe";
  EXPECT_TRUE(report_from_json(to_json(r)));
}

TEST(report, unknown_keys_are_left_alone_and_other_texts_are_errors) {
  EXPECT_TRUE(report_from_json(R"({"status": "completed", "new_in_a_later_version": [1, 2]})"));
  for (const char* text :
       {"", "[]", "3", "{", "{}", R"({"status": "well"})", R"({"status": "completed", "steps": "many"})",
        R"({"status": "completed", "recoveries": [3]})", R"({"status": 3})", "\xff"}) {
    const auto read = report_from_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, error_code::bad_data);
  }
}

TEST(report, every_cut_of_its_text_is_an_error_and_no_crash) {
  const std::string whole = to_json(full_report());
  for (std::size_t length = 0; length + 2 < whole.size(); ++length)
    EXPECT_FALSE(report_from_json(whole.substr(0, length)));
}

TEST(report, appears_whole_or_not_at_all) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "report.json";
  auto small = full_report();
  auto large = full_report();
  large.recoveries.assign(500, small.recoveries.at(0));
  ASSERT_TRUE(write_report(file, small));
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(write_report(file, large));
      EXPECT_TRUE(write_report(file, small));
    }
  });
  for (int i = 0; i < 100; ++i) {
    const auto read = read_report(file);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(read->recoveries.size() == 1 || read->recoveries.size() == 500);
  }
  writer.join();
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1U) << "temporary files are gone";
}

TEST(report, errors_name_the_file) {
  const test::temporary_folder folder;
  EXPECT_NE(read_report(folder.path() / "none.json").error().message.find("none.json"), std::string::npos);
  EXPECT_NE(read_report(folder.write("bad.json", {'{'})).error().message.find("bad.json"), std::string::npos);
  EXPECT_FALSE(write_report(folder.path() / "missing" / "report.json", full_report()));
}

} // namespace
} // namespace dlrun::job
