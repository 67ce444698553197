#include "tests/actors/common/supervisor_script.hpp"

#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <sstream>

namespace dlrun::supervision::testing {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);)
    if (!word.empty()) words.push_back(word);
  return words;
}

bool starts_with_digit(const std::string& word) { return word.front() >= '0' && word.front() <= '9'; }

} // namespace

supervisor_options options_of(const std::string& words) {
  supervisor_options options;
  for (const auto& word : split(words, ' ')) {
    if (word.starts_with("delay=")) {
      const auto range = split(word.substr(6), '-');
      options.delay = {milliseconds{std::stoi(range.at(0))}, milliseconds{std::stoi(range.at(1))}};
    } else if (starts_with_digit(word)) {
      const auto limit = split(word, '/');
      options.intensity = std::stoul(limit.at(0));
      options.period = milliseconds{std::stoi(limit.at(1))};
    } else
      DLRUN_CHECK(false, "unknown option '{}'", word);
  }
  return options;
}

child_spec child_of(const std::string& words) {
  const auto parts = split(words, ':');
  child_spec spec;
  spec.id = parts.at(0);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const auto& word = parts[i];
    if (word == "temporary")
      spec.restart = restart_type::temporary;
    else if (word.starts_with("timeout="))
      spec.patience = milliseconds{std::stoi(word.substr(8))};
    else
      DLRUN_CHECK(false, "unknown word '{}'", word);
  }
  return spec;
}

std::vector<child_spec> children_of(const std::string& words) {
  std::vector<child_spec> children;
  for (const auto& word : split(words, ' ')) children.push_back(child_of(word));
  return children;
}

player::player(const std::string& options, const std::string& children)
    : children_(children_of(children))
    , core_(supervisor::create(options_of(options), children_).value()) {}

std::string player::play(const std::string& event) {
  last_ = dispatch(event);
  std::vector<std::string> names;
  for (const auto& a : last_) {
    names.push_back(to_string(a));
    if (const auto* started = std::get_if<start_child>(&a)) newest_[started->id] = started->number;
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void player::bring_all_up() {
  play("start");
  for (const auto& one : children_) play(one.id + " up");
}

actions player::dispatch(const std::string& event) {
  if (event == "start") return core_.start(now_);
  if (event == "shutdown") return core_.shutdown(now_);
  if (event.front() == '+' || event.front() == '~') {
    now_ += milliseconds{std::stoi(event.substr(1))};
    return event.front() == '+' ? core_.tick(now_) : actions{};
  }
  const auto words = split(event, ' ');
  if (words.at(0) == "add") return core_.add(child_of(words.at(1)), now_);
  if (words.at(0) == "dismiss") return core_.dismiss(words.at(1), milliseconds{500}, now_);
  return child_event(words.at(0), words.at(1));
}

actions player::child_event(const std::string& child, const std::string& what) {
  const auto parts = split(child, '#');
  const auto& id = parts.at(0);
  const generation number = parts.size() > 1 ? std::stoul(parts[1]) : newest_[id];
  if (what == "up") return core_.child_started(id, number, now_);
  if (what == "nostart") return core_.child_start_failed(id, number, "no such program", now_);
  if (what == "ends") return core_.child_exited(id, number, {"killed by signal 9"}, now_);
  if (what == "breaks") return core_.child_exited(id, number, {"killed by signal 9", true}, now_);
  if (what == "ran") return core_.child_exited(id, number, {.detail = "lost", .had_begun = true}, now_);
  DLRUN_CHECK(what == "excused", "unknown event '{} {}'", child, what);
  return core_.child_exited(id, number, {"killed by signal 9", true, false}, now_);
}

} // namespace dlrun::supervision::testing
