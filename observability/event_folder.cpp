#include "observability/event_folder.hpp"

#include "data/tfrecord_file.hpp"
#include "proto/tensorboard_event.pb.h"

#include <algorithm>

namespace dlrun::observability {
namespace {

constexpr auto name_part = "tfevents"; // by which TensorBoard tells them

void take(const tensorboard::Event& event, scalar_series& series) {
  const auto step = static_cast<std::uint64_t>(event.step());
  if (event.session_log().status() == tensorboard::SessionLog::START)
    for (auto& [tag, points] : series)
      std::erase_if(points, [step](const scalar_point& point) { return point.step >= step; });
  for (const auto& value : event.summary().value())
    if (value.has_simple_value())
      series[value.tag()].push_back({step, event.wall_time(), value.simple_value()});
}

void read_event_file(const std::filesystem::path& path, scalar_series& series) {
  auto file = data::tfrecord_file::open(path);
  if (!file) return;
  for (auto more = file->next(); more && *more; more = file->next()) {
    tensorboard::Event event;
    const auto record = file->record();
    if (!event.ParseFromArray(record.data(), static_cast<int>(record.size()))) return;
    take(event, series);
  }
}

} // namespace

std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().find(name_part) != std::string::npos) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

scalar_series read_event_folder(const std::filesystem::path& folder) {
  scalar_series series;
  for (const auto& path : event_files(folder)) read_event_file(path, series);
  return series;
}

} // namespace dlrun::observability
