#include "kubernetes/api_place.hpp"

#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::kubernetes {
namespace {

using testing::HasSubstr;

class api_place_test : public testing::Test {
protected:
  result<api_place> find(const char* host, const char* port) {
    return find_api(host, port, folder.path().string());
  }
  void write(const std::string& name, const std::string& text) {
    folder.write(name, {text.begin(), text.end()});
  }
  test::temporary_folder folder;
};

TEST_F(api_place_test, is_where_the_variables_and_files_of_a_container_say) {
  write("namespace", "team-a");
  write("token", "abc\n");
  const auto place = find("10.96.0.1", "443").value();
  EXPECT_EQ(place.url, "https://10.96.0.1:443");
  EXPECT_EQ(place.name_space, "team-a");
  EXPECT_EQ(place.ca_file, (folder.path() / "ca.crt").string());
  EXPECT_EQ(read_token(place).value(), "abc");
  EXPECT_EQ(find("fd00::1", "6443")->url, "https://[fd00::1]:6443");
}

TEST_F(api_place_test, is_not_outside_of_a_pod) {
  write("namespace", "team-a");
  for (const auto& [host, port] :
       {std::pair<const char*, const char*>{nullptr, "443"}, {"", "443"}, {"10.0.0.1", nullptr}})
    EXPECT_THAT(find(host, port).error().message, HasSubstr("KUBERNETES_SERVICE_HOST"));
}

TEST_F(api_place_test, is_not_where_no_token_is_mounted) {
  EXPECT_THAT(find("10.0.0.1", "443").error().message, HasSubstr("automountServiceAccountToken"));
}

} // namespace
} // namespace dlrun::kubernetes
