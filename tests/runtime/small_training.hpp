/// A job that takes a moment, for tests of what a program does with one.
#pragma once

#include "tests/data/files.hpp"

#include <dlrun/job.hpp>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace dlrun::test {

/// 32 records of two numbers, two classes; roles are threads of the test.
class small_training {
public:
  small_training() {
    std::string text = "x,y,class\n";
    for (int i = 0; i < 32; ++i)
      text += std::to_string(i % 5) + "," + std::to_string(i % 3) + (i % 2 == 0 ? ",a\n" : ",b\n");
    std::ofstream(folder.path() / "points.csv") << text;
  }
  job_spec job(const std::vector<std::string>& overrides = {}) const {
    auto made = job_spec::parse(R"(model: {input: [2], layers: [{linear: {out_features: 2}, name: only}]}
data: {train: {format: csv, records: points.csv, csv: {target: class}}}
train: {epochs: 2, microbatch_size: 2, optimizer: {sgd: {lr: 0.1}}}
cluster: {placement: threads, workers: 1, ps_shards: 1}
durability: {log: every_step}
)",
                                "small", folder.path(), overrides);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return *made;
  }
  std::filesystem::path run_dir() const { return folder.path() / "run"; }

  test::temporary_folder folder;
};

} // namespace dlrun::test
