#include "actors/coordinator/fence_book.hpp"

#include <algorithm>
#include <utility>

namespace dlrun::coordinator {

using protocol::fence;
using protocol::role_name;

namespace {

/// R20: more than a coordinator can have issued after what was heard of.
constexpr std::uint64_t incarnations_skipped = std::uint64_t{1} << 32;

} // namespace

fence_book::fence_book(fence_book_config config, const std::vector<role_name>& roles)
    : config_(std::move(config)) {
  for (const auto& role : roles) pages_[role];
}

void fence_book::add(const role_name& role) {
  const auto [at, is_new] = pages_.try_emplace(role);
  if (is_new && begun_anew_) at->second.believed_up_to = at->second.last_issued = *begun_anew_;
}

void fence_book::restore(const journaled_role& kept) {
  const auto at = pages_.find(kept.role);
  if (at == pages_.end()) return; // of a role that this job has no more
  auto& page = at->second;
  page.last_issued = std::max(page.last_issued, kept.last_issued);
  page.earlier = kept.earlier;
  if (kept.agent != config_.agent) {
    page.earlier.insert(page.earlier.end(), kept.usable.begin(), kept.usable.end());
    return;
  }
  page.believed_up_to = kept.believed_up_to;
  for (const auto& one : kept.usable)
    if (!page.in_use || one.incarnation > page.in_use->incarnation) page.granted.push_back(one);
}

void fence_book::begin_anew(incarnation highest) {
  everything_is_new_ = true;
  begun_anew_ = {highest.value + incarnations_skipped};
  for (auto& [role, page] : pages_) {
    page.believed_up_to = *begun_anew_;
    page.last_issued = std::max(page.last_issued, page.believed_up_to);
    page.granted.clear();
    page.writing.clear();
    page.fresh.clear();
  }
}

bool fence_book::is_beyond(const role_name& role, const fence& self) const {
  const auto& page = pages_.at(role);
  if (!config_.journals || self.incarnation <= page.believed_up_to) return false;
  if (self.incarnation > page.last_issued) return true;
  const auto is_other = [&](const fence& one) {
    return one.incarnation == self.incarnation && one.token != self.token;
  };
  return std::ranges::any_of(page.granted, is_other) || std::ranges::any_of(page.earlier, is_other) ||
         std::ranges::any_of(page.writing, is_other) || std::ranges::any_of(page.fresh, is_other);
}

bool fence_book::issue(const role_name& role, std::size_t wanted) {
  auto& page = pages_.at(role);
  auto& to = config_.journals ? page.fresh : page.granted;
  const auto has = page.granted.size() + page.writing.size() + page.fresh.size();
  for (auto number = has; number < wanted; ++number) {
    ++page.last_issued.value;
    to.push_back({page.last_issued, config_.random()});
  }
  return has < wanted && !config_.journals;
}

const std::vector<fence>& fence_book::granted(const role_name& role) const { return pages_.at(role).granted; }

incarnation fence_book::last_issued(const role_name& role) const { return pages_.at(role).last_issued; }

bool fence_book::is_issued(const role_name& role, const fence& self, incarnation newest) const {
  const auto& page = pages_.at(role);
  if (std::find(page.granted.begin(), page.granted.end(), self) != page.granted.end()) return true;
  return self.incarnation <= page.believed_up_to && self.incarnation > newest;
}

bool fence_book::was_issued(const role_name& role, const fence& self, incarnation newest) const {
  const auto& earlier = pages_.at(role).earlier;
  return self.incarnation > newest && std::find(earlier.begin(), earlier.end(), self) != earlier.end();
}

void fence_book::serve(std::uint64_t agent) {
  config_.agent = agent;
  for (auto& [role, page] : pages_) {
    page.earlier.insert(page.earlier.end(), page.granted.begin(), page.granted.end());
    page.granted.clear();
    page.writing.clear();
    page.fresh.clear();
  }
}

void fence_book::use(const role_name& role, const fence& self) {
  auto& page = pages_.at(role);
  page.in_use = self;
  page.last_issued = std::max(page.last_issued, self.incarnation);
  for (auto* fences : {&page.granted, &page.earlier})
    std::erase_if(*fences, [&](const fence& one) { return one.incarnation <= self.incarnation; });
}

std::vector<journaled_role> fence_book::begin_write() {
  std::vector<journaled_role> all;
  if (is_writing_ || !config_.journals) return all;
  for (auto& [role, page] : pages_) {
    if (page.fresh.empty() && !everything_is_new_) continue;
    page.writing = std::exchange(page.fresh, {});
    journaled_role kept{role, page.last_issued, {}, config_.agent, page.believed_up_to, page.earlier};
    if (page.in_use) kept.usable.push_back(*page.in_use);
    kept.usable.insert(kept.usable.end(), page.granted.begin(), page.granted.end());
    kept.usable.insert(kept.usable.end(), page.writing.begin(), page.writing.end());
    all.push_back(std::move(kept));
  }
  is_writing_ = !all.empty();
  everything_is_new_ = everything_is_new_ && all.empty();
  return all;
}

std::vector<role_name> fence_book::end_write() {
  std::vector<role_name> granted;
  is_writing_ = false;
  for (auto& [role, page] : pages_) {
    if (page.writing.empty()) continue;
    page.granted.insert(page.granted.end(), page.writing.begin(), page.writing.end());
    page.writing.clear();
    granted.push_back(role);
  }
  return granted;
}

} // namespace dlrun::coordinator
