// What a root leaves for one that comes back.
#include "runtime/root_secrets.hpp"

#include "base/job_hosts.hpp"
#include "tests/data/files.hpp"

#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <sys/stat.h>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class root_secrets_test : public testing::Test {
protected:
  /// Keeps those of a root, which listens on ports of its own.
  root_secrets keep() {
    auto made = root_secrets::take(folder.path()).value();
    const auto beats = made.start_beats("127.0.0.1").value();
    beats_at = beats.exchange->address();
    EXPECT_TRUE(made.keep("name@127.0.0.1:4711", beats));
    return made;
  }
  mode_t mode() const {
    struct stat about {};
    EXPECT_EQ(::stat(file.c_str(), &about), 0);
    return about.st_mode & 0777;
  }

  test::temporary_folder folder;
  std::filesystem::path file = folder.path() / "root.secrets";
  std::string beats_at;
};

TEST_F(root_secrets_test, know_the_roots_that_ran_the_job_as_it_is_now) {
  const auto run = [&](std::uint64_t process, bool is_same_job) {
    auto secrets = root_secrets::take(folder.path()).value();
    secrets.note_root(process, is_same_job);
    EXPECT_TRUE(secrets.keep("name@127.0.0.1:4711", secrets.start_beats("127.0.0.1").value()));
    return secrets.roots_of_same_job();
  };
  using roots = std::set<std::uint64_t>;
  EXPECT_EQ(run(1, false), roots{1});
  EXPECT_EQ(run(2, true), (roots{1, 2}));
  EXPECT_EQ(run(3, false), roots{3});
  EXPECT_TRUE(root_secrets::job_changes(folder.path())) << "and no root comes for now";
  EXPECT_EQ(run(4, true), roots{4});
  EXPECT_EQ(mode(), 0600);
  root_secrets::forget(folder.path());
  EXPECT_TRUE(root_secrets::job_changes(folder.path()));
  EXPECT_FALSE(std::filesystem::exists(file));
}

/// Whenever it dies, no root takes over what ran another job than the one that is written.
TEST_F(root_secrets_test, a_root_that_changes_the_job_is_kept_once_the_change_is_written) {
  using roots = std::set<std::uint64_t>;
  auto first = root_secrets::take(folder.path()).value();
  first.note_root(1, false);
  ASSERT_TRUE(first.keep("name@127.0.0.1:4711", first.start_beats("127.0.0.1").value()));
  auto next = root_secrets::take(folder.path()).value();
  const auto kept = [&] { return root_secrets::take(folder.path()).value().roots_of_same_job(); };
  ASSERT_TRUE(next.keep("name@127.0.0.1:4711", next.start_beats("127.0.0.1").value()));
  EXPECT_EQ(kept(), roots{1}) << "nothing is changed yet";
  EXPECT_FALSE(next.change_job(2, [&]() -> result<void> {
    EXPECT_EQ(kept(), roots{});
    return fail(error_code::system, "the disk is full");
  }));
  EXPECT_EQ(kept(), roots{});
  EXPECT_TRUE(next.change_job(2, [] { return result<void>{}; }));
  EXPECT_EQ(kept(), roots{2});
}

TEST_F(root_secrets_test, the_next_root_is_who_the_first_one_was) {
  const auto first = keep();
  EXPECT_FALSE(first.are_found());
  EXPECT_EQ(mode(), 0600);
  const auto next = root_secrets::take(folder.path()).value();
  EXPECT_TRUE(next.are_found());
  EXPECT_EQ(next.token().bytes, first.token().bytes);
  EXPECT_EQ(next.control_port(), 4711);
  const auto of_first = first.identity(1min).value()->issue({protocol::role_kind::worker, 0}, "beta").value();
  const auto of_next = next.identity(1min).value()->issue({protocol::role_kind::worker, 0}, "beta").value();
  EXPECT_EQ(of_first.authority, of_next.authority);
  EXPECT_EQ(next.start_beats("127.0.0.1").value().exchange->address(), beats_at);
}

TEST_F(root_secrets_test, the_next_root_knows_who_joined_by_itself_as_it_was_last) {
  auto first = keep();
  records::EnrolledHost host;
  for (const auto* address : {"10.0.0.2", "10.0.0.3"}) {
    host.set_name("beta");
    host.set_address(address);
    host.set_index(4);
    ASSERT_TRUE(first.keep(host));
  }
  constexpr auto hosts = base::job_hosts_max + 9, a_root = 200U;
  for (std::uint32_t more = 0; more < hosts;) {
    auto next = root_secrets::take(folder.path()).value();
    ASSERT_EQ(next.enrolled().back().SerializeAsString(), host.SerializeAsString());
    for (const auto end = std::min(hosts, more + a_root); more < end; ++more) {
      host.set_name("host-" + std::to_string(more) + std::string(90, 'x'));
      ASSERT_TRUE(next.keep(host));
    }
  }
  EXPECT_EQ(mode(), 0600);
  const auto last = root_secrets::take(folder.path());
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->enrolled().size(), base::job_hosts_max);
}

TEST_F(root_secrets_test, where_its_port_of_beats_is_taken_it_has_another) {
  keep();
  const auto next = root_secrets::take(folder.path()).value();
  const auto there = next.start_beats("127.0.0.1").value();
  EXPECT_NE(next.start_beats("127.0.0.1").value().exchange->address(), beats_at);
}

TEST_F(root_secrets_test, of_a_root_that_has_ended_in_order_there_are_none) {
  keep();
  root_secrets::forget(folder.path());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE(root_secrets::take(folder.path()).value().are_found());
}

TEST_F(root_secrets_test, of_one_that_ended_before_it_had_any_there_are_none) {
  std::ofstream{file};
  EXPECT_FALSE(root_secrets::take(folder.path()).value().are_found());
}

TEST_F(root_secrets_test, a_file_that_others_can_read_is_refused_and_named) {
  keep();
  std::filesystem::permissions(file, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
  const auto refused = root_secrets::take(folder.path());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::bad_usage);
  EXPECT_THAT(refused.error().message, HasSubstr(file.string()));
  EXPECT_THAT(refused.error().message, HasSubstr("read by others"));
}

TEST_F(root_secrets_test, a_file_that_is_torn_damaged_or_too_large_is_refused) {
  keep();
  std::ifstream stream(file, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  auto flipped = whole;
  flipped.back() ^= 1;
  for (const auto& content : {whole.substr(0, whole.size() - 1), flipped, whole.substr(0, 10),
                              whole + std::string(100'000, 'x'), std::string{"\n"}}) {
    std::ofstream{file, std::ios::binary} << content;
    const auto refused = root_secrets::take(folder.path());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("is not what was written"));
  }
}

} // namespace
} // namespace dlrun::runtime
