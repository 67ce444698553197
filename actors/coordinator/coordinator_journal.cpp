#include "actors/coordinator/coordinator_journal.hpp"

#include "actors/common/history_conversion.hpp"
#include "actors/common/job_journal.hpp"
#include "actors/common/journaled_evaluation.hpp"
#include "base/look_for.hpp"
#include "persistence/shard_store.hpp"
#include "proto/journal_records.pb.h"

#include <charconv>

namespace dlrun::coordinator {
namespace {

constexpr auto role_prefix = "role/";
constexpr auto workers_key = "workers";
constexpr auto report_key = "report";
/// An etcd takes 1.5 MB at once, and there is more in that write.
constexpr std::size_t report_bytes_max = std::size_t{512} << 10;
constexpr std::string_view store_prefix = "store/";
using common::course_key;
using common::outcome_key;

std::string key_of(const protocol::role_name& role) { return role_prefix + protocol::to_string(role); }

tl::unexpected<error> unreadable(const std::string& key) {
  return fail(error_code::storage_damaged,
              fmt::format("the entry '{}' of the journal cannot be read: use the version of dlrun that wrote "
                          "it, restore the run folder from a copy, or train in another one",
                          key));
}

records::JournalOutcome::Kind to_record(protocol::job_outcome outcome) {
  switch (outcome) {
  case protocol::job_outcome::completed: return records::JournalOutcome::COMPLETED;
  case protocol::job_outcome::interrupted: return records::JournalOutcome::INTERRUPTED;
  case protocol::job_outcome::failed: break;
  }
  return records::JournalOutcome::FAILED;
}

result<journaled_role> read_role(const std::string& key, const std::string& bytes) {
  records::JournalRole message;
  if (!message.ParseFromString(bytes)) return unreadable(key);
  journaled_role role;
  role.role = {static_cast<protocol::role_kind>(message.kind()), message.index()};
  if (key != key_of(role.role)) return unreadable(key);
  role.last_issued = {message.last_issued()};
  role.agent = message.agent();
  role.believed_up_to = {message.believed_up_to()};
  for (const auto& fence : message.usable()) role.usable.push_back({{fence.incarnation()}, fence.token()});
  for (const auto& fence : message.earlier()) role.earlier.push_back({{fence.incarnation()}, fence.token()});
  return role;
}

std::string key_of(ps_shard_id shard) { return fmt::format("{}{:06}", store_prefix, shard); }

protocol::store_standing standing_from(const records::JournalStore::Store& stored) {
  return {stored.host(), stored.identity(), {stored.floor()}};
}

void store(const protocol::store_standing& what, records::JournalStore::Store& into) {
  into.set_host(what.host);
  into.set_identity(what.identity);
  into.set_floor(what.floor.value);
}

known_store known_from(const records::JournalStore& message, ps_shard_id shard) {
  known_store known{standing_from(message.store()), {message.opener()}, {message.timeline()}, {}};
  for (const auto& range : message.restorable()) insert(known.restorable, {{range.first()}, {range.last()}});
  for (const auto& one : message.losses())
    known.losses.push_back({shard,
                            {one.start()},
                            standing_from(one.before()),
                            standing_from(one.now()),
                            {one.acknowledged()},
                            {one.found()},
                            one.reason()});
  return known;
}

records::JournalStore to_message(const known_store& known) {
  records::JournalStore message;
  store(known.store, *message.mutable_store());
  message.set_opener(known.opener.value);
  message.set_timeline(known.timeline.value);
  for (const auto& range : known.restorable) {
    auto& stored = *message.add_restorable();
    stored.set_first(range.first.value);
    stored.set_last(range.last.value);
  }
  for (const auto& loss : known.losses) {
    auto& stored = *message.add_losses();
    stored.set_start(loss.start.value);
    store(loss.before, *stored.mutable_before());
    store(loss.now, *stored.mutable_now());
    stored.set_acknowledged(loss.acknowledged.value);
    stored.set_found(loss.found.value);
    stored.set_reason(loss.reason);
  }
  return message;
}

} // namespace

result<journaled_job> read_job(const journal_entries& entries) {
  journaled_job job;
  for (const auto& [key, bytes] : entries) {
    if (key.starts_with(role_prefix)) {
      auto role = read_role(key, bytes);
      if (!role) return tl::unexpected(role.error());
      job.roles.push_back(std::move(*role));
    } else if (key == outcome_key) {
      records::JournalOutcome message;
      if (!message.ParseFromString(bytes)) return unreadable(key);
      // A run that was interrupted or failed goes on when it is resumed.
      if (message.kind() == records::JournalOutcome::COMPLETED)
        job.ended = protocol::job_ended{protocol::job_outcome::completed, message.reason()};
    } else if (key == workers_key) {
      records::JournalWorkers message;
      if (!message.ParseFromString(bytes)) return unreadable(key);
      job.workers =
          journaled_workers{message.workers(), message.specified(), message.agent(), message.request()};
    } else if (key == course_key) {
      records::JournalCourse message;
      if (!message.ParseFromString(bytes)) return unreadable(key);
      auto evaluations = common::read_evaluations(entries, message);
      if (!evaluations) return unreadable(key);
      job.evaluations = std::move(*evaluations);
    }
  }
  return job;
}

/// PS shards write nothing before their fences are journaled.
result<journaled_job> find_job(const journal_entries& entries, const std::filesystem::path& run_dir,
                               std::uint32_t ps_shards, bool has_begun) {
  auto job = read_job(entries);
  if (!job || !job->roles.empty()) return job;
  const auto store = common::store_directory(run_dir, {0});
  const auto lost = has_begun ? result<bool>{true} : base::look_for(store);
  if (!lost) return tl::unexpected(lost.error());
  job->lost = *lost;
  if (job->lost) job->highest_found = highest_opener(run_dir, ps_shards);
  return job;
}

std::vector<protocol::evaluated> read_evaluations(const journal_entries& entries) {
  const auto course = entries.find(course_key);
  records::JournalCourse message;
  if (course == entries.end() || !message.ParseFromString(course->second)) return {};
  return common::read_evaluations(entries, message).value_or(std::vector<protocol::evaluated>{});
}

std::vector<protocol::parked_slot> read_parked(const journal_entries& entries) {
  std::vector<protocol::parked_slot> parked;
  const auto course = entries.find(course_key);
  records::JournalCourse message;
  if (course != entries.end() && message.ParseFromString(course->second))
    for (const auto& one : message.parked())
      parked.push_back({{one.step()}, {one.slot()}, one.record_after() - 1}); // 0: all_records
  return parked;
}

store_book::stores read_stores(const journal_entries& entries) {
  store_book::stores all;
  for (auto one = entries.lower_bound(std::string(store_prefix));
       one != entries.end() && one->first.starts_with(store_prefix); ++one) {
    const auto digits = std::string_view{one->first}.substr(store_prefix.size());
    ps_shard_id shard;
    records::JournalStore message;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), shard.value);
    if (read.ec == std::errc{} && message.ParseFromString(one->second))
      all[shard] = known_from(message, shard);
  }
  return all;
}

std::vector<persistence::journal_write>
to_writes(const std::vector<std::pair<ps_shard_id, known_store>>& stores) {
  std::vector<persistence::journal_write> writes;
  for (const auto& [shard, known] : stores)
    writes.push_back({key_of(shard), to_message(known).SerializeAsString()});
  return writes;
}

std::vector<persistence::journal_write> to_writes(const journal_fences& order) {
  std::vector<persistence::journal_write> writes;
  for (const auto& role : order.roles) {
    records::JournalRole message;
    message.set_kind(static_cast<std::uint32_t>(role.role.kind));
    message.set_index(role.role.index);
    message.set_last_issued(role.last_issued.value);
    message.set_agent(role.agent);
    message.set_believed_up_to(role.believed_up_to.value);
    const auto store = [](const protocol::fence& fence, records::Fence& stored) {
      stored.set_incarnation(fence.incarnation.value);
      stored.set_token(fence.token);
    };
    for (const auto& fence : role.usable) store(fence, *message.add_usable());
    for (const auto& fence : role.earlier) store(fence, *message.add_earlier());
    writes.push_back({key_of(role.role), message.SerializeAsString()});
  }
  if (order.older) writes.push_back({common::course_is_older_key, ""});
  return writes;
}

std::vector<persistence::journal_write> to_writes(const journal_end& order, const std::string& report) {
  records::JournalOutcome message;
  message.set_kind(to_record(order.ended.outcome));
  message.set_reason(order.ended.reason);
  std::vector<persistence::journal_write> writes{{outcome_key, message.SerializeAsString()}};
  if (!report.empty() && report.size() <= report_bytes_max) writes.push_back({report_key, report});
  return writes;
}

std::vector<persistence::journal_write> to_writes(const journal_workers& order) {
  records::JournalWorkers message;
  message.set_workers(order.what.workers);
  message.set_specified(order.what.specified);
  message.set_agent(order.what.agent);
  message.set_request(order.what.request);
  return {{workers_key, message.SerializeAsString()}};
}

namespace {

/// The newest, by the dispatcher's course.
timeline_id read_timeline(const journal_entries& entries) {
  const auto course = entries.find(course_key);
  records::JournalCourse message;
  if (course == entries.end() || !message.ParseFromString(course->second) || message.history().empty())
    return {};
  return {message.history().rbegin()->timeline()};
}

} // namespace

incarnation highest_opener(const std::filesystem::path& run_dir, std::uint32_t ps_shards) {
  incarnation highest{};
  for (std::uint32_t shard = 0; shard < ps_shards; ++shard) {
    persistence::shard_store_options look;
    look.directory = common::store_directory(run_dir, {shard}).string();
    look.read_only = true;
    const auto store = persistence::shard_store::open(look);
    if (store) highest = std::max(highest, (*store)->found().last_opener);
  }
  return highest;
}

result<past_run> read_past_run(const common::journal_place& place) {
  const auto contents = common::read_journal(place);
  if (!contents) return tl::unexpected(contents.error());
  if (!*contents) return past_run{};
  const auto job = read_job((*contents)->entries);
  if (!job) return tl::unexpected(job.error());
  past_run past{job->ended.has_value(),
                (*contents)->owner,
                read_timeline((*contents)->entries),
                read_stores((*contents)->entries),
                {}};
  const auto report = (*contents)->entries.find(report_key);
  if (past.completed && report != (*contents)->entries.end()) past.report = report->second;
  for (const auto& role : job->roles)
    if (role.role.kind == protocol::role_kind::coordinator)
      past.last_coordinator = std::max(past.last_coordinator, role.last_issued);
  return past;
}

} // namespace dlrun::coordinator
