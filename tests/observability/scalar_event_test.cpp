#include "observability/scalar_event.hpp"

#include "data/tfrecord_file.hpp"
#include "proto/tensorboard_event.pb.h"
#include "tests/data/files.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace dlrun::observability {
namespace {

/// The event in a framed record.
tensorboard::Event event_in(const std::string& record) {
  const test::temporary_folder folder;
  auto file = data::tfrecord_file::open(folder.write("one", test::text_bytes(record))).value();
  EXPECT_TRUE(file.next().value());
  tensorboard::Event event;
  EXPECT_TRUE(event.ParseFromArray(file.record().data(), static_cast<int>(file.record().size())));
  EXPECT_FALSE(file.next().value()) << "more than one";
  return event;
}

// Every event file of TensorFlow's begins with these bytes: 24 as a 64-bit number, its masked
// checksum, the tag of wall_time.
TEST(scalar_event, a_file_begins_as_those_of_tensorflow_do) {
  const std::string tensorflow{"\x18\0\0\0\0\0\0\0\xa3\x7fK\"\t", 13};
  EXPECT_EQ(file_head(1.7e9).substr(0, tensorflow.size()), tensorflow);
  const auto event = event_in(file_head(1.7e9));
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  EXPECT_EQ(event.wall_time(), 1.7e9);
}

TEST(scalar_event, scalars_keep_tag_step_and_value) {
  const std::vector<scalar> scalars{{"train/loss", 0.1}, {"train/accuracy", 0}};
  const auto event = event_in(scalars_event(12, 3.5, scalars));
  EXPECT_EQ(event.step(), 12);
  ASSERT_EQ(event.summary().value_size(), 2);
  EXPECT_EQ(event.summary().value(0).tag(), "train/loss");
  EXPECT_EQ(event.summary().value(0).simple_value(), 0.1F);
  EXPECT_TRUE(event.summary().value(1).has_simple_value()) << "a zero is a value";
}

TEST(scalar_event, what_is_no_number_stays_none) {
  const std::vector<scalar> scalars{{"a", std::nan("")}, {"b", std::numeric_limits<double>::infinity()}};
  const auto event = event_in(scalars_event(1, 0, scalars));
  EXPECT_TRUE(std::isnan(event.summary().value(0).simple_value()));
  EXPECT_TRUE(std::isinf(event.summary().value(1).simple_value()));
}

TEST(scalar_event, a_restart_names_the_first_step_that_is_void) {
  const auto event = event_in(restart_event(7, 3.5));
  EXPECT_EQ(event.session_log().status(), tensorboard::SessionLog::START);
  EXPECT_EQ(event.step(), 7);
}

} // namespace
} // namespace dlrun::observability
