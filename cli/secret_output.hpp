/// Files with secrets.
#pragma once

#include "base/unique_fd.hpp"

#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::cli {

/// A new file that its owner alone may read (mode 0600): what is there already may be open to
/// others. It is made before there is a secret, so that none is lost for want of a place, and goes
/// again with this object if nothing was written.
class secret_file {
public:
  /// @param what is to be in it, for people: "the token"  @returns bad_usage when it cannot be made
  static result<secret_file> create(const std::string& file, std::string_view what);
  ~secret_file();
  secret_file(secret_file&&) = default;
  secret_file& operator=(secret_file&&) = delete;
  secret_file(const secret_file&) = delete;
  secret_file& operator=(const secret_file&) = delete;

  /// Once. @returns system when the disk takes not all of it; then the file is gone.
  result<void> write(std::string_view text);

private:
  secret_file(base::unique_fd made, std::string file, std::string_view what);

  base::unique_fd fd_; ///< open until something was written
  std::string file_;
  std::string what_;
};

/// Makes a secret_file with `text`. @returns errors as that.
result<void> write_secret(const std::string& file, std::string_view text, std::string_view what);

} // namespace dlrun::cli
