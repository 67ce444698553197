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
  using slots = std::vector<protocol::slot_range>;
  slots on_the_way(std::uint64_t step, protocol::duration later = {}) {
    return inbox_.on_the_way({}, {step}, begin_ + later);
  }
  void take(const protocol::push& one) { inbox_.take(one, begin_); }

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
       .arrived = [](const auto&, const auto&) {},
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
