/// pod_admission: as which pods hosts may join.
#pragma once

#include "kubernetes/known_pods.hpp"
#include "kubernetes/planted_bug.hpp"
#include "kubernetes/pod_watch.hpp"

#include <map>
#include <string>

namespace dlrun::kubernetes {

/// The pod of a host that wants to join, as that says.
struct arriving_pod {
  pod_slot slot{};
  std::string uid{}; ///< "": it does not say
  std::string address{};
};

/// Pure: holds what a host says against what the API server says (R46).
class pod_admission {
public:
  explicit pod_admission(planted_bug bug = planted_bug::none)
      : bug_{bug} {}

  void on_news(const pod_news& news);
  /// The server has made it, at `now`, and the watch may tell of it later.
  void on_created(const pod_record& made, time_point now);
  /// The server cannot be asked: until it was heard once, nothing is held against it.
  void on_silence() { may_trust_ = true; }

  /// @returns why it may not join now; "": it may
  std::string why_not(const arriving_pod& who) const;

private:
  void list(const pod_listing& all);
  std::string why_to_go(const pod_record& pod) const;

  planted_bug bug_;
  known_pods pods_;
  std::map<std::string, time_point> made_; ///< by uid: of which the watch has not told
  bool is_listed_ = false;
  bool may_trust_ = false;
};

} // namespace dlrun::kubernetes
