// Compiles the type-id block once, and is what the precompiled header of all actors belongs to.
#include "actors/protocol/type_ids.hpp"

namespace dlrun::protocol {

static_assert(caf::has_type_id<join>::value);

} // namespace dlrun::protocol
