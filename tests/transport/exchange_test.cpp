// segment_server and segment_client, with peers that behave and peers that do not.
#include "tests/transport/rogue_peer.hpp"
#include "transport/segment_client.hpp"
#include "transport/segment_server.hpp"

#include <filesystem>
#include <future>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>

namespace dlrun::transport {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using testing::rogue_server;
using testing::send_with;

/// Far beyond what any passing test needs.
clock::time_point patience() { return clock::now() + 20s; }

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

std::string bytes_of(const wire::request& asked) {
  return {reinterpret_cast<const char*>(&asked), sizeof asked};
}

class segment_exchange : public ::testing::Test {
protected:
  result<segment> fetch(const std::string& address, segment_id id, std::size_t bytes,
                        clock::time_point deadline = patience()) {
    return fetch_by(*client, address, id, bytes, deadline);
  }
  static result<segment> fetch_by(segment_client& who, const std::string& address, segment_id id,
                                  std::size_t bytes, clock::time_point deadline = patience()) {
    std::promise<result<segment>> got;
    const auto asked =
        who.fetch(address, id, bytes, {}, deadline, [&](result<segment> s) { got.set_value(std::move(s)); });
    EXPECT_TRUE(asked);
    return got.get_future().get();
  }
  wire::request good_request(segment_id id) const {
    wire::request asked;
    asked.token = token;
    asked.segment = id.value;
    return asked;
  }

  run_token token = run_token::random().value();
  std::unique_ptr<segment_server> server = segment_server::start({token, 100ms, 4, 8}).value();
  std::unique_ptr<segment_client> client = segment_client::start({token, 16, 4, 1 << 20}).value();
  segment offered = segment::create("test", 12'345).value();
};

TEST_F(segment_exchange, a_fetched_segment_is_the_offered_one) {
  const auto id = server->offer(offered).value();
  const auto got = fetch(server->address(), id, 12'345).value();
  offered.mutable_bytes()[12'344] = std::byte{7};
  EXPECT_EQ(got.bytes()[12'344], std::byte{7});
}

TEST_F(segment_exchange, leaves_nothing_in_the_file_system) {
  EXPECT_NE(server->address().front(), '/');
  EXPECT_FALSE(std::filesystem::exists(server->address()));
}

TEST_F(segment_exchange, ids_are_never_given_twice) {
  const auto a = server->offer(offered).value();
  server->withdraw(a);
  EXPECT_NE(server->offer(offered).value(), a);
}

TEST_F(segment_exchange, a_withdrawn_segment_is_gone_for_new_fetches_only) {
  const auto id = server->offer(offered).value();
  const auto got = fetch(server->address(), id, 12'345).value();
  server->withdraw(id);
  server->withdraw(segment_id{999});
  EXPECT_EQ(fetch(server->address(), id, 12'345).error().code, error_code::role_lost);
  offered.mutable_bytes()[0] = std::byte{9};
  EXPECT_EQ(got.bytes()[0], std::byte{9});
}

TEST_F(segment_exchange, offers_are_bounded) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(server->offer(offered));
  EXPECT_EQ(server->offer(offered).error().code, error_code::limit_exceeded);
}

TEST_F(segment_exchange, another_size_than_expected_is_refused) {
  const auto id = server->offer(offered).value();
  EXPECT_EQ(fetch(server->address(), id, 12'346).error().code, error_code::protocol);
}

TEST_F(segment_exchange, a_segment_above_the_clients_bound_is_refused) {
  const auto large = segment::create("large", (1 << 20) + 1).value();
  const auto id = server->offer(large).value();
  EXPECT_EQ(fetch(server->address(), id, large.size()).error().code, error_code::limit_exceeded);
}

TEST_F(segment_exchange, another_run_gets_nothing) {
  const auto id = server->offer(offered).value();
  const auto stranger = segment_client::start({run_token::random().value(), 16, 4, 1 << 20}).value();
  EXPECT_EQ(fetch_by(*stranger, server->address(), id, 12'345).error().code, error_code::fenced);
}

TEST_F(segment_exchange, nobody_at_the_address_is_an_error_at_once) {
  const auto before = clock::now();
  EXPECT_EQ(fetch("dlrun-nobody", segment_id{1}, 1).error().code, error_code::system);
  EXPECT_LT(clock::now() - before, 10s);
  EXPECT_EQ(fetch("", segment_id{1}, 1).error().code, error_code::protocol);
  EXPECT_EQ(fetch(std::string(200, 'x'), segment_id{1}, 1).error().code, error_code::protocol);
}

TEST_F(segment_exchange, a_server_that_says_nothing_costs_the_deadline_and_delays_nobody_else) {
  rogue_server silent([](int, const wire::request&) {});
  std::promise<result<segment>> late;
  ASSERT_TRUE(client->fetch(silent.address(), segment_id{1}, 64, {}, clock::now() + 300ms,
                            [&](result<segment> s) { late.set_value(std::move(s)); }));
  auto waiting = late.get_future();
  const auto id = server->offer(offered).value();
  EXPECT_TRUE(fetch(server->address(), id, 12'345));
  EXPECT_EQ(waiting.get().error().code, error_code::timed_out);
}

TEST_F(segment_exchange, a_deadline_in_the_past_still_calls_back) {
  rogue_server silent([](int, const wire::request&) {});
  EXPECT_EQ(fetch(silent.address(), segment_id{1}, 64, clock::now() - 1s).error().code,
            error_code::timed_out);
}

/// What a client makes of one answer of a rogue server.
class rogue_answers : public segment_exchange {
protected:
  error_code error_of(std::function<void(int, const wire::request&)> answer) {
    const rogue_server rogue(std::move(answer));
    const auto before = open_descriptors();
    const auto got = fetch(rogue.address(), segment_id{1}, 12'345);
    EXPECT_FALSE(got);
    // The rogue may hold its connection; nothing it sent may stay open here.
    EXPECT_LE(open_descriptors(), before + 1);
    return got ? error_code{} : got.error().code;
  }
  static wire::reply good_reply() {
    wire::reply said;
    said.segment = 1;
    said.bytes = 12'345;
    return said;
  }
};

TEST_F(rogue_answers, garbage_is_refused) {
  EXPECT_EQ(error_of([](int s, const auto&) { send_with(s, "garbage", 7, {}); }), error_code::protocol);
  const std::string flood(100'000, 'x');
  EXPECT_EQ(error_of([&](int s, const auto&) { send_with(s, flood.data(), flood.size(), {}); }),
            error_code::protocol);
}

TEST_F(rogue_answers, hanging_up_is_an_error) {
  EXPECT_EQ(error_of([](int s, const auto&) { ::shutdown(s, SHUT_RDWR); }), error_code::protocol);
}

TEST_F(rogue_answers, a_reply_without_a_descriptor_is_refused) {
  EXPECT_EQ(error_of([](int s, const auto&) {
              const auto said = good_reply();
              send_with(s, &said, sizeof said, {});
            }),
            error_code::protocol);
}

TEST_F(rogue_answers, several_descriptors_are_refused_and_closed) {
  for (const std::size_t count : {2U, 4U, 5U, 200U})
    EXPECT_EQ(error_of([&](int s, const auto&) {
                const auto said = good_reply();
                send_with(s, &said, sizeof said, std::vector<int>(count, offered.fd()));
              }),
              error_code::protocol)
        << count;
}

TEST_F(rogue_answers, garbage_with_a_descriptor_is_refused_and_closed) {
  EXPECT_EQ(error_of([&](int s, const auto&) { send_with(s, "x", 1, {offered.fd()}); }),
            error_code::protocol);
}

TEST_F(rogue_answers, a_descriptor_without_seals_is_refused) {
  const base::unique_fd bare(::memfd_create("bare", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(bare.get(), 12'345), 0);
  EXPECT_EQ(error_of([&](int s, const auto&) {
              const auto said = good_reply();
              send_with(s, &said, sizeof said, {bare.get()});
            }),
            error_code::protocol);
}

TEST_F(rogue_answers, a_segment_smaller_than_it_says_is_refused) {
  const auto small = segment::create("small", 64).value();
  EXPECT_EQ(error_of([&](int s, const auto&) {
              const auto said = good_reply();
              send_with(s, &said, sizeof said, {small.fd()});
            }),
            error_code::protocol);
}

TEST_F(rogue_answers, a_reply_for_another_segment_or_with_an_unknown_status_is_refused) {
  EXPECT_EQ(error_of([&](int s, const auto&) {
              auto said = good_reply();
              said.segment = 2;
              send_with(s, &said, sizeof said, {offered.fd()});
            }),
            error_code::protocol);
  EXPECT_EQ(error_of([&](int s, const auto&) {
              auto said = good_reply();
              said.status = wire::reply_status{77};
              send_with(s, &said, sizeof said, {offered.fd()});
            }),
            error_code::protocol);
}

TEST_F(segment_exchange, the_server_hangs_up_on_garbage_and_goes_on) {
  const auto id = server->offer(offered).value();
  wire::reply said;
  auto wrong_magic = good_request(id);
  wrong_magic.magic = 1;
  auto wrong_version = good_request(id);
  wrong_version.version = 99;
  for (const auto& bytes : {std::string("x"), std::string(50'000, 'x'), bytes_of(wrong_magic),
                            bytes_of(wrong_version), bytes_of(good_request(id)) + "x"}) {
    const auto socket = testing::connect_to(server->address());
    EXPECT_EQ(testing::exchange_raw(socket.get(), bytes, said), 0U) << bytes.size();
  }
  EXPECT_TRUE(fetch(server->address(), id, 12'345));
}

TEST_F(segment_exchange, descriptors_that_a_client_sends_are_closed) {
  const auto id = server->offer(offered).value();
  const auto socket = testing::connect_to(server->address());
  const auto before = open_descriptors();
  send_with(socket.get(), "x", 1, std::vector<int>(100, offered.fd()));
  EXPECT_TRUE(testing::hangs_up(socket.get()));
  EXPECT_LE(open_descriptors(), before + 1);
  EXPECT_TRUE(fetch(server->address(), id, 12'345));
}

TEST_F(segment_exchange, clients_that_connect_and_say_nothing_are_dropped_and_block_nobody) {
  const auto id = server->offer(offered).value();
  std::vector<base::unique_fd> idle; // more than the server serves at a time
  for (int i = 0; i < 10; ++i) idle.push_back(testing::connect_to(server->address()));
  EXPECT_TRUE(fetch(server->address(), id, 12'345));
  for (const auto& socket : idle) EXPECT_TRUE(testing::hangs_up(socket.get()));
}

TEST_F(segment_exchange, the_accept_loop_survives_running_out_of_descriptors) {
  const auto id = server->offer(offered).value();
  const auto before = open_descriptors();
  const auto asking = testing::connect_to(server->address());
  while (open_descriptors() < before + 2) std::this_thread::yield(); // accepted before
  std::vector<base::unique_fd> waiting;
  std::vector<base::unique_fd> fill;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit low{64, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  while (fill.size() < 64) {
    base::unique_fd one(::dup(offered.fd()));
    if (!one) break;
    fill.push_back(std::move(one));
  }
  ASSERT_FALSE(fill.empty());
  fill.pop_back();
  waiting.push_back(
      testing::connect_to(server->address())); // cannot be accepted: this was the last descriptor
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  fill.clear();
  wire::reply said;
  EXPECT_EQ(testing::exchange_raw(waiting[0].get(), bytes_of(good_request(id)), said), sizeof said);
  EXPECT_TRUE(fetch(server->address(), id, 12'345));
}

TEST_F(segment_exchange, the_queue_of_a_client_is_bounded) {
  rogue_server silent([](int, const wire::request&) {});
  std::atomic<int> ended{0};
  for (int i = 0; i < 16; ++i)
    ASSERT_TRUE(client->fetch(silent.address(), segment_id{1}, 64, {}, patience(), [&](const auto& s) {
      EXPECT_EQ(s.error().code, error_code::interrupted);
      ++ended;
    }));
  EXPECT_EQ(client->fetch(silent.address(), segment_id{1}, 64, {}, patience(), [](const auto&) { FAIL(); })
                .error()
                .code,
            error_code::limit_exceeded);
  client.reset();
  EXPECT_EQ(ended, 16);
}

TEST_F(segment_exchange, a_callback_may_fetch_again) {
  const auto id = server->offer(offered).value();
  std::promise<result<segment>> second;
  ASSERT_TRUE(client->fetch(server->address(), id, 12'345, {}, patience(), [&](const auto&) {
    EXPECT_TRUE(client->fetch(server->address(), id, 12'345, {}, patience(),
                              [&](result<segment> s) { second.set_value(std::move(s)); }));
  }));
  EXPECT_TRUE(second.get_future().get());
}

TEST_F(segment_exchange, many_fetches_at_once_all_succeed_and_leak_nothing) {
  const auto id = server->offer(offered).value();
  ASSERT_TRUE(fetch(server->address(), id, 12'345));
  const auto before = open_descriptors();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::promise<bool>> got(16);
    for (auto& one : got)
      ASSERT_TRUE(client->fetch(server->address(), id, 12'345, {}, patience(),
                                [&](const result<segment>& s) { one.set_value(s.has_value()); }));
    for (auto& one : got) EXPECT_TRUE(one.get_future().get());
  }
  EXPECT_LE(open_descriptors(), before + 4); // connections just being closed
}

} // namespace
} // namespace dlrun::transport
