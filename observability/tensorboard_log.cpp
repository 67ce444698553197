#include "observability/tensorboard_log.hpp"

#include "base/own_machine.hpp"
#include "observability/event_folder.hpp"
#include "observability/told_evaluation.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

namespace dlrun::observability {
namespace {

constexpr auto point_period = std::chrono::milliseconds(500);
constexpr std::string_view name_begin = "events.out.tfevents.";
constexpr std::string_view train_prefix = "train/";
constexpr std::string_view validation_prefix = "validation/";
constexpr auto validation_loss = "validation/loss";

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  auto name = base::host_name();
  return name.empty() ? "localhost" : name;
}

/// The number that follows `name_begin`; 0 where there is none.
std::uint64_t time_of(const std::filesystem::path& file) {
  const auto name = file.filename().string();
  std::uint64_t seconds = 0;
  if (name.starts_with(name_begin))
    std::from_chars(name.data() + name_begin.size(), name.data() + name.size(), seconds);
  return seconds;
}

/// TensorBoard reads files in the order of their names: this one comes last, whatever the clock
/// says.
std::string new_file_name(const std::filesystem::path& folder) {
  auto seconds = static_cast<std::uint64_t>(wall_time());
  for (const auto& file : event_files(folder)) seconds = std::max(seconds, time_of(file) + 1);
  return fmt::format("{}{:010}.{}", name_begin, seconds, host_name());
}

void add(std::string_view prefix, const named_values& values, std::vector<scalar>& scalars) {
  for (const auto& [name, value] : values) scalars.push_back({fmt::format("{}{}", prefix, name), value});
}

} // namespace

tensorboard_log::tensorboard_log(run_facts facts, std::function<void(std::string)> complain)
    : facts_{std::move(facts)}
    , complain_{std::move(complain)}
    , path_{facts_.run_dir / "tensorboard"} {
  std::error_code failure;
  std::filesystem::create_directories(path_, failure);
  if (failure)
    give_up(failure.message());
  else
    go_on_behind(path_);
}

/// What is there already is not written again: steps that are done again without a rewind give the
/// same bits.
void tensorboard_log::go_on_behind(const std::filesystem::path& folder) {
  std::uint64_t highest = 0;
  for (const auto& [tag, points] : read_event_folder(folder))
    for (const auto& point : points) {
      highest = std::max(highest, point.step);
      if (tag.starts_with(train_prefix)) last_step_ = std::max(last_step_, point.step);
      if (tag == validation_loss) evaluated_.insert(point.step);
    }
  path_ = folder / new_file_name(folder);
  file_.emplace(path_);
  append(file_head(wall_time()));
  append(restart_event(highest + 1, wall_time()));
}

void tensorboard_log::update(const agent::run_snapshot& now, protocol::time_point at) {
  check();
  if (!now.train || stale_step_ == now.train->step) return;
  stale_step_.reset();
  seen_step_ = now.train->step;
  if (seen_step_ <= last_step_) return;
  pending_ = now.train;
  if (written_at_ && at - *written_at_ < point_period) return;
  written_at_ = at;
  write_pending();
}

void tensorboard_log::write_pending() {
  if (!pending_) return;
  std::vector<scalar> scalars{{"train/loss", pending_->step_loss},
                              {"train/epoch_loss", pending_->loss},
                              {"train/lr", facts_.learning_rate({pending_->step})}};
  add(train_prefix, pending_->metrics, scalars);
  last_step_ = pending_->step;
  pending_.reset();
  append(scalars_event(last_step_, wall_time(), scalars));
}

void tensorboard_log::event(const protocol::job_event& event) {
  if (event.event == "rewind" && event.numbers.has_step) return go_back(event.numbers.step);
  if (const auto evaluation = told_evaluation(event)) write_evaluation(*evaluation);
}

/// What was heard last is of the steps that are void, until something else is heard.
void tensorboard_log::go_back(std::uint64_t version) {
  if (pending_ && pending_->step > version) pending_.reset();
  stale_step_ = seen_step_;
  last_step_ = std::min(last_step_, version);
  evaluated_.erase(evaluated_.upper_bound(version), evaluated_.end());
  append(restart_event(version + 1, wall_time()));
}

/// In ascending order only: of what comes behind a later one TensorBoard would take the later ones
/// for void.
void tensorboard_log::write_evaluation(const dlrun::evaluation& evaluation) {
  if (!evaluated_.empty() && evaluation.step <= *evaluated_.rbegin()) return;
  evaluated_.insert(evaluation.step);
  std::vector<scalar> scalars{{validation_loss, evaluation.loss}};
  add(validation_prefix, evaluation.metrics.all, scalars);
  append(scalars_event(evaluation.step, wall_time(), scalars));
}

void tensorboard_log::finish(const dlrun::report& report) {
  write_pending();
  if (report.status == dlrun::run_status::completed && report.steps > last_step_) {
    std::vector<scalar> scalars{{"train/epoch_loss", report.train_loss}};
    add(train_prefix, report.train_metrics, scalars);
    append(scalars_event(report.steps, wall_time(), scalars));
  }
  for (const auto& one : report.evaluations) write_evaluation(one);
  check();
}

void tensorboard_log::append(const std::string& record) {
  if (file_) file_->append(record);
  check();
}

/// What waits for room on the disk is tried again.
void tensorboard_log::check() {
  if (!file_) return;
  file_->flush();
  if (file_->failure() != 0) give_up(std::strerror(file_->failure()));
}

void tensorboard_log::give_up(const std::string& why) {
  if (std::exchange(complained_, true)) return;
  complain_(fmt::format("cannot write '{}': {}; the training goes on", path_.string(), why));
}

} // namespace dlrun::observability
