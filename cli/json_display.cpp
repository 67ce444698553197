#include "cli/json_display.hpp"

#include "actors/agent/event_json.hpp"
#include "cli/say.hpp"

#include <nlohmann/json.hpp>

namespace dlrun::cli {
namespace {

using nlohmann::ordered_json;

constexpr auto progress_period = std::chrono::seconds(1);

/// What is no number becomes null, and what is no UTF-8 is replaced.
void print(std::FILE* out, const ordered_json& line) {
  say(out, "{}\n", line.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  flush(out);
}

} // namespace

json_display::json_display(std::FILE* out, protocol::time_point started)
    : out_{out}
    , started_{started} {}

void json_display::update(const agent::run_snapshot& now, protocol::time_point at) {
  if (now.steps == 0 || now.step == printed_step_ || (printed_ && at - *printed_ < progress_period)) return;
  printed_ = at;
  printed_step_ = now.step;
  ordered_json line{{"type", "progress"},
                    {"seconds", protocol::to_seconds(at - started_)},
                    {"step", now.step},
                    {"durable_step", now.durable_step},
                    {"steps", now.steps}};
  if (now.train) {
    line["loss"] = now.train->step_loss;
    line["epoch"] = now.train->epoch;
    line["epoch_loss"] = now.train->loss;
    for (const auto& [name, value] : now.train->metrics) line["epoch_" + name] = value;
  }
  print(out_, line);
}

void json_display::event(const protocol::job_event& event) {
  const auto at = protocol::time_point{protocol::duration{event.at_us}};
  ordered_json line{{"type", "event"},           {"seconds", protocol::to_seconds(at - started_)},
                    {"event", event.event},      {"role", protocol::to_string(event.role.kind)},
                    {"index", event.role.index}, {"incarnation", event.incarnation.value}};
  agent::add_details(event, line);
  line["text"] = event.text;
  print(out_, line);
}

void json_display::summary(const dlrun::report& report, const std::string& report_path) {
  print(out_,
        {{"type", "report"}, {"path", report_path}, {"report", ordered_json::parse(dlrun::to_json(report))}});
}

} // namespace dlrun::cli
