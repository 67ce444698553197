#include "actors/agent/known_stores.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

constexpr ps_shard_id wanted{1};

class known_stores_test : public testing::Test {
protected:
  static protocol::held_store store(std::uint64_t opener, std::uint64_t timeline, std::uint64_t end) {
    return {.shard = wanted, .opener = {opener}, .timeline = {timeline}, .end = {end}};
  }
  /// "": there is none.
  std::string best() const {
    const auto* found = stores.best(wanted, [this](const std::string& host) -> std::optional<int> {
      if (host == away) return std::nullopt;
      return host == preferred ? 1 : 0;
    });
    return found == nullptr ? "" : *found;
  }

  known_stores stores;
  std::string away;
  std::string preferred;
};

TEST_F(known_stores_test, the_best_is_of_the_highest_timeline_then_the_furthest_then_opened_last) {
  EXPECT_EQ(best(), "");
  stores.set("alpha", {store(1, 0, 20)});
  stores.set("beta", {store(2, 0, 20)});
  EXPECT_EQ(best(), "beta");
  stores.set("gamma", {store(1, 0, 30)});
  EXPECT_EQ(best(), "gamma");
  stores.set("alpha", {store(1, 1, 10)});
  EXPECT_EQ(best(), "alpha");
}

TEST_F(known_stores_test, of_equals_it_is_the_one_that_is_preferred_then_the_first_by_name) {
  for (const auto* host : {"gamma", "beta", "alpha"}) stores.set(host, {store(1, 0, 20)});
  EXPECT_EQ(best(), "alpha");
  preferred = "beta";
  EXPECT_EQ(best(), "beta");
  stores.note("gamma", store(1, 0, 21));
  EXPECT_EQ(best(), "gamma") << "it is better";
}

TEST_F(known_stores_test, what_does_not_count_is_kept) {
  stores.set("alpha", {store(1, 0, 20)});
  stores.set("beta", {store(1, 0, 30)});
  away = "beta";
  EXPECT_EQ(best(), "alpha");
  ASSERT_NE(stores.find("beta", wanted), nullptr);
  EXPECT_EQ(stores.find("beta", wanted)->end, step_id{30});
}

TEST_F(known_stores_test, a_host_that_tells_anew_holds_nothing_else) {
  stores.note("alpha", store(1, 0, 20));
  EXPECT_EQ(stores.find("alpha", {0}), nullptr);
  EXPECT_EQ(stores.find("beta", wanted), nullptr);
  stores.set("alpha", {});
  EXPECT_EQ(stores.find("alpha", wanted), nullptr);
  EXPECT_EQ(best(), "");
}

} // namespace
} // namespace dlrun::agent
