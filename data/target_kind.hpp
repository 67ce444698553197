/// What a record is to be compared with.
#pragma once

#include <cstdint>

namespace dlrun::data {

/// A class number, or one or more values. A data set has one kind, that which the model's loss takes.
enum class target_kind : std::uint8_t { classes, values };

} // namespace dlrun::data
