#include "data/equal_records.hpp"

#include "data/array_dataset.hpp"
#include "data/prefetcher.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace dlrun::data {
namespace {

constexpr std::size_t read_at_once = 256;

/// Calls `take(hash)` for each record: of its inputs as they are stored, and its target.
template <class Take>
result<void> for_each_hash(const chosen_records& chosen, Take take) {
  const auto all = array_dataset::create(chosen.files, {});
  if (!all) return tl::unexpected(all.error());
  const auto bytes_of = [](const auto& values, std::size_t index, std::size_t each) {
    return std::string_view{reinterpret_cast<const char*>(values.data() + index * each),
                            each * sizeof values.front()};
  };
  microbatch some;
  std::string record;
  for (std::size_t first = 0; first < chosen.places.size(); first += read_at_once) {
    const auto places =
        std::span{chosen.places}.subspan(first, std::min(read_at_once, chosen.places.size() - first));
    if (auto read = read_microbatch(**all, places, some); !read) return read;
    for (std::size_t i = 0; i < places.size(); ++i) {
      record = bytes_of(some.records, i, some.records.size() / places.size());
      record += bytes_of(some.classes, i, some.classes.size() / places.size());
      record += bytes_of(some.values, i, some.values.size() / places.size());
      take(std::hash<std::string_view>{}(record));
    }
  }
  return {};
}

} // namespace

chosen_records all_records(decoded_data files) {
  std::vector<std::uint64_t> places(files.records.records());
  std::iota(places.begin(), places.end(), 0);
  return {std::move(files), std::move(places)};
}

result<std::uint64_t> count_equal(const chosen_records& records, const chosen_records& others) {
  std::unordered_map<std::size_t, std::uint64_t> left;
  if (auto read = for_each_hash(records, [&](std::size_t hash) { ++left[hash]; }); !read)
    return tl::unexpected(read.error());
  std::uint64_t equal = 0;
  const auto read = for_each_hash(others, [&](std::size_t hash) {
    const auto found = left.find(hash);
    if (found == left.end()) return;
    equal += found->second;
    left.erase(found);
  });
  if (!read) return tl::unexpected(read.error());
  return equal;
}

} // namespace dlrun::data
