#include "cli/line_output.hpp"

#include "base/atomic_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace dlrun::cli {

void line_output::closer::operator()(std::FILE* file) const {
  if (file != stdout) std::fclose(file);
}

line_output::line_output(stream to, std::string file, std::string temporary)
    : to_(std::move(to))
    , file_(std::move(file))
    , temporary_(std::move(temporary)) {}

line_output::~line_output() {
  if (to_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

tl::unexpected<error> line_output::failure() const {
  return fail(error_code::system,
              fmt::format("cannot write {}: {}", file_.empty() ? "the output" : file_, std::strerror(errno)));
}

result<line_output> line_output::open(const std::string& file) {
  if (file.empty()) return line_output{stream{stdout}, "", ""};
  std::string temporary;
  const auto fd = base::create_beside(file, temporary);
  if (!fd) return tl::unexpected(fd.error());
  return line_output{stream{::fdopen(*fd, "w")}, file, temporary};
}

result<void> line_output::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), to_.get()) == text.size()) return {};
  return failure();
}

result<void> line_output::finish() {
  if (std::fflush(to_.get()) != 0) return failure();
  if (temporary_.empty()) return {};
  if (::fsync(::fileno(to_.get())) != 0 || std::rename(temporary_.c_str(), file_.c_str()) != 0)
    return failure();
  to_.reset();
  return {};
}

} // namespace dlrun::cli
