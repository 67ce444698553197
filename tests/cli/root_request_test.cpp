// What who asks a root is told when nobody answers.
#include "cli/root_request.hpp"

#include "actors/agent/control_socket.hpp"
#include "base/unique_fd.hpp"
#include "cli/run_watch.hpp"
#include "job/run_layout.hpp"
#include "tests/data/files.hpp"

#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

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

TEST_F(root_request_test, a_run_that_ended_without_a_report_is_told_with_the_way_out) {
  std::ofstream{run_dir / run_layout::record} << "what it was trained with";
  const auto answer = ask_root(run_dir, "status");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, error_code::bad_usage);
  EXPECT_THAT(answer.error().message,
              testing::AllOf(testing::HasSubstr("ended without a report"),
                             testing::HasSubstr("'dlrun resume " + run_dir.string() + "'")));
}

TEST_F(root_request_test, a_root_that_cannot_answer_is_not_told_as_one_whose_job_has_ended) {
  const auto root =
      agent::control_server::start(run_dir, [](const std::string&, const agent::control_reply& reply) {
        reply.refuse("Too many open files");
      });
  ASSERT_TRUE(root) << root.error().message;
  testing::internal::CaptureStderr();
  const auto looked = [](const nlohmann::json&) -> std::optional<int> { return std::nullopt; };
  EXPECT_EQ(watch_status(run_dir, std::chrono::milliseconds(1), looked), 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), EndsWith("cannot answer: Too many open files\n"));
}

/// A root that has the folder.
struct unready_root_test : root_request_test {
  unready_root_test()
      : lock{::open((run_dir / run_layout::lock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)} {
    EXPECT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(::pwrite(lock.get(), "4711 alpha\n", 11, 0), 11);
  }
  base::unique_fd lock;
};

TEST_F(unready_root_test, is_told_with_its_process_and_the_way_out) {
  const auto answer = ask_root(run_dir, "status");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, error_code::bad_usage);
  for (const auto* part : {"does not answer yet", "4711", "alpha", "dlrun attach"})
    EXPECT_THAT(answer.error().message, testing::HasSubstr(part));
}

TEST_F(unready_root_test, is_none_once_the_run_has_ended) {
  std::ofstream{run_dir / run_layout::report} << "{}";
  EXPECT_THAT(ask_root(run_dir, "status").error().message, EndsWith("is not the folder of a running job"));
}

TEST_F(unready_root_test, is_followed_until_it_has_let_the_folder_go) {
  int looks = 0;
  const auto watched = follow_run(
      run_dir, [&](const auto& status) { EXPECT_EQ(status, ""); },
      [&] {
        if (++looks == 3) lock.reset();
        return true;
      });
  EXPECT_TRUE(watched);
  EXPECT_EQ(looks, 3);
}

} // namespace
} // namespace dlrun::cli
