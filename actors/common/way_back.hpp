/// How the threads of a part get back to the actor that owns it.
#pragma once

#include <functional>

namespace dlrun::common {

struct way_back {
  std::function<void(std::function<void()>)> post; ///< runs it there later; from any thread
  /// Runs it at once on the caller's thread, which must be one of the actor's own, as a handler
  /// would run.
  std::function<void(const std::function<void()>&)> enter;
};

} // namespace dlrun::common
