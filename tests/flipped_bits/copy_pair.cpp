#include "tests/flipped_bits/copy_pair.hpp"

#include "actors/common/history_conversion.hpp"

#include <utility>

namespace dlrun::flipped_bits {
namespace {

constexpr protocol::role_name shard_role = protocol::ps_shard_role({0});
constexpr incarnation shard_start{5};
/// So that records take two, and snapshots three.
constexpr std::size_t part_bytes = 4096;
constexpr auto tick = std::chrono::milliseconds(100);
/// A stream that is lost takes 2 s to be begun anew, and a flip ends two at most.
constexpr int idle_turns_max = 200;
/// Many times of what filling an empty copy takes.
constexpr int turns_max = 20'000;

} // namespace

ps_shard::own_store held_by(const persistence::shard_store& store) {
  ps_shard::own_store all{
      common::history_from(store.history()), {{{0}, {0}}}, store.logged(), {}, store.floor()};
  for (const auto& range : store.restorable()) protocol::insert(all.restorable, range);
  for (const auto& one : store.snapshots()) all.snapshots.push_back(one.version);
  return all;
}

copy_pair::copy_pair(copy_pair_options options)
    : options_(std::move(options))
    , own_(held_by(*options_.store))
    , fetcher_(std::make_unique<played_fetches>(offers_, options_.flip))
    , sender_({.role = shard_role,
               .incarnation = shard_start,
               .offers = offers_,
               .threads = {[this](auto task) { to_read_.push_back(std::move(task)); },
                           [this](auto task) { posted_.push_back(std::move(task)); }},
               .send = [this](const protocol::copy_part& part) { parts_.push_back(part); },
               .warn = [this](const std::string& why) { noticed_.push_back(why); },
               .now = [this] { return now_; },
               .part_bytes = part_bytes}) {
  book_.restart(own_.history, {options_.store->next_step().value});
  sender_.serve({[this] { return own_; },
                 [this](ps_shard::copy_item item) {
                   options_.flip->show(item);
                   return ps_shard::copy_source::open(*options_.store, item);
                 }});
  start_keeper();
}

void copy_pair::start_keeper() {
  ++keeper_.value;
  keeper::store_mirror_options made{.role = protocol::keeper_role({0}), .self = keeper_};
  made.store = options_.copy;
  mirror_ = std::make_unique<keeper::store_mirror>(std::move(made));
  parts_.clear();
  book_.on_keeper(keeper_);
  sender_.begin(keeper_);
}

/// Its process ends; the agent starts another.
void copy_pair::lose_keeper(const std::string& why) {
  noticed_.push_back("the keeper ends: " + why);
  start_keeper();
}

bool copy_pair::run() {
  int turns = 0;
  for (int idle = 0; idle < idle_turns_max && turns < turns_max && !is_level(); ++turns) {
    if (turn()) {
      idle = 0;
      continue;
    }
    ++idle;
    now_ += tick;
    if (sender_.is_stuck()) sender_.begin(keeper_);
    sender_.pump();
  }
  return is_level();
}

bool copy_pair::is_level() const {
  const auto& said = book_.newest_standing();
  return said && book_.counted() == keeper_ && said->end.value == options_.store->next_step().value &&
         said->floor == own_.floor && said->snapshots == own_.snapshots;
}

/// @returns whether there was something to do.
bool copy_pair::turn() {
  if (!parts_.empty()) {
    auto next = std::move(parts_.front());
    parts_.pop_front();
    deliver(std::move(next));
    return true;
  }
  return run_task(posted_) || run_task(to_read_);
}

bool copy_pair::run_task(std::deque<std::function<void()>>& tasks) {
  if (tasks.empty()) return false;
  const auto task = std::move(tasks.front());
  tasks.pop_front();
  task();
  return true;
}

/// As the keeper does it.
void copy_pair::deliver(protocol::copy_part part) {
  options_.flip->show(part);
  if (part.role != shard_role || part.keeper != keeper_) return noticed_.push_back("a part is of nobody");
  std::vector<std::byte> come;
  const auto fetched = fetcher_.fetch(part);
  if (mirror_->store() != nullptr) options_.flip->show(*mirror_);
  const auto answer = mirror_->take(part, [&]() -> result<std::span<const std::byte>> {
    const auto bytes = fetched();
    if (!bytes) return bytes;
    come.assign(bytes->begin(), bytes->end());
    options_.flip->show(place::part_fetched, come);
    return std::span<const std::byte>(come);
  });
  if (!answer && mirror_->set_aside_damaged(answer.error()))
    return noticed_.push_back("it is set aside: " + answer.error().message);
  if (!answer) return lose_keeper(answer.error().message);
  if (!*answer) return;
  if (!(*answer)->failure.empty()) noticed_.push_back((*answer)->failure);
  hear(**answer);
}

void copy_pair::hear(protocol::copy_standing said) {
  options_.flip->show(said);
  if (!sender_.on_standing(said)) return;
  book_.on_standing(said, own_, now_);
  sender_.pump();
}

} // namespace dlrun::flipped_bits
