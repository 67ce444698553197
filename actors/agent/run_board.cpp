#include "actors/agent/run_board.hpp"

#include "actors/protocol/bit_patterns.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace dlrun::agent {
namespace {

/// What is not a number becomes null.
nlohmann::ordered_json to_json(const std::optional<training_progress>& train) {
  if (!train) return nullptr;
  nlohmann::ordered_json out{{"step_loss", train->step_loss}, {"epoch", train->epoch}, {"loss", train->loss}};
  for (const auto& [name, value] : train->metrics) out[name] = value;
  return out;
}

nlohmann::ordered_json to_json(const std::optional<stall_view>& stall) {
  if (!stall) return nullptr;
  const auto& what = stall->what;
  nlohmann::ordered_json out{{"role", protocol::to_string(what.role.kind)}, {"index", what.role.index}};
  if (!stall->host.empty()) out["host"] = stall->host;
  out["phase"] = to_string(what.phase);
  if (what.has_slot) out["slot"] = what.slot.value;
  out["seconds"] = protocol::to_seconds(stall->lasts);
  out["text"] = describe(what, stall->host);
  return out;
}

double number_from_json(const nlohmann::ordered_json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

std::optional<training_progress> training_from_json(const nlohmann::ordered_json& train) {
  if (train.is_null()) return std::nullopt;
  training_progress read;
  for (const auto& [name, value] : train.items())
    if (name == "step_loss")
      read.step_loss = number_from_json(value);
    else if (name == "epoch")
      value.get_to(read.epoch);
    else if (name == "loss")
      read.loss = number_from_json(value);
    else
      read.metrics.emplace_back(name, number_from_json(value));
  return read;
}

/// What the last steps cost where that was measured.
nlohmann::ordered_json to_json(const protocol::copy_word& copy) {
  nlohmann::ordered_json out{{"behind", copy.behind}};
  const auto& cost = copy.cost;
  if (cost.steps == 0) return out;
  out["bytes_per_step"] = cost.bytes_per_step;
  out["bytes_per_second"] = cost.bytes_per_second;
  out["step_ms"] = static_cast<double>(cost.step_us) / 1e3;
  out["busy"] = cost.busy_permille / 1e3;
  out["waited"] = cost.waited_permille / 1e3;
  out["slow"] = cost.is_slow;
  return out;
}

nlohmann::ordered_json to_json(const role_view& role) {
  nlohmann::ordered_json out{{"role", protocol::to_string(role.role.kind)},
                             {"index", role.role.index},
                             {"pid", role.pid},
                             {"incarnation", role.incarnation.value},
                             {"state", role.state}};
  if (role.store.identity != 0) out["store"] = store_to_json(role.store, role.restorable);
  if (role.copy) out["copy"] = to_json(*role.copy);
  if (role.role.kind != protocol::role_kind::worker) return out;
  out["slots"] = role.slots;
  out["slots_per_second"] = role.slots_per_second;
  return out;
}

} // namespace

nlohmann::ordered_json store_to_json(const protocol::store_standing& store,
                                     const protocol::version_set& restorable) {
  auto versions = nlohmann::ordered_json::array();
  for (const auto& range : restorable) versions.push_back({range.first.value, range.last.value});
  return {{"host", store.host},
          {"identity", fmt::format("{:016x}", store.identity)},
          {"versions", std::move(versions)},
          {"floor", store.floor.value}};
}

training_progress progress_of(const protocol::training_metrics& sums, const engine::metric_set& metrics,
                              std::uint64_t step) {
  return {.step = step,
          .step_loss = std::bit_cast<double>(sums.step_loss_bits),
          .epoch = sums.epoch,
          .loss = std::bit_cast<double>(sums.loss_sum_bits) / static_cast<double>(sums.records),
          .metrics = metrics.values(protocol::from_bits(sums.sum_bits))};
}

double age_s(const archive_view& archive) {
  if (archive.made_at_us == 0) return 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = now - std::chrono::microseconds(archive.made_at_us);
  return std::max(0.0, std::chrono::duration<double>(age).count());
}

namespace {

nlohmann::ordered_json to_json(const archive_view& archive) {
  nlohmann::ordered_json out{{"step", nullptr}, {"age_s", nullptr}};
  if (archive.made_at_us != 0) out = {{"step", archive.step}, {"age_s", age_s(archive)}};
  if (!archive.failure.empty()) out["failure"] = archive.failure;
  return out;
}

} // namespace

std::string to_json(const run_snapshot& snapshot) {
  auto roles = nlohmann::ordered_json::array();
  for (const auto& role : snapshot.roles) roles.push_back(to_json(role));
  const nlohmann::ordered_json workers{{"wanted", snapshot.workers.wanted},
                                       {"present", snapshot.workers.present},
                                       {"leaving", snapshot.workers.leaving}};
  auto out = nlohmann::ordered_json{{"job", snapshot.job},
                                    {"status", snapshot.status},
                                    {"started_us", snapshot.started_us},
                                    {"step", snapshot.step},
                                    {"durable_step", snapshot.durable_step},
                                    {"steps", snapshot.steps},
                                    {"train", to_json(snapshot.train)},
                                    {"stall", to_json(snapshot.stall)},
                                    {"workers", workers},
                                    {"roles", std::move(roles)}};
  if (!snapshot.waits_for.empty()) out["waits_for"] = snapshot.waits_for;
  for (const auto& host : snapshot.hosts) {
    out["hosts"].push_back({{"name", host.name}, {"state", host.state}});
    if (host.without_copies) out["hosts"].back()["without_copies"] = true;
    if (!host.loses.empty()) out["hosts"].back()["loses"] = host.loses;
    if (host.memory.limit > 0)
      out["hosts"].back()["memory"] = {{"used_bytes", host.memory.used}, {"limit_bytes", host.memory.limit}};
    if (host.waits_for.empty()) continue;
    out["hosts"].back()["waits_for"] = host.waits_for;
    out["hosts"].back()["needs_a_host"] = host.needs_a_host;
  }
  for (const auto& one : snapshot.avoided_gpus)
    out["avoided_gpus"].push_back({{"gpu", one.gpu}, {"host", one.host}, {"reason", one.reason}});
  if (snapshot.archive) out["archive"] = to_json(*snapshot.archive);
  if (!snapshot.held_up_by.empty()) out["held_up_by"] = snapshot.held_up_by;
  return out.dump();
}

std::optional<run_snapshot> progress_from_json(std::string_view text) {
  const auto told = nlohmann::ordered_json::parse(text, nullptr, false);
  run_snapshot read;
  try {
    told.at("job").get_to(read.job);
    told.at("status").get_to(read.status);
    told.at("started_us").get_to(read.started_us);
    told.at("step").get_to(read.step);
    told.at("durable_step").get_to(read.durable_step);
    told.at("steps").get_to(read.steps);
    read.train = training_from_json(told.at("train"));
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return read;
}

void run_board::show(run_snapshot snapshot) {
  const std::scoped_lock lock{mutex_};
  snapshot_ = std::move(snapshot);
}

void run_board::add_event(protocol::job_event event) {
  {
    const std::scoped_lock lock{mutex_};
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
}

void run_board::finish(protocol::job_ended ended) {
  {
    const std::scoped_lock lock{mutex_};
    ended_ = std::move(ended);
  }
  changed_.notify_all();
}

void run_board::set_archive(archive_view archive) {
  const std::scoped_lock lock{mutex_};
  archive_ = std::move(archive);
}

run_snapshot run_board::snapshot() const {
  const std::scoped_lock lock{mutex_};
  auto now = snapshot_;
  now.archive = archive_;
  return now;
}

std::optional<protocol::job_ended> run_board::wait(std::chrono::milliseconds patience,
                                                   std::vector<protocol::job_event>& events) {
  std::unique_lock lock{mutex_};
  changed_.wait_for(lock, patience, [this] { return ended_ || !events_.empty(); });
  events = std::exchange(events_, {});
  return ended_;
}

} // namespace dlrun::agent
