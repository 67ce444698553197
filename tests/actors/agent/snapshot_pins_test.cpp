// Snapshots that stay while they are archived, whatever becomes of the store (R45).
#include "actors/agent/snapshot_pins.hpp"

#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class snapshot_pins_test : public testing::Test {
protected:
  snapshot_pins_test() { fs::create_directories(store / "snapshots"); }
  void add(const std::string& name, const std::string& content) const {
    std::ofstream(store / "snapshots" / name) << content;
  }
  std::vector<std::string> keep(const std::vector<std::string>& names) const {
    std::vector<std::string> found;
    const auto listed = keep_snapshots(store, names);
    EXPECT_TRUE(listed) << (listed ? "" : listed.error().message);
    if (listed)
      for (const auto& one : *listed) found.push_back(one.path);
    return found;
  }
  test::temporary_folder folder;
  fs::path store = folder.path() / "ps_shard-0";
};

TEST_F(snapshot_pins_test, those_that_are_kept_can_be_read_when_the_store_has_dropped_them) {
  add("40-0.snap", "forty");
  add("50-0.snap", "fifty");
  add("60-0.snap.tmp", "half");
  EXPECT_THAT(keep({}), UnorderedElementsAre("40-0.snap", "50-0.snap"));
  EXPECT_THAT(keep({"40-0.snap"}), UnorderedElementsAre("40-0.snap", "50-0.snap"));
  fs::remove(store / "snapshots" / "40-0.snap");
  EXPECT_EQ(read_kept_snapshot(store, "40-0.snap", 1, 3).value(), "ort");
  EXPECT_EQ(read_kept_snapshot(store, "40-0.snap", 3, 100).value(), "ty");
  EXPECT_EQ(read_kept_snapshot(store, "40-0.snap", 5, 100).value(), "");
  EXPECT_EQ(read_kept_snapshot(store, "50-0.snap", 0, 1).error().code, error_code::bad_usage);
  EXPECT_THAT(keep({"40-0.snap", "50-0.snap"}), UnorderedElementsAre("50-0.snap")) << "it is still kept";
  EXPECT_EQ(read_kept_snapshot(store, "50-0.snap", 0, 100).value(), "fifty");
  EXPECT_THAT(keep({}), UnorderedElementsAre("50-0.snap"));
  EXPECT_FALSE(fs::exists(folder.path() / "ps_shard-0.archived"));
}

TEST_F(snapshot_pins_test, one_that_is_gone_is_told_and_no_name_leads_out_of_the_store) {
  add("40-0.snap", "forty");
  EXPECT_EQ(keep_snapshots(store, std::vector<std::string>{"30-0.snap"}).error().code, error_code::bad_usage);
  std::ofstream(folder.path() / "secret.snap") << "secret";
  for (const std::string name : {"../../secret.snap", "../secret.snap", "/etc/passwd", "", "..", "FORMAT"}) {
    EXPECT_EQ(keep_snapshots(store, std::vector{name}).error().code, error_code::bad_usage) << name;
    EXPECT_EQ(read_kept_snapshot(store, name, 0, 1).error().code, error_code::bad_usage) << name;
  }
  EXPECT_EQ(read_kept_snapshot(store, "40-0.snap", 0, protocol::store_part_bytes_max + 1).error().code,
            error_code::limit_exceeded);
  EXPECT_EQ(keep_snapshots(folder.path() / "ps_shard-1", {}).error().code, error_code::bad_usage);
}

TEST_F(snapshot_pins_test, those_of_an_agent_that_was_killed_go_when_the_next_one_begins) {
  add("40-0.snap", "forty");
  keep({"40-0.snap"});
  drop_kept_snapshots(folder.path());
  EXPECT_FALSE(fs::exists(folder.path() / "ps_shard-0.archived"));
  EXPECT_THAT(keep({}), UnorderedElementsAre("40-0.snap"));
}

} // namespace
} // namespace dlrun::agent
