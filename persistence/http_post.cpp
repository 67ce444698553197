#include "persistence/http_post.hpp"

#include <array>
#include <curl/curl.h>
#include <dlrun/check.hpp>

namespace dlrun::persistence {
namespace {

struct list_deleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using header_list = std::unique_ptr<curl_slist, list_deleter>;

header_list headers_of(const std::string& authorization) {
  // "Expect:" away: curl would wait a second for a server that does not know it.
  header_list all{curl_slist_append(nullptr, "Expect:")};
  const auto add = [&](const std::string& line) {
    all.reset(curl_slist_append(all.release(), line.c_str()));
  };
  add("Content-Type: application/json");
  if (!authorization.empty()) add("Authorization: " + authorization);
  return all;
}

/// For libcurl: what comes is appended, up to a bound.
std::size_t take(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + size * count > http_post::answer_bytes_max) return 0;
  body.append(bytes, size * count);
  return size * count;
}

CURL* make_handle() {
  static const auto once = curl_global_init(CURL_GLOBAL_DEFAULT);
  auto* const handle = once == CURLE_OK ? curl_easy_init() : nullptr;
  DLRUN_CHECK(handle != nullptr, "libcurl cannot be used: {}", curl_easy_strerror(once));
  return handle;
}

} // namespace

class http_post::implementation {
public:
  explicit implementation(tls_files files)
      : handle_(make_handle())
      , files_(std::move(files)) {
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_PROXY, "");
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_WRITEFUNCTION, take);
    set(CURLOPT_ERRORBUFFER, why_.data());
    if (!files_.ca.empty()) set(CURLOPT_CAINFO, files_.ca.c_str());
    if (!files_.certificate.empty()) set(CURLOPT_SSLCERT, files_.certificate.c_str());
    if (!files_.key.empty()) set(CURLOPT_SSLKEY, files_.key.c_str());
  }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;
  ~implementation() { curl_easy_cleanup(handle_); }

  result<http_answer> send(const std::string& url, const std::string& body, const std::string& authorization,
                           std::chrono::milliseconds deadline) {
    http_answer answer;
    const auto headers = headers_of(authorization);
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_POSTFIELDS, body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(deadline.count()));
    set(CURLOPT_WRITEDATA, &answer.body);
    why_[0] = '\0';
    const auto done = curl_easy_perform(handle_);
    if (done != CURLE_OK)
      return fail(done == CURLE_OPERATION_TIMEDOUT ? error_code::timed_out : error_code::system,
                  why_[0] != '\0' ? why_.data() : curl_easy_strerror(done));
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &answer.status);
    return answer;
  }

private:
  template <class Value>
  void set(CURLoption option, Value value) {
    const auto done = curl_easy_setopt(handle_, option, value);
    DLRUN_CHECK(done == CURLE_OK, "libcurl's option {}: {}", static_cast<int>(option),
                curl_easy_strerror(done));
  }

  CURL* handle_;
  tls_files files_;
  std::array<char, CURL_ERROR_SIZE> why_{};
};

http_post::http_post(tls_files files)
    : parts_(std::make_unique<implementation>(std::move(files))) {}
http_post::~http_post() = default;

result<http_answer> http_post::send(const std::string& url, const std::string& body,
                                    const std::string& authorization, std::chrono::milliseconds deadline) {
  return parts_->send(url, body, authorization, deadline);
}

} // namespace dlrun::persistence
