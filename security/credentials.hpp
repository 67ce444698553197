/// credentials: what one end shows, and what it trusts.
#pragma once

#include <string>
#include <utility>

namespace dlrun::security {

/// A text that is wiped from memory when its owner goes. Copies are wiped on their own. It has no
/// operator for streams or formats: it is not logged by accident.
class secret_text {
public:
  secret_text() = default;
  explicit secret_text(std::string text)
      : text_(std::move(text)) {}
  secret_text(const secret_text&) = default;
  secret_text(secret_text&& other) noexcept
      : text_(std::exchange(other.text_, {})) {}
  secret_text& operator=(secret_text other) noexcept {
    text_.swap(other.text_);
    return *this;
  }
  ~secret_text();

  /// The caller keeps it out of argv, environment and logs, and copies it into files of mode 0600
  /// and descriptors only.
  const std::string& reveal() const { return text_; }

private:
  std::string text_;
};

/// Three PEM texts; each holds exactly one object.
struct credentials {
  std::string certificate_pem; ///< its own certificate
  secret_text key_pem;         ///< the private key of that certificate
  std::string authority_pem;   ///< the certificate of the only authority it trusts
};

} // namespace dlrun::security
