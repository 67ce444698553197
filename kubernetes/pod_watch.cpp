#include "kubernetes/pod_watch.hpp"

#include "kubernetes/json_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

/// Of a page all is in memory at once: 10 KB a pod, and five times as much once it is parsed.
constexpr int page_size = 100;
constexpr int watch_least_s = 240, watch_spread_s = 60;
/// From one list to the next: control pods that began together do not list together.
constexpr int list_least_s = 240, list_spread_s = 120;
/// Of a list, all its pages together.
constexpr std::chrono::seconds list_max{30};
constexpr int gone_code = 410;

/// In a query: what is no letter, digit, '-', '.', '_' or '~' (RFC 3986).
std::string encoded(const std::string& text) {
  std::string made;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '.' || c == '_' || c == '~';
    made += is_plain ? std::string{c} : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return made;
}

} // namespace

api_request pods_request(const std::string& verb, const std::string& selector, const std::string& query) {
  return {.verb = verb,
          .version = "v1",
          .resource = "pods",
          .query = fmt::format("labelSelector={}&{}", encoded(selector), query)};
}

/// A page that has become too old by the time that it is asked for is an error like others: all of
/// it is listed anew.
answer<listed_pods> list_pods(api_client& client, const std::string& selector, time_point give_up) {
  listed_pods made{.all = {.pods = {}, .began = client.time().now()}, .version = {}};
  for (std::string next;;) {
    auto query = fmt::format("limit={}", page_size);
    if (!next.empty()) query += "&continue=" + encoded(next);
    const auto page = client.ask(pods_request("list", selector, query), give_up);
    if (!page) return tl::unexpected(page.error());
    if (const auto items = page->find("items"); items != page->end())
      for (const auto& one : *items)
        if (auto pod = read_pod(one)) made.all.pods.push_back(*std::move(pod));
    made.version = text_at(*page, "/metadata/resourceVersion");
    next = text_at(*page, "/metadata/continue");
    if (!next.empty()) continue;
    if (!made.version.empty()) return made;
    return tl::unexpected(
        api_refusal{refusal_kind::wrong, "cannot list pods: the answer has no resourceVersion"});
  }
}

pod_watch::pod_watch(api_client& client, pod_watch_options options)
    : client_{client}
    , options_{std::move(options)} {}

void pod_watch::run() {
  while (options_.goes_on())
    if (is_to_list())
      list();
    else
      follow();
}

bool pod_watch::is_to_list() const {
  return version_.empty() || is_list_wanted_ || client_.time().now() >= list_at_;
}

void pod_watch::list() {
  is_list_wanted_ = false;
  auto listed = list_pods(client_, options_.selector, client_.time().now() + list_max);
  if (!listed) return pause(listed.error());
  version_ = std::move(listed->version);
  const auto& time = client_.time();
  list_at_ =
      time.now() + std::chrono::seconds{list_least_s + static_cast<int>(list_spread_s * time.chance())};
  options_.works();
  options_.tell(std::move(listed->all));
  is_listed_ = true;
}

void pod_watch::follow() {
  const auto seconds = watch_least_s + static_cast<int>(watch_spread_s * client_.time().chance());
  has_moved_ = false;
  broken_.clear();
  const auto began = client_.time().now();
  const auto ended =
      client_.follow(pods_request("watch", options_.selector,
                                  fmt::format("watch=true&allowWatchBookmarks=true&timeoutSeconds={}&"
                                              "resourceVersion={}",
                                              seconds, encoded(version_))),
                     {.lasts_max = std::chrono::seconds{seconds + 30},
                      .take = [this](std::string_view line) { take(line); },
                      .goes_on = [this] { return options_.goes_on() && !is_to_list(); }});
  if (has_moved_) {
    pauses_ = {};
    is_listed_ = false;
  }
  if (!options_.goes_on()) return;
  if (is_list_wanted_ || client_.time().now() >= list_at_) return; // which is why it broke off, perhaps
  const bool is_too_old = version_.empty() || (!ended && ended.error().kind == refusal_kind::gone);
  if (is_too_old) {
    version_.clear();
    if (std::exchange(is_listed_, false))
      pause({refusal_kind::wrong, "cannot watch pods: what was listed just now is too old"});
  } else if (!broken_.empty()) {
    pause({refusal_kind::wrong, broken_});
  } else if (!ended) {
    pause(ended.error());
  } else if (!has_moved_ && client_.time().now() - began < std::chrono::seconds{1}) {
    pause({refusal_kind::wrong, "cannot watch pods: the server ends each watch at once"});
  }
}

/// An event: {"type":"ADDED","object":{...}}.
void pod_watch::take(std::string_view line) {
  const auto event = json::parse(line, nullptr, false);
  const auto type = text_at(event, "/type");
  const json::json_pointer code{"/object/code"};
  if (type == "ERROR") {
    if (event.contains(code) && event.at(code) == gone_code)
      version_.clear();
    else
      broken_ = fmt::format("cannot watch pods: {}", text_at(event, "/object/message"));
    return;
  }
  const auto version = text_at(event, "/object/metadata/resourceVersion");
  if (version.empty() || version_.empty() || !broken_.empty()) return; // nothing that one can go on from
  version_ = version;
  if (!std::exchange(has_moved_, true)) options_.works();
  if (type == "BOOKMARK") return;
  auto pod = read_pod(event.at("object"));
  if (!pod) return;
  if (type == "DELETED")
    options_.tell(pod_gone{std::move(pod->uid)});
  else
    options_.tell(*std::move(pod));
}

void pod_watch::pause(const api_refusal& why) {
  if (!options_.goes_on()) return;
  options_.complain(why);
  client_.time().wait(pauses_.next(client_.time().chance(), std::nullopt));
}

} // namespace dlrun::kubernetes
