/// api_transport: carries requests to the API server.
#pragma once

#include "base/http_client.hpp"
#include "kubernetes/api_place.hpp"

#include <chrono>
#include <dlrun/error.hpp>
#include <memory>

namespace dlrun::kubernetes {

/// One thread at a time.
class api_transport {
public:
  virtual ~api_transport() = default;
  /// Blocks for at most `deadline`, above 0. @returns timed_out, or system, when no whole answer
  /// came: the request may have been carried out.
  virtual result<base::http_answer> send(const base::http_request& request,
                                         std::chrono::milliseconds deadline) = 0;
  /// As base::http_client::stream().
  virtual result<base::http_answer> stream(const base::http_request& request,
                                           const base::http_stream& how) = 0;
};

/// By libcurl. @returns bad_usage when that cannot be loaded.
result<std::unique_ptr<api_transport>> make_transport(const api_place& place);

} // namespace dlrun::kubernetes
