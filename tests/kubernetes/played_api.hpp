/// An API server that tests play, and the time in which it is asked.
#pragma once

#include "kubernetes/api_client.hpp"
#include "tests/data/files.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dlrun::kubernetes {

/// Answers with what `answer` says; nothing waits but the clock that is played.
class played_api final : public api_transport {
public:
  /// What one attempt gets, of "METHOD PATH".
  using script = std::function<result<base::http_answer>(const base::http_request& asked)>;

  played_api();

  result<base::http_answer> send(const base::http_request& request,
                                 std::chrono::milliseconds deadline) override;

  result<base::http_answer> stream(const base::http_request& request, const base::http_stream& how) override;

  api_client make_client();
  time_point in(std::chrono::milliseconds later) const { return now + later; }
  /// "METHOD PATH" of all that were asked.
  std::vector<std::string> asked() const;
  void write_token(const std::string& token) const;

  script answer;
  /// What a stream gets: hands parts to `how.take`.
  std::function<result<base::http_answer>(const base::http_request& asked, const base::http_stream& how)>
      streams;
  std::vector<base::http_request> requests{};
  std::vector<std::chrono::milliseconds> deadlines{}, waits{};
  time_point now{std::chrono::hours{1}};
  double chance = 0.5;
  std::chrono::milliseconds takes{0}; ///< each attempt

private:
  test::temporary_folder folder_;
};

/// line_of() the request for the pods of hosts of the job `job`.
inline constexpr auto list_hosts_line =
    "GET /api/v1/namespaces/team-a/pods?labelSelector=app.kubernetes.io%2Fname%3Ddlrun%2C"
    "app.kubernetes.io%2Finstance%3Djob%2Capp.kubernetes.io%2Fcomponent%3Dhost&limit=100";
/// "PATCH /apis/..." of a request, without its server.
std::string line_of(const base::http_request& request);
/// A Status of Kubernetes.
base::http_answer refused(long status, const std::string& message, const std::string& cause = "");

} // namespace dlrun::kubernetes
