/// tcp_client: gets copies of parts of segments from the tcp_servers of other processes.
#pragma once

#include "security/tls_context.hpp"
#include "transport/copy_buffers.hpp"
#include "transport/tensor_channel.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace dlrun::transport {

struct tcp_client_options {
  run_token token;
  /// For servers whose address asks for TLS; null: such servers cannot be asked.
  std::shared_ptr<const security::tls_context> tls{};
  /// Fetches accepted and not yet answered; more are refused.
  std::size_t queue_max = 4096;
  /// The largest segment of which a part is copied.
  std::size_t bytes_max = segment_bytes_max_default;
};

/// Fetches copies on its own thread, over one connection to each server, which stays for the next
/// fetch; a server that hangs delays no other fetch. Bytes go from the socket straight into the
/// memory that the callback gets; that memory is used again when its last user is gone.
/// Thread-safe.
class tcp_client final : public segment_fetches {
public:
  /// @returns system when an eventfd or a thread cannot be had.
  static result<std::unique_ptr<tcp_client>> start(tcp_client_options options);
  ~tcp_client() override;

  bool is_shared(std::string_view) const override { return false; }
  result<void> fetch(std::string address, segment_id id, std::size_t expected_bytes, const segment_part& part,
                     std::chrono::steady_clock::time_point deadline, callback done) override;
  /// As fetch(), with the part written into `into`, which is as large as the whole segment; the
  /// rest of `into` stays. Nobody else may use that part until the callback is called.
  result<void> fetch_into(const copy_buffer& into, std::string address, segment_id id,
                          const segment_part& part, std::chrono::steady_clock::time_point deadline,
                          callback done);

private:
  class loop;
  explicit tcp_client(std::unique_ptr<loop> loop);
  std::unique_ptr<loop> loop_;
};

} // namespace dlrun::transport
