#include "persistence/etcd_client.hpp"

#include "base/http_client.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <fstream>
#include <thread>

namespace dlrun::persistence {
namespace {

using clock = std::chrono::steady_clock;

/// What a member has said of itself, or why it has not answered.
struct silence {
  std::string endpoint;
  std::string why;
};

result<void> check_readable(const std::string& file, const char* what) {
  if (file.empty() || std::ifstream(file)) return {};
  return fail(error_code::bad_usage,
              fmt::format("the {} for etcd, '{}', cannot be read: it must be a file that this user may read, "
                          "on each host where the coordinator may run",
                          what, file));
}

/// NAME:PASSWORD.
result<etcd_user> read_user(const std::string& file) {
  etcd_user user;
  if (file.empty()) return user;
  if (auto there = check_readable(file, "user file"); !there) return tl::unexpected(there.error());
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  const auto colon = line.find(':');
  if (colon == std::string::npos || colon == 0)
    return fail(error_code::bad_usage,
                fmt::format("the first line of the user file for etcd, '{}', is not NAME:PASSWORD", file));
  if (const auto at = base::first_invalid_utf8(line))
    return fail(
        error_code::bad_usage,
        fmt::format("the user file for etcd, '{}', is not UTF-8 from byte {} on, and etcd takes nothing "
                    "else: save it as UTF-8",
                    file, *at));
  return etcd_user{line.substr(0, colon), line.substr(colon + 1)};
}

} // namespace

class etcd_client::implementation {
public:
  implementation(const etcd_place& place, etcd_patience patience, etcd_user user)
      : place_(place)
      , patience_(patience)
      , user_(std::move(user))
      , http_({place.ca_file, place.certificate_file, place.key_file}) {}

  /// The answer of the first member that gives one.
  result<std::string> ask(const std::string& path, const std::string& body) {
    const auto give_up = clock::now() + patience_.total;
    std::vector<silence> silent;
    connect_part_ = place_.endpoints.size() == 1 ? 1 : 4;
    for (auto attempt = patience_.attempt;; attempt = std::min(2 * attempt, patience_.total)) {
      for (std::size_t i = 0; i < place_.endpoints.size(); ++i) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - clock::now());
        if (left <= std::chrono::milliseconds(0)) return nobody_answers(silent);
        auto answer = ask_member(path, body, std::min(attempt, left));
        if (answer) return check_cluster(*std::move(answer));
        if (!is_silence(answer.error())) return answer;
        note(silent, answer.error());
        current_ = (current_ + 1) % place_.endpoints.size();
      }
      connect_part_ = std::max<std::chrono::milliseconds::rep>(connect_part_ / 2, 1);
      std::this_thread::sleep_for(std::min(pause, patience_.total));
    }
  }

  /// The one that has answered last.
  const std::string& member() const { return place_.endpoints[current_]; }

private:
  static constexpr std::chrono::milliseconds pause{20};

  /// Another member may say more.
  static bool is_silence(const error& why) {
    return why.code == error_code::timed_out || why.code == error_code::system;
  }

  result<std::string> ask_member(const std::string& path, const std::string& body,
                                 std::chrono::milliseconds patience) {
    const auto give_up = clock::now() + patience; // of all that it takes
    if (user_.name.empty()) return answer_of(send(path, body, give_up));
    for (bool again = false;; again = true) {
      if (token_.empty())
        if (auto known = authenticate(give_up); !known) return tl::unexpected(known.error());
      const auto answer = send(path, body, give_up);
      if (again || !answer || !is_token_refused(answer->status, answer->body)) return answer_of(answer);
      token_.clear();
    }
  }

  result<void> authenticate(clock::time_point give_up) {
    auto answer = answer_of(send("/v3/auth/authenticate", authenticate_request(user_), give_up));
    if (!answer) return tl::unexpected(answer.error());
    auto token = token_of(*answer);
    if (!token) return tl::unexpected(token.error());
    token_ = *std::move(token);
    return {};
  }

  result<base::http_answer> send(const std::string& path, const std::string& body,
                                 clock::time_point give_up) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up - clock::now());
    if (left <= std::chrono::milliseconds(0)) return fail(error_code::timed_out, "no time is left for it");
    std::vector<std::string> headers{"Content-Type: application/json"};
    if (!token_.empty()) headers.push_back("Authorization: " + token_);
    return http_.send({.method = "POST", .url = member() + path, .headers = std::move(headers), .body = body},
                      left, left / connect_part_);
  }

  result<std::string> answer_of(const result<base::http_answer>& answer) const {
    if (!answer) return tl::unexpected(answer.error());
    if (answer->status == http_ok) return answer->body;
    return tl::unexpected(refusal_of(answer->status, answer->body, member()));
  }

  result<std::string> check_cluster(std::string answer) const {
    const auto id = cluster_id_of(answer);
    if (!id)
      return fail(id.error().code,
                  fmt::format("{}: {}; name etcd's client address in cluster.journal.etcd.endpoints",
                              member(), id.error().message));
    if (place_.cluster_id.empty() || *id == place_.cluster_id) return answer;
    return fail(
        error_code::bad_usage,
        fmt::format(
            "etcd at {} is of the cluster {}, but the journal of this run is in {}: name "
            "members of that one in cluster.journal.etcd.endpoints, or, if it is gone for good, resume "
            "with --set cluster.journal.etcd.cluster_id=auto",
            member(), *id, place_.cluster_id));
  }

  /// The last attempt is cut short: that it timed out says less than what an earlier one met.
  void note(std::vector<silence>& silent, const error& why) const {
    const auto at = std::ranges::find(silent, member(), &silence::endpoint);
    if (at == silent.end())
      silent.push_back({member(), why.message});
    else if (why.code != error_code::timed_out)
      at->why = why.message;
  }

  result<std::string> nobody_answers(const std::vector<silence>& silent) const {
    std::vector<std::string> told;
    for (const auto& one : silent) told.push_back(fmt::format("{}: {}", one.endpoint, one.why));
    return fail(
        error_code::timed_out,
        fmt::format("no etcd answers ({}): see that most of its members run and reach each other, and "
                    "that cluster.journal.etcd.endpoints names them",
                    fmt::join(told, "; ")));
  }

  etcd_place place_;
  etcd_patience patience_;
  etcd_user user_;
  base::http_client http_;
  std::string token_;
  std::size_t current_ = 0; ///< the member that is asked first
  /// Of the time for a member, one part of so many is for a new connection: one whose host is down
  /// never answers, and the next is asked sooner.
  std::chrono::milliseconds::rep connect_part_ = 1;
};

etcd_client::etcd_client(std::unique_ptr<implementation> parts)
    : parts_(std::move(parts)) {}
etcd_client::~etcd_client() = default;

result<std::unique_ptr<etcd_client>> etcd_client::make(const etcd_place& place, etcd_patience patience) {
  if (auto installed = base::http_client::check_installed("a journal in an etcd"); !installed)
    return tl::unexpected(installed.error());
  for (const auto& readable : {check_readable(place.ca_file, "certificate of the authority"),
                               check_readable(place.certificate_file, "client's certificate"),
                               check_readable(place.key_file, "client's key")})
    if (!readable) return tl::unexpected(readable.error());
  auto user = read_user(place.user_file);
  if (!user) return tl::unexpected(user.error());
  return std::unique_ptr<etcd_client>(
      new etcd_client(std::make_unique<implementation>(place, patience, *std::move(user))));
}

result<std::string> etcd_client::probe(const std::string& key, std::size_t operations) {
  auto status = parts_->ask("/v3/maintenance/status", "{}");
  if (!status) return status;
  if (auto recent = check_version(*status, oldest_version, parts_->member()); !recent)
    return tl::unexpected(recent.error());
  auto answer = parts_->ask("/v3/kv/txn", probe_request(key, operations));
  if (!answer) return answer;
  return cluster_id_of(*answer);
}

result<etcd_look> etcd_client::read(const std::string& single, const std::string& prefix) {
  const auto answer = parts_->ask("/v3/kv/txn", look_request(single, prefix));
  if (!answer) return tl::unexpected(answer.error());
  return look_of(*answer, prefix);
}

result<std::optional<std::string>> etcd_client::find_first(const std::string& prefix) {
  const auto answer = parts_->ask("/v3/kv/range", first_key_request(prefix));
  if (!answer) return tl::unexpected(answer.error());
  return first_key_of(*answer);
}

result<etcd_client::comparison> etcd_client::compare_and_write(const std::string& key,
                                                               const std::optional<std::string>& expected,
                                                               std::span<const journal_write> changes) {
  const auto answer = parts_->ask("/v3/kv/txn", transaction_request(key, expected, changes));
  if (!answer) return tl::unexpected(answer.error());
  auto decided = decision_of(*answer);
  if (!decided) return tl::unexpected(decided.error());
  return comparison{decided->succeeded, std::move(decided->found)};
}

} // namespace dlrun::persistence
