#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/scratch.hpp"
#include "kernels/cuda/stand_in/library_steps.hpp"

#include <algorithm>
#include <cstring>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <new>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

constexpr std::align_val_t alignment{256};

device_properties properties_of(const stand_in_settings& settings) {
  return {"stand-in (no GPU)", 90, 1, settings.memory_bytes, "plain loops"};
}

} // namespace

/// `reached` is of the last record(), which makes a new one: who waits for an earlier one keeps
/// that.
class stand_in_device::moment final : public event {
public:
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);
};

stand_in_device::stand_in_device(const stand_in_settings& settings)
    : settings_(settings)
    , random_(settings.seed)
    , lanes_{stand_in_lane({settings.order, settings.seed}),
             stand_in_lane({settings.order, settings.seed + 1})}
    , flip_(settings.faults.flip_seed) {}

stand_in_device::~stand_in_device() {
  for (const auto* all : {&memory_, &host_memory_})
    for (const auto& [one, block] : *all) ::operator delete(one, alignment);
}

device_properties stand_in_device::properties() const { return properties_of(settings_); }

std::size_t stand_in_device::free_bytes() const { return settings_.memory_bytes - used_; }

// ---- memory

result<void*> stand_in_device::allocate_in(stand_in_memory& memory, std::size_t bytes) {
  if (++allocations_ == settings_.faults.no_memory_at)
    return fail(error_code::limit_exceeded, fmt::format("no {} bytes of memory are left", bytes));
  void* const one = ::operator new(bytes, alignment);
  std::memset(one, 0xFF, bytes); // floats of this are NaN
  memory.emplace(one, stand_in_block{bytes, allocations_});
  return one;
}

void stand_in_device::release_in(stand_in_memory& memory, void* one) {
  DLRUN_CHECK(memory.erase(one) == 1, "only what was allocated is released, and once");
  ::operator delete(one, alignment);
}

result<void*> stand_in_device::allocate(std::size_t bytes) {
  if (bytes > free_bytes())
    return fail(error_code::limit_exceeded,
                fmt::format("{} bytes of the device are wanted, {} are left", bytes, free_bytes()));
  auto memory = allocate_in(memory_, bytes);
  if (memory) used_ += bytes;
  return memory;
}

void stand_in_device::release(void* memory) {
  const auto found = memory_.find(memory);
  if (found != memory_.end()) used_ -= found->second.bytes;
  release_in(memory_, memory);
}

result<void*> stand_in_device::allocate_host(std::size_t bytes) { return allocate_in(host_memory_, bytes); }

void stand_in_device::release_host(void* memory) { release_in(host_memory_, memory); }

void stand_in_device::upload(lane on, const void* from, void* to, std::size_t bytes) {
  lane_of(on).put(
      [=] { std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to)); });
}

void stand_in_device::download(lane on, const void* from, void* to, std::size_t bytes) {
  upload(on, from, to, bytes);
}

// ---- computation

void stand_in_device::run(lane on, const step& what) {
  const auto& faults = settings_.faults;
  ++steps_;
  auto& where = lane_of(on);
  if (steps_ == faults.fails_at_step)
    return where.put([this] { failed_ = error{error_code::system, "the device failed: injected"}; });
  if (steps_ == faults.hangs_at_step) return where.put_wait(std::make_shared<const bool>(false));
  const bool may_flip =
      faults.flips_bit_at_step > 0 && steps_ >= faults.flips_bit_at_step && !flip_.is_done();
  if (may_flip) where.put([this] { flip_.look(memory_); });
  const auto scratch = std::make_shared<std::vector<double>>(static_cast<std::size_t>(scratch_of_step(what)),
                                                             std::numeric_limits<double>::quiet_NaN());
  scratch_ = std::max(scratch_, scratch->size() * sizeof(double));
  run_step(&where, settings_.arithmetic, with_scratch(what, scratch->data()),
           [this](queue to, const auto& one) { run_library(to, one, settings_.arithmetic); });
  if (may_flip) where.put([this] { flip_.flip(memory_); });
  if (!scratch->empty()) where.put([scratch] {}); // it lasts until then
}

// ---- order

result<std::unique_ptr<event>> stand_in_device::make_event() { return std::make_unique<moment>(); }

void stand_in_device::record(lane on, event& at) {
  auto reached = std::make_shared<bool>(false);
  static_cast<moment&>(at).reached = reached;
  lane_of(on).put([reached] { *reached = true; });
}

void stand_in_device::wait(lane on, event& at) { lane_of(on).put_wait(static_cast<moment&>(at).reached); }

/// One that can do something; null where none can.
stand_in_lane* stand_in_device::draw_lane() {
  const std::size_t first = random_() % 2;
  for (auto* const one : {&lanes_[first], &lanes_[1 - first]})
    if (one->can_advance()) return one;
  return nullptr;
}

/// Advances lanes until done(), or nothing can go on.
template <class Done>
result<void> stand_in_device::advance_until(Done done) {
  while (!failed_ && !done()) {
    stand_in_lane* const next = draw_lane();
    if (next == nullptr)
      failed_ = error{error_code::system, "the device gave no answer for 10 s"};
    else
      next->advance();
  }
  if (!failed_) return {};
  return tl::unexpected(*failed_);
}

result<void> stand_in_device::finish(event& at) {
  const auto reached = static_cast<moment&>(at).reached;
  return advance_until([&] { return *reached; });
}

result<void> stand_in_device::finish(lane on) {
  return advance_until([&] { return lane_of(on).empty(); });
}

// ---- module

result<std::vector<device_properties>> stand_in_module::devices() const {
  return std::vector<device_properties>(static_cast<std::size_t>(settings_.devices),
                                        properties_of(settings_));
}

result<std::unique_ptr<device>> stand_in_module::open(int number, precision arithmetic) {
  if (number < 0 || number >= settings_.devices)
    return fail(error_code::bad_usage,
                fmt::format("device {} is not there: {} are", number, settings_.devices));
  auto settings = settings_;
  settings.arithmetic = arithmetic;
  return std::make_unique<stand_in_device>(settings);
}

} // namespace dlrun::kernels::cuda
