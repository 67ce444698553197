#include "actors/keeper/part_fetcher.hpp"

#include <chrono>
#include <fmt/format.h>
#include <future>
#include <utility>
#include <vector>

namespace dlrun::keeper {
namespace {

/// Without anything of it; the PS shard is more patient, so that it is told why.
constexpr auto patience = std::chrono::seconds(1);

} // namespace

/// Shared by the channel, which fetches, and who waits for it.
struct part_fetcher::arrival {
  std::shared_ptr<const void> place;
  std::promise<result<transport::segment>> promise{};
  std::shared_future<result<transport::segment>> come{promise.get_future()};
  std::vector<std::byte> own{}; ///< where what came is the PS shard's memory
};

part_fetcher::part_fetcher(std::unique_ptr<transport::segment_fetches> channel)
    : place_(std::make_shared<int>())
    , channel_(std::move(channel)) {}

part_fetcher::~part_fetcher() = default;

result<void> part_fetcher::check(const protocol::copy_part& part) const {
  const auto& [address, segment, bytes] = part.where;
  if (bytes > protocol::copy_part_bytes_max || part.bytes > bytes)
    return fail(error_code::protocol,
                fmt::format("{} bytes of a segment of {} are no part", part.bytes, bytes));
  if (static_cast<std::size_t>(place_.use_count()) > parts_max)
    return fail(error_code::limit_exceeded, "too many parts are on the way");
  return {};
}

part_bytes part_fetcher::fetch(const protocol::copy_part& part) {
  if (part.bytes == 0) return [] { return std::span<const std::byte>{}; };
  if (const auto fine = check(part); !fine) return [why = fine.error()] { return tl::unexpected(why); };
  const auto coming = std::make_shared<arrival>(arrival{place_});
  const auto asked =
      channel_->fetch(part.where.address, {part.where.segment}, part.where.bytes, {.values = {0, part.bytes}},
                      std::chrono::steady_clock::now() + patience, [coming](result<transport::segment> got) {
                        coming->promise.set_value(std::move(got));
                      });
  if (!asked) return [why = asked.error()] { return tl::unexpected(why); };
  const bool is_shared = channel_->is_shared(part.where.address);
  return [coming, is_shared, count = part.bytes]() -> result<std::span<const std::byte>> {
    const auto& got = coming->come.get();
    if (!got) return tl::unexpected(got.error());
    const auto bytes = got->bytes().first(count);
    if (!is_shared) return bytes;
    coming->own.assign(bytes.begin(), bytes.end());
    return std::span<const std::byte>(coming->own);
  };
}

} // namespace dlrun::keeper
