// A module of two devices that compute: kernels/cuda/stand_in, on the processor. As many as the
// variable DLRUN_STAND_IN_GPUS says, where that is set: what a container is given of a host's.
//
// What goes wrong with them is in a folder beside the module's file, of its name and ".faults". An
// empty file there is one fault (or memory_bytes), named KIND-NUMBER: the next device that is
// opened takes it and removes the file. "always-KIND-NUMBER" stays: every device has it, where no
// other is there. "gpu0-always-KIND-NUMBER" does so of device 0 alone. flips_bit_at_step has its
// seed behind it: flips_bit_at_step-NUMBER-SEED.
#include "kernels/cuda/build_id.hpp"
#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <dlrun/check.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

constexpr std::string_view always = "always-";

/// Where the faults are that are still to come.
std::filesystem::path fault_folder() {
  Dl_info about{};
  DLRUN_CHECK(::dladdr(reinterpret_cast<const void*>(&fault_folder), &about) != 0, "a module has a file");
  return std::string{about.dli_fname} + ".faults";
}

/// A device with what KIND-NUMBER names: a fault, or how much memory it has.
stand_in_settings named_fault(const std::string& name) {
  static const std::map<std::string, std::int64_t stand_in_faults::*> kinds{
      {"no_memory_at", &stand_in_faults::no_memory_at},
      {"fails_at_step", &stand_in_faults::fails_at_step},
      {"hangs_at_step", &stand_in_faults::hangs_at_step},
      {"no_graph_from", &stand_in_faults::no_graph_from},
      {"refuses_host_memory", &stand_in_faults::refuses_host_memory},
      {"flips_bit_at_step", &stand_in_faults::flips_bit_at_step}};
  const auto dash = name.find('-');
  const auto kind = kinds.find(name.substr(0, dash));
  stand_in_settings settings;
  const auto number = dash == std::string::npos ? 0 : std::stoll(name.substr(dash + 1));
  if (name.starts_with("memory_bytes-")) {
    settings.memory_bytes = static_cast<std::size_t>(number);
    return settings;
  }
  DLRUN_CHECK(dash != std::string::npos && kind != kinds.end(), "'{}' is no fault", name);
  settings.faults.*kind->second = number;
  if (const auto second = name.find('-', dash + 1); second != std::string::npos)
    settings.faults.flip_seed = std::stoull(name.substr(second + 1));
  return settings;
}

/// Of a device, its next one.
stand_in_settings take_fault(int number) {
  std::error_code none;
  std::vector<std::string> names;
  for (const auto& one : std::filesystem::directory_iterator{fault_folder(), none})
    names.push_back(one.path().filename().string());
  std::ranges::sort(names);
  const auto own = fmt::format("gpu{}-{}", number, always);
  for (const auto& name : names)
    if (!name.starts_with(always) && !name.starts_with("gpu") &&
        std::filesystem::remove(fault_folder() / name, none))
      return named_fault(name); // nobody else could remove it too
  for (const auto& begin : {own, std::string{always}})
    for (const auto& name : names)
      if (name.starts_with(begin)) return named_fault(name.substr(begin.size()));
  return {};
}

int devices_here() {
  const char* const said = std::getenv("DLRUN_STAND_IN_GPUS");
  return said == nullptr ? 2 : std::atoi(said);
}

class faulty_module final : public device_module {
public:
  result<std::vector<device_properties>> devices() const override { return stand_in_.devices(); }
  result<std::unique_ptr<device>> open(int number, precision arithmetic) override {
    auto settings = take_fault(number);
    settings.devices = count_;
    return stand_in_module{settings}.open(number, arithmetic);
  }

private:
  const int count_ = devices_here();
  stand_in_module stand_in_{{.devices = count_}};
};

} // namespace
} // namespace dlrun::kernels::cuda

extern "C" dlrun::kernels::cuda::device_module* dlrun_device_module_1(const char* build) {
  static dlrun::kernels::cuda::faulty_module module;
  return std::string_view{build} == dlrun::kernels::cuda::build_id ? &module : nullptr;
}
