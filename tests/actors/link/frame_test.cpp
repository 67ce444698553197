#include "actors/link/frame.hpp"

#include <gmock/gmock.h>
#include <random>
#include <string>

namespace dlrun::link {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct taken_frame {
  frame_kind kind;
  std::uint64_t actor;
  std::string payload;
  bool operator==(const taken_frame&) const = default;
};

std::vector<char> frame_of(frame_kind kind, std::uint64_t actor, const std::string& payload) {
  std::vector<char> bytes;
  EXPECT_TRUE(append_frame(bytes, {.kind = kind, .actor = actor}, payload));
  return bytes;
}

class frame_test : public testing::Test {
protected:
  result<void> add(std::span<const char> bytes) {
    return reader_.add(bytes, [this](const frame& what) -> result<void> {
      taken_.push_back(
          {what.header.kind, what.header.actor, std::string{what.payload.begin(), what.payload.end()}});
      return {};
    });
  }

  frame_reader reader_;
  std::vector<taken_frame> taken_;
};

TEST_F(frame_test, frames_come_out_as_they_went_in_wherever_the_bytes_are_cut) {
  auto bytes = frame_of(frame_kind::message, 7, "some words");
  const auto second = frame_of(frame_kind::answer, 0, "");
  bytes.insert(bytes.end(), second.begin(), second.end());
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    taken_.clear();
    ASSERT_TRUE(add(std::span{bytes}.first(cut)));
    ASSERT_TRUE(add(std::span{bytes}.subspan(cut)));
    ASSERT_THAT(taken_, ElementsAre(taken_frame{frame_kind::message, 7, "some words"},
                                    taken_frame{frame_kind::answer, 0, ""}))
        << cut;
  }
}

TEST_F(frame_test, a_message_that_is_too_long_is_not_written) {
  std::vector<char> out{'x'};
  const std::string longest(frame_bytes_max - sizeof(frame_header), 'a');
  EXPECT_TRUE(append_frame(out, {}, longest));
  out.resize(1);
  const auto refused = append_frame(out, {}, longest + "a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, error_code::limit_exceeded);
  EXPECT_EQ(out.size(), 1U);
}

TEST_F(frame_test, a_length_that_is_not_allowed_is_refused_before_the_frame_has_come) {
  for (const std::uint32_t bytes : {0U, 23U, 65537U, 0xffff'ffffU}) {
    frame_reader reader;
    const frame_header header{.bytes = bytes};
    const auto read = reader.add({reinterpret_cast<const char*>(&header), sizeof header},
                                 [](const frame&) -> result<void> { return {}; });
    ASSERT_FALSE(read) << bytes;
    EXPECT_EQ(read.error().code, error_code::protocol);
  }
}

TEST_F(frame_test, an_unknown_kind_is_refused) {
  for (const int kind : {0, 6, 255}) {
    frame_reader reader;
    const frame_header header{.bytes = sizeof(frame_header), .kind = static_cast<frame_kind>(kind)};
    EXPECT_FALSE(reader.add({reinterpret_cast<const char*>(&header), sizeof header},
                            [](const frame&) -> result<void> { return {}; }))
        << kind;
  }
}

TEST_F(frame_test, nothing_is_taken_after_a_frame_that_was_refused) {
  auto bytes = frame_of(frame_kind::message, 1, "a");
  const auto second = frame_of(frame_kind::message, 2, "b");
  bytes.insert(bytes.end(), second.begin(), second.end());
  int seen = 0;
  const auto read = reader_.add(bytes, [&](const frame&) -> result<void> {
    ++seen;
    return fail(error_code::protocol, "no");
  });
  EXPECT_FALSE(read);
  EXPECT_EQ(seen, 1);
}

TEST_F(frame_test, garbage_is_refused_or_waited_for_and_nothing_else) {
  std::mt19937_64 random{17};
  for (int round = 0; round < 2000; ++round) {
    frame_reader reader;
    std::vector<char> bytes(random() % 200);
    for (auto& byte : bytes) byte = static_cast<char>(random());
    std::size_t payload = 0;
    static_cast<void>(reader.add(bytes, [&](const frame& what) -> result<void> {
      payload += what.payload.size();
      return {};
    }));
    ASSERT_LE(payload, bytes.size());
  }
}

} // namespace
} // namespace dlrun::link
