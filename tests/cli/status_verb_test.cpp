// dlrun status, asked of a root that the test plays.
#include "tests/cli/played_root.hpp"

#include "job/run_layout.hpp"

#include <dlrun/report.hpp>

namespace dlrun::cli {
namespace {

using testing::HasSubstr;

class status_verb_test : public played_root_test {};

TEST_F(status_verb_test, a_run_that_ends_while_it_is_asked_is_told_by_its_report) {
  auto made = agent::control_server::start(folder.path(), [this](const std::string&, const auto&) {
    report ended;
    ended.job = "iris";
    ended.status = run_status::completed;
    ended.steps = 12;
    EXPECT_TRUE(write_report(folder.path() / run_layout::report, ended));
    std::filesystem::remove(folder.path() / run_layout::agent); // as a root does that ends in order
  });
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(ask(add_status, {"status", "--json"}), 0) << complaint;
  EXPECT_THAT(said, HasSubstr(R"("status":"completed","step":12)"));
}

} // namespace
} // namespace dlrun::cli
