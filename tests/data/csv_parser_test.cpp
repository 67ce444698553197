#include "data/csv_parser.hpp"

#include "tests/data/files.hpp"

#include <filesystem>
#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

using testing::HasSubstr;
using lines = std::vector<std::vector<std::string>>;

struct parsed {
  lines cells;
  std::vector<std::uint64_t> numbers, blank;
  std::string problem;
};

parsed parse(const std::string& text, char delimiter = ',', bool compressed = false) {
  const test::temporary_folder folder;
  const auto bytes = test::text_bytes(text);
  auto parser = csv_parser::open(folder.write("t.csv", compressed ? test::gzip(bytes) : bytes), delimiter);
  parsed all;
  while (parser) {
    const auto there = parser->next();
    if (!there) all.problem = there.error().message;
    if (!there || !*there) break;
    all.numbers.push_back(parser->line());
    if (parser->is_blank()) all.blank.push_back(parser->line());
    auto& line = all.cells.emplace_back();
    for (std::size_t i = 0; i < parser->size(); ++i) line.emplace_back(parser->cell(i));
  }
  return all;
}

TEST(csv_parser, reads_plain_cells_with_either_line_end) {
  const lines expected = {{"a", "b", ""}, {"1", "2", "x y"}};
  EXPECT_EQ(parse("a,b,\n1, 2,x y\n").cells, expected) << "without the spaces around them";
  EXPECT_EQ(parse("a,b,\r\n1, 2,x y").cells, expected);
  EXPECT_EQ(parse("a,b,\r\n1, 2,x y\r").cells, expected) << "a last line may end in half a line end";
  EXPECT_EQ(parse("a\tb\t\n1\t 2\tx y\n", '\t').cells, expected);
  EXPECT_EQ(parse("\xEF\xBB\xBF"
                  "a,b,\n1, 2,x y\n")
                .cells,
            expected)
      << "with a byte order mark";
  EXPECT_EQ(parse("a,b,\n1, 2,x y\n", ',', true).cells, expected);
}

TEST(csv_parser, quotes_hold_separators_line_breaks_and_doubled_quotes) {
  const auto read = parse("\" a,b\",\"two\nlines\",\"say \"\"hi\"\"\"\r\n\"\",plain,\"end\"\n3,4,5\n");
  EXPECT_EQ(read.problem, "");
  EXPECT_EQ(read.cells, (lines{{" a,b", "two\nlines", "say \"hi\""}, {"", "plain", "end"}, {"3", "4", "5"}}));
  EXPECT_EQ(read.numbers, (std::vector<std::uint64_t>{1, 3, 4})) << "lines of the file, not of the table";
}

TEST(csv_parser, tells_lines_with_nothing_in_them) {
  const auto read = parse("a\n\n\r\nb\n\"\"\n ,\n\n");
  EXPECT_EQ(read.cells, (lines{{"a"}, {""}, {""}, {"b"}, {""}, {"", ""}, {""}}));
  EXPECT_EQ(read.blank, (std::vector<std::uint64_t>{2, 3, 7})) << "an empty text in quotes is something";
  EXPECT_EQ(parse("").cells, lines{});
}

TEST(csv_parser, text_in_another_encoding_is_told_by_its_name) {
  const std::string utf16{"\xFF\xFE"
                          "a\0\n\0",
                          6};
  EXPECT_THAT(parse(utf16).problem, HasSubstr("t.csv: is UTF-16 text; save it as UTF-8"));
  EXPECT_THAT(parse(utf16, ',', true).problem, HasSubstr("is UTF-16 text"));
  EXPECT_THAT(parse("\xFE\xFF").problem, HasSubstr("is UTF-16 text"));
  EXPECT_THAT(parse({"\xFF\xFE\0\0a\0\0\0", 8}).problem, HasSubstr("is UTF-32 text"));
  EXPECT_THAT(parse({"a\0,\0", 4}).problem, HasSubstr("One in UTF-16 is to be saved as UTF-8"));
  EXPECT_EQ(parse("\xEF\xBB\xBF").cells, lines{}) << "nothing but the mark";
}

TEST(csv_parser, line_ends_of_carriage_returns_alone_are_told) {
  for (const auto* const text : {"a,b\r1,2\r", "a,b\r1,2", "\"a\",b\r\"1\",2\r", "a,b\r\r\n1,2\r\r\n"})
    EXPECT_THAT(parse(text).problem,
                HasSubstr("line 1: a carriage return within a line; lines end with LF or"))
        << text;
  EXPECT_EQ(parse("\"a\rb\"\n").cells, (lines{{"a\rb"}})) << "in quotes it is text";
}

TEST(csv_parser, names_the_line_of_what_is_wrong) {
  EXPECT_THAT(parse("a\n\"never closed\nb\nc\n").problem,
              HasSubstr("line 2: a quote is opened and never closed"));
  EXPECT_THAT(parse("a,\"b\" c\n").problem, HasSubstr("line 1: text after a closing quote"));
  EXPECT_THAT(parse("a,b\"c\n").problem, HasSubstr("line 1: a quote within a field"));
  EXPECT_THAT(parse("x\ny\n" + std::string(1, '\0')).problem, HasSubstr("line 3: a byte of value 0"));
  EXPECT_THAT(parse("x\n\"y\"\rz\n").problem, HasSubstr("line 2: a carriage return within a line"));
}

TEST(csv_parser, reads_lines_longer_than_its_buffer) {
  const std::string large(200'000, 'x');
  EXPECT_EQ(parse("\"" + large + "\"," + large + "\n1,2\n").cells, (lines{{large, large}, {"1", "2"}}));
}

TEST(csv_parser, a_file_that_is_shortened_while_it_is_read_ends_there) {
  const test::temporary_folder folder;
  std::string text;
  for (int line = 0; line < 100'000; ++line) text += "1234,5678\n";
  const auto file = folder.write("t.csv", test::text_bytes(text));
  auto parser = csv_parser::open(file, ',').value();
  ASSERT_TRUE(parser.next().value());
  std::filesystem::resize_file(file, text.size() / 2);
  std::size_t lines_read = 1;
  while (parser.next().value()) ++lines_read;
  EXPECT_EQ(lines_read, 50'000);
}

} // namespace
} // namespace dlrun::data
