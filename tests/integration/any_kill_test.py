"""Any role killed at random, seeded moments: the same bits, nothing missing, nothing done again, nothing left."""

import os
import pathlib

import any_kills
import small_data
from any_kill_case import any_kill_case
from bench_case import main
from dlrun_job import wait_until


class single_kills(any_kill_case):
    """One process at a time, every step in the log or all versions in memory that outlives it: nothing is done again."""

    def test_ps_shards_of_an_mlp_with_dropout(self):
        report = self.expect_survival("mlp_dropout", "every_step", ["ps_shard"], seed=1)
        self.assertTrue(all(one["role"] == "ps_shard" for one in report["recoveries"]), report["recoveries"])

    def test_ps_shards_of_a_cnn_with_batch_norm(self):
        self.expect_survival("cnn_batch_norm", "every_step", ["ps_shard"], seed=2)

    def test_ps_shards_of_an_mlp_in_mode_snapshots(self):
        self.expect_survival("mlp_dropout", "snapshots", ["ps_shard"], seed=5)

    def test_ps_shards_of_a_cnn_in_mode_snapshots(self):
        self.expect_survival("cnn_batch_norm", "snapshots", ["ps_shard"], seed=12)

    def test_ps_shards_that_exchange_norms_in_mode_snapshots(self):
        self.expect_survival("mlp_dropout", "snapshots", ["ps_shard"], seed=13, change=small_data.add_coupled_updates)

    def test_coordinators(self):
        report = self.expect_survival("mlp_dropout", "every_step", ["coordinator"], seed=3)
        self.assertTrue(all(one["role"] == "coordinator" for one in report["recoveries"]), report["recoveries"])

    def test_ps_shards_that_exchange_norms(self):
        self.expect_survival("mlp_dropout", "every_step", ["ps_shard"], seed=8, change=small_data.add_coupled_updates)

    def test_workers_beside_a_log(self):
        self.expect_survival("cnn_batch_norm", "every_step", ["worker"], seed=4)


class gives_memory_back(any_kill_case):
    def retained(self, pid):
        """How many pieces of memory of PS shards a process holds."""
        links = (self.try_read_link(one) for one in pathlib.Path(f"/proc/{pid}/fd").iterdir())
        return sum(link.startswith(("/memfd:dlrun:parameters", "/memfd:dlrun:state")) for link in links)

    @staticmethod
    def try_read_link(file):
        try:
            return os.readlink(file)
        except FileNotFoundError:  # closed meanwhile
            return ""

    def test_of_a_start_whose_successor_stands(self):
        spec = any_kills.make_spec("mlp_dropout", self.data, "snapshots", epochs={"mlp_dropout": 100000})
        with self.bench.start(spec) as job:
            job.wait_until_all_run()
            for kills, shard in enumerate((0, 1, 0), 1):
                job.kill("ps_shard", shard)
                wait_until(lambda wanted=kills: len(job.events("ps-shard-resumed")) == wanted, "it is back")
                wait_until(lambda: self.retained(job.root.pid) == 2 * any_kills.PS_SHARDS,
                           "what the start before had is given back")
            self.assertEqual(job.ask("stop")[0], 0)
            job.wait_end()


if __name__ == "__main__":
    main()
