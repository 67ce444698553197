#include "actors/agent/beats/beat_wire.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace dlrun::agent {
namespace {

constexpr beat said{.boot = 0x1122334455667788,
                    .sequence = 9,
                    .heard_boot = 0xffeeddccbbaa9988,
                    .heard_sequence = 8,
                    .turn_age_ms = 77};

class beat_wire_test : public testing::Test {
protected:
  base::hmac_key run = base::random_key().value();
  base::hmac_key pair = pair_key(run, "beta");
  beat_keys root = keys_of_root(pair);
  beat_keys beta = keys_of_host(pair);
};

TEST_F(beat_wire_test, a_beat_is_read_as_it_was_sent_in_both_directions) {
  EXPECT_EQ(opened(sealed(said, root.send), beta.receive), said);
  EXPECT_EQ(opened(sealed(said, beta.send), root.receive), said);
}

TEST_F(beat_wire_test, a_beat_sent_back_to_who_made_it_is_none) {
  EXPECT_FALSE(opened(sealed(said, root.send), root.receive).has_value());
}

TEST_F(beat_wire_test, a_host_can_make_no_beat_of_another_host_nor_of_another_run) {
  const auto of_gamma = keys_of_host(pair_key(run, "gamma"));
  EXPECT_FALSE(opened(sealed(said, of_gamma.send), root.receive).has_value());
  const auto of_other_run = keys_of_host(pair_key(base::random_key().value(), "beta"));
  EXPECT_FALSE(opened(sealed(said, of_other_run.send), root.receive).has_value());
}

TEST_F(beat_wire_test, a_beat_with_any_bit_changed_is_none) {
  const auto good = sealed(said, root.send);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    auto changed = good;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(opened(changed, beta.receive).has_value()) << bit;
  }
}

TEST_F(beat_wire_test, a_datagram_of_another_length_is_none) {
  const auto good = sealed(said, root.send);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(opened(std::span{good}.first(size), beta.receive).has_value()) << size;
  std::vector<std::byte> longer(good.begin(), good.end());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(opened(longer, beta.receive).has_value());
}

} // namespace
} // namespace dlrun::agent
