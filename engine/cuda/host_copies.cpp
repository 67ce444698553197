#include "engine/cuda/host_copies.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <utility>

namespace dlrun::engine {
namespace {

using kernels::cuda::host_access;
using kernels::cuda::host_registration;
using kernels::cuda::lane;

/// Of a copy in between: the device copies one part while the host writes the next.
constexpr std::size_t part_floats = std::size_t{1} << 20;

std::string remark(host_access how, const result<void>& answer) {
  const auto* const what = how == host_access::read ? "parameters" : "gradients";
  if (answer) return fmt::format("gpu-copies: the GPU copies {} where the host has them", what);
  return fmt::format("gpu-copies: there is a copy of {} between host and GPU, since the driver refuses their "
                     "memory: {}",
                     what, answer.error().message);
}

} // namespace

/// The end of each piece, by its beginning and how it is used.
struct host_copies::known_memory {
  std::mutex mutex;
  std::array<std::map<const std::byte*, const std::byte*>, 2> pieces; // guarded by mutex
};

/// Memory that the device was told of.
class host_copies::announcement {
public:
  announcement(std::shared_ptr<known_memory> all, std::span<const std::byte> memory, access how,
               std::unique_ptr<host_registration> told)
      : all_{std::move(all)}
      , begin_{memory.data()}
      , how_{how}
      , told_{std::move(told)} {
    const std::lock_guard lock(all_->mutex);
    all_->pieces.at(static_cast<std::size_t>(how_))[begin_] = begin_ + memory.size();
  }
  ~announcement() {
    const std::lock_guard lock(all_->mutex);
    all_->pieces.at(static_cast<std::size_t>(how_)).erase(begin_);
  }
  announcement(const announcement&) = delete;
  announcement& operator=(const announcement&) = delete;

private:
  std::shared_ptr<known_memory> all_;
  const std::byte* begin_;
  access how_;
  std::unique_ptr<host_registration> told_;
};

host_copies::host_copies(kernels::cuda::device& on)
    : on_{on}
    , known_{std::make_shared<known_memory>()}
    , to_device_{on}
    , to_host_{on} {}

std::shared_ptr<void> host_copies::announce(std::span<const std::byte> memory, access how) {
  auto& answer = answers_.at(static_cast<std::size_t>(how));
  if (answer && !*answer) return nullptr;
  auto told = on_.register_host(memory, how);
  if (!answer || !told) {
    answer = told ? result<void>{} : tl::unexpected(told.error());
    remarks_.push_back(remark(how, *answer));
  }
  if (!told) return nullptr;
  return std::make_shared<announcement>(known_, memory, how, std::move(*told));
}

bool host_copies::is_known(std::span<const std::byte> memory, access how) const {
  const std::lock_guard lock(known_->mutex);
  const auto& pieces = known_->pieces.at(static_cast<std::size_t>(how));
  auto after = pieces.upper_bound(memory.data());
  return after != pieces.begin() && memory.data() + memory.size() <= (--after)->second;
}

result<void> host_copies::upload(std::span<const float> from, float* to) {
  if (is_known(std::as_bytes(from), access::read)) {
    on_.upload(lane::compute, from.data(), to, from.size_bytes());
    return {};
  }
  if (auto room = to_device_.resize(from.size()); !room) return room;
  if (auto before = on_.finish(lane::compute); !before) return before; // it may still read the last copy
  for (std::size_t at = 0; at < from.size(); at += part_floats) {
    const auto part = from.subspan(at, std::min(part_floats, from.size() - at));
    std::ranges::copy(part, to_device_.data() + at);
    on_.upload(lane::compute, to_device_.data() + at, to + at, part.size_bytes());
  }
  return {};
}

result<void> host_copies::download(lane on, const float* from, std::span<float> to) {
  if (to.empty()) return on_.finish(on);
  const bool is_direct = is_known(std::as_bytes(to), access::write);
  if (!is_direct)
    if (auto room = to_host_.resize(to.size()); !room) return room;
  on_.download(on, from, is_direct ? to.data() : to_host_.data(), to.size_bytes());
  if (auto there = on_.finish(on); !there) return there;
  if (!is_direct) std::copy_n(to_host_.data(), to.size(), to.data());
  return {};
}

std::vector<std::string> host_copies::take_remarks() { return std::exchange(remarks_, {}); }

} // namespace dlrun::engine
