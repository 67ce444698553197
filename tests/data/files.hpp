/// Files for tests: a folder that goes away, IDX and gzip bytes.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>
#include <zlib.h>

namespace dlrun::test {

using bytes = std::vector<std::uint8_t>;

/// A fresh folder, removed with everything in it at the end of the test.
class temporary_folder {
public:
  temporary_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dlrun-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const bytes& content) const {
    const auto file = path_ / name;
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    return file;
  }

private:
  std::filesystem::path path_;
};

inline bytes idx_bytes(const std::vector<std::uint32_t>& dims, const bytes& values) {
  bytes out = {0, 0, 8, static_cast<std::uint8_t>(dims.size())};
  for (const auto size : dims)
    for (const int shift : {24, 16, 8, 0}) out.push_back(static_cast<std::uint8_t>(size >> shift));
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

/// A .npy file of format 1.0 as numpy.save writes it; `descr` as in "<f4", `shape` as in "(2, 3)".
inline bytes npy_bytes(const std::string& descr, const std::string& shape, const bytes& values,
                       const std::string& order = "False") {
  std::string head = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  while ((head.size() + 11) % 64 != 0) head += ' ';
  head += '\n';
  bytes out = {0x93,
               'N',
               'U',
               'M',
               'P',
               'Y',
               1,
               0,
               static_cast<std::uint8_t>(head.size()),
               static_cast<std::uint8_t>(head.size() >> 8)};
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), values.begin(), values.end());
  return out;
}

/// The bytes of numbers, as they lie in memory.
template <class Number>
bytes bytes_of(const std::vector<Number>& numbers) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(numbers.data());
  return {begin, begin + numbers.size() * sizeof(Number)};
}

inline bytes text_bytes(const std::string& text) { return {text.begin(), text.end()}; }

/// Values 0, 1, 2, ... modulo 256.
inline bytes counting(std::size_t count) {
  bytes out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(i);
  return out;
}

inline bytes gzip(const bytes& plain) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  bytes out(deflateBound(&stream, plain.size()) + 32);
  stream.next_in = const_cast<std::uint8_t*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

} // namespace dlrun::test
