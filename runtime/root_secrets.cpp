#include "runtime/root_secrets.hpp"

#include "actors/agent/file_failure.hpp"
#include "base/atomic_file.hpp"
#include "base/ipv4_address.hpp"
#include "base/job_hosts.hpp"
#include "base/random.hpp"
#include "base/small_file.hpp"
#include "job/run_layout.hpp"
#include "runtime/digested_message.hpp"

#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace dlrun::runtime {
namespace {

constexpr std::string_view secrets_head = "dlrun-root-secrets 1 ";
constexpr mode_t of_others = 0077;
constexpr mode_t owners = 0600;
/// As many as may join a job; each has at most 150 bytes.
constexpr int enrolled_max = base::job_hosts_max;
/// What one started ends when it has had no root for a while: that of many roots ago is over.
constexpr int roots_max = 1000;
/// More than any such file has.
constexpr std::size_t secrets_bytes_max = 256 * 1024;
/// Beats that one root can send in 1,700 years.
constexpr std::uint64_t beats_of_a_root = std::uint64_t{1} << 40;

tl::unexpected<error> fail_secrets(const std::filesystem::path& file, const std::string& why) {
  return fail(
      error_code::bad_usage,
      fmt::format("'{}' {}; remove it to go on without what runs on other hosts: the agents there end "
                  "when they have had no root for cluster.orphan_grace_s",
                  file.string(), why));
}

result<void> write_file(const std::filesystem::path& file, const std::string& bytes) {
  // A file that is replaced lends its permissions.
  const base::unique_fd made{::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, owners)};
  if (!made || ::fchmod(made.get(), owners) != 0) return agent::fail_to("write", file);
  return base::write_file_atomically(file, bytes);
}

bool is_whole(const records::RootSecrets& kept) {
  return !kept.job().empty() && transport::run_token::from_bytes(kept.run_token()) &&
         kept.beat_key().size() == std::tuple_size_v<base::hmac_key> && kept.roots() > 0 &&
         kept.control_port() <= UINT16_MAX && kept.beats_port() <= UINT16_MAX;
}

/// Nothing where there is none.
result<std::optional<records::RootSecrets>> read_secrets(const std::filesystem::path& file) {
  struct stat about {};
  const bool is_seen = ::stat(file.c_str(), &about) == 0;
  if (is_seen && !S_ISREG(about.st_mode)) return fail_secrets(file, "is no file");
  if (is_seen && about.st_size > 0 && (about.st_mode & of_others) != 0)
    return fail_secrets(file, "can be read by others, so what it has is no secret");
  const auto all = base::read_small_file(file, secrets_bytes_max);
  if (!all && all.error().code == error_code::limit_exceeded)
    return fail_secrets(file, "is not what was written");
  if (!all) return tl::unexpected(all.error());
  if (!*all || (*all)->empty()) return std::nullopt; // of a root that ended before it had any
  records::RootSecrets kept;
  if (!parse_digested(secrets_head, **all, kept) || !is_whole(kept))
    return fail_secrets(file, "is not what was written");
  return kept;
}

result<records::RootSecrets> new_secrets() {
  const auto number = base::random_number();
  const auto job = fmt::format("{:016x}", number);
  const auto token = transport::run_token::random();
  if (!token) return tl::unexpected(token.error());
  const auto key = base::random_key();
  if (!key) return tl::unexpected(key.error());
  const auto authority = security::certificate_authority::make(job);
  if (!authority) return tl::unexpected(authority.error());
  const auto pem = authority->pem();
  if (!pem) return tl::unexpected(pem.error());
  records::RootSecrets made;
  made.set_job(job);
  made.set_authority_certificate(pem->certificate);
  made.set_authority_key(pem->key.reveal());
  made.set_run_token(token->to_bytes());
  made.set_beat_key(key->data(), key->size());
  made.set_beats_boot(number);
  return made;
}

/// Of "NUMBER:PORT", perhaps with the name of a local socket and "@" before it; 0 of anything else.
std::uint16_t port_in(std::string_view address) {
  const auto parsed = base::parse_ipv4_address(address.substr(address.rfind('@') + 1));
  return parsed ? ntohs(parsed->sin_port) : std::uint16_t{0};
}

} // namespace

result<root_secrets> root_secrets::take(const std::filesystem::path& run_dir,
                                        std::shared_ptr<root_home> home) {
  const auto file = run_dir / run_layout::secrets;
  auto kept = read_secrets(file);
  if (!kept) return tl::unexpected(kept.error());
  const bool are_found = kept->has_value();
  if (!are_found) {
    auto made = new_secrets();
    if (!made) return tl::unexpected(made.error());
    *kept = std::move(*made);
  }
  const auto next = (*kept)->roots() + 1;
  (*kept)->set_roots(home ? std::max(next, static_cast<std::uint32_t>(home->number())) : next);
  return root_secrets{file, std::move(**kept), are_found, std::move(home)};
}

result<void> root_secrets::restore(const std::filesystem::path& run_dir, const std::string& bytes) {
  return write_file(run_dir / run_layout::secrets, bytes);
}

void root_secrets::forget(const std::filesystem::path& run_dir) {
  std::error_code ignored;
  std::filesystem::remove(run_dir / run_layout::secrets, ignored);
}

bool root_secrets::are_left(const std::filesystem::path& run_dir) {
  std::error_code why;
  return std::filesystem::exists(run_dir / run_layout::secrets, why) || why;
}

result<void> root_secrets::job_changes(const std::filesystem::path& run_dir) {
  const auto file = run_dir / run_layout::secrets;
  auto kept = read_secrets(file);
  if (!kept) return tl::unexpected(kept.error());
  if (!*kept) return {};
  (*kept)->clear_ran_same_job();
  return root_secrets{file, std::move(**kept), true, nullptr}.write();
}

void root_secrets::note_root(std::uint64_t process, bool is_same_job) {
  auto& all = *kept_.mutable_ran_same_job();
  if (!is_same_job) all.Clear();
  if (all.size() >= roots_max) all.erase(all.begin());
  all.Add(process);
}

result<void> root_secrets::change_job(std::uint64_t process, const std::function<result<void>()>& change) {
  kept_.clear_ran_same_job();
  if (auto written = write(); !written) return written;
  if (auto changed = change(); !changed) return changed;
  note_root(process, true);
  return write();
}

std::set<std::uint64_t> root_secrets::roots_of_same_job() const {
  return {kept_.ran_same_job().begin(), kept_.ran_same_job().end()};
}

transport::run_token root_secrets::token() const {
  return transport::run_token::from_bytes(kept_.run_token()).value();
}

result<std::shared_ptr<job_identity>> root_secrets::identity(std::chrono::seconds lifetime) const {
  return job_identity::make(
      kept_.job(), {kept_.authority_certificate(), security::secret_text{kept_.authority_key()}}, lifetime);
}

result<root_beats> root_secrets::start_beats(const std::string& own_number) const {
  base::hmac_key key{};
  std::ranges::copy(std::as_bytes(std::span{kept_.beat_key()}), key.begin());
  agent::beat_options options{.address = own_number,
                              .port = static_cast<std::uint16_t>(kept_.beats_port()),
                              .boot = kept_.beats_boot(),
                              .last_sequence = (kept_.roots() - 1) * beats_of_a_root};
  auto made = runtime::start_beats(options, key);
  if (made || options.port == 0) return made;
  options.port = 0; // somebody else has it now
  return runtime::start_beats(options, key);
}

result<void> root_secrets::keep(const std::string& control_address, const root_beats& beats) {
  kept_.set_control_port(port_in(control_address));
  kept_.set_beats_port(port_in(beats.exchange->address()));
  return write();
}

result<void> root_secrets::keep(const records::EnrolledHost& host) {
  auto& all = *kept_.mutable_enrolled();
  all.erase(
      std::remove_if(all.begin(), all.end(), [&](const auto& one) { return one.name() == host.name(); }),
      all.end());
  while (all.size() >= enrolled_max) all.erase(all.begin());
  *all.Add() = host;
  return write();
}

std::vector<records::EnrolledHost> root_secrets::enrolled() const {
  return {kept_.enrolled().begin(), kept_.enrolled().end()};
}

/// First here, so that the folder of the last root lacks nothing of what is kept elsewhere.
result<void> root_secrets::write() const {
  const auto bytes = digested(secrets_head, kept_);
  if (auto written = write_file(file_, bytes); !written || !home_) return written;
  return home_->keep_secrets(bytes);
}

} // namespace dlrun::runtime
