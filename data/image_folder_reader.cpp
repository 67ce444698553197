#include "data/image_folder_reader.hpp"

#include "base/read_at.hpp"
#include "base/utf8.hpp"
#include "data/blob.hpp"
#include "data/file_errors.hpp"
#include "data/resize.hpp"

#include <algorithm>
#include <atomic>
#include <dlrun/detail/parallel_for.hpp>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <thread>

namespace dlrun::data {
namespace {

constexpr std::uintmax_t file_bytes_max = std::uintmax_t{1} << 30;
constexpr int classes_max = 10'000;
constexpr unsigned decoding_threads_max = 8;

/// What is in a folder, by name, without what begins with a dot.
result<std::vector<std::filesystem::directory_entry>> entries_of(const std::filesystem::path& folder) {
  std::error_code problem;
  std::vector<std::filesystem::directory_entry> all;
  std::filesystem::directory_iterator at(folder, problem);
  for (; !problem && at != std::filesystem::directory_iterator{}; at.increment(problem))
    if (!at->path().filename().string().starts_with('.')) all.push_back(*at);
  if (problem)
    return fail(error_code::bad_data,
                fmt::format("cannot read the folder {}: {}", folder.string(), problem.message()));
  std::ranges::sort(all, {}, [](const auto& entry) { return entry.path().filename().string(); });
  return all;
}

bool is_picture(const std::filesystem::path& file) {
  std::string suffix = file.extension().string();
  std::ranges::transform(suffix, suffix.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return suffix == ".png" || suffix == ".jpg" || suffix == ".jpeg";
}

tl::unexpected<error> cannot_look_at(const std::filesystem::path& what, const std::error_code& why) {
  return fail(error_code::bad_data, fmt::format("cannot look at {}: {}", what.string(), why.message()));
}

/// Not its mapping: of a file that is shortened meanwhile that would end the process (SIGBUS).
result<std::vector<std::uint8_t>> read_picture_file(const std::filesystem::path& file) {
  const auto mapped = blob::map_file(file);
  if (!mapped) return tl::unexpected(mapped.error());
  if (mapped->bytes().size() > file_bytes_max)
    return fail(error_code::bad_data,
                fmt::format("{}: larger than 1 GiB; is this a picture?", file.string()));
  std::vector<std::uint8_t> bytes(mapped->bytes().size());
  const auto got = base::read_at(mapped->fd(), std::as_writable_bytes(std::span{bytes}), 0);
  if (!got) return system_failure("cannot read", file.string());
  bytes.resize(*got);
  return bytes;
}

} // namespace

image_folder_reader::image_folder_reader(spec::DatasetSpec& spec, const decode_context& context)
    : spec_(spec)
    , context_(context) {}

result<void> image_folder_reader::find_pictures(const std::filesystem::path& folder, std::int32_t number) {
  const auto entries = entries_of(folder);
  if (!entries) return tl::unexpected(entries.error());
  for (const auto& entry : *entries) {
    std::error_code problem;
    const auto kind = entry.status(problem);
    if (problem) return cannot_look_at(entry.path(), problem);
    if (std::filesystem::is_directory(kind)) {
      if (auto found = find_pictures(entry.path(), number); !found) return found;
    } else if (std::filesystem::is_regular_file(kind) && is_picture(entry.path())) {
      pictures_.push_back({entry.path(), number});
    } else {
      return fail(error_code::bad_data,
                  fmt::format("{}: not a picture (.png, .jpg, .jpeg); move it away", entry.path().string()));
    }
  }
  return {};
}

result<void> image_folder_reader::find_classes(const std::filesystem::path& folder) {
  const auto entries = entries_of(folder);
  if (!entries) return tl::unexpected(entries.error());
  auto& classes = *spec_.mutable_image_folder()->mutable_classes();
  const bool learn = classes.empty() && context_.learn;
  for (const auto& entry : *entries) {
    const std::string name = entry.path().filename().string();
    std::error_code problem;
    const bool is_folder = entry.is_directory(problem);
    if (problem) return cannot_look_at(entry.path(), problem);
    if (!is_folder)
      return fail(
          error_code::bad_data,
          fmt::format("{}: not a folder; pictures lie in one folder for each class", entry.path().string()));
    if (learn && (base::first_invalid_utf8(name) || classes.size() >= classes_max))
      return fail(error_code::bad_data,
                  fmt::format("{}: the name of a class is UTF-8 text, and there are at most {}",
                              entry.path().string(), classes_max));
    if (learn) classes.Add()->assign(name);
    const auto found = std::ranges::find(classes, name);
    if (found == classes.end())
      return fail(error_code::bad_data,
                  fmt::format("{}: the training data has no class of this name, only {} others",
                              entry.path().string(), classes.size()));
    const auto before = pictures_.size();
    if (auto read = find_pictures(entry.path(), static_cast<std::int32_t>(found - classes.begin())); !read)
      return read;
    if (pictures_.size() == before)
      return fail(error_code::bad_data,
                  fmt::format("{}: there is no picture in this class", entry.path().string()));
  }
  return {};
}

result<rgb_image> image_folder_reader::load(const picture& from) const {
  const auto bytes = read_picture_file(from.file);
  if (!bytes) return tl::unexpected(bytes.error());
  auto image = decode_image(*bytes, from.file.string());
  const auto& size = spec_.image_folder().resize();
  if (!image || size.empty()) return image;
  return resize_bilinear(*image, static_cast<std::uint32_t>(size[0]), static_cast<std::uint32_t>(size[1]));
}

result<record_layout> image_folder_reader::open(const reader_request& request) {
  auto found = request.with_targets ? find_classes(request.records) : find_pictures(request.records, 0);
  if (!found) return tl::unexpected(found.error());
  if (pictures_.empty())
    return fail(error_code::bad_data,
                fmt::format("{}: there are no pictures in it", request.records.string()));
  const auto first = load(pictures_.front());
  if (!first) return tl::unexpected(first.error());
  height_ = first->height;
  width_ = first->width;
  return record_layout{
      .records = pictures_.size(),
      .shape = {static_cast<std::uint32_t>(spec_.image_folder().channels()), height_, width_},
      .bytes = true};
}

result<void> image_folder_reader::read_picture(const picture& from, std::span<std::uint8_t> planes) const {
  const auto image = load(from);
  if (!image) return tl::unexpected(image.error());
  if (image->height != height_ || image->width != width_)
    return fail(
        error_code::bad_data,
        fmt::format("{}: {} x {} pixels, but {} has {} x {}; all must be of one size, or write resize: "
                    "[height, width]",
                    from.file.string(), image->height, image->width, pictures_.front().file.string(), height_,
                    width_));
  to_planes(*image, static_cast<std::uint32_t>(spec_.image_folder().channels()), planes);
  return {};
}

/// Of several that cannot be read the first is told.
result<void> image_folder_reader::read(std::uint64_t first, std::uint64_t count, const record_buffers& out) {
  const auto size = static_cast<std::size_t>(spec_.image_folder().channels()) * height_ * width_;
  std::mutex mutex;
  std::optional<error> problem;
  std::atomic<std::uint64_t> end = count; // what is behind a problem need not be read
  const auto threads = std::min(std::thread::hardware_concurrency(), decoding_threads_max);
  dlrun::detail::parallel_for(count, threads, [&] {
    return [&](std::size_t i) {
      if (i >= end) return;
      const auto& from = pictures_[first + i];
      const auto done = read_picture(from, out.bytes.subspan(i * size, size));
      if (!out.classes.empty()) out.classes[i] = from.number;
      if (done) return;
      const std::lock_guard lock(mutex);
      if (i >= end) return;
      end = i;
      problem = done.error();
    };
  });
  if (problem) return tl::unexpected(*problem);
  return {};
}

} // namespace dlrun::data
