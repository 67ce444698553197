// What `train --or-resume` takes a folder for when it cannot see what is in it.
#include "runtime/begun_run.hpp"

#include "job/run_layout.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <fstream>
#include <gmock/gmock.h>

namespace dlrun::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(begun_run, whose_record_cannot_be_looked_for_is_not_called_something_to_remove) {
  const test::temporary_folder run;
  std::ofstream{run.path() / "events.jsonl"} << "{}";
  const auto find = [&] {
    return find_begun_run(test::parse(test::minimal_spec).value(), run.path().string(), false);
  };
  const auto foreign = find();
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message, HasSubstr("it has no run.record; remove it"));
  std::filesystem::create_symlink(run_layout::record, run.path() / run_layout::record); // to itself
  const auto unseen = find();
  ASSERT_FALSE(unseen);
  EXPECT_EQ(unseen.error().code, error_code::system);
  EXPECT_THAT(unseen.error().message, AllOf(HasSubstr((run.path() / run_layout::record).string()),
                                            HasSubstr("Too many levels"), Not(HasSubstr("remove"))));
}

} // namespace
} // namespace dlrun::runtime
