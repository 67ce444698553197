/// How the agent of a host tells whoever started it why it has ended, beside the exit codes that
/// all of dlrun has (job/exit_code.hpp).
#pragma once

namespace dlrun::base {

/// This host would compute other bits than the job began with: started here it can only end so
/// again.
inline constexpr int other_bits_exit_code = 4;

} // namespace dlrun::base
