#include "weights/safetensors_writer.hpp"

#include "base/atomic_file.hpp"
#include "weights/safetensors_header.hpp"

#include <dlrun/check.hpp>
#include <nlohmann/json.hpp>

namespace dlrun::weights {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t data_alignment = 8;

/// The JSON, padded so that the data begins at a multiple of 8 bytes.
std::string make_header(std::span<const written_tensor> tensors,
                        const std::map<std::string, std::string>& metadata) {
  auto header = ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t end = 0;
  for (const auto& tensor : tensors) {
    std::uint64_t elements = 1;
    for (const auto extent : tensor.extents) elements *= static_cast<std::uint64_t>(extent);
    DLRUN_CHECK(tensor.bytes.size() == elements * bytes_of(tensor.dtype),
                "{} bytes for {} elements of {} in {}", tensor.bytes.size(), elements, tensor.dtype,
                tensor.name);
    const auto begin = end;
    end += tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.extents}, {"data_offsets", {begin, end}}};
  }
  auto text = header.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  text.resize((text.size() + data_alignment - 1) / data_alignment * data_alignment, ' ');
  return text;
}

} // namespace

result<void> write_safetensors(const std::filesystem::path& file, std::span<const written_tensor> tensors,
                               const std::map<std::string, std::string>& metadata) {
  const auto header = make_header(tensors, metadata);
  const std::uint64_t length = header.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof length}, header};
  for (const auto& tensor : tensors)
    parts.emplace_back(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return base::write_file_atomically(file, parts);
}

} // namespace dlrun::weights
