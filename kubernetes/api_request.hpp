/// What the API server is asked.
#pragma once

#include <string>

namespace dlrun::kubernetes {

/// As its Role would name it.
struct api_request {
  std::string verb;       ///< get, list, watch, create, patch or delete
  std::string group{};    ///< "batch"; "": the core
  std::string version;    ///< "v1"
  std::string resource;   ///< plural: "jobs"
  std::string name{};     ///< "": of no object, as when one is made
  std::string body{};     ///< JSON; of a patch a merge patch (RFC 7386), of a delete DeleteOptions
  std::string query{};    ///< of a list or a watch: encoded, without "?"
  bool is_global = false; ///< in no namespace
};

std::string method_of(const api_request& request);
/// With the query; without the server's address.
std::string path_of(const api_request& request, const std::string& name_space);
/// Of its body; "" where there is none.
std::string content_type_of(const api_request& request);
/// As people name it: "patch jobs.batch 'job'".
std::string text_of(const api_request& request);

/// The rule of a Role that gives the right to it.
std::string rule_for(const api_request& request);

/// Asks whether who asks may do that (SelfSubjectAccessReview).
api_request review_of(const api_request& request, const std::string& name_space);

} // namespace dlrun::kubernetes
