#include "weights/safetensors_file.hpp"

#include "base/read_at.hpp"
#include "weights/float_formats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <dlrun/check.hpp>
#include <fcntl.h>
#include <sys/stat.h>

namespace dlrun::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's numbers are read as they lie there");

constexpr std::uint64_t length_bytes = 8;
/// Elements that are converted at a time.
constexpr std::size_t converted_at_once = std::size_t{64} << 10;

tl::unexpected<error> not_whole(const std::string& name, const std::string& why) {
  return fail(error_code::bad_data, fmt::format("{} is not a whole safetensors file: {}", name, why));
}

/// All of `into`, from byte `offset` on.
result<void> read_at(int fd, std::uint64_t offset, std::span<std::byte> into, const std::string& name) {
  const auto got = base::read_at(fd, into, offset);
  if (!got) return fail(error_code::system, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
  if (*got < into.size()) return not_whole(name, fmt::format("it ends at byte {}", offset + *got));
  return {};
}

/// Files of other formats are told by how they begin, where that is no length of a head.
/// @returns bad_data naming the format.
result<void> check_format(int fd, const std::string& name) {
  struct beginning {
    std::string_view bytes, format;
  };
  static constexpr std::array known{
      beginning{"PK\x03\x04", "a PyTorch file (torch.save) or another archive"},
      beginning{"\x80\x02", "a pickle (torch.save)"},
      beginning{"\x80\x03", "a pickle"},
      beginning{"\x80\x04", "a pickle"},
      beginning{"\x80\x05", "a pickle"},
      beginning{"\x89HDF\r\n\x1a\n", "an HDF5 file"},
      beginning{"\x93NUMPY", "a .npy file"},
      beginning{"\x1f\x8b", "gzip-compressed"},
      beginning{"GGUF", "a GGUF file"},
  };
  std::array<std::byte, length_bytes + 1> begin{};
  if (auto got = read_at(fd, 0, begin, name); !got) return got;
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
  if (text.back() == '{') return {};
  for (const auto& one : known)
    if (text.starts_with(one.bytes))
      return fail(error_code::bad_data, fmt::format("{} is {}, not a safetensors file: write one with "
                                                    "safetensors.torch.save_model or dlrun export",
                                                    name, one.format));
  return {};
}

/// Reads elements of type `Stored` and converts each.
template <class Stored, class Convert>
result<void> read_converted(int fd, std::uint64_t offset, std::span<float> out, const std::string& name,
                            Convert convert) {
  std::vector<Stored> part;
  while (!out.empty()) {
    part.resize(std::min(out.size(), converted_at_once));
    if (auto got = read_at(fd, offset, std::as_writable_bytes(std::span{part}), name); !got) return got;
    std::ranges::transform(part, out.begin(), convert);
    offset += part.size() * sizeof(Stored);
    out = out.subspan(part.size());
  }
  return {};
}

} // namespace

bool is_float(std::string_view dtype) {
  return dtype == "F32" || dtype == "F64" || dtype == "F16" || dtype == "BF16";
}

safetensors_file::safetensors_file(base::unique_fd fd, std::string name, std::uint64_t data_begin,
                                   safetensors_header header)
    : fd_(std::move(fd))
    , name_(std::move(name))
    , data_begin_(data_begin)
    , header_(std::move(header)) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) by_name_.emplace(header_.tensors[i].name, i);
}

result<safetensors_file> safetensors_file::open(const std::filesystem::path& file) {
  // O_NONBLOCK: a FIFO that nobody writes to is refused, not waited for.
  base::unique_fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!fd)
    return fail(error_code::bad_data, fmt::format("cannot open {}: {}", file.string(), std::strerror(errno)));
  return from_fd(std::move(fd), file.string());
}

result<safetensors_file> safetensors_file::from_fd(base::unique_fd fd, std::string name) {
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0)
    return fail(error_code::system, fmt::format("cannot look at {}: {}", name, std::strerror(errno)));
  if (!S_ISREG(facts.st_mode))
    return fail(error_code::bad_data, fmt::format("{} is not a regular file", name));
  const auto file_bytes = static_cast<std::uint64_t>(facts.st_size);
  std::uint64_t header_bytes = 0;
  if (file_bytes == 0) return not_whole(name, "it is empty");
  if (file_bytes <= length_bytes) return not_whole(name, fmt::format("it has only {} bytes", file_bytes));
  if (auto got = read_at(fd.get(), 0, std::as_writable_bytes(std::span{&header_bytes, 1}), name); !got)
    return tl::unexpected(got.error());
  if (auto fine = check_format(fd.get(), name); !fine) return tl::unexpected(fine.error());
  if (header_bytes > header_bytes_max || header_bytes > file_bytes - length_bytes)
    return not_whole(name, fmt::format("its head has {} bytes, of {} of the file and at most {}",
                                       header_bytes, file_bytes, header_bytes_max));
  std::string text(header_bytes, '\0');
  if (auto got = read_at(fd.get(), length_bytes, std::as_writable_bytes(std::span{text}), name); !got)
    return tl::unexpected(got.error());
  const auto data_begin = length_bytes + header_bytes;
  auto header = parse_header(text, file_bytes - data_begin, name);
  if (!header) return tl::unexpected(header.error());
  return safetensors_file{std::move(fd), std::move(name), data_begin, std::move(*header)};
}

const stored_tensor* safetensors_file::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.tensors[found->second];
}

result<void> safetensors_file::read(const stored_tensor& tensor, std::uint64_t first,
                                    std::span<float> out) const {
  DLRUN_CHECK(first <= tensor.elements && out.size() <= tensor.elements - first,
              "elements [{}, {}) of {} in tensor {}", first, first + out.size(), tensor.elements,
              tensor.name);
  const auto offset = data_begin_ + tensor.offset + bytes_of(tensor.dtype, first).value_or(0);
  if (tensor.dtype == "F32") return read_at(fd_.get(), offset, std::as_writable_bytes(out), name_);
  if (tensor.dtype == "F64")
    return read_converted<double>(fd_.get(), offset, out, name_,
                                  [](double value) { return static_cast<float>(value); });
  if (tensor.dtype == "F16")
    return read_converted<std::uint16_t>(fd_.get(), offset, out, name_, from_float16);
  if (tensor.dtype == "BF16")
    return read_converted<std::uint16_t>(fd_.get(), offset, out, name_, from_bfloat16);
  return fail(error_code::bad_data,
              fmt::format("{}: tensor \"{}\" has the dtype {}, which is not one of F32, F64, F16, BF16",
                          name_, tensor.name, tensor.dtype));
}

} // namespace dlrun::weights
