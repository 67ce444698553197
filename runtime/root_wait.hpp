/// root_wait: what a process does that is to be the root of a run, and is not yet (rules R40, R43).
#pragma once

#include <cstdint>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::runtime {

/// Asked while the register of a run is looked at, by the thread that looks. By itself it waits for
/// nobody: it takes what is free.
class root_wait {
public:
  root_wait() = default;
  root_wait(const root_wait&) = delete;
  root_wait& operator=(const root_wait&) = delete;
  virtual ~root_wait() = default;

  /// Another root lives, as `held` says. @returns whether to wait for its end
  virtual bool waits(const error& /*held*/) { return false; }
  /// No etcd answers. @returns whether to ask again
  virtual bool asks_again(const error& /*why*/) { return false; }
  /// Before each look. @returns false: nobody wants a root here any more
  virtual bool goes_on() { return true; }

  enum class verdict : std::uint8_t {
    lead,
    wait, ///< as long as goes_on() says
    end,
  };
  /// The register is free. @param end what its last root noted when its run had ended for good
  /// (root_home::note_end); "": nothing
  virtual verdict on_free(const std::string& /*end*/) { return verdict::lead; }
};

} // namespace dlrun::runtime
