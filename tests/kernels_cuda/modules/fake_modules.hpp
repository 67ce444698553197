/// The modules that tests load (CMakeLists.txt builds them), and the environment that names them.
#pragma once

#include "kernels/cuda/module.hpp"

#include <cstdlib>
#include <optional>
#include <string>

namespace dlrun::test {

/// "two_gpus", "no_driver", ...
inline std::string fake_module(const std::string& name) {
  return DLRUN_FAKE_MODULES "/libdlrun_fake_" + name + ".so";
}

/// Names a module in the environment while it lives.
class named_module {
public:
  explicit named_module(const std::string& path) {
    if (const char* named = std::getenv(kernels::cuda::module_variable)) before_ = named;
    ::setenv(kernels::cuda::module_variable, path.c_str(), 1);
  }
  ~named_module() {
    if (before_)
      ::setenv(kernels::cuda::module_variable, before_->c_str(), 1);
    else
      ::unsetenv(kernels::cuda::module_variable);
  }
  named_module(const named_module&) = delete;
  named_module& operator=(const named_module&) = delete;

private:
  std::optional<std::string> before_;
};

} // namespace dlrun::test
