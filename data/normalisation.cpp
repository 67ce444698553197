#include "data/normalisation.hpp"

namespace dlrun::data {

std::array<float, 256> normalisation_table(double mean, double std) {
  const auto mean32 = static_cast<float>(mean);
  const auto std32 = static_cast<float>(std);
  std::array<float, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte)
    table[byte] = (static_cast<float>(byte) / 255.0F - mean32) / std32;
  return table;
}

} // namespace dlrun::data
