#include "runtime/host_commands.hpp"

#include "runtime/command_log.hpp"
#include "tests/actors/told.hpp"
#include "tests/data/files.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

namespace dlrun::runtime {
namespace {

using testing::HasSubstr;

class host_commands_test : public testing::Test {
protected:
  host_commands_test() { std::filesystem::create_directories(folder.path() / "logs"); }

  /// Agents are this script of a shell.
  std::shared_ptr<host_commands> commands(const std::string& script) {
    hosts_plan plan;
    plan.starter_program = "/bin/sh";
    plan.agent_program = "dlrun";
    for (const auto* word : {"sh", "-c", script.c_str()}) plan.hosts.add_start(word);
    plan.hosts.add_hosts()->set_name("alpha");
    plan.hosts.add_hosts()->set_name("beta");
    auto made =
        host_commands::create(plan, folder.path(), [](const spec::HostSpec& host) -> result<std::string> {
          return "for " + host.name() + "\n" + std::string(1'000'000, 'x');
        });
    return std::move(made).value();
  }
  std::string content(const std::string& file) const {
    std::ifstream stream(folder.path() / file);
    return {std::istreambuf_iterator<char>{stream}, {}};
  }

  test::temporary_folder folder;
  test::told told;
};

TEST_F(host_commands_test, give_an_agent_all_that_it_is_told_on_its_standard_input) {
  const auto all = commands("cat > " + (folder.path() / "got").string());
  all->run("beta", [this](const std::string& why) { told.add(why); });
  EXPECT_EQ(told.wait_for("exited"), "exited with code 0");
  EXPECT_EQ(content("got"), "for beta\n" + std::string(1'000'000, 'x'));
}

TEST_F(host_commands_test, tell_the_last_words_of_an_agent_as_the_reason_of_its_end) {
  const auto all = commands("echo first; echo 'dlrun: no room' >&2; exit 2");
  all->run("beta", [this](const std::string& why) { told.add(why); });
  EXPECT_EQ(told.wait_for("exited"), "exited with code 2: dlrun: no room");
  EXPECT_EQ(content("logs/host-beta.log"), "first\ndlrun: no room\n");
}

TEST_F(host_commands_test, do_not_tell_the_words_of_an_earlier_start) {
  std::ofstream(folder.path() / "logs/host-beta.log") << "long ago\n";
  const auto all = commands("exit 3");
  all->run("beta", [this](const std::string& why) { told.add(why); });
  EXPECT_EQ(told.wait_for("exited"), "exited with code 3");
}

/// The end of the run would have to read it.
TEST_F(host_commands_test, keep_the_log_of_one_that_prints_without_end_short) {
  const auto all = commands("echo first; exec yes");
  all->run("beta", [this](const std::string& why) { told.add(why); });
  const auto log = folder.path() / "logs/host-beta.log";
  while (content("logs/host-beta.log").find("bytes are left out") == std::string::npos)
    std::this_thread::yield();
  all->kill("beta");
  EXPECT_THAT(told.wait_for("was killed"), testing::EndsWith(": y"));
  EXPECT_LE(std::filesystem::file_size(log), command_log_bytes_max);
  EXPECT_TRUE(content("logs/host-beta.log").starts_with("first\n"));
}

TEST_F(host_commands_test, escape_what_is_no_text_in_the_last_words) {
  const auto all = commands(R"(printf 'a\033[2J\377\000b'; exit 2)");
  all->run("beta", [this](const std::string& why) { told.add(why); });
  EXPECT_EQ(told.wait_for("exited"), R"(exited with code 2: a\x1b[2J\xff\x00b)");
}

TEST_F(host_commands_test, kill_the_one_that_is_named) {
  const auto all = commands("exec sleep 600");
  all->run("alpha", [this](const std::string& why) { told.add("alpha " + why); });
  all->run("beta", [this](const std::string& why) { told.add("beta " + why); });
  all->kill("beta");
  EXPECT_THAT(told.wait_for("beta"), HasSubstr("signal 9"));
  EXPECT_EQ(told.count("alpha"), 0);
  all->kill("alpha");
  EXPECT_THAT(told.wait_for("alpha"), HasSubstr("signal 9"));
  all->wait_for_end(std::chrono::seconds(20));
}

TEST_F(host_commands_test, ask_the_one_that_is_named_to_end) {
  const auto all = commands("trap 'echo tidied up; exit 5' TERM; echo there; while :; do sleep 0.01; done");
  all->run("beta", [this](const std::string& why) { told.add(why); });
  while (std::ifstream(folder.path() / "logs/host-beta.log").peek() == EOF) std::this_thread::yield();
  all->ask_to_end("beta");
  EXPECT_EQ(told.wait_for("exited"), "exited with code 5: tidied up");
}

} // namespace
} // namespace dlrun::runtime
