#include "data/split.hpp"

#include <algorithm>
#include <cmath>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::data {
namespace {

__extension__ using uint128 = unsigned __int128;

class split_dataset final : public dataset {
public:
  split_dataset(std::shared_ptr<const dataset> whole, const split& division, data_part part)
      : whole_(std::move(whole))
      , division_(division)
      , part_(part) {}

  std::uint64_t record_count() const override {
    return part_ == data_part::training ? division_.training_records() : division_.validation_records();
  }
  const std::vector<std::uint32_t>& record_shape() const override { return whole_->record_shape(); }
  target_kind targets() const override { return whole_->targets(); }
  std::int64_t target_values() const override { return whole_->target_values(); }
  std::uint32_t class_count() const override { return whole_->class_count(); }
  std::vector<float> zeroes() const override { return whole_->zeroes(); }
  const std::string& records_name() const override { return whole_->records_name(); }
  const std::string& targets_name() const override { return whole_->targets_name(); }

  result<void> read(std::span<const std::uint64_t> indices, std::span<float> records,
                    const target_buffers& targets) const override {
    return whole_->read(places(indices), records, targets);
  }
  result<void> read_targets(std::span<const std::uint64_t> indices,
                            const target_buffers& targets) const override {
    return whole_->read_targets(places(indices), targets);
  }
  bool may_be_not_finite() const override { return whole_->may_be_not_finite(); }
  std::uint64_t number_in_files(std::uint64_t index) const override {
    return whole_->number_in_files(place(index));
  }
  result<std::int32_t> class_of(std::uint64_t index) const override { return whole_->class_of(place(index)); }

private:
  std::vector<std::uint64_t> places(std::span<const std::uint64_t> indices) const {
    std::vector<std::uint64_t> all(indices.size());
    std::ranges::transform(indices, all.begin(), [this](std::uint64_t i) { return place(i); });
    return all;
  }
  std::uint64_t place(std::uint64_t i) const {
    return part_ == data_part::training ? division_.training(i) : division_.validation(i);
  }

  std::shared_ptr<const dataset> whole_;
  split division_;
  data_part part_;
};

} // namespace

split::split(std::uint64_t seed, std::uint64_t records, std::uint64_t held_out)
    : records_(records)
    , held_out_(held_out)
    , draws_(seed, random_purpose::split, 0, 0, 0) {
  DLRUN_CHECK(held_out >= 1 && held_out < records, "{} of {} records held out", held_out, records);
}

result<std::uint64_t> split::held_out_records(double part, std::uint64_t records) {
  if (records < 2)
    return fail(error_code::bad_data, "data.validation.split: a single record cannot be divided");
  const double wanted = std::floor(static_cast<double>(records) * part + 0.5);
  return std::clamp(static_cast<std::uint64_t>(wanted), std::uint64_t{1}, records - 1);
}

std::uint64_t split::begin_of(std::uint64_t piece) const {
  return static_cast<std::uint64_t>(uint128{piece} * records_ / held_out_);
}

std::uint64_t split::validation(std::uint64_t i) const {
  DLRUN_CHECK(i < held_out_, "record {} of {} held out", i, held_out_);
  const std::uint64_t begin = begin_of(i);
  const auto words = draws_.words(i);
  const std::uint64_t random = (std::uint64_t{words[0]} << 32) | words[1];
  return begin + static_cast<std::uint64_t>((uint128{random} * (begin_of(i + 1) - begin)) >> 64);
}

std::uint64_t split::training(std::uint64_t i) const {
  DLRUN_CHECK(i < training_records(), "record {} of {} to train on", i, training_records());
  // Before each piece lie as many held-out records as pieces. The first guess is a few pieces off
  // at most.
  const auto before = [this](std::uint64_t piece) { return begin_of(piece) - piece; };
  auto piece = static_cast<std::uint64_t>(uint128{i} * held_out_ / training_records());
  while (piece > 0 && before(piece) > i) --piece;
  while (piece + 1 < held_out_ && before(piece + 1) <= i) ++piece;
  const std::uint64_t index = i + piece;
  return index >= validation(piece) ? index + 1 : index;
}

bool split::is_held_out(std::uint64_t index) const {
  DLRUN_CHECK(index < records_, "record {} of {}", index, records_);
  auto piece = static_cast<std::uint64_t>(uint128{index} * held_out_ / records_);
  while (piece > 0 && begin_of(piece) > index) --piece;
  while (piece + 1 < held_out_ && begin_of(piece + 1) <= index) ++piece;
  return validation(piece) == index;
}

std::shared_ptr<const dataset> make_part(std::shared_ptr<const dataset> whole, const split& division,
                                         data_part part) {
  return std::make_shared<split_dataset>(std::move(whole), division, part);
}

} // namespace dlrun::data
