#include "own_parts.hpp"

#include <algorithm>
#include <dlrun/reader.hpp>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace {

class points_reader final : public dlrun::reader {
public:
  dlrun::result<dlrun::record_layout> open(const dlrun::reader_request& request) override {
    const auto file = request.records.string();
    if (const auto fine = dlrun::check_options(request.options, {}, "format points"); !fine)
      return tl::unexpected(fine.error());
    if (request.targets != dlrun::target_kind::classes)
      return dlrun::fail(dlrun::error_code::bad_spec,
                         "format points has classes, not values: choose another loss");
    std::ifstream stream(file);
    if (!stream) return dlrun::fail(dlrun::error_code::bad_data, fmt::format("cannot open '{}'", file));
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      std::istringstream text(line);
      float x = 0;
      float y = 0;
      int of = -1;
      std::string rest;
      if (!(text >> x >> y >> of) || of < 0 || text >> rest)
        return dlrun::fail(
            dlrun::error_code::bad_data,
            fmt::format("{}:{}: expected two numbers and a class from 0, not '{}'", file, number, line));
      coordinates_.insert(coordinates_.end(), {x, y});
      classes_.push_back(of);
    }
    return dlrun::record_layout{.records = classes_.size(), .shape = {2}};
  }

  dlrun::result<void> read(std::uint64_t first, std::uint64_t count,
                           const dlrun::record_buffers& out) override {
    const auto from = static_cast<std::ptrdiff_t>(first);
    const auto size = static_cast<std::ptrdiff_t>(count);
    std::copy_n(coordinates_.begin() + 2 * from, 2 * size, out.floats.begin());
    if (!out.classes.empty()) std::copy_n(classes_.begin() + from, size, out.classes.begin());
    return {};
  }

private:
  std::vector<float> coordinates_;
  std::vector<std::int32_t> classes_;
};

} // namespace

dlrun::result<void> register_points() {
  return dlrun::register_reader("points", [] { return std::make_unique<points_reader>(); });
}
