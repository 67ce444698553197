#include "data/augmentation.hpp"

#include "tests/data/decoded_job.hpp"

#include <gmock/gmock.h>
#include <set>

namespace dlrun::data {
namespace {

using floats = std::vector<float>;

class augmentation_test : public testing::Test {
protected:
  /// One image of 2 x 3 x 4 whose bytes are all different and none 0.
  augmentation_test() {
    auto values = test::counting(25);
    values.erase(values.begin());
    job.write("images", test::idx_bytes({1, 2, 3, 4}, values));
    job.write("labels", test::idx_bytes({1}, {0}));
    data = *job.open("{train: {records: images, labels: labels, normalize: {mean: [0.5, 0.25], std: 1}}}");
    image = test::read_all(*data).records;
  }
  /// `copies` of the image, changed.
  floats changed(const spec::AugmentSpec& spec, std::uint64_t copies, std::uint64_t seed = 1,
                 std::uint64_t step = 0, std::uint32_t slot = 0) const {
    floats all;
    for (std::uint64_t i = 0; i < copies; ++i) all.insert(all.end(), image.begin(), image.end());
    const auto change = augmentation::build(spec, *data);
    EXPECT_TRUE(change && *change);
    (*change)->apply(seed, step_id{step}, slot_id{slot}, copies, all);
    return all;
  }
  float original(int channel, int y, int x) const {
    if (y < 0 || y >= 3 || x < 0 || x >= 4) return channel == 0 ? -0.5F : -0.25F;
    return image[static_cast<std::size_t>(channel * 12 + y * 4 + x)];
  }
  /// The image cropped and flipped by the definition.
  floats expected(int down, int right, bool flipped) const {
    floats all;
    for (int c = 0; c < 2; ++c)
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 4; ++x) all.push_back(original(c, y + down, (flipped ? 3 - x : x) + right));
    return all;
  }
  static spec::AugmentSpec crop_and_flip() {
    spec::AugmentSpec spec;
    spec.mutable_random_crop()->set_padding(2);
    spec.mutable_horizontal_flip()->set_p(0.5);
    return spec;
  }

  test::decoded_job job;
  std::shared_ptr<const dataset> data;
  floats image;
};

TEST_F(augmentation_test, draws_every_crop_and_flip_about_equally_often_and_nothing_else) {
  constexpr std::uint64_t copies = 5000;
  const auto all = changed(crop_and_flip(), copies);
  std::map<floats, int> counts;
  for (std::uint64_t i = 0; i < copies; ++i)
    ++counts[floats(all.begin() + static_cast<std::ptrdiff_t>(i * 24),
                    all.begin() + static_cast<std::ptrdiff_t>((i + 1) * 24))];
  int found = 0;
  for (int down = -2; down <= 2; ++down)
    for (int right = -2; right <= 2; ++right)
      for (const bool flipped : {false, true}) {
        const int count = counts[expected(down, right, flipped)];
        found += count;
        EXPECT_NEAR(count, 100, 50) << down << " " << right << " " << flipped;
      }
  EXPECT_EQ(found, static_cast<int>(copies));
}

TEST_F(augmentation_test, what_is_drawn_follows_from_seed_step_slot_and_place_alone) {
  const auto spec = crop_and_flip();
  const auto many = changed(spec, 20, 5, 9, 3);
  EXPECT_EQ(many, changed(spec, 20, 5, 9, 3));
  EXPECT_EQ(floats(many.begin(), many.begin() + 240), changed(spec, 10, 5, 9, 3))
      << "not from how many there are";
  EXPECT_NE(many, changed(spec, 20, 6, 9, 3));
  EXPECT_NE(many, changed(spec, 20, 5, 8, 3));
  EXPECT_NE(many, changed(spec, 20, 5, 9, 2));
}

TEST_F(augmentation_test, flips_always_never_and_not_where_it_was_not_asked_for) {
  spec::AugmentSpec spec;
  spec.mutable_horizontal_flip()->set_p(1);
  EXPECT_EQ(changed(spec, 1), expected(0, 0, true));
  spec.mutable_horizontal_flip()->set_p(0);
  EXPECT_EQ(changed(spec, 1), image);
  const auto nothing = augmentation::build({}, *data);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(*nothing);
}

TEST_F(augmentation_test, records_that_are_no_images_are_refused) {
  job.write("images", test::idx_bytes({1, 24}, test::counting(24)));
  const auto rows = job.open("{train: {records: images, labels: labels}}");
  ASSERT_TRUE(rows) << rows.error().message;
  const auto change = augmentation::build(crop_and_flip(), **rows);
  ASSERT_FALSE(change);
  EXPECT_EQ(change.error().code, error_code::bad_spec);
  EXPECT_THAT(change.error().message, testing::HasSubstr("data.train.augment"));
}

} // namespace
} // namespace dlrun::data
