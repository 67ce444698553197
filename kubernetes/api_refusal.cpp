#include "kubernetes/api_refusal.hpp"

#include "base/utf8.hpp"
#include "kubernetes/json_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

using nlohmann::json;

constexpr std::size_t told_max = 400;
constexpr long bad_request = 400, unauthorized = 401, forbidden = 403, not_found = 404, conflict = 409,
               gone = 410;

/// Causes are a list of objects, each with a reason.
bool has_cause(const json& status, const char* reason) {
  if (!status.is_object() || !status.contains("details") || !status["details"].is_object()) return false;
  const auto& details = status["details"];
  if (!details.contains("causes") || !details["causes"].is_array()) return false;
  return std::ranges::any_of(details["causes"],
                             [&](const json& one) { return text_in(one, "reason") == reason; });
}

/// The quota and LimitRange plug-ins mark what they refuse by nothing but their words.
bool is_no_room(const std::string& message) {
  for (const auto* words : {"exceeded quota", "failed quota", "maximum cpu usage", "minimum cpu usage",
                            "maximum memory usage", "minimum memory usage", "LimitRange", "limit range"})
    if (message.find(words) != message.npos) return true;
  return false;
}

refusal_kind kind_of(long status, const json& body) {
  switch (status) {
  case unauthorized: return refusal_kind::unauthorized;
  case forbidden:
    if (has_cause(body, "NamespaceTerminating")) return refusal_kind::namespace_ends;
    return is_no_room(text_in(body, "message")) ? refusal_kind::no_room : refusal_kind::no_right;
  case not_found: return refusal_kind::not_there;
  case conflict: return refusal_kind::conflict;
  case gone: return refusal_kind::gone;
  case 429:
  case 500:
  case 502:
  case 503:
  case 504: return refusal_kind::busy;
  default: return status < bad_request ? refusal_kind::no_answer : refusal_kind::wrong;
  }
}

} // namespace

api_refusal refusal_of(const api_request& request, long status, const std::string& body) {
  const auto parsed = json::parse(body, nullptr, false);
  const auto says = text_in(parsed, "message");
  const auto told = base::printable(says.empty() ? body : says, told_max);
  return {kind_of(status, parsed), fmt::format("cannot {}: HTTP status {}{}{}", text_of(request), status,
                                               told.empty() ? "" : ": ", told)};
}

bool may_pass(refusal_kind kind) { return kind == refusal_kind::no_answer || kind == refusal_kind::busy; }

} // namespace dlrun::kubernetes
