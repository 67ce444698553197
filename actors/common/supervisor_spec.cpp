#include "actors/common/supervisor_spec.hpp"

#include <fmt/format.h>
#include <set>

namespace dlrun::supervision {

namespace {

void check_options(const supervisor_options& options, std::vector<std::string>& faults) {
  if (options.period <= milliseconds{0})
    faults.emplace_back("the period of the restart intensity must be above 0");
  if (options.delay.first < milliseconds{0} || options.delay.max < options.delay.first)
    faults.emplace_back("the restart delay must have 0 <= first <= max");
}

void check_child(const child_spec& child, std::vector<std::string>& faults) {
  if (child.id.empty()) faults.emplace_back("a child has no id");
  if (child.patience < milliseconds{0})
    faults.push_back(fmt::format("child '{}': its patience is negative", child.id));
}

} // namespace

result<void> validate(const supervisor_options& options, const std::vector<child_spec>& children) {
  std::vector<std::string> faults;
  check_options(options, faults);
  std::set<std::string> ids;
  for (const auto& child : children) {
    check_child(child, faults);
    if (!ids.insert(child.id).second) faults.push_back(fmt::format("two children are called '{}'", child.id));
  }
  if (faults.empty()) return {};
  return fail(error_code::bad_usage, fmt::format("supervisor: {}", fmt::join(faults, "; ")));
}

} // namespace dlrun::supervision
