#include "job/spec_writer.hpp"
#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <ctime>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <random>

namespace dlrun::job {
namespace {

using test::minimal_spec, test::parse, test::problems_of, test::with;

std::string repeated(const std::string& part, std::size_t count) {
  std::string out;
  out.reserve(part.size() * count);
  for (std::size_t i = 0; i < count; ++i) out += part;
  return out;
}

TEST(hostile_spec, a_file_beyond_a_mebibyte_is_refused_unread) {
  const test::temporary_folder folder;
  const auto file = folder.write("big.yaml", test::bytes(spec_bytes_max + 1, 'a'));
  const auto spec = read_spec(file);
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, error_code::bad_spec);
  EXPECT_NE(spec.error().message.find("larger than 1024 KiB"), std::string::npos) << spec.error().message;
}

/// They name each column of a table.
TEST(hostile_spec, files_that_a_run_wrote_may_be_larger_but_have_a_limit_too) {
  auto spec = parse(with(minimal_spec, "{train: {records: images, labels: labels}}",
                         "{train: {format: csv, records: a, csv: {target: y}}, validation: {records: b}}"))
                  .value();
  for (auto* const part : {spec.mutable_data()->mutable_train(), spec.mutable_data()->mutable_validation()})
    for (int i = 0; i < 65'536; ++i) {
      auto& column = *part->mutable_csv()->add_columns();
      column.set_column(fmt::format("column-{}", i));
      column.set_type("numeric");
    }
  const test::temporary_folder folder;
  ASSERT_TRUE(write_spec_file(folder.path() / "spec.yaml", spec));
  const auto read = read_spec(folder.path() / "spec.yaml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->SerializeAsString(), spec.SerializeAsString());
  EXPECT_FALSE(parse(write_spec(spec))) << "somebody else's is refused";
  auto large = test::text_bytes(std::string{written_head});
  large.resize(written_spec_bytes_max + 1, ' ');
  const auto refused = read_spec(folder.write("large.yaml", large));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("larger than 16384 KiB"), std::string::npos);
}

TEST(hostile_spec, anchors_aliases_and_tags_are_refused) {
  EXPECT_NE(problems_of("a: &x [1, 2]\nb: *x\n").find("job.yaml:1: anchors (&) and aliases (*)"),
            std::string::npos);
  EXPECT_NE(problems_of("b: *x\n").find("job.yaml:1: "), std::string::npos);
  EXPECT_NE(problems_of("name: !!binary aGVsbG8=\n").find("tags (\"tag:yaml.org,2002:binary\")"),
            std::string::npos);
  std::string laughs = "a0: &a0 [lol, lol]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
  }
  EXPECT_NE(problems_of(laughs).find("anchors"), std::string::npos);
}

TEST(hostile_spec, deep_nesting_is_refused) {
  for (const std::string& open : {std::string("["), std::string("{a: "), std::string("- "), std::string("? "),
                                  std::string("{"), std::string("[{")}) {
    const std::string found = problems_of(repeated(open, 100'000));
    EXPECT_FALSE(found.empty()) << open;
    EXPECT_LT(found.size(), 1000U) << open;
  }
  std::string staircase;
  for (int i = 0; i < 600; ++i) staircase += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_NE(problems_of(staircase).find("nested deeper than 32 levels"), std::string::npos);
}

TEST(hostile_spec, what_is_not_text_is_told_so) {
  EXPECT_EQ(problems_of("name: x\nmodel: \xff\xfe\n"), "job.yaml:2: byte 15 (0xff) is not UTF-8 text");
  EXPECT_EQ(problems_of(std::string("name: x\0y\n", 10)),
            "job.yaml:1: byte 7 is the control character 0x00; is this a text file?");
  EXPECT_EQ(problems_of("name: \x1b[31m\n"),
            "job.yaml:1: byte 6 is the control character 0x1b; is this a text file?");
  EXPECT_EQ(problems_of("\x7f"
                        "ELF"),
            "job.yaml:1: byte 0 is the control character 0x7f; is this a text file?");
}

TEST(hostile_spec, text_that_is_no_specification_is_an_error) {
  EXPECT_EQ(problems_of(""), "job.yaml: is empty");
  EXPECT_EQ(problems_of("# only a comment\n"), "job.yaml: is empty");
  EXPECT_NE(problems_of("just words\n")
                .find("expected keys (name, model, data, train, cluster, durability, observability), found "
                      "\"just words\""),
            std::string::npos);
  EXPECT_NE(problems_of("[1, 2]\n").find("found a list"), std::string::npos);
  EXPECT_NE(problems_of("a: b: c\n").find("job.yaml:1: not valid YAML: "), std::string::npos);
  EXPECT_NE(problems_of("a: [1, 2\n").find("not valid YAML"), std::string::npos);
  EXPECT_NE(problems_of(minimal_spec + "---\n" + minimal_spec).find("a second document"), std::string::npos);
  EXPECT_NE(problems_of("? [a, b]\n: 1\n").find("a key must be a word, found a list"), std::string::npos);
}

TEST(hostile_spec, thousands_of_problems_are_cut) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const std::string found = problems_of(text);
  EXPECT_NE(found.find("... and 4903 more"), std::string::npos) << found.substr(found.size() - 100);
}

/// Reads `prefix` and then `part` again and again up to `size` bytes; it must be refused in seconds
/// of processor time, sanitizers and all.
void expect_quick_refusal(const std::string& prefix, const std::string& part, std::size_t size) {
  const std::string text = prefix + repeated(part, (size - prefix.size()) / part.size());
  const std::clock_t begin = std::clock();
  EXPECT_FALSE(problems_of(text).empty()) << "prefix " << prefix << ", part " << part;
  EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC) << "prefix " << prefix << ", part " << part;
}

TEST(hostile_spec, the_same_over_and_over_is_refused_quickly) {
  const std::vector<std::string> parts = {
      "a",  "a: ",    "- a\n", "[",     "]",        "{",         "}",          ",",
      "a,", "\"",     "'",     "\n",    "# ",       "- ",        "!",          "&",
      "*",  "a: b\n", "%",     "|\n",   ">\n a\n",  "\t",        "--- ",       "...\n",
      "? ", ": ",     "\\",    "[a]: ", "{a: b}\n", "- - - a\n", "a: {b: c\n", "\xE2\x80\xA8"};
  for (const auto& part : parts)
    for (const char* prefix : {"", "name: ", "model: [", "name: \""})
      expect_quick_refusal(prefix, part, 64 * 1024);
}

TEST(hostile_spec, a_mebibyte_of_what_costs_most_is_refused_quickly) {
  for (const char* part : {"[", "- a\n", "--- ", "\\", "a: b\n"})
    expect_quick_refusal("", part, spec_bytes_max);
}

TEST(hostile_spec, a_file_cut_anywhere_or_with_any_byte_changed_never_crashes) {
  const std::string whole = with(minimal_spec, "sgd: {lr: 0.05}", "adam: {lr: 0.05, betas: [0.8, 0.9]}");
  ASSERT_EQ(problems_of(whole), "");
  for (std::size_t length = 0; length < whole.size(); ++length) (void)parse(whole.substr(0, length));
  std::mt19937 random(1);
  const std::string bytes = "{}[]:,-?&*!|>'\"%@`#\n\t \\0a~\x80\xff";
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (int i = 0; i < 4; ++i) {
      std::string broken = whole;
      broken[at] = bytes[random() % bytes.size()];
      (void)parse(broken);
      broken.insert(random() % broken.size(), 1, bytes[random() % bytes.size()]);
      (void)parse(broken);
    }
}

TEST(hostile_spec, terminal_escapes_in_values_are_shown_not_sent) {
  const std::string found = problems_of(with(minimal_spec, "workers: 2", "\"\\x1b[31mred\": 2"));
  EXPECT_EQ(found.find('\x1b'), std::string::npos);
  EXPECT_NE(found.find("\\x1b[31mred"), std::string::npos) << found;
}

} // namespace
} // namespace dlrun::job
