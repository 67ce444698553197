#include "cli/run_display.hpp"

#include "cli/json_display.hpp"
#include "cli/log_display.hpp"
#include "cli/log_output.hpp"
#include "cli/progress_display.hpp"
#include "data/sampler.hpp"

#include <cstdlib>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dlrun::cli {
namespace {

constexpr std::size_t columns_of_most = 80;

std::size_t columns_of_stdout() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::size_t{size.ws_col} : columns_of_most;
}

} // namespace

bool can_draw_on_stdout() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && kind != nullptr && *kind != '\0' && std::string_view{kind} != "dumb";
}

std::uint64_t records_per_step(const spec::TrainSpec& train, std::uint64_t train_records) {
  return data::sampler{data::sampler_options_from(train, train_records)}.records_in_step({0});
}

std::unique_ptr<runtime::run_observer> make_display(const display_options& options) {
  if (chosen_log_format() == job::log_format::json)
    return std::make_unique<log_display>(stdout, options.records_per_step);
  if (options.json) return std::make_unique<json_display>(stdout, options.started);
  return std::make_unique<progress_display>(
      stdout, can_draw_on_stdout() ? terminal_columns{columns_of_stdout} : terminal_columns{},
      options.records_per_step, options.started);
}

} // namespace dlrun::cli
