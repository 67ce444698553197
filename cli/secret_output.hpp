/// Files with secrets.
#pragma once

#include <dlrun/error.hpp>
#include <string>
#include <string_view>

namespace dlrun::cli {

/// A new file that its owner alone may read (mode 0600): what is there already may be open to
/// others. @param what it is, for people: "the token". @returns bad_usage when it cannot be made
/// there; system when the disk takes not all of it.
result<void> write_secret(const std::string& file, std::string_view text, std::string_view what);

} // namespace dlrun::cli
