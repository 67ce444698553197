// The folder of a run on a host that is not the root's.
#include "runtime/host_folder.hpp"

#include "tests/data/files.hpp"

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/resource.h>

namespace dlrun::runtime {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr auto own_number = "00000000000000ab\n";
const auto own_mark =
    own_number + std::string{R"({"host":"beta","root":"alpha","run_dir":"/runs/iris"})"} + "\n";

/// No file takes a byte while it lives, as on a full disk.
class no_room {
public:
  no_room()
      : handler_before_{std::signal(SIGXFSZ, SIG_IGN)} {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~no_room() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_before_);
  }
  no_room(const no_room&) = delete;
  no_room& operator=(const no_room&) = delete;

private:
  void (*handler_before_)(int);
  rlimit before_{};
};

class host_folder_test : public testing::Test {
protected:
  bootstrap::HostBundle bundle() const {
    bootstrap::HostBundle made;
    made.set_host("beta");
    made.set_root("alpha");
    made.set_root_dir("/runs/iris");
    made.set_folder(path.string());
    made.mutable_record()->set_run(0xab);
    return made;
  }
  std::string why_refused() const {
    const auto taken = host_folder::take(bundle());
    EXPECT_FALSE(taken.has_value());
    if (taken) return "";
    EXPECT_EQ(taken.error().code, error_code::bad_usage);
    return taken.error().message;
  }
  void write(const char* name, const std::string& content) const {
    fs::create_directories(path);
    std::ofstream{path / name, std::ios::binary} << content;
  }
  std::string mark() const {
    std::ifstream stream{path / "run.id", std::ios::binary};
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  test::temporary_folder folder;
  fs::path path = folder.path() / "of" / "beta";
};

TEST_F(host_folder_test, is_made_and_says_of_which_run_it_is) {
  ASSERT_TRUE(host_folder::take(bundle()));
  EXPECT_EQ(mark(), own_mark);
  ASSERT_TRUE(host_folder::take(bundle())) << "the same run";
}

TEST_F(host_folder_test, is_removed_with_those_above_it_where_nothing_began) {
  const auto taken = host_folder::take(bundle());
  ASSERT_TRUE(taken);
  taken->discard_unused();
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_F(host_folder_test, on_a_full_disk_is_refused_with_the_cause_and_the_way_out_and_nothing_is_left) {
  std::string why;
  {
    const no_room full;
    why = why_refused();
  }
  for (const auto* word : {"host beta", path.c_str(), "File too large", "name another folder"})
    EXPECT_THAT(why, HasSubstr(word));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST_F(host_folder_test, that_cannot_be_made_leaves_none_of_those_above_it) {
  path = folder.path() / "of" / std::string(300, 'x');
  EXPECT_THAT(why_refused(), testing::AllOf(HasSubstr("File name too long"), HasSubstr("name another")));
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

/// Its agent was killed, or had no room, while it wrote what marks the folder.
TEST_F(host_folder_test, with_the_beginning_of_a_mark_alone_is_nobodys) {
  for (const auto* torn : {"", "0", "00000000000000ab"}) {
    write("run.id", torn);
    ASSERT_TRUE(host_folder::take(bundle())) << torn;
    EXPECT_EQ(mark(), own_mark);
    fs::remove_all(path);
  }
}

/// As an earlier version wrote it, as it is torn behind the number, and after the root has moved.
TEST_F(host_folder_test, of_this_run_is_taken_whatever_else_its_mark_says_and_says_where_the_root_is) {
  for (const auto* rest :
       {"", "{\"host\":", "{\"host\":\"beta\",\"root\":\"gamma\",\"run_dir\":\"/old\"}\n"}) {
    write("run.id", own_number + std::string{rest});
    write("ps_shard-1", "");
    ASSERT_TRUE(host_folder::take(bundle())) << rest;
    EXPECT_EQ(mark(), own_mark) << rest;
    EXPECT_TRUE(fs::exists(path / "ps_shard-1"));
  }
}

TEST_F(host_folder_test, of_another_run_is_refused_and_stays_as_it_is) {
  write("run.id", "0123456789abcdef\n");
  EXPECT_THAT(why_refused(), testing::AllOf(HasSubstr("not of this run"), HasSubstr("remove it, or name")));
  EXPECT_EQ(mark(), "0123456789abcdef\n");
  write("run.id", "");
  write("ps_shard-1", "");
  EXPECT_THAT(why_refused(), HasSubstr("not of this run")) << "there is more than the beginning of a mark";
}

/// Its agent has been refused, since this one was quicker with the lock.
TEST_F(host_folder_test,
       that_another_host_of_the_run_has_claimed_is_removed_by_its_holder_where_nothing_began) {
  write("run.id",
        std::string{own_number} + "{\"host\":\"gamma\",\"root\":\"alpha\",\"run_dir\":\"/there\"}\n");
  const auto taken = host_folder::take(bundle());
  ASSERT_TRUE(taken);
  taken->discard_unused();
  EXPECT_TRUE(fs::is_empty(path));
}

/// Both in one start of the run: nobody waits for the other one to end.
TEST_F(host_folder_test, that_another_host_of_the_run_uses_is_refused_at_once_and_stays_as_it_is) {
  auto first = bundle();
  first.set_agent_process(7);
  const auto holder = host_folder::take(first);
  ASSERT_TRUE(holder);
  auto second = first;
  second.set_host("gamma");
  second.mutable_spec()->mutable_cluster()->set_orphan_grace_s(3600);
  const auto refused = host_folder::take(second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
  EXPECT_EQ(refused.error().message,
            "host gamma: host beta uses the folder '" + path.string() +
                "' too, on this machine or on a file system that both see: each host needs its own, so name "
                "another folder in the list of hosts, or with --folder of 'dlrun agent'");
  EXPECT_EQ(mark(), own_mark);
  EXPECT_TRUE(fs::exists(path / "agent.lock"));
  EXPECT_TRUE(fs::exists(path / "logs"));
}

TEST_F(host_folder_test, whose_host_has_another_name_since_is_taken) {
  { ASSERT_TRUE(host_folder::take(bundle())); }
  auto renamed = bundle();
  renamed.set_host("gamma");
  renamed.set_agent_process(8);
  ASSERT_TRUE(host_folder::take(renamed));
  EXPECT_THAT(mark(), HasSubstr("gamma"));
}

TEST_F(host_folder_test, that_another_run_uses_now_is_not_to_be_removed) {
  write("run.id", "0123456789abcdef\n");
  write("agent.lock", "");
  const base::unique_fd held{::open((path / "agent.lock").c_str(), O_RDWR | O_CLOEXEC)};
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  EXPECT_THAT(why_refused(), testing::AllOf(HasSubstr("another run uses it now"), HasSubstr("name another"),
                                            testing::Not(HasSubstr("remove"))));
}

} // namespace
} // namespace dlrun::runtime
