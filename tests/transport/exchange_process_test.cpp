// Shared memory between real processes, one of which is stopped or killed.
#include "transport/parameter_segment.hpp"
#include "transport/segment_client.hpp"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <future>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

namespace dlrun::transport {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t floats = 50'000;
constexpr std::uint64_t versions = 64;

/// The helper program, killed when the test ends.
class peer_process {
public:
  explicit peer_process(const run_token& token) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const base::unique_fd read_end(ends[0]);
    base::unique_fd write_end(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
    auto hex = token.to_hex();
    auto size = std::to_string(floats);
    auto cycle = std::to_string(versions);
    std::string program = DLRUN_TEST_PEER;
    char* arguments[] = {program.data(), hex.data(), size.data(), cycle.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    write_end.reset();
    std::string line;
    for (char c = 0; ::read(read_end.get(), &c, 1) == 1 && c != '\n';) line += c;
    address = line.substr(0, line.find(' '));
    id = segment_id{std::stoul(line.substr(line.find(' ') + 1))};
  }
  ~peer_process() { kill(); }

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }
  void stop() const {
    ::kill(pid_, SIGSTOP);
    ::waitpid(pid_, nullptr, WUNTRACED);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }

  std::string address;
  segment_id id;

private:
  pid_t pid_ = -1;
};

class exchange_between_processes : public ::testing::Test {
protected:
  result<segment> fetch(clock::time_point deadline) {
    std::promise<result<segment>> got;
    EXPECT_TRUE(client->fetch(peer.address, peer.id, parameter_segment_bytes(floats), {}, deadline,
                              [&](result<segment> s) { got.set_value(std::move(s)); }));
    return got.get_future().get();
  }
  static bool is_whole(const std::vector<float>& values, std::uint64_t version) {
    return std::ranges::all_of(values, [&](float x) { return x == static_cast<float>(version); });
  }

  /// A version that is served at this moment, or an unknown one after many tries.
  static std::uint64_t served_version(const parameter_reader& reader) {
    std::uint64_t version = 0;
    for (int tries = 0; tries < 10'000'000; ++tries, version = (version + 1) % versions)
      if (reader.view(timeline_id{1}, version_id{version})) return version;
    return versions;
  }

  run_token token = run_token::random().value();
  std::unique_ptr<segment_client> client =
      segment_client::start({token, 16, 4, segment_bytes_max_default}).value();
  peer_process peer{token};
};

TEST_F(exchange_between_processes, versions_published_at_full_speed_are_whole_or_refused) {
  const auto reader = parameter_reader::open(fetch(clock::now() + 20s).value(), floats).value();
  std::vector<float> values(floats);
  int whole = 0;
  const auto give_up = clock::now() + 20s;
  while (whole < 20 && clock::now() < give_up) {
    const auto version = served_version(reader);
    if (!reader.copy(timeline_id{1}, version_id{version}, values)) continue; // overwritten meanwhile
    ++whole;
    ASSERT_TRUE(is_whole(values, version)) << "torn copy of version " << version;
  }
  EXPECT_EQ(whole, 20);
}

TEST_F(exchange_between_processes, a_killed_owner_leaves_readable_memory_and_no_address) {
  const auto reader = parameter_reader::open(fetch(clock::now() + 20s).value(), floats).value();
  peer.stop();
  const auto version = served_version(reader);
  peer.kill();
  std::vector<float> values(floats);
  ASSERT_TRUE(reader.copy(timeline_id{1}, version_id{version}, values));
  EXPECT_TRUE(is_whole(values, version));
  EXPECT_EQ(fetch(clock::now() + 20s).error().code, error_code::system);
  std::ifstream sockets("/proc/net/unix");
  const std::string all((std::istreambuf_iterator<char>(sockets)), {});
  EXPECT_EQ(all.find(peer.address), std::string::npos);
}

TEST_F(exchange_between_processes, a_stopped_server_costs_the_deadline_and_serves_again_afterwards) {
  peer.stop();
  const auto before = clock::now();
  EXPECT_EQ(fetch(before + 200ms).error().code, error_code::timed_out);
  EXPECT_GE(clock::now() - before, 200ms);
  peer.go_on();
  EXPECT_TRUE(fetch(clock::now() + 20s));
}

TEST_F(exchange_between_processes, an_overrun_backlog_of_a_stopped_server_ends_by_the_deadline) {
  peer.stop();
  const auto many = segment_client::start({token, 400, 400, segment_bytes_max_default}).value();
  std::atomic<int> timed_out{0};
  std::promise<void> all;
  for (int i = 0; i < 300; ++i) // more than the listener's backlog
    ASSERT_TRUE(many->fetch(peer.address, peer.id, parameter_segment_bytes(floats), {}, clock::now() + 300ms,
                            [&](const result<segment>& s) {
                              EXPECT_EQ(s.error().code, error_code::timed_out);
                              if (++timed_out == 300) all.set_value();
                            }));
  EXPECT_EQ(all.get_future().wait_for(20s), std::future_status::ready);
  peer.go_on();
  EXPECT_TRUE(fetch(clock::now() + 20s));
}

} // namespace
} // namespace dlrun::transport
