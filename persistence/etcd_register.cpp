#include "persistence/etcd_register.hpp"

#include "base/utf8.hpp"

#include <dlrun/check.hpp>
#include <fmt/format.h>

namespace dlrun::persistence {
namespace {

/// Who has it when its keys are gone.
constexpr etcd_owner nobody{};

tl::unexpected<error> not_a_register(const std::string& prefix, const std::string& owner) {
  return fail(
      error_code::bad_usage,
      fmt::format("what etcd has under {}/ is not what a root of this dlrun keeps (owner: \"{}\"): name "
                  "another cluster.journal.etcd.prefix",
                  prefix, base::printable(owner)));
}

} // namespace

result<std::unique_ptr<etcd_register>> etcd_register::make(const etcd_place& place, std::string prefix,
                                                           etcd_patience patience) {
  auto client = etcd_client::make(place, patience);
  if (!client) return tl::unexpected(client.error());
  return std::unique_ptr<etcd_register>{new etcd_register(std::move(*client), std::move(prefix))};
}

result<etcd_register::sight> etcd_register::look(const std::string& keys) {
  const std::scoped_lock lock{mutex_};
  const auto found = client_->read(key_of_owner(prefix_), key_of_entry(prefix_, keys));
  if (!found) return tl::unexpected(found.error());
  sight seen{found->single ? etcd_owner_from(*found->single) : std::nullopt, {}};
  if (found->single && !seen.owner) return not_a_register(prefix_, *found->single);
  for (const auto& [key, value] : found->entries) seen.entries[keys + key] = value;
  return seen;
}

/// @returns what was found in place of `before`; nothing when it is done
result<std::optional<etcd_owner>> etcd_register::put(const std::optional<etcd_owner>& before,
                                                     const etcd_owner& after,
                                                     std::span<const journal_write> changes) {
  std::vector<journal_write> all(changes.begin(), changes.end());
  for (auto& change : all) change.key = key_of_entry(prefix_, change.key);
  all.push_back({key_of_owner(prefix_), to_text(after)});
  const auto expected = before ? std::optional(to_text(*before)) : std::nullopt;
  const auto done = client_->compare_and_write(key_of_owner(prefix_), expected, all);
  if (!done) return tl::unexpected(done.error());
  if (done->is_equal) return std::nullopt;
  const auto found = done->found ? etcd_owner_from(*done->found) : nobody;
  if (!found) return not_a_register(prefix_, *done->found);
  return found;
}

tl::unexpected<error> etcd_register::lose(const etcd_owner& to) {
  if (to != nobody && is_older(to, hold_ ? hold_->self() : nobody)) {
    lost_ = error{
        error_code::fenced,
        fmt::format("older data was put back into etcd under {}/: write {} of root {} is the last one "
                    "there; call the command again, and the next root goes on with what this folder has",
                    prefix_, to.write, to.term)};
    return tl::unexpected(*lost_);
  }
  lost_ =
      error{error_code::fenced,
            to == nobody ? fmt::format("what roots of this run keep in etcd under {}/ was removed", prefix_)
                         : fmt::format("another root has taken the run over, as root {}: see {}/ in etcd",
                                       to.term, prefix_)};
  return tl::unexpected(*lost_);
}

result<void> etcd_register::take(const std::optional<etcd_owner>& before, const etcd_owner& self,
                                 std::span<const journal_write> changes) {
  const std::scoped_lock lock{mutex_};
  const auto found = put(before, self, changes);
  if (!found) return tl::unexpected(found.error());
  if (*found && **found != self) return lose(**found);
  hold_.emplace(self);
  lost_.reset();
  return {};
}

result<void> etcd_register::write(std::span<const journal_write> changes) {
  const std::scoped_lock lock{mutex_};
  DLRUN_CHECK(hold_.has_value() || lost_.has_value(), "who writes has taken it before");
  if (lost_) return tl::unexpected(*lost_);
  for (;;) {
    const auto attempt = hold_->next(!changes.empty());
    const auto found = put(attempt.before, attempt.after, changes);
    if (!found) return tl::unexpected(found.error());
    const auto outcome = hold_->on_answer(attempt, *found);
    if (outcome == register_hold::outcome::done) return {};
    if (outcome == register_hold::outcome::lost) return lose(found->value());
  }
}

} // namespace dlrun::persistence
