/// The state of a PS shard at one version, kept readable while later versions are made: copy on
/// write, block by block, through a bounded pool.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

namespace dlrun::ps_shard {

/// Where one block of the state lies.
struct block_memory {
  std::span<const float> parameters; ///< at the version of the image
  std::span<const float> state;      ///< of the optimizer
};

/// For threads that change the state, no block by two of them at a time, and one that reads the
/// image. The memory must outlive the image.
class copy_on_write_image {
public:
  /// `pool_blocks` (at least 1): copies of blocks that may exist at a time. Larger: the one that
  /// changes the state waits less for the one that reads; each costs the memory of the largest
  /// block.
  copy_on_write_image(std::vector<block_memory> blocks, std::size_t pool_blocks);

  /// To be called before block `index` is changed. Copies it if it was not read yet; waits while
  /// the pool is used up.
  void preserve(std::size_t index);

  /// The next block of the image, parameters and then state, in order; empty behind the last. Valid
  /// until the next call.
  std::span<const float> next();

  /// Nobody reads on: changes wait for nothing any more.
  void abandon();

  /// Floats of all blocks together.
  std::size_t floats() const;

private:
  enum class stage : unsigned char { live, copying, kept, done };
  struct entry {
    block_memory memory;
    stage at = stage::live;
    std::vector<float> copy;
  };

  void release_last();
  static void copy_block(const block_memory& from, std::vector<float>& into);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<entry> blocks_;
  std::vector<std::vector<float>> pool_; ///< free copies
  std::vector<float> reader_copy_;
  std::size_t next_ = 0;
  bool abandoned_ = false;
};

} // namespace dlrun::ps_shard
