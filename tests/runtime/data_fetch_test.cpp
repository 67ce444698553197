#include "runtime/data_fetch.hpp"

#include "security/certificate_authority.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace dlrun::runtime {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr std::uint64_t fetched_records = 12'345; // of 1 KiB: 12 MiB, several runs of blocks

data::stored_array stored(std::span<const std::uint8_t> bytes, std::vector<std::uint64_t> dims) {
  auto file = data::memory_file::create(bytes.size(), "images").value();
  std::ranges::copy(bytes, file.bytes().begin());
  data::stored_array array;
  array.memory = std::make_shared<data::blob>(std::move(file).seal().value());
  array.dims = std::move(dims);
  array.name = "images";
  return array;
}

/// Records and targets of a job; the root's, or others when `flipped` is a byte of the records.
std::shared_ptr<data::job_data> some_data(std::optional<std::size_t> flipped = std::nullopt) {
  std::minstd_rand random(3);
  std::vector<std::uint8_t> records(fetched_records * 1024);
  for (auto& value : records) value = static_cast<std::uint8_t>(random() >> 8);
  if (flipped) records[*flipped] ^= 4U;
  std::vector<std::uint8_t> targets(fetched_records);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = static_cast<std::uint8_t>(i % 10);
  auto made = std::make_shared<data::job_data>();
  made->training.records = stored(records, {fetched_records, 1024});
  made->training.targets = stored(targets, {fetched_records});
  return made;
}

class data_fetch_test : public testing::Test {
protected:
  std::shared_ptr<security::tls_context> context(const std::string& host) const {
    return security::tls_context::make(authority.issue({"j1", "host_agent", 0, host}).value()).value();
  }
  std::unique_ptr<data_giver> give(const std::string& host,
                                   std::shared_ptr<const data::job_data> data) const {
    return data_giver::start({.token = token, .tls = context(host)}, std::move(data)).value();
  }
  /// The array as a host has it that lacks these blocks; all when it has nothing.
  array_here here(data::array_place place, std::optional<std::vector<std::uint64_t>> missing = {}) const {
    const auto& recorded = digests[static_cast<std::size_t>(place)];
    array_here made{.place = place, .recorded = &recorded, .name = "images"};
    if (missing) {
      made.own = *data::array_at(*data, place);
      made.missing = *missing;
    } else {
      for (std::uint64_t block = 0; block < recorded.blocks().size() / 32; ++block)
        made.missing.push_back(block);
    }
    return made;
  }
  data_fetch_options from(const std::unique_ptr<data_giver>& root) const {
    return {.token = token, .tls = context("gamma"), .root = {"alpha", root->address()}, .patience = 100ms};
  }
  std::vector<array_intake> begin_all() {
    std::vector<array_intake> all;
    for (const auto place : {data::array_place::training_records, data::array_place::training_targets})
      all.push_back(array_intake::begin(here(place), memory).value());
    return all;
  }
  void expect_whole(std::vector<array_intake>& arrays) const {
    for (auto& one : arrays) {
      const auto place = one.place();
      ASSERT_TRUE(one.is_whole());
      const auto whole = std::move(one).finish().value();
      EXPECT_TRUE(std::ranges::equal(whole.bytes(), data::array_at(*data, place)->bytes()));
      EXPECT_EQ(whole.dims, data::array_at(*data, place)->dims);
    }
  }

  transport::run_token token = transport::run_token::random().value();
  security::certificate_authority authority = security::certificate_authority::make("j1").value();
  std::shared_ptr<data::job_data> data = some_data();
  std::vector<records::ArrayDigest> digests = data::digests_of(*data);
  data::memory_budget memory;
};

TEST_F(data_fetch_test, all_arrays_come_from_the_root_where_nobody_else_has_them) {
  const auto root = give("alpha", data);
  auto arrays = begin_all();
  const auto given = fetch_data(arrays, from(root));
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_THAT(*given, UnorderedElementsAre(std::pair{"alpha", fetched_records * 1025}));
  expect_whole(arrays);
}

TEST_F(data_fetch_test, only_blocks_that_are_not_here_come) {
  const auto root = give("alpha", data);
  std::vector<array_intake> arrays;
  arrays.push_back(
      array_intake::begin(here(data::array_place::training_records, {{3, 4, 50}}), memory).value());
  const auto given = fetch_data(arrays, from(root));
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_THAT(*given, UnorderedElementsAre(std::pair{"alpha", 3 * digests[0].block_bytes()}));
  expect_whole(arrays);
}

TEST_F(data_fetch_test, another_host_is_asked_before_the_root_and_the_root_gives_what_it_cannot) {
  const auto root = give("alpha", data);
  auto records_only = std::make_shared<data::job_data>(*data);
  records_only->training.targets.reset();
  const auto beta = give("beta", records_only);
  root->others_are({{"beta", beta->address()}});
  auto arrays = begin_all();
  const auto given = fetch_data(arrays, from(root));
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_THAT(*given, UnorderedElementsAre(std::pair{"beta", fetched_records * 1024},
                                           std::pair{"alpha", fetched_records}));
  expect_whole(arrays);
}

TEST_F(data_fetch_test, bytes_that_are_not_the_recorded_ones_are_never_taken_and_another_host_gives_them) {
  const auto root = give("alpha", data);
  const auto hostile = give("beta", some_data(std::size_t{5} << 20));
  root->others_are({{"beta", hostile->address()}});
  auto arrays = begin_all();
  std::string notes;
  auto options = from(root);
  options.note = [&](const std::string& text) { notes += text + "\n"; };
  const auto given = fetch_data(arrays, options);
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_GT(given->at("beta"), 0U) << "what was right of it stays";
  EXPECT_GE(given->at("alpha"), digests[0].block_bytes());
  EXPECT_THAT(notes, HasSubstr("host beta gives no more: it gave other bytes for the records of data.train "
                               "('images'), records 5120 to 5247 (block 40 of 97)"));
  expect_whole(arrays);
}

TEST_F(data_fetch_test, where_nobody_gives_the_recorded_bytes_each_giver_and_block_is_named) {
  const auto root = give("alpha", some_data(0));
  auto arrays = begin_all();
  const auto given = fetch_data(arrays, from(root));
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().code, error_code::bad_data);
  EXPECT_THAT(given.error().message,
              AllOf(HasSubstr("host alpha: it gave other bytes"), HasSubstr("block 0 of 97")));
  EXPECT_FALSE(arrays[0].is_whole());
}

TEST_F(data_fetch_test, a_giver_that_is_gone_is_left_for_the_next) {
  const auto root = give("alpha", data);
  auto beta = give("beta", data);
  root->others_are({{"beta", beta->address()}});
  beta.reset();
  auto arrays = begin_all();
  const auto given = fetch_data(arrays, from(root));
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_THAT(*given, UnorderedElementsAre(std::pair{"alpha", fetched_records * 1025}));
}

TEST_F(data_fetch_test, without_any_giver_it_ends_and_says_why) {
  auto root = give("alpha", data);
  const auto options = from(root);
  root.reset();
  auto arrays = begin_all();
  const auto given = fetch_data(arrays, options);
  ASSERT_FALSE(given);
  EXPECT_THAT(given.error().message, AllOf(HasSubstr("came from no host"), HasSubstr("host alpha: ")));
}

TEST_F(data_fetch_test, it_ends_when_it_is_asked_to) {
  const auto root = give("alpha", data);
  auto arrays = begin_all();
  auto options = from(root);
  options.is_stopped = [] { return true; };
  EXPECT_EQ(fetch_data(arrays, options).error().code, error_code::interrupted);
}

TEST_F(data_fetch_test, who_has_no_certificate_of_the_job_gets_nothing) {
  const auto root = give("alpha", data);
  const auto other = security::certificate_authority::make("j1").value();
  auto options = from(root);
  options.tls = security::tls_context::make(other.issue({"j1", "host_agent", 0, "gamma"}).value()).value();
  auto arrays = begin_all();
  EXPECT_THAT(fetch_data(arrays, options).error().message, HasSubstr("certificate"));
}

TEST_F(data_fetch_test, memory_that_the_job_may_not_take_is_not_taken) {
  data::memory_budget small{std::uint64_t{1} << 20};
  const auto begun = array_intake::begin(here(data::array_place::training_records), small);
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message, AllOf(HasSubstr("images"), HasSubstr("data.memory_limit")));
}

TEST_F(data_fetch_test, a_record_that_cannot_be_is_refused_before_memory_is_taken) {
  auto recorded = digests[0];
  for (const auto& change : std::vector<std::function<void(records::ArrayDigest&)>>{
           [](auto& one) { one.clear_dims(); }, [](auto& one) { one.set_dims(0, std::uint64_t{1} << 60); },
           [](auto& one) { one.set_type(99); }, [](auto& one) { one.set_block_bytes(1); },
           [](auto& one) { one.mutable_blocks()->pop_back(); },
           [](auto& one) { one.mutable_blocks()->resize(64); }}) {
    auto changed = recorded;
    change(changed);
    array_here one{.place = data::array_place::training_records, .recorded = &changed, .name = "images"};
    EXPECT_EQ(array_intake::begin(one, memory).error().code, error_code::protocol);
  }
}

TEST(giver_list, is_read_as_it_was_written_and_what_is_too_much_is_left_out) {
  std::map<std::string, std::string> givers{{"beta", "tls://10.0.0.2:1/x"}, {"gamma", "tls://10.0.0.3:2/y"}};
  auto text = written_givers(givers);
  text.resize(giver_list_bytes); // as it is sent
  const auto read = read_givers(text);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1].host, "gamma");
  EXPECT_EQ(read[1].address, "tls://10.0.0.3:2/y");
  EXPECT_TRUE(read_givers("nonsense\n\n").empty());
  for (int i = 0; i < 1000; ++i) givers["host" + std::to_string(i)] = std::string(60, 'a');
  EXPECT_LE(written_givers(givers).size(), giver_list_bytes);
}

} // namespace
} // namespace dlrun::runtime
