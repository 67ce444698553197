#include "data/image_folder_reader.hpp"

#include "tests/data/decoded_job.hpp"
#include "tests/data/pictures.hpp"

#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

using test::jpeg_bytes;
using test::make_picture;
using test::png_bytes;
using testing::ElementsAre;
using testing::HasSubstr;

class image_folder_test : public testing::Test {
protected:
  image_folder_test() {
    job.write("pets/dog/b.png", png_bytes(make_picture(4, 6, 1)));
    job.write("pets/dog/a.PNG", png_bytes(make_picture(4, 6, 2)));
    job.write("pets/cat/more/x.jpeg", jpeg_bytes(make_picture(4, 6, 3)));
    job.write("pets/.hidden", "not looked at");
  }
  const std::string keys = "{train: {format: image_folder, records: pets}}";
  test::decoded_job job;
};

TEST_F(image_folder_test, classes_are_folders_by_name_and_pictures_go_by_their_paths) {
  const auto data = job.open(keys);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_shape(), (std::vector<std::uint32_t>{3, 4, 6}));
  const auto all = test::read_all(**data);
  EXPECT_THAT(all.classes, ElementsAre(0, 1, 1));
  EXPECT_THAT(job.spec.data().train().image_folder().classes(), ElementsAre("cat", "dog"));
  const auto second = make_picture(4, 6, 2);
  EXPECT_EQ(all.records[72], static_cast<float>(second.pixels[0]) / 255.0F)
      << "dog/a.PNG is before dog/b.png";
  EXPECT_EQ(all.records[72 + 24], static_cast<float>(second.pixels[1]) / 255.0F) << "channels first";
}

TEST_F(image_folder_test, pictures_may_be_gray_and_of_another_size) {
  job.write("pets/cat/large.png", png_bytes(make_picture(9, 9)));
  const auto data =
      job.open("{train: {format: image_folder, records: pets, image_folder: {channels: 1, resize: [2, 5]}}}");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ((*data)->record_shape(), (std::vector<std::uint32_t>{1, 2, 5}));
  EXPECT_EQ((*data)->record_count(), 4U);
  EXPECT_THAT(job.refusal(keys), HasSubstr("must be of one size, or write resize"));
}

TEST_F(image_folder_test, validation_numbers_classes_as_training_does) {
  job.write("others/dog/1.png", png_bytes(make_picture(4, 6)));
  const std::string both = "{train: {format: image_folder, records: pets}, validation: {records: others}}";
  const auto data = job.open(both, data_part::validation);
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_THAT(test::read_all(**data).classes, ElementsAre(1));
  const auto written = [&](const std::string& classes) {
    return job.refusal("{train: {format: image_folder, records: pets}, validation: {records: others, "
                       "image_folder: {classes: " +
                       classes + "}}}");
  };
  EXPECT_EQ(written("[cat, dog]"), "");
  EXPECT_THAT(written("[dog, cat]"),
              HasSubstr("data.validation.image_folder.classes[0]: dog here, but cat in data.train"));
  EXPECT_THAT(written("[dog]"), HasSubstr("[dog] here, but [cat, dog] in data.train"));
  job.write("others/bird/1.png", png_bytes(make_picture(4, 6)));
  EXPECT_THAT(job.refusal(both), HasSubstr("others/bird: the training data has no class of this name"));
}

TEST_F(image_folder_test, many_pictures_keep_their_order_and_of_several_bad_ones_the_first_is_told) {
  for (int i = 100; i < 160; ++i)
    job.write("pets/cat/" + std::to_string(i) + ".png", png_bytes(make_picture(4, 6, i)));
  const auto data = job.open(keys);
  ASSERT_TRUE(data) << data.error().message;
  const auto all = test::read_all(**data);
  for (int i = 100; i < 160; ++i) {
    const auto picture = make_picture(4, 6, i);
    EXPECT_EQ(all.records[72 * (i - 100)], static_cast<float>(picture.pixels[0]) / 255.0F) << i;
    EXPECT_EQ(all.classes[i - 100], 0);
  }
  for (const auto* bad : {"118", "117", "155"}) job.write("pets/cat/" + std::string(bad) + ".png", "meow");
  for (int attempt = 0; attempt < 20; ++attempt)
    EXPECT_THAT(job.refusal(keys), HasSubstr("pets/cat/117.png"));
}

TEST_F(image_folder_test, what_is_not_a_picture_is_named) {
  job.write("pets/cat/notes.txt", "meow");
  EXPECT_THAT(job.refusal(keys), HasSubstr("pets/cat/notes.txt: not a picture"));
  std::filesystem::remove(job.folder.path() / "pets/cat/notes.txt");
  job.write("pets/readme.md", "meow");
  EXPECT_THAT(job.refusal(keys), HasSubstr("pets/readme.md: not a folder"));
  std::filesystem::remove(job.folder.path() / "pets/readme.md");
  std::filesystem::create_symlink("nowhere", job.folder.path() / "pets/cat/link.png");
  EXPECT_THAT(job.refusal(keys), HasSubstr("pets/cat/link.png: No such file or directory"));
  std::filesystem::remove(job.folder.path() / "pets/cat/link.png");
  job.write("pets/cat/empty.png", "");
  EXPECT_THAT(job.refusal(keys), HasSubstr("pets/cat/empty.png: the file is empty"));
  auto broken = png_bytes(make_picture(4, 6));
  broken.resize(broken.size() - 20);
  job.write("pets/cat/empty.png", broken);
  EXPECT_THAT(job.refusal(keys), HasSubstr("damaged PNG: the file is truncated"));
}

TEST_F(image_folder_test, folders_that_are_empty_missing_or_unreadable_are_named) {
  std::filesystem::create_directory(job.folder.path() / "pets/eel");
  EXPECT_THAT(job.refusal(keys), HasSubstr("pets/eel: there is no picture in this class"));
  std::filesystem::create_directory(job.folder.path() / "none");
  EXPECT_THAT(job.refusal("{train: {format: image_folder, records: none}}"),
              HasSubstr("none: there are no pictures"));
  EXPECT_THAT(job.refusal("{train: {format: image_folder, records: nowhere}}"),
              HasSubstr("nowhere: No such file or directory"));
  EXPECT_THAT(job.refusal("{train: {format: image_folder, records: pets/dog/b.png}}"),
              HasSubstr("Not a directory"));
}

TEST_F(image_folder_test, memory_is_limited) {
  EXPECT_THAT(job.refusal("{memory_limit: 100B, train: {format: image_folder, records: pets}}"),
              HasSubstr("set data.memory_limit higher"));
}

TEST_F(image_folder_test, pictures_to_predict_need_no_class) {
  ASSERT_TRUE(job.decode(keys));
  const auto records = open_records(job.spec.data().train(), job.folder.path() / "pets/dog", 0);
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ((*records)->record_count(), 2U);
}

} // namespace
} // namespace dlrun::data
