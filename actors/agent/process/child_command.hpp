/// child_command: what is needed to start a child process.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dlrun::agent {

/// A descriptor the child gets. It is duplicated when spawn() is called, so the caller may close
/// his at once.
struct inherited_descriptor {
  int fd = -1;
  /// The option that tells the child its number there, e.g. "--lifeline-fd"; two arguments are
  /// appended: option, number.
  std::string option;
};

/// A change of one environment variable: a value, or nothing to unset it.
struct environment_edit {
  std::string name;
  std::optional<std::string> value;
};

/// A program to start.
struct executable {
  std::string file; ///< its path, or one that only the kernel can follow
  std::string name; ///< for `ps` and messages
};

/// A program and all that its process gets from us. What is not named here does not get through:
/// standard input is /dev/null where none is named, other descriptors are closed, signal handlers
/// and mask are the defaults.
struct child_command {
  /// What is executed, and argv[0]; usually own_executable().
  executable program;
  /// argv[1] and on. Visible to every user of the machine: secrets belong into `bootstrap`.
  std::vector<std::string> arguments;
  /// Applied to our own environment as it is when the child starts.
  std::vector<environment_edit> environment;
  /// What it reads as standard input; duplicated as `inherit` is. -1: /dev/null.
  int standard_input = -1;
  /// Where standard output and error go; duplicated as `inherit` is. -1: to our own.
  int standard_output = -1;
  int standard_error = -1;
  std::vector<inherited_descriptor> inherit;
  /// Reaches the child in a sealed memfd whose number follows the argument "--bootstrap-fd" (see
  /// read_bootstrap()). Nothing is passed when empty.
  std::string bootstrap;
  /// True: the child leads a process group of its own, so that Ctrl-C on the terminal reaches us
  /// alone and we stop the children in order. It also means that Ctrl-Z does not stop it. False: it
  /// stays in our group.
  bool own_process_group = true;
};

/// The start of a command. @param words path of the program and its arguments; at least one
inline child_command child_of(std::vector<std::string> words) {
  child_command child;
  child.program = {words.front(), words.front()};
  child.arguments.assign(words.begin() + 1, words.end());
  return child;
}

} // namespace dlrun::agent
