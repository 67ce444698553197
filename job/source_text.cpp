#include "job/source_text.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>

namespace dlrun::job {
namespace {

int line_at(std::string_view text, std::size_t offset) {
  return 1 +
         static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

} // namespace

result<void> check_source_text(std::string_view text, const std::string& name, std::string_view what,
                               const source_limit& limit) {
  if (const auto most = limit(text); text.size() > most)
    return fail(error_code::bad_spec,
                fmt::format("{}: larger than {} KiB, is this {}?", name, most / 1024, what));
  if (text.find('\r') != std::string_view::npos && text.find('\n') == std::string_view::npos)
    return fail(
        error_code::bad_spec,
        fmt::format("{}: its lines end with a carriage return alone, which ends none here: save it with "
                    "line feeds (tr '\\r' '\\n')",
                    name));
  if (const auto offset = base::first_invalid_utf8(text))
    return fail(error_code::bad_spec,
                fmt::format("{}:{}: byte {} (0x{:02x}) is not UTF-8 text", name, line_at(text, *offset),
                            *offset, static_cast<unsigned char>(text[*offset])));
  const auto control = std::find_if(text.begin(), text.end(), [](unsigned char c) {
    return (c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
  });
  if (control != text.end()) {
    const auto offset = static_cast<std::size_t>(control - text.begin());
    return fail(error_code::bad_spec,
                fmt::format("{}:{}: byte {} is the control character 0x{:02x}; is this a text file?", name,
                            line_at(text, offset), offset, static_cast<unsigned char>(*control)));
  }
  return {};
}

result<std::string> read_source_text(const std::filesystem::path& file, const source_limit& limit) {
  std::error_code problem;
  const auto about = std::filesystem::status(file, problem);
  if (problem == std::errc::too_many_symbolic_link_levels)
    return fail(
        error_code::bad_spec,
        fmt::format("{}: a symbolic link that leads to itself, or through too many others", file.string()));
  if (!std::filesystem::exists(about))
    return fail(error_code::bad_spec, fmt::format("{}: no such file", file.string()));
  if (!std::filesystem::is_regular_file(about))
    return fail(error_code::bad_spec, fmt::format("{}: not a file", file.string()));
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    return fail(errno == EACCES ? error_code::bad_spec : error_code::system,
                fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
  // One byte more than allowed tells a larger file, whatever its size was a moment ago.
  std::string text;
  for (auto most = limit(text); text.size() <= most && !stream.eof(); most = limit(text)) {
    const auto there = text.size();
    text.resize(most + 1);
    stream.read(text.data() + there, static_cast<std::streamsize>(text.size() - there));
    if (stream.bad())
      return fail(error_code::system, fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
    text.resize(there + static_cast<std::size_t>(stream.gcount()));
  }
  return text;
}

} // namespace dlrun::job
