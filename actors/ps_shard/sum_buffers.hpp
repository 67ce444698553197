/// Memory for sums of gradients.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace dlrun::ps_shard {

/// Lends buffers of one size and lends them again, so that a step allocates nothing. Thread-safe.
class sum_buffers {
public:
  explicit sum_buffers(std::size_t floats);

  /// Floats of unspecified content. The buffer comes back with its last user, on any thread, also
  /// after this object has gone.
  std::shared_ptr<std::vector<float>> lend();

private:
  struct shelf {
    std::mutex mutex;
    std::vector<std::unique_ptr<std::vector<float>>> free;
  };

  std::size_t floats_;
  std::shared_ptr<shelf> shelf_ = std::make_shared<shelf>();
};

} // namespace dlrun::ps_shard
