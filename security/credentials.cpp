#include "security/credentials.hpp"

#include <openssl/crypto.h>

namespace dlrun::security {

secret_text::~secret_text() { OPENSSL_cleanse(text_.data(), text_.size()); }

} // namespace dlrun::security
