/// Where a file that the user named is written: whole or not at all, or straight into what is no
/// file.
#pragma once

#include <dlrun/error.hpp>
#include <filesystem>
#include <string>
#include <string_view>

namespace dlrun::base {

/// A regular file, or one that is not there yet, is written without a name (O_TMPFILE), so that a
/// process that ends, however that is, leaves nothing behind; or under another name beside it,
/// where the file system knows no such files. It takes its name when it is whole; one that it
/// replaces lends it its permissions, else the umask decides. A link stays: the file is the one
/// that it leads to. Devices, FIFOs and open descriptors (/dev/stdout, /dev/fd/N) are written to as
/// they are. Not thread-safe.
class output_file {
public:
  /// How a file that is not whole is kept.
  enum class unfinished { nameless_where_possible, named };

  /// Opening a FIFO waits for a reader. @returns bad_usage when the user may not write there, there
  /// is no such folder, or `file` is one; disk_full; system otherwise.
  static result<output_file> open(const std::filesystem::path& file,
                                  unfinished kept = unfinished::nameless_where_possible);
  output_file(output_file&& other) noexcept;
  output_file& operator=(output_file&& other) = delete;
  /// Without finish() a regular file is as it was before.
  ~output_file();

  /// @returns disk_full, system.
  result<void> write(std::string_view content);
  /// All is written: a regular file is synced, takes its name, and keeps it in a power cut. On
  /// failure it is as before, unless it was the last that failed. @returns disk_full, system.
  result<void> finish();

private:
  output_file(int fd, std::filesystem::path file)
      : fd_(fd)
      , file_(std::move(file)) {}
  static result<output_file> beside(std::filesystem::path file, unfinished kept);
  /// Calls `make(name)` with names beside the file, until one was not taken; that is `temporary_`
  /// then. @returns what the last call did: less than 0 with errno.
  template <class Make>
  int make_temporary(Make make);
  result<void> sync_name() const;
  static result<output_file> into(const std::filesystem::path& file, int fd);
  tl::unexpected<error> failure(int number) const;

  int fd_ = -1; ///< owned; -1 when moved from
  std::filesystem::path file_;
  bool is_regular_ = false;
  std::string temporary_; ///< "" while the file has no name, and when it has its own
};

/// What a chain of symbolic links leads to, which need not be there. @returns `file` when it is no
/// link, and the link itself where the chain has no end.
std::filesystem::path end_of_links(const std::filesystem::path& file);

} // namespace dlrun::base
