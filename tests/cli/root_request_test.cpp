// What who asks a root is told when nobody answers.
#include "cli/root_request.hpp"

#include "job/run_layout.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using testing::EndsWith;

struct root_request_test : testing::Test {
  /// Of a root that is said to be there.
  error refusal() const {
    std::ofstream{run_dir / run_layout::agent}
        << nlohmann::json{{"pid", 4711}, {"socket", run_layout::control_socket}};
    const auto answer = ask_root(run_dir, "status");
    EXPECT_FALSE(answer);
    return answer ? error{} : answer.error();
  }

  test::temporary_folder folder;
  std::filesystem::path run_dir = folder.path();
};

TEST_F(root_request_test, a_root_that_was_killed_is_told_with_the_way_out) {
  const auto why = refusal();
  EXPECT_EQ(why.code, error_code::role_lost);
  EXPECT_THAT(why.message, EndsWith("died without ending it in order; 'dlrun resume " + run_dir.string() +
                                    "' goes on from what is on disk"));
}

TEST_F(root_request_test, the_way_out_of_a_run_on_several_hosts_names_their_list) {
  std::ofstream{run_dir / run_layout::secrets} << "kept for the next root";
  EXPECT_THAT(
      refusal().message,
      EndsWith("'dlrun resume " + run_dir.string() +
               " --hosts FILE' goes on from what is on disk, and with what runs on other hosts still"));
}

TEST_F(root_request_test, where_there_is_no_run_nothing_goes_on) {
  const auto answer = ask_root(run_dir, "status");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, error_code::bad_usage);
  EXPECT_THAT(answer.error().message, EndsWith("is not the folder of a running job"));
}

} // namespace
} // namespace dlrun::cli
