#include "persistence/etcd_json.hpp"

#include "base/base64.hpp"
#include "base/utf8.hpp"

#include <charconv>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::persistence {
namespace {

using nlohmann::json;

constexpr long http_unauthorized = 401;
constexpr long http_not_found = 404;
constexpr std::size_t told_bytes_max = 200;

/// Codes of gRPC, which the gateway repeats.
enum class grpc_code : std::uint8_t {
  invalid_argument = 3,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  unauthenticated = 16,
};

tl::unexpected<error> not_etcd(const std::string& answer) {
  return fail(error_code::protocol, fmt::format("what answers is no etcd: \"{}\"",
                                                base::printable(answer.substr(0, told_bytes_max))));
}

/// The member `name` of an object; null when there is none.
const json& at(const json& object, const char* name) {
  static const json null;
  if (!object.is_object()) return null;
  const auto found = object.find(name);
  return found == object.end() ? null : *found;
}

std::string text_at(const json& object, const char* name) {
  const auto& value = at(object, name);
  return value.is_string() ? value.get<std::string>() : std::string{};
}

json parse(const std::string& answer) { return json::parse(answer, nullptr, false); }

std::string encoded(const std::string& bytes) { return base::to_base64(bytes); }

/// The first key behind all that begin with `prefix`, whose last byte is not the largest.
std::string end_of(std::string prefix) {
  ++prefix.back();
  return prefix;
}

json range_of(const std::string& key) { return {{"request_range", {{"key", encoded(key)}}}}; }

json operation_of(const journal_write& change) {
  if (!change.value) return {{"request_delete_range", {{"key", encoded(change.key)}}}};
  return {{"request_put", {{"key", encoded(change.key)}, {"value", encoded(*change.value)}}}};
}

json comparison_of(const std::string& key, const std::optional<std::string>& expected) {
  json one{{"key", encoded(key)}, {"result", "EQUAL"}};
  if (expected) {
    one["target"] = "VALUE";
    one["value"] = encoded(*expected);
  } else {
    one["target"] = "CREATE";
    one["create_revision"] = "0"; // of a key that is not there
  }
  return one;
}

struct key_value {
  std::string key;
  std::string value;
};

std::optional<key_value> key_value_of(const json& from) {
  auto key = base::from_base64(text_at(from, "key"));
  auto value = base::from_base64(text_at(from, "value"));
  if (!key || !value) return std::nullopt;
  return key_value{*std::move(key), *std::move(value)};
}

/// Three numbers with dots between them; what follows them does not count.
std::array<int, 3> version_of(const std::string& text) {
  std::array<int, 3> numbers{};
  const auto* from = text.data();
  const auto* const end = text.data() + text.size();
  for (auto& number : numbers) {
    const auto [stopped, failed] = std::from_chars(from, end, number);
    if (failed != std::errc{} || stopped == end) break;
    from = stopped + 1;
  }
  return numbers;
}

error refused(error_code code, const std::string& member, const std::string& text, const char* way_out) {
  return {code, fmt::format("etcd at {} refuses: {}; {}", member, text, way_out)};
}

} // namespace

std::string authenticate_request(const etcd_user& user) {
  return json{{"name", user.name}, {"password", user.password}}.dump();
}

std::string look_request(const std::string& single, const std::string& prefix) {
  const json all{{"request_range", {{"key", encoded(prefix)}, {"range_end", encoded(end_of(prefix))}}}};
  return json{{"success", json::array({range_of(single), all})}}.dump();
}

std::string first_key_request(const std::string& prefix) {
  return json{
      {"key", encoded(prefix)}, {"range_end", encoded(end_of(prefix))}, {"limit", 1}, {"keys_only", true}}
      .dump();
}

std::string transaction_request(const std::string& key, const std::optional<std::string>& expected,
                                std::span<const journal_write> changes) {
  auto operations = json::array();
  for (const auto& change : changes) operations.push_back(operation_of(change));
  return json{{"compare", json::array({comparison_of(key, expected)})},
              {"success", operations},
              {"failure", json::array({range_of(key)})}}
      .dump();
}

std::string probe_request(const std::string& key, std::size_t operations) {
  auto looks = json::array();
  for (std::size_t i = 0; i < operations; ++i) looks.push_back(range_of(key));
  return json{{"success", looks}}.dump();
}

result<std::string> token_of(const std::string& answer) {
  auto token = text_at(parse(answer), "token");
  if (token.empty()) return not_etcd(answer);
  return token;
}

result<std::string> cluster_id_of(const std::string& answer) {
  auto id = text_at(at(parse(answer), "header"), "cluster_id");
  if (id.empty()) return not_etcd(answer);
  return id;
}

result<etcd_look> look_of(const std::string& answer, const std::string& prefix) {
  const auto whole = parse(answer);
  const auto& responses = at(whole, "responses");
  if (!responses.is_array() || responses.size() != 2) return not_etcd(answer);
  etcd_look found;
  for (const auto& one : at(at(responses[0], "response_range"), "kvs")) {
    auto single = key_value_of(one);
    if (!single) return not_etcd(answer);
    found.single = std::move(single->value);
  }
  for (const auto& one : at(at(responses[1], "response_range"), "kvs")) {
    auto entry = key_value_of(one);
    if (!entry || !entry->key.starts_with(prefix)) return not_etcd(answer);
    found.entries.emplace(entry->key.substr(prefix.size()), std::move(entry->value));
  }
  return found;
}

result<std::optional<std::string>> first_key_of(const std::string& answer) {
  const auto whole = parse(answer);
  if (at(whole, "header").is_null()) return not_etcd(answer);
  const auto& found = at(whole, "kvs");
  if (found.is_null()) return std::nullopt;
  auto first = found.is_array() && !found.empty() ? key_value_of(found.front()) : std::nullopt;
  if (!first || first->key.empty()) return not_etcd(answer);
  return std::move(first->key);
}

result<etcd_decision> decision_of(const std::string& answer) {
  const auto whole = parse(answer);
  const auto& succeeded = at(whole, "succeeded"); // left out when false
  if (succeeded.is_boolean() && succeeded.get<bool>()) return etcd_decision{true};
  const auto& responses = at(whole, "responses");
  if (!responses.is_array() || responses.size() != 1) return not_etcd(answer);
  const auto& found = at(at(responses.front(), "response_range"), "kvs");
  if (found.is_null()) return etcd_decision{};
  auto one = found.is_array() && found.size() == 1 ? key_value_of(found.front()) : std::nullopt;
  if (!one) return not_etcd(answer);
  return etcd_decision{false, std::move(one->value)};
}

result<void> check_version(const std::string& answer, const std::string& oldest, const std::string& member) {
  const auto version = text_at(parse(answer), "version");
  if (version.empty()) return not_etcd(answer);
  if (version_of(version) >= version_of(oldest)) return {};
  return fail(error_code::bad_usage,
              fmt::format("etcd at {} is of version {}, and must be of {} or later: update it", member,
                          base::printable(version), oldest));
}

bool is_token_refused(long status, const std::string& answer) {
  return status == http_unauthorized ||
         (status != http_ok &&
          text_at(parse(answer), "error").find("revision of auth store is old") != std::string::npos);
}

error refusal_of(long status, const std::string& answer, const std::string& member) {
  const auto whole = parse(answer);
  const auto& number = at(whole, "code");
  const auto text = base::printable(text_at(whole, "error").substr(0, told_bytes_max));
  if (status == http_not_found || !number.is_number_integer())
    return {
        status == http_not_found ? error_code::bad_usage : error_code::system,
        fmt::format("{} answers with HTTP status {}, so it is no etcd, or one before 3.4: name etcd's client "
                    "address",
                    member, status)};
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  switch (static_cast<grpc_code>(number.get<int>())) {
  case grpc_code::resource_exhausted:
    if (!says("space exceeded")) break;
    return refused(error_code::disk_full, member, text,
                   "compact and defragment it, then disarm its alarm (etcdctl alarm disarm)");
  case grpc_code::invalid_argument:
    if (says("too many operations"))
      return refused(error_code::limit_exceeded, member, text,
                     "start its members with a larger --max-txn-ops, or train with fewer roles");
    if (says("too large"))
      return refused(error_code::limit_exceeded, member, text,
                     "start its members with a larger --max-request-bytes");
    [[fallthrough]];
  case grpc_code::permission_denied:
  case grpc_code::failed_precondition:
  case grpc_code::unauthenticated:
    return refused(error_code::bad_usage, member, text,
                   "see cluster.journal.etcd.user_file, and which role etcd gives that user");
  }
  return {error_code::system, text};
}

} // namespace dlrun::persistence
