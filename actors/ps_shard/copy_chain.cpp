#include "actors/ps_shard/copy_chain.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::ps_shard {
namespace {

void add(const released_versions& more, released_versions& all) {
  if (more.committed) all.committed = more.committed;
  all.snapshots.insert(all.snapshots.end(), more.snapshots.begin(), more.snapshots.end());
}

} // namespace

copy_chain::copy_chain(std::size_t copies, protocol::durability kept, protocol::planted_bug bug)
    : bug_(bug)
    , books_(copies, copy_book{kept, bug}) {}

void copy_chain::restart(const protocol::history& history, version_id version) {
  timeline_ = protocol::newest_timeline(history);
  for (auto& book : books_) book.restart(history, version);
}

released_versions copy_chain::on_logged(version_id version) {
  if (books_.empty()) return {.committed = version, .snapshots = {}};
  return pass(0, books_.front().on_logged(version));
}

released_versions copy_chain::on_snapshot(timeline_id of, version_id version) {
  if (!books_.empty()) return pass(0, books_.front().on_snapshot(of, version));
  if (of != timeline_) return {};
  return {.committed = {}, .snapshots = {version}};
}

released_versions copy_chain::on_standing(std::size_t copy, const protocol::copy_standing& standing,
                                          const own_store& mine, protocol::time_point now) {
  return pass(copy, books_.at(copy).on_standing(standing, mine, now));
}

released_versions copy_chain::look_again(std::size_t copy, const own_store& mine, protocol::time_point now) {
  const auto said = books_.at(copy).newest_standing();
  return said ? on_standing(copy, *said, mine, now) : released_versions{};
}

released_versions copy_chain::on_keeper(std::size_t copy, dlrun::incarnation runs) {
  const bool is_over = books_.at(copy).counted().value != 0 && books_.at(copy).counted() != runs;
  auto news = pass(copy, books_.at(copy).on_keeper(runs));
  if (!is_over || !is_planted(bug_, protocol::planted_bug::forget_others)) return news;
  for (std::size_t other = 0; other < books_.size(); ++other)
    if (other != copy) add(pass(other, books_[other].on_keeper({})), news);
  return news;
}

released_versions copy_chain::let_go(std::size_t copy) { return pass(copy, books_.at(copy).let_go()); }

std::optional<std::size_t> copy_chain::awaited_for(copied_part part) const {
  const auto is_awaited = [&](const copy_book& book) {
    return part == copied_part::log ? book.is_log_awaited() : book.is_snapshot_awaited();
  };
  const auto last = std::find_if(books_.rbegin(), books_.rend(), is_awaited);
  if (last == books_.rend()) return std::nullopt;
  return static_cast<std::size_t>(books_.rend() - last - 1);
}

/// What that copy and those before it have: those behind it hear of it.
released_versions copy_chain::pass(std::size_t from, released_versions news) {
  auto said = std::move(news);
  for (auto next = from + 1; next < books_.size(); ++next) {
    released_versions passed;
    if (said.committed) add(books_[next].on_logged(*said.committed), passed);
    for (const auto version : said.snapshots) add(books_[next].on_snapshot(timeline_, version), passed);
    if (!is_planted(bug_, protocol::planted_bug::commit_best)) said = std::move(passed);
  }
  return said;
}

} // namespace dlrun::ps_shard
