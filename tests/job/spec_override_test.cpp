#include "tests/job/spec_text.hpp"

#include <gtest/gtest.h>

namespace dlrun::job {
namespace {

using test::minimal_spec, test::parse, test::problems_of, test::with;

TEST(spec_override, sets_values_of_every_type) {
  const auto spec = parse(minimal_spec, {"train.epochs=3", "cluster.workers=4", "train.shuffle=false",
                                         "train.optimizer.sgd.lr=1e-2", "data.train.records=/other/images",
                                         "model.input=[784]", "name=other", "train.seed=0"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->train().epochs(), 3);
  EXPECT_EQ(spec->cluster().workers(), 4);
  EXPECT_FALSE(spec->train().shuffle());
  EXPECT_EQ(spec->train().optimizer().sgd().lr(), 0.01);
  EXPECT_EQ(spec->data().train().records(), "/other/images");
  ASSERT_EQ(spec->model().input_size(), 1);
  EXPECT_EQ(spec->model().input(0), 784);
  EXPECT_EQ(spec->name(), "other");
  EXPECT_EQ(spec->train().seed(), 0U);
}

TEST(spec_override, reaches_into_lists) {
  const auto spec =
      parse(minimal_spec, {"model.layers[1].linear.out_features=20", "model.layers[0]={dropout: {p: 0.3}}",
                           "model.layers[0].dropout.p=0.1", "model.input[0]=3"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->model().layers(1).linear().out_features(), 20);
  EXPECT_EQ(spec->model().layers(0).dropout().p(), 0.1);
  EXPECT_EQ(spec->model().layers_size(), 2);
  EXPECT_EQ(spec->model().input(0), 3);
  EXPECT_EQ(spec->model().input(2), 28);
}

TEST(spec_override, makes_sections_that_were_not_written) {
  const auto spec = parse(
      minimal_spec, {"data.validation.records=v", "data.validation.labels=w", "cluster.restart.intensity=3"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->data().validation().records(), "/base/v");
  EXPECT_EQ(spec->cluster().restart().intensity(), 3);
  EXPECT_EQ(spec->cluster().restart().period_s(), 60);
}

TEST(spec_override, a_single_value_may_stand_for_a_list_where_that_is_said) {
  const auto spec = parse(minimal_spec, {"data.train.normalize.mean=0.25", "data.train.normalize.std=[2]"});
  ASSERT_TRUE(spec) << spec.error().message;
  ASSERT_EQ(spec->data().train().normalize().mean_size(), 1);
  EXPECT_EQ(spec->data().train().normalize().mean(0), 0.25);
  EXPECT_EQ(spec->data().train().normalize().std(0), 2);
  EXPECT_FALSE(parse(minimal_spec, {"model.input=784"}));
}

TEST(spec_override, names_of_the_users_own_are_set_whole) {
  const std::string mine =
      with(minimal_spec, "{records: images, labels: labels}", "{format: mine, records: x}");
  const auto spec = parse(mine, {"data.train.options={depth: 3, kind: deep}"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->data().train().options().at("depth"), "3");
  EXPECT_EQ(problems_of(mine, {"data.train.options.depth=3"}),
            "--set data.train.options.depth=3: data.train.options.depth: data.train.options is set whole: "
            "data.train.options={name: text, ...}");
  EXPECT_NE(problems_of(mine, {"data.train.options[0]=3"}), "");
  EXPECT_NE(problems_of(mine, {"data.train.options=[a]"}), "");
}

TEST(spec_override, the_last_one_wins) {
  const auto spec = parse(minimal_spec, {"train.epochs=3", "train.epochs=4"});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->train().epochs(), 4);
}

TEST(spec_override, a_choice_is_changed_as_a_whole) {
  const auto spec = parse(minimal_spec, {"train.optimizer={adam: {lr: 0.01}}"});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_TRUE(spec->train().optimizer().has_adam());
  EXPECT_TRUE(parse(minimal_spec, {"train.optimizer=adam"}));
  EXPECT_TRUE(parse(minimal_spec, {"model.layers[0]=relu"}));
  EXPECT_EQ(problems_of(minimal_spec, {"train.optimizer.adam.lr=0.1"}),
            "--set train.optimizer.adam.lr=0.1: train.optimizer.adam.lr: train.optimizer is \"sgd\"; to make "
            "it another, set it "
            "whole: train.optimizer={adam: {...}}");
}

TEST(spec_override, text_is_taken_as_it_stands) {
  const auto spec =
      parse(minimal_spec, {"data.train.records=/data/a: b [1].idx", "data.train.labels=\"/quoted path\""});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->data().train().records(), "/data/a: b [1].idx");
  EXPECT_EQ(spec->data().train().labels(), "/quoted path");
  ASSERT_TRUE(parse(minimal_spec, {"data.train.records=@x"}));
}

TEST(spec_override, an_unknown_path_names_the_nearest) {
  const auto nearest = [](const std::string& path) {
    const std::string found = problems_of(minimal_spec, {path + "=1"});
    const auto from = found.find("did you mean \"");
    return from == std::string::npos ? found : found.substr(from + 14, found.rfind('"') - from - 14);
  };
  EXPECT_EQ(nearest("train.epoch"), "train.epochs");
  EXPECT_EQ(nearest("epochs"), "train.epochs");
  EXPECT_EQ(nearest("cluster.worker"), "cluster.workers");
  EXPECT_EQ(nearest("workers"), "cluster.workers");
  EXPECT_EQ(nearest("train.sgd.lr"), "train.optimizer.sgd.lr");
  EXPECT_EQ(nearest("model.layers[1].linear.out_feature"), "model.layers[1].linear.out_features");
  EXPECT_EQ(nearest("train.epochs.more"), "train.epochs");
}

TEST(spec_override, what_cannot_be_set_says_why) {
  EXPECT_EQ(problems_of(minimal_spec, {"train.epochs"}),
            "--set train.epochs: expected path=value, e.g. train.epochs=3");
  EXPECT_EQ(problems_of(minimal_spec, {"train.epochs="}),
            "--set train.epochs=: train.epochs: expected an integer from 1 to 1000000, found nothing");
  EXPECT_EQ(problems_of(minimal_spec, {"train.epochs=0"}),
            "--set train.epochs=0: train.epochs: expected an integer from 1 to 1000000, found 0");
  EXPECT_EQ(problems_of(minimal_spec, {"model.layers[2]=relu"}),
            "--set model.layers[2]=relu: model.layers[2]: model.layers has the places 0 to 1");
  EXPECT_EQ(problems_of(minimal_spec, {"model.layers.name=x"}),
            "--set model.layers.name=x: model.layers.name: model.layers is a list; say which, e.g. "
            "model.layers[0]");
  EXPECT_EQ(problems_of(minimal_spec, {"train[0].epochs=1"}),
            "--set train[0].epochs=1: train[0].epochs: train is not a list");
  EXPECT_EQ(problems_of(minimal_spec, {"model.layers[0]=rleu"}),
            "--set model.layers[0]=rleu: model.layers[0]: unknown \"rleu\"; did you mean \"relu\"?");
  EXPECT_EQ(problems_of(minimal_spec, {"model.input[1]=0"}),
            "--set model.input[1]=0: model.input[1]: expected an integer from 1 to 1048576, found 0");
}

/// As in a job file: what readers of YAML or of other files take for different numbers is none.
TEST(spec_override, a_number_has_one_form) {
  const auto said = [](const std::string& key, const std::string& expected, const std::string& value,
                       const std::string& way_out) {
    EXPECT_EQ(problems_of(minimal_spec, {key + "=" + value}), "--set " + key + "=" + value + ": " + key +
                                                                  ": expected " + expected + ", found \"" +
                                                                  value + "\"" + way_out);
    const auto dot = key.rfind('.');
    const auto section = "{" + key.substr(dot + 1) + ": " + value + "}";
    EXPECT_EQ(problems_of(minimal_spec, {key.substr(0, dot) + "=" + section}),
              "--set " + key.substr(0, dot) + "=" + section + ": " + key + ": expected " + expected +
                  ", found \"" + value + "\"" + way_out);
  };
  const std::string workers = "cluster.workers", range = "an integer from 1 to 1024";
  said(workers, range, "010", "; write 10, without leading zeros");
  said(workers, range, "00", "; write 0, without leading zeros");
  said(workers, range, "+5", "; write 5, without '+'");
  said(workers, range, "-010", "; write -10, without leading zeros");
  said(workers, range, "1e3", "; write 1000");
  said(workers, range, "2.0", "; write 2");
  said(workers, range, "2.5", "");
  for (const char* other : {"0x10", "0o17", "1_000", "5m"})
    said(workers, range, other, "; write it in decimal digits alone");
  const std::string period = "cluster.restart.period_s", seconds = "a number from 0.001 to 31536000";
  said(period, seconds, "010", "; write 10, without leading zeros");
  said(period, seconds, "00.5", "; write 0.5, without leading zeros");
  said(period, seconds, "+1e3", "; write 1e3, without '+'");
  said(period, seconds, "+inf", "");
  for (const char* plain : {"10", "0.5", ".5", "1e3", "1e+3", " 10 "}) {
    const auto text =
        with(minimal_spec, "workers: 2", "workers: 2, restart: {period_s: " + std::string{plain} + "}");
    EXPECT_EQ(problems_of(text), "") << plain;
    EXPECT_EQ(problems_of(minimal_spec, {period + "=" + plain}), "") << plain;
  }
}

TEST(spec_override, a_number_within_text_has_the_same_form) {
  EXPECT_EQ(problems_of(minimal_spec, {"durability.replicas=02"}),
            "--set durability.replicas=02: durability.replicas: expected auto, or an integer from 1 to 100, "
            "found \"02\"; write it without leading zeros");
  for (const char* one :
       {"durability.max_recovery=010s", "durability.disk_quota=010GB", "train.evaluate_every=010 steps"})
    EXPECT_NE(problems_of(minimal_spec, {one}).find("; write it without leading zeros"), std::string::npos)
        << one;
}

TEST(spec_override, malformed_paths_are_errors) {
  for (const char* path :
       {"", ".", "train.", ".train", "train..epochs", "model.layers[", "model.layers[]", "model.layers[01]",
        "model.layers[x]", "model.layers[-1]", "model.layers[1", "model.layers[1]x",
        "model.layers[99999999999999999999]", "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r"})
    EXPECT_NE(problems_of(minimal_spec, {std::string(path) + "=1"}), "") << path;
  EXPECT_NE(problems_of(minimal_spec, {std::string("na\0me=1", 7)}), "");
  EXPECT_NE(problems_of(minimal_spec, {"name=\xff"}), "");
  EXPECT_NE(problems_of(minimal_spec, {"train={a: &x 1}"}), "");
}

} // namespace
} // namespace dlrun::job
