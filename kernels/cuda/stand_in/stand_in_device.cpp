#include "kernels/cuda/stand_in/stand_in_device.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/scratch.hpp"
#include "kernels/cuda/stand_in/library_steps.hpp"

#include <algorithm>
#include <cstring>
#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace dlrun::kernels::cuda {
namespace {

constexpr std::align_val_t alignment{256};

device_properties properties_of(const stand_in_settings& settings) {
  return {"stand-in (no GPU)", 90, 1, settings.memory_bytes, "plain loops"};
}

void release_in(stand_in_memory& memory, void* one) {
  DLRUN_CHECK(memory.erase(one) == 1, "only what was allocated is released, and once");
  ::operator delete(one, alignment);
}

/// Whether the piece that begins at or before `begin` has all of it. `end_of`: of a piece.
template <class Pieces, class End>
bool has_all(const Pieces& pieces, typename Pieces::key_type begin, std::size_t bytes, End end_of) {
  const auto behind = pieces.upper_bound(begin);
  return behind != pieces.begin() &&
         static_cast<const std::byte*>(begin) + bytes <= end_of(*std::prev(behind));
}

} // namespace

/// `reached` is of the last record(), which makes a new one: who waits for an earlier one keeps
/// that.
class stand_in_device::moment final : public event {
public:
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);
};

/// The end of each piece, by its beginning, and what is done with it.
struct stand_in_device::registered_memory {
  struct piece {
    const std::byte* end;
    host_access how;
  };
  std::mutex mutex;
  std::map<const std::byte*, piece> pieces; // guarded by mutex
};

class stand_in_device::registration final : public host_registration {
public:
  registration(std::shared_ptr<registered_memory> all, const std::byte* begin)
      : all_(std::move(all))
      , begin_(begin) {}
  ~registration() override {
    const std::lock_guard lock(all_->mutex);
    all_->pieces.erase(begin_);
  }

private:
  std::shared_ptr<registered_memory> all_;
  const std::byte* begin_;
};

stand_in_device::stand_in_device(const stand_in_settings& settings)
    : settings_(settings)
    , random_(settings.seed)
    , lanes_{stand_in_lane({settings.order, settings.seed}),
             stand_in_lane({settings.order, settings.seed + 1})}
    , registered_(std::make_shared<registered_memory>())
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

/// Like a GPU, none that it has been told of already.
result<std::unique_ptr<host_registration>> stand_in_device::register_host(std::span<const std::byte> memory,
                                                                          host_access how) {
  if ((settings_.faults.refuses_host_memory & (how == host_access::read ? 1 : 2)) != 0)
    return fail(error_code::system, "it takes no such memory: injected");
  const std::lock_guard lock(registered_->mutex);
  auto& pieces = registered_->pieces;
  const auto* const end = memory.data() + memory.size();
  const auto behind = pieces.lower_bound(end);
  if (behind != pieces.begin() && std::prev(behind)->second.end > memory.data())
    return fail(error_code::system, "it has been told of that memory");
  pieces.emplace(memory.data(), registered_memory::piece{end, how});
  return std::make_unique<registration>(registered_, memory.data());
}

void stand_in_device::copy(lane on, const void* from, void* to, std::size_t bytes, host_access how) {
  auto* const host =
      const_cast<std::byte*>(static_cast<const std::byte*>(how == host_access::read ? from : to));
  const std::lock_guard lock(registered_->mutex);
  const bool is_own = has_all(host_memory_, host, bytes, [](const auto& one) {
    return static_cast<const std::byte*>(one.first) + one.second.bytes;
  });
  const bool is_told = has_all(registered_->pieces, host, bytes, [how](const auto& one) {
    return one.second.how == how ? one.second.end : nullptr;
  });
  if (!is_own && !is_told) counts_.detour_bytes += bytes;
  lane_of(on).put(
      [=] { std::copy_n(static_cast<const std::byte*>(from), bytes, static_cast<std::byte*>(to)); });
}

void stand_in_device::upload(lane on, const void* from, void* to, std::size_t bytes) {
  copy(on, from, to, bytes, host_access::read);
}

void stand_in_device::download(lane on, const void* from, void* to, std::size_t bytes) {
  copy(on, from, to, bytes, host_access::write);
}

// ---- computation

/// The work of a step, to be put into this lane. The room for its partial sums is as new each time.
stand_in_device::works stand_in_device::works_of(stand_in_lane& where, const step& what) {
  const auto scratch = std::make_shared<std::vector<double>>(static_cast<std::size_t>(scratch_of_step(what)));
  scratch_ = std::max(scratch_, scratch->size() * sizeof(double));
  return where.taken_out([&] {
    if (!scratch->empty())
      where.put([scratch] { std::ranges::fill(*scratch, std::numeric_limits<double>::quiet_NaN()); });
    run_step(&where, settings_.arithmetic, with_scratch(what, scratch->data()),
             [this](queue to, const auto& one) { run_library(to, one, settings_.arithmetic); });
    if (!scratch->empty()) where.put([scratch] {}); // it lasts until then
  });
}

/// One step, by its work, with what goes wrong at it.
void stand_in_device::put_step(stand_in_lane& where, const works& all) {
  const auto& faults = settings_.faults;
  ++steps_;
  if (steps_ == faults.fails_at_step)
    return where.put([this] { failed_ = error{error_code::system, "the device failed: injected"}; });
  if (steps_ == faults.hangs_at_step) return where.put_wait(std::make_shared<const bool>(false));
  const bool may_flip =
      faults.flips_bit_at_step > 0 && steps_ >= faults.flips_bit_at_step && !flip_.is_done();
  if (may_flip) where.put([this] { flip_.look(memory_); });
  for (const auto& one : all) where.put(one);
  if (may_flip) where.put([this] { flip_.flip(memory_); });
}

void stand_in_device::run(lane on, const step& what) {
  ++counts_.single_steps;
  auto& where = lane_of(on);
  put_step(where, works_of(where, what));
}

/// `in_lane`: its runs that are not done.
class stand_in_device::works_of_steps final : public graph {
public:
  works_of_steps(const stand_in_device& of, stand_in_lane& where, std::vector<works> steps)
      : of(of)
      , where(where)
      , steps(std::move(steps)) {}
  ~works_of_steps() override {
    DLRUN_CHECK(*in_lane == 0 || of.failed_, "a graph is destroyed before {} of its runs are done", *in_lane);
  }

  const stand_in_device& of;
  stand_in_lane& where;
  const std::vector<works> steps;
  const std::shared_ptr<int> in_lane = std::make_shared<int>(0);
};

result<std::unique_ptr<graph>> stand_in_device::make_graph(lane on, std::span<const step> steps) {
  if (const auto from = settings_.faults.no_graph_from; ++graphs_made_ >= from && from > 0)
    return fail(error_code::system, "the device makes no graph: injected");
  auto& where = lane_of(on);
  std::vector<works> all;
  for (const auto& one : steps) all.push_back(works_of(where, one));
  return std::make_unique<works_of_steps>(*this, where, std::move(all));
}

void stand_in_device::run(graph& what) {
  const auto& made = static_cast<works_of_steps&>(what);
  ++counts_.graphs;
  ++*made.in_lane;
  for (const auto& one : made.steps) put_step(made.where, one);
  made.where.put([in_lane = made.in_lane] { --*in_lane; });
}

// ---- order

result<std::unique_ptr<event>> stand_in_device::make_event() {
  if (++events_made_ == settings_.faults.no_event_at)
    return fail(error_code::system, "the device makes no event: injected");
  return std::make_unique<moment>();
}

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
