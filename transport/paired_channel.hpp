/// The tensor channel of a process in a job of several hosts: one way for its own host, and one for
/// all others.
#pragma once

#include "transport/tcp_server.hpp"
#include "transport/tensor_channel.hpp"

#include <optional>

namespace dlrun::transport {

/// Where a process offers what it has, as one text: "NEAR HOST FAR". `near` is for processes of the
/// host `host`, `far` for those of others.
struct paired_address {
  std::string near, host, far;
};
std::string to_string(const paired_address& one);
/// Nothing when `text` is the address of one way only.
std::optional<paired_address> parse_paired_address(std::string_view text);

/// Offers each segment both ways, under one id.
class paired_offers final : public segment_offers {
public:
  /// `host` is this process's own.
  paired_offers(std::shared_ptr<segment_offers> near, std::string host, std::shared_ptr<tcp_server> far);

  const std::string& address() const override { return address_; }
  const std::string& near_address() const override { return near_->near_address(); }
  result<segment_id> offer(const segment& what) override;
  void withdraw(segment_id id) override;
  void on_doorbell(std::function<void(std::unique_ptr<doorbell>)> connected) override;

private:
  std::shared_ptr<segment_offers> near_;
  std::shared_ptr<tcp_server> far_;
  std::string address_;
};

/// Goes the way that the host in an address says; an address of one way is `near`.
class paired_fetches final : public segment_fetches {
public:
  /// `host` is this process's own.
  paired_fetches(std::unique_ptr<segment_fetches> near, std::string host,
                 std::unique_ptr<segment_fetches> far);

  bool is_shared(std::string_view address) const override;
  result<void> fetch(std::string address, segment_id id, std::size_t expected_bytes, const segment_part& part,
                     std::chrono::steady_clock::time_point deadline, callback done) override;
  result<void> connect_doorbell(std::string address, std::chrono::steady_clock::time_point deadline,
                                connected_callback done) override;

private:
  struct way {
    segment_fetches& by;
    std::string address;
  };
  way way_to(std::string_view address) const;

  std::string host_;
  std::unique_ptr<segment_fetches> near_, far_;
};

} // namespace dlrun::transport
