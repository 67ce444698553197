#include "tests/kubernetes/played_cluster.hpp"

#include "tests/kubernetes/played_api.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr std::string_view cluster_server = "https://10.96.0.1:443";
constexpr auto notice_after = 900ms; // of a silent host
constexpr auto start_max_ms = 3000U;

json json_of(const pod_record& pod) {
  json made = pod_object({}, "job", {pod.slot, pod.incarnation, "", pod.memory}, pod.owner);
  made["metadata"]["uid"] = pod.uid;
  if (pod.is_going) made["metadata"]["deletionTimestamp"] = "now";
  return made;
}

std::vector<std::string> nodes_left(std::uint32_t nodes, const std::vector<std::string>& keeps_off) {
  std::vector<std::string> left;
  for (std::uint32_t node = 0; node < nodes; ++node)
    if (auto name = fmt::format("node{}", node); std::ranges::find(keeps_off, name) == keeps_off.end())
      left.push_back(std::move(name));
  return left;
}

} // namespace

played_cluster::played_cluster(std::uint64_t seed)
    : random_{seed} {
  const std::string token{"token"};
  folder_.write("token", {token.begin(), token.end()});
}

api_client played_cluster::make_client() {
  return {{.url = std::string{cluster_server},
           .name_space = "n",
           .ca_file = "",
           .token_file = (folder_.path() / "token").string()},
          *this,
          {[this] { return now; }, [this](auto time) { pass(time); }, [this] { return chance(); }}};
}

// ---- the API server

result<base::http_answer> played_cluster::send(const base::http_request& request,
                                               std::chrono::milliseconds deadline) {
  pass(std::min<std::chrono::milliseconds>(deadline, 5ms));
  const auto lost = fail(error_code::system, "Connection reset by peer");
  if (is_away || chance() < loss) return lost;
  auto answered = answer(request);
  if (chance() < loss) return lost;
  if (answered && request.method == "POST") witness.on_made(*answered);
  return answered;
}

result<base::http_answer> played_cluster::answer(const base::http_request& request) {
  const auto path = request.url.substr(cluster_server.size());
  const auto name = path.substr(path.rfind('/') + 1);
  if (path.find("/configmaps/") != path.npos)
    return base::http_answer{
        200, fmt::format(R"({{"metadata": {{"uid": "owner", "ownerReferences": [{{"uid": "j"}}]}},
                              "data": {{"hosts": "{}", "ps": "{}"}}}})",
                         wanted, wanted_ps)};
  if (name.starts_with("selfsubjectaccessreviews"))
    return base::http_answer{
        201, fmt::format(R"({{"status": {{"allowed": {}}}}})", !lacks_right && !lacks_budget_right)};
  if (path.find("/poddisruptionbudgets/") != path.npos) {
    if (lacks_budget_right) return refused(403, "poddisruptionbudgets.policy is forbidden");
    stay = json::parse(request.body)["spec"]["minAvailable"].get<std::uint32_t>();
    return base::http_answer{200, "{}"};
  }
  if (path.find("/jobs/") != path.npos) {
    leader = json::parse(request.body)["metadata"]["annotations"][leader_annotation].get<std::string>();
    return base::http_answer{200, "{}"};
  }
  if (request.method == "POST") return make(request.body);
  if (request.method == "DELETE") return end(name, request.body);
  if (name == "control") return base::http_answer{200, R"({"spec":{"containers":[{"image":"dlrun"}]}})"};
  const auto* const found = find(name);
  return found == nullptr ? refused(404, "not found") : base::http_answer{200, json_of(found->told).dump()};
}

played_cluster::pod_truth* played_cluster::find(const std::string& name) {
  for (auto& [uid, pod] : pods)
    if (pod.told.name == name) return &pod;
  return nullptr;
}

base::http_answer played_cluster::make(const std::string& body) {
  auto asked = json::parse(body);
  if (find(asked["metadata"]["name"]) != nullptr) return refused(409, "already exists");
  if (lacks_right || ends || chance() < refusal) return refuse(asked["metadata"]["name"]);
  asked["metadata"]["uid"] = fmt::format("u{}", ++made_);
  ++created;
  auto made = read_pod(asked).value();
  const auto left = nodes_left(nodes, made.keeps_off);
  if (!left.empty()) made.node = left[left.size() == 1 ? 0 : below(left.size())];
  pods[made.uid] = {.told = made, .runs_at = now + std::chrono::milliseconds{100 + below(start_max_ms)}};
  tell(made);
  return {201, asked.dump()};
}

base::http_answer played_cluster::refuse(const std::string& pod) {
  ++refusals;
  if (lacks_right) return refused(403, "pods is forbidden");
  if (ends) return refused(403, "the namespace is being terminated", "NamespaceTerminating");
  return refused(403, fmt::format("pods \"{}\" is forbidden: exceeded quota: pods", pod));
}

base::http_answer played_cluster::end(const std::string& name, const std::string& body) {
  auto* const found = find(name);
  if (found == nullptr) return refused(404, "not found");
  if (json::parse(body)["preconditions"]["uid"] != found->told.uid)
    return refused(409, "precondition failed");
  begin_end(*found);
  return {200, "{}"};
}

void played_cluster::begin_end(pod_truth& pod) {
  if (pod.told.is_going) return;
  pod.told.is_going = true;
  tell(pod.told);
  if (!pod.is_cut_off) pod.ends_at = now + std::chrono::milliseconds{below(2000)};
}

/// No later than what follows it.
void played_cluster::tell(pod_news news) {
  auto at = now + std::chrono::milliseconds{below(static_cast<std::uint64_t>(lateness.count()) + 1)};
  if (!news_.empty()) at = std::max(at, news_.back().at);
  news_.push_back({at, std::move(news)});
}

std::vector<pod_news> played_cluster::news() {
  std::vector<pod_news> all;
  if (is_away) return all;
  if (!is_listed_ || chance() < 0.01) begin_list(); // of a watch that is too old
  for (; !news_.empty() && news_.front().at <= now; news_.pop_front()) {
    witness.on_news(news_.front().what);
    all.push_back(std::move(news_.front().what));
  }
  return all;
}

/// Watched from there on.
void played_cluster::begin_list() {
  is_listed_ = true;
  news_.clear();
  pod_listing listing{.pods = {}, .began = now};
  for (const auto& [uid, pod] : pods) listing.pods.push_back(pod.told);
  const auto takes = below(static_cast<std::uint64_t>(list_takes.count()) + 1);
  news_.push_back({now + std::chrono::milliseconds{takes}, std::move(listing)});
}

// ---- nodes and hosts

bool played_cluster::is_alive(const pod_truth& pod) const {
  return !pod.told.is_going && (pod.told.phase == pod_phase::pending || pod.told.phase == pod_phase::running);
}

std::vector<std::string> played_cluster::uids() const {
  std::vector<std::string> all;
  for (const auto& [uid, pod] : pods) all.push_back(uid);
  return all;
}

void played_cluster::pass(std::chrono::milliseconds time) {
  now += time;
  for (auto& [slot, host] : hosts)
    if (host.lost_at && now >= *host.lost_at) give_up(host);
  for (const auto& uid : uids()) {
    auto& pod = pods.at(uid);
    if (is_back(pod)) pod.was_given_up = false;
    if (pod.is_cut_off) continue;
    if (pod.ends_at && now >= *pod.ends_at)
      gone(uid);
    else if (pod.runs_at && now >= *pod.runs_at)
      run(pod);
    else if (!pod.runs_at && pod.told.runs) // one that is to end may not have heard of that
      join(pod);
  }
}

void played_cluster::run(pod_truth& pod) {
  pod.runs_at.reset();
  pod.boot = ++made_;
  pod.told.runs = true;
  pod.told.phase = pod_phase::running;
  if (other_nodes.contains(pod.told.node)) { // it ends as often as its kubelet starts it
    if (!std::exchange(pod.told.has_other_bits, true)) ++other_bits;
    pod.told.runs = false;
    pod.told.ends = ++pod.told.restarts;
    pod.runs_at = now + std::chrono::milliseconds{1000 + below(20'000)};
    return tell(pod.told);
  }
  if (pod.told.address.empty()) pod.told.address = fmt::format("10.0.0.{}", pod.boot);
  tell(pod.told);
}

void played_cluster::join(pod_truth& pod) {
  auto& host = hosts[pod.told.slot];
  if (!host.uid.empty()) return;      // in use: it tries again
  if (given_up_.contains(pod.boot)) { // its agent ends, and another one starts
    pod.boot = ++made_;
    return;
  }
  if (!witness.may_join({pod.told.slot, pod.told.uid, pod.told.address})) return;
  witness.on_join(pod.told);
  host = {.uid = pod.told.uid, .address = pod.told.address};
  pod.back_since = now;
}

bool played_cluster::is_back(const pod_truth& pod) const {
  const bool is_newest = std::ranges::none_of(pods, [&](const auto& one) {
    return one.second.told.slot == pod.told.slot && one.second.told.incarnation > pod.told.incarnation;
  });
  return is_newest && pod.back_since && now - *pod.back_since > 5s;
}

void played_cluster::give_up(host_truth& host) {
  if (const auto found = pods.find(host.uid); found != pods.end()) {
    found->second.was_given_up = true;
    found->second.back_since.reset();
    given_up_.insert(found->second.boot);
  }
  host.uid.clear();
  host.lost_at.reset();
}

void played_cluster::gone(const std::string& uid) {
  tell(pod_gone{uid});
  auto& host = hosts[pods.at(uid).told.slot];
  if (host.uid == uid) give_up(host);
  pods.erase(uid);
}

host_sights played_cluster::sights() const {
  host_sights all;
  for (const auto& [slot, host] : hosts)
    if (!host.address.empty())
      all[slot] = {host.uid.empty() ? host_standing::away : host_standing::there, host.address};
  return all;
}

// ---- faults

void played_cluster::cut_off(const std::string& uid) {
  auto& pod = pods.at(uid);
  if (std::exchange(pod.is_cut_off, true)) return;
  pod.ends_at.reset();
  if (auto& host = hosts[pod.told.slot]; host.uid == uid) host.lost_at = now + notice_after;
}

void played_cluster::come_back(const std::string& uid) {
  auto& pod = pods.at(uid);
  if (!std::exchange(pod.is_cut_off, false)) return;
  if (auto& host = hosts[pod.told.slot]; host.uid == uid) host.lost_at.reset();
  if (pod.told.is_going) pod.ends_at = now + 1s;
}

bool played_cluster::crash(const std::string& uid, bool is_out_of_memory) {
  auto& pod = pods.at(uid);
  if (pod.is_cut_off || !pod.told.runs) return false;
  pod.told.runs = false;
  pod.told.ends = ++pod.told.restarts;
  pod.told.is_out_of_memory = is_out_of_memory;
  pod.runs_at = now + std::chrono::milliseconds{below(20'000)};
  tell(pod.told);
  auto& host = hosts[pod.told.slot];
  if (host.uid != uid) return false;
  const bool was_in = !std::exchange(host.lost_at, now + 100ms);
  return was_in && !pod.told.is_going && news_.back().at <= now + 1s && *pod.runs_at <= now + 10s;
}

void played_cluster::evict(const std::string& uid) {
  auto& pod = pods.at(uid);
  if (pod.is_cut_off || !is_alive(pod)) return;
  pod.told.phase = pod_phase::failed;
  pod.told.runs = false;
  pod.runs_at.reset();
  tell(pod.told);
  if (auto& host = hosts[pod.told.slot]; host.uid == uid) host.lost_at = now + 100ms;
}

void played_cluster::remove(const std::string& uid) { begin_end(pods.at(uid)); }

} // namespace dlrun::kubernetes
