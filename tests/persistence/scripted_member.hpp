/// A member of an etcd for tests that says what it is told to say.
#pragma once

#include "base/unique_fd.hpp"
#include "persistence/http_post.hpp"

#include <functional>
#include <string>
#include <thread>

namespace dlrun::test {

/// Listens on a port of loopback and answers one request after the other, on a thread of its own.
class scripted_member {
public:
  using script = std::function<persistence::http_answer(const std::string& path, const std::string& body)>;

  explicit scripted_member(script answer);
  ~scripted_member();
  scripted_member(const scripted_member&) = delete;
  scripted_member& operator=(const scripted_member&) = delete;

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
