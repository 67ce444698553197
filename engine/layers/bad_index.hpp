/// What is said of a value that is no row of an embedding.
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::engine {

/// bad_data for `value` at `place` of the values of a batch, `fields` a record, of which embedding
/// `layer` takes whole numbers below `rows`.
tl::unexpected<error> bad_index(const std::string& layer, float value, std::int64_t place,
                                std::int64_t fields, std::int64_t rows);

} // namespace dlrun::engine
