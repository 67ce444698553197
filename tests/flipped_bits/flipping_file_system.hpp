/// A file system that flips a bit of what is written, and does not wait for the disk.
#pragma once

#include "tests/flipped_bits/bit_flip.hpp"

#include <memory>
#include <rocksdb/file_system.h>

namespace dlrun::flipped_bits {

/// `flip` is shown what is written to each file. Syncs do nothing: nobody cuts the power here.
std::shared_ptr<rocksdb::FileSystem> flipping_file_system(std::shared_ptr<bit_flip> flip);

} // namespace dlrun::flipped_bits
