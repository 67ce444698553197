#include "actors/ps_shard/copy_slots.hpp"

#include <utility>

namespace dlrun::ps_shard {

class copy_slots::shelf {
public:
  shelf(std::shared_ptr<transport::segment_offers> offers, std::size_t count_max, std::size_t slot_bytes)
      : offers_(std::move(offers))
      , count_max_(count_max)
      , slot_bytes_(slot_bytes) {}
  shelf(const shelf&) = delete;
  shelf& operator=(const shelf&) = delete;
  ~shelf() {
    for (const auto& one : free_) offers_->withdraw(one->id);
  }

  const std::string& address() const { return offers_->address(); }

  bool has_free() const {
    const std::scoped_lock lock{mutex_};
    return lent_ < count_max_;
  }

  /// Null: none is free.
  result<std::unique_ptr<copy_slot>> take() {
    {
      const std::scoped_lock lock{mutex_};
      if (lent_ == count_max_) return nullptr;
      ++lent_;
      if (!free_.empty()) {
        auto one = std::move(free_.back());
        free_.pop_back();
        return one;
      }
    }
    auto made = make();
    if (!made) put_back(nullptr);
    return made;
  }

  /// @param one null: it could not be made
  void put_back(std::unique_ptr<copy_slot> one) {
    const std::scoped_lock lock{mutex_};
    --lent_;
    if (one) free_.push_back(std::move(one));
  }

private:
  result<std::unique_ptr<copy_slot>> make() {
    auto memory = transport::segment::create("copy", slot_bytes_);
    if (!memory) return tl::unexpected(memory.error());
    const auto id = offers_->offer(*memory);
    if (!id) return tl::unexpected(id.error());
    return std::make_unique<copy_slot>(copy_slot{std::move(*memory), *id});
  }

  const std::shared_ptr<transport::segment_offers> offers_;
  const std::size_t count_max_;
  const std::size_t slot_bytes_;
  mutable std::mutex mutex_;
  std::size_t lent_ = 0; // guarded by mutex_, as is the next
  std::vector<std::unique_ptr<copy_slot>> free_;
};

copy_slots::copy_slots(std::shared_ptr<transport::segment_offers> offers, std::size_t count_max,
                       std::size_t slot_bytes)
    : shelf_(std::make_shared<shelf>(std::move(offers), count_max, slot_bytes)) {}

const std::string& copy_slots::address() const { return shelf_->address(); }

bool copy_slots::has_free() const { return shelf_->has_free(); }

result<std::shared_ptr<copy_slot>> copy_slots::lend() {
  auto taken = shelf_->take();
  if (!taken) return tl::unexpected(taken.error());
  if (!*taken) return nullptr;
  return std::shared_ptr<copy_slot>{taken->release(), [home = shelf_](copy_slot* returned) {
                                      home->put_back(std::unique_ptr<copy_slot>(returned));
                                    }};
}

} // namespace dlrun::ps_shard
