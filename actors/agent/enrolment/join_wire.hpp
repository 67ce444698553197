/// What a host that joins and the root say to each other, over TLS. Each message is behind a line
/// "WORD VERSION BYTES", with the version of dlrun that says it and the length of the message:
///
///     host   dlrun-join 0.2.0 123          a JoinRequest
///     root   dlrun-refused 0.2.0 45        why, as text
///        or  dlrun-not-now 0.2.0 45        why, as text; it may try again
///        or  dlrun-host-bundle 0.2.0 6789  a HostBundle: what the host is to run
///
/// A host that joins by a key does not know the root by its certificate, so each first proves to
/// the other that it has the key (join_key). Until it has heard that, neither says anything else;
/// the version is that of the proof:
///
///     host   dlrun-key 1 32                join_key::proof() of a host
///     root   dlrun-key 1 32                that of the root
///        or  dlrun-refused 1 45            it is none, or no key is good here; as no proof
///
/// After a bundle the connection stays until the root hears that the host's agent is there, on the
/// links of the job. A host whose agent cannot begin says why, as text, and ends it.
#pragma once

#include "security/credentials.hpp"

#include <cstddef>
#include <dlrun/error.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace dlrun::agent {

inline constexpr std::string_view join_word = "dlrun-join";
inline constexpr std::string_view refused_word = "dlrun-refused";
inline constexpr std::string_view not_now_word = "dlrun-not-now";
inline constexpr std::string_view key_word = "dlrun-key";
inline constexpr std::string_view key_version = "1";
inline constexpr std::string_view bundle_word = "dlrun-host-bundle";
/// Of the line.
inline constexpr std::size_t join_line_max = 200;
/// Of a JoinRequest: a path may have 4 KiB.
inline constexpr std::size_t join_request_bytes_max = 8192;
/// Of a reason, either way; longer ones are cut.
inline constexpr std::size_t join_reason_bytes_max = 8192;

struct join_head {
  std::string word;
  std::string version;
  std::size_t bytes = 0;
};
std::string written_message(std::string_view word, std::string_view version, std::string_view message);
/// From a line without its end. @returns nothing for any other text.
std::optional<join_head> parse_join_head(std::string_view line);

/// What a host needs to enrol: proof of itself for the root, and of the root for itself.
struct join_token {
  security::secret_text secret; ///< 32 random bytes
  std::string pin;              ///< security::pin_of() the authority of the job, 32 bytes
};
inline constexpr std::size_t join_secret_bytes = 32;

/// "dlrun-token-1:" and 88 letters of base64, one line without its end.
security::secret_text to_text(const join_token& token);
/// @returns bad_usage for what to_text() did not make; space around it does not count.
result<join_token> parse_token(std::string_view text);

} // namespace dlrun::agent
