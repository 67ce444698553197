/// A cluster that tests play: API server, nodes, kubelets, and the hosts that join a job from pods.
#pragma once

#include "kubernetes/pod_requests.hpp"
#include "tests/data/files.hpp"
#include "tests/kubernetes/join_witness.hpp"

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

/// Made-up time; all chance comes from the seed. The truth is here: what the API server has, what
/// runs, and who is let in to the job, one agent a name.
class played_cluster final : public api_transport {
public:
  struct pod_truth {
    pod_record told{};                   ///< as the API server has it
    bool is_cut_off = false;             ///< its node is dead, as far as anybody sees
    std::optional<time_point> runs_at{}; ///< its container starts then; nothing: it runs
    std::optional<time_point> ends_at{}; ///< it is deleted, and its kubelet knows
    std::uint64_t boot = 0;              ///< of its agent
    /// By the job; until it has been back for longer than a request takes that was under way then.
    bool was_given_up = false;
    std::optional<time_point> back_since{};
  };
  struct host_truth {
    std::string uid{}; ///< of the pod whose agent is in; "": none
    std::string address{};
    std::optional<time_point> lost_at{}; ///< the job gives it up then
  };

  explicit played_cluster(std::uint64_t seed);

  result<base::http_answer> send(const base::http_request& request,
                                 std::chrono::milliseconds deadline) override;
  result<base::http_answer> stream(const base::http_request&, const base::http_stream&) override {
    return fail(error_code::system, "what is watched is told otherwise");
  }

  api_client make_client();
  double chance() { return std::uniform_real_distribution<double>{0, 1}(random_); }
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>{0, bound - 1}(random_);
  }

  // what goes on
  void pass(std::chrono::milliseconds time);
  /// What the watch tells by now; sometimes all of it anew.
  std::vector<pod_news> news();
  /// Somebody else watches from now on.
  void watch_anew() {
    is_listed_ = false;
    witness.forget();
  }
  host_sights sights() const;

  join_witness witness{};

  // faults, of a pod by its uid
  void cut_off(const std::string& uid);
  void come_back(const std::string& uid);
  /// @returns whether its host was in the job, and its pod is told of and runs again so soon that
  /// nobody needs another one
  bool crash(const std::string& uid, bool is_out_of_memory = false);
  void evict(const std::string& uid);
  void remove(const std::string& uid);

  std::vector<std::string> uids() const;
  bool is_alive(const pod_truth& pod) const;

  std::map<std::string, pod_truth> pods{}; ///< by uid
  std::map<pod_slot, host_truth> hosts{};
  std::uint32_t wanted = 0;
  std::uint32_t wanted_ps = 0;
  std::uint32_t created = 0;
  std::uint32_t refusals = 0; ///< of pods
  std::uint32_t nodes = 1;
  std::set<std::string> other_nodes{}; ///< that compute other bits
  std::uint32_t other_bits = 0;        ///< pods that were on one
  std::optional<std::uint32_t> stay{}; ///< says the budget
  std::string leader{};                ///< says the Job
  time_point now{std::chrono::hours{1}};
  // trouble
  bool is_away = false;                    ///< the API server
  double loss = 0;                         ///< of requests, and of answers
  double refusal = 0;                      ///< of pods, by a quota
  bool lacks_right = false;                ///< to make pods
  bool lacks_budget_right = false;         ///< to say how many have to stay
  bool ends = false;                       ///< the namespace
  std::chrono::milliseconds lateness{200}; ///< of the watch, at most
  std::chrono::milliseconds list_takes{0}; ///< at most

private:
  result<base::http_answer> answer(const base::http_request& request);
  base::http_answer make(const std::string& body);
  base::http_answer refuse(const std::string& pod);
  base::http_answer end(const std::string& name, const std::string& body);
  void begin_end(pod_truth& pod);
  void tell(pod_news news);
  void begin_list();
  void run(pod_truth& pod);
  void join(pod_truth& pod);
  bool is_back(const pod_truth& pod) const;
  void give_up(host_truth& host);
  void gone(const std::string& uid);
  pod_truth* find(const std::string& name);

  test::temporary_folder folder_;
  std::mt19937_64 random_;
  std::uint64_t made_ = 0;
  struct late_news {
    time_point at;
    pod_news what;
  };
  std::deque<late_news> news_;         ///< in order
  std::set<std::uint64_t> given_up_{}; ///< boots
  bool is_listed_ = false;
};

} // namespace dlrun::kubernetes
