#include "kubernetes/api_client.hpp"

#include "kubernetes/retry_pauses.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <thread>
#include <utility>

namespace dlrun::kubernetes {
namespace {

using std::chrono::milliseconds;

/// Of one attempt: a server that is lost answers none, and another one may stand in its place.
constexpr milliseconds attempt_max{3000};
/// More than that no server means.
constexpr std::chrono::seconds patience_max{60};
constexpr long first_success = 200, first_redirect = 300;

/// Of an object in a watch: etcd takes none above 1.5 MiB.
constexpr std::size_t line_bytes_max = std::size_t{4} << 20;

api_refusal no_answer_to(const api_request& request, const std::string& url, const std::string& why) {
  return {refusal_kind::no_answer, fmt::format("cannot {}: {}: {}", text_of(request), url, why)};
}

bool is_success(long status) { return status >= first_success && status < first_redirect; }

} // namespace

api_time real_time() {
  return {[] { return std::chrono::steady_clock::now(); },
          [](milliseconds how_long) { std::this_thread::sleep_for(how_long); },
          [random = std::minstd_rand{std::random_device{}()}]() mutable {
            return std::uniform_real_distribution<double>{0, 1}(random);
          }};
}

api_client::api_client(api_place place, api_transport& transport, api_time time)
    : place_(std::move(place))
    , transport_(transport)
    , time_(std::move(time)) {}

answer<nlohmann::json> api_client::ask(const api_request& request, time_point give_up) {
  auto asked = ask_plainly(request, give_up);
  if (asked || asked.error().kind != refusal_kind::no_right) return asked;
  return tl::unexpected(with_missing_right(request, std::move(asked.error()), give_up));
}

answer<nlohmann::json> api_client::ask_plainly(const api_request& request, time_point give_up) {
  const auto got = send(request, give_up);
  if (!got) return tl::unexpected(got.error());
  auto parsed = nlohmann::json::parse(got->body, nullptr, false);
  if (parsed.is_object()) return parsed;
  return tl::unexpected(
      api_refusal{refusal_kind::wrong, fmt::format("cannot {}: {} does not answer as Kubernetes does",
                                                   text_of(request), place_.url)});
}

/// Again while it may pass. The last refusal is the one that is told: the deadline only ended the
/// attempts.
answer<base::http_answer> api_client::send(const api_request& request, time_point give_up) {
  retry_pauses pauses;
  api_refusal last{refusal_kind::no_answer,
                   fmt::format("cannot {}: no time was left for it", text_of(request))};
  for (bool has_refused_token = false;;) {
    if (auto patience = patience_asked(request)) {
      if (quiet_until_ >= give_up) return tl::unexpected(*std::move(patience));
      time_.wait(std::chrono::ceil<milliseconds>(quiet_until_ - time_.now()));
    }
    const auto left = std::chrono::duration_cast<milliseconds>(give_up - time_.now());
    if (left <= milliseconds{0}) return tl::unexpected(last);
    auto got = send_once(request, std::min(left, attempt_max));
    if (got && is_success(got->status)) return got;
    last = got ? refusal_of(request, got->status, got->body) : got.error();
    if (last.kind == refusal_kind::unauthorized && !has_refused_token) {
      has_refused_token = true; // the kubelet may have replaced it since
      continue;
    }
    if (!may_pass(last.kind)) return tl::unexpected(last);
    const auto pause = pauses.next(time_.chance(), got ? got->retry_after : std::nullopt);
    if (time_.now() + pause >= give_up) return tl::unexpected(last);
    time_.wait(pause);
  }
}

/// Nothing: it may be asked now.
std::optional<api_refusal> api_client::patience_asked(const api_request& request) const {
  if (time_.now() >= quiet_until_) return std::nullopt;
  return api_refusal{refusal_kind::busy, fmt::format("cannot {}: {} is busy and has asked for patience",
                                                     text_of(request), place_.url)};
}

void api_client::note_patience(const base::http_answer& got) {
  if (got.retry_after)
    quiet_until_ = std::max(quiet_until_, time_.now() + std::min(*got.retry_after, patience_max));
}

answer<base::http_request> api_client::carried(const api_request& request) const {
  const auto token = read_token(place_);
  if (!token) return tl::unexpected(api_refusal{refusal_kind::wrong, token.error().message});
  base::http_request made{.method = method_of(request),
                          .url = place_.url + path_of(request, place_.name_space),
                          .headers = {"Accept: application/json", "Authorization: Bearer " + *token},
                          .body = request.body};
  if (const auto type = content_type_of(request); !type.empty())
    made.headers.push_back("Content-Type: " + type);
  return made;
}

answer<base::http_answer> api_client::send_once(const api_request& request, milliseconds deadline) {
  const auto asked = carried(request);
  if (!asked) return tl::unexpected(asked.error());
  auto got = transport_.send(*asked, deadline);
  if (got) {
    note_patience(*got);
    return *std::move(got);
  }
  return tl::unexpected(no_answer_to(request, place_.url, got.error().message));
}

answer<void> api_client::follow(const api_request& request, const api_lines& lines) {
  for (bool has_refused_token = false;;) {
    if (auto patience = patience_asked(request)) return tl::unexpected(*std::move(patience));
    const auto ended = follow_once(request, lines);
    if (!ended) return tl::unexpected(ended.error());
    if (is_success(ended->status)) return {};
    auto refused = refusal_of(request, ended->status, ended->body);
    if (refused.kind == refusal_kind::unauthorized && !std::exchange(has_refused_token, true)) continue;
    if (refused.kind != refusal_kind::no_right) return tl::unexpected(std::move(refused));
    return tl::unexpected(with_missing_right(request, std::move(refused), time_.now() + attempt_max));
  }
}

/// @returns with the body of an answer that is no success
answer<base::http_answer> api_client::follow_once(const api_request& request, const api_lines& lines) {
  const auto asked = carried(request);
  if (!asked) return tl::unexpected(asked.error());
  std::string begun, refused; // of a line that is not whole yet
  const auto take = [&](long status, std::string_view part) {
    auto& into = is_success(status) ? begun : refused;
    if (into.size() + part.size() > line_bytes_max) return false;
    into += part;
    std::size_t at = 0;
    for (auto end = begun.find('\n'); end != begun.npos; end = begun.find('\n', at)) {
      lines.take(std::string_view{begun}.substr(at, end - at));
      at = end + 1;
    }
    begun.erase(0, at);
    return true;
  };
  auto ended =
      transport_.stream(*asked, {.lasts_max = lines.lasts_max, .take = take, .goes_on = lines.goes_on});
  if (!ended) return tl::unexpected(no_answer_to(request, place_.url, ended.error().message));
  note_patience(*ended);
  ended->body = std::move(refused);
  return *std::move(ended);
}

api_refusal api_client::with_missing_right(const api_request& request, api_refusal refused,
                                           time_point give_up) {
  const auto review = ask_plainly(review_of(request, place_.name_space), give_up);
  const auto allowed = nlohmann::json::json_pointer{"/status/allowed"};
  if (!review || !review->contains(allowed) || review->at(allowed) != false) return refused;
  refused.missing_right = text_of(request);
  refused.message += fmt::format("; the pod's service account lacks the right to {}: add the rule {} to its "
                                 "Role, as 'dlrun manifests' writes it",
                                 refused.missing_right, rule_for(request));
  return refused;
}

} // namespace dlrun::kubernetes
