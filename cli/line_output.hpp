/// Where a verb writes what may be long: a file that appears whole or not at all, or stdout.
#pragma once

#include <cstdio>
#include <dlrun/error.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace dlrun::cli {

class line_output {
public:
  /// `file`: its path; "" is stdout. @returns system when it cannot be made.
  static result<line_output> open(const std::string& file);
  line_output(line_output&& other) noexcept = default;
  line_output& operator=(line_output&& other) noexcept = delete;
  /// Without finish() there is no file.
  ~line_output();

  result<void> write(std::string_view text);
  /// Everything is written: the file takes its name, in place of one that was there.
  result<void> finish();

private:
  struct closer {
    void operator()(std::FILE* file) const;
  };
  using stream = std::unique_ptr<std::FILE, closer>;

  line_output(stream to, std::string file, std::string temporary);
  tl::unexpected<error> failure() const;

  stream to_; ///< null when it is moved from or finished
  std::string file_, temporary_;
};

} // namespace dlrun::cli
