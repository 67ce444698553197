#include "actors/ps_shard/store_copies.hpp"

#include "actors/common/ask.hpp"

#include <utility>

namespace dlrun::ps_shard {
namespace {

constexpr auto question_period = std::chrono::milliseconds(100);

} // namespace

store_copies::store_copies(pointer self, const common::role_context& context, events told)
    : self_(self)
    , context_(context)
    , told_(std::move(told))
    , chain_(context.job->copies(), context.job->durability()) {}

void store_copies::offer_at(const std::shared_ptr<transport::segment_offers>& offers) {
  for (std::size_t copy = 0; copy < chain_.size(); ++copy)
    copies_.push_back(std::make_unique<store_copy>(
        self_, context_, copy, offers,
        store_copy::links{&chain_, [this](const released_versions& news) { take(news); }}));
}

void store_copies::restart(std::shared_ptr<threaded_store> store, const loaded_standing& restored) {
  chain_.restart(restored.history, restored.stored());
  const bool is_first = std::exchange(store_, std::move(store)) == nullptr;
  for (const auto& copy : copies_) copy->restart(store_);
  if (!is_first) return;
  if (copies_.empty()) return told_.settled(restored);
  start_.begin(restored);
  ask_until_settled();
}

void store_copies::ask_until_settled() {
  if (start_.is_settled()) return;
  on_tick();
  told_.ask();
  common::post_later(self_, caf::actor_cast<protocol::ps_shard_actor>(self_), question_period,
                     [this] { ask_until_settled(); });
}

// ---- the own store

void store_copies::on_logged(version_id version) {
  take(chain_.on_logged(version));
  pump();
}

void store_copies::on_snapshot(timeline_id timeline, version_id version) {
  take(chain_.on_snapshot(timeline, version));
  pump();
}

void store_copies::pump() {
  for (const auto& copy : copies_) copy->pump();
  measure();
}

void store_copies::take(const released_versions& news) {
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) copies_[copy]->note(waits_for(copy));
  if (news.committed) told_.committed(*news.committed);
  for (const auto version : news.snapshots) told_.snapshot_durable(chain_.timeline(), version);
}

void store_copies::settle() {
  if (start_.is_settled()) return;
  if (const auto restored = start_.settle(chain_, mine())) told_.settled(*restored);
}

// ---- what they cost

void store_copies::on_core(const step_pipeline& steps) {
  held_by_ = steps.held_by();
  applied_ = steps.versions().applied();
  measure();
}

void store_copies::measure() {
  const auto awaited = held_by_ == store_wait::log        ? chain_.awaited_for(copied_part::log)
                       : held_by_ == store_wait::snapshot ? chain_.awaited_for(copied_part::snapshot)
                                                          : std::nullopt;
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) copies_[copy]->measure(applied_, awaited == copy);
}

// ---- the agent and the keepers

void store_copies::on_keepers(const protocol::keeper_places& places) {
  if (!places.is_known || !store_) return;
  auto all = places;
  all.all.resize(copies_.size());
  for (const auto copy : start_.hear(all)) copies_[copy]->begin_with(all.all[copy]);
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) copies_[copy]->on_keeper(all.all[copy]);
  settle();
}

void store_copies::on_standing(const protocol::copy_standing& standing) {
  const auto copy = protocol::copy_of(standing.role);
  if (!store_ || copy >= copies_.size() || !copies_[copy]->on_standing(standing, mine())) return;
  settle();
  copies_[copy]->pump();
  measure();
}

void store_copies::on_down(const caf::actor_addr& gone) {
  for (const auto& copy : copies_) copy->on_down(gone);
}

/// A start that is not settled waits for a copy that counts and lacks something, whichever it is.
awaited_parts store_copies::waits_for(std::size_t copy) const {
  const auto& book = chain_.of(copy);
  return {book.is_log_awaited(), book.is_snapshot_awaited(),
          !start_.is_settled() && start_.waits_for(book, mine())};
}

void store_copies::on_tick() {
  if (store_)
    for (const auto& copy : copies_) copy->look_again(mine());
  for (std::size_t copy = 0; copy < copies_.size(); ++copy) copies_[copy]->on_tick(waits_for(copy));
  measure();
}

protocol::copies_word store_copies::word() const {
  protocol::copies_word said;
  const bool is_known = store_ && start_.is_settled();
  for (const auto& copy : copies_) {
    said.all.push_back(copy->word(is_known, applied_));
    said.progress += copy->news();
    said.bytes_copied += copy->bytes_taken();
    said.waited_us += static_cast<std::uint64_t>(copy->waited().count());
  }
  return said;
}

} // namespace dlrun::ps_shard
