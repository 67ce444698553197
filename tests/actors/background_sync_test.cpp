#include "actors/ps_shard/background_sync.hpp"

#include "tests/persistence/store_fixture.hpp"

#include <future>
#include <gmock/gmock.h>

namespace dlrun::ps_shard {
namespace {

using operation = test::faulty_file_system::operation;

class background_sync_test : public test::store_test {};

TEST_F(background_sync_test, what_is_appended_is_synced_though_nobody_asks) {
  const auto store = persistence::shard_store::open(options(1)).value();
  const background_sync sync{*store, [](const error& why) { FAIL() << why.message; },
                             std::chrono::milliseconds(1)};
  ASSERT_TRUE(append(*store, 0, 5));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (store->synced_end() < step_id{5}) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    std::this_thread::yield();
  }
}

TEST_F(background_sync_test, tells_of_a_sync_that_failed_and_ends) {
  const auto store = persistence::shard_store::open(options(1)).value();
  ASSERT_TRUE(append(*store, 0, 5));
  files->fail(operation::sync, "/log/");
  std::promise<std::string> told;
  {
    const background_sync sync{*store, [&](const error& why) { told.set_value(why.message); },
                               std::chrono::milliseconds(1)};
    EXPECT_THAT(told.get_future().get(), testing::HasSubstr(options(1).directory));
  }
}

} // namespace
} // namespace dlrun::ps_shard
