/// Peers that do what no correct peer does, for tests of segment_server and segment_client.
#pragma once

#include "transport/exchange_wire.hpp"

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace dlrun::transport::testing {

/// A server that answers one connection as it is told. Its address is its own.
class rogue_server {
public:
  /// `answer` gets the connected socket after the request has been read. The connection stays open
  /// until the rogue dies.
  explicit rogue_server(std::function<void(int socket, const wire::request& asked)> answer);
  ~rogue_server();
  const std::string& address() const { return address_; }

private:
  void serve() const;

  std::function<void(int, const wire::request&)> answer_;
  std::string address_;
  base::unique_fd listener_;
  base::unique_fd stop_read_;
  base::unique_fd stop_write_;
  std::thread thread_;
};

/// Sends one packet with any number of descriptors.
void send_with(int socket, const void* data, std::size_t size, const std::vector<int>& descriptors);

/// A blocking connection to a server.
base::unique_fd connect_to(const std::string& address);

/// Sends raw bytes and waits for what comes back, 20 s at most. @returns the size, 0 when the
/// server hung up.
std::size_t exchange_raw(int socket, const std::string& bytes, wire::reply& into);

/// Waits until the server hangs up, 20 s at most. @returns whether it did.
bool hangs_up(int socket);

} // namespace dlrun::transport::testing
