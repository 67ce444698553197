"""Any role killed at random, seeded moments: the same bits, nothing missing, nothing done again, nothing left."""

import small_data
from any_kill_case import any_kill_case
from bench_case import main


class single_kills(any_kill_case):
    """One process at a time, every step in the log: nothing is done again."""

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


if __name__ == "__main__":
    main()
