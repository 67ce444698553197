#include "actors/agent/enrolment/token_book.hpp"

#include "base/hmac.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace dlrun::agent {

using protocol::time_point;

result<void> token_book::add(std::string digest, protocol::duration lifetime, time_point now) {
  forget_old(now);
  const auto open =
      std::ranges::count_if(entries_, [&](const auto& one) { return !one.is_used && now < one.valid_until; });
  if (static_cast<std::size_t>(open) >= rules_.open_max)
    return fail(error_code::limit_exceeded,
                fmt::format("{} tokens of this job wait to be used already: use those, or wait until they "
                            "expire",
                            open));
  entries_.push_back({std::move(digest), now + lifetime});
  return {};
}

/// Of those that are over the oldest go.
void token_book::forget_old(time_point now) {
  const auto is_over = [now](const auto& one) { return one.is_used || now >= one.valid_until; };
  auto over = static_cast<std::size_t>(std::ranges::count_if(entries_, is_over));
  for (auto one = entries_.begin(); one != entries_.end() && over > rules_.over_max;) {
    const bool goes = is_over(*one);
    one = goes ? entries_.erase(one) : std::next(one);
    if (goes) --over;
  }
}

token_book::entry* token_book::find(const std::string& digest) {
  entry* found = nullptr;
  for (auto& one : entries_)
    if (base::is_same_secret(std::as_bytes(std::span{one.digest}), std::as_bytes(std::span{digest})))
      found = &one;
  return found;
}

result<void> token_book::take(const std::string& digest, time_point now) {
  auto* const found = find(digest);
  if (found == nullptr)
    return fail(error_code::fenced, "the token is none of this job, or of an earlier start of it: "
                                    "'dlrun token RUN', where the root runs, makes one");
  if (found->is_used)
    return fail(error_code::fenced,
                "the token was used already, and is for one host, once: 'dlrun token RUN', "
                "where the root runs, makes another");
  if (now >= found->valid_until)
    return fail(error_code::fenced,
                fmt::format("the token expired {:.0f} s ago: 'dlrun token RUN', where the root runs, makes "
                            "another",
                            protocol::to_seconds(now - found->valid_until)));
  found->is_used = true;
  return {};
}

void token_book::give_back(const std::string& digest) {
  if (auto* const found = find(digest); found != nullptr) found->is_used = false;
}

} // namespace dlrun::agent
