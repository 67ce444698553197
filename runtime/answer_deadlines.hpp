/// How long the root of a run, and others on the way to it, may take to answer a verb.
#pragma once

#include <chrono>

namespace dlrun::runtime {

/// The root: longer than it waits for its coordinator; a busy machine is not taken for a root that
/// hangs.
inline constexpr std::chrono::milliseconds root_answer_deadline{8000};
/// The agent of another host, for the root: the verb hears in time that there was no answer. A host
/// that hangs, or is cut off, is given up before.
inline constexpr std::chrono::milliseconds host_answer_deadline =
    root_answer_deadline - std::chrono::seconds{2};

} // namespace dlrun::runtime
