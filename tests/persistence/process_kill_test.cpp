// A process that appends, killed in the middle: everything that was acknowledged is there.
#include "tests/persistence/store_fixture.hpp"

#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlrun::persistence {
namespace {

/// The appender, killed when the test ends.
class appender {
public:
  appender(const std::string& directory, std::uint64_t incarnation, const char* mode) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::vector<std::string> texts{DLRUN_TEST_APPENDER, directory, std::to_string(incarnation), mode};
    std::vector<char*> arguments;
    for (auto& text : texts) arguments.push_back(text.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, DLRUN_TEST_APPENDER, &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  ~appender() {
    kill();
    ::close(output_);
  }
  appender(const appender&) = delete;
  appender& operator=(const appender&) = delete;

  /// Empty at the end of the output.
  std::string line() {
    std::string text;
    for (char c = 0; ::read(output_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

private:
  pid_t pid_ = -1;
  int output_ = -1;
};

class process_kill : public test::store_test {
protected:
  shard_store_options on_the_real_disk(std::uint64_t opener) const {
    auto made = options(opener);
    made.files = nullptr;
    return made;
  }
};

TEST_F(process_kill, loses_nothing_that_was_acknowledged) {
  std::uint64_t opener = 1;
  std::uint64_t known = 0;
  for (const auto* mode : {"process", "power", "process", "process", "power", "process"}) {
    appender child(directory(), opener++, mode);
    ASSERT_EQ(child.line(), "opened");
    const auto enough = known + (std::string(mode) == "power" ? 10 : 100 + 17 * opener);
    while (known < enough) known = std::stoull(child.line());
    child.kill();
    for (auto line = child.line(); !line.empty(); line = child.line()) known = std::stoull(line);
    const auto store = shard_store::open(on_the_real_disk(opener++)).value();
    ASSERT_GE(store->found().log_end.value, known);
    EXPECT_LE(store->found().log_end.value, known + 1) << "one may have been under way";
    ASSERT_TRUE(holds_all(*store, 0, store->found().log_end.value));
    known = store->found().log_end.value;
  }
}

TEST_F(process_kill, a_store_is_held_by_its_process_until_that_is_gone) {
  appender child(directory(), 1, "process");
  ASSERT_EQ(child.line(), "opened");
  const auto refused = shard_store::open(on_the_real_disk(2));
  EXPECT_EQ(refused.error().code, error_code::in_use);
  EXPECT_NE(refused.error().message.find("held by another process"), std::string::npos)
      << refused.error().message;
  child.kill();
  EXPECT_TRUE(shard_store::open(on_the_real_disk(2)));
}

TEST_F(process_kill, a_process_of_a_lower_incarnation_is_fenced) {
  shard_store::open(on_the_real_disk(7)).value().reset();
  appender child(directory(), 6, "process");
  EXPECT_NE(child.line().find("opened by incarnation 7: incarnation 6 comes too late"), std::string::npos);
}

} // namespace
} // namespace dlrun::persistence
