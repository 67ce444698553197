#include "actors/ps_shard/gradient_inbox.hpp"

#include "actors/common/clock.hpp"
#include "tests/actors/worker/played_channel.hpp"
#include "tests/transport/second_mapping.hpp"

#include <gtest/gtest.h>
#include <spdlog/sinks/null_sink.h>

namespace dlrun::ps_shard {
namespace {

constexpr std::size_t floats = 8;

/// Shared memory of one worker, which is there at once.
class lent_buffers : public transport::segment_fetches {
public:
  explicit lent_buffers(const std::vector<transport::gradient_writer>& all)
      : all_(all) {}
  bool is_shared(std::string_view) const override { return true; }
  result<void> fetch(std::string, transport::segment_id id, std::size_t, const transport::segment_part&,
                     std::chrono::steady_clock::time_point, callback done) override {
    done(transport::other_side(all_.at(id.value).shared()));
    return {};
  }

private:
  const std::vector<transport::gradient_writer>& all_;
};

class gradient_inbox_test : public testing::Test {
protected:
  gradient_inbox_test() {
    while (buffers_.size() < 34) buffers_.push_back(transport::gradient_writer::create(floats).value());
  }
  /// The worker seals the buffer for another step and says so.
  void push(std::size_t buffer) {
    auto& writer = buffers_.at(buffer);
    writer.begin_write();
    const auto header = writer.seal_as({.timeline = {},
                                        .worker = {1},
                                        .worker_incarnation = {1},
                                        .step = {step_},
                                        .slots_begin = {0},
                                        .slots_end = {1},
                                        .records = 1,
                                        .flat_size = floats});
    protocol::push said;
    said.worker = {1};
    said.self = {{1}, 0};
    said.step = {step_++};
    said.slots = protocol::make_slot_range(0, 1);
    said.records = 1;
    said.tensor_sequence = header.sequence;
    said.where = {"here", buffer, transport::gradient_segment_bytes(floats)};
    inbox.take(said, {});
  }

private:
  std::vector<transport::gradient_writer> buffers_;
  std::uint64_t step_ = 0;

protected:
  std::size_t arrived = 0;
  gradient_inbox inbox{
      {.offset = 0, .size = floats},
      floats,
      std::make_unique<lent_buffers>(buffers_),
      [](const auto& task) { task(); },
      std::make_shared<spdlog::logger>("inbox", std::make_shared<spdlog::sinks::null_sink_mt>()),
      {.wants = [](const auto&) { return true; },
       .arrived = [this](const auto&, const auto&) { ++arrived; },
       .unusable = [](const auto&) {}}};
};

TEST_F(gradient_inbox_test, a_buffer_that_its_worker_names_no_more_is_not_mapped_for_ever) {
  for (std::size_t buffer = 0; buffer < 32; ++buffer) push(buffer);
  EXPECT_EQ(inbox.segments(), 32U);
  for (int i = 0; i < 300; ++i) push(32 + i % 2);
  EXPECT_EQ(inbox.segments(), 2U);
  push(7);
  EXPECT_EQ(arrived, 333U) << "it is mapped again when it is named again";
}

TEST_F(gradient_inbox_test, buffers_that_are_named_in_turn_stay_mapped) {
  for (int i = 0; i < 2000; ++i) push(i % 34);
  EXPECT_EQ(inbox.segments(), 34U);
}

/// Gradients of another host, whose copies a test lets come or not.
class far_gradients_test : public testing::Test {
protected:
  far_gradients_test() { channel_->shared = false; }

  static protocol::push push(std::uint32_t worker, std::uint64_t step, std::uint32_t begin,
                             std::uint32_t end) {
    protocol::push said;
    said.worker = {worker};
    said.self = {{1}, 0};
    said.step = {step};
    said.slots = protocol::make_slot_range(begin, end);
    said.tensor_sequence = 1;
    said.where = {"there", 10 * worker + step, transport::gradient_segment_bytes(floats)};
    return said;
  }
  void answer(result<transport::segment> copy) {
    auto asked = std::move(channel_->fetches.front());
    channel_->fetches.pop_front();
    asked.done(std::move(copy));
  }
  /// The worker's buffer is sealed for that push; of what it computes it has written nothing yet.
  static transport::gradient_writer seal(const protocol::push& for_push) {
    auto writer = transport::gradient_writer::create(floats).value();
    transport::gradient_header sealed{};
    while (sealed.sequence < for_push.tensor_sequence) {
      writer.begin_write();
      sealed = writer.seal_as({.timeline = {},
                               .worker = for_push.worker,
                               .worker_incarnation = for_push.self.incarnation,
                               .step = for_push.step,
                               .slots_begin = for_push.slots.begin,
                               .slots_end = for_push.slots.end,
                               .flat_size = floats});
    }
    return writer;
  }
  using slots = std::vector<protocol::slot_range>;
  slots on_the_way(std::uint64_t step, protocol::duration later = {}) {
    return inbox_.on_the_way({}, {step}, begin_ + later);
  }
  void take(const protocol::push& one) { inbox_.take(one, begin_); }
  bool is_asked() const { return !channel_->fetches.empty(); }
  std::vector<std::uint64_t> arrived; ///< steps

private:
  std::unique_ptr<test::played_channel> made_ = std::make_unique<test::played_channel>();
  test::played_channel* channel_ = made_.get(); // the inbox's from then on
  protocol::time_point begin_ = common::now();
  gradient_inbox inbox_{
      {.offset = 0, .size = floats},
      floats,
      std::move(made_),
      [](const auto& task) { task(); },
      std::make_shared<spdlog::logger>("inbox", std::make_shared<spdlog::sinks::null_sink_mt>()),
      {.wants = [](const auto&) { return true; },
       .arrived = [this](const auto& push, const auto&) { arrived.push_back(push.step.value); },
       .unusable = [](const auto&) {}}};
};

TEST_F(far_gradients_test, what_was_pushed_is_on_its_way_until_its_copy_is_there_or_cannot_be_had) {
  take(push(1, 7, 0, 2));
  take(push(2, 7, 2, 3));
  take(push(2, 8, 2, 3));
  EXPECT_EQ(on_the_way(7), (slots{protocol::make_slot_range(0, 2), protocol::make_slot_range(2, 3)}));
  auto copy = transport::gradient_writer::create(floats).value();
  answer(transport::other_side(copy.shared()));
  EXPECT_EQ(on_the_way(7), slots{protocol::make_slot_range(2, 3)});
  answer(fail(error_code::system, "the link is cut"));
  EXPECT_EQ(on_the_way(7), slots{});
  EXPECT_EQ(on_the_way(8), slots{protocol::make_slot_range(2, 3)});
}

TEST_F(far_gradients_test, a_copy_that_was_asked_for_before_a_push_is_not_what_that_names) {
  const auto before = push(1, 7, 0, 2);
  take(before);
  auto next = before; // in the same buffer, which was sealed for it before it was written whole
  next.step = {8};
  next.tensor_sequence = 2;
  take(next);
  const auto half_written = seal(next);
  answer(transport::other_side(half_written.shared()));
  EXPECT_EQ(arrived, std::vector<std::uint64_t>{}) << "it is neither of the two";
  answer(transport::other_side(half_written.shared())); // it was asked for when it was whole
  EXPECT_EQ(arrived, std::vector<std::uint64_t>{8});
}

TEST_F(far_gradients_test, a_push_that_is_repeated_waits_for_the_copy_that_was_asked_for) {
  const auto one = push(1, 7, 0, 2);
  take(one);
  take(one);
  const auto whole = seal(one);
  answer(transport::other_side(whole.shared()));
  EXPECT_EQ(arrived, (std::vector<std::uint64_t>{7, 7}));
  EXPECT_FALSE(is_asked());
}

TEST_F(far_gradients_test, what_takes_far_longer_than_others_did_is_not_waited_for) {
  take(push(1, 7, 0, 2));
  take(push(2, 7, 2, 3));
  EXPECT_EQ(on_the_way(7, std::chrono::hours(1)).size(), 2U) << "nothing has come yet";
  auto copy = transport::gradient_writer::create(floats).value();
  answer(transport::other_side(copy.shared()));
  EXPECT_EQ(on_the_way(7, std::chrono::hours(1)), slots{});
}

} // namespace
} // namespace dlrun::ps_shard
