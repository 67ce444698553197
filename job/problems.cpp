#include "job/problems.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace dlrun::job {
namespace {

// A hostile file could have a problem a line; people read the first few.
constexpr std::size_t problems_shown_max = 100;

} // namespace

std::string to_string(const location& where) {
  const auto origin = base::printable(where.origin, std::string::npos); // a file's name may be anything
  return where.line > 0 ? fmt::format("{}:{}", origin, where.line) : origin;
}

bool is_told_of_training(const std::string& path, const source_map& sources, const problem_list& problems) {
  constexpr std::string_view validation = "data.validation.", training = "data.train.";
  return path.starts_with(validation) && !sources.has(path) &&
         problems.reported(std::string{training} + path.substr(validation.size()));
}

location source_map::find(std::string path) const {
  while (!path.empty()) {
    if (const auto found = places_.find(path); found != places_.end()) return found->second;
    const auto cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return root_;
}

void problem_list::add(const location& where, const std::string& path, std::string text) {
  add(where, path, [text = std::move(text)] { return text; });
}

void problem_list::add(const location& where, const std::string& path, std::function<std::string()> text) {
  if (!path.empty()) paths_.insert(path);
  problems_.push_back({where, path, std::move(text)});
}

error problem_list::to_error() const {
  auto sorted = problems_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const problem& a, const problem& b) {
    // Lines of the file first, then overrides in the order they were given.
    return std::tuple(a.where.line == 0, a.where.line) < std::tuple(b.where.line == 0, b.where.line);
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), problems_shown_max); ++i) {
    const auto& [where, path, describe] = sorted[i];
    if (i > 0) text += '\n';
    text += fmt::format("{}: {}{}{}", to_string(where), path, path.empty() ? "" : ": ", describe());
  }
  if (sorted.size() > problems_shown_max)
    text += fmt::format("\n... and {} more", sorted.size() - problems_shown_max);
  return {error_code::bad_spec, text};
}

} // namespace dlrun::job
