#include "tests/kubernetes/played_api.hpp"

#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

constexpr std::string_view server = "https://10.96.0.1:443";

} // namespace

std::string line_of(const base::http_request& request) {
  return request.method + " " + request.url.substr(server.size());
}

base::http_answer refused(long status, const std::string& message, const std::string& cause) {
  nlohmann::json body{{"kind", "Status"}, {"status", "Failure"}, {"message", message}};
  if (!cause.empty()) body["details"]["causes"] = nlohmann::json::array({{{"reason", cause}}});
  return {status, body.dump()};
}

played_api::played_api()
    : answer([](const auto&) {
      return base::http_answer{200, "{}"};
    })
    , streams([](const auto&, const auto&) {
      return base::http_answer{200, ""};
    }) {
  write_token("first");
}

void played_api::write_token(const std::string& token) const {
  const auto text = token + "\n";
  folder_.write("token", {text.begin(), text.end()});
}

result<base::http_answer> played_api::send(const base::http_request& request,
                                           std::chrono::milliseconds deadline) {
  requests.push_back(request);
  deadlines.push_back(deadline);
  now += takes;
  return answer(request);
}

result<base::http_answer> played_api::stream(const base::http_request& request,
                                             const base::http_stream& how) {
  requests.push_back(request);
  return streams(request, how);
}

api_client played_api::make_client() {
  return {{.url = std::string{server},
           .name_space = "team-a",
           .ca_file = "",
           .token_file = (folder_.path() / "token").string()},
          *this,
          {[this] { return now; },
           [this](auto how_long) {
             waits.push_back(how_long);
             now += how_long;
           },
           [this] { return chance; }}};
}

std::vector<std::string> played_api::asked() const {
  std::vector<std::string> all;
  for (const auto& one : requests) all.push_back(line_of(one));
  return all;
}

} // namespace dlrun::kubernetes
