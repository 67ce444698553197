#include "actors/agent/log_collector.hpp"

#include "actors/agent/host_question.hpp"
#include "job/run_layout.hpp"

#include <fmt/format.h>
#include <utility>

namespace dlrun::agent {
namespace {

constexpr int log_parts_at_a_time = 8;

} // namespace

std::vector<protocol::job_event> tell_staying(const std::vector<staying_logs>& logs) {
  std::vector<protocol::job_event> events;
  for (const auto& one : logs) {
    protocol::job_event event{"logs-stay",
                              {protocol::role_kind::agent, 0},
                              {1},
                              fmt::format("logs of the roles on host {} stay there, in '{}': {}", one.host,
                                          (std::filesystem::path{one.folder} / run_layout::logs).string(),
                                          one.why)};
    event.place = {one.host, one.why};
    events.push_back(std::move(event));
  }
  return events;
}

void log_collector::collect(std::vector<logging_host> hosts, done_handler done) {
  hosts_ = std::move(hosts);
  done_ = std::move(done);
  if (!hosts_.empty())
    common::post_later(self_, self_, log_patience, [this] { end_all("it takes too long"); });
  begin_host();
}

void log_collector::begin_host() {
  ++turn_;
  if (host_ == hosts_.size()) return std::exchange(done_, {})(staying_);
  if (!current().agent) return end_host("that host is away");
  ask<protocol::log_listing>(protocol::log_listing_wanted{},
                             [this](const auto& listing) { on_listing(listing); });
}

template <class Answer, class Wanted>
void log_collector::ask(const Wanted& wanted, std::function<void(const Answer&)> on_answer) {
  const auto is_wanted = [this, turn = turn_] { return turn == turn_; };
  ask_host(self_, host_question<Answer, Wanted>{current().agent, wanted, is_wanted, std::move(on_answer),
                                                [this](std::string why) { end_host(std::move(why)); }});
}

void log_collector::on_listing(const protocol::log_listing& listing) {
  if (!listing.failure.empty()) return end_host(listing.failure);
  logs_ = listing.logs;
  log_ = 0;
  begin_log();
}

void log_collector::begin_log() {
  ++turn_;
  if (log_ == logs_.size()) return end_host({});
  auto begun = log_intake::begin(copied_logs(run_dir_, current().host), logs_[log_], current().folder);
  if (!begun) return end_host(begun.error().message);
  intake_ = std::move(*begun);
  if (intake_->is_whole()) return finish_log(); // an empty one
  for (int part = 0; part < log_parts_at_a_time; ++part) ask_for_next_part();
}

void log_collector::ask_for_next_part() {
  const auto wanted = intake_->next();
  if (!wanted) return;
  ask<protocol::log_part>(*wanted, [this, wanted = *wanted](const auto& part) { on_part(wanted, part); });
}

void log_collector::on_part(const protocol::log_part_wanted& wanted, const protocol::log_part& part) {
  if (!part.failure.empty()) return end_host(part.failure);
  if (auto kept = intake_->add(wanted, part.bytes); !kept) return end_host(kept.error().message);
  if (intake_->is_whole()) return finish_log();
  ask_for_next_part();
}

void log_collector::finish_log() {
  if (const auto placed = intake_->finish(); !placed) return end_host(placed.error().message);
  intake_.reset();
  ++log_;
  begin_log();
}

void log_collector::end_host(std::string why) {
  if (intake_) intake_->discard();
  intake_.reset();
  if (!why.empty()) staying_.push_back({current().host, current().folder, std::move(why)});
  ++host_;
  begin_host();
}

/// Of the host in hand and of those that have not had their turn.
void log_collector::end_all(const char* why) {
  if (!done_) return;
  if (intake_) intake_->discard();
  intake_.reset();
  for (; host_ < hosts_.size(); ++host_) staying_.push_back({current().host, current().folder, why});
  begin_host();
}

} // namespace dlrun::agent
