/// A pod_plan under made-up time, and pods to tell it of.
#pragma once

#include "kubernetes/pod_plan.hpp"

#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <variant>
#include <vector>

namespace dlrun::kubernetes::test {

using namespace std::chrono_literals;

inline constexpr auto owner = "owner";

inline pod_record pod(std::uint32_t slot, std::uint32_t incarnation, pod_phase phase = pod_phase::running) {
  return {.name = fmt::format("job-hosts-{}-{}", slot, incarnation),
          .uid = fmt::format("u{}-{}", slot, incarnation),
          .owner = owner,
          .address = fmt::format("10.0.{}.{}", slot, incarnation),
          .slot = slot,
          .incarnation = incarnation,
          .phase = phase,
          .runs = phase == pod_phase::running};
}

inline pod_record changed(pod_record one, const std::function<void(pod_record&)>& change) {
  change(one);
  return one;
}

/// A plan, made-up time, and what the job says of its hosts.
class pod_plan_test : public testing::Test {
protected:
  /// "+0-1" makes an incarnation, "-u0-1" deletes a pod.
  std::vector<std::string> next() {
    std::vector<std::string> all;
    actions = plan.next({owner, count, ps_count}, hosts, now);
    for (const auto& one : actions)
      if (const auto* made = std::get_if<create_pod>(&one))
        all.push_back(fmt::format("+{}{}-{}", made->slot.group == pod_group::ps ? "ps" : "", made->slot.index,
                                  made->incarnation));
      else
        all.push_back("-" + std::get<delete_pod>(one).uid);
    return all;
  }
  std::string why() const {
    return actions.empty() ? "" : std::visit([](const auto& one) { return one.why; }, actions.front());
  }
  void list(std::vector<pod_record> all) { plan.on_news(pod_listing{std::move(all), now}); }
  /// Its pod is there, and its host in the job.
  void join(const pod_record& one) {
    plan.on_news(one);
    (*hosts)[one.slot] = {host_standing::there, one.address};
  }
  void lose(std::uint32_t slot) { (*hosts)[slot].standing = host_standing::away; }
  /// Made, as next() said, and told of.
  void make(const pod_record& one) {
    plan.on_created({one.slot, one.incarnation, ""}, one, now);
    plan.on_news(one);
  }

  pod_plan plan;
  std::uint32_t count = 1, ps_count = 0;
  std::optional<host_sights> hosts{host_sights{}};
  time_point now{1h};
  std::vector<pod_action> actions{};
};

} // namespace dlrun::kubernetes::test
