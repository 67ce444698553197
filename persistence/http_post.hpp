/// http_post: one request over HTTP, with a deadline. libcurl stays in here.
#pragma once

#include <chrono>
#include <dlrun/error.hpp>
#include <memory>
#include <string>

namespace dlrun::persistence {

/// PEM files; empty ones are not used.
struct tls_files {
  std::string ca;          ///< who may sign the server's certificate; else the system's authorities
  std::string certificate; ///< of this client
  std::string key;
};

struct http_answer {
  long status = 0;
  std::string body;
};

/// Keeps its connections from one request to the next. Uses no proxy, and follows nobody elsewhere.
/// One thread at a time.
class http_post {
public:
  /// What is longer is no answer of ours.
  static constexpr std::size_t answer_bytes_max = std::size_t{64} << 20;

  /// @returns bad_usage when libcurl cannot be loaded, naming its package.
  static result<void> check_installed();

  /// Requires check_installed().
  explicit http_post(tls_files files);
  http_post(const http_post&) = delete;
  http_post& operator=(const http_post&) = delete;
  ~http_post();

  /// Blocks for at most `deadline`, above 0, of which a quarter is for a new connection.
  /// `authorization` is a header's value; empty: none.
  /// @returns timed_out, or system, when no whole answer came: the request may have been carried
  /// out.
  result<http_answer> send(const std::string& url, const std::string& body, const std::string& authorization,
                           std::chrono::milliseconds deadline);

private:
  class implementation;
  std::unique_ptr<implementation> parts_;
};

} // namespace dlrun::persistence
