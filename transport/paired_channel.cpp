#include "transport/paired_channel.hpp"

#include <utility>

namespace dlrun::transport {

std::string to_string(const paired_address& one) {
  return fmt::format("{} {} {}", one.near, one.host, one.far);
}

std::optional<paired_address> parse_paired_address(std::string_view text) {
  const auto first = text.find(' ');
  const auto last = text.rfind(' ');
  if (first == last) return std::nullopt; // none, or one
  return paired_address{std::string(text.substr(0, first)),
                        std::string(text.substr(first + 1, last - first - 1)),
                        std::string(text.substr(last + 1))};
}

// ---- offers

paired_offers::paired_offers(std::shared_ptr<segment_offers> near, std::string host,
                             std::shared_ptr<tcp_server> far)
    : near_(std::move(near))
    , far_(std::move(far))
    , address_(to_string({near_->address(), std::move(host), far_->address()})) {}

result<segment_id> paired_offers::offer(const segment& what) {
  auto id = near_->offer(what);
  if (!id) return id;
  if (const auto also = far_->offer_as(*id, what); !also) {
    near_->withdraw(*id);
    return tl::unexpected(also.error());
  }
  return id;
}

void paired_offers::withdraw(segment_id id) {
  near_->withdraw(id);
  far_->withdraw(id);
}

void paired_offers::on_doorbell(std::function<void(std::unique_ptr<doorbell>)> connected) {
  near_->on_doorbell(std::move(connected));
}

// ---- fetches

paired_fetches::paired_fetches(std::unique_ptr<segment_fetches> near, std::string host,
                               std::unique_ptr<segment_fetches> far)
    : host_(std::move(host))
    , near_(std::move(near))
    , far_(std::move(far)) {}

paired_fetches::way paired_fetches::way_to(std::string_view address) const {
  auto both = parse_paired_address(address);
  if (!both) return {*near_, std::string(address)};
  if (both->host == host_) return {*near_, std::move(both->near)};
  return {*far_, std::move(both->far)};
}

bool paired_fetches::is_shared(std::string_view address) const {
  const auto [by, at] = way_to(address);
  return by.is_shared(at);
}

result<void> paired_fetches::fetch(std::string address, segment_id id, std::size_t expected_bytes,
                                   const segment_part& part, std::chrono::steady_clock::time_point deadline,
                                   callback done) {
  auto [by, at] = way_to(address);
  return by.fetch(std::move(at), id, expected_bytes, part, deadline, std::move(done));
}

result<void> paired_fetches::connect_doorbell(std::string address,
                                              std::chrono::steady_clock::time_point deadline,
                                              connected_callback done) {
  auto [by, at] = way_to(address);
  return by.connect_doorbell(std::move(at), deadline, std::move(done));
}

} // namespace dlrun::transport
