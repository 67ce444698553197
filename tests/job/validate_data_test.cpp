#include "job/validate_data.hpp"

#include "tests/job/spec_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace dlrun::job {
namespace {

using test::parse, test::problems_of, test::with;

/// The problems of `data:` with this content.
std::string problems(const std::string& data) {
  return problems_of(with(test::minimal_spec, "{train: {records: images, labels: labels}}", data));
}

TEST(validate_data, every_format_that_is_complete_is_accepted) {
  for (const char* data :
       {"{train: {records: a, labels: b}, validation: {records: c, labels: d}}",
        "{train: {format: npy, records: a, labels: b}, validation: {split: 0.1}}",
        "{train: {format: csv, records: a, csv: {target: y}}, validation: {records: b}}",
        "{train: {format: csv, records: a, csv: {target: [y, z], columns: [{column: x, standardize: true}, "
        "{column: c, "
        "type: categorical, encoding: one_hot, order: sorted, unknown: bucket, missing: none}]}}}",
        "{train: {format: image_folder, records: a, augment: {random_crop: {padding: 4}, horizontal_flip: "
        "}}}",
        "{train: {format: image_folder, records: a, image_folder: {channels: 1, resize: [8, 8]}, normalize: "
        "{mean: 0.5}}}",
        "{train: {format: tfrecord, records: a, tfrecord: {features: [x, y], target: z}}}",
        "{memory_limit: 2GiB, train: {format: mine, records: a, labels: b, options: {depth: 3}}}"})
    EXPECT_EQ(problems(data), "") << data;
}

TEST(validate_data, what_is_missing_is_named_with_its_line) {
  EXPECT_EQ(problems("{train: {labels: b}}"),
            "job.yaml:4: data.train.records: is missing; expected the path of a file");
  EXPECT_EQ(problems("{train: {format: npy, records: a}}"),
            "job.yaml:4: data.train.labels: is missing; expected the path of a file");
  EXPECT_EQ(
      problems("{train: {format: csv, records: a}}"),
      "job.yaml:4: data.train.csv: is missing; expected keys (target, columns, header, delimiter, classes)");
  EXPECT_EQ(problems("{train: {format: tfrecord, records: a}}"),
            "job.yaml:4: data.train.tfrecord: is missing; expected keys (features, target, bytes, shape)");
}

TEST(validate_data, what_would_be_ignored_is_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"{train: {records: a, labels: b, csv: {target: x}}}",
       "data.train.csv: is for format: csv, but the format is idx"},
      {"{train: {format: csv, records: a, labels: b, csv: {target: x}}}",
       "data.train.labels: format csv has its targets in the records; leave this out"},
      {"{train: {records: a, labels: b, options: {x: 1}}}",
       "data.train.options: are for readers of your own; format idx has none"},
      {"{train: {records: a, labels: b, split: 0.1}}",
       "data.train.split: what is split off is for validation; write it as data.validation.split"},
      {"{train: {records: a, labels: b}, validation: {split: 0.1, records: c}}",
       "data.validation.records: a split takes its records from data.train; leave this out, or leave out "
       "split"},
      {"{train: {records: a, labels: b}, validation: {split: 0.1, augment: {}}}",
       "data.validation.augment: records are changed at random in training only; leave it out"},
      {"{train: {format: csv, records: a, csv: {target: x}, normalize: {mean: 1}}}",
       "data.train.normalize: columns are normalised one by one: write standardize, or mean and std, at "
       "csv.columns"},
      {"{train: {format: csv, records: a, csv: {target: x, columns: [{column: c, unknown: bucket}]}}}",
       "data.train.csv.columns[0].unknown: is for type: categorical, but the type is numeric"},
      {"{train: {format: csv, records: a, csv: {target: x, columns: [{column: c, type: categorical, "
       "standardize: "
       "true}]}}}",
       "data.train.csv.columns[0].standardize: is for type: numeric, but the type is categorical"},
  };
  for (const auto& [data, problem] : cases)
    EXPECT_EQ(problems(data), std::string("job.yaml:4: ") + problem) << data;
}

TEST(validate_data, keys_that_contradict_each_other_are_refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"{train: {records: a, labels: b, normalize: {mean: [1, 2], std: [1, 2, 3]}}}",
       "data.train.normalize: 2 values of mean, but 3 of std"},
      {"{train: {format: image_folder, records: a, image_folder: {channels: 2}}}",
       "data.train.image_folder.channels: expected 1 (grayscale) or 3 (red, green, blue), found 2"},
      {"{train: {format: image_folder, records: a, targets: values}}",
       "data.train.targets: the folders of image_folder are classes; leave it out or write classes"},
      {"{train: {format: csv, records: a, targets: classes, csv: {target: [x, y]}}}",
       "data.train.csv.target: a class is one column; write one, or targets: values"},
      {"{train: {format: csv, records: a, csv: {target: x, columns: [{column: c}, {column: c}]}}}",
       "data.train.csv.columns[1].column: column \"c\" is used twice"},
      {"{train: {format: csv, records: a, csv: {target: x, columns: [{column: x}]}}}",
       "data.train.csv.columns[0].column: column \"x\" is used twice"},
      {"{train: {format: csv, records: a, csv: {target: x, columns: [{column: c, mean: 1}]}}}",
       "data.train.csv.columns[0].mean: mean and std come together; write both or none"},
      {"{train: {format: csv, records: a, csv: {target: x, classes: [a, b, a]}}}",
       "data.train.csv.classes: \"a\" is there twice"},
  };
  for (const auto& [data, problem] : cases)
    EXPECT_EQ(problems(data), std::string("job.yaml:4: ") + problem) << data;
}

TEST(validate_data, validation_is_as_training_but_for_paths_and_chance) {
  const auto spec =
      parse(with(test::minimal_spec, "{train: {records: images, labels: labels}}",
                 "{train: {format: csv, records: a, csv: {target: y, delimiter: tab}, augment: {}}, "
                 "validation: {records: b}}"));
  ASSERT_TRUE(spec) << spec.error().message;
  const auto& validation = spec->data().validation();
  EXPECT_EQ(validation.format(), "csv");
  EXPECT_EQ(validation.csv().delimiter(), "tab");
  EXPECT_EQ(validation.records(), "/base/b");
  EXPECT_FALSE(validation.has_augment());
  const auto same =
      parse(with(test::minimal_spec, "{train: {records: images, labels: labels}}",
                 "{train: {records: a, labels: b, normalize: {mean: 0.5}}, validation: {format: idx, "
                 "records: c, labels: d}}"));
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->data().validation().normalize().mean(0), 0.5) << "the same format, written or not";
  const auto part = parse(
      with(test::minimal_spec, "{train: {records: images, labels: labels}}",
           "{train: {records: a, labels: b, normalize: {mean: 0.5, std: 0.25}}, validation: {records: c, "
           "labels: d, normalize: {mean: [0.5, 0.5]}}}"));
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_EQ(part->data().validation().normalize().mean_size(), 2) << "one number is that of all channels";
  EXPECT_EQ(part->data().validation().normalize().std(0), 0.25) << "each key on its own";
  const auto table =
      parse(with(test::minimal_spec, "{train: {records: images, labels: labels}}",
                 "{train: {format: csv, records: a, csv: {target: y, header: false, delimiter: bar}}, "
                 "validation: {records: b, csv: {target: z}}}"));
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->data().validation().csv().delimiter(), "bar");
  EXPECT_FALSE(table->data().validation().csv().header());
  EXPECT_EQ(table->data().validation().csv().target(0), "z");
  EXPECT_EQ(
      problems("{train: {format: csv, records: a, csv: {target: y}}, validation: {format: idx, records: b, "
               "labels: c}}"),
      "")
      << "another format has keys of its own";
}

/// It has the records of data.train, as these are read.
TEST(validate_data, what_a_split_says_of_its_records_must_be_what_train_says) {
  const auto split = [](const std::string& keys) {
    return problems(
        "{train: {format: csv, records: a, csv: {target: y}, targets: values}, validation: {split: "
        "0.1, " +
        keys + "}}");
  };
  EXPECT_EQ(split("format: csv"), "");
  EXPECT_EQ(split("csv: {target: y}, targets: values"), "");
  const std::pair<const char*, const char*> others[] = {
      {"csv", "csv: {target: z}"}, {"csv", "csv: {delimiter: tab}"}, {"targets", "targets: classes"}};
  for (const auto& [key, keys] : others)
    EXPECT_EQ(split(keys), fmt::format("job.yaml:4: data.validation.{}: a split takes its records from "
                                       "data.train, as these are read; leave this out",
                                       key))
        << keys;
  EXPECT_THAT(problems("{train: {records: a, labels: b}, validation: {split: 0.1, normalize: {mean: 0.5}}}"),
              testing::HasSubstr("data.validation.normalize: a split takes"));
}

} // namespace
} // namespace dlrun::job
