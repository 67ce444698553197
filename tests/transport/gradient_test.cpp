#include "tests/transport/second_mapping.hpp"
#include "transport/gradient_pool.hpp"
#include "transport/gradient_segment.hpp"
#include "transport/segment_client.hpp"

#include <future>
#include <gmock/gmock.h>
#include <optional>

namespace dlrun::transport {
namespace {

gradient_header header_of(std::size_t floats) {
  gradient_header h;
  h.timeline = {3};
  h.worker = {1};
  h.worker_incarnation = {17};
  h.step = {40};
  h.slots_begin = {2};
  h.slots_end = {4};
  h.records = 64;
  h.flat_size = floats;
  return h;
}

TEST(gradient_segment, a_sealed_gradient_is_read_as_it_was_written) {
  auto writer = gradient_writer::create(5).value();
  const auto reader = gradient_reader::open(other_side(writer.shared()), 5).value();
  writer.begin_write()[4] = 1.5F;
  const auto sealed = writer.seal_as(header_of(5));
  const auto values = reader.view(sealed).value();
  EXPECT_EQ(values.size(), 5U);
  EXPECT_EQ(values[4], 1.5F);
  EXPECT_TRUE(reader.unchanged(sealed));
}

TEST(gradient_segment, nothing_is_readable_before_it_is_sealed) {
  auto writer = gradient_writer::create(5).value();
  const auto reader = gradient_reader::open(other_side(writer.shared()), 5).value();
  EXPECT_EQ(reader.view(header_of(5)).error().code, error_code::protocol);
  const auto sealed = writer.seal_as(header_of(5));
  writer.begin_write();
  EXPECT_EQ(reader.view(sealed).error().code, error_code::protocol);
  EXPECT_FALSE(reader.unchanged(sealed));
}

TEST(gradient_segment, a_header_that_differs_in_anything_is_refused) {
  auto writer = gradient_writer::create(5).value();
  const auto reader = gradient_reader::open(other_side(writer.shared()), 5).value();
  const auto sealed = writer.seal_as(header_of(5));
  std::vector<gradient_header> wrong(9, sealed);
  wrong[0].timeline.value++;
  wrong[1].worker.value++;
  wrong[2].worker_incarnation.value++;
  wrong[3].step.value++;
  wrong[4].slots_begin.value++;
  wrong[5].slots_end.value++;
  wrong[6].records++;
  wrong[7].flat_size++;
  wrong[8].sequence++;
  for (std::size_t i = 0; i < wrong.size(); ++i)
    EXPECT_EQ(reader.view(wrong[i]).error().code, error_code::protocol) << i;
  EXPECT_TRUE(reader.view(sealed));
}

TEST(gradient_segment, a_refusal_names_both_sides) {
  auto writer = gradient_writer::create(5).value();
  const auto reader = gradient_reader::open(other_side(writer.shared()), 5).value();
  auto announced = writer.seal_as(header_of(5));
  announced.step = {41};
  const auto message = reader.view(announced).error().message;
  EXPECT_THAT(message, ::testing::HasSubstr("step 41"));
  EXPECT_THAT(message, ::testing::HasSubstr("step 40"));
}

TEST(gradient_segment, a_rewrite_with_the_same_header_is_noticed) {
  auto writer = gradient_writer::create(5).value();
  const auto reader = gradient_reader::open(other_side(writer.shared()), 5).value();
  const auto first = writer.seal_as(header_of(5));
  writer.begin_write();
  const auto second = writer.seal_as(header_of(5));
  EXPECT_FALSE(reader.unchanged(first));
  EXPECT_FALSE(reader.view(first));
  EXPECT_TRUE(reader.view(second));
}

TEST(gradient_segment, a_segment_of_another_shape_is_refused) {
  const auto writer = gradient_writer::create(5).value();
  EXPECT_EQ(gradient_reader::open(other_side(writer.shared()), 6).error().code, error_code::protocol);
  const auto bare = segment::create("zeroes", gradient_segment_bytes(5)).value();
  EXPECT_EQ(gradient_reader::open(other_side(bare), 5).error().code, error_code::protocol);
  EXPECT_EQ(gradient_writer::create(0).error().code, error_code::limit_exceeded);
}

class gradient_pools : public ::testing::Test {
protected:
  std::shared_ptr<segment_server> server = segment_server::start({}).value();
};

TEST_F(gradient_pools, grow_on_demand_up_to_their_bound) {
  gradient_pool pool(16, 2, server);
  EXPECT_EQ(pool.size(), 0U);
  auto a = pool.acquire().value();
  auto b = pool.acquire().value();
  EXPECT_EQ(pool.acquire().error().code, error_code::limit_exceeded);
  EXPECT_NE(a.id(), b.id());
  EXPECT_EQ(pool.lent(), 2U);
}

TEST_F(gradient_pools, reuse_a_buffer_only_after_it_came_back) {
  gradient_pool pool(16, 2, server);
  auto a = pool.acquire().value();
  const auto id = a.id();
  a = pooled_gradient();
  EXPECT_EQ(pool.lent(), 0U);
  EXPECT_EQ(pool.acquire().value().id(), id);
  EXPECT_EQ(pool.size(), 1U);
}

TEST_F(gradient_pools, what_was_not_needed_for_a_while_is_given_back_to_the_system) {
  gradient_pool pool(16, 40, server);
  std::vector<pooled_gradient> many;
  while (many.size() < 32) many.push_back(pool.acquire().value());
  many.clear();
  const auto lend_two = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      auto one = pool.acquire().value();
      auto other = pool.acquire().value();
    }
  };
  lend_two(gradient_pool::loans_remembered / 4);
  EXPECT_EQ(pool.size(), 32U) << "it may be needed again";
  lend_two(gradient_pool::loans_remembered);
  EXPECT_EQ(pool.size(), 2U);
  many.push_back(pool.acquire().value());
  many.push_back(pool.acquire().value());
  EXPECT_TRUE(pool.acquire()) << "it grows again";
}

/// Its deleter reads the memory, which would end the process if it had gone.
TEST_F(gradient_pools, keep_what_was_attached_to_a_buffer_as_long_as_the_buffer_and_no_longer) {
  float last = 0;
  std::optional<gradient_pool> pool(std::in_place, 16, 2, server);
  {
    auto first = pool->acquire().value();
    EXPECT_EQ(first.attached(), nullptr);
    const auto values = first.buffer().begin_write();
    values[15] = 5;
    first.attached() =
        std::shared_ptr<void>(values.data(), [&](void* at) { last = static_cast<float*>(at)[15]; });
    auto second = pool->acquire().value();
    EXPECT_EQ(second.attached(), nullptr);
  }
  for (int i = 0; i < 2; ++i) { // the one that came back last comes first
    auto again = pool->acquire().value();
    EXPECT_NE(again.attached(), nullptr);
    EXPECT_EQ(last, 0);
  }
  {
    auto kept = pool->acquire().value();
    pool.reset();
    EXPECT_EQ(last, 0) << "the loan outlives the pool";
  }
  EXPECT_EQ(last, 5);
}

TEST_F(gradient_pools, may_end_before_their_loans) {
  auto pool = std::make_unique<gradient_pool>(16, 2, server);
  auto lent = pool->acquire().value();
  pool.reset();
  lent.buffer().begin_write()[0] = 1;
  lent = pooled_gradient();
}

TEST_F(gradient_pools, keep_their_server_while_a_loan_lives) {
  auto pool = std::make_unique<gradient_pool>(16, 2, server);
  auto lent = pool->acquire();
  ASSERT_TRUE(lent);
  pool.reset();
  server.reset();
  *lent = pooled_gradient{}; // comes back when everybody else is gone
}

TEST_F(gradient_pools, offer_their_buffers_under_the_id_they_tell) {
  gradient_pool pool(16, 2, server);
  auto lent = pool.acquire().value();
  const auto sealed = lent.buffer().seal_as(header_of(16));
  const auto client = segment_client::start({}).value();
  std::promise<result<segment>> got;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  ASSERT_TRUE(client->fetch(server->address(), lent.id(), gradient_segment_bytes(16), {}, deadline,
                            [&](result<segment> s) { got.set_value(std::move(s)); }));
  const auto reader = gradient_reader::open(got.get_future().get().value(), 16).value();
  EXPECT_TRUE(reader.view(sealed));
}

} // namespace
} // namespace dlrun::transport
