/// What a program's own code threw.
#pragma once

#include <exception>
#include <string>

namespace dlrun::runtime {

/// For people; to be called in a `catch (...)`: a program may throw anything.
inline std::string thrown_text() {
  try {
    throw;
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "what is no std::exception";
  }
}

} // namespace dlrun::runtime
