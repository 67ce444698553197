#include "actors/ps_shard/copy_on_write_image.hpp"

#include <future>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

namespace dlrun::ps_shard {
namespace {

/// A state of `blocks` blocks whose floats all differ, and what an image of it must read.
struct copy_on_write_image_test : ::testing::Test {
  static constexpr std::size_t blocks = 16;
  static constexpr std::size_t block_floats = 100;
  std::vector<float> parameters = std::vector<float>(blocks * block_floats);
  std::vector<float> optimizer = std::vector<float>(blocks * block_floats);
  std::vector<float> expected;

  void SetUp() override {
    std::iota(parameters.begin(), parameters.end(), 0.0F);
    std::iota(optimizer.begin(), optimizer.end(), 1e6F);
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto at = static_cast<std::ptrdiff_t>(i * block_floats);
      expected.insert(expected.end(), parameters.begin() + at, parameters.begin() + at + block_floats);
      expected.insert(expected.end(), optimizer.begin() + at, optimizer.begin() + at + block_floats);
    }
  }
  std::vector<block_memory> memory() const {
    std::vector<block_memory> all;
    for (std::size_t i = 0; i < blocks; ++i)
      all.push_back({std::span{parameters}.subspan(i * block_floats, block_floats),
                     std::span{optimizer}.subspan(i * block_floats, block_floats)});
    return all;
  }
  void change(copy_on_write_image& image, std::size_t block) {
    image.preserve(block);
    for (std::size_t i = block * block_floats; i < (block + 1) * block_floats; ++i)
      parameters[i] = optimizer[i] = -1;
  }
  static std::vector<float> read_rest(copy_on_write_image& image) {
    std::vector<float> all;
    for (auto part = image.next(); !part.empty(); part = image.next())
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }
};

TEST_F(copy_on_write_image_test, reads_the_state_block_by_block) {
  copy_on_write_image image{memory(), 1};
  EXPECT_EQ(image.floats(), expected.size());
  EXPECT_EQ(read_rest(image), expected);
}

TEST_F(copy_on_write_image_test, keeps_what_is_changed_before_it_was_read) {
  copy_on_write_image image{memory(), blocks};
  for (std::size_t i = 0; i < blocks; i += 2) change(image, i);
  EXPECT_EQ(read_rest(image), expected);
}

TEST_F(copy_on_write_image_test, copies_a_block_once_however_often_it_changes) {
  copy_on_write_image image{memory(), 1};
  for (int i = 0; i < 5; ++i) change(image, 3);
  EXPECT_EQ(read_rest(image), expected);
}

TEST_F(copy_on_write_image_test, a_full_pool_makes_changes_wait_for_the_reader) {
  copy_on_write_image image{memory(), 2};
  auto changes = std::async(std::launch::async, [&] {
    for (std::size_t i = 0; i < blocks; ++i) change(image, i);
  });
  EXPECT_EQ(read_rest(image), expected);
  changes.get();
}

TEST_F(copy_on_write_image_test, changes_go_on_when_nobody_reads_any_more) {
  copy_on_write_image image{memory(), 1};
  change(image, 0);
  auto changes = std::async(std::launch::async, [&] {
    for (std::size_t i = 1; i < blocks; ++i) change(image, i);
  });
  image.abandon();
  changes.get();
  EXPECT_EQ(parameters.back(), -1);
}

TEST_F(copy_on_write_image_test, is_whole_while_the_state_changes_again_and_again) {
  for (int round = 0; round < 50; ++round) {
    const auto before = parameters;
    std::vector<float> whole;
    for (std::size_t i = 0; i < blocks; ++i)
      for (const auto* part : {&parameters, &optimizer})
        whole.insert(whole.end(), part->begin() + static_cast<std::ptrdiff_t>(i * block_floats),
                     part->begin() + static_cast<std::ptrdiff_t>((i + 1) * block_floats));
    copy_on_write_image image{memory(), 3};
    std::thread changes{[&] {
      for (std::size_t i = 0; i < blocks; ++i) {
        image.preserve(i);
        for (std::size_t k = i * block_floats; k < (i + 1) * block_floats; ++k) {
          parameters[k] += 1;
          optimizer[k] += 2;
        }
      }
    }};
    EXPECT_EQ(read_rest(image), whole) << "round " << round;
    changes.join();
  }
}

} // namespace
} // namespace dlrun::ps_shard
