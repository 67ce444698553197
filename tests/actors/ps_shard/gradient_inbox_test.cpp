#include "actors/ps_shard/gradient_inbox.hpp"

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
    inbox.take(said);
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

} // namespace
} // namespace dlrun::ps_shard
