// A run folder made of an archive (R45), and who has it meanwhile.
#include "runtime/archive_restoration.hpp"

#include "runtime/resumption.hpp"
#include "tests/job/spec_text.hpp"
#include "tests/runtime/small_archives.hpp"

#include <gmock/gmock.h>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;

class archive_restoration_test : public testing::Test, protected test::small_archives {
protected:
  archive_restoration_test() {
    *record.add_revisions() = test::parse(test::minimal_spec, {"cluster.ps_shards=1"}).value();
    EXPECT_TRUE(archive(10, snapshot(10)));
  }
  result<run_folder> restore() const {
    const auto found = find_whole_archive(archives);
    EXPECT_TRUE(found && *found) << (found ? "none" : found.error().message);
    return restore_run(**found, run);
  }
  std::string refusal_of_another() const {
    const auto other = run_folder::open(run.string());
    return other ? "" : other.error().message;
  }

  std::filesystem::path run = folder.path() / "run";
};

TEST_F(archive_restoration_test, nobody_else_begins_in_the_folder_before_it_is_given_up) {
  {
    const auto restored = restore();
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_TRUE(std::filesystem::exists(run / "run.record"));
    EXPECT_THAT(refusal_of_another(), HasSubstr("in use by process"));
  }
  EXPECT_EQ(refusal_of_another(), "");
}

TEST_F(archive_restoration_test, what_cannot_be_gone_on_with_is_removed_to_be_made_again) {
  auto restored = restore();
  ASSERT_TRUE(restored) << restored.error().message;
  const auto refused = prepare_restored(*std::move(restored), {.overrides = {"train.epoch=3"}}, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("epoch"));
  EXPECT_FALSE(std::filesystem::exists(run));
  EXPECT_TRUE(restore());
}

} // namespace
} // namespace dlrun::runtime
