#include "observability/scalar_event.hpp"

#include "data/tfrecord_file.hpp"
#include "proto/tensorboard_event.pb.h"

namespace dlrun::observability {
namespace {

std::string record_of(tensorboard::Event& event, std::uint64_t step, double wall_time) {
  event.set_step(static_cast<std::int64_t>(step));
  event.set_wall_time(wall_time);
  return data::framed_tfrecord(event.SerializeAsString());
}

} // namespace

std::string file_head(double wall_time) {
  tensorboard::Event event;
  event.set_file_version("brain.Event:2");
  return record_of(event, 0, wall_time);
}

std::string restart_event(std::uint64_t step, double wall_time) {
  tensorboard::Event event;
  event.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return record_of(event, step, wall_time);
}

std::string scalars_event(std::uint64_t step, double wall_time, std::span<const scalar> scalars) {
  tensorboard::Event event;
  for (const auto& one : scalars) {
    auto& value = *event.mutable_summary()->add_value();
    value.set_tag(one.tag);
    value.set_simple_value(static_cast<float>(one.value));
  }
  return record_of(event, step, wall_time);
}

} // namespace dlrun::observability
