#include "runtime/new_run.hpp"

#include "engine/cpu_level.hpp"
#include "job/choices.hpp"
#include "runtime/archive_folder.hpp"
#include "runtime/journal_choice.hpp"
#include "runtime/launcher_choice.hpp"
#include "runtime/role_entry.hpp"
#include "runtime/run_files.hpp"
#include "runtime/run_record.hpp"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace dlrun::runtime {

namespace {

/// Where roles have processes of their own, a microbatch has one too: the layers of a program may
/// crash or hang.
result<microbatch_trial> try_one(const prepared_job& job, const beginning& how) {
  if (!has_gpus_here(how.hosts) && job::device_of(job.spec) == job::device::cuda)
    return microbatch_trial{.why = "no worker uses GPUs of this host, by the list of hosts"};
  const tried_model what{job.spec, job.gpus, job.train_records};
  const bool has_processes = job::placement_of(job.spec) == job::placement::processes &&
                             (role_entry_passed() || !how.role_program.empty());
  if (!has_processes) {
    auto time = time_microbatch(what, [](const auto&) {});
    if (!time) return tl::unexpected(time.error());
    return microbatch_trial{.time = *time};
  }
  auto program = program_of_roles(how.role_program);
  if (!program) return tl::unexpected(program.error());
  return try_microbatch(what, {.program = std::move(*program), .is_interrupted = how.is_interrupted});
}

/// A new run has no archives yet; and one in its folder would be lost with it.
result<void> check_archive_folder(const spec::JobSpec& spec, const std::string& wanted_folder) {
  if (!spec.durability().has_archive()) return {};
  const std::filesystem::path folder{spec.durability().archive().folder()};
  const auto place = place_for_run(wanted_folder, spec);
  const auto refuse = [&](const std::string& why) {
    return fail(error_code::bad_usage,
                fmt::format("durability.archive.folder: '{}' {}", folder.string(), why));
  };
  if (folder == place || !place_within(place, folder).empty())
    return refuse("is in the run folder, with which it would be lost: name another folder");
  std::error_code why;
  std::filesystem::create_directories(folder, why);
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return refuse(fmt::format("cannot be written to: {}; name another folder", std::strerror(errno)));
  const auto all = list_archives(folder);
  if (!all) return tl::unexpected(all.error());
  if (all->empty()) return {};
  return refuse(
      fmt::format("has archives of another run, the newest '{}': name another folder, or go on from "
                  "it with 'dlrun resume DIR --from-archive'",
                  all->front().path.filename().string()));
}

/// What goes into the folder before anything is started.
result<void> fill(new_run& run, prepared_job& job, const beginning& how) {
  if (auto held = engine::hold_to_cpu_level(job.spec.cluster().cpu_level()); !held) return held;
  auto durability =
      settle_durability(job, run.folder, [&how](const auto& tried) { return try_one(tried, how); });
  if (!durability) return tl::unexpected(durability.error());
  run.durability = std::move(*durability);
  auto record = make_record(job);
  job.run = record.run();
  const auto replicas = choose_replicas(job, hosts_at_least(how.hosts));
  record.set_replicas(replicas.replicas);
  if (auto written = write_record(run.folder.path(), record); !written) return written;
  auto home = root_home::begin(job.spec, run.folder.path(), how.hosts, record);
  if (!home) return tl::unexpected(home.error());
  run.home = std::move(*home);
  if (auto begun = begin_journal(job.spec, record.run()); !begun) return begun;
  set_replicas(replicas, job);
  if (how.hosts) run.replicas = replicas;
  return {};
}

} // namespace

result<new_run> begin_run(prepared_job& job, const std::string& wanted_folder, const beginning& how) {
  if (auto free = check_archive_folder(job.spec, wanted_folder); !free) return tl::unexpected(free.error());
  if (auto opened = open_metrics_port(job); !opened) return tl::unexpected(opened.error());
  if (auto settled = settle_journal(job.spec); !settled) return tl::unexpected(settled.error());
  auto device = settle_device(job, settles_gpus_here(how.hosts, job.spec));
  if (!device) return tl::unexpected(device.error());
  auto folder = run_folder::create(wanted_folder, job.spec, how.torn);
  if (!folder) return tl::unexpected(folder.error());
  new_run made{std::move(*folder), std::move(*device), {}, {}};
  if (auto filled = fill(made, job, how); !filled) {
    made.folder.abandon();
    return tl::unexpected(filled.error());
  }
  return made;
}

} // namespace dlrun::runtime
