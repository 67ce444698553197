/// probe_server: tells by HTTP whether this process is alive and ready, and nothing else.
#pragma once

#include "base/listener.hpp"
#include "base/pulse.hpp"
#include "base/service_loop.hpp"

#include <deque>
#include <dlrun/error.hpp>
#include <memory>
#include <netinet/in.h>
#include <string>

namespace dlrun::base {

/// Answers `GET /livez` and `GET /readyz`, as a kubelet asks them, from a thread of its own: 200
/// and "ok", or 503 and "no". All else is 404. Asks nobody who he is, so it tells nothing of a job;
/// who is slow, or one of many, is cut off.
class probe_server final : polled_service {
public:
  static constexpr std::size_t askers_max = 16; ///< one more, and the oldest has to go
  static constexpr std::size_t request_bytes_max = 2048;

  /// @param listen "10.0.0.2:7780"; port 0: any that is free  @param patience for a whole request
  /// @returns bad_usage, naming place and reason, when it cannot listen there.
  static result<std::unique_ptr<probe_server>>
  start(const std::string& listen, std::shared_ptr<const pulse> of,
        std::chrono::milliseconds patience = std::chrono::seconds{2});

  /// Where it listens.
  const sockaddr_in& address() const { return address_; }

private:
  using time_point = std::chrono::steady_clock::time_point;
  struct asker {
    unique_fd socket;
    time_point until;
    std::string request{};
  };

  probe_server(unique_fd socket, const sockaddr_in& address, std::shared_ptr<const pulse> of,
               std::chrono::milliseconds patience)
      : listener_{std::move(socket)}
      , address_{address}
      , pulse_{std::move(of)}
      , patience_{patience} {}

  time_point watch(std::vector<pollfd>& fds) override;
  void serve(std::span<const pollfd> fds) override;
  bool is_served(asker& one, time_point now) const;
  std::string_view answer_to(std::string_view request, time_point now) const;

  listener listener_;
  sockaddr_in address_;
  std::shared_ptr<const pulse> pulse_;
  std::chrono::milliseconds patience_;
  std::deque<asker> askers_{}; ///< in order of their ends
  service_loop thread_;
};

} // namespace dlrun::base
