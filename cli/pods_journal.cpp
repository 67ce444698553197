#include "cli/pods_journal.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace dlrun::cli {
namespace {

constexpr auto key_path = "cluster.journal.etcd";

/// "http://HOST:PORT" or "https://HOST:PORT", as a job file is checked for.
std::string_view host_of(std::string_view endpoint) {
  const auto begin = endpoint.find("//") + 2;
  return endpoint.substr(begin, endpoint.rfind(':') - begin);
}

std::uint16_t port_of(std::string_view endpoint) {
  const auto digits = endpoint.substr(endpoint.rfind(':') + 1);
  std::uint16_t port = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return port;
}

bool is_own(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

/// A name in a Secret, which has no folders.
bool is_secret_key(std::string_view text) {
  const auto is_allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && text != "." && text != ".." && std::ranges::all_of(text, is_allowed);
}

result<void> check_endpoints(const spec::EtcdJournal& etcd) {
  const auto own =
      std::ranges::find_if(etcd.endpoints(), [](const auto& one) { return is_own(host_of(one)); });
  if (own == etcd.endpoints().end()) return {};
  return fail(error_code::bad_spec,
              fmt::format("{}.endpoints: \"{}\" is the control pod itself, in which no etcd is: name the "
                          "Service of the etcd, as in https://etcd.team-b.svc:2379",
                          key_path, base::printable(*own)));
}

/// @returns how many of its files the Secret has to have
result<std::size_t> check_files(const spec::EtcdJournal& etcd, const pods_wish& wanted) {
  const std::array files{std::pair{"ca_file", &etcd.ca_file()},
                         std::pair{"certificate_file", &etcd.certificate_file()},
                         std::pair{"key_file", &etcd.key_file()}, std::pair{"user_file", &etcd.user_file()}};
  const auto folder = fmt::format("{}/", journal_folder);
  std::size_t mounted = 0;
  for (const auto& [key, path] : files) {
    const bool is_public = std::string_view{key} == "ca_file"; // the image may have it
    if (path->empty() || (is_public && !path->starts_with(folder))) continue;
    if (!path->starts_with(folder) || !is_secret_key(std::string_view{*path}.substr(folder.size())))
      return fail(error_code::bad_spec,
                  fmt::format("{}.{}: \"{}\" is to be in the Secret that --journal-secret names, whose keys "
                              "are files in {}: write {}NAME-OF-A-KEY",
                              key_path, key, base::printable(*path), journal_folder, folder));
    if (wanted.journal_secret.empty())
      return fail(error_code::bad_usage,
                  fmt::format("{}.{}: \"{}\" is a file of no Secret: name the Secret that has it with "
                              "--journal-secret",
                              key_path, key, base::printable(*path)));
    ++mounted;
  }
  return mounted;
}

} // namespace

result<void> settle_journal(const spec::JobSpec& job, pods_wish& wanted) {
  const auto refuse_secret = [&](std::string_view why) {
    return fail(error_code::bad_usage,
                fmt::format("--journal-secret '{}': {}", base::printable(wanted.journal_secret), why));
  };
  wanted.journal.reset();
  if (!job.cluster().journal().has_etcd())
    return wanted.journal_secret.empty()
               ? result<void>{}
               : refuse_secret("the journal of the job is in no etcd: name one as cluster.journal, or leave "
                               "the option out");
  const auto& etcd = job.cluster().journal().etcd();
  if (auto fine = check_endpoints(etcd); !fine) return fine;
  const auto mounted = check_files(etcd, wanted);
  if (!mounted) return tl::unexpected(mounted.error());
  if (*mounted == 0 && !wanted.journal_secret.empty())
    return refuse_secret(
        fmt::format("the job names no file of it: let {}.ca_file, certificate_file and key_file, "
                    "or user_file be in {}, or leave the option out",
                    key_path, journal_folder));
  pods_journal made{.has_own_prefix = etcd.prefix() == "auto"};
  for (const auto& one : etcd.endpoints()) made.ports.insert(port_of(one));
  wanted.journal = std::move(made);
  return {};
}

} // namespace dlrun::cli
