// What a job and its pods may be; what is made of them is read by
// tests/integration/manifests_test.py.
#include "cli/pods_job.hpp"

#include "tests/data/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dlrun::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(pods_names, are_labels_that_begin_with_a_letter) {
  for (const auto* good : {"a", "a1", "job-7", "abc-def-ghi"})
    EXPECT_TRUE(is_service_name(good, pods_name_max)) << good;
  for (const auto* wrong : {"", "1a", "-a", "a-", "A", "a_b", "a.b", "a b", "\xc3\xa4"})
    EXPECT_FALSE(is_service_name(wrong, pods_name_max)) << wrong;
  EXPECT_TRUE(is_service_name(std::string(pods_name_max, 'a'), pods_name_max));
  EXPECT_FALSE(is_service_name(std::string(pods_name_max + 1, 'a'), pods_name_max));
  // "-hosts-" and the number of the last pod come behind it, in a label of 63.
  EXPECT_EQ(pods_name_max + std::string_view{"-hosts-"}.size() +
                std::to_string(kubernetes::slots_max - 1).size(),
            63U);
}

TEST(pods_names, of_namespaces_may_begin_with_a_digit) {
  for (const auto* good : {"a", "1a", "123", "team-7"}) EXPECT_TRUE(is_dns_label(good)) << good;
  for (const auto* wrong : {"", "-a", "a-", "A", "a_b", "a.b"}) EXPECT_FALSE(is_dns_label(wrong)) << wrong;
  EXPECT_TRUE(is_dns_label(std::string(63, 'a')));
  EXPECT_FALSE(is_dns_label(std::string(64, 'a')));
}

TEST(pods_names, of_other_objects_may_have_dots) {
  for (const auto* good : {"a", "1", "data.team-7", "a.b.c"}) EXPECT_TRUE(is_dns_name(good)) << good;
  for (const auto* wrong : {"", ".", "a.", ".a", "a..b", "a.-b", "A", "a/b"})
    EXPECT_FALSE(is_dns_name(wrong)) << wrong;
  EXPECT_FALSE(is_dns_name(std::string(64, 'a')));
  EXPECT_FALSE(is_dns_name(std::string(250, '1') + ".aaa"));
}

TEST(pods_sizes, are_whole_numbers_of_powers_of_1024) {
  for (const auto* good : {"1Ki", "512Mi", "4Gi", "20Ti"}) EXPECT_TRUE(is_size(good)) << good;
  for (const auto* wrong : {"", "4", "Gi", "4G", "4GB", "4gi", "4.5Gi", "-4Gi", "04Gi", "0Gi", "4 Gi", "4GiB",
                            "1000000000000000Gi"})
    EXPECT_FALSE(is_size(wrong)) << wrong;
}

class pods_job_test : public testing::Test {
protected:
  /// @returns what is wrong with it.
  std::string problem(const std::string& data, const std::string& more = "") {
    const auto text =
        "name: iris\nmodel: {input: [4], layers: [{linear: {out_features: 3}}], loss: cross_entropy}\n"
        "data: {train: {format: npy, records: " +
        data +
        ", labels: /data/labels.npy}}\n"
        "train: {epochs: 1, microbatch_size: 8, optimizer: {sgd: {lr: 0.1}}" +
        (more.starts_with("  ") ? more.substr(2) + "}\n" : "}\n" + more);
    const auto read = read_pods_job(folder.write("job.yaml", {text.begin(), text.end()}).string(), wanted);
    if (read) return "";
    code = read.error().code;
    EXPECT_TRUE(!is_of_job || code == error_code::bad_spec) << read.error().message;
    return read.error().message;
  }
  /// The same of a job with its journal in an etcd.
  std::string journal_problem(const std::string& more, const std::string& endpoints = "https://etcd:2379") {
    return problem("/data/r.npy",
                   "cluster: {journal: {etcd: {endpoints: [\"" + endpoints + "\"]" + more + "}}}\n");
  }
  test::temporary_folder folder;
  bool is_of_job = true; ///< the problem, and not of the command line
  error_code code{};
  pods_wish wanted{.name = {}, .name_space = {}, .image = "i", .job_file = {}};
};

TEST_F(pods_job_test, has_the_name_and_the_grace_of_the_job) {
  EXPECT_EQ(problem("/data/records.npy", "cluster: {leave_grace_s: 12.5}\n"), "");
  EXPECT_EQ(wanted.name, "iris");
  EXPECT_EQ(wanted.leave_grace, std::chrono::seconds{13});
  EXPECT_THAT(wanted.job_file, HasSubstr("leave_grace_s: 12.5"));
}

TEST_F(pods_job_test, keeps_the_name_that_was_asked_for) {
  wanted.name = "other";
  EXPECT_EQ(problem("/data/records.npy"), "");
  EXPECT_EQ(wanted.name, "other");
}

TEST_F(pods_job_test, refuses_what_lies_beside_the_job_file) {
  EXPECT_THAT(problem("records.npy"),
              AllOf(HasSubstr("data.train.records: \"records.npy\" is relative"), HasSubstr("/data/")));
  for (const std::string climbs : {"../data/x.npy", "../../data/x.npy", "../dlrun/x.npy"})
    EXPECT_THAT(problem(climbs), HasSubstr("data.train.records: \"" + climbs + "\" is relative"));
  EXPECT_THAT(problem("/data/r.npy", "  , init_from: ../x.safetensors"),
              HasSubstr("train.init_from: \"../x"));
}

TEST_F(pods_job_test, a_full_path_may_be_anywhere_in_the_image) {
  for (const auto* full : {"/etc/dlrun/x.npy", "/x.npy", "/a/../b/x.npy"})
    EXPECT_EQ(problem(full), "") << full;
}

TEST_F(pods_job_test, refuses_weights_that_only_the_control_pod_sees) {
  const std::string weights = "  , init_from: /data/before.safetensors";
  EXPECT_EQ(problem("/data/records.npy", weights), "");
  wanted.data_claim = "claim";
  EXPECT_THAT(problem("/data/records.npy", weights),
              AllOf(HasSubstr("train.init_from"), HasSubstr("into the image")));
}

TEST_F(pods_job_test, refuses_what_pods_do_not_have_and_names_key_and_way_out) {
  EXPECT_THAT(problem("/data/r.npy", "cluster: {placement: threads}\n"),
              AllOf(HasSubstr("cluster.placement"), HasSubstr("\"processes\"")));
  EXPECT_THAT(problem("/data/r.npy", "durability: {log: off}\n"),
              AllOf(HasSubstr("durability.log"), HasSubstr("\"auto\"")));
  EXPECT_THAT(problem("/data/r.npy", "cluster: {device: cuda}\n"),
              AllOf(HasSubstr("cluster.device"), HasSubstr("\"cpu\"")));
  for (const std::string precision : {"tf32", "bf16"})
    EXPECT_THAT(problem("/data/r.npy", ("  , precision: " + precision).c_str()),
                AllOf(HasSubstr("train.precision: with \"" + precision + "\""), HasSubstr("\"fp32\"")));
  wanted.hosts_min = 1;
  EXPECT_THAT(problem("/data/r.npy", "durability: {log: every_step, replicas: 2}\n"),
              AllOf(HasSubstr("durability.replicas"), HasSubstr("--hosts-min 2")));
  EXPECT_EQ(problem("/data/r.npy"), "") << "of itself it has copies where there are two";
  wanted.hosts_min = 2;
  EXPECT_EQ(problem("/data/r.npy", "durability: {log: every_step, replicas: 2}\n"), "");
}

TEST_F(pods_job_test, knows_how_the_control_pod_reaches_the_etcd_of_the_journal) {
  EXPECT_EQ(journal_problem("", "https://a.b.svc:2379\", \"https://[fd00::1]:2390\", \"https://c:2379"), "");
  EXPECT_THAT(wanted.journal->ports, testing::ElementsAre(2379, 2390));
  EXPECT_TRUE(wanted.journal->has_own_prefix);
  EXPECT_EQ(journal_problem(", prefix: jobs/mine"), "");
  EXPECT_FALSE(wanted.journal->has_own_prefix);
  EXPECT_EQ(problem("/data/r.npy"), "");
  EXPECT_FALSE(wanted.journal);
}

TEST_F(pods_job_test, refuses_an_etcd_that_no_pod_can_reach) {
  for (const auto* own : {"http://localhost:2379", "https://127.0.0.1:2379", "http://[::1]:2379"})
    EXPECT_THAT(journal_problem("", own), AllOf(HasSubstr(own), HasSubstr("name the Service"))) << own;
}

TEST_F(pods_job_test, takes_what_opens_the_etcd_from_the_secret_alone) {
  const std::string folder = journal_folder;
  const auto pair = [&](const std::string& key) {
    return ", certificate_file: " + folder + "/tls.crt, key_file: " + key;
  };
  wanted.journal_secret = "etcd";
  EXPECT_EQ(journal_problem(pair(folder + "/tls.key")), "");
  EXPECT_EQ(journal_problem(", ca_file: /etc/ssl/ca.pem, user_file: " + folder + "/user"), "");
  for (const auto& elsewhere : {std::string{"/etc/tls.key"}, folder + "/a/b", folder + "/..", folder + "x/y"})
    EXPECT_THAT(journal_problem(pair(elsewhere)),
                AllOf(HasSubstr("key_file: \"" + elsewhere), HasSubstr(folder + "/NAME-OF-A-KEY")));
  is_of_job = false;
  EXPECT_THAT(journal_problem(""), HasSubstr("--journal-secret 'etcd': the job names no file of it"));
  EXPECT_THAT(problem("/data/r.npy"),
              HasSubstr("--journal-secret 'etcd': the journal of the job is in no etcd"));
  wanted.journal_secret.clear();
  EXPECT_THAT(journal_problem(pair(folder + "/tls.key")), HasSubstr("name the Secret that has it"));
  EXPECT_EQ(code, error_code::bad_usage);
}

TEST_F(pods_job_test, takes_what_is_overridden_into_account) {
  wanted.overrides = {"cluster.placement=threads"};
  EXPECT_THAT(problem("/data/r.npy"), HasSubstr("cluster.placement"));
}

TEST_F(pods_job_test, refuses_a_file_that_is_no_job_or_is_not_there) {
  EXPECT_THAT(problem("/data/r.npy", "clutser: {workers: 2}\n"), HasSubstr("clutser"));
  EXPECT_FALSE(read_pods_job("/nowhere/job.yaml", wanted));
}

} // namespace
} // namespace dlrun::cli
