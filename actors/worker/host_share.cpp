#include "actors/worker/host_share.hpp"

namespace dlrun::worker {

std::optional<double> host_share::on_begin(step_id step, protocol::time_point now,
                                           std::chrono::nanoseconds so_far) {
  constexpr std::uint32_t first = 2, end = first + steps;
  if (begun_ == end || step_ == step) return std::nullopt;
  step_ = step;
  ++begun_;
  if (begun_ == first) {
    since_ = now;
    taken_before_ = so_far;
  }
  if (begun_ < end || now <= since_) return std::nullopt;
  using seconds = std::chrono::duration<double>;
  return seconds(so_far - taken_before_) / seconds(now - since_);
}

} // namespace dlrun::worker
