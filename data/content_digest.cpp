#include "data/content_digest.hpp"

#include "base/sha256.hpp"
#include <dlrun/detail/parallel_for.hpp>

#include <algorithm>
#include <thread>

namespace dlrun::data {

record_run records_of_piece(std::uint64_t records, std::uint64_t piece) {
  const auto each = (records + digest_pieces - 1) / digest_pieces;
  return {std::min(piece * each, records), std::min((piece + 1) * each, records)};
}

std::vector<std::string> digest(const stored_array& array) {
  const auto records = array.records();
  const auto each = records_of_piece(records, 0).end;
  std::vector<std::string> pieces(static_cast<std::size_t>((records + each - 1) / each));
  const auto threads = std::max(1U, std::thread::hardware_concurrency());
  dlrun::detail::parallel_for(pieces.size(), threads, [&] {
    return [&](std::size_t piece) {
      const auto run = records_of_piece(records, piece);
      const auto bytes = array.memory->bytes().subspan(
          static_cast<std::size_t>(array.offset + run.first * array.bytes_per_record()),
          static_cast<std::size_t>((run.end - run.first) * array.bytes_per_record()));
      pieces[piece] = base::sha256_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
  });
  return pieces;
}

} // namespace dlrun::data
