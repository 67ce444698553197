#include "weights/safetensors_writer.hpp"

#include "base/atomic_file.hpp"
#include "weights/safetensors_header.hpp"

#include <dlrun/check.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::weights {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t data_alignment = 8;

std::uint64_t elements_of(const written_tensor& tensor) {
  std::uint64_t elements = 1;
  for (const auto extent : tensor.extents) elements *= static_cast<std::uint64_t>(extent);
  return elements;
}

void check_bytes(const written_tensor& tensor) {
  const auto bytes = bytes_of(tensor.dtype, elements_of(tensor));
  DLRUN_CHECK(bytes == tensor.bytes.size(), "{} bytes for {} elements of {} in {}", tensor.bytes.size(),
              elements_of(tensor), tensor.dtype, tensor.name);
}

/// The JSON, padded so that the data begins at a multiple of 8 bytes.
std::string make_header(std::span<const written_tensor> tensors,
                        const std::map<std::string, std::string>& metadata) {
  auto header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t end = 0;
  for (const auto& tensor : tensors) {
    const auto begin = end;
    end += bytes_of(tensor.dtype, elements_of(tensor)).value();
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.extents}, {"data_offsets", {begin, end}}};
  }
  auto text = header.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  text.resize((text.size() + data_alignment - 1) / data_alignment * data_alignment, ' ');
  return text;
}

/// A head that no reader takes is not written.
result<std::string> make_readable_header(std::span<const written_tensor> tensors,
                                         const std::map<std::string, std::string>& metadata) {
  auto header = make_header(tensors, metadata);
  if (header.size() <= header_bytes_max) return header;
  return fail(error_code::limit_exceeded,
              fmt::format("the names, shapes and places of {} tensors take {} bytes, and the head of a "
                          "safetensors file may have {}: make the model of fewer tensors",
                          tensors.size(), header.size(), header_bytes_max));
}

} // namespace

result<void> check_header(std::span<const written_tensor> tensors,
                          const std::map<std::string, std::string>& metadata) {
  const auto header = make_readable_header(tensors, metadata);
  return header ? result<void>{} : tl::unexpected(header.error());
}

result<void> write_safetensors(const std::filesystem::path& file, std::span<const written_tensor> tensors,
                               const std::map<std::string, std::string>& metadata) {
  for (const auto& tensor : tensors) check_bytes(tensor);
  const auto header = make_readable_header(tensors, metadata);
  if (!header) return tl::unexpected(header.error());
  const std::uint64_t length = header->size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof length}, *header};
  for (const auto& tensor : tensors)
    parts.emplace_back(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return base::write_file_atomically(file, parts);
}

} // namespace dlrun::weights
