/// The GPUs of this host.
#pragma once

#include "kernels/cuda/device_api.hpp"

namespace dlrun::kernels::cuda {

/// By CUDA's runtime. Has no state.
class cuda_module final : public device_module {
public:
  result<std::vector<device_properties>> devices() const override;
  result<std::unique_ptr<device>> open(int number, precision arithmetic) override;
};

/// Why there is no device: `problem` is what CUDA says (the number of an error and its text), the
/// versions are as CUDA counts them (13000 for 13.0), 0 for a driver that is not there.
error no_devices(int problem, std::string_view text, int driver, int runtime);

} // namespace dlrun::kernels::cuda
