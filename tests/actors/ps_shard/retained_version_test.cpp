#include "actors/ps_shard/retained_version.hpp"

#include "actors/ps_shard/retained_choice.hpp"
#include "tests/actors/ps_shard/shard_fixture.hpp"
#include "tests/data/files.hpp"

#include <csignal>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlrun::ps_shard {
namespace {

using common::retained_memory;
using testing::HasSubstr;

/// Another pair of descriptors, as a start inherits them.
retained_memory inherited(const retained_memory& held) {
  return {base::unique_fd(::fcntl(held.parameters.get(), F_DUPFD_CLOEXEC, 3)),
          base::unique_fd(::fcntl(held.state.get(), F_DUPFD_CLOEXEC, 3))};
}

class retained_version_test : public testing::TestWithParam<const char*> {
protected:
  std::shared_ptr<const common::job_context> job(const std::vector<std::string>& more = {}) const {
    auto all = more;
    all.push_back(std::string{"train.optimizer={"} + GetParam() + "}");
    return test::small_job(folder.path(), all);
  }
  test::training_shard start(const std::shared_ptr<const common::job_context>& of,
                             const retained_memory& held) const {
    return {of, shard_parameters::create_empty(of, {0}, inherited(held)).value()};
  }
  result<retained_version> find(const std::shared_ptr<const common::job_context>& of,
                                const retained_memory& held) const {
    return retained_version::open(inherited(held), shard_parameters::create(of, {0}).value().retained());
  }

  test::temporary_folder folder;
};

INSTANTIATE_TEST_SUITE_P(optimizers, retained_version_test,
                         testing::Values("sgd: {lr: 0.1}", "sgd: {lr: 0.1, momentum: 0.9}",
                                         "adam: {lr: 0.1, amsgrad: true}",
                                         "rmsprop: {lr: 0.1, centered: true, momentum: 0.9}"));

TEST_P(retained_version_test, a_later_start_goes_on_with_the_same_bits) {
  const auto context = job();
  test::training_shard undisturbed{context};
  const auto held = retained_memory::create().value();
  {
    auto first = start(context, held);
    EXPECT_TRUE(first.parameters.reset({0}));
    for (int i = 0; i < 5; ++i) first.train();
  }
  EXPECT_EQ(held.newest(), (transport::whole_version{{0}, {5}}));
  const auto former = find(context, held);
  ASSERT_TRUE(former) << former.error().message;
  EXPECT_EQ(former->version(), version_id{5});
  EXPECT_TRUE(former->has_previous());

  const auto own = retained_memory::create().value();
  auto later = start(context, own);
  later.parameters.take_over(*former);
  later.version = {5};
  later.ledger = former->extra().snapshot.ledger;
  for (int i = 0; i < 5; ++i) undisturbed.train();
  EXPECT_EQ(later.digests(), undisturbed.digests());
  EXPECT_EQ(later.ledger, undisturbed.ledger);
  EXPECT_EQ(former->extra().snapshot.metrics, undisturbed.metrics.sums());
  EXPECT_EQ(own.newest(), (transport::whole_version{{0}, {5}}));
  for (int i = 0; i < 3; ++i) {
    later.train();
    undisturbed.train();
  }
  EXPECT_EQ(later.digests(), undisturbed.digests());
  EXPECT_EQ(find(context, own)->extra().snapshot.metrics, undisturbed.metrics.sums());
}

/// What is half made counts for nothing, whenever the process dies.
TEST_P(retained_version_test, a_death_in_the_middle_of_a_step_leaves_the_version_before) {
  const auto context = job();
  test::training_shard undisturbed{context};
  const auto held = retained_memory::create().value();
  {
    auto first = start(context, held);
    EXPECT_TRUE(first.parameters.reset({0}));
    for (int i = 0; i < 3; ++i) first.train();
    const std::vector<float> root(first.parameters.range().size, 1.0F);
    const auto shape = shape_of(context->sampler, {3}, 0, {});
    first.parameters.apply_early({0}, {3}, shape, root.size() / 2, test::whole_root(root), {});
  }
  const auto former = find(context, held);
  ASSERT_TRUE(former) << former.error().message;
  EXPECT_EQ(former->version(), version_id{3});
  EXPECT_FALSE(former->has_previous()) << "its buffer was being written";
  auto later = start(context, retained_memory::create().value());
  later.parameters.take_over(*former);
  for (int i = 0; i < 3; ++i) undisturbed.train();
  EXPECT_EQ(later.digests(), undisturbed.digests());
}

/// Who dies meanwhile leaves nothing that could be taken for a version, so that what it takes over
/// stays the newest.
TEST_P(retained_version_test, no_version_is_whole_while_one_is_taken_over) {
  const auto context = job();
  const auto held = retained_memory::create().value();
  auto first = start(context, held);
  EXPECT_TRUE(first.parameters.reset({0}));
  for (int i = 0; i < 3; ++i) first.train();
  const auto own = retained_memory::create().value();
  auto later = start(context, own);
  later.parameters.take_over(*find(context, held));
  EXPECT_EQ(transport::whole_versions(own.parameters.get()).size(), 2U);
  EXPECT_EQ(transport::whole_versions(own.state.get()).size(), 1U) << "of the newest alone";
}

/// Wherever SIGKILL finds it: of many, each at another moment.
TEST_P(retained_version_test, a_process_that_is_killed_leaves_a_whole_version) {
  const auto context = job({"train.epochs=100"});
  std::vector<std::string> digests;
  test::training_shard undisturbed{context};
  digests.push_back(undisturbed.digests());
  while (undisturbed.version.value < context->steps()) {
    undisturbed.train();
    digests.push_back(undisturbed.digests());
  }
  for (int kill = 0; kill < 30; ++kill) {
    const auto held = retained_memory::create().value();
    const auto child = ::fork();
    if (child == 0) {
      auto first = start(context, held);
      EXPECT_TRUE(first.parameters.reset({0}));
      while (first.version.value < context->steps()) first.train();
      ::_exit(0);
    }
    const auto wanted = static_cast<std::uint64_t>(kill * 5);
    while (!held.newest() || held.newest()->version.value < wanted) ::sched_yield();
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const auto former = find(context, held);
    if (!former) { // killed before its first step
      EXPECT_THAT(former.error().message, HasSubstr("one that was loaded"));
      continue;
    }
    auto later = start(context, retained_memory::create().value());
    later.parameters.take_over(*former);
    ASSERT_EQ(later.digests(), digests.at(former->version().value)) << "version " << former->version().value;
  }
}

TEST_P(retained_version_test, norms_of_the_newest_steps_come_back) {
  const auto context = job({"train.clip_norm=0.1"});
  const auto held = retained_memory::create().value();
  auto first = start(context, held);
  EXPECT_TRUE(first.parameters.reset({0}));
  std::map<step_id, norm_partials> expected;
  for (int i = 0; i < 6; ++i) {
    const auto made = first.train();
    if (i >= 2) expected[made.step] = common::decode_step_extra(made.extra)->partials;
  }
  EXPECT_EQ(find(context, held)->extra().partials, expected);
}

TEST_P(retained_version_test, what_was_loaded_or_is_of_another_job_or_is_nothing_is_refused) {
  const auto context = job();
  const auto held = retained_memory::create().value();
  EXPECT_FALSE(find(context, held)) << "empty memory";
  auto first = start(context, held);
  EXPECT_FALSE(find(context, held)) << "no version yet";
  EXPECT_TRUE(first.parameters.reset({0}));
  EXPECT_THAT(find(context, held).error().message, HasSubstr("one that was loaded"));
  first.train();
  EXPECT_TRUE(find(context, held));
  EXPECT_FALSE(find(job({"cluster.ps_shards=2"}), held)) << "another range";
  first.parameters.withdraw();
  EXPECT_THAT(find(context, held).error().message, HasSubstr("no version in memory is whole"));
}

// ---- which version is begun with

loaded_standing stored(std::uint64_t version, const protocol::history& history = protocol::first_history()) {
  loaded_standing standing{.history = history, .version = {version}};
  return standing;
}

TEST(retained_choice, takes_what_is_further_than_the_store_leads) {
  EXPECT_TRUE(begins_with_retained({0}, {8}, stored(7), {}));
  EXPECT_TRUE(begins_with_retained({0}, {7}, stored(7), {})) << "with the version before it, and norms";
  EXPECT_FALSE(begins_with_retained({0}, {6}, stored(7), {}));
}

TEST(retained_choice, leaves_a_timeline_that_all_have_left) {
  const protocol::history left{{{0}, {0}, 0, {}}, {{1}, {3}, 0, {}}};
  EXPECT_FALSE(begins_with_retained({0}, {8}, stored(3, left), {}));
  EXPECT_TRUE(begins_with_retained({1}, {8}, stored(3, left), {}));
}

TEST(retained_choice, goes_back_for_a_version_that_must_have_a_snapshot) {
  EXPECT_FALSE(begins_with_retained({0}, {8}, stored(3), {{5}}));
  EXPECT_TRUE(begins_with_retained({0}, {8}, stored(3), {{3}, {8}, {12}})) << "8 is there, and can have one";
}

} // namespace
} // namespace dlrun::ps_shard
