/// Whether this program can be what the processes of a run execute.
#pragma once

namespace dlrun::runtime {

/// run_role() was called, and this process is not a role.
bool role_entry_passed();

} // namespace dlrun::runtime
