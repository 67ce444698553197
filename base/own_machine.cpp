#include "base/own_machine.hpp"

#include <array>
#include <fstream>
#include <unistd.h>

namespace dlrun::base {

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string kernel_boot() {
  std::ifstream in{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  std::getline(in, id);
  return id;
}

} // namespace dlrun::base
