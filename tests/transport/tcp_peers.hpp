/// Ends of a TCP tensor channel that do what a test tells them, for tests of tcp_server and
/// tcp_client.
#pragma once

#include "transport/tcp_wire.hpp"

#include <functional>
#include <string>
#include <thread>

namespace dlrun::transport::testing {

/// A blocking socket whose reads and writes give up after 20 s.
class plain_socket {
public:
  explicit plain_socket(base::unique_fd connected);
  int get() const { return fd_.get(); }
  /// @returns whether all of it was sent.
  bool send(const void* data, std::size_t size) const;
  /// @returns whether all of it came.
  bool receive(void* data, std::size_t size) const;
  /// Whether the other end hangs up without another byte.
  bool hangs_up() const;

  template <class Message>
  bool send(const Message& message) const {
    return send(&message, sizeof message);
  }
  template <class Message>
  bool receive(Message& message) const {
    return receive(static_cast<void*>(&message), sizeof message);
  }

private:
  base::unique_fd fd_;
};

/// Connected to a server, and nothing said.
plain_socket connect_plain(const std::string& address);
/// The same, and past the proof.
plain_socket connect_proven(const std::string& address, const run_token& token);
/// As a server proves itself. @returns whether the other end did too.
bool greet_as_server(const plain_socket& with, const run_token& token);

/// Listens, and does with each connection what it is told, one after the other.
class scripted_server {
public:
  using script = std::function<void(plain_socket& connection, int number)>;
  explicit scripted_server(script each);
  ~scripted_server();
  const std::string& address() const { return address_; }

private:
  void serve();

  script each_;
  std::string address_;
  base::unique_fd listener_;
  base::unique_fd stop_read_, stop_write_;
  std::thread thread_;
};

} // namespace dlrun::transport::testing
