// The channel of a process among several hosts: shared memory for its own, TLS for the others.
#include "security/certificate_authority.hpp"
#include "security/tls_context.hpp"
#include "transport/paired_channel.hpp"
#include "transport/parameter_segment.hpp"

#include <algorithm>
#include <future>
#include <gmock/gmock.h>

namespace dlrun::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(paired_address_, an_address_is_read_as_it_was_written_and_one_of_one_way_is_none) {
  const auto both = parse_paired_address("dlrun-01 b tls://10.0.0.2:80/ab").value();
  EXPECT_EQ(both.near, "dlrun-01");
  EXPECT_EQ(both.host, "b");
  EXPECT_EQ(both.far, "tls://10.0.0.2:80/ab");
  EXPECT_EQ(to_string(both), "dlrun-01 b tls://10.0.0.2:80/ab");
  for (const auto* one : {"dlrun-01", "tls://10.0.0.2:80/ab", "", "a b"})
    EXPECT_FALSE(parse_paired_address(one)) << one;
}

/// A process on host a offers; one on a and one on b fetch.
class paired_channel : public ::testing::Test {
protected:
  static constexpr std::size_t floats = 1000;

  channel_options on_host(const std::string& host) const {
    const auto mine = authority.issue({"j1", "ps_shard", 0, host}).value();
    return {.token = token, .other_hosts = {"127.0.0.1", security::tls_context::make(mine).value()}};
  }
  result<parameter_reader> fetch(segment_fetches& who, segment_id id) const {
    std::promise<result<segment>> got;
    EXPECT_TRUE(who.fetch(offers->address(), id, parameter_segment_bytes(floats), parameter_part(floats, 0),
                          std::chrono::steady_clock::now() + 20s,
                          [&](result<segment> one) { got.set_value(std::move(one)); }));
    auto fetched = got.get_future().get();
    if (!fetched) return tl::unexpected(fetched.error());
    return parameter_reader::open(std::move(*fetched), floats);
  }
  void publish(std::uint64_t version) {
    std::ranges::fill(parameters.begin_write(timeline_id{1}, version_id{version}),
                      static_cast<float>(version));
    parameters.publish();
  }

  run_token token = run_token::random().value();
  security::certificate_authority authority = security::certificate_authority::make("j1").value();
  std::shared_ptr<segment_offers> offers = open_offers(on_host("a")).value();
  std::unique_ptr<segment_fetches> beside = open_fetches(on_host("a")).value();
  std::unique_ptr<segment_fetches> far_off = open_fetches(on_host("b")).value();
  parameter_writer parameters = parameter_writer::create(floats).value();
};

TEST_F(paired_channel, the_same_host_shares_memory_and_another_gets_a_copy) {
  EXPECT_TRUE(beside->is_shared(offers->address()));
  EXPECT_FALSE(far_off->is_shared(offers->address()));
  publish(0);
  const auto id = offers->offer(parameters.shared()).value();
  const auto shared = fetch(*beside, id).value();
  const auto copy = fetch(*far_off, id).value();
  publish(1);
  publish(2);
  EXPECT_TRUE(shared.view(timeline_id{1}, version_id{2})) << "what is written later shows";
  EXPECT_FALSE(copy.view(timeline_id{1}, version_id{2}));
  EXPECT_THAT(copy.view(timeline_id{1}, version_id{0}).value().values, Each(0.0F));
}

TEST_F(paired_channel, what_is_withdrawn_is_gone_both_ways_and_its_id_is_not_given_again) {
  const auto id = offers->offer(parameters.shared()).value();
  offers->withdraw(id);
  EXPECT_EQ(fetch(*beside, id).error().code, error_code::role_lost);
  EXPECT_EQ(fetch(*far_off, id).error().code, error_code::role_lost);
  EXPECT_NE(offers->offer(parameters.shared()).value(), id);
}

TEST_F(paired_channel, doorbells_are_for_the_same_host) {
  std::promise<std::unique_ptr<doorbell>> theirs;
  offers->on_doorbell([&](std::unique_ptr<doorbell> one) { theirs.set_value(std::move(one)); });
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  std::promise<result<std::unique_ptr<doorbell>>> ours;
  ASSERT_TRUE(beside->connect_doorbell(offers->address(), deadline,
                                       [&](auto one) { ours.set_value(std::move(one)); }));
  EXPECT_TRUE(ours.get_future().get());
  EXPECT_TRUE(theirs.get_future().get());
  EXPECT_EQ(far_off->connect_doorbell(offers->address(), deadline, [](auto) { FAIL(); }).error().code,
            error_code::bad_usage);
}

TEST_F(paired_channel, the_near_address_is_one_that_the_same_host_takes_too) {
  publish(0);
  const auto id = offers->offer(parameters.shared()).value();
  EXPECT_THAT(offers->address(), HasSubstr(offers->near_address()));
  EXPECT_LT(offers->near_address().size(), 64U) << "it has to fit into a doorbell's packet";
  std::promise<result<segment>> got;
  ASSERT_TRUE(beside->fetch(offers->near_address(), id, parameter_segment_bytes(floats), {},
                            std::chrono::steady_clock::now() + 20s,
                            [&](result<segment> one) { got.set_value(std::move(one)); }));
  EXPECT_TRUE(got.get_future().get());
}

TEST_F(paired_channel, what_one_way_cannot_take_is_offered_in_neither) {
  auto far = std::shared_ptr<tcp_server>(tcp_server::start({.token = token, .offers_max = 1}).value());
  const auto near = open_offers({.token = token}).value();
  paired_offers both(near, "a", far);
  const auto first = both.offer(parameters.shared()).value();
  EXPECT_EQ(both.offer(parameters.shared()).error().code, error_code::limit_exceeded);
  both.withdraw(first);
  EXPECT_TRUE(both.offer(parameters.shared()));
}

TEST(open_channel, a_process_without_other_hosts_has_an_address_of_one_way) {
  const auto token = run_token::random().value();
  EXPECT_FALSE(parse_paired_address(open_offers({.token = token}).value()->address()));
  EXPECT_FALSE(open_fetches({.near = channel_kind::tcp, .token = token}).value()->is_shared("tcp://"));
}

} // namespace
} // namespace dlrun::transport
