#include "persistence/format_file.hpp"

#include <fmt/format.h>

namespace dlrun::persistence {

namespace {

constexpr std::string_view name = "/FORMAT";

std::string format_content(std::string_view kind, unsigned number) {
  return fmt::format("{} {}\n", kind, number);
}

} // namespace

result<std::optional<unsigned>> check_format(file_system& files, const std::string& directory,
                                             const folder_format& expected) {
  const auto content = read_format(files, directory);
  if (!content) return tl::unexpected(content.error());
  if (!*content) return std::nullopt;
  for (auto number = expected.oldest; number <= expected.number; ++number)
    if (**content == format_content(expected.kind, number)) return number;
  return fail_format(directory, **content, expected);
}

result<void> write_format(file_system& files, const std::string& directory, const folder_format& format,
                          std::string_view more) {
  return write_file_durably(files, directory + std::string(name),
                            format_content(format.kind, format.number) + std::string(more));
}

result<std::optional<std::string>> read_format(file_system& files, const std::string& directory) {
  const auto path = directory + std::string(name);
  const auto there = file_exists(files, path);
  if (!there) return tl::unexpected(there.error());
  if (!*there) return std::nullopt;
  auto content = read_file(files, path);
  if (!content) return tl::unexpected(content.error());
  return std::move(*content);
}

tl::unexpected<error> fail_format(const std::string& directory, std::string_view content,
                                  const folder_format& expected) {
  const auto first_line = content.substr(0, std::min<std::size_t>(content.find('\n'), 80));
  return fail(error_code::storage_damaged,
              fmt::format("{}{} says {:?}, this dlrun reads \"{} {}\": use the version that wrote it, "
                          "restore the file from a copy, or start the job in another run folder",
                          directory, name, first_line, expected.kind, expected.number));
}

} // namespace dlrun::persistence
