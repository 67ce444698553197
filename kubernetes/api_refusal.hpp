/// What an answer of the API server means that is no success.
#pragma once

#include "kubernetes/api_request.hpp"

#include <cstdint>
#include <string>

namespace dlrun::kubernetes {

enum class refusal_kind : std::uint8_t {
  no_answer,      ///< none came, or none that is one of Kubernetes: it may be asked again
  busy,           ///< 429, 500, 503, 504: it may be asked again
  unauthorized,   ///< 401: the token is not taken
  no_right,       ///< 403: the service account may not do that, or it is not allowed to anybody
  no_room,        ///< 403: a quota or a LimitRange of the namespace
  namespace_ends, ///< 403: the namespace is being deleted
  not_there,      ///< 404
  conflict,       ///< 409
  gone,           ///< 410: what was asked from is too old
  wrong,          ///< all else: asking again would not help
};

struct api_refusal {
  refusal_kind kind = refusal_kind::wrong;
  std::string message{};       ///< for people: what was asked, and the server's own words
  std::string missing_right{}; ///< "create pods": the service account may not; "": it may, or who knows
};

/// Pure. @param body as it came: a Status of Kubernetes, or a text of whatever stands in between
api_refusal refusal_of(const api_request& request, long status, const std::string& body);

/// Whether it is worth to ask again.
bool may_pass(refusal_kind kind);

} // namespace dlrun::kubernetes
