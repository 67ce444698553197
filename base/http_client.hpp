/// http_client: one request over HTTP, with a deadline. libcurl stays in here.
#pragma once

#include <chrono>
#include <dlrun/error.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::base {

/// PEM files; empty ones are not used.
struct tls_files {
  std::string ca;            ///< who may sign the server's certificate; else the system's authorities
  std::string certificate{}; ///< of this client
  std::string key{};
};

struct http_request {
  std::string method; ///< GET, which has no body, POST, PATCH, ...
  std::string url;
  std::vector<std::string> headers{}; ///< "Name: value"
  std::string body{};
};

struct http_answer {
  long status = 0;
  std::string body{};
  std::optional<std::chrono::seconds> retry_after{}; ///< the server asks for so much patience
};

/// How an answer is taken that comes in parts, for long.
struct http_stream {
  std::chrono::milliseconds connect_max{5000}; ///< for a new connection
  std::chrono::seconds silence_max{90};        ///< without a byte it is given up
  std::chrono::seconds lasts_max{600};         ///< all of it
  /// Is told what has come, and with which status. @returns whether it goes on: else it breaks off.
  std::function<bool(long status, std::string_view part)> take;
  /// Asked once a second at least. @returns whether it is wanted still.
  std::function<bool()> goes_on = [] { return true; };
};

/// Keeps its connections from one request to the next. Uses no proxy, and follows nobody elsewhere.
/// One thread at a time.
class http_client {
public:
  /// What is longer is no answer of ours.
  static constexpr std::size_t answer_bytes_max = std::size_t{64} << 20;

  /// @param needed_by "a journal in an etcd". @returns bad_usage when libcurl cannot be loaded,
  /// naming its package.
  static result<void> check_installed(std::string_view needed_by);

  /// Requires check_installed().
  explicit http_client(tls_files files);
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;
  ~http_client();

  /// Blocks for at most `deadline`, above 0, of which at most `connect_max` is for a new
  /// connection, its handshake included.
  /// @returns timed_out, or system, when no whole answer came: the request may have been carried
  /// out.
  result<http_answer> send(const http_request& request, std::chrono::milliseconds deadline,
                           std::chrono::milliseconds connect_max = std::chrono::milliseconds::max());

  /// Hands the body on as it comes; that of the answer is empty. Blocks until the server has ended
  /// it. @returns interrupted when `goes_on` says so; timed_out, or system, when it broke off.
  result<http_answer> stream(const http_request& request, const http_stream& how);

private:
  class implementation;
  std::unique_ptr<implementation> parts_;
};

} // namespace dlrun::base
