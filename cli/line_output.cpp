#include "cli/line_output.hpp"

#include "cli/standard_streams.hpp"

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
  waiting_ += text;
  if (waiting_.size() < written_together) return {};
  return write_waiting();
}

result<void> line_output::write_waiting() {
  const auto text = std::exchange(waiting_, {});
  if (file_) return file_->write(text);
  put(stdout, text);
  return flush_output();
}

result<void> line_output::finish() {
  if (auto written = write_waiting(); !written) return written;
  return file_ ? file_->finish() : result<void>{};
}

} // namespace dlrun::cli
