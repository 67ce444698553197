#include "job/hosts_file.hpp"

#include "base/ipv4_address.hpp"
#include "base/job_hosts.hpp"
#include "base/utf8.hpp"
#include "job/field_rules.hpp"
#include "job/source_text.hpp"
#include "job/spec_mapper.hpp"
#include "job/spec_path.hpp"
#include "job/validate.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <map>

namespace dlrun::job {
namespace {

constexpr std::size_t hosts_bytes_max = 256 * 1024;
constexpr int hosts_depth_max = 8;
constexpr std::int64_t hosts_max_default = base::job_hosts_max;
constexpr std::int64_t certificate_lifetime_default_s = 24 * 60 * 60;

std::size_t hosts_bytes_limit(std::string_view /*beginning*/) { return hosts_bytes_max; }

/// Each value of a key of the hosts is there once.
class one_of_each {
public:
  one_of_each(std::string key, const source_map& sources, problem_list& problems)
      : key_{std::move(key)}
      , sources_{sources}
      , problems_{problems} {}

  void check(std::size_t index, const std::string& value) {
    const auto path = item_path("hosts", index) + "." + key_;
    const auto where = sources_.find(path);
    const auto [first, is_new] = lines_.emplace(value, where.line);
    if (is_new || value.empty() || problems_.reported(path)) return;
    problems_.add(where, path,
                  fmt::format("\"{}\" is a host's already, on line {}; list each host once",
                              base::printable(value), first->second));
  }

private:
  std::string key_;
  const source_map& sources_;
  problem_list& problems_;
  std::map<std::string, int> lines_;
};

/// Also as URLs have it, and with an interface.
bool is_ipv6(std::string_view address) {
  if (address.starts_with('[') && address.ends_with(']')) address = address.substr(1, address.size() - 2);
  in6_addr parsed{};
  return ::inet_pton(AF_INET6, std::string{address.substr(0, address.find('%'))}.c_str(), &parsed) == 1;
}

/// @returns what is wrong with it; "" when nothing is.
std::string problem_of_address(const spec::HostSpec& host) {
  const auto& address = host.address();
  if (is_ipv6(address))
    return fmt::format("\"{}\" is an IPv6 address, and hosts of a job speak IPv4: write the IPv4 address of "
                       "{}, or a name that has one",
                       base::printable(address), host.name());
  if (!address.empty() && address.front() != '-' && address.find_first_of(" :/\t\n") == std::string::npos)
    return {};
  return fmt::format(
      "expected a number or name that the other hosts reach {} by, without a port; found \"{}\"", host.name(),
      base::printable(address));
}

void check_hosts(const spec::HostsFile& file, const source_map& sources, problem_list& problems) {
  one_of_each names{"name", sources, problems};
  one_of_each addresses{"address", sources, problems};
  for (int i = 0; i < file.hosts_size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto& host = file.hosts(i);
    names.check(at, host.name());
    addresses.check(at, host.address());
    const auto path = item_path("hosts", at) + ".address";
    if (!host.has_address()) continue;
    if (const auto problem = problem_of_address(host); !problem.empty())
      problems.add(sources.find(path), path, problem);
  }
}

/// Somewhere workers have to be.
void check_takes(const spec::HostsFile& file, const source_map& sources, problem_list& problems) {
  if (file.has_join() || file.hosts().empty()) return;
  const bool is_none_for_workers =
      std::ranges::all_of(file.hosts(), [](const auto& host) { return host.takes() == "ps_shards"; });
  if (!is_none_for_workers) return;
  const auto path = item_path("hosts", 0) + ".takes";
  problems.add(sources.find(path), path,
               "no host takes workers, and none may join: let one take \"workers\", or \"any\"");
}

bool listens_at_self(std::string_view listen) {
  return listen.starts_with(self_address) && listen.substr(self_address.size()).starts_with(':');
}

std::string with_number(const std::string& listen, const std::string& number) {
  return listens_at_self(listen) ? number + listen.substr(self_address.size()) : listen;
}

/// The words of the command that starts an agent.
void check_start(const spec::HostsFile& file, const source_map& sources, problem_list& problems) {
  if (!file.start().empty() || !sources.has("start")) return;
  problems.add(sources.find("start"), "start",
               "has no word: name a program and its arguments, or leave the key out for ssh");
}

/// How hosts may come by themselves, where the list lets them.
void check_join(const spec::HostsFile& file, const source_map& sources, problem_list& problems) {
  if (!file.has_join()) return;
  const auto& join = file.join();
  if (join.has_listen() && !base::parse_ipv4_address(with_number(join.listen(), "127.0.0.1")))
    problems.add(
        sources.find("join.listen"), "join.listen",
        fmt::format("expected a number of this host's address and a port, as in 10.0.0.1:7700, or self:7700; "
                    "found \"{}\"",
                    base::printable(join.listen())));
  const auto most = join.has_hosts_max() ? join.hosts_max() : hosts_max_default;
  if (join.has_hosts_min() && join.hosts_min() > most)
    problems.add(sources.find("join.hosts_min"), "join.hosts_min",
                 fmt::format("{} hosts are waited for, and join.hosts_max lets {} be there: make one of them "
                             "fit",
                             join.hosts_min(), most));
  const auto least = std::max<std::int64_t>(join.hosts_min(), file.hosts_size());
  if (join.hosts_min_staying() > least)
    problems.add(sources.find("join.hosts_min_staying"), "join.hosts_min_staying",
                 fmt::format("{} hosts that stay are waited for, and the job begins with {}: let "
                             "join.hosts_min be as many",
                             join.hosts_min_staying(), least));
  if (file.hosts_size() > most)
    problems.add(
        sources.find("join.hosts_max"), "join.hosts_max",
        fmt::format("{} hosts are in the list already: let more be there, or list fewer", file.hosts_size()));
}

void fill_join(spec::HostsFile& file) {
  if (!file.has_join()) return;
  auto& join = *file.mutable_join();
  if (!join.has_hosts_max()) join.set_hosts_max(hosts_max_default);
  join.set_hosts_min(std::max<std::int64_t>(join.hosts_min(), file.hosts_size()));
}

std::string replaced(std::string word, const std::string& what, const std::string& by) {
  for (auto at = word.find(what); at != std::string::npos; at = word.find(what, at + by.size()))
    word.replace(at, what.size(), by);
  return word;
}

} // namespace

result<spec::HostsFile> parse_hosts(std::string_view text, const std::string& file_name) {
  if (auto fine = check_source_text(text, file_name, "a list of hosts", hosts_bytes_limit); !fine)
    return tl::unexpected(fine.error());
  const auto tree = parse_yaml(text, hosts_depth_max);
  if (!tree)
    return fail(error_code::bad_spec,
                fmt::format("{}:{}: {}", file_name, tree.error().line, tree.error().text));
  problem_list problems;
  source_map sources;
  sources.set_root({file_name, 1});
  spec::HostsFile file;
  mapping into{problems, sources, file_name, true, file.GetDescriptor()};
  map_message(*tree, file, "", into);
  check_rules(file, sources, problems);
  check_hosts(file, sources, problems);
  check_takes(file, sources, problems);
  check_start(file, sources, problems);
  check_join(file, sources, problems);
  if (!problems.empty()) return tl::unexpected(problems.to_error());
  if (file.start().empty())
    for (const auto* word : {"ssh", "-o", "BatchMode=yes", "--", "{address}"}) file.add_start(word);
  if (!file.has_certificate_lifetime_s()) file.set_certificate_lifetime_s(certificate_lifetime_default_s);
  if (!file.has_coordinator()) file.set_coordinator("any");
  fill_join(file);
  return file;
}

result<spec::HostsFile> read_hosts(const std::filesystem::path& file) {
  const auto text = read_source_text(file, hosts_bytes_limit);
  if (!text) return tl::unexpected(text.error());
  auto read = parse_hosts(*text, file.string());
  if (read && read->join().has_key_file())
    read->mutable_join()->set_key_file(
        (std::filesystem::absolute(file).parent_path() / read->join().key_file())
            .lexically_normal()
            .string());
  return read;
}

bool is_host_name(const std::string& name) {
  static const auto* const field = spec::HostSpec::descriptor()->FindFieldByName("name");
  return text_allowed(rule_of(*field), name);
}

bool names_self(const spec::HostsFile& file) {
  return listens_at_self(file.join().listen()) ||
         std::ranges::any_of(file.hosts(), [](const auto& host) { return host.address() == self_address; });
}

void name_self(spec::HostsFile& file, const std::string& number) {
  for (auto& host : *file.mutable_hosts())
    if (host.address() == self_address) host.set_address(number);
  if (file.has_join()) file.mutable_join()->set_listen(with_number(file.join().listen(), number));
}

std::vector<std::string> start_command(const spec::HostsFile& file, const spec::HostSpec& host,
                                       const std::vector<std::string>& program) {
  std::vector<std::string> words;
  for (const auto& word : file.start())
    words.push_back(replaced(replaced(word, "{host}", host.name()), "{address}", host.address()));
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

} // namespace dlrun::job
