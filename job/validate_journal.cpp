#include "job/validate_journal.hpp"

#include "base/decimal.hpp"
#include "base/utf8.hpp"
#include "job/choices.hpp"
#include "job/spec_path.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

namespace dlrun::job {
namespace {

constexpr std::size_t prefix_length_max = 200;
constexpr std::string_view plain = "http://";
constexpr std::string_view secured = "https://";

/// HOST:PORT, with an IPv6 address in brackets.
bool is_host_and_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto host = text.substr(0, colon);
  const auto port = text.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  const auto allowed = [&](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '.' || c == '-' || c == '_' ||
           (bracketed && (c == ':' || c == '[' || c == ']'));
  };
  const auto number = base::parse_decimal<std::uint16_t>(port);
  return std::ranges::all_of(host, allowed) && number && *number > 0;
}

bool is_endpoint(std::string_view text) {
  for (const auto scheme : {plain, secured})
    if (text.starts_with(scheme)) return is_host_and_port(text.substr(scheme.size()));
  return false;
}

/// Who listens on this address hears what goes to "http://HOST:PORT".
bool leaves_this_host(std::string_view endpoint) {
  if (!endpoint.starts_with(plain)) return false;
  const auto host = endpoint.substr(plain.size(), endpoint.rfind(':') - plain.size());
  return host != "localhost" && host != "[::1]" && !host.starts_with("127.");
}

bool is_prefix(std::string_view text) {
  const auto printable = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  return !text.empty() && text.size() <= prefix_length_max && text.front() != '/' && text.back() != '/' &&
         std::ranges::all_of(text, printable);
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

class etcd_check {
public:
  etcd_check(const spec::EtcdJournal& etcd, const source_map& sources, problem_list& problems)
      : etcd_(etcd)
      , sources_(sources)
      , problems_(problems) {}

  void check() {
    for (int i = 0; i < etcd_.endpoints_size(); ++i)
      if (!is_endpoint(etcd_.endpoints(i)))
        add(item_path("endpoints", static_cast<std::size_t>(i)),
            fmt::format(
                "expected http://HOST:PORT or https://HOST:PORT, as etcd's --advertise-client-urls, found "
                "\"{}\"",
                base::printable(etcd_.endpoints(i))));
    if (!is_prefix(etcd_.prefix()))
      add("prefix",
          fmt::format("expected auto, or up to {} printable characters without a space, with no / at "
                      "either end, found \"{}\"",
                      prefix_length_max, base::printable(etcd_.prefix())));
    if (etcd_.cluster_id() != "auto" && !is_number(etcd_.cluster_id()))
      add("cluster_id",
          fmt::format("expected auto, or the decimal number that etcd calls cluster_id, found \"{}\"",
                      base::printable(etcd_.cluster_id())));
    check_files();
    check_user();
  }

private:
  void check_files() {
    if (etcd_.has_certificate_file() != etcd_.has_key_file())
      add(etcd_.has_key_file() ? "key_file" : "certificate_file",
          "a certificate and its key go together: write both certificate_file and key_file, or neither");
    const bool uses_tls = std::ranges::all_of(
        etcd_.endpoints(), [](const std::string& one) { return one.starts_with(secured); });
    if (uses_tls) return;
    for (const auto& [is_there, key] : {std::pair(etcd_.has_ca_file(), "ca_file"),
                                        std::pair(etcd_.has_certificate_file(), "certificate_file"),
                                        std::pair(etcd_.has_key_file(), "key_file")})
      if (is_there) add(key, "is for TLS: write all endpoints with https://");
  }

  /// Its password is asked for by whichever endpoint answers.
  void check_user() {
    if (etcd_.has_user_file() && std::ranges::any_of(etcd_.endpoints(), leaves_this_host))
      add("user_file", "its password would cross the network in clear: start etcd with TLS and write all "
                       "endpoints with https://");
  }

  void add(const std::string& key, std::string text) {
    const auto path = "cluster.journal.etcd." + key;
    if (!problems_.reported(path)) problems_.add(sources_.find(path), path, std::move(text));
  }

  const spec::EtcdJournal& etcd_;
  const source_map& sources_;
  problem_list& problems_;
};

} // namespace

void check_journal(const spec::JobSpec& spec, const source_map& sources, problem_list& problems) {
  const std::string path = "cluster.journal";
  if (!spec.cluster().journal().has_etcd() || problems.reported(path)) return;
  etcd_check(spec.cluster().journal().etcd(), sources, problems).check();
  if (durability_log_of(spec) == durability_log::off)
    problems.add(
        sources.find(path), path,
        "with durability.log: off nothing is kept, so there is no journal: leave it out, or write another "
        "durability.log");
}

} // namespace dlrun::job
