#include "actors/agent/host_losses.hpp"

#include <gtest/gtest.h>

namespace dlrun::agent {
namespace {

using protocol::keeper_role;
using protocol::ps_shard_role;

/// Two PS shards, on alpha and beta; the copies of both are on gamma. The root is on alpha.
class host_losses_test : public testing::Test {
protected:
  host_losses_test() {
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      places.keep(ps_shard_role({shard}), shard == 0 ? "alpha" : "beta", "");
      places.keep(keeper_role({shard}), "gamma", "");
      roles.push_back({ps_shard_role({shard}), 100, {1}, "training"});
      roles.push_back({keeper_role({shard}), 200, {1}, "whole"});
    }
  }
  std::string lost(const std::string& host) const { return lost(host, places); }
  std::string lost(const std::string& host, const placement& at) const {
    const auto all = losses_by_host("alpha", roles, at);
    return all.contains(host) ? all.at(host) : "";
  }
  role_view& keeper_of_1() { return roles[3]; }

  placement places{"alpha", 1};
  std::vector<role_view> roles;
};

TEST_F(host_losses_test, with_the_host_of_the_root_the_run_is_lost) {
  EXPECT_EQ(lost("alpha"), "the run folder, and with it the run");
}

TEST_F(host_losses_test, while_all_copies_are_whole_nothing_is_lost_with_any_other) {
  EXPECT_EQ(lost("beta"), "");
  EXPECT_EQ(lost("gamma"), "") << "the PS shards have what the copies have";
}

TEST_F(host_losses_test, a_copy_that_is_not_whole_saves_nothing) {
  keeper_of_1().state = "filling";
  EXPECT_EQ(lost("beta"), "all that ps_shard 1 has committed");
  EXPECT_EQ(lost("gamma"), "");
  keeper_of_1() = {keeper_role({1}), 0, {1}, "whole"};
  EXPECT_EQ(lost("beta"), "all that ps_shard 1 has committed") << "it does not run";
}

TEST_F(host_losses_test, one_of_several_that_is_whole_elsewhere_saves_all) {
  keeper_of_1().state = "filling";
  places.keep(keeper_role({1}, 1), "delta", "");
  roles.push_back({keeper_role({1}, 1), 300, {1}, "whole"});
  EXPECT_EQ(lost("beta"), "");
  EXPECT_EQ(lost("delta"), "");
  places.keep(ps_shard_role({1}), "delta", "");
  EXPECT_EQ(lost("delta"), "all that ps_shard 1 has committed") << "its copy is there, too";
}

TEST_F(host_losses_test, nor_does_one_on_the_same_host_or_none) {
  places.keep(keeper_role({1}), "beta", "");
  EXPECT_EQ(lost("beta"), "all that ps_shard 1 has committed");
  places.keep(ps_shard_role({0}), "beta", "");
  roles = {roles[0], roles[2]};
  EXPECT_EQ(lost("beta"), "all that ps_shard 0, 1 has committed");
}

TEST_F(host_losses_test, before_roles_have_a_place_only_the_root_matters) {
  const placement none{"alpha", 1};
  EXPECT_EQ(lost("beta", none), "");
}

} // namespace
} // namespace dlrun::agent
