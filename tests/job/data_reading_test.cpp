#include "job/data_reading.hpp"

#include "tests/job/spec_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

namespace dlrun::job {
namespace {

using test::parse, test::problems_of, test::with;
using testing::AllOf, testing::HasSubstr, testing::IsEmpty;

std::string job_of(const std::string& data) {
  return with(test::minimal_spec, "{train: {records: images, labels: labels}}", data);
}

/// A job on two tables whose `csv` have these keys besides the target.
std::string tables(const std::string& of_training, const std::string& of_validation) {
  return job_of(fmt::format("{{train: {{format: csv, records: a, csv: {{target: y, {}}}}}, validation: "
                            "{{records: b, csv: {{{}}}}}}}",
                            of_training, of_validation));
}

/// The keys by which validation data of a job file is refused to be read.
std::vector<std::string> keys_refused(const std::string& text) {
  std::vector<std::string> keys;
  const auto problems = problems_of(text);
  const std::string start = "job.yaml:4: data.validation.";
  for (std::size_t at = problems.find(start); at != std::string::npos; at = problems.find(start, at + 1)) {
    const auto key = at + start.size();
    keys.push_back(problems.substr(key, problems.find(':', key) - key));
  }
  EXPECT_EQ(keys.empty(), problems.empty()) << problems;
  return keys;
}

TEST(data_reading, keys_that_say_the_same_are_accepted) {
  const std::string columns = "columns: [{column: x, standardize: true}, {column: c, type: categorical}]";
  for (const auto& text : {
           tables(columns, ""),
           tables(columns, columns),
           tables("classes: [b, a]", "classes: [b, a]"),
           tables(
               "columns: [{column: c, type: categorical}]",
               "columns: [{column: c, type: categorical, encoding: index, unknown: error, order: sorted}]"),
           tables("columns: [{column: x, mean: 1, std: 2}]", "columns: [{column: x, standardize: true}]"),
           tables("columns: [{column: x}]", "columns: [{column: x, standardize: false}]"),
       })
    EXPECT_THAT(keys_refused(text), IsEmpty()) << text;
}

TEST(data_reading, what_is_not_learnt_yet_cannot_differ) {
  for (const auto& text :
       {tables("", "classes: [a, b]"), tables("", "columns: [{column: x, mean: 1, std: 2}]"),
        tables("columns: [{column: c, type: categorical}]",
               "columns: [{column: c, type: categorical, vocabulary: [u, v]}]"),
        tables("columns: [{column: x, standardize: true}]", "columns: [{column: x, mean: 1, std: 2}]")})
    EXPECT_THAT(keys_refused(text), IsEmpty()) << text;
}

TEST(data_reading, how_a_file_is_laid_out_is_its_own) {
  EXPECT_THAT(keys_refused(tables("columns: [{column: p}, {column: q}], classes: [a, b]",
                                  "header: false, delimiter: tab, target: '2', columns: [{column: '0'}, "
                                  "{column: '1'}]")),
              IsEmpty());
}

TEST(data_reading, each_key_that_makes_other_numbers_is_named) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"classes: [a, b, c]", "classes: [c, b, a]", "csv.classes[0]"},
      {"classes: [a, b, c]", "classes: [a, b]", "csv.classes"},
      {"columns: [{column: p}, {column: q}]", "columns: [{column: q}, {column: p}]", "csv.columns[0].column"},
      {"columns: [{column: p}, {column: q}]", "columns: [{column: p}]", "csv.columns"},
      {"columns: [{column: p}, {column: q}]", "columns: [{column: other}, {column: p}]",
       "csv.columns[1].column"},
      {"columns: [{column: p, standardize: true}]", "columns: [{column: p}]", "csv.columns[0].standardize"},
      {"columns: [{column: p}]", "columns: [{column: p, standardize: true}]", "csv.columns[0].standardize"},
      {"columns: [{column: p}]", "columns: [{column: p, mean: 1, std: 2}]", "csv.columns[0].mean"},
      {"columns: [{column: p, mean: 1, std: 2}]", "columns: [{column: p, mean: 1, std: 3}]",
       "csv.columns[0].std"},
      {"columns: [{column: p, missing: 0}]", "columns: [{column: p, missing: 1}]", "csv.columns[0].missing"},
      {"columns: [{column: p, type: categorical}]", "columns: [{column: p}]", "csv.columns[0].type"},
      {"columns: [{column: p, type: categorical, encoding: one_hot}]",
       "columns: [{column: p, type: categorical}]", "csv.columns[0].encoding"},
      {"columns: [{column: p, type: categorical}]",
       "columns: [{column: p, type: categorical, unknown: bucket}]", "csv.columns[0].unknown"},
      {"columns: [{column: p, type: categorical, vocabulary: [u, v]}]",
       "columns: [{column: p, type: categorical, vocabulary: [v, u]}]", "csv.columns[0].vocabulary[0]"},
  };
  for (const auto& [training, validation, key] : cases)
    EXPECT_THAT(keys_refused(tables(training, validation)), testing::ElementsAre(key)) << validation;
}

TEST(data_reading, so_it_is_in_other_formats) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"normalize: {mean: 0.5, std: 0.25}", "normalize: {mean: 0.75}", "normalize.mean[0]"},
      {"targets: classes", "targets: values", "targets"},
      {"format: image_folder, image_folder: {classes: [cat, dog]}", "image_folder: {classes: [dog, cat]}",
       "image_folder.classes[0]"},
      {"format: image_folder, image_folder: {classes: [cat, dog]}", "image_folder: {classes: [dog]}",
       "image_folder.classes"},
      {"format: image_folder, image_folder: {channels: 3}", "image_folder: {channels: 1}",
       "image_folder.channels"},
      {"format: image_folder, image_folder: {resize: [8, 8]}", "image_folder: {resize: [4, 16]}",
       "image_folder.resize[0]"},
      {"format: image_folder, image_folder: {classes: [cat, dog]}",
       "format: csv, csv: {target: y, classes: [dog, cat]}", "csv.classes[0]"},
      {"format: tfrecord, tfrecord: {features: [p, q], target: y}", "tfrecord: {features: [q, p]}",
       "tfrecord.features[0]"},
      {"format: tfrecord, tfrecord: {features: p, target: [y, z]}", "tfrecord: {target: [z, y]}",
       "tfrecord.target[0]"},
      {"format: tfrecord, tfrecord: {features: p, target: y, bytes: f4}", "tfrecord: {bytes: i4}",
       "tfrecord.bytes"},
  };
  for (const auto& [training, validation, key] : cases) {
    const bool is_idx = std::string_view{training}.find("format") == std::string_view::npos;
    const char* labels = is_idx ? "labels: l, " : "";
    EXPECT_THAT(keys_refused(job_of(fmt::format("{{train: {{records: a, {0}{1}}}, validation: {{records: b, "
                                                "{0}{2}}}}}",
                                                labels, training, validation))),
                testing::ElementsAre(key))
        << validation;
  }
  EXPECT_THAT(keys_refused(job_of("{train: {format: image_folder, records: a}, validation: {records: b, "
                                  "image_folder: {resize: [8, 8]}}}")),
              IsEmpty())
      << "pictures of another size, made as large as those of training are";
}

TEST(data_reading, a_refusal_says_both_values_and_the_way_out) {
  EXPECT_EQ(problems_of(tables("classes: [a, b]", "classes: [b, a]")),
            "job.yaml:4: data.validation.csv.classes[0]: b here, but a in data.train: the same record would "
            "become other numbers; leave csv.classes out, so that it is as in data.train, or write the same");
  EXPECT_THAT(
      problems_of(tables("columns: [{column: p, standardize: true}]", "columns: [{column: p}]")),
      HasSubstr("standardize: nothing here, but true in data.train: the same record would become other "
                "numbers; leave csv.columns out"));
}

TEST(data_reading, what_was_learnt_is_compared_when_it_is_known) {
  const auto differences = [](const std::string& training, const std::string& validation) {
    const auto spec = parse(tables(training, validation));
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().message);
    auto trained = spec->data().train();
    if (training.find("type: categorical") != std::string::npos)
      trained.mutable_csv()->mutable_columns(0)->add_vocabulary("u");
    auto other = spec->data().validation();
    take_learnt(trained, other);
    std::vector<std::string> keys;
    for (const auto& one : reading_differences(trained, other, taught::yes)) keys.push_back(one.key);
    return fmt::format("{}", fmt::join(keys, " "));
  };
  EXPECT_EQ(differences("", "classes: ['1', '0']"), "csv.classes") << "those of training are numbers";
  EXPECT_EQ(differences("classes: [a, b]", ""), "");
  const std::string words = "columns: [{column: c, type: categorical}]";
  EXPECT_EQ(differences(words, words), "");
  EXPECT_EQ(differences(words, "columns: [{column: c, type: categorical, vocabulary: [v]}]"),
            "csv.columns[0].vocabulary[0]");
}

} // namespace
} // namespace dlrun::job
