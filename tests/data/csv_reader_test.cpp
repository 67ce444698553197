#include "data/csv_reader.hpp"

#include "tests/data/decoded_job.hpp"

#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using floats = std::vector<float>;

class csv_reader_test : public testing::Test {
protected:
  csv_reader_test() {
    job.write("people.csv", "age,city,income,class\n"
                            "20,Oslo,1.5,0\n"
                            "30,\"Rome, Italy\",2.5,2\n"
                            "40,Oslo,-3.5,1\n");
  }
  /// data.train of people.csv, with these keys of csv.
  static std::string train(const std::string& keys, const std::string& file = "people.csv") {
    return "{train: {format: csv, records: " + file + ", csv: {" + keys + "}}}";
  }
  test::everything read(const std::string& keys, target_kind wanted = target_kind::classes) {
    const auto data = job.open(train(keys), data_part::training, wanted);
    EXPECT_TRUE(data) << (data ? "" : data.error().message);
    return data ? test::read_all(**data) : test::everything{};
  }
  const spec::CsvSpec& learnt() const { return job.spec.data().train().csv(); }

  test::decoded_job job;
};

TEST_F(csv_reader_test, reads_numbers_and_class_numbers) {
  const auto all = read("target: class, columns: [{column: age}, {column: income}]");
  EXPECT_EQ(all.records, (floats{20, 1.5, 30, 2.5, 40, -3.5}));
  EXPECT_THAT(all.classes, ElementsAre(0, 2, 1));
  EXPECT_TRUE(learnt().classes().empty());
}

TEST_F(csv_reader_test, without_a_list_all_columns_but_the_target_are_numbers) {
  job.write("people.csv", "x,y,class\n1,2,0\n3,4,1\n");
  EXPECT_EQ(read("target: class").records, (floats{1, 2, 3, 4}));
  ASSERT_EQ(learnt().columns_size(), 2) << "noted, so that other files are read in the same way";
  EXPECT_EQ(learnt().columns(1).column(), "y");
  job.write("people.csv", "x,city,class\n1,Rome,0\n");
  EXPECT_THAT(job.refusal(train("target: class")),
              HasSubstr("line 2, column city: \"Rome\" is not a number"));
}

TEST_F(csv_reader_test, numbers_categories_in_order_of_appearance_or_sorted) {
  const std::string city = "target: class, columns: [{column: city, type: categorical, ";
  job.write("people.csv", "age,city,class\n1,b,0\n1,a,0\n1,b,0\n1,c,0\n");
  EXPECT_EQ(read(city + "encoding: index}]").records, (floats{0, 1, 0, 2}));
  EXPECT_THAT(learnt().columns(0).vocabulary(), ElementsAre("b", "a", "c"));
  EXPECT_EQ(read(city + "order: sorted}]").records, (floats{1, 0, 1, 2}));
  EXPECT_EQ(read(city + "vocabulary: [c, b, a]}]").records, (floats{1, 2, 1, 0}));
  EXPECT_EQ(read(city + "encoding: one_hot}]").records, (floats{1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1}));
}

TEST_F(csv_reader_test, quoted_text_is_a_category_like_any_other) {
  EXPECT_EQ(read("target: class, columns: [{column: city, type: categorical}]").records, (floats{0, 1, 0}));
  EXPECT_THAT(learnt().columns(0).vocabulary(), ElementsAre("Oslo", "Rome, Italy"));
}

TEST_F(csv_reader_test, an_unknown_category_is_an_error_or_has_a_bucket) {
  const std::string known = "target: class, columns: [{column: city, type: categorical, vocabulary: [Oslo]";
  EXPECT_THAT(job.refusal(train(known + "}]")),
              HasSubstr("people.csv: line 3, column city: \"Rome, Italy\" is none of the 1 categories"));
  EXPECT_EQ(read(known + ", unknown: bucket}]").records, (floats{0, 1, 0}));
  EXPECT_EQ(read(known + ", unknown: bucket, encoding: one_hot}]").records, (floats{1, 0, 0, 1, 1, 0}));
}

TEST_F(csv_reader_test, names_of_classes_are_sorted_and_kept) {
  job.write("people.csv", "x,kind\n1,pear\n2,apple\n3,pear\n");
  EXPECT_THAT(read("target: kind").classes, ElementsAre(1, 0, 1));
  EXPECT_THAT(learnt().classes(), ElementsAre("apple", "pear"));
  EXPECT_THAT(read("target: kind, classes: [pear, apple]").classes, ElementsAre(0, 1, 0));
  EXPECT_THAT(job.refusal(train("target: kind, classes: [pear, plum]")),
              HasSubstr("line 3, column kind: \"apple\" is no class"));
}

TEST_F(csv_reader_test, targets_may_be_values_of_several_columns) {
  const auto all = read("target: [income, age], columns: [{column: class}]", target_kind::values);
  EXPECT_EQ(all.values, (floats{1.5, 20, 2.5, 30, -3.5, 40}));
  EXPECT_EQ(all.records, (floats{0, 2, 1}));
  EXPECT_EQ(job.spec.data().train().targets(), "values");
  EXPECT_THAT(job.refusal(train("target: [income, age]")), HasSubstr("a class is one column"));
}

TEST_F(csv_reader_test, standardises_by_what_it_learns_and_keeps_it) {
  const auto all = read("target: class, columns: [{column: age, standardize: true}]");
  const auto& column = learnt().columns(0);
  EXPECT_DOUBLE_EQ(column.mean(), 30);
  EXPECT_DOUBLE_EQ(column.std(), std::sqrt(200.0 / 3)) << "of the whole population, as scikit-learn does it";
  EXPECT_EQ(all.records[0], static_cast<float>((20 - column.mean()) / column.std()));
  EXPECT_EQ(all.records[1], 0.0F);
  EXPECT_EQ(read("target: class, columns: [{column: age, mean: 10, std: 5}]").records, (floats{2, 4, 6}));
}

TEST_F(csv_reader_test, nothing_is_learnt_from_what_is_split_off) {
  std::string text = "x,class\n";
  for (int i = 0; i < 20; ++i) text += std::to_string(i * i) + ",0\n";
  job.write("people.csv", text);
  const std::string keys =
      "format: csv, records: people.csv, csv: {target: class, columns: [{column: x, standardize: true}]}";
  const auto part = job.open("{train: {" + keys + "}, validation: {split: 0.5}}");
  ASSERT_TRUE(part) << part.error().message;
  double sum = 0;
  for (const float value : test::read_all(**part).records) sum += value;
  EXPECT_NEAR(sum, 0, 1e-5) << "the mean of the ten records that are trained on";
  EXPECT_EQ((*part)->record_count(), 10U);
}

TEST_F(csv_reader_test, validation_uses_what_training_taught) {
  job.write("other.csv", "city,income,class,age\nRome,0,pear,1\nOslo,0,apple,2\n");
  job.write("people.csv", "age,city,class\n2,Oslo,pear\n4,Rome,apple\n");
  const std::string data = "{train: {format: csv, records: people.csv, csv: {target: class, columns: "
                           "[{column: city, type: categorical}, "
                           "{column: age, standardize: true}]}}, validation: {records: other.csv}}";
  const auto validation = job.open(data, data_part::validation);
  ASSERT_TRUE(validation) << validation.error().message;
  const auto all = test::read_all(**validation);
  EXPECT_EQ(all.records, (floats{1, -2, 0, -1}));
  EXPECT_THAT(all.classes, ElementsAre(1, 0));
  job.write("other.csv", "city,class,age\nRome,pear,1\nParis,apple,2\n");
  EXPECT_THAT(job.refusal(data), HasSubstr("other.csv: line 3, column city: \"Paris\" is none of"));
  job.write("other.csv", "city,class,age\nRome,plum,1\n");
  EXPECT_THAT(job.refusal(data), HasSubstr("other.csv: line 2, column class: \"plum\" is no class"));
}

TEST_F(csv_reader_test, missing_cells_are_errors_unless_something_stands_for_them) {
  job.write("people.csv", "x,city,class\n1,Oslo,0\n,,1\n");
  const auto columns = [](const std::string& x, const std::string& city) {
    return "target: class, columns: [{column: x" + x + "}, {column: city, type: categorical" + city + "}]";
  };
  EXPECT_THAT(job.refusal(train(columns("", ", missing: nowhere"))),
              HasSubstr("line 3, column x: the cell is empty"));
  EXPECT_THAT(job.refusal(train(columns(", missing: 0", ""))),
              HasSubstr("line 3, column city: the cell is empty"));
  EXPECT_EQ(read(columns(", missing: -1", ", missing: nowhere")).records, (floats{1, 0, -1, 1}));
  job.write("people.csv", "x,class\n1,\n");
  EXPECT_THAT(job.refusal(train("target: class")), HasSubstr("line 2, column class: the target is missing"));
}

TEST_F(csv_reader_test, columns_without_a_header_are_numbers_from_0) {
  job.write("plain.csv", "7;8;1\n9;10;0\n");
  const auto data = job.open(train("target: 2, header: false, delimiter: semicolon", "plain.csv"));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_EQ(test::read_all(**data).records, (floats{7, 8, 9, 10}));
  EXPECT_THAT(job.refusal(train("target: 3, header: false, delimiter: semicolon", "plain.csv")),
              HasSubstr("numbers from 0 to 2, not \"3\""));
}

TEST_F(csv_reader_test, bad_cells_and_lines_are_named) {
  const auto refusal = [&](const std::string& lines) {
    job.write("people.csv", "x,y,class\n" + lines);
    return job.refusal(train("target: class"));
  };
  EXPECT_THAT(refusal("1,2,0\n1,ten,0\n"),
              HasSubstr("people.csv: line 3, column y: \"ten\" is not a number"));
  EXPECT_THAT(refusal("1,nan,0\n"), HasSubstr("line 2, column y: \"nan\" is not a number"));
  EXPECT_THAT(refusal("1,1e300,0\n"), HasSubstr("too large for a 32-bit float"));
  EXPECT_THAT(refusal("1,2,0\n1,2\n"), HasSubstr("people.csv: line 3: 2 columns, but the header names 3"));
  EXPECT_THAT(refusal("1,2,0\n1,2,3,4\n"), HasSubstr("line 3: 4 columns, but the header names 3"));
  EXPECT_THAT(refusal("1,2,0\n1,2,pear\n"),
              HasSubstr("line 3, column class: \"pear\" is not a class number"));
  EXPECT_THAT(refusal("1,2,\"x\n"), HasSubstr("line 2: a quote is opened and never closed"));
  EXPECT_THAT(refusal(""), HasSubstr("there are no records in it"));
  job.write("people.csv", "");
  EXPECT_THAT(job.refusal(train("target: class")), HasSubstr("the file is empty"));
  EXPECT_THAT(job.refusal(train("target: class", "nowhere.csv")), HasSubstr("nowhere.csv: No such file"));
}

TEST_F(csv_reader_test, columns_that_are_not_there_are_told_with_the_nearest) {
  EXPECT_THAT(job.refusal(train("target: clas")),
              HasSubstr("there is no column \"clas\"; did you mean \"class\"?"));
  EXPECT_THAT(job.refusal(train("target: class, columns: [{column: agee}]")),
              HasSubstr("did you mean \"age\"?"));
  job.write("people.csv", "x,x,class\n1,2,0\n");
  EXPECT_THAT(job.refusal(train("target: class")), HasSubstr("two columns are called \"x\""));
}

TEST_F(csv_reader_test, reads_gzip_and_finds_damage_in_it) {
  std::string text = "x,class\n";
  for (int i = 0; i < 2000; ++i) text += std::to_string(i * 7919 % 1000) + ",0\n";
  auto packed = test::gzip(test::text_bytes(text));
  job.write("people.csv", packed);
  EXPECT_EQ(read("target: class").records.size(), 2000U);
  packed.resize(packed.size() / 2);
  job.write("people.csv", packed);
  EXPECT_THAT(job.refusal(train("target: class")), HasSubstr("the file is truncated"));
}

TEST_F(csv_reader_test, a_column_of_too_many_texts_is_no_category) {
  std::string text = "x,class\n";
  for (int i = 0; i < 10'001; ++i) text += "id" + std::to_string(i) + ",0\n";
  job.write("people.csv", text);
  EXPECT_THAT(job.refusal(train("target: class, columns: [{column: x, type: categorical}]")),
              HasSubstr("line 10002, column x: more than 10000 different texts"));
}

TEST_F(csv_reader_test, records_to_predict_need_no_target) {
  ASSERT_TRUE(job.decode(train("target: class, columns: [{column: city, type: categorical}]")));
  const auto file = job.write("new.csv", "age,city\n1,\"Rome, Italy\"\n");
  const auto records = open_records(job.spec.data().train(), file, 0);
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ((*records)->target_values(), 0);
  EXPECT_EQ(test::read_all(**records).records, (floats{1}));
}

} // namespace
} // namespace dlrun::data
