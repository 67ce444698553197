/// Both ends of a tensor channel in one thread.
#pragma once

#include "tests/flipped_bits/bit_flip.hpp"
#include "transport/tensor_channel.hpp"

#include <map>
#include <memory>

namespace dlrun::flipped_bits {

/// What is offered, by its number: memory of the owner, who must be there when it is fetched.
class played_offers : public transport::segment_offers {
public:
  const std::string& address() const override { return address_; }
  result<transport::segment_id> offer(const transport::segment& what) override {
    offered_[++last_] = what.bytes();
    return transport::segment_id{last_};
  }
  void withdraw(transport::segment_id id) override { offered_.erase(id.value); }
  std::span<const std::byte> find(std::uint64_t id) const {
    const auto found = offered_.find(id);
    return found == offered_.end() ? std::span<const std::byte>{} : found->second;
  }

private:
  std::string address_ = "played";
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::span<const std::byte>> offered_;
};

/// Answers at once with the memory of the owner, of which `flip` is shown what is wanted.
class played_fetches : public transport::segment_fetches {
public:
  played_fetches(std::shared_ptr<played_offers> offers, std::shared_ptr<bit_flip> flip)
      : offers_(std::move(offers))
      , flip_(std::move(flip)) {}
  bool is_shared(std::string_view) const override { return true; }
  result<void> fetch(std::string address, transport::segment_id id, std::size_t expected_bytes,
                     const transport::segment_part& part, std::chrono::steady_clock::time_point,
                     callback done) override {
    const auto memory = offers_->find(id.value);
    if (address != offers_->address() || memory.size() != expected_bytes)
      done(fail(error_code::role_lost, "it is not offered"));
    else
      done(shown(memory, part.values));
    return {};
  }

private:
  transport::segment shown(std::span<const std::byte> memory, const transport::segment_piece& wanted) {
    auto* const begin = const_cast<std::byte*>(memory.data()); // its owner is this process
    flip_->show(place::part_sent, std::span(begin, memory.size()).subspan(wanted.offset, wanted.bytes));
    return transport::segment::of_copy(memory, offers_);
  }

  std::shared_ptr<played_offers> offers_;
  std::shared_ptr<bit_flip> flip_;
};

} // namespace dlrun::flipped_bits
