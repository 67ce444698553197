/// Which module belongs to which program: both say it from what they were compiled with.
#pragma once

namespace dlrun::kernels::cuda {

/// Version, a digest of the headers that program and module share, and the compiler. Structs cross
/// from one to the other, so anything that could give them another shape is part of it.
inline constexpr const char* build_id = DLRUN_BUILD_ID " " __VERSION__;

} // namespace dlrun::kernels::cuda
