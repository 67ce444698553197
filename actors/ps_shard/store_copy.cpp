#include "actors/ps_shard/store_copy.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/connect.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::ps_shard {
namespace {

constexpr auto question_period = std::chrono::milliseconds(100);

protocol::job_event event_of(const copy_cost::word& said, const protocol::copy_figures& measured,
                             const common::role_context& context) {
  const auto number = [](const char* name, std::uint64_t value, double unit) {
    return protocol::named_number(name, static_cast<double>(value) / unit);
  };
  return {.event = said.is_slow ? "copy-slow" : "copy-measured",
          .role = context.role,
          .incarnation = context.self.incarnation,
          .text = said.text,
          .numbers = {.values = {number("bytes_per_step", measured.bytes_per_step, 1),
                                 number("bytes_per_second", measured.bytes_per_second, 1),
                                 number("step_ms", measured.step_us, 1e3),
                                 number("busy", measured.busy_permille, 1e3),
                                 number("waited", measured.waited_permille, 1e3)}}};
}

} // namespace

store_copy::store_copy(pointer self, const common::role_context& context, events told)
    : self_(self)
    , context_(context)
    , told_(std::move(told))
    , book_(context.job->durability())
    , cost_({context.role.index}, context.job->durability()) {}

void store_copy::offer_at(const std::shared_ptr<transport::segment_offers>& offers) {
  if (!context_.job->keeps_copies()) return;
  reader_ = std::make_unique<common::task_thread>("copy");
  const auto read = [reader = reader_.get()](std::function<void()> task) { reader->run(std::move(task)); };
  sender_.emplace(
      copy_sender_options{.role = context_.role,
                          .incarnation = context_.self.incarnation,
                          .offers = offers,
                          .threads = {read, common::poster<protocol::ps_shard_actor>{self_}},
                          .send = [this](const protocol::copy_part& part) { self_->send(keeper_, part); },
                          .warn = [this](const std::string& why) { context_.log->warn("copy: {}", why); },
                          .now = common::now});
}

void store_copy::restart(std::shared_ptr<threaded_store> store, const loaded_standing& restored) {
  if (!context_.job->keeps_copies()) {
    if (!std::exchange(store_, std::move(store))) told_.settled(restored);
    return;
  }
  book_.restart(restored.history, restored.stored());
  sender_->serve({[store] { return store->held(); },
                  [store](const copy_item& item) { return store->open_for_copy(item); }});
  if (!std::exchange(store_, std::move(store))) {
    start_.begin(restored);
    return ask_until_settled();
  }
  if (keeper_) sender_->begin(link_);
}

void store_copy::ask_until_settled() {
  if (start_.is_settled()) return;
  on_tick();
  told_.ask();
  common::post_later(self_, caf::actor_cast<protocol::ps_shard_actor>(self_), question_period,
                     [this] { ask_until_settled(); });
}

own_store store_copy::mine() const { return store_ ? store_->held() : own_store{}; }

// ---- the own store

void store_copy::on_logged(version_id version) {
  if (!context_.job->keeps_copies()) return told_.committed(version);
  take(book_.on_logged(version));
  sender_->pump();
  measure();
}

void store_copy::on_snapshot(timeline_id timeline, version_id version) {
  if (!context_.job->keeps_copies()) return told_.snapshot_durable(timeline, version);
  take(book_.on_snapshot(timeline, version));
  sender_->pump();
  measure();
}

void store_copy::take(const released_versions& news) {
  wait_.on_tick(waits(), common::now());
  if (news.committed) told_.committed(*news.committed);
  for (const auto version : news.snapshots) told_.snapshot_durable(book_.timeline(), version);
}

void store_copy::settle() {
  if (start_.is_settled()) return;
  if (const auto restored = start_.settle(book_, mine())) told_.settled(*restored);
}

// ---- what it costs

void store_copy::on_core(const step_pipeline& steps) {
  if (!sender_) return;
  held_by_ = steps.held_by();
  applied_ = steps.versions().applied();
  measure();
}

void store_copy::measure() {
  const bool is_awaited = held_by_ == store_wait::log        ? book_.is_log_awaited()
                          : held_by_ == store_wait::snapshot ? book_.is_snapshot_awaited()
                                                             : false;
  const auto news = cost_.note({.counts = book_.counted().value != 0,
                                .is_on_the_way = sender_->has_bytes_on_the_way(),
                                .is_awaited = is_awaited,
                                .applied = applied_,
                                .bytes = sender_->bytes_taken()},
                               common::now());
  if (!news) return;
  context_.log->log(news->is_slow ? spdlog::level::warn : spdlog::level::info, "copy: {}", news->text);
  self_->send(context_.agent, event_of(*news, cost_.figures(), context_));
}

// ---- the agent and the keeper

void store_copy::on_keeper(const protocol::keeper_place& place) {
  if (!place.is_known || !store_) return;
  place_ = place;
  if (start_.hear(place)) {
    context_.log->info("copy: an earlier start counted that of keeper incarnation {}", place.incarnation);
    book_.begin_with(place.incarnation);
  }
  const auto before = book_.counted();
  take(book_.on_keeper(place.incarnation));
  if (before.value != 0 && book_.counted().value == 0)
    context_.log->warn("copy: keeper incarnation {} is over, the copy counts no more", before);
  if (keeper_ && link_ != place.incarnation) lose();
  connect();
  settle();
}

void store_copy::connect() {
  if (keeper_ || is_connecting_ || place_.incarnation.value == 0 || place_.at.process == 0) return;
  is_connecting_ = true;
  const auto start = place_.incarnation;
  common::connect<protocol::keeper_actor>(
      self_, context_, protocol::keeper_role({context_.role.index}), start, place_.at,
      [this, start](const protocol::keeper_actor& found) {
        is_connecting_ = false;
        if (start != place_.incarnation) return;
        context_.log->info("linked: keeper incarnation {}", start);
        keeper_ = found;
        link_ = start;
        self_->monitor(keeper_);
        sender_->begin(link_);
      },
      [this](const std::string& why) {
        context_.log->info("connect-failed: {}; trying again", why); // with the agent's next word
        is_connecting_ = false;
      });
}

void store_copy::on_down(const caf::actor_addr& gone) {
  if (keeper_ && keeper_.address() == gone) lose();
}

void store_copy::lose() {
  keeper_ = nullptr;
  sender_->end();
}

void store_copy::on_standing(const protocol::copy_standing& standing) {
  if (!sender_ || !store_ || standing.incarnation != place_.incarnation || !sender_->on_standing(standing))
    return;
  const auto now = common::now();
  wait_.on_standing(standing, now);
  const auto before = book_.counted();
  take(book_.on_standing(standing, mine(), now));
  if (before != book_.counted())
    context_.log->info("copy: that of keeper incarnation {} holds all, and counts", standing.incarnation);
  settle();
  sender_->pump();
  measure();
}

awaited_parts store_copy::waits() const {
  return {book_.is_log_awaited(), book_.is_snapshot_awaited(), start_.waits_for_copy(book_)};
}

void store_copy::on_tick() {
  if (!sender_) return;
  const auto now = common::now();
  wait_.on_tick(waits(), now);
  if (wait_.is_too_long(now)) take(book_.let_go());
  connect();
  if (keeper_ && sender_->is_stuck()) sender_->begin(link_);
  sender_->pump();
  measure();
}

protocol::copy_word store_copy::word() const {
  protocol::copy_word said{.is_known = store_ && start_.is_settled(),
                           .counted = book_.counted(),
                           .progress = wait_.news(),
                           .cost = cost_.figures(),
                           .bytes_copied = sender_ ? sender_->bytes_taken() : 0,
                           .waited_us = static_cast<std::uint64_t>(cost_.waited().count())};
  said.is_silent = said.counted.value != 0 && wait_.is_too_long(common::now());
  if (const auto& newest = book_.newest_standing()) {
    said.keeper = newest->incarnation;
    said.timeline = newest->timeline;
    said.end = newest->end;
    said.floor = newest->floor;
    said.behind = applied_.value - std::min(applied_, book_.end_of_copy()).value;
  }
  return said;
}

} // namespace dlrun::ps_shard
