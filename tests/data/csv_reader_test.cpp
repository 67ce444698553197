#include "data/csv_reader.hpp"

#include "tests/data/decoded_job.hpp"

#include <fmt/format.h>
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
  for (const auto* lines : {"1,2,0\n1,2,-1\n", "1,2,-1\n1,2,0\n", "1,2,pear\n1,2,-1\n"})
    EXPECT_THAT(refusal(lines), HasSubstr("column class: \"-1\" is no class: classes have the numbers"))
        << "in whatever order they come";
  EXPECT_THAT(refusal("1,2,99999999999999999999\n"), HasSubstr("list them: csv.classes"));
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

// ---- what is predicted is never what it is predicted from

TEST_F(csv_reader_test, a_column_without_a_header_has_one_number) {
  job.write("plain.csv", "7,8,1\n9,10,0\n");
  for (const auto* const target : {"'02'", "'2 '", "' 2'", "'+2'", "-1", "2.0", "0x2", "''"}) {
    const auto keys = fmt::format("target: {}, header: false", target);
    EXPECT_THAT(job.refusal(train(keys, "plain.csv")), HasSubstr("columns are numbers from 0 to 2, not"))
        << target;
  }
  EXPECT_THAT(job.refusal(train("target: 2, header: false, columns: [{column: '00'}]", "plain.csv")),
              HasSubstr("not \"00\""));
}

TEST_F(csv_reader_test, a_target_is_named_once_and_is_no_column_to_learn_from) {
  EXPECT_THAT(job.refusal(train("target: class, columns: [{column: class}]")), HasSubstr("is used twice"));
  EXPECT_THAT(job.refusal(train("target: [age, age]"), target_kind::values), HasSubstr("is there twice"));
  EXPECT_THAT(job.refusal(train("target: class, columns: [{column: age}, {column: age}]")),
              HasSubstr("is used twice"));
}

/// Of data.train all columns but its target were learnt from; data.validation has another target.
TEST_F(csv_reader_test, the_target_of_validation_data_is_no_column_of_the_training_data) {
  job.write("people.csv", "x,a,b\n1,0,1\n2,1,0\n");
  const auto data = "{train: {format: csv, records: people.csv, csv: {target: a}}, validation: {records: "
                    "people.csv, csv: {target: b}}}";
  EXPECT_THAT(job.refusal(data), HasSubstr("data.validation.csv: column \"b\" is the target, and one of"));
}

TEST_F(csv_reader_test, a_column_without_a_name_is_not_taken_for_a_number_to_learn_from) {
  job.write("people.csv", ",x,class\n0,1,0\n1,2,1\n"); // pandas writes its index so
  EXPECT_THAT(job.refusal(train("target: class")), HasSubstr("column 1 of the header has no name"));
  EXPECT_EQ(read("target: class, columns: [{column: x}]").records, (floats{1, 2}));
  job.write("people.csv", "x,class,\n1,0,\n");
  EXPECT_THAT(job.refusal(train("target: class")), HasSubstr("column 3 of the header has no name"));
}

// ---- blank lines

TEST_F(csv_reader_test, a_blank_line_is_a_record_in_a_table_of_one_column_alone) {
  const auto predict = [&](const std::string& content) {
    const auto records = open_records(job.spec.data().train(), job.write("new.csv", content), 0);
    EXPECT_TRUE(records) << (records ? "" : records.error().message);
    return records ? test::read_all(**records).records : floats{};
  };
  job.write("people.csv", "\na,class\n\n1,0\n\n\n2,1\n\n");
  EXPECT_EQ(read("target: class, columns: [{column: a, missing: -1}]").records, (floats{1, 2}));
  EXPECT_EQ(predict("a\n1\n\n3\n"), (floats{1, -1, 3}));
  EXPECT_EQ(predict("a\r\n\r\n1\r\n \r\n\"\"\r\n"), (floats{-1, 1, -1, -1}));
  EXPECT_EQ(predict("a\n\n"), (floats{-1}));
  EXPECT_EQ(predict("a,b\n\n1,2\n\n,4\n"), (floats{1, -1})) << "a record of two cells has a comma";
}

TEST_F(csv_reader_test, a_blank_line_of_one_column_is_an_empty_cell_without_a_header_too) {
  job.write("plain.csv", "\n1,0\n\n2,1\n");
  const auto keys = "target: 1, header: false, columns: [{column: 0, missing: 5}]";
  ASSERT_TRUE(job.decode(train(keys, "plain.csv")));
  const auto records = open_records(job.spec.data().train(), job.write("new.csv", "\n\n7\n\n"), 0);
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(test::read_all(**records).records, (floats{5, 5, 7, 5}));
}

TEST_F(csv_reader_test, where_nothing_stands_for_it_a_blank_line_of_one_column_is_an_error) {
  job.write("people.csv", "a,class\n1,0\n");
  ASSERT_TRUE(job.decode(train("target: class")));
  const auto records = open_records(job.spec.data().train(), job.write("new.csv", "a\n1\n\n3\n"), 0);
  ASSERT_FALSE(records);
  EXPECT_THAT(records.error().message, HasSubstr("new.csv: line 3, column a: the cell is empty"));
}

// ---- numbers

TEST_F(csv_reader_test, numbers_are_read_as_the_nearest_or_refused_with_the_reason) {
  const auto cell = [&](const std::string& text, bool may_be_read = false) {
    job.write("people.csv", "x;class\n" + text + ";0\n");
    const auto keys = "target: class, delimiter: semicolon";
    if (!may_be_read) return job.refusal(train(keys));
    EXPECT_EQ(read(keys).records.size(), 1U) << text;
    return std::string{};
  };
  for (const auto* const text : {"1e-40", "-1e-320", "1e-999", "+1.5", ".5", "5.", "-0", "1E2"})
    cell(text, true);
  job.write("people.csv", "x,class\n1e-999,0\n-1e-320,0\n1e-40,0\n");
  EXPECT_EQ(read("target: class").records, (floats{0, -0.0F, 1e-40F}));
  EXPECT_THAT(cell("1e999"), HasSubstr("\"1e999\" is too large for a 64-bit float"));
  EXPECT_THAT(cell("-1e309"), HasSubstr("too large for a 64-bit float"));
  EXPECT_THAT(cell("1e39"), HasSubstr(": 1e39 is too large for a 32-bit float"));
  EXPECT_THAT(cell("1,5"), HasSubstr("\"1,5\" is not a number; decimals stand behind a point"));
  for (const auto* const text :
       {"nan", "NaN", "inf", "-Infinity", "0x1p3", "1_000", "1e", "--1", "+-1", "1 2"})
    EXPECT_THAT(cell(text), HasSubstr("is not a number")) << text;
}

TEST_F(csv_reader_test, targets_that_are_no_numbers_are_refused) {
  const auto target = [&](const std::string& text, target_kind kind) {
    job.write("people.csv", "x,y\n1," + text + "\n2,1\n");
    return job.refusal(train("target: y"), kind);
  };
  for (const auto* const text : {"nan", "-inf", "1e999"})
    EXPECT_NE(target(text, target_kind::values), "") << text;
  EXPECT_THAT(target("1e39", target_kind::values), HasSubstr("1e+39 is too large for a 32-bit float"));
  EXPECT_THAT(target("", target_kind::values), HasSubstr("the target is missing"));
  EXPECT_THAT(target("nan", target_kind::classes), HasSubstr("\"nan\" is no class: is a target missing?"));
  EXPECT_THAT(target("Infinity", target_kind::classes), HasSubstr("is no class"));
  job.write("people.csv", "x,y\n1,nan\n2,no\n");
  EXPECT_THAT(read("target: y, classes: [no, nan]").classes, ElementsAre(1, 0)) << "it may be listed";
}

TEST_F(csv_reader_test, what_stands_for_a_missing_number_is_one) {
  for (const auto* const text : {"nan", "none", "''", "1e999"})
    EXPECT_THAT(
        job.refusal(train(fmt::format("target: class, columns: [{{column: age, missing: {}}}]", text))),
        HasSubstr("data.train.csv.columns: column \"age\": missing: "))
        << text;
}

TEST_F(csv_reader_test, means_that_a_specification_cannot_hold_are_refused) {
  const auto keys = "target: class, columns: [{column: x, standardize: true}]";
  for (const auto* const lines : {"1e308,0\n-1e308,1\n", "1e305,0\n1e305,1\n"}) {
    job.write("people.csv", std::string{"x,class\n"} + lines);
    EXPECT_THAT(job.refusal(train(keys)), HasSubstr("people.csv: column x: its mean")) << lines;
  }
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
