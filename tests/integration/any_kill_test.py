"""Any role killed at random, seeded moments, several at once, all: the same bits, nothing missing, nothing left."""

import any_kills
import small_data
from bench_case import bench_case, main


def over_tcp(spec):
    spec["cluster"]["tensor_channel"] = "tcp"
    return spec


class single_kills(bench_case):
    """One process at a time, every step in the log: nothing is done again."""

    def expect_survival(self, model, log, kinds, seed, count=3, change=lambda spec: spec):
        spec = change(any_kills.make_spec(model, self.data, log))
        undisturbed = change(any_kills.make_spec(model, self.data, "off"))
        reference = self.undisturbed(undisturbed)
        kills, plan, report = any_kills.run_once(self.bench, spec, seed, reference, kinds, count)
        self.assertGreaterEqual(kills, 1, plan)
        return report

    def test_ps_shards_of_an_mlp_with_dropout(self):
        report = self.expect_survival("mlp_dropout", "every_step", ["ps_shard"], seed=1)
        self.assertTrue(all(one["role"] == "ps_shard" for one in report["recoveries"]), report["recoveries"])

    def test_ps_shards_of_a_cnn_with_batch_norm(self):
        self.expect_survival("cnn_batch_norm", "every_step", ["ps_shard"], seed=2)

    def test_coordinators(self):
        report = self.expect_survival("mlp_dropout", "every_step", ["coordinator"], seed=3)
        self.assertTrue(all(one["role"] == "coordinator" for one in report["recoveries"]), report["recoveries"])

    def test_ps_shards_that_exchange_norms(self):
        self.expect_survival("mlp_dropout", "every_step", ["ps_shard"], seed=8, change=small_data.add_coupled_updates)

    def test_workers_beside_a_log(self):
        self.expect_survival("cnn_batch_norm", "every_step", ["worker"], seed=4)


class several_kills(single_kills):
    """Where gradients and parameters are lost together, training goes back to a version that all have."""

    def test_ps_shards_in_mode_snapshots(self):
        self.expect_survival("mlp_dropout", "snapshots", ["ps_shard"], seed=5)

    def test_anyone_and_everyone_with_every_step_logged(self):
        self.expect_survival("mlp_dropout", "every_step", any_kills.SEVERAL, seed=6, count=4)

    def test_anyone_and_everyone_in_mode_snapshots(self):
        self.expect_survival("cnn_batch_norm", "snapshots", any_kills.SEVERAL, seed=7, count=4)

    def test_anyone_where_ps_shards_exchange_norms_with_every_step_logged(self):
        self.expect_survival("mlp_dropout", "every_step", any_kills.SEVERAL, seed=9, count=4,
                             change=small_data.add_coupled_updates)

    def test_anyone_where_ps_shards_exchange_norms_in_mode_snapshots(self):
        self.expect_survival("mlp_dropout", "snapshots", [*any_kills.SEVERAL, "ps_shard"], seed=10, count=4,
                             change=small_data.add_coupled_updates)

    def test_anyone_and_everyone_over_tcp(self):
        self.expect_survival("mlp_dropout", "every_step", any_kills.SEVERAL, seed=11, count=4, change=over_tcp)

    # of single_kills
    test_ps_shards_that_exchange_norms = None
    test_ps_shards_of_an_mlp_with_dropout = None
    test_ps_shards_of_a_cnn_with_batch_norm = None
    test_coordinators = None
    test_workers_beside_a_log = None


if __name__ == "__main__":
    main()
