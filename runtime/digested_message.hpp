/// A message in a file, behind a first line with its digest: what is torn or edited is noticed.
#pragma once

#include <google/protobuf/message_lite.h>
#include <string>
#include <string_view>

namespace dlrun::runtime {

/// The bytes of a file: `head` (words and a number of the format, with a space behind), the SHA-256
/// of the message, the end of the line, the message.
std::string digested(std::string_view head, const google::protobuf::MessageLite& message);
/// @returns false when `bytes` is not what digested() makes with this head; `message` is undefined
/// then.
bool parse_digested(std::string_view head, std::string_view bytes, google::protobuf::MessageLite& message);

} // namespace dlrun::runtime
