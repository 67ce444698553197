#include "transport/copy_buffers.hpp"

#include "base/os_error.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace dlrun::transport {
namespace {

/// Buffers that are kept while nobody uses them.
constexpr std::size_t free_max = 8;

class mapping {
public:
  mapping(std::byte* address, std::size_t bytes)
      : address_(address)
      , bytes_(bytes) {}
  mapping(mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr))
      , bytes_(other.bytes_) {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapping() {
    if (address_ != nullptr) ::munmap(address_, bytes_);
  }
  std::span<std::byte> memory() const { return {address_, bytes_}; }

private:
  std::byte* address_;
  std::size_t bytes_;
};

} // namespace

struct copy_buffers::shelf {
  std::mutex mutex;
  std::vector<mapping> free; ///< the one that came back last is the last
};

copy_buffers::copy_buffers()
    : shelf_(std::make_shared<shelf>()) {}

result<copy_buffer> copy_buffers::lend(std::size_t bytes) {
  std::unique_ptr<mapping> lent;
  {
    const std::scoped_lock lock{shelf_->mutex};
    const auto found = std::find_if(shelf_->free.rbegin(), shelf_->free.rend(),
                                    [&](const auto& one) { return one.memory().size() == bytes; });
    if (found != shelf_->free.rend()) {
      lent = std::make_unique<mapping>(std::move(*found));
      shelf_->free.erase(std::next(found).base());
    }
  }
  if (!lent) {
    void* address =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
      return base::fail_errno(fmt::format("cannot get {} bytes of memory for a copy", bytes));
    lent = std::make_unique<mapping>(static_cast<std::byte*>(address), bytes);
  }
  const auto memory = lent->memory();
  std::memset(memory.data(), 0, std::min(bytes, segment_header_bytes));
  return copy_buffer{memory, {lent.release(), [weak = std::weak_ptr<shelf>(shelf_)](mapping* returned) {
                                const std::unique_ptr<mapping> owned(returned);
                                const auto home = weak.lock();
                                if (!home) return;
                                const std::scoped_lock lock{home->mutex};
                                if (home->free.size() >= free_max) home->free.erase(home->free.begin());
                                home->free.push_back(std::move(*owned));
                              }}};
}

} // namespace dlrun::transport
