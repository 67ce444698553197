#include "cli/templates.hpp"

#include "job/spec_reader.hpp"
#include "tests/data/files.hpp"

#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

TEST(templates, are_valid_jobs_whose_own_data_lies_beside_them) {
  ASSERT_FALSE(job_templates().empty());
  for (const auto& one : job_templates()) {
    const test::temporary_folder folder;
    std::ofstream(folder.path() / "job.yaml") << one.job;
    for (const auto& file : one.data) std::ofstream(folder.path() / file.name) << file.text;
    const auto spec = job::read_spec(folder.path() / "job.yaml");
    ASSERT_TRUE(spec) << one.name << ": " << spec.error().message;
    if (one.data.empty()) continue;
    EXPECT_TRUE(std::filesystem::exists(spec->data().train().records())) << one.name;
  }
}

} // namespace
} // namespace dlrun::cli
