/// Shell completion, made from what the command line knows of itself.
#pragma once

#include <CLI/CLI.hpp>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::cli {

/// The script that `shell` reads: verbs, their options, and files for what is not an option. Hidden
/// verbs are left out.
/// @returns bad_usage for a shell other than bash, zsh and fish.
result<std::string> completion_script(const CLI::App& app, const std::string& shell);

} // namespace dlrun::cli
