/// How long steps take: a histogram of bounded size.
#pragma once

#include "actors/protocol/status_messages.hpp"
#include "actors/protocol/time.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

namespace dlrun::ps_shard {

/// The time from each version to the next. Quantiles are too large by at most 1/32.
class step_times {
public:
  /// `version` is served at `now`. One that was served already, and is told again since it is in
  /// the log, counts for nothing; nor does the time that it takes to go back to an earlier one.
  void add(version_id version, protocol::time_point now) {
    if (last_ && version == last_->version) return;
    if (last_ && version.value == last_->version.value + 1)
      add_us(static_cast<std::uint64_t>(std::max<protocol::duration::rep>((now - last_->at).count(), 0)));
    last_ = {version, now};
  }

  protocol::step_time_quantiles quantiles() const {
    return {.p50_us = quantile(0.50), .p99_us = quantile(0.99), .max_us = max_us_};
  }

private:
  static constexpr unsigned fraction_bits = 5;
  static constexpr std::uint64_t fractions = std::uint64_t{1} << fraction_bits;

  // Below 2 * 32 each value has its own bucket; above, each power of two is cut into 32.
  static std::size_t bucket_of(std::uint64_t us) {
    if (us < 2 * fractions) return us;
    const auto shift = static_cast<unsigned>(std::bit_width(us)) - 1 - fraction_bits;
    return (shift << fraction_bits) + (us >> shift);
  }
  static std::uint64_t upper_end(std::size_t bucket) {
    if (bucket < 2 * fractions) return bucket;
    const auto shift = (bucket >> fraction_bits) - 1;
    return (((bucket & (fractions - 1)) + fractions + 1) << shift) - 1;
  }

  void add_us(std::uint64_t us) {
    max_us_ = std::max(max_us_, us);
    ++count_;
    ++buckets_[std::min(bucket_of(us), buckets_.size() - 1)];
  }

  std::uint64_t quantile(double part) const {
    const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      if ((seen += buckets_[i]) > wanted) return std::min(upper_end(i), max_us_);
    return max_us_;
  }

  std::array<std::uint32_t, 40 * fractions> buckets_{}; // up to 2^43 us
  std::uint64_t count_ = 0;
  std::uint64_t max_us_ = 0;
  struct served {
    version_id version;
    protocol::time_point at;
  };
  std::optional<served> last_;
};

} // namespace dlrun::ps_shard
