#include "base/http_client.hpp"

#include <array>
#define CURL_DISABLE_TYPECHECK // its checks are macros of the functions that are looked up here
#include <curl/curl.h>
#include <dlfcn.h>
#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::base {
namespace {

/// libcurl, which is loaded when the first one asks: with it come thirty other libraries, which
/// would add 10 ms to the start of every process.
struct curl_library {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  std::string why_not{}; ///< it cannot be used; else empty
};

template <class Function>
void find(void* library, const char* name, Function& function, curl_library& into) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) into.why_not = std::string("libcurl has no ") + name;
}

curl_library load_curl() {
  curl_library loaded;
  void* const library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.why_not = ::dlerror();
    return loaded;
  }
  find(library, "curl_global_init", loaded.global_init, loaded);
  find(library, "curl_easy_init", loaded.easy_init, loaded);
  find(library, "curl_easy_setopt", loaded.easy_setopt, loaded);
  find(library, "curl_easy_perform", loaded.easy_perform, loaded);
  find(library, "curl_easy_getinfo", loaded.easy_getinfo, loaded);
  find(library, "curl_easy_strerror", loaded.easy_strerror, loaded);
  find(library, "curl_easy_cleanup", loaded.easy_cleanup, loaded);
  find(library, "curl_slist_append", loaded.slist_append, loaded);
  find(library, "curl_slist_free_all", loaded.slist_free_all, loaded);
  if (loaded.why_not.empty() && loaded.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    loaded.why_not = "libcurl does not start";
  return loaded;
}

const curl_library& curl() {
  static const auto loaded = load_curl();
  return loaded;
}

struct list_deleter {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
using header_list = std::unique_ptr<curl_slist, list_deleter>;

header_list headers_of(const http_request& request) {
  // "Expect:" away: curl would wait a second for a server that does not know it.
  header_list all{curl().slist_append(nullptr, "Expect:")};
  for (const auto& line : request.headers) all.reset(curl().slist_append(all.release(), line.c_str()));
  return all;
}

/// For libcurl: what comes is appended, up to a bound.
std::size_t take(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + size * count > http_client::answer_bytes_max) return 0;
  body.append(bytes, size * count);
  return size * count;
}

/// An answer that is handed on as it comes.
struct running_stream {
  const http_stream& how;
  CURL* handle;
};

std::size_t hand_on(char* bytes, std::size_t size, std::size_t count, void* into) {
  const auto& to = *static_cast<running_stream*>(into);
  long status = 0;
  curl().easy_getinfo(to.handle, CURLINFO_RESPONSE_CODE, &status);
  return to.how.take(status, {bytes, size * count}) ? size * count : 0;
}

/// @returns other than 0 to end it
int look_on(void* into, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<running_stream*>(into)->how.goes_on() ? 0 : 1;
}

} // namespace

class http_client::implementation {
public:
  explicit implementation(tls_files files)
      : files_(std::move(files)) {
    DLRUN_CHECK(curl().why_not.empty(), "libcurl is there: {}", curl().why_not);
    handle_ = curl().easy_init();
    DLRUN_CHECK(handle_ != nullptr, "no memory for a connection");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_PROXY, "");
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_XFERINFOFUNCTION, &look_on);
    set(CURLOPT_ERRORBUFFER, why_.data());
    if (!files_.ca.empty()) set(CURLOPT_CAINFO, files_.ca.c_str());
    if (!files_.certificate.empty()) set(CURLOPT_SSLCERT, files_.certificate.c_str());
    if (!files_.key.empty()) set(CURLOPT_SSLKEY, files_.key.c_str());
  }
  implementation(const implementation&) = delete;
  implementation& operator=(const implementation&) = delete;
  ~implementation() { curl().easy_cleanup(handle_); }

  result<http_answer> send(const http_request& request, std::chrono::milliseconds deadline,
                           std::chrono::milliseconds connect_max) {
    DLRUN_CHECK(deadline.count() > 0, "libcurl takes {} ms for no limit", deadline.count());
    std::string body;
    set_bounds(deadline, std::min(connect_max, deadline), std::chrono::seconds{0});
    set(CURLOPT_NOPROGRESS, 1L);
    set(CURLOPT_WRITEFUNCTION, &take);
    set(CURLOPT_WRITEDATA, &body);
    auto answer = perform(request);
    if (answer) answer->body = std::move(body);
    return answer;
  }

  result<http_answer> stream(const http_request& request, const http_stream& how) {
    running_stream running{how, handle_};
    set_bounds(how.lasts_max, how.connect_max, how.silence_max);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFODATA, &running);
    set(CURLOPT_WRITEFUNCTION, &hand_on);
    set(CURLOPT_WRITEDATA, &running);
    return perform(request);
  }

private:
  /// @param silence 0: it may last as long as all of it
  void set_bounds(std::chrono::milliseconds all, std::chrono::milliseconds connect,
                  std::chrono::seconds silence) {
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(all.count()));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(connect.count() + 1)); // 0: its default
    set(CURLOPT_LOW_SPEED_LIMIT, silence.count() > 0 ? 1L : 0L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(silence.count()));
  }

  result<http_answer> perform(const http_request& request) {
    http_answer answer;
    const auto headers = headers_of(request);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_HTTPHEADER, headers.get());
    set_method(request);
    why_[0] = '\0';
    const auto done = curl().easy_perform(handle_);
    if (done != CURLE_OK)
      return fail(code_of(done), why_[0] != '\0' ? why_.data() : curl().easy_strerror(done));
    curl().easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &answer.status);
    curl_off_t patience_s = 0;
    curl().easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &patience_s);
    if (patience_s > 0) answer.retry_after = std::chrono::seconds{patience_s};
    return answer;
  }

  static error_code code_of(CURLcode code) {
    if (code == CURLE_OPERATION_TIMEDOUT) return error_code::timed_out;
    return code == CURLE_ABORTED_BY_CALLBACK ? error_code::interrupted : error_code::system;
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    const auto done = curl().easy_setopt(handle_, option, value);
    DLRUN_CHECK(done == CURLE_OK, "libcurl's option {}: {}", static_cast<int>(option),
                curl().easy_strerror(done));
  }

  void set_method(const http_request& request) {
    if (request.method == "GET") {
      set(CURLOPT_HTTPGET, 1L);
    } else {
      set(CURLOPT_POSTFIELDS, request.body.data());
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    }
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }

  CURL* handle_ = nullptr;
  tls_files files_;
  std::array<char, CURL_ERROR_SIZE> why_{};
};

result<void> http_client::check_installed(std::string_view needed_by) {
  const auto& why_not = curl().why_not;
  if (why_not.empty()) return {};
  return fail(error_code::bad_usage, fmt::format("{} needs libcurl, which cannot be used here ({}): install "
                                                 "Debian's package libcurl4",
                                                 needed_by, why_not));
}

http_client::http_client(tls_files files)
    : parts_(std::make_unique<implementation>(std::move(files))) {}
http_client::~http_client() = default;

result<http_answer> http_client::send(const http_request& request, std::chrono::milliseconds deadline,
                                      std::chrono::milliseconds connect_max) {
  return parts_->send(request, deadline, connect_max);
}

result<http_answer> http_client::stream(const http_request& request, const http_stream& how) {
  return parts_->stream(request, how);
}

} // namespace dlrun::base
