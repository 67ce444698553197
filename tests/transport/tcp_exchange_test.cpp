// tcp_server and tcp_client, with peers that behave and peers that do not.
#include "tests/transport/tcp_peers.hpp"
#include "transport/copy_buffers.hpp"
#include "transport/frozen_parameters.hpp"
#include "transport/gradient_segment.hpp"
#include "transport/parameter_segment.hpp"
#include "transport/tcp_client.hpp"
#include "transport/tcp_server.hpp"

#include <algorithm>
#include <cstring>
#include <future>
#include <gmock/gmock.h>
#include <numeric>

namespace dlrun::transport {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using testing::connect_plain;
using testing::connect_proven;
using ::testing::Each;
using testing::greet_as_server;
using testing::plain_socket;
using testing::scripted_server;

class tcp_exchange : public ::testing::Test {
protected:
  /// Far beyond what any passing test needs.
  static clock::time_point far_off() { return clock::now() + 20s; }
  static constexpr std::size_t floats = 1000;

  static std::future<result<segment>> ask(segment_fetches& who, const std::string& address, segment_id id,
                                          std::size_t bytes, const segment_part& part,
                                          clock::time_point deadline = far_off()) {
    auto got = std::make_shared<std::promise<result<segment>>>();
    auto answer = got->get_future();
    EXPECT_TRUE(who.fetch(address, id, bytes, part, deadline,
                          [got](result<segment> one) { got->set_value(std::move(one)); }));
    return answer;
  }
  result<segment> fetch(segment_id id, std::size_t bytes, const segment_part& part) {
    return ask(*client, server->address(), id, bytes, part).get();
  }
  error_code failure_at(const std::string& address, clock::time_point deadline = far_off()) {
    const auto got =
        ask(*client, address, segment_id{1}, gradient_segment_bytes(4), gradient_part(0, 4), deadline).get();
    EXPECT_FALSE(got);
    return got ? error_code{} : got.error().code;
  }
  void publish(std::uint64_t version) {
    std::ranges::fill(parameters.begin_write(timeline_id{1}, version_id{version}),
                      static_cast<float>(version));
    parameters.publish();
  }
  result<parameter_reader> read_buffer(segment_id id, int buffer) {
    auto got = fetch(id, parameter_segment_bytes(floats), parameter_part(floats, buffer));
    if (!got) return tl::unexpected(got.error());
    return parameter_reader::open(std::move(*got), floats);
  }

  run_token token = run_token::random().value();
  std::unique_ptr<tcp_server> server = tcp_server::start({.token = token, .offers_max = 8}).value();
  std::unique_ptr<tcp_client> client =
      tcp_client::start({.token = token, .queue_max = 64, .bytes_max = 256 << 20}).value();
  parameter_writer parameters = parameter_writer::create(floats).value();
};

// ---- what is fetched

TEST_F(tcp_exchange, a_version_is_copied_from_the_buffer_that_has_it_and_the_other_one_is_not_there) {
  publish(0);
  publish(1);
  const auto id = server->offer(parameters.shared()).value();
  for (const int buffer : {0, 1}) {
    const auto reader = read_buffer(id, buffer).value();
    const version_id has{static_cast<std::uint64_t>(buffer)};
    const auto seen = reader.view(timeline_id{1}, has);
    ASSERT_TRUE(seen);
    EXPECT_THAT(seen->values, Each(static_cast<float>(buffer)));
    EXPECT_TRUE(reader.unchanged(*seen));
    EXPECT_FALSE(reader.view(timeline_id{1}, version_id{1 - has.value}));
    EXPECT_FALSE(reader.view(timeline_id{2}, has));
  }
}

TEST_F(tcp_exchange, a_copy_stays_what_it_was) {
  publish(0);
  const auto id = server->offer(parameters.shared()).value();
  const auto reader = read_buffer(id, 0).value();
  const auto seen = reader.view(timeline_id{1}, version_id{0}).value();
  publish(1);
  publish(2);
  EXPECT_THAT(seen.values, Each(0.0F));
  EXPECT_TRUE(reader.unchanged(seen));
  EXPECT_TRUE(read_buffer(id, 0).value().view(timeline_id{1}, version_id{2}));
}

TEST_F(tcp_exchange, a_slice_of_a_gradient_comes_with_what_says_whose_it_is) {
  auto gradient = gradient_writer::create(floats).value();
  const auto numbers = gradient.begin_write();
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const auto header = gradient.seal_as(
      {timeline_id{1}, worker_id{2}, incarnation{3}, step_id{7}, slot_id{0}, slot_id{4}, 5, floats});
  const auto id = server->offer(gradient.shared()).value();
  const auto reader =
      gradient_reader::open(fetch(id, gradient_segment_bytes(floats), gradient_part(300, 20)).value(), floats)
          .value();
  const auto values = reader.view(header).value().subspan(300, 20);
  std::vector<float> expected(20);
  std::iota(expected.begin(), expected.end(), 300.0F);
  EXPECT_TRUE(std::ranges::equal(values, expected));
  auto other = header;
  ++other.sequence;
  EXPECT_EQ(reader.view(other).error().code, error_code::protocol);
}

TEST_F(tcp_exchange, frozen_parameters_come_whole) {
  auto frozen = frozen_parameters_writer::create(floats).value();
  std::ranges::fill(frozen.values(), 2.5F);
  frozen.seal_as(timeline_id{3}, version_id{4});
  const auto id = server->offer(frozen.shared()).value();
  const auto got = fetch(id, frozen_parameters_bytes(floats), frozen_part(floats)).value();
  EXPECT_THAT(frozen_parameters(got, floats, timeline_id{3}, version_id{4}).value(), Each(2.5F));
}

TEST_F(tcp_exchange, much_comes_to_many_at_once) {
  constexpr std::size_t many = std::size_t{4} << 20; // 16 MiB: many turns of the server
  auto frozen = frozen_parameters_writer::create(many).value();
  std::ranges::fill(frozen.values(), 1.0F);
  frozen.values().back() = 2.0F;
  frozen.seal_as(timeline_id{1}, version_id{1});
  const auto id = server->offer(frozen.shared()).value();
  const auto other = tcp_client::start({.token = token}).value();
  std::vector<std::future<result<segment>>> answers;
  for (int i = 0; i < 4; ++i)
    for (auto* who : {client.get(), other.get()})
      answers.push_back(ask(*who, server->address(), id, frozen_parameters_bytes(many), frozen_part(many)));
  for (auto& one : answers) {
    const auto got = one.get().value();
    const auto values = frozen_parameters(got, many, timeline_id{1}, version_id{1}).value();
    EXPECT_EQ(std::memcmp(values.data(), frozen.values().data(), values.size_bytes()), 0);
  }
}

TEST_F(tcp_exchange, what_was_written_to_while_it_was_sent_is_told_as_such) {
  constexpr std::size_t many = std::size_t{16} << 20; // 64 MiB: far more than sockets hold
  auto large = parameter_writer::create(many).value();
  large.begin_write(timeline_id{1}, version_id{0});
  large.publish();
  const auto id = server->offer(large.shared()).value();
  tcp::request asked;
  asked.segment = id.value;
  asked.bytes = parameter_segment_bytes(many);
  asked.part = parameter_part(many, 0);
  for (const bool written : {false, true}) {
    const auto raw = connect_proven(server->address(), token);
    ASSERT_TRUE(raw.send(asked));
    tcp::reply reply;
    ASSERT_TRUE(raw.receive(reply));
    EXPECT_EQ(reply.status, tcp::reply_status::here);
    if (written) // the other buffer, which does not matter, then this one
      for (const std::uint64_t version : {1, 2}) {
        large.begin_write(timeline_id{1}, version_id{version});
        large.publish();
      }
    std::vector<std::byte> rest(asked.part.marks[0].bytes + asked.part.marks[1].bytes + many * sizeof(float));
    ASSERT_TRUE(raw.receive(rest.data(), rest.size()));
    tcp::trailer end;
    ASSERT_TRUE(raw.receive(end));
    EXPECT_EQ(end.unchanged, written ? 0U : 1U);
  }
}

TEST_F(tcp_exchange, memory_of_copies_is_used_again_with_a_clean_first_page) {
  copy_buffers buffers;
  const std::byte* first = nullptr;
  {
    const auto lent = buffers.lend(100'000).value();
    first = lent.memory.data();
    std::memset(lent.memory.data(), 7, lent.memory.size());
  }
  const auto smaller = buffers.lend(50'000).value();
  const auto again = buffers.lend(100'000).value();
  EXPECT_NE(smaller.memory.data(), first);
  EXPECT_EQ(again.memory.data(), first);
  EXPECT_THAT(again.memory.first(segment_header_bytes), Each(std::byte{0}));
}

// ---- what is refused

TEST_F(tcp_exchange, what_is_not_offered_any_more_or_is_of_another_size_is_refused) {
  publish(0);
  const auto id = server->offer(parameters.shared()).value();
  EXPECT_EQ(fetch(id, parameter_segment_bytes(2 * floats), parameter_part(floats, 0)).error().code,
            error_code::protocol);
  EXPECT_TRUE(read_buffer(id, 0)) << "over the same connection";
  server->withdraw(id);
  EXPECT_EQ(read_buffer(id, 0).error().code, error_code::role_lost);
  EXPECT_NE(server->offer(parameters.shared()).value(), id);
}

TEST_F(tcp_exchange, too_many_offers_and_fetches_and_too_large_ones_are_refused) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(server->offer(parameters.shared()));
  EXPECT_EQ(server->offer(parameters.shared()).error().code, error_code::limit_exceeded);
  const auto never = [](const auto&) { FAIL(); };
  EXPECT_EQ(client->fetch(server->address(), segment_id{1}, std::size_t{1} << 40, {}, far_off(), never)
                .error()
                .code,
            error_code::limit_exceeded);
  const scripted_server silent([](auto&, int) {});
  const auto small = tcp_client::start({.token = token, .queue_max = 1}).value();
  const auto waiting = ask(*small, silent.address(), segment_id{1}, 64, {{}, {0, 8}});
  EXPECT_EQ(small->fetch(silent.address(), segment_id{1}, 64, {{}, {0, 8}}, far_off(), never).error().code,
            error_code::limit_exceeded);
}

TEST_F(tcp_exchange, parts_that_are_not_in_the_segment_are_refused) {
  const auto id = server->offer(parameters.shared()).value();
  const auto raw = connect_proven(server->address(), token);
  const auto size = parameters.shared().size();
  for (const segment_part& part :
       {segment_part{{}, {size - 8, 9}}, segment_part{{}, {~0ULL, 8}}, segment_part{{}, {8, ~0ULL}},
        segment_part{{{{4, 8}, {}}}, {}}, segment_part{{{{0, 4096}, {4096, 8}}}, {}},
        segment_part{{{{size, 8}, {}}}, {}}}) {
    tcp::request asked;
    asked.segment = id.value;
    asked.bytes = size;
    asked.part = part;
    tcp::reply reply;
    ASSERT_TRUE(raw.send(asked) && raw.receive(reply));
    EXPECT_EQ(reply.status, tcp::reply_status::no_such_part);
  }
}

TEST_F(tcp_exchange, addresses_that_are_none_or_of_another_host_are_refused) {
  EXPECT_EQ(failure_at("tcp://127.0.0.1:1"), error_code::protocol);
  EXPECT_EQ(failure_at("dlrun-0123"), error_code::protocol);
  EXPECT_EQ(failure_at("tcp://127.0.0.1:70000/" + token.to_hex()), error_code::protocol);
  EXPECT_EQ(failure_at("tcp://127.0.0.1:80/1234"), error_code::protocol);
  EXPECT_EQ(failure_at("tcp://10.0.0.1:80/" + token.to_hex()), error_code::fenced);
  const auto mine = tcp::parse_address(server->address()).value();
  EXPECT_EQ(tcp::to_string(mine), server->address());
}

// ---- strangers

TEST_F(tcp_exchange, who_does_not_know_the_token_gets_nothing) {
  const auto stranger = tcp_client::start({.token = run_token::random().value()}).value();
  EXPECT_EQ(ask(*stranger, server->address(), segment_id{1}, 64, {{}, {0, 8}}).get().error().code,
            error_code::fenced);
  const auto raw = connect_plain(server->address());
  tcp::hello greeting;
  greeting.server = tcp::parse_address(server->address()).value().server;
  tcp::challenge challenge;
  ASSERT_TRUE(raw.send(greeting) && raw.receive(challenge));
  EXPECT_TRUE(raw.send(tcp::answer{challenge.knows})) << "the server's own proof, sent back";
  EXPECT_TRUE(raw.hangs_up());
}

TEST_F(tcp_exchange, who_wants_another_server_says_nothing_or_does_not_greet_is_hung_up_on) {
  const auto other = connect_plain(server->address());
  ASSERT_TRUE(other.send(tcp::hello{}));
  EXPECT_TRUE(other.hangs_up());
  const auto hasty = tcp_server::start({.token = token, .idle = 200ms}).value();
  EXPECT_TRUE(connect_plain(hasty->address()).hangs_up());
  const auto rude = connect_plain(server->address());
  ASSERT_TRUE(rude.send(std::array<char, sizeof(tcp::hello)>{"GET / HTTP/1.1"}));
  EXPECT_TRUE(rude.hangs_up());
  const auto proven = connect_proven(server->address(), token);
  tcp::request nonsense;
  nonsense.magic = 1;
  ASSERT_TRUE(proven.send(nonsense));
  EXPECT_TRUE(proven.hangs_up());
}

TEST_F(tcp_exchange, a_server_that_does_not_know_the_token_does_not_learn_it) {
  std::promise<bool> proved;
  const scripted_server stranger(
      [&](plain_socket& with, int) { proved.set_value(greet_as_server(with, run_token::random().value())); });
  EXPECT_EQ(failure_at(stranger.address()), error_code::fenced);
  EXPECT_FALSE(proved.get_future().get()) << "it is not answered";
}

// ---- peers that are slow, gone or wrong

TEST_F(tcp_exchange, a_server_that_is_gone_is_told_at_once_and_its_successor_is_another) {
  publish(0);
  const auto id = server->offer(parameters.shared()).value();
  ASSERT_TRUE(read_buffer(id, 0));
  const auto before = server->address();
  server.reset();
  EXPECT_EQ(failure_at(before), error_code::system);
  EXPECT_EQ(failure_at(before), error_code::system);
  server = tcp_server::start({.token = token}).value();
  EXPECT_NE(server->address(), before);
  EXPECT_TRUE(read_buffer(server->offer(parameters.shared()).value(), 0));
}

TEST_F(tcp_exchange, a_server_that_hangs_delays_nobody_else) {
  publish(0);
  const auto id = server->offer(parameters.shared()).value();
  const scripted_server silent([](auto&, int) {});
  auto late = ask(*client, silent.address(), segment_id{1}, 64, {{}, {0, 8}}, clock::now() + 300ms);
  EXPECT_TRUE(read_buffer(id, 0));
  EXPECT_EQ(late.get().error().code, error_code::timed_out);
}

TEST_F(tcp_exchange, what_waits_behind_a_late_answer_is_asked_for_again) {
  const scripted_server slow([&](plain_socket& with, int number) {
    tcp::request asked;
    if (!greet_as_server(with, token) || number == 0) return; // it takes the requests and says nothing
    ASSERT_TRUE(with.receive(asked));
    tcp::reply no;
    no.status = tcp::reply_status::unknown_segment;
    no.segment = asked.segment;
    ASSERT_TRUE(with.send(no));
  });
  auto first = ask(*client, slow.address(), segment_id{1}, 64, {{}, {0, 8}}, clock::now() + 300ms);
  auto second = ask(*client, slow.address(), segment_id{2}, 64, {{}, {0, 8}});
  EXPECT_EQ(first.get().error().code, error_code::timed_out);
  EXPECT_EQ(second.get().error().code, error_code::role_lost);
}

TEST_F(tcp_exchange, answers_that_no_correct_server_gives_are_refused) {
  const auto answer_with = [&](const std::function<void(plain_socket&, tcp::reply)>& rest) {
    const scripted_server wrong([&](plain_socket& with, int) {
      tcp::request asked;
      if (!greet_as_server(with, token) || !with.receive(asked)) return;
      tcp::reply here;
      here.segment = asked.segment;
      rest(with, here);
      with = plain_socket(base::unique_fd());
    });
    return failure_at(wrong.address());
  };
  const auto say = [](auto change) {
    return [change](plain_socket& with, tcp::reply reply) {
      change(reply);
      with.send(reply);
      with.hangs_up(); // it is the client that does
    };
  };
  EXPECT_EQ(answer_with(say([](tcp::reply& one) { one.magic = 1; })), error_code::protocol);
  EXPECT_EQ(answer_with(say([](tcp::reply& one) { ++one.segment; })), error_code::protocol);
  EXPECT_EQ(answer_with(say([](tcp::reply& one) { one.status = tcp::reply_status{9}; })),
            error_code::protocol);
  EXPECT_EQ(answer_with([](plain_socket& with, tcp::reply reply) {
              const std::vector<char> enough(8192); // marks, values and a trailer of zeroes
              with.send(reply);
              with.send(enough.data(), enough.size());
            }),
            error_code::protocol);
  EXPECT_EQ(answer_with([](plain_socket& with, tcp::reply reply) { with.send(reply); }), error_code::system);
}

TEST_F(tcp_exchange, who_does_not_take_what_it_asked_for_is_hung_up_on) {
  constexpr std::size_t many = std::size_t{16} << 20;
  auto large = frozen_parameters_writer::create(many).value();
  large.seal_as(timeline_id{1}, version_id{1});
  tcp::request asked;
  server = tcp_server::start({.token = token, .idle = 2s}).value(); // also for the proof, on a busy machine
  asked.segment = server->offer(large.shared()).value().value;
  asked.bytes = frozen_parameters_bytes(many);
  asked.part = frozen_part(many);
  const auto lazy = connect_proven(server->address(), token);
  ASSERT_TRUE(lazy.send(asked));
  publish(0);
  const auto id = server->offer(parameters.shared()).value();
  EXPECT_TRUE(read_buffer(id, 0)) << "others are served meanwhile";
  pollfd over{lazy.get(), POLLRDHUP, 0};
  EXPECT_EQ(::poll(&over, 1, 20'000), 1);
}

TEST_F(tcp_exchange, the_end_of_a_client_ends_its_fetches) {
  const scripted_server silent([](auto&, int) {});
  auto waiting = ask(*client, silent.address(), segment_id{1}, 64, {{}, {0, 8}});
  client.reset();
  EXPECT_EQ(waiting.get().error().code, error_code::interrupted);
}

} // namespace
} // namespace dlrun::transport
