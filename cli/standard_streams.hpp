/// Standard input, output and error of a verb.
#pragma once

#include <cstdio>
#include <dlrun/error.hpp>
#include <string>

namespace dlrun::cli {

/// To be called before anything is opened: a standard stream that the caller closed must not be the
/// number of a file or socket, into which messages would go. What is written to one fails, as if it
/// was closed still.
void occupy_closed_streams();

/// Prints. What cannot be written is lost; flush_output() tells that it was.
void put(std::FILE* to, const std::string& text);
/// Writes what waits in `to`, as put() does.
void flush(std::FILE* to);

/// Writes what waits in stdout. @returns errno of why that, or something before, could not be
/// written; 0 when all was.
int unwritten_output();
/// As an error: system.
result<void> flush_output();
/// What could not be written so far does not matter.
void forget_output();

} // namespace dlrun::cli
