/// credentials: what one end shows, and what it trusts.
#pragma once

#include <string>
#include <utility>

namespace dlrun::security {

/// A text that is wiped from memory when it is destroyed. Each copy is wiped on its own. It has no
/// operator for streams or formats, so nobody logs it by accident.
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

  /// The text. The caller must keep it out of argv, environment and logs, and may copy it only to
  /// descriptors and files of mode 0600.
  const std::string& reveal() const { return text_; }

private:
  std::string text_;
};

/// The credentials of one end, as three PEM texts of exactly one object each.
struct credentials {
  std::string certificate_pem; ///< its own certificate
  secret_text key_pem;         ///< the private key of that certificate
  std::string authority_pem;   ///< the certificate of the only authority it trusts
};

} // namespace dlrun::security
