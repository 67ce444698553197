/// api_client: asks the API server until it answers, or time is up.
#pragma once

#include "kubernetes/api_place.hpp"
#include "kubernetes/api_refusal.hpp"
#include "kubernetes/api_request.hpp"
#include "kubernetes/api_transport.hpp"

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace dlrun::kubernetes {

using time_point = std::chrono::steady_clock::time_point;

/// Time and chance, so that tests wait for nothing.
struct api_time {
  std::function<time_point()> now;
  std::function<void(std::chrono::milliseconds)> wait;
  std::function<double()> chance; ///< in [0, 1)
};
api_time real_time();

/// Takes the lines of an answer that goes on, as they come.
struct api_lines {
  std::chrono::seconds lasts_max{330}; ///< the server ends it before
  std::function<void(std::string_view line)> take;
  std::function<bool()> goes_on = [] { return true; }; ///< asked about once a second
};

template <class T>
using answer = tl::expected<T, api_refusal>;

/// Reads its token anew for each request; one that is refused is read and tried once more. What may
/// pass (retry_pauses) is asked again. While the server wants patience (Retry-After) it is asked
/// for nothing, by no call. One thread at a time; calls block until `give_up` at most.
class api_client {
public:
  /// `transport` outlives it.
  api_client(api_place place, api_transport& transport, api_time time);

  /// @returns the object of the answer. A refusal for lack of a right names that right.
  answer<nlohmann::json> ask(const api_request& request, time_point give_up);

  /// Asks once, and hands on line after line. Blocks until the server has ended the answer, or sent
  /// nothing for 90 s. @returns nothing when it has ended; no_answer when it broke off, or is not
  /// wanted any more; busy, without asking, while the server wants patience.
  answer<void> follow(const api_request& request, const api_lines& lines);

  const api_time& time() const { return time_; }
  const std::string& name_space() const { return place_.name_space; }

private:
  answer<nlohmann::json> ask_plainly(const api_request& request, time_point give_up);
  answer<base::http_answer> send(const api_request& request, time_point give_up);
  answer<base::http_answer> send_once(const api_request& request, std::chrono::milliseconds deadline);
  answer<base::http_answer> follow_once(const api_request& request, const api_lines& lines);
  answer<base::http_request> carried(const api_request& request) const;
  std::optional<api_refusal> patience_asked(const api_request& request) const;
  void note_patience(const base::http_answer& got);
  api_refusal with_missing_right(const api_request& request, api_refusal refused, time_point give_up);

  api_place place_;
  api_transport& transport_;
  api_time time_;
  time_point quiet_until_{}; ///< the server is not to be asked before
};

} // namespace dlrun::kubernetes
