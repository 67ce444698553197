#include "job/spec_writer.hpp"

#include "tests/data/files.hpp"
#include "tests/job/spec_text.hpp"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using test::minimal_spec, test::parse, test::with;

void expect_round_trip(const spec::JobSpec& spec) {
  const std::string text = write_spec(spec);
  const auto again = parse_spec(text, "elsewhere.yaml", "/elsewhere");
  ASSERT_TRUE(again) << again.error().message << "\n" << text;
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*again, spec)) << text;
  EXPECT_EQ(write_spec(*again), text);
}

TEST(spec_writer, what_it_writes_reads_back_as_the_same_message) {
  const auto spec =
      parse(with(with(minimal_spec, "[flatten,",
                      "[{conv2d: {out_channels: 4, kernel_size: 3}, name: c}, {max_pool2d: {kernel_size: "
                      "2}}, relu, dropout, "
                      "{batch_norm: {eps: 1.0000000000000002e-5}}, {flatten: {}, inputs: [c]},"),
                 "sgd: {lr: 0.05}", "adam: {lr: 0.1, betas: [0.30000000000000004, 0.1]}"),
            {"data.validation={records: a, labels: b}", "train.seed=18446744073709551615",
             "cluster.placement=threads", "model.loss={huber: {delta: 0.30000000000000004}}",
             "model.metrics=[mae, {top_k: {k: 3}}]", "train.clip_norm=0.30000000000000004",
             "train.lr_schedule={multi_step: {milestones: [3, 7]}, unit: epoch, warmup_steps: 5}"});
  ASSERT_TRUE(spec) << spec.error().message;
  expect_round_trip(*spec);
}

TEST(spec_writer, writes_names_and_texts_of_the_users_own_in_order) {
  auto spec = parse(with(minimal_spec, "{records: images, labels: labels}",
                         "{format: mine, records: x, options: {zebra: 3, 'a b': \"\", depth: 'true: no'}}"));
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->data().train().options().at("zebra"), "3");
  expect_round_trip(*spec);
  EXPECT_NE(write_spec(*spec).find("options: {\"a b\": \"\", depth: \"true: no\", zebra: \"3\"}"),
            std::string::npos);
}

TEST(spec_writer, keeps_everything_that_data_can_teach) {
  auto spec = parse(with(
      minimal_spec, "{records: images, labels: labels}",
      "{format: csv, records: x, csv: {target: [a, b], header: false, delimiter: tab, columns: "
      "[{column: c, type: categorical, vocabulary: ['', yes, '1']}, {column: d, mean: 1e-7, std: 3}]}}"));
  ASSERT_TRUE(spec) << spec.error().message;
  spec->mutable_data()->mutable_train()->mutable_csv()->add_classes("gr\xc3\xbc\xc3\x9f\"e");
  spec->mutable_data()->mutable_train()->mutable_csv()->mutable_target()->RemoveLast();
  expect_round_trip(*spec);
}

TEST(spec_writer, keeps_odd_texts) {
  for (const char* text : {"/a b",
                           "/it's",
                           "/\"quoted\"",
                           "/back\\slash",
                           "/#hash",
                           "/a: b",
                           "/ends in space ",
                           "/tab\there",
                           "/line\nbreak",
                           "/gr\xc3\xbc\xc3\x9f\x65",
                           "/\xf0\x9f\x9a\x80",
                           "/{a}",
                           "/[0]",
                           "/&x",
                           "/%",
                           "/@",
                           "/\x7f",
                           "/\x01",
                           "/\xc2\x85",
                           "/\xe2\x80\xa8"}) {
    auto spec = *parse(minimal_spec);
    spec.mutable_data()->mutable_train()->set_records(text);
    expect_round_trip(spec);
  }
  for (const char* name : {"null", "true", "no", "1", "1e3", "0x10", "12.5", "y", "2024-01-01", "a-b_c.d"}) {
    auto spec = *parse(minimal_spec);
    spec.set_name(name);
    expect_round_trip(spec);
  }
}

TEST(spec_writer, keeps_every_bit_of_numbers) {
  for (const double number :
       {0.1, 1.0 / 3, 5e-324, 2.2250738585072014e-308, 123456.789, 1e-300, 0.0, -0.0, 999999.99999999988}) {
    auto spec = *parse(minimal_spec);
    spec.mutable_train()->mutable_optimizer()->mutable_sgd()->set_lr(number);
    expect_round_trip(spec);
  }
}

TEST(spec_writer, writes_a_readable_file) {
  const test::temporary_folder folder;
  const auto spec = parse(minimal_spec);
  const auto file = folder.path() / "job.yaml";
  ASSERT_TRUE(write_spec_file(file, *spec));
  const auto again = read_spec(file);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->SerializeAsString(), spec->SerializeAsString());
  EXPECT_FALSE(write_spec_file(folder.path() / "missing" / "job.yaml", *spec));
}

TEST(spec_writer, writes_a_key_a_line_and_a_layer_a_line) {
  const std::string text = write_spec(*parse(minimal_spec));
  EXPECT_NE(text.find("\n  layers:\n    - {name: flatten0, flatten: {}}\n    - {name: linear1, linear: "
                      "{out_features: 10, bias: true}}\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n    records: /base/images\n"), std::string::npos) << text;
}

} // namespace
} // namespace dlrun::job
