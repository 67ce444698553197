/// What the bits of a processor's arithmetic depend on.
#pragma once

#include <string>
#include <vector>

namespace dlrun::engine {

/// Processor model as the kernel names it, e.g. "AMD EPYC".
std::string cpu_model();
/// Sizes of its caches, by which kernels cut their work, e.g. "L1d 32 KiB, L2 1024 KiB, L3 33792
/// KiB".
std::string cpu_caches();
std::string onednn_version();
std::string compiler_version();

/// One thing that must be the same for the same bits.
struct fingerprint_part {
  std::string what;  ///< for people: "processor"
  std::string value; ///< "AMD EPYC"

  bool operator==(const fingerprint_part&) const = default;
};
/// All of the above, and the threads of a microbatch.
std::vector<fingerprint_part> processor_parts(int threads);
/// Their values in one line.
std::string processor_fingerprint(int threads);
std::string to_line(const std::vector<fingerprint_part>& parts);

} // namespace dlrun::engine
