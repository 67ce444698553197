/// kubectl, the program of Kubernetes, as this machine has it.
#pragma once

#include <dlrun/error.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::cli {

/// What a call came to.
struct kubectl_answer {
  int code = 0;
  std::string output;
  std::string complaint;
};

/// Calls it; no shell takes part. Words are visible to every user of the machine, so secrets go
/// through its standard input.
class kubectl {
public:
  /// The first of that name on PATH. @returns bad_usage when there is none.
  static result<kubectl> find();

  /// Runs it to its end. `input` is all that it reads. @returns system when it cannot be run.
  result<kubectl_answer> run(const std::vector<std::string>& words, std::string_view input = {}) const;
  /// The same with our own standard output and error, for a command in a pod: what kubectl itself
  /// says of its exit code is left out. @returns the exit code.
  result<int> pass_through(const std::vector<std::string>& words) const;
  /// As run(), whose output is wanted. @returns also system when it fails, with what it complained
  /// of behind `what`.
  result<std::string> ask(const std::vector<std::string>& words, std::string_view what) const;

  const std::string& path() const { return path_; }

private:
  explicit kubectl(std::string path)
      : path_{std::move(path)} {}

  std::string path_;
};

/// kubectl, with a server of version 1.N or newer, for `minor_min`: that of its context, or in a
/// pod without one that of the pod's cluster. @returns bad_usage with the way out, system where the
/// server cannot be asked.
result<kubectl> find_cluster(int minor_min);

/// Several lines as one, that can be shown.
std::string in_one_line(std::string_view complaint);

} // namespace dlrun::cli
