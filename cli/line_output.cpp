#include "cli/line_output.hpp"

#include "cli/standard_streams.hpp"

#include <cstdio>
#include <utility>

namespace dlrun::cli {
namespace {

constexpr std::size_t written_together = std::size_t{1} << 16;

} // namespace

result<line_output> line_output::open(const std::string& file) {
  if (file.empty()) return line_output{std::nullopt};
  auto opened = base::output_file::open(file);
  if (!opened) return tl::unexpected(opened.error());
  return line_output{std::move(*opened)};
}

result<void> line_output::write(std::string_view text) {
  if (!file_) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return {};
    return flush_output();
  }
  waiting_ += text;
  if (waiting_.size() < written_together) return {};
  return file_->write(std::exchange(waiting_, {}));
}

result<void> line_output::finish() {
  if (!file_) return flush_output();
  if (auto written = file_->write(std::exchange(waiting_, {})); !written) return written;
  return file_->finish();
}

} // namespace dlrun::cli
