#include "cli/line_tail.hpp"

#include <utility>

namespace dlrun::cli {

line_tail::line_tail(std::filesystem::path file)
    : file_{std::move(file)} {}

std::optional<std::string> line_tail::next() {
  if (!in_.is_open()) in_.open(file_, std::ios::binary);
  if (!in_) {
    in_.close();
    in_.clear();
    return std::nullopt;
  }
  std::string line;
  std::getline(in_, line);
  part_ += line;
  if (in_.bad()) { // it cannot be read, as a folder cannot
    in_.close();
    in_.clear();
    return std::nullopt;
  }
  if (in_.eof()) { // the newline is missing: the next call goes on here
    in_.clear();
    return std::nullopt;
  }
  return std::exchange(part_, {});
}

std::optional<std::string> line_tail::rest() {
  if (part_.empty()) return std::nullopt;
  return std::exchange(part_, {});
}

} // namespace dlrun::cli
