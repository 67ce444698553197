/// What is to be in the cluster before a job on pods, since its options name it.
#pragma once

#include "cli/kubectl_words.hpp"
#include "cli/kubernetes_objects.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace dlrun::cli {

/// By an option of its own each.
struct named_object {
  std::string_view option;
  std::string name;
};

/// Objects of one kind, of which one call of kubectl tells.
struct named_objects {
  std::string_view kind;  ///< for kubectl
  std::string_view shown; ///< for people
  bool is_in_namespace = true;
  std::vector<named_object> all{};
};

/// Pure: those that the options name; no kind is empty.
std::vector<named_objects> objects_named_by(const pods_wish& pods);

/// For the names of those that are there. Nothing of their contents is shown.
std::vector<std::string> words_for_named(const pods_target& of, const named_objects& named);

/// @param answer to words_for_named(). @returns those of which it does not tell
std::vector<named_object> not_told(const named_objects& named, const std::string& answer);

/// For people: it is not there, and the way out.
std::string tell_missing(const pods_target& of, const named_objects& named, const named_object& missing);

/// Whether nobody may tell this user, or the server has no such kind. @param complaint of kubectl
bool is_untold(std::string_view complaint);

} // namespace dlrun::cli
