#include "kernels/cuda/bf16.hpp"
#include "kernels/cuda/stand_in/library_steps.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace dlrun::kernels::cuda {
namespace {

/// A device, and single floats on it.
struct small_device {
  explicit small_device(const stand_in_settings& settings = {})
      : there(settings) {}

  float* room() { return static_cast<float*>(there.allocate(sizeof(float)).value()); }
  float get(const float* from) {
    float value = 0;
    there.download(lane::compute, from, &value, sizeof(value));
    EXPECT_TRUE(there.finish(lane::compute));
    return value;
  }

  stand_in_device there;
};

TEST(stand_in_device, says_that_it_is_no_gpu) {
  const stand_in_device there({.memory_bytes = 1000});
  EXPECT_EQ(there.properties().name, "stand-in (no GPU)");
  EXPECT_EQ(there.properties().compute_capability, 90);
  EXPECT_EQ(there.properties().memory_bytes, 1000U);
}

// ---- memory

TEST(stand_in_device, memory_is_counted_aligned_and_not_a_number) {
  stand_in_device there({.memory_bytes = 1000});
  void* const one = there.allocate(600).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one) % 256, 0U);
  EXPECT_TRUE(std::isnan(*static_cast<const float*>(one)));
  EXPECT_EQ(there.free_bytes(), 400U);
  const auto more = there.allocate(401);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, error_code::limit_exceeded);
  there.release(one);
  EXPECT_EQ(there.free_bytes(), 1000U);
}

TEST(stand_in_device, no_bytes_are_memory_too) {
  stand_in_device there({});
  void *const one = there.allocate(0).value(), *const other = there.allocate(0).value();
  EXPECT_NE(one, nullptr);
  EXPECT_NE(one, other);
}

TEST(stand_in_device, memory_of_the_host_is_none_of_the_devices) {
  stand_in_device there({.memory_bytes = 10});
  void* const one = there.allocate_host(100).value();
  EXPECT_EQ(there.free_bytes(), 10U);
  there.release_host(one);
  EXPECT_DEATH(there.release_host(one), "only what was allocated");
}

TEST(stand_in_device, what_is_released_twice_or_was_never_allocated_ends_the_process) {
  stand_in_device there({});
  int mine = 0;
  EXPECT_DEATH(there.release(&mine), "only what was allocated");
}

// ---- lanes

TEST(stand_in_device, nothing_happens_before_somebody_waits) {
  small_device device;
  float* const to = device.room();
  float from = 1, got = 0;
  device.there.upload(lane::compute, &from, to, sizeof(from));
  device.there.run(lane::compute, add{to, to, to, 1});
  device.there.download(lane::compute, to, &got, sizeof(got));
  from = 5; // an upload reads as late as it may
  EXPECT_EQ(got, 0);
  EXPECT_TRUE(device.there.finish(lane::compute));
  EXPECT_EQ(got, 10);
}

/// Writes 1 in one lane and 2 in the other, from which the last is read; with an event, if asked,
/// that puts the second behind the first.
float last_of_two_lanes(std::uint64_t seed, bool with_event) {
  small_device device({.seed = seed});
  float* const to = device.room();
  const auto first_done = device.there.make_event().value();
  device.there.run(lane::side, fill{to, 1, 1.0F});
  device.there.record(lane::side, *first_done);
  if (with_event) device.there.wait(lane::compute, *first_done);
  device.there.run(lane::compute, fill{to, 1, 2.0F});
  EXPECT_TRUE(device.there.finish(lane::compute));
  EXPECT_TRUE(device.there.finish(lane::side));
  return device.get(to);
}

TEST(stand_in_device, lanes_overtake_each_other_where_no_event_keeps_them) {
  std::set<float> without, with;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    without.insert(last_of_two_lanes(seed, false));
    with.insert(last_of_two_lanes(seed, true));
  }
  EXPECT_EQ(without, (std::set<float>{1, 2}));
  EXPECT_EQ(with, std::set<float>{2});
}

TEST(stand_in_device, a_seed_repeats_the_order) {
  for (std::uint64_t seed = 0; seed < 5; ++seed)
    EXPECT_EQ(last_of_two_lanes(seed, false), last_of_two_lanes(seed, false));
}

TEST(stand_in_device, a_wait_is_for_what_the_event_was_then) {
  small_device device;
  float* const to = device.room();
  const auto at = device.there.make_event().value();
  device.there.wait(lane::compute, *at); // never recorded: nothing to wait for
  device.there.run(lane::compute, fill{to, 1, 1.0F});
  device.there.record(lane::compute, *at);
  device.there.wait(lane::side, *at);
  device.there.wait(lane::compute, *at);
  device.there.record(lane::side, *at); // that of the compute lane counts for who waits already
  EXPECT_TRUE(device.there.finish(lane::compute));
  EXPECT_TRUE(device.there.finish(*at));
}

TEST(stand_in_device, finishing_an_event_leaves_what_comes_behind_it) {
  small_device device;
  float* const to = device.room();
  float got = 0;
  const auto at = device.there.make_event().value();
  device.there.run(lane::compute, fill{to, 1, 1.0F});
  device.there.download(lane::compute, to, &got, sizeof(got));
  device.there.record(lane::compute, *at);
  device.there.run(lane::compute, fill{to, 1, 2.0F});
  device.there.download(lane::compute, to, &got, sizeof(got));
  EXPECT_TRUE(device.there.finish(*at));
  EXPECT_EQ(got, 1);
  EXPECT_TRUE(device.there.finish(lane::compute));
  EXPECT_EQ(got, 2);
}

// ---- faults

TEST(stand_in_device, an_allocation_finds_no_memory_where_that_is_asked_for) {
  stand_in_device there({.faults = {.no_memory_at = 2}});
  EXPECT_TRUE(there.allocate(4));
  const auto second = there.allocate_host(4);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, error_code::limit_exceeded);
  EXPECT_TRUE(there.allocate(4));
}

TEST(stand_in_device, a_device_that_failed_once_does_nothing_any_more) {
  small_device device({.faults = {.fails_at_step = 2}});
  float* const to = device.room();
  float got = 0;
  device.there.run(lane::compute, fill{to, 1, 1.0F});
  EXPECT_TRUE(device.there.finish(lane::compute));
  device.there.run(lane::compute, fill{to, 1, 2.0F});
  for (int i = 0; i < 2; ++i) {
    const auto done = device.there.finish(lane::compute);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, error_code::system);
    device.there.download(lane::compute, to, &got, sizeof(got));
  }
  EXPECT_FALSE(device.there.finish(lane::side));
  EXPECT_EQ(got, 0);
}

TEST(stand_in_device, a_device_that_hangs_is_told_from_one_that_works) {
  small_device device({.faults = {.hangs_at_step = 1}});
  float* const to = device.room();
  device.there.run(lane::side, fill{to, 1, 1.0F});
  EXPECT_TRUE(device.there.finish(lane::compute)); // the other lane goes on
  const auto done = device.there.finish(lane::side);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, error_code::system);
  EXPECT_THAT(done.error().message, testing::HasSubstr("no answer for 10 s"));
  EXPECT_FALSE(device.there.finish(lane::compute));
}

// ---- a flipped bit

using words = std::vector<std::uint32_t>;

/// What two vectors of zeros are after three steps: the first writes into none, the others ones
/// into each.
std::array<words, 2> after_flip(const stand_in_faults& faults, std::uint64_t seed = 1) {
  constexpr std::int64_t count = 100;
  stand_in_device there({.seed = seed, .faults = faults});
  const auto room = [&] { return static_cast<float*>(there.allocate(count * sizeof(float)).value()); };
  float *const first = room(), *const second = room();
  const std::vector<float> zeros(count, 0.0F);
  for (float* const one : {first, second})
    there.upload(lane::compute, zeros.data(), one, zeros.size() * sizeof(float));
  there.run(lane::compute, fill{first, count, 0.0F});
  there.run(lane::compute, fill{first, count, 1.0F});
  there.run(lane::compute, fill{second, count, 1.0F});
  std::array<words, 2> got{words(count), words(count)};
  there.download(lane::compute, first, got[0].data(), got[0].size() * sizeof(float));
  there.download(lane::side, second, got[1].data(), got[1].size() * sizeof(float));
  EXPECT_TRUE(there.finish(lane::compute));
  there.download(lane::side, second, got[1].data(), got[1].size() * sizeof(float));
  EXPECT_TRUE(there.finish(lane::side));
  return got;
}

/// The bits of ones that are others.
std::vector<std::uint32_t> flips_in(const words& got) {
  std::vector<std::uint32_t> flips;
  for (const auto word : got)
    if (const auto flip = word ^ std::bit_cast<std::uint32_t>(1.0F); flip != 0) flips.push_back(flip);
  return flips;
}

TEST(stand_in_device, flips_one_bit_of_what_the_step_wrote_or_the_first_that_writes) {
  for (const std::uint64_t seed : {0U, 5U, 31U, 62U}) {
    const auto bit = std::vector<std::uint32_t>{1U << seed % 32};
    for (const int step : {1, 2, 3}) {
      const auto [first, second] = after_flip({.flips_bit_at_step = step, .flip_seed = seed});
      EXPECT_EQ(flips_in(first), step < 3 ? bit : words{}) << seed << " at " << step;
      EXPECT_EQ(flips_in(second), step < 3 ? words{} : bit) << seed << " at " << step;
    }
    EXPECT_EQ(flips_in(after_flip({.flips_bit_at_step = 4, .flip_seed = seed})[0]), words{});
  }
}

TEST(stand_in_device, flips_where_the_seed_says_wherever_its_memory_lies) {
  std::set<words> all;
  for (std::uint64_t seed = 0; seed < 32 * 20; seed += 32) {
    const stand_in_faults faults{.flips_bit_at_step = 2, .flip_seed = seed};
    const std::vector<char> elsewhere(4096 * (seed + 1)); // what is allocated next lies behind it
    const auto flipped = after_flip(faults)[0];
    EXPECT_EQ(after_flip(faults, 2)[0], flipped);
    all.insert(flipped);
  }
  EXPECT_GT(all.size(), 10U);
}

// ---- precision

TEST(stand_in_device, rounds_to_tf32_as_to_the_nearest_of_10_bits_and_to_even) {
  const float unit = std::ldexp(1.0F, -10); // of the last bit that is left of 1
  EXPECT_EQ(rounded_to_tf32(1 + unit), 1 + unit);
  EXPECT_EQ(rounded_to_tf32(1 + 0.49F * unit), 1);
  EXPECT_EQ(rounded_to_tf32(1 + 0.51F * unit), 1 + unit);
  EXPECT_EQ(rounded_to_tf32(1 + 0.5F * unit), 1);
  EXPECT_EQ(rounded_to_tf32(-(1 + 1.5F * unit)), -(1 + 2 * unit));
  EXPECT_EQ(rounded_to_tf32(2 - std::ldexp(1.0F, -20)), 2) << "into the next exponent";
  for (const float same : {0.0F, -0.0F, INFINITY, -INFINITY, 3.0F})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded_to_tf32(same)), std::bit_cast<std::uint32_t>(same));
  EXPECT_TRUE(std::isnan(rounded_to_tf32(NAN)));
}

TEST(stand_in_device, multiplies_factors_that_are_rounded_to_its_precision) {
  const float third = 1.0F / 3, seventh = 1.0F / 7;
  for (const auto arithmetic : {precision::fp32, precision::tf32}) {
    small_device device({.arithmetic = arithmetic});
    EXPECT_EQ(device.there.arithmetic(), arithmetic);
    float *const a = device.room(), *const b = device.room(), *const c = device.room();
    device.there.upload(lane::compute, &third, a, sizeof(third));
    device.there.upload(lane::compute, &seventh, b, sizeof(seventh));
    device.there.run(lane::compute, product{1, 1, 1, false, false, a, b, nullptr, c});
    const float wanted =
        arithmetic == precision::fp32 ? third * seventh : rounded_to_tf32(third) * rounded_to_tf32(seventh);
    EXPECT_EQ(device.get(c), wanted);
    const convolution one{convolution::pass::forward, {1, 1, 1, 1, 1, 1, 1, 1, 0}, 1, a, b, c};
    device.there.run(lane::compute, one);
    EXPECT_EQ(device.get(c), wanted);
  }
}

TEST(stand_in_device, of_bf16_rounds_a_product_then_adds_the_row_and_rounds_again) {
  small_device device({.arithmetic = precision::bf16});
  const std::vector<bf16> a{rounded_to_bf16(1.5703125F), rounded_to_bf16(-2.0F)},
      b{rounded_to_bf16(1.0F / 3), rounded_to_bf16(1.0F / 7)};
  const float sum = 1.5703125F * widened(b[0]) - 2.0F * widened(b[1]), row = 1.0F / 9;
  auto *const left = device.room(), *const right = device.room(), *const bias = device.room(),
              *const c = device.room();
  const auto upload = [&](const void* from, void* to) { device.there.upload(lane::compute, from, to, 4); };
  upload(a.data(), left);
  upload(b.data(), right);
  upload(&row, bias);
  const auto computed = [&](const step& what) {
    device.there.run(lane::compute, what);
    return widened(bf16{static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(device.get(c)))});
  };
  const float rounded = widened(rounded_to_bf16(sum));
  ASSERT_NE(rounded, sum);
  EXPECT_EQ(computed(product{1, 1, 2, false, false, left, right, nullptr, c}), rounded);
  EXPECT_EQ(computed(product{1, 1, 2, false, false, left, right, bias, c}),
            widened(rounded_to_bf16(rounded + row)));
  const float whole = rounded + row;
  const float against = -2 * whole;
  upload(&against, bias);
  EXPECT_EQ(computed(product{1, 1, 2, false, false, left, right, bias, c, false, true}), 0) << "relu";
  const convolution one{convolution::pass::forward, {2, 1, 1, 1, 1, 1, 1, 1, 0}, 1, left, right, c};
  EXPECT_EQ(computed(one), rounded);
  device.there.run(lane::compute, product{1, 1, 2, false, false, left, right, nullptr, c, true});
  EXPECT_EQ(device.get(c), sum) << "a gradient of weights is floats";
}

// ---- module

TEST(stand_in_module, opens_the_devices_that_it_lists) {
  stand_in_module module({.devices = 2});
  EXPECT_EQ(module.devices()->size(), 2U);
  for (const auto arithmetic : {precision::fp32, precision::tf32, precision::bf16}) {
    const auto opened = module.open(1, arithmetic);
    ASSERT_TRUE(opened);
    EXPECT_EQ((*opened)->arithmetic(), arithmetic);
  }
  for (const int number : {-1, 2}) {
    const auto none = module.open(number, precision::fp32);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, error_code::bad_usage);
  }
}

} // namespace
} // namespace dlrun::kernels::cuda
