/// A server for tests that says what it is told to say, over HTTP.
#pragma once

#include "base/http_client.hpp"
#include "base/unique_fd.hpp"

#include <functional>
#include <string>
#include <thread>

namespace dlrun::test {

/// Listens on a port of loopback and answers one request after the other, on a thread of its own.
class scripted_server {
public:
  /// Of what is asked `url` is the path.
  using script = std::function<base::http_answer(const base::http_request& asked)>;

  explicit scripted_server(script answer);
  ~scripted_server();
  scripted_server(const scripted_server&) = delete;
  scripted_server& operator=(const scripted_server&) = delete;

  std::string endpoint() const;

private:
  void serve();
  void serve(int connection);

  script answer_;
  base::unique_fd socket_;
  unsigned port_ = 0;
  std::thread thread_;
};

} // namespace dlrun::test
