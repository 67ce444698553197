#include "runtime/digested_message.hpp"

#include "base/sha256.hpp"

#include <fmt/format.h>

namespace dlrun::runtime {
namespace {

std::string digest_line(std::string_view head, std::string_view content) {
  return fmt::format("{}{}\n", head, base::sha256_hex(content));
}

} // namespace

std::string digested(std::string_view head, const google::protobuf::MessageLite& message) {
  const auto content = message.SerializeAsString();
  return digest_line(head, content) + content;
}

bool parse_digested(std::string_view head, std::string_view bytes, google::protobuf::MessageLite& message) {
  const auto end = bytes.find('\n');
  const auto content = bytes.substr(end == bytes.npos ? bytes.size() : end + 1);
  return bytes.starts_with(digest_line(head, content)) &&
         message.ParseFromArray(content.data(), static_cast<int>(content.size()));
}

} // namespace dlrun::runtime
