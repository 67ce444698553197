// Where parameters are read: over a channel that the test plays.
#include "actors/worker/parameter_sources.hpp"

#include "tests/actors/small_job.hpp"
#include "tests/actors/worker/played_channel.hpp"
#include "tests/data/files.hpp"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsNull;
using testing::NotNull;
using testing::SizeIs;

class parameter_sources_test : public testing::Test {
protected:
  static protocol::shard_state state(std::uint64_t start) {
    protocol::shard_state made;
    made.incarnation = {start};
    made.parameters.address = "start " + std::to_string(start);
    return made;
  }
  void get() {
    sources.get({0}, [this](const parameter_source& source) { got.push_back(source); });
  }
  /// The oldest question is answered; with nothing, that nobody is there.
  void answer(bool is_there) {
    auto one = std::move(channel.fetches.front());
    channel.fetches.pop_front();
    if (is_there)
      one.done(transport::segment::adopt(writer.shared().duplicate().value(), writer.shared().size()));
    else
      one.done(fail(error_code::system, "nobody listens"));
    run_posted();
  }
  void run_posted() {
    while (!posted.empty()) {
      const auto task = std::move(posted.front());
      posted.pop_front();
      task();
    }
  }

  test::temporary_folder folder;
  common::role_context context{.role = protocol::worker_role({0}),
                               .self = {},
                               .job = test::small_job(folder.path()),
                               .log = std::make_shared<spdlog::logger>("test")};
  transport::parameter_writer writer =
      transport::parameter_writer::create(context.job->shards.at(0).size).value();
  test::played_channel channel;
  std::deque<std::function<void()>> posted;
  parameter_sources sources{
      context, channel, {[this](const auto& task) { posted.push_back(task); }, nullptr}};
  std::vector<parameter_source> got;
};

TEST_F(parameter_sources_test, shared_memory_is_mapped_once_for_all_who_wait) {
  sources.follow(state(1));
  get();
  get();
  ASSERT_THAT(channel.fetches, SizeIs(1));
  EXPECT_EQ(channel.fetches.front().address, "start 1");
  EXPECT_THAT(sources.all(), ElementsAre(IsNull()));
  answer(true);
  EXPECT_THAT(got, ElementsAre(NotNull(), NotNull()));
  get();
  EXPECT_THAT(got, SizeIs(3)) << "at once";
  EXPECT_THAT(channel.fetches, IsEmpty());
  EXPECT_THAT(sources.all(), ElementsAre(NotNull()));
}

TEST_F(parameter_sources_test, copies_are_of_the_two_buffers_in_turn) {
  channel.shared = false;
  sources.follow(state(1));
  std::vector<transport::segment_piece> pieces;
  for (int i = 0; i < 3; ++i) {
    get();
    pieces.push_back(channel.fetches.front().part.values);
    answer(true);
  }
  EXPECT_NE(pieces[0], pieces[1]);
  EXPECT_EQ(pieces[0], pieces[2]);
  EXPECT_THAT(sources.all(), ElementsAre(IsNull())) << "a copy is for one version";
}

TEST_F(parameter_sources_test, what_cannot_be_had_is_null_and_asked_for_anew) {
  sources.follow(state(1));
  get();
  answer(false);
  EXPECT_THAT(got, ElementsAre(IsNull()));
  get();
  EXPECT_THAT(channel.fetches, SizeIs(1));
}

TEST_F(parameter_sources_test, who_waits_for_a_start_that_is_replaced_is_answered) {
  sources.follow(state(1));
  get();
  sources.follow(state(2));
  EXPECT_THAT(got, IsEmpty()) << "later";
  run_posted();
  EXPECT_THAT(got, ElementsAre(IsNull()));
  get();
  ASSERT_THAT(channel.fetches, SizeIs(2));
  EXPECT_EQ(channel.fetches.back().address, "start 2");
  answer(true); // of the first
  EXPECT_THAT(got, SizeIs(1));
  answer(true);
  EXPECT_THAT(got, ElementsAre(IsNull(), NotNull()));
}

} // namespace
} // namespace dlrun::worker
