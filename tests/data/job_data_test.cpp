#include "data/job_data.hpp"

#include "tests/data/decoded_job.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

namespace dlrun::data {
namespace {

using testing::HasSubstr;

class job_data_test : public testing::Test {
protected:
  job_data_test() {
    job.write("images", test::idx_bytes({10, 2}, test::counting(20)));
    job.write("labels.gz", test::gzip(test::idx_bytes({10}, test::counting(10))));
  }
  const std::string train = "{train: {records: images, labels: labels.gz}";
  test::decoded_job job;
};

TEST_F(job_data_test, another_process_reads_the_same_through_the_descriptors) {
  const auto data =
      job.decode("{train: {records: images, labels: labels.gz, normalize: {std: 2}}, validation: {records: "
                 "images, labels: labels.gz}}");
  ASSERT_TRUE(data) << data.error().message;
  const auto memory = memory_of(*data);
  ASSERT_EQ(memory.size(), 4U);
  std::vector<std::shared_ptr<const blob>> inherited;
  for (const auto& each : memory) {
    ASSERT_GE(each->fd(), 0);
    auto mapped = blob::from_fd(::dup(each->fd()), each->name());
    ASSERT_TRUE(mapped) << mapped.error().message;
    inherited.push_back(std::make_shared<blob>(std::move(*mapped)));
  }
  job_data there;
  there.training = *from_message(to_message(data->training, memory), inherited);
  there.validation = *from_message(to_message(*data->validation, memory), inherited);
  for (const auto part : {data_part::training, data_part::validation}) {
    const auto here_part = open_part(*data, job.spec.data(), 7, part);
    const auto there_part = open_part(there, job.spec.data(), 7, part);
    ASSERT_TRUE(here_part && there_part);
    EXPECT_EQ(test::read_all(**here_part).records, test::read_all(**there_part).records);
    EXPECT_EQ(test::read_all(**here_part).classes, test::read_all(**there_part).classes);
    EXPECT_EQ((*there_part)->class_count(), 10U);
  }
}

TEST_F(job_data_test, a_message_that_makes_no_sense_is_refused) {
  const auto data = job.decode(train + "}");
  ASSERT_TRUE(data) << data.error().message;
  const auto memory = memory_of(*data);
  const auto right = to_message(data->training, memory);
  auto wrong = right;
  wrong.mutable_records()->set_memory(7);
  EXPECT_FALSE(from_message(wrong, memory));
  wrong = right;
  wrong.mutable_records()->set_dims(0, 1'000'000);
  EXPECT_FALSE(from_message(wrong, memory));
  wrong = right;
  wrong.mutable_targets()->set_type(99);
  EXPECT_FALSE(from_message(wrong, memory));
}

TEST_F(job_data_test, a_split_divides_the_training_records) {
  const auto data = job.decode(train + ", validation: {split: 0.3}}");
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_FALSE(data->validation);
  const auto training = open_part(*data, job.spec.data(), 7, data_part::training);
  const auto validation = open_part(*data, job.spec.data(), 7, data_part::validation);
  ASSERT_TRUE(training && validation);
  EXPECT_EQ((*training)->record_count(), 7U);
  auto all = test::read_all(**training).classes;
  const auto held_out = test::read_all(**validation).classes;
  EXPECT_EQ(held_out.size(), 3U);
  all.insert(all.end(), held_out.begin(), held_out.end());
  EXPECT_THAT(all, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)) << "each in one part";
  EXPECT_TRUE((*validation)->check_fits(std::vector<std::int64_t>{2}, target_kind::classes, 10));
  EXPECT_THAT(
      (*validation)->check_fits(std::vector<std::int64_t>{2}, target_kind::classes, 1).error().message,
      HasSubstr("but the model has only 1 outputs"));
}

TEST_F(job_data_test, the_memory_of_all_data_together_is_limited) {
  const std::string limited = "{memory_limit: 20B, " + train.substr(1);
  EXPECT_EQ(job.refusal(limited + "}"), "") << "14 bytes of labels; images are mapped";
  EXPECT_THAT(job.refusal(limited + ", validation: {records: images, labels: labels.gz}}"),
              HasSubstr("labels.gz: decoded it takes"));
}

/// Its names of classes, or words, are compared with those that the training data teaches.
TEST_F(job_data_test, validation_data_is_read_with_what_training_taught_or_not_at_all) {
  job.write("t.csv", "x,city,class\n1,Rome,pear\n2,Oslo,apple\n");
  const auto refusal = [&](const std::string& csv) {
    return job.refusal("{train: {format: csv, records: t.csv, csv: {target: class, columns: [{column: x}, "
                       "{column: city, type: categorical}]}}, validation: {records: t.csv, csv: {" +
                       csv + "}}}");
  };
  EXPECT_EQ(refusal("classes: [apple, pear]"), "") << "as they are learnt";
  EXPECT_THAT(refusal("classes: [pear, apple]"),
              HasSubstr("data.validation.csv.classes[0]: pear here, but apple in data.train"));
  EXPECT_EQ(refusal("columns: [{column: x}, {column: city, type: categorical, vocabulary: [Rome, Oslo]}]"),
            "");
  EXPECT_THAT(refusal("columns: [{column: x}, {column: city, type: categorical, vocabulary: [Oslo, Rome]}]"),
              HasSubstr("data.validation.csv.columns[1].vocabulary[0]: Oslo here, but Rome in data.train"));
}

TEST_F(job_data_test, what_nobody_has_to_learn_any_more_is_known) {
  job.write("t.csv", "x,city,class\n1,Rome,pear\n2,Oslo,apple\n");
  for (const char* keys : {"{format: csv, records: t.csv, csv: {target: class, columns: [{column: x, "
                           "standardize: true}, {column: "
                           "city, type: categorical}]}}",
                           "{format: csv, records: t.csv, csv: {target: class, columns: [{column: x}]}}"}) {
    const std::string data = "{train: " + std::string{keys} + "}";
    auto open = job::parse_spec("model: {input: [1], layers: [relu]}\ndata: " + data +
                                    "\ntrain: {optimizer: {sgd: {lr: 0.1}}}\n",
                                "job.yaml", job.folder.path())
                    .value();
    EXPECT_FALSE(has_what_is_learnt(open.data().train())) << keys;
    ASSERT_TRUE(job.decode(data));
    EXPECT_TRUE(has_what_is_learnt(job.spec.data().train())) << keys;
  }
  ASSERT_TRUE(job.decode(train + "}"));
  EXPECT_TRUE(has_what_is_learnt(job.spec.data().train())) << "nothing is learnt from images";
}

TEST_F(job_data_test, targets_are_what_the_loss_takes_unless_written) {
  ASSERT_TRUE(job.decode(train + "}", target_kind::values));
  EXPECT_EQ(job.spec.data().train().targets(), "values");
  ASSERT_TRUE(
      job.decode("{train: {records: images, labels: labels.gz, targets: classes}}", target_kind::values));
  EXPECT_EQ(job.spec.data().train().targets(), "classes");
}

} // namespace
} // namespace dlrun::data
