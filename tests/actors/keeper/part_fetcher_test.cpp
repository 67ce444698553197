// How the bytes of a part come, and how much of them may.
#include "actors/keeper/part_fetcher.hpp"

#include <cstring>
#include <deque>
#include <gmock/gmock.h>

namespace dlrun::keeper {
namespace {

using protocol::copy_part;
using testing::HasSubstr;

constexpr auto segment_bytes = protocol::copy_part_bytes_max;

/// A channel that the test answers for.
class played_channel : public transport::segment_fetches {
public:
  explicit played_channel(std::deque<callback>& asked)
      : asked_(asked) {}

  bool is_shared(std::string_view address) const override { return address == "shared"; }
  result<void> fetch(std::string, transport::segment_id, std::size_t, const transport::segment_part&,
                     std::chrono::steady_clock::time_point, callback done) override {
    asked_.push_back(std::move(done));
    return {};
  }

private:
  std::deque<callback>& asked_;
};

copy_part part_at(const std::string& address, std::uint64_t segment = 1, std::uint64_t bytes = 5) {
  return {.bytes = bytes, .where = {address, segment, segment_bytes}};
}

class part_fetcher_test : public testing::Test {
protected:
  static std::string text_of(const part_bytes& bytes) {
    const auto come = bytes();
    if (!come) return come.error().message;
    return {reinterpret_cast<const char*>(come->data()), come->size()};
  }
  /// The oldest question is answered with that memory.
  void answer(std::span<const std::byte> memory) {
    asked.front()(transport::segment::of_copy(memory, std::make_shared<int>()));
    asked.pop_front();
  }

  std::deque<transport::segment_fetches::callback> asked;
  part_fetcher fetcher{std::make_unique<played_channel>(asked)};
};

TEST_F(part_fetcher_test, a_part_is_asked_for_at_once_and_is_waited_for_by_who_wants_it) {
  const auto bytes = fetcher.fetch(part_at("far"));
  ASSERT_EQ(asked.size(), 1U);
  answer(std::as_bytes(std::span("hello, all")));
  EXPECT_EQ(text_of(bytes), "hello");
}

TEST_F(part_fetcher_test, whoever_waits_hears_why_nothing_comes) {
  const auto bytes = fetcher.fetch(part_at("far"));
  asked.front()(fail(error_code::role_lost, "withdrawn"));
  EXPECT_EQ(text_of(bytes), "withdrawn");
}

TEST_F(part_fetcher_test, a_part_without_bytes_is_not_asked_for) {
  EXPECT_EQ(text_of(fetcher.fetch({})), "");
  EXPECT_TRUE(asked.empty());
}

TEST_F(part_fetcher_test, what_says_too_much_is_not_asked_for) {
  auto part = part_at("far");
  part.where.bytes = segment_bytes + 1;
  EXPECT_THAT(text_of(fetcher.fetch(part)), HasSubstr("are no part"));
  EXPECT_THAT(text_of(fetcher.fetch(part_at("far", 1, segment_bytes + 1))), HasSubstr("are no part"));
  EXPECT_TRUE(asked.empty());
}

/// On the way or not written yet: both take memory.
TEST_F(part_fetcher_test, no_more_are_there_at_a_time_than_have_room) {
  std::vector<part_bytes> held;
  for (std::size_t i = 0; i < part_fetcher::parts_max; ++i) held.push_back(fetcher.fetch(part_at("far")));
  EXPECT_THAT(text_of(fetcher.fetch(part_at("far"))), HasSubstr("too many"));
  answer(std::as_bytes(std::span("hello")));
  EXPECT_THAT(text_of(fetcher.fetch(part_at("far"))), HasSubstr("too many")) << "it is not written yet";
  held.erase(held.begin());
  held.push_back(fetcher.fetch(part_at("far")));
  held.clear();
  EXPECT_THAT(text_of(fetcher.fetch(part_at("far"))), HasSubstr("too many")) << "they are on the way still";
  asked.clear();
  fetcher.fetch(part_at("far"));
  EXPECT_EQ(asked.size(), 1U);
}

/// Where the memory is the PS shard's, what was compared with a checksum must not change any more.
TEST_F(part_fetcher_test, what_is_given_is_no_memory_of_somebody_else) {
  std::string memory = "hello";
  const auto bytes = fetcher.fetch(part_at("shared"));
  answer(std::as_bytes(std::span(memory)));
  const auto come = bytes().value();
  memory = "other";
  EXPECT_EQ(std::memcmp(come.data(), "hello", 5), 0);
}

TEST(part_fetcher, parts_come_over_tcp_and_its_end_tells_who_waits) {
  const auto token = transport::run_token::random().value();
  const transport::channel_options options{transport::channel_kind::tcp, token};
  const auto offers = transport::open_offers(options).value();
  auto memory = transport::segment::create("test", segment_bytes).value();
  std::memcpy(memory.mutable_bytes().data(), "hello", 5);
  const auto id = offers->offer(memory).value();
  std::optional<part_fetcher> fetcher{transport::open_fetches(options).value()};
  const auto come = fetcher->fetch(part_at(offers->address(), id.value))().value();
  EXPECT_EQ(std::memcmp(come.data(), "hello", 5), 0);
  const auto none = fetcher->fetch(part_at(offers->address(), id.value + 1))();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, error_code::role_lost);
  const auto never = fetcher->fetch(part_at(offers->address(), id.value));
  fetcher.reset();
  never(); // it ends, either way
}

} // namespace
} // namespace dlrun::keeper
