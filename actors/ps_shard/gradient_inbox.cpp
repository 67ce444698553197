#include "actors/ps_shard/gradient_inbox.hpp"

#include "actors/common/clock.hpp"

#include <algorithm>
#include <chrono>

namespace dlrun::ps_shard {
namespace {

constexpr auto fetch_deadline = std::chrono::seconds(2);
/// Pushes that wait for one segment to be mapped; what is beyond is dropped, its sender repeats it.
constexpr std::size_t waiting_max = 64;
/// Of a worker's pushes: a buffer that none of so many has named, and none of twice as many as it
/// has buffers, is unmapped. Larger: a buffer that is not there any more takes memory for longer;
/// smaller: one that is used now and then is mapped anew.
constexpr std::uint64_t unnamed_min = 128;

} // namespace

gradient_inbox::gradient_inbox(const engine::shard_range& range, std::uint64_t flat_size,
                               std::unique_ptr<transport::segment_fetches> channel,
                               std::function<void(std::function<void()>)> post,
                               std::shared_ptr<spdlog::logger> log, events told)
    : range_(range)
    , flat_size_(flat_size)
    , post_(std::move(post))
    , log_(std::move(log))
    , told_(std::move(told))
    , channel_(std::move(channel)) {}

void gradient_inbox::take(const protocol::push& push, protocol::time_point now) {
  const auto key = key_of(push);
  const auto found = sources_.find(key);
  if (found == sources_.end()) return fetch(key, push, now);
  note_named(key, push.worker);
  if (const auto reader = found->second.reader) return hand_over(push, reader);
  if (found->second.waiting.size() < waiting_max) found->second.waiting.push_back(push);
}

gradient_inbox::segment_key gradient_inbox::key_of(const protocol::push& push) const {
  const auto& [address, segment, bytes] = push.where;
  return {address, segment, channel_->is_shared(address) ? 0 : push.tensor_sequence};
}

void gradient_inbox::note_named(const segment_key& key, worker_id worker) {
  const auto number = ++pushes_[worker];
  sources_.at(key).named = number;
  if (number % unnamed_min != 0) return;
  const auto is_of = [&](const auto& entry) { return entry.second.worker == worker; };
  const auto buffers = static_cast<std::uint64_t>(std::ranges::count_if(sources_, is_of));
  std::erase_if(sources_, [&](const auto& entry) {
    return is_of(entry) && entry.second.reader &&
           entry.second.named + std::max(unnamed_min, 2 * buffers) < number;
  });
}

void gradient_inbox::fetch(const segment_key& key, const protocol::push& push, protocol::time_point now) {
  if (push.where.bytes != transport::gradient_segment_bytes(flat_size_)) {
    log_->warn("push-refused: worker {} offers {} bytes for {} floats", push.worker, push.where.bytes,
               flat_size_);
    return;
  }
  sources_[key] = {push.worker, push.self.incarnation, nullptr, {push}, now, pushes_[push.worker]};
  const auto asked = channel_->fetch(
      key.address, {key.segment}, push.where.bytes, transport::gradient_part(range_.offset, range_.size),
      now + fetch_deadline, [this, post = post_, key](result<transport::segment> fetched) {
        auto shared = std::make_shared<result<transport::segment>>(std::move(fetched));
        post([this, key, shared] { on_fetched(key, std::move(*shared)); });
      });
  if (!asked) sources_.erase(key);
}

void gradient_inbox::on_fetched(const segment_key& key, result<transport::segment> fetched) {
  const auto found = sources_.find(key);
  if (found == sources_.end()) return;
  const auto worker = found->second.worker;
  if (!fetched) {
    log_->warn("gradient-unreachable: worker {}: {}", worker, fetched.error().message);
    sources_.erase(found);
    return;
  }
  auto reader = transport::gradient_reader::open(std::move(*fetched), flat_size_);
  if (!reader) {
    log_->warn("gradient-refused: worker {}: {}", worker, reader.error().message);
    sources_.erase(found);
    return;
  }
  const auto opened = std::make_shared<const transport::gradient_reader>(std::move(*reader));
  const auto waiting = std::exchange(found->second.waiting, {});
  if (channel_->is_shared(key.address)) {
    found->second.reader = opened;
  } else { // a copy is of one gradient, not of the next
    transfers_.add(common::now() - found->second.asked);
    sources_.erase(found);
  }
  for (const auto& push : waiting) {
    if (told_.wants(push))
      hand_over(push, opened);
    else
      told_.unusable(push);
  }
}

result<gradient> gradient_inbox::view(const protocol::push& push,
                                      const std::shared_ptr<const transport::gradient_reader>& reader) const {
  const transport::gradient_header expected{.timeline = push.timeline,
                                            .worker = push.worker,
                                            .worker_incarnation = push.self.incarnation,
                                            .step = push.step,
                                            .slots_begin = push.slots.begin,
                                            .slots_end = push.slots.end,
                                            .records = push.records,
                                            .flat_size = flat_size_,
                                            .sequence = push.tensor_sequence};
  const auto whole = reader->view(expected);
  if (!whole) return tl::unexpected(whole.error());
  return gradient{whole->subspan(range_.offset, range_.size), reader,
                  [reader, expected] { return reader->unchanged(expected); }};
}

void gradient_inbox::hand_over(const protocol::push& push,
                               const std::shared_ptr<const transport::gradient_reader>& reader) {
  auto found = view(push, reader);
  if (found) return told_.arrived(push, std::move(*found));
  // The buffer was reused: the message is an old one.
  log_->info("push-outdated: worker {} step {}: {}", push.worker, push.step, found.error().message);
  told_.unusable(push);
}

std::optional<gradient> gradient_inbox::find_part(const protocol::push& push, std::uint64_t from) const {
  const auto found = sources_.find(key_of(push));
  if (found == sources_.end() || !found->second.reader) return std::nullopt;
  auto part = view(push, found->second.reader);
  if (!part) return std::nullopt;
  part->from = std::max(from, range_.offset) - range_.offset;
  return std::move(*part);
}

std::vector<protocol::slot_range> gradient_inbox::on_the_way(timeline_id timeline, step_id step,
                                                             protocol::time_point now) const {
  std::vector<protocol::slot_range> found;
  for (const auto& [key, source] : sources_) {
    if (channel_->is_shared(key.address) || transfers_.is_late(now - source.asked)) continue;
    for (const auto& push : source.waiting)
      if (push.timeline == timeline && push.step == step) found.push_back(push.slots);
  }
  return found;
}

void gradient_inbox::forget(worker_id worker, incarnation older_than) {
  std::erase_if(sources_, [&](const auto& entry) {
    return entry.second.worker == worker && entry.second.incarnation < older_than;
  });
}

} // namespace dlrun::ps_shard
