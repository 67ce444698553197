#include "kubernetes/host_pods.hpp"

#include "tests/kubernetes/played_cluster.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace dlrun::kubernetes {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t seeds = 100;
constexpr auto look_every = 100ms;
constexpr std::uint32_t slots_at_most = 6;

/// Random faults of server, nodes and pods, then none: what holds all the time, and in the end.
class scenario {
public:
  explicit scenario(std::uint64_t seed)
      : cluster_{seed}
      , client_{cluster_.make_client()}
      , requests_{client_,
                  {.job = "job",
                   .own_pod = "control",
                   .pod_template = nlohmann::json::parse(R"({"spec": {"containers": [{"image": ""}]}})")}} {
    cluster_.wanted = 1 + static_cast<std::uint32_t>(cluster_.below(slots_at_most));
    may_be_made_ = cluster_.wanted;
    begin();
  }

  void run() {
    const auto faults_end = cluster_.now + 3min;
    while (cluster_.now < faults_end && !testing::Test::HasFailure()) {
      if (cluster_.chance() < 0.02) disturb();
      if (cluster_.chance() < 0.002) begin(); // a root that is started again
      look();
    }
    cluster_.is_away = false;
    cluster_.loss = cluster_.refusal = 0;
    const auto end = cluster_.now + 2min;
    while (cluster_.now < end && !testing::Test::HasFailure()) look();
    check_whole();
  }

private:
  void begin() {
    pods_.emplace(requests_, client_,
                  host_pods_options{.tell = [](const auto&) {}, .warn = [](const auto&) {}});
    cluster_.watch_anew();
  }

  void look() {
    for (auto& one : cluster_.news()) pods_->on_news(std::move(one));
    pods_->hosts_are(cluster_.sights());
    pods_->pass();
    check();
    cluster_.pass(look_every);
    check();
  }

  void disturb() {
    const auto all = cluster_.uids();
    if (all.empty()) return;
    const auto& uid = all[cluster_.below(all.size())];
    switch (cluster_.below(9)) {
    case 0: cluster_.cut_off(uid); break;
    case 1: cluster_.come_back(uid); return;
    case 2: cluster_.crash(uid); break;
    case 3: cluster_.evict(uid); break;
    case 4: cluster_.remove(uid); break;
    case 5: cluster_.is_away = !cluster_.is_away; return;
    case 6: cluster_.loss = cluster_.chance() < 0.5 ? 0 : 0.4; return;
    case 7: cluster_.refusal = cluster_.chance() < 0.5 ? 0 : 0.5; return;
    default: scale(); return;
    }
    ++may_be_made_;
  }

  void scale() {
    cluster_.wanted = static_cast<std::uint32_t>(cluster_.below(slots_at_most + 1));
    may_be_made_ += cluster_.wanted;
    cluster_.lateness = std::chrono::milliseconds{cluster_.below(3000)};
  }

  void check() {
    std::map<std::uint32_t, int> alive;
    for (const auto& [uid, pod] : cluster_.pods)
      if (cluster_.is_alive(pod) && !pod.was_given_up) ++alive[pod.told.slot];
    for (const auto& [slot, count] : alive)
      ASSERT_LE(count, 1) << "slot " << slot << " has pods beside one that is as it should be";
    ASSERT_LE(cluster_.created, may_be_made_) << "for one that went there is one more, at most";
  }

  void check_whole() {
    std::map<std::uint32_t, int> alive;
    for (const auto& [uid, pod] : cluster_.pods) {
      if (pod.is_cut_off) continue; // nobody can say of it that it is gone
      ASSERT_FALSE(pod.told.is_going) << pod.told.name;
      ASSERT_TRUE(cluster_.is_alive(pod)) << pod.told.name << " has ended, and is not deleted";
      ++alive[pod.told.slot];
      EXPECT_EQ(cluster_.hosts[pod.told.slot].uid, uid) << pod.told.name << " is in";
    }
    EXPECT_EQ(alive.size(), cluster_.wanted - cut_off_unseen());
    for (const auto& [slot, count] : alive) {
      EXPECT_EQ(count, 1) << slot;
      EXPECT_LT(slot, cluster_.wanted);
    }
  }

  /// Slots whose pod is on a dead node and never joined: the job does not miss it; Kubernetes does.
  std::size_t cut_off_unseen() const {
    std::size_t all = 0;
    for (const auto& [uid, pod] : cluster_.pods)
      if (pod.is_cut_off && cluster_.is_alive(pod)) ++all;
    return all;
  }

  played_cluster cluster_;
  api_client client_;
  pod_requests requests_;
  std::optional<host_pods> pods_;
  std::uint32_t may_be_made_ = 0;
};

TEST(pod_convergence, whatever_fails_each_slot_has_one_pod_that_lives_and_is_in_the_job) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    scenario one{seed};
    one.run();
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

} // namespace
} // namespace dlrun::kubernetes
