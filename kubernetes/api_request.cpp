#include "kubernetes/api_request.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dlrun::kubernetes {
namespace {

bool only_reads(const api_request& request) {
  return request.verb == "get" || request.verb == "list" || request.verb == "watch";
}

} // namespace

std::string method_of(const api_request& request) {
  if (only_reads(request)) return "GET";
  if (request.verb == "delete") return "DELETE";
  return request.verb == "patch" ? "PATCH" : "POST";
}

std::string path_of(const api_request& request, const std::string& name_space) {
  auto path = request.group.empty() ? fmt::format("/api/{}", request.version)
                                    : fmt::format("/apis/{}/{}", request.group, request.version);
  if (!request.is_global) path += "/namespaces/" + name_space;
  path += "/" + request.resource;
  if (!request.name.empty()) path += "/" + request.name;
  if (only_reads(request) || request.verb == "delete")
    return request.query.empty() ? path : path + "?" + request.query;
  return path + "?fieldManager=dlrun";
}

std::string content_type_of(const api_request& request) {
  if (only_reads(request)) return "";
  return request.verb == "patch" ? "application/merge-patch+json" : "application/json";
}

std::string text_of(const api_request& request) {
  return fmt::format("{} {}{}{}{}", request.verb, request.resource, request.group.empty() ? "" : ".",
                     request.group, request.name.empty() ? "" : " '" + request.name + "'");
}

std::string rule_for(const api_request& request) {
  return fmt::format(
      R"({{apiGroups: ["{}"], resources: ["{}"],{} verbs: ["{}"]}})", request.group, request.resource,
      request.name.empty() ? "" : fmt::format(R"( resourceNames: ["{}"],)", request.name), request.verb);
}

api_request review_of(const api_request& request, const std::string& name_space) {
  nlohmann::json of{{"verb", request.verb},
                    {"group", request.group},
                    {"version", request.version},
                    {"resource", request.resource},
                    {"namespace", name_space}};
  if (!request.name.empty()) of["name"] = request.name;
  const nlohmann::json review{{"apiVersion", "authorization.k8s.io/v1"},
                              {"kind", "SelfSubjectAccessReview"},
                              {"spec", {{"resourceAttributes", of}}}};
  return {.verb = "create",
          .group = "authorization.k8s.io",
          .version = "v1",
          .resource = "selfsubjectaccessreviews",
          .body = review.dump(),
          .is_global = true};
}

} // namespace dlrun::kubernetes
