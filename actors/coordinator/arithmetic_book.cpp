#include "actors/coordinator/arithmetic_book.hpp"

#include <fmt/format.h>

namespace dlrun::coordinator {

std::string arithmetic_book::why_refused(const protocol::join& join) const {
  if (relaxed_) return {};
  const auto name = protocol::to_string(join.role);
  if (fingerprint_ && fingerprint_->text != join.fingerprint)
    return fmt::format("{} has the fingerprint '{}', but {} joined with '{}': they would not compute the "
                       "same bits; take hosts "
                       "that are alike, or let cluster.determinism be \"relaxed\"",
                       name, join.fingerprint, protocol::to_string(fingerprint_->from), fingerprint_->text);
  if (join.role.kind == protocol::role_kind::worker && device_ && device_->text != join.device)
    return fmt::format(
        "{} computes on '{}', but {} joined with '{}': they would not compute the same bits; name GPUs of "
        "one model in cluster.gpus, with the same libraries on all hosts",
        name, join.device, protocol::to_string(device_->from), device_->text);
  return {};
}

void arithmetic_book::note(const protocol::join& join) {
  if (!fingerprint_) fingerprint_ = {join.fingerprint, join.role};
  if (!device_ && join.role.kind == protocol::role_kind::worker) device_ = {join.device, join.role};
}

} // namespace dlrun::coordinator
