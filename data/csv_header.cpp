#include "data/csv_header.hpp"

#include "base/utf8.hpp"
#include "data/csv_hint.hpp"

#include <charconv>
#include <fmt/format.h>

namespace dlrun::data {

csv_header::csv_header(std::vector<std::string> names)
    : size_(names.size())
    , names_(std::move(names)) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto [at, is_new] = places_.emplace(names_[i], i);
    if (!is_new) at->second = twice;
  }
}

csv_header csv_header::of_numbers(std::size_t columns) {
  csv_header made;
  made.size_ = columns;
  return made;
}

std::string csv_header::name(std::size_t place) const {
  return has_names() ? names_[place] : fmt::format("{}", place);
}

result<std::size_t> csv_header::find(const std::string& name) const {
  if (has_names()) {
    const auto found = places_.find(name);
    if (found == places_.end())
      return fail(error_code::bad_data,
                  fmt::format("there is no column \"{}\"; {}", base::printable(name), way_out(name, names_)));
    if (found->second == twice)
      return fail(error_code::bad_data, fmt::format("two columns are called \"{}\"", base::printable(name)));
    return found->second;
  }
  std::size_t place = 0;
  std::from_chars(name.data(), name.data() + name.size(), place);
  if (place >= size_ || name != fmt::format("{}", place))
    return fail(error_code::bad_data,
                fmt::format("without a header columns are numbers from 0 to {}, not \"{}\"", size_ - 1,
                            base::printable(name)));
  return place;
}

} // namespace dlrun::data
