#include "actors/ps_shard/store_copy.hpp"

#include "actors/common/clock.hpp"
#include "actors/common/connect.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::ps_shard {
namespace {

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

store_copy::store_copy(pointer self, const common::role_context& context, std::size_t number,
                       const std::shared_ptr<transport::segment_offers>& offers, links linked)
    : self_(self)
    , context_(context)
    , number_(number)
    , linked_(std::move(linked))
    , keeper_role_(protocol::keeper_role({context.role.index}, static_cast<std::uint32_t>(number)))
    , cost_(keeper_role_, context.job->durability())
    , sender_(options_for(offers)) {}

copy_sender_options store_copy::options_for(const std::shared_ptr<transport::segment_offers>& offers) {
  return {.role = context_.role,
          .incarnation = context_.self.incarnation,
          .offers = offers,
          .threads = {[this](std::function<void()> task) { reader_.run(std::move(task)); },
                      common::poster<protocol::ps_shard_actor>{self_}},
          .send = [this](const protocol::copy_part& part) { self_->send(keeper_, part); },
          .warn = [this](const std::string& why) { context_.log->warn("copy: {}", why); },
          .now = common::now};
}

void store_copy::restart(const std::shared_ptr<threaded_store>& store) {
  sender_.serve({[store] { return store->held(); },
                 [store](const copy_item& item) { return store->open_for_copy(item); }});
  if (keeper_) sender_.begin(link_);
}

void store_copy::note(const awaited_parts& waits) { wait_.on_tick(waits, common::now()); }

void store_copy::on_tick(const awaited_parts& waits) {
  const auto now = common::now();
  wait_.on_tick(waits, now);
  if (wait_.is_too_long(now)) linked_.released(linked_.chain->let_go(number_));
  connect();
  if (keeper_ && sender_.is_stuck()) sender_.begin(link_);
  sender_.pump();
}

// ---- what it costs

void store_copy::measure(version_id applied, bool is_awaited) {
  const auto news = cost_.note({.counts = book().counted().value != 0,
                                .is_on_the_way = sender_.has_bytes_on_the_way(),
                                .is_awaited = is_awaited,
                                .applied = applied,
                                .bytes = sender_.bytes_taken()},
                               common::now());
  if (!news) return;
  context_.log->log(news->is_slow ? spdlog::level::warn : spdlog::level::info, "copy: {}", news->text);
  self_->send(context_.agent, event_of(*news, cost_.figures(), context_));
}

// ---- the agent and the keeper

void store_copy::begin_with(const protocol::keeper_place& place) {
  context_.log->info("copy: an earlier start counted that of {} incarnation {}",
                     protocol::to_string(keeper_role_), place.incarnation);
  linked_.chain->begin_with(number_, place.incarnation);
}

void store_copy::on_keeper(const protocol::keeper_place& place) {
  place_ = place;
  const auto before = book().counted();
  linked_.released(linked_.chain->on_keeper(number_, place.incarnation));
  if (before.value != 0 && book().counted().value == 0)
    context_.log->warn("copy: {} incarnation {} is over, the copy counts no more",
                       protocol::to_string(keeper_role_), before);
  if (keeper_ && link_ != place.incarnation) lose();
  connect();
}

void store_copy::connect() {
  if (keeper_ || is_connecting_ || place_.incarnation.value == 0 || place_.at.process == 0) return;
  is_connecting_ = true;
  const auto start = place_.incarnation;
  common::connect<protocol::keeper_actor>(
      self_, context_, keeper_role_, start, place_.at,
      [this, start](const protocol::keeper_actor& found) {
        is_connecting_ = false;
        if (start != place_.incarnation) return;
        context_.log->info("linked: {} incarnation {}", protocol::to_string(keeper_role_), start);
        keeper_ = found;
        link_ = start;
        self_->monitor(keeper_);
        sender_.begin(link_);
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
  sender_.end();
}

bool store_copy::on_standing(const protocol::copy_standing& standing, const own_store& mine) {
  if (standing.incarnation != place_.incarnation || !sender_.on_standing(standing)) return false;
  const auto now = common::now();
  wait_.on_standing(standing, now);
  const auto before = book().counted();
  hear(linked_.chain->on_standing(number_, standing, mine, now), before);
  return true;
}

void store_copy::look_again(const own_store& mine) {
  if (book().counted().value == 0) hear(linked_.chain->look_again(number_, mine, common::now()), {});
}

void store_copy::hear(const released_versions& news, dlrun::incarnation counted_before) {
  linked_.released(news);
  if (counted_before != book().counted())
    context_.log->info("copy: that of {} incarnation {} holds all, and counts",
                       protocol::to_string(keeper_role_), book().counted());
}

protocol::copy_word store_copy::word(bool is_known, version_id applied) const {
  protocol::copy_word said{.is_known = is_known, .counted = book().counted(), .cost = cost_.figures()};
  said.is_silent = said.counted.value != 0 && wait_.is_too_long(common::now());
  if (const auto& newest = book().newest_standing()) {
    said.keeper = newest->incarnation;
    said.timeline = newest->timeline;
    said.end = newest->end;
    said.floor = newest->floor;
    said.behind = applied.value - std::min(applied, book().end_of_copy()).value;
  }
  return said;
}

} // namespace dlrun::ps_shard
