/// What every journal promises, of each that there is.
#include "persistence/etcd_journal.hpp"
#include "persistence/folder_journal.hpp"
#include "tests/persistence/etcd_servers.hpp"

#include <gtest/gtest.h>

namespace dlrun::persistence {
namespace {

using entries = std::map<std::string, std::string>;

/// A place for journals, and how one is taken there.
class journal_ground {
public:
  virtual ~journal_ground() = default;
  virtual result<std::unique_ptr<journal>> take(std::uint64_t term) = 0;
};

class folder_ground : public journal_ground {
public:
  result<std::unique_ptr<journal>> take(std::uint64_t term) override {
    return folder_journal::open({(folder_.path() / "journal").string(), {term}, nullptr});
  }

private:
  test::temporary_folder folder_;
};

class etcd_ground : public journal_ground {
public:
  result<std::unique_ptr<journal>> take(std::uint64_t term) override {
    return etcd_journal::take({etcd_.place(), "dlrun/contract", {term}});
  }

private:
  test::etcd_servers etcd_{1};
};

class journal_contract : public ::testing::TestWithParam<const char*> {
protected:
  static std::unique_ptr<journal_ground> make_ground() {
    if (std::string(GetParam()) == "etcd") return std::make_unique<etcd_ground>();
    return std::make_unique<folder_ground>();
  }
  static result<void> put(journal& into, const std::string& key, const std::string& value) {
    const journal_write change{key, value};
    return into.write(std::span(&change, 1));
  }

  std::unique_ptr<journal_ground> ground = make_ground();
};

TEST_P(journal_contract, the_next_term_reads_what_the_one_before_wrote) {
  const std::string bytes("\0\xff\n\"/\\", 6);
  {
    const auto first = ground->take(1).value();
    EXPECT_TRUE(first->contents().empty());
    ASSERT_TRUE(put(*first, "a", "1"));
    const std::vector<journal_write> all{
        {"b", bytes}, {"a", std::nullopt}, {"owner", ""}, {"role/x y/0", "2"}};
    ASSERT_TRUE(first->write(all));
    EXPECT_EQ(first->contents(), (entries{{"b", bytes}, {"owner", ""}, {"role/x y/0", "2"}}));
  }
  const auto second = ground->take(2).value();
  EXPECT_EQ(second->contents(), (entries{{"b", bytes}, {"owner", ""}, {"role/x y/0", "2"}}));
  ASSERT_TRUE(put(*second, "b", "3"));
  EXPECT_EQ(second->contents().at("b"), "3");
}

TEST_P(journal_contract, a_term_that_is_not_above_the_last_one_is_refused_and_told_which_that_was) {
  ground->take(3).value().reset();
  for (const std::uint64_t late : {1, 2, 3}) {
    const auto taken = ground->take(late);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, error_code::fenced);
    EXPECT_NE(taken.error().message.find("by incarnation 3"), std::string::npos) << taken.error().message;
  }
  EXPECT_TRUE(ground->take(4));
  EXPECT_TRUE(ground->take(1'000'000)) << "terms may be left out";
}

TEST_P(journal_contract, a_taker_that_wrote_nothing_leaves_everything_as_it_was) {
  {
    const auto first = ground->take(1).value();
    ASSERT_TRUE(put(*first, "a", "1"));
  }
  ground->take(2).value().reset();
  EXPECT_EQ(ground->take(3).value()->contents(), (entries{{"a", "1"}}));
}

TEST_P(journal_contract, keeps_large_values_and_many_changes_at_once) {
  entries expected{{"course", std::string(1'000'000, 'x')}};
  std::vector<journal_write> changes{{"course", expected["course"]}};
  for (int i = 0; i < 100; ++i) {
    const auto key = "role/" + std::to_string(i);
    changes.push_back({key, expected[key] = std::string(1000, 'r')});
  }
  ASSERT_TRUE(ground->take(1).value()->write(changes));
  EXPECT_EQ(ground->take(2).value()->contents(), expected);
}

INSTANTIATE_TEST_SUITE_P(kinds, journal_contract, ::testing::Values("folder", "etcd"),
                         [](const auto& tested) { return std::string(tested.param); });

} // namespace
} // namespace dlrun::persistence
