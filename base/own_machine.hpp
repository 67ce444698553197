/// Which machine this is.
#pragma once

#include <string>

namespace dlrun::base {

/// As the kernel calls it.
std::string host_name();

/// Of this start of its kernel, as 36 characters: no other machine and no other start has it. ""
/// where there is no /proc.
std::string kernel_boot();

} // namespace dlrun::base
