/// The bits of a message's fields, one of which may be flipped as memory does it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace dlrun::test {

/// An inspector: counts the bits of all fields, and flips one on its way.
class field_bits {
public:
  explicit field_bits(std::optional<std::uint64_t> flipped = {})
      : flipped_(flipped) {}

  template <class... Fields>
  int operator()(Fields&... fields) {
    (visit(fields), ...);
    return 0;
  }
  std::uint64_t count() const { return count_; }

private:
  template <class Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
  void visit(Number& number) {
    if constexpr (std::is_same_v<Number, bool>) {
      if (is_here(1)) number = !number;
      count_ += 1;
    } else {
      constexpr auto bits = 8 * sizeof(Number);
      if (is_here(bits))
        number = static_cast<Number>(static_cast<std::uint64_t>(number) ^ std::uint64_t{1}
                                                                              << (*flipped_ - count_));
      count_ += bits;
    }
  }
  void visit(std::string& text) {
    for (auto& one : text) visit(one);
  }
  template <class One>
  void visit(std::vector<One>& all) {
    for (auto& one : all) visit(one);
  }
  template <class Fields>
  requires std::is_class_v<Fields>
  void visit(Fields& fields) { inspect(*this, fields); }
  bool is_here(std::uint64_t bits) const {
    return flipped_ && *flipped_ >= count_ && *flipped_ - count_ < bits;
  }

  std::optional<std::uint64_t> flipped_;
  std::uint64_t count_ = 0;
};

template <class Message>
std::uint64_t bits_of(Message message) {
  field_bits all;
  inspect(all, message);
  return all.count();
}

template <class Message>
Message with_flipped(Message message, std::uint64_t bit) {
  field_bits all{bit};
  inspect(all, message);
  return message;
}

} // namespace dlrun::test
