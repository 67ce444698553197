#include "runtime/array_intake.hpp"

#include "base/sha256.hpp"

#include <algorithm>
#include <cstring>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

/// Asked for at a time, in blocks: large enough that the way to another host does not count, small
/// enough that little is lost with a giver.
constexpr std::uint64_t run_bytes_max = std::uint64_t{1} << 20;

} // namespace

result<array_intake> array_intake::begin(const array_here& here, data::memory_budget& memory) {
  const auto bytes = data::recorded_bytes(*here.recorded);
  if (!bytes) return tl::unexpected(bytes.error());
  array_intake made{here.place, *here.recorded, here.name};
  made.bytes_ = *bytes;
  if (auto taken = memory.take(*bytes, here.name); !taken) return tl::unexpected(taken.error());
  auto file = data::memory_file::create(*bytes, here.name);
  if (!file) return tl::unexpected(file.error());
  made.file_ = std::make_shared<data::memory_file>(std::move(*file));
  made.copy(here);
  const auto most = std::max<std::uint64_t>(1, run_bytes_max / here.recorded->block_bytes());
  for (const auto block : here.missing) {
    const auto run = made.bytes_of({block, block + 1});
    made.missing_bytes_ += run.end - run.first;
    auto* const last = made.waiting_.empty() ? nullptr : &made.waiting_.back();
    if (last != nullptr && last->end == block && last->end - last->first < most)
      ++last->end;
    else
      made.waiting_.push_back({block, block + 1});
  }
  return made;
}

/// What is here: all that is not missing.
void array_intake::copy(const array_here& here) const {
  if (!here.own) return;
  const auto from = here.own->bytes();
  auto missing = here.missing.begin();
  const auto blocks = here.recorded->blocks().size() / data::block_digest_bytes;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    if (missing != here.missing.end() && *missing == block) {
      ++missing;
      continue;
    }
    const auto run = bytes_of({block, block + 1});
    std::memcpy(file_->bytes().data() + run.first, from.data() + run.first,
                static_cast<std::size_t>(run.end - run.first));
  }
}

std::optional<data::place_run> array_intake::next() {
  if (waiting_.empty()) return std::nullopt;
  const auto run = waiting_.front();
  waiting_.pop_front();
  return run;
}

data::place_run array_intake::bytes_of(const data::place_run& blocks) const {
  const auto each = recorded_->block_bytes();
  return {blocks.first * each, std::min(blocks.end * each, bytes_)};
}

std::span<std::byte> array_intake::room() const { return std::as_writable_bytes(file_->bytes()); }

bool array_intake::is_right(std::uint64_t block) const {
  const auto run = bytes_of({block, block + 1});
  const auto bytes = file_->bytes().subspan(static_cast<std::size_t>(run.first),
                                            static_cast<std::size_t>(run.end - run.first));
  return base::sha256_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) ==
         data::recorded_block(*recorded_, block);
}

result<void> array_intake::take(const data::place_run& blocks) {
  std::optional<std::uint64_t> wrong;
  for (auto block = blocks.first; block < blocks.end; ++block) {
    if (is_right(block)) {
      const auto run = bytes_of({block, block + 1});
      missing_bytes_ -= run.end - run.first;
      continue;
    }
    waiting_.push_back({block, block + 1});
    if (!wrong) wrong = block;
  }
  if (!wrong) return {};
  return fail(error_code::bad_data, fmt::format("it gave other bytes for {} ('{}'), {}", recorded_->what(),
                                                name_, data::tell_block(*recorded_, *wrong)));
}

result<data::stored_array> array_intake::finish() && {
  DLRUN_CHECK(is_whole() && file_.use_count() == 1, "{} bytes of {} are missing, or somebody uses its memory",
              missing_bytes_, name_);
  auto sealed = std::move(*file_).seal();
  if (!sealed) return tl::unexpected(sealed.error());
  data::stored_array array;
  array.memory = std::make_shared<data::blob>(std::move(*sealed));
  array.type = static_cast<data::element_type>(recorded_->type());
  array.dims.assign(recorded_->dims().begin(), recorded_->dims().end());
  array.name = name_;
  return array;
}

} // namespace dlrun::runtime
