#include "actors/ps_shard/optimizer_state.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <dlrun/check.hpp>

namespace dlrun::ps_shard {
namespace {

/// Before what is beside: how many bytes it has.
constexpr std::size_t size_floats = sizeof(std::uint32_t) / sizeof(float);

std::size_t floats_for(std::size_t bytes) { return (bytes + sizeof(float) - 1) / sizeof(float); }

} // namespace

std::size_t retained_state_floats(std::size_t floats, std::size_t beside_bytes_max) {
  return floats + size_floats + floats_for(beside_bytes_max);
}

result<retained_state> retained_state_of(std::span<const float> values, std::size_t floats) {
  if (values.size() < floats + size_floats)
    return fail(error_code::storage_damaged, "the memory of a PS shard's state is too short");
  const auto beside = std::as_bytes(values.subspan(floats));
  std::uint32_t size = 0;
  std::memcpy(&size, beside.data(), sizeof size);
  if (size > beside.size() - sizeof size)
    return fail(error_code::storage_damaged, "the memory of a PS shard's state is damaged");
  return retained_state{values.first(floats),
                        {reinterpret_cast<const char*>(beside.data()) + sizeof size, size}};
}

optimizer_state optimizer_state::in_place(std::size_t floats) {
  optimizer_state made;
  made.floats_ = floats;
  made.own_.resize(floats);
  return made;
}

result<optimizer_state> optimizer_state::retained_in(base::unique_fd memory, std::size_t floats,
                                                     std::size_t beside_bytes_max) {
  auto writer = transport::parameter_writer::create_in(
      std::move(memory), retained_state_floats(floats, beside_bytes_max), 0, transport::retained_floats_max);
  if (!writer) return tl::unexpected(writer.error());
  optimizer_state made;
  made.floats_ = floats;
  made.writer_.emplace(std::move(*writer));
  return made;
}

std::span<const float> optimizer_state::current() const {
  return writer_ ? writer_->current().first(floats_) : std::span{own_};
}

kernels::cpu::update_state optimizer_state::begin(timeline_id timeline, version_id version) {
  if (!writer_) return own_;
  const auto before = has_current_ ? current() : std::span<const float>{};
  const auto after = writer_->begin_write(timeline, version);
  beside_ = after.subspan(floats_);
  return {before, after.first(floats_)};
}

void optimizer_state::publish(std::string_view beside) {
  if (!writer_) return;
  const auto room = std::as_writable_bytes(beside_);
  const auto size = static_cast<std::uint32_t>(beside.size());
  DLRUN_CHECK(size + sizeof size <= room.size(), "{} bytes beside a version, where {} have room", size,
              room.size() - sizeof size);
  std::memcpy(room.data(), &size, sizeof size);
  std::ranges::copy(std::as_bytes(std::span{beside}), room.begin() + sizeof size);
  writer_->publish();
  has_current_ = true;
}

void optimizer_state::abandon() {
  if (writer_) writer_->abandon();
}

void optimizer_state::withdraw() {
  if (writer_) writer_->withdraw_all();
  has_current_ = false;
}

} // namespace dlrun::ps_shard
