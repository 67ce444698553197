/// Numbers that nobody can guess, from the kernel's generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <dlrun/error.hpp>
#include <span>

namespace dlrun::base {

/// At most 256 bytes. @returns system.
result<void> fill_random(std::span<std::byte> bytes);
/// To tell one start, run or process from every other. Throws what std::random_device throws.
std::uint64_t random_number();

} // namespace dlrun::base
